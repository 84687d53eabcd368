"""Preferences listed one by one: the loss equals its definition, the fit that of labels."""

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from hypothesis_profiles import examples
from linrank import Dataset, NoPairsError, Preferences, TooFewPairsError, make_ranking
from linrank.data.queries import Queries
from linrank.losses.base import PreferenceSquaredHinge
from linrank.pairs import Cells, Selection, closest, pruned, random, without
from linrank.ranksvm.train import sample_preferences, train
from linrank.system import resources
from papers import RankSVM
from strategies import scored_queries

EPSILON = 0.3


# ---- the loss -----------------------------------------------------------------------------------


# ---- the fit ------------------------------------------------------------------------------------


GRADED = make_ranking(n_queries=30, n_features=6, random_state=3)


ALL_PAIRS = np.argwhere((GRADED.qid[:, None] == GRADED.qid) & (GRADED.y[:, None] > GRADED.y))


def fit(**settings):
    return RankSVM(**{"C": 0.1, "tol": 1e-12, **settings})


@pytest.mark.parametrize("solver", ["newton", "tron"])
@pytest.mark.parametrize("scale", ["none", "standard", "query"])
def test_all_pairs_of_the_labels_are_the_labels(solver, scale):
    tol = 1e-12 if solver == "newton" else 1e-10
    settings = {"solver": solver, "scale": scale, "tol": tol}
    by_label = fit(**settings).fit(GRADED.X, GRADED.y, qid=GRADED.qid)
    by_pair = fit(**settings).fit_pairs(GRADED.X, ALL_PAIRS, qid=GRADED.qid)
    assert_allclose(by_pair.coef_, by_label.coef_, rtol=1e-7, atol=1e-9)
    assert_allclose(by_pair.objective_, by_label.objective_, rtol=1e-10)
    assert by_pair.n_pairs_ == by_label.n_pairs_ == len(ALL_PAIRS)
    assert by_pair.duality_gap_ <= 1e-6 * by_pair.objective_


def test_labels_and_preferences_make_one_objective():
    """Mixing equals listing both kinds, with the weights that each has."""
    rng = np.random.default_rng(1)
    u = rng.uniform(0.5, 2.0, len(GRADED.y))
    listed = rng.integers(0, len(GRADED.y), (300, 2))
    listed = listed[listed[:, 0] != listed[:, 1]]
    weight = rng.uniform(0.0, 5.0, len(listed))
    labels = {"y": GRADED.y, "qid": GRADED.qid, "sample_weight": u, "across_queries": True}
    mixed = fit().fit_pairs(GRADED.X, listed, pair_weight=weight, **labels)
    omega = np.concatenate([u[ALL_PAIRS[:, 0]] * u[ALL_PAIRS[:, 1]], weight])
    both = fit().fit_pairs(GRADED.X, np.concatenate([ALL_PAIRS, listed]), pair_weight=omega)
    assert_allclose(mixed.coef_, both.coef_, rtol=1e-7, atol=1e-9)
    assert_allclose(mixed.objective_, both.objective_, rtol=1e-11)
    assert mixed.n_pairs_ == both.n_pairs_ == len(ALL_PAIRS) + len(listed)
    assert mixed.duality_gap_ <= 1e-7 * mixed.objective_
    assert mixed.model_.training["n_preferences"] == len(listed)


