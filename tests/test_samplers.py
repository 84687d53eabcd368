"""Samplers against the definition of their distribution: a double loop over rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from linrank import NoPairsError, _core
from linrank.choices import SAMPLINGS
from linrank.data.queries import Queries
from linrank.losses.base import Hinge
from linrank.stochastic.samplers import PairSampler, pair_sampler
from test_descent import check_interrupt

Probabilities = dict[tuple[int, int], float]


# ---- the definitions ----------------------------------------------------------------------------


def listed_pairs(labels: Any, qid: Any, sampling: str, u: Any, c: Any, keep: Any) -> Probabilities:
    """The unnormalized weight of every pair of rows, straight from the words of the guide."""
    ids = list(dict.fromkeys(qid))
    weights: Probabilities = {}
    for i, j in np.ndindex(len(labels), len(labels)):
        q = ids.index(qid[i])
        if not (keep[q] and keep[ids.index(qid[j])]):
            continue
        if sampling == "roc":
            if labels[i] > 0 >= labels[j]:
                weights[i, j] = u[i] * u[j]
        elif qid[i] == qid[j] and labels[i] > labels[j]:
            weights[i, j] = c[q] * u[i] * u[j]
    by_query = np.zeros(len(ids))
    for (i, _), weight in weights.items():
        by_query[ids.index(qid[i])] += weight
    for (i, j), weight in weights.items():
        q = ids.index(qid[i])
        rows = [label for label, id_ in zip(labels, qid, strict=True) if id_ == qid[i]]
        if sampling == "query" and weight > 0:
            weights[i, j] = c[q] * weight / by_query[q]
        elif sampling == "query-level":
            k = len(set(rows))
            n_two = rows.count(labels[i]) * rows.count(labels[j])
            weights[i, j] = c[q] * 2.0 / (k * (k - 1)) / n_two
    return weights


def probabilities(*case: Any) -> Probabilities:
    weights = listed_pairs(*case)
    total = sum(weights.values())
    return {pair: weight / total for pair, weight in weights.items() if weight > 0}


class Case:
    """Interleaved queries of all kinds: one row, one level, ties, all labels different."""

    def __init__(self, sampling: str, *, weigh_rows=False, weigh_queries=False, leave_out=False):
        rng = np.random.default_rng(5)
        self.labels = [2, 0, 1, 0, 1, 1, -1, 3, 0, 2, 2, 1, 0, 0, 4, -2, 0]
        self.qid = list("aabacbdabcdaeebcc")
        n_queries = len(set(self.qid))
        u = rng.integers(0, 4, len(self.qid)).astype(float) if weigh_rows else None
        c = np.array([1.0, 2.0, 0.5, 3.0, 1.0]) if weigh_queries else None
        keep = np.array([True, False, True, True, True]) if leave_out else None
        self.queries = Queries.of(self.labels, self.qid)
        self.sampler = pair_sampler(
            self.queries, sampling, labels=self.labels, row_weight=u, query_weight=c, keep=keep
        )
        self.definition = (
            self.labels,
            self.qid,
            sampling,
            np.ones(len(self.qid)) if u is None else u,
            np.ones(n_queries) if c is None else c,
            np.ones(n_queries, dtype=bool) if keep is None else keep,
        )


CASES = [
    pytest.param(sampling, options, id="-".join([sampling, *options]))
    for sampling in SAMPLINGS
    for options in [
        {},
        {"leave_out": True},
        {"weigh_rows": True},
        {"weigh_queries": True},
        {"weigh_rows": True, "weigh_queries": True, "leave_out": True},
    ]
    if not ("weigh_rows" in options and sampling in ("query-level", "rejection"))
    and not ("weigh_queries" in options and sampling in ("roc", "rejection"))
]


# ---- the distributions --------------------------------------------------------------------------


def chi_square(sampler: PairSampler, expected: Probabilities, n: int = 20_000) -> float:
    """The p-value of the frequencies of n drawn pairs; 0 if one is drawn that cannot be."""
    winners, losers = sampler.core.draw(_core.Random(11), n)
    drawn = dict.fromkeys(expected, 0)
    for pair in zip(winners.tolist(), losers.tolist(), strict=True):
        if pair not in drawn:
            return 0.0
        drawn[pair] += 1
    p = np.array(list(expected.values()))
    return float(stats.chisquare(np.array(list(drawn.values())), p / p.sum() * n).pvalue)


@pytest.mark.parametrize(("sampling", "options"), CASES)
def test_frequencies_follow_the_definition(sampling, options):
    case = Case(sampling, **options)
    assert chi_square(case.sampler, probabilities(*case.definition)) > 1e-3


@pytest.mark.parametrize(("sampling", "options"), CASES)
def test_the_expected_loss_is_the_weighted_pair_sum(sampling, options):
    """``Σ ω l / Σω`` by the sweep over `PairSampler.pairs` = ``Σ P(i, j) l_ij`` over the list."""
    case = Case(sampling, **options)
    scores = np.random.default_rng(3).normal(size=len(case.labels))
    pairs = case.sampler.pairs
    z = np.ascontiguousarray(pairs.queries.gather(scores))
    expected = sum(
        p * max(0.0, 1.0 - scores[i] + scores[j])
        for (i, j), p in probabilities(*case.definition).items()
    )
    assert_allclose(Hinge(pairs).at(z).value / case.sampler.total_weight, expected, rtol=1e-12)
    assert_allclose(pairs.total_weight(), case.sampler.total_weight, rtol=1e-12)
    listed = listed_pairs(*case.definition)
    assert case.sampler.n_pairs == len(listed)
    if sampling != "query-level":  # whose weights are defined to sum to one
        assert_allclose(case.sampler.total_weight, sum(listed.values()), rtol=1e-12)


def test_weights_that_differ_by_twenty_orders_are_honoured_within_a_level():
    """Running sums start anew with each level: 10⁻²⁰ would vanish beside 1."""
    queries = Queries.of([0, 1, 1])
    sampler = pair_sampler(queries, row_weight=[1.0, 1e-20, 3e-20])
    winners, _ = sampler.core.draw(_core.Random(0), 10_000)
    assert 0.23 < np.mean(winners == 1) < 0.27


# ---- the stream ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("seed", "first"),
    [
        (0, [5987356902031041503, 7051070477665621255, 6633766593972829180]),
        (1, [14971601782005023387, 13781649495232077965, 1847458086238483744]),
        (2**64 - 1, [6254647548650071986, 16610832622747802512, 16422857234328439435]),
    ],
)
def test_random_numbers_are_those_of_xoshiro(seed, first):
    """xoshiro256++ seeded by splitmix64."""
    assert _core.Random(seed).numbers(3).tolist() == first


def test_a_stream_goes_on_from_its_state():
    random, other = _core.Random(7), _core.Random(0)
    random.numbers(3)
    other.state = random.state
    assert other.numbers(5).tolist() == random.numbers(5).tolist()
    for state, message in ((np.zeros(4), "all zeros"), (np.ones(3), "length 3, expected 4")):
        with pytest.raises(ValueError, match=message):
            other.state = state.astype(np.uint64)


# ---- cells given by the caller ------------------------------------------------------------------


def cells(**changes: Any) -> dict[str, Any]:
    given = {
        "rows": np.array([4, 2, 9, 7]),
        "winner_first": np.array([2, 3]),
        "n_winners": np.array([2, 1]),
        "loser_first": np.array([0, 0]),
        "n_losers": np.array([2, 3]),
        "weights": np.array([4.0, 3.0]),
    }
    return given | changes


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"winner_first": np.array([2, 4])}, "winners of cell 1 are 1 rows from 4.*4 rows"),
        ({"loser_first": np.array([-1, 0])}, "losers of cell 0 are 2 rows from -1"),
        ({"n_winners": np.array([2, 2**63 - 1])}, "winners of cell 1"),
        ({"n_winners": np.array([2])}, "n_winners has length 1, expected 2"),
        ({"rows": np.array([4, -2, 9, 7])}, "no row -2"),
        ({"weights": np.array([np.nan, 1.0])}, "weight 0 must be finite"),
        ({"weights": np.zeros(2)}, "none of the 2 weights is > 0"),
        ({"row_weights": np.ones(3)}, "4 rows but 3 row weights"),
        ({"row_weights": np.array([0.0, 0.0, 1.0, 1.0])}, "elements 0 to 1 .* vanish"),
        ({"row_weights": np.ones(4), "restarts": np.array([0, 2])}, "cross a restart .* at 2"),
        ({"row_weights": np.ones(4), "restarts": np.array([1])}, "increase from 0"),
    ],
)
def test_cells_out_of_place_are_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        _core.cell_sampler(**cells(**changes))


OFFSETS, TWO, SAME = np.array([0, 2]), np.array([2], dtype=np.int32), np.zeros(2, dtype=np.int32)
FLAT_QUERY, TWO_ROWS = (OFFSETS, None, SAME, TWO), np.arange(2)


@pytest.mark.parametrize(
    ("make", "given", "message"),
    [
        (_core.rejection_sampler, (*FLAT_QUERY, None), "no draw would be accepted"),
        (_core.query_level_sampler, (*FLAT_QUERY, np.ones(1)), "no rows to draw from"),
        (_core.level_sampler, (*FLAT_QUERY, np.ones(1), None), "none of the 0 weights"),
        (_core.rejection_sampler, (OFFSETS, -TWO_ROWS, SAME, TWO, None), "does not exist"),
        (Case("pairs").sampler.core.draw, (_core.Random(0), -1), "n must be >= 0, got -1"),
    ],
)
def test_the_core_refuses_queries_that_it_could_not_draw_from(make, given, message):
    with pytest.raises(ValueError, match=message):
        make(*given)


# ---- errors -------------------------------------------------------------------------------------

ALL_BUT_ROC = ("pairs", "query", "query-level", "rejection")
APART, FLAT = ([0, 1, 2, 3], [1, 2, 3, 4]), ([0, 0, 2, 2], [1, 1, 2, 2])
HALF, ZEROS = ([0, 0, 2, 3], [1, 1, 2, 2]), ([0, 1, 0, 0], [1, 1, 2, 2])
MIXED = ([1, 2, 0], [1, 1, 2])
NO_PAIR = [
    (ALL_BUT_ROC, APART, {}, "each of the 4 query ids occurs once.*check that qid"),
    (ALL_BUT_ROC, FLAT, {}, "none of the 2 queries"),
    (ALL_BUT_ROC, HALF, {"keep": [True, False]}, "all 2 rows have the same label"),
    (ALL_BUT_ROC, HALF, {"keep": [False, False]}, "none of the 0 queries"),
    (["roc"], MIXED, {"labels": [1, 2, 0], "keep": [True, False]}, "2 of 2 rows have a label > 0"),
    (["roc"], MIXED, {"labels": [-1, 0, 0]}, "0 of 3 rows have a label > 0"),
    (["pairs", "query"], ZEROS, {"row_weight": [0, 1, 1, 1]}, "all 1 pairs have weight zero"),
    (["pairs", "query", "query-level"], ZEROS, {"query_weight": [0, 1]}, "weight zero"),
]
TWO_LEVELS = ([0, 1],)
BY_QUERY = {"labels": [0, 1], "query_weight": [1]}
REFUSED = [
    (["roc"], TWO_LEVELS, {}, "pass labels"),
    (
        ["query-level", "rejection"],
        TWO_LEVELS,
        {"row_weight": [1, 2]},
        "draws the rows of a level alike and cannot weigh rows; use sampling='pairs'",
    ),
    (["roc"], TWO_LEVELS, BY_QUERY, "compares rows whatever their query and cannot weigh queries"),
    (["rejection"], TWO_LEVELS, BY_QUERY, "draws all pairs alike and cannot weigh queries"),
    (["uniform"], TWO_LEVELS, {}, r"'pairs', 'query', .* got 'uniform'"),
    (["pairs"], TWO_LEVELS, {"row_weight": [1, -1]}, "row_weight must be >= 0"),
]


@pytest.mark.parametrize(("samplings", "queries", "given", "message"), NO_PAIR + REFUSED)
def test_what_cannot_be_drawn_from_is_told(samplings, queries, given, message):
    for sampling in samplings:
        with pytest.raises(NoPairsError if queries != TWO_LEVELS else ValueError, match=message):
            pair_sampler(Queries.of(*queries), sampling, **given)


def test_rejection_that_would_take_for_ever_is_refused_with_numbers():
    """A pair among 1000 rows of 999 queries: 500,000 draws each; of the fold alone it is quick."""
    queries = Queries.of(np.arange(1000), np.arange(1000).clip(max=998))
    with pytest.raises(ValueError, match=r"l²/2p = 5e\+05 .* p = 1 pairs of 1000 rows"):
        pair_sampler(queries, "rejection")
    fold = pair_sampler(queries, "rejection", keep=np.arange(999) > 990)
    assert np.unique(fold.core.draw(_core.Random(0), 9), axis=1).tolist() == [[999], [998]]


def test_draws_by_rejection_can_be_interrupted():
    """Of 20,000 queries of two rows a pair takes 40,000 draws, and these some ten seconds."""
    offsets, levels = np.arange(0, 40_001, 2), np.tile(np.array([0, 1], np.int32), 20_000)
    n_levels = np.full(20_000, 2, np.int32)
    sampler = _core.rejection_sampler(offsets, None, levels, n_levels, None)
    random = _core.Random(0)
    before = random.state.tolist()
    check_interrupt(lambda: sampler.draw(random, 20_000))
    assert random.state.tolist() == before
