"""Training on chosen pairs: their weights, and optima that must agree with other ways to them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from hypothesis_profiles import examples
from linrank import NoPairsError, TooFewPairsError, load_model
from linrank.data.dataset import Dataset
from linrank.pairs import chosen_sizes, closest, pruned, select_pairs
from papers import RankSVM, RankSVMCV
from strategies import scored_queries
from test_losses import listed_of

GAINS = {"uniform": None, "grade_diff": lambda y: y, "gain_diff": np.exp2}


@pytest.fixture(scope="module")
def graded() -> Any:
    """Eight queries of up to twelve labels, their rows mixed."""
    rng = np.random.default_rng(0)
    X, qid = rng.standard_normal((110, 4)).astype(np.float32), rng.integers(0, 8, 110)
    y = np.round(1.5 * (X @ [1.0, -1.0, 0.5, 0.0] + rng.standard_normal(110))) + 6
    return Dataset.of(X, y, qid=qid)


# ---- weights ------------------------------------------------------------------------------------


def entries(data: Dataset, swept: Any, listed: Any) -> dict[tuple[int, int], float]:
    """ω of every pair, swept or listed, by its definition."""
    found = {}
    if swept is not None:
        rows = range(swept.queries.n_rows) if swept.queries.order is None else swept.queries.order
        found = {(int(rows[i]), int(rows[j])): omega for i, j, omega in listed_of(swept)}
    if listed is not None:
        weight = np.ones(len(listed)) if listed.weight is None else listed.weight
        for pair, omega in zip(listed.pairs.tolist(), weight.tolist(), strict=True):
            assert tuple(pair) not in found
            found[tuple(pair)] = omega
    return found


@examples(120)
@given(
    case=scored_queries(max_rows=12, min_rows=2),
    pairs=st.sampled_from(["closest", "pruned"]),
    n_closest=st.one_of(st.just("auto"), st.integers(1, 30)),
    n_random=st.one_of(st.just("auto"), st.integers(1, 30)),
    weighting=st.sampled_from(list(GAINS)),
    normalization=st.sampled_from([None, "pairs"]),
    with_weights=st.booleans(),
)
def test_weights_are_those_of_the_definition(
    case, pairs, n_closest, n_random, weighting, normalization, with_weights
):
    """``ω_ij = c_q u_i u_j (g_i - g_j)``, c_q divided by the sum over the pairs that are chosen."""
    data = Dataset.of(np.zeros((len(case.labels), 1)), case.labels, qid=case.qid)
    total = data.queries.n_pairs
    if total == 0:
        with pytest.raises(NoPairsError):
            select_pairs(data, pairs=pairs)
        return
    n_closest = n_closest if n_closest == "auto" else min(n_closest, total)
    n_random = n_random if n_random == "auto" else min(n_random, total)
    sizes = {"n_closest": n_closest} | ({"n_random": n_random} if pairs == "pruned" else {})
    if with_weights:
        u = np.random.default_rng(1).uniform(0.5, 2.0, data.n_rows)
        data = replace(data, weight=u)
    c = np.linspace(1.0, 2.0, data.queries.n_queries) if with_weights else None
    how = {"pair_weighting": weighting, "query_normalization": normalization, "query_weight": c}
    swept, listed = select_pairs(data, pairs=pairs, **sizes, seed=2, **how)
    found = entries(data, swept, listed)
    plain = pruned(case.labels, case.qid, **sizes, seed=2) if pairs == "pruned" else None
    if pairs == "closest":
        plain = closest(case.labels, case.qid, n_closest, seed=2)
    told = chosen_sizes(data.queries, pairs, **sizes)
    assert len(found) == told["n_pairs"] == len(plain)
    assert found.keys() == {tuple(pair) for pair in plain.pairs.tolist()}

    gain = None if GAINS[weighting] is None else GAINS[weighting](case.labels)
    ids = data.queries.ids.tolist()
    omega = {}
    for i, j in found:
        u = 1.0 if data.weight is None else data.weight[i] * data.weight[j]
        omega[i, j] = u * (1.0 if gain is None else gain[i] - gain[j])
    for q in range(len(ids)):
        mine = [pair for pair in omega if case.qid[pair[0]] == ids[q]]
        factor = 1.0 if c is None else c[q]
        if normalization == "pairs" and mine:
            factor /= sum(omega[pair] for pair in mine)
        for pair in mine:
            assert_allclose(found[pair], factor * omega[pair], rtol=1e-9)


# ---- swept where it can be ----------------------------------------------------------------------


def test_what_is_swept_and_what_is_listed(graded):
    sizes = chosen_sizes(graded.queries, "pruned")
    S, p = sizes["n_closest"], graded.queries.n_pairs
    assert sizes["n_random"] == S < p - S
    swept, listed = select_pairs(graded, pairs="closest")
    assert (swept.adjacent, listed) == (True, None)
    assert select_pairs(graded, pairs="closest", n_closest=S)[1] is None
    swept, listed = select_pairs(graded, pairs="pruned", seed=4)
    assert (swept.adjacent, len(listed)) == (True, S)
    swept, listed = select_pairs(graded, pairs="closest", n_closest=S - 1)
    assert (swept, len(listed)) == (None, S - 1)
    for every in ({"pairs": "closest", "n_closest": p}, {"pairs": "pruned", "n_random": p - S}):
        swept, listed = select_pairs(graded, **every)
        assert (swept.adjacent, swept.n_pairs, listed) == (False, p, None)


# ---- the estimators -----------------------------------------------------------------------------


def test_a_model_says_what_was_chosen(graded, tmp_path):
    ranker = RankSVM(pairs="pruned", n_random=25, random_state=9)
    ranker.fit(graded.X, graded.y, qid=graded.qid)
    S = chosen_sizes(graded.queries, "closest")["n_closest"]
    ranker.save(tmp_path / "m.json")
    training = load_model(tmp_path / "m.json").training
    told = {name: training[name] for name in ("pairs", "n_closest", "n_random", "seed", "n_pairs")}
    assert told == {
        "pairs": "pruned", "n_closest": S, "n_random": 25, "seed": 9, "n_pairs": S + 25
    }  # fmt: skip
    assert ranker.n_pairs_ == S + 25
    near = RankSVM(pairs="closest").fit(graded.X, graded.y, qid=graded.qid)
    assert near.n_pairs_ == near.model_.training["n_closest"] == S
    assert near.model_.training["n_random"] is None
    plain = RankSVM().fit(graded.X, graded.y, qid=graded.qid).model_.training
    assert plain["n_closest"] is plain["n_random"] is None
    assert "seed" not in plain


def test_a_fold_with_fewer_pairs_is_named(graded):
    n = graded.queries.n_pairs - 1
    with pytest.raises(TooFewPairsError, match=rf"fold \d of 3: n_closest is {n}, but"):
        RankSVMCV([0.1], cv=3, pairs="closest", n_closest=n).fit(graded.X, graded.y, qid=graded.qid)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"pairs": "closest", "n_closest": 10**9}, "n_closest is 1000000000, but the labels make"),
        ({"pairs": "pruned", "n_random": 10**9}, "n_random is 1000000000, but the labels make"),
        ({"pairs": "closest", "n_closest": 0}, "n_closest must be >= 1, got 0"),
        ({"pairs": "pruned", "n_random": 0}, "n_random must be >= 1, got 0"),
        ({"n_closest": 5}, "n_closest=5 belongs to pairs='closest' and 'pruned', got pairs='all'"),
        ({"pairs": "adjacent", "n_closest": 5}, "got pairs='adjacent'"),
        ({"n_random": 5}, "n_random=5 belongs to pairs='pruned', got pairs='all'"),
        ({"pairs": "closest", "n_random": 5}, "n_random=5 belongs to pairs='pruned', got"),
        ({"pairs": "pruned", "solver": "tron"}, r"published method: .*pairs='all'.*'pruned'"),
        ({"pairs": "closest", "solver": "prsvm"}, r"Use solver='newton'"),
        ({"pairs": "closest", "random_state": -1}, "random_state must be an integer from 0"),
    ],
)
def test_wrong_choices_are_refused(graded, options, message):
    with pytest.raises(ValueError, match=message):
        RankSVM(**options).fit(graded.X, graded.y, qid=graded.qid)


def test_weights_that_sum_to_nothing_or_to_too_much_are_refused(graded):
    for weight, options, error, message in (
        (0.0, {}, NoPairsError, "have weight zero; check sample_weight and query_weight$"),
        (0.0, {"pair_weighting": "grade_diff"}, NoPairsError, "for pair_weighting='grade_diff'$"),
        (1e160, {}, ValueError, "sum to inf: they leave the range of double precision"),
    ):
        data = replace(graded, weight=np.full(graded.n_rows, weight))
        with pytest.raises(error, match=message):
            select_pairs(data, **options)


def test_preferences_beside_chosen_pairs(graded):
    extra = pruned(graded.y, graded.qid, 5, 5, seed=1).pairs[::-1]
    options = {"pairs": "closest", "n_closest": 30, "random_state": 0, "tol": 1e-9}
    mixed = RankSVM(**options).fit_pairs(
        graded.X, extra, pair_weight=np.full(10, 2.0), y=graded.y, qid=graded.qid
    )
    both = np.concatenate([closest(graded.y, graded.qid, 30).pairs, extra, extra])
    alone = RankSVM(tol=1e-9).fit_pairs(graded.X, both)
    assert_allclose(mixed.objective_, alone.objective_, rtol=1e-8)
    assert mixed.n_pairs_ == 40