@pytest.mark.parametrize("with_labels", [False, True])
def test_large_data_are_solved_by_a_sample_first(with_labels):
    """Rows enough for the sampled preconditioner: the same optimum, the same bits by threads."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(30_000, 12)).astype(np.float32)
    s = X @ rng.normal(size=12) + rng.normal(size=30_000)
    pairs = rng.integers(0, 30_000, (40_000, 2))
    pairs = pairs[s[pairs[:, 0]] > s[pairs[:, 1]]]
    labels = {"y": (s > 1.0) * 1.0, "qid": np.arange(30_000) // 20} if with_labels else {}
    fits = [
        fit(tol=1e-9, n_jobs=n).fit_pairs(X, pairs, across_queries=True, **labels) for n in (1, 2)
    ]
    assert_array_equal(fits[0].coef_, fits[1].coef_)
    assert fits[0].converged_
    assert fits[0].duality_gap_ <= 1e-5 * fits[0].objective_


def test_frames_names_and_validation_data():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(GRADED.X, columns=list("abcdef"))
    table = pd.DataFrame(ALL_PAIRS, columns=["winner", "loser"])
    ranker = fit().fit_pairs(
        frame, table, qid=GRADED.qid, X_val=frame, y_val=GRADED.y, qid_val=GRADED.qid
    )
    assert list(ranker.feature_names_in_) == list("abcdef")
    assert len(ranker.history_["val_ndcg@10"]) == ranker.n_iter_ + 1
    assert_array_equal(ranker.coef_, fit().fit_pairs(GRADED.X, ALL_PAIRS).coef_)


def test_a_sample_of_preferences_keeps_the_weight():
    preferences = Preferences.of(np.column_stack([np.arange(1, 101), np.zeros(100, int)]))
    some = sample_preferences(preferences, 0.1, seed=0, factor=2.0)
    assert len(some) == 11
    assert_allclose(some.total_weight(), 200.0)
    assert len(np.unique(some.winners)) == 11


# ---- what is refused ----------------------------------------------------------------------------

X4 = np.eye(4)


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        ([[0, 1], [2, 2]], "pair 1 compares row 2 with itself"),
        ([[0, 1], [3, 4]], r"pair 1, \(3, 4\): there is no row 4 for its loser; X has rows 0 to 3"),
        ([[-1, 0]], r"there is no row -1 for its winner"),
        ([[0, 1, 2]], r"shape \(n_pairs, 2\).* got shape \(1, 3\)"),
        ([0, 1], r"got shape \(2,\)"),
        ([], "pairs is empty"),
        ([[0.0, 1.0]], r"integer row numbers, got dtype float64; convert them"),
        ([["a", "b"]], "integer row numbers, got dtype <U1"),
        ([[True, False]], "integer row numbers, got dtype bool"),
        (np.array([[2**63, 0]], dtype=np.uint64), "beyond any matrix"),
    ],
)
def test_bad_pairs_are_named(pairs, message):
    with pytest.raises((TypeError, ValueError), match=message):
        RankSVM().fit_pairs(X4, pairs)


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        ([1.0, -0.5], r"pair_weight of pair 1, \(2, 3\), is -0.5; .* finite and >= 0"),
        ([np.nan, 1.0], r"pair_weight of pair 0, \(0, 1\), is nan"),
        ([1.0, np.inf], "is inf"),
        ([0.0, 0.0], "zero everywhere"),
        ([1.0], "pairs has 2 rows but pair_weight has 1"),
        (["a", "b"], "not numeric"),
    ],
)
def test_bad_weights_are_named(weight, message):
    with pytest.raises(ValueError, match=message):
        RankSVM().fit_pairs(X4, [[0, 1], [2, 3]], pair_weight=weight)


def test_pairs_across_queries_must_be_meant():
    qid, pairs = ["a", "b", "a", "b"], [[0, 2], [3, 2]]
    message = "pair 1 prefers row 3 of query 'b' to row 2 of query 'a'; 1 of 2 pairs"
    with pytest.raises(ValueError, match=message):
        RankSVM().fit_pairs(X4, pairs, qid=qid)
    with pytest.raises(ValueError, match="pair 0 prefers row 3 of query 1 to row 0 of query 0"):
        RankSVM().fit_pairs(X4, [[3, 0]], group=[2, 2])
    across = RankSVM().fit_pairs(X4, pairs, qid=qid, across_queries=True)
    assert_array_equal(across.coef_, RankSVM().fit_pairs(X4, pairs).coef_)
    assert across.needs_qid_


def test_weights_belong_to_labels_or_to_pairs():
    for name in ("sample_weight", "query_weight"):
        with pytest.raises(ValueError, match=f"{name} weighs the pairs of y, but y is None"):
            RankSVM().fit_pairs(X4, [[0, 1]], **{name: [1.0] * 4})
    with pytest.raises(ValueError, match="weights of their own"):
        RankSVM().fit_pairs(X4, Preferences.of([[0, 1]]), pair_weight=[1.0])
    by_hand = Preferences(np.array([0]), np.array([1]), np.array([-1.0]))
    with pytest.raises(ValueError, match=r"is -1\.0"):
        train(Dataset.of(X4, np.zeros(4)), preferences=by_hand)


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(1, 5), st.integers(0, 6)), min_size=1))
def test_merging_keeps_every_weight(drawn):
    pairs = [(i, (i + k) % 6) for i, k, _ in drawn]
    weight = np.array([half / 2 for _, _, half in drawn])
    weight[0] = 1.5
    merged = Preferences.of(pairs, weight).merged()
    assert len({tuple(pair) for pair in merged.pairs}) == len(merged)
    total, again = np.zeros((6, 6)), np.zeros((6, 6))
    np.add.at(total, tuple(np.transpose(pairs)), weight)
    again[merged.winners, merged.losers] = merged.weight
    assert_allclose(again, total)


@pytest.mark.parametrize("order", ["C", "F"])
def test_pairs_that_are_written_to_later_do_nothing(order):
    """The core trusts the rows that it has checked, so they are copied and read-only."""
    pairs = np.array([[0, 1], [2, 0], [1, 2]], order=order)
    found = Preferences.of(pairs, n_rows=3)
    pairs[:] = 2**40
    assert found.pairs.tolist() == [[0, 1], [2, 0], [1, 2]]
    for side in (found.winners, found.losers):
        with pytest.raises(ValueError, match="read-only"):
            side[0] = 2**40


def test_a_shift_of_all_scores_costs_no_digits():
    preferences = Preferences.of([[0, 1], [2, 1], [1, 2]])
    loss = PreferenceSquaredHinge(preferences, 3)
    z = np.array([0.25, 0.5, -0.125])
    assert loss.at(z).value == loss.at(z + 2.0**30).value


# ---- pairs that are chosen: the closest, random ones and both -----------------------------------


Pair = tuple[int, int]


def all_pairs(y, qid) -> dict[Pair, int]:
    """Every pair by its definition, and the difference of the dense ranks of its labels."""
    closeness = {}
    for q in sorted(set(qid)):
        rows = [i for i in range(len(y)) if qid[i] == q]
        rank = {label: r for r, label in enumerate(sorted({y[i] for i in rows}))}
        for i in rows:
            for j in rows:
                if y[i] > y[j]:
                    closeness[i, j] = rank[y[i]] - rank[y[j]]
    return closeness


def listed_once(preferences) -> list[Pair]:
    """The pairs in order; each is there once, and none has a weight."""
    pairs = [tuple(pair) for pair in preferences.pairs.tolist()]
    assert len(set(pairs)) == len(pairs)
    assert preferences.weight is None
    return pairs


@st.composite
def sized(draw):
    """Labels with ties in several queries, their pairs, and a number of pairs to choose."""
    case = draw(scored_queries(max_rows=14))
    pairs = all_pairs(case.labels, case.qid)
    n = draw(st.integers(1, max(1, len(pairs))))
    return case.labels, case.qid, pairs, n, draw(st.integers(0, 3))


# ---- what is chosen -----------------------------------------------------------------------------


@examples(80)
@given(sized())
def test_closest_takes_pairs_in_order_of_closeness(case):
    y, qid, pairs, n, seed = case
    if not pairs:
        with pytest.raises(NoPairsError):
            closest(y, qid, n)
        return
    found = [pairs[pair] for pair in listed_once(closest(y, qid, n, seed=seed))]
    assert found == sorted(pairs.values())[:n]
    first = [pair for pair, r in pairs.items() if r == 1]
    assert sorted(listed_once(closest(y, qid))) == sorted(first)


@examples(80)
@given(sized())
def test_random_pairs_are_pairs_and_none_is_chosen_twice(case):
    y, qid, pairs, n, seed = case
    if not pairs:
        with pytest.raises(NoPairsError):
            random(y, qid, n)
        return
    found = listed_once(random(y, qid, n, seed=seed))
    assert len(found) == n
    assert set(found) <= pairs.keys()


@examples(80)
@given(sized(), st.integers(1, 40))
def test_pruned_is_the_closest_and_others(case, n_random):
    y, qid, pairs, n, seed = case
    if not pairs:
        with pytest.raises(NoPairsError):
            pruned(y, qid)
        return
    n_random = min(n_random, len(pairs))
    found = listed_once(pruned(y, qid, n, n_random, seed=seed))
    assert found[:n] == listed_once(closest(y, qid, n, seed=seed))
    assert len(found) == min(n + n_random, len(pairs))
    assert set(found) <= pairs.keys()
    n_adjacent = sum(r == 1 for r in pairs.values())
    assert len(pruned(y, qid)) == min(2 * n_adjacent, len(pairs))
    assert len(pruned(y, qid, n)) == min(2 * n, len(pairs))
    assert len(random(y, qid)) == n_adjacent


@examples(100)
@given(scored_queries(max_rows=14), st.integers(0, 4))
def test_blocks_number_the_pairs_of_a_difference(case, difference):
    cells = Cells.of(case.queries)
    pairs = all_pairs(case.labels, case.qid)
    wanted = {"beyond": [p for p, r in pairs.items() if r > difference]}
    if difference:
        wanted["at"] = [p for p, r in pairs.items() if r == difference]
    for name, expected in wanted.items():
        blocks = getattr(cells, name)(difference)
        winners, losers = blocks.pairs(np.arange(blocks.n_pairs))
        found = zip(cells.rows[winners].tolist(), cells.rows[losers].tolist(), strict=True)
        assert sorted(found) == sorted(expected)


# ---- how it is drawn ----------------------------------------------------------------------------


def check_uniform(counts: Counter, n_kinds: int) -> None:
    """χ² of equal frequencies, beyond its mean by fewer than five standard deviations."""
    total = counts.total()
    assert len(counts) == n_kinds, f"{n_kinds - len(counts)} sets were never drawn"
    expected = total / n_kinds
    chi2 = sum((count - expected) ** 2 / expected for count in counts.values())
    degrees = n_kinds - 1
    assert chi2 <= degrees + 5 * math.sqrt(2 * degrees)


def drawn_by_seeds(n_draws: int, **sizes: Any) -> Iterator[list[Pair]]:
    """What is chosen by one seed after the other."""
    asked = {name: ("n", n) for name, n in sizes.items()}
    selection = Selection.of(Queries.of(LABELS, QUERIES), **asked)
    return (listed_once(replace(selection, seed=seed).list_pairs()) for seed in range(n_draws))


LABELS, QUERIES = [2, 0, 1, 5, 1, 3], ["a", "b", "a", "b", "a", "a"]  # 5 pairs of a, 1 of b


def test_the_others_are_drawn_uniformly_whatever_was_cut():
    """The two kinds together: every choice of 2 of 4 near ones and of 2 of the 4 that are left."""
    drawn = Counter()
    for found in drawn_by_seeds(900, closest=2, drawn=2):
        drawn[frozenset(found[:2]), frozenset(found[2:])] += 1
    check_uniform(drawn, 6 * 6)


@given(st.sets(st.integers(0, 40)), st.integers(1, 40))
def test_the_numbers_that_are_left(taken, n):
    free = [k for k in range(100) if k not in taken][:n]
    found = without(np.array(sorted(taken), dtype=np.int64), np.arange(n))
    assert_array_equal(found, free)


def test_a_set_that_could_not_be_listed_is_drawn_from():
    """10⁵ rows make 5·10⁹ pairs, 80 GB as a list; every row is about as often in the sample."""
    y = np.random.default_rng(0).permutation(100_000)
    found = random(y, n=20_000, seed=1)
    assert (y[found.winners] > y[found.losers]).all()
    # The rank of the winner has the density 2t, that of the loser 2(1 - t).
    assert abs(y[found.winners].mean() / 1e5 - 2 / 3) < 0.01
    assert abs(y[found.losers].mean() / 1e5 - 1 / 3) < 0.01


# ---- what is refused ----------------------------------------------------------------------------


@pytest.mark.parametrize("choose", [closest, random, pruned])
def test_numbers_of_pairs_are_checked(choose):
    y = [0, 1, 2, 3]
    name = "n_closest" if choose is pruned else "n"
    with pytest.raises(TooFewPairsError, match=f"{name} is 7, but the labels make only 6 pairs"):
        choose(y, None, 7)
    with pytest.raises(ValueError, match=f"{name} must be >= 1, got 0"):
        choose(y, None, 0)
    for wrong in (2.0, "all", True, None):
        with pytest.raises(TypeError, match=f"{name} must be an integer or 'auto', got"):
            choose(y, None, wrong)
    with pytest.raises(NoPairsError, match="all 3 rows have the same label"):
        choose([1, 1, 1])
    assert len(choose(y, None, np.int32(6))) == 6


def test_random_pairs_beside_the_closest_are_checked_too():
    with pytest.raises(TooFewPairsError, match="n_random is 7, but the labels make only 6 pairs"):
        pruned([0, 1, 2, 3], n_random=7)
    with pytest.raises(ValueError, match="n_random must be >= 1, got -1"):
        pruned([0, 1, 2, 3], n_random=-1)
    assert len(pruned([0, 1, 2, 3], n_random=6)) == 6


def test_a_list_that_does_not_fit_is_refused_before_it_is_made(monkeypatch):
    y = np.arange(2_000_000) % 2  # 10¹² pairs, all of neighboring labels
    with pytest.raises(MemoryError, match=r"a list of 1000000000000 pairs would take 96\.0 TB"):
        closest(y)
    monkeypatch.setattr(resources, "available", lambda: 1000)
    with pytest.raises(MemoryError, match="pairs='all' or 'adjacent', which list none"):
        random(y, n=100)
