"""Clicks: preferences by every strategy, weights, and propensities that recover a known truth."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from linrank import NoPairsError
from linrank.clicks import (
    STRATEGIES,
    Impressions,
    click_preferences,
    click_rates,
    fit_position_model,
    harvest,
    ips_relevance,
    ips_weights,
    power_law,
    simulate_clicks,
)

# ---- preferences --------------------------------------------------------------------------------


def pairs_of_list(rows, clicked, strategy):
    """The definition: (place of the click, place passed by) for one list, top first."""
    places = range(len(rows))
    clicks = [k for k in places if clicked[k]]
    if strategy.startswith("last"):
        clicks = clicks[-1:]
    allowed = {
        "clicked_over_skipped": lambda k, m: not clicked[m],
        "clicked_over_others": lambda k, m: m != k,
        "clicked_over_next_skipped": lambda k, m: m == k + 1 and not clicked[m],
        "clicked_over_skipped_above": lambda k, m: m < k and not clicked[m],
        "last_clicked_over_skipped_above": lambda k, m: m < k and not clicked[m],
    }[strategy]
    return [(k, m) for k in clicks for m in places if allowed(k, m)]


@st.composite
def logs(draw):
    """Lists of distinct rows with positions that may have gaps, and how often each was shown."""
    lists = []
    for _ in range(draw(st.integers(1, 6))):
        rows = draw(st.permutations(range(6)))[: draw(st.integers(1, 6))]
        positions = sorted(draw(st.permutations(range(1, 9)))[: len(rows)])
        clicked = draw(st.lists(st.booleans(), min_size=len(rows), max_size=len(rows)))
        lists.append((rows, positions, clicked, draw(st.sampled_from([1, 1, 2, 5]))))
    return lists


def impressions_of(lists, shuffle=None):
    """The columns of a log, its records in any order."""
    records = [
        (position, click, row, f"list {k}", count)
        for k, (rows, positions, clicks, count) in enumerate(lists)
        for row, position, click in zip(rows, positions, clicks, strict=True)
    ]
    if shuffle is not None:
        shuffle.shuffle(records)
    position, clicked, row, session, count = map(list, zip(*records, strict=True))
    return Impressions.of(position, clicked, row=row, session=session, count=count)


@pytest.mark.parametrize("strategy", STRATEGIES)
@given(lists=logs(), random=st.randoms(use_true_random=False), weighted=st.booleans())
def test_preferences_equal_the_definition(strategy, lists, random, weighted):
    propensity = 0.9 ** np.arange(8)
    truth: Counter[tuple[int, int]] = Counter()
    for rows, positions, clicked, count in lists:
        for k, m in pairs_of_list(rows, clicked, strategy):
            inverse = min(1 / propensity[positions[k] - 1], 1.5) if weighted else 1.0
            truth[rows[k], rows[m]] += count * inverse
    log = impressions_of(lists, random)
    options = {"propensity": propensity, "max_weight": 1.5} if weighted else {}
    if not truth:
        with pytest.raises(NoPairsError, match="express no preference"):
            click_preferences(log, strategy, **options)
        return
    found = click_preferences(log, strategy, **options)
    assert [tuple(pair) for pair in found.pairs.tolist()] == sorted(truth)
    assert_allclose(found.weight, [truth[pair] for pair in sorted(truth)], rtol=1e-12)


@pytest.mark.parametrize(
    ("columns", "options", "message"),
    [
        ({"row": [0, 1]}, {}, "pass session"),
        ({"session": [0, 0]}, {}, "click_preferences needs the row of each impression"),
        ({"row": [0, 1], "session": [0, 0]}, {"strategy": "best"}, "got 'best'"),
        ({"row": [0, 1], "session": [0, 0]}, {"max_weight": 2.0}, "pass propensity"),
        ({"row": [0, 1], "session": [0, 0]}, {"propensity": [1.0]}, "position 2 occurs, but"),
        ({"row": [5, 5], "session": [0, 0]}, {}, "row 5 was shown at positions 1 and 2 of one li"),
    ],
)
def test_what_preferences_need(columns, options, message):
    log = Impressions.of([1, 2], [0, 1], **columns)
    with pytest.raises(ValueError, match=message):
        click_preferences(log, **options)


# ---- impressions --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"position": [1, 0]}, "position of impression 1 is 0; it counts from 1"),
        ({"position": [1.0, 2.0]}, "position must hold integers, got dtype float64"),
        ({"position": [], "clicked": []}, "there are no impressions"),
        ({"clicked": [0, 2]}, "clicked of impression 1 is 2; it must be 0 or 1"),
        ({"clicked": [0, np.nan]}, "clicked of impression 1 is nan"),
        ({"row": [0, -1]}, "row of impression 1 is -1; it counts from 0"),
        ({"session": ["a"]}, "position has 2 rows but session has 1"),
        ({"count": [1, 0]}, "count of impression 1 is 0; it must be finite and > 0"),
        ({"position": [2, 2], "session": ["a", "a"]}, "list 'a' has position 2 twice"),
        ({"session": ["a", "a"], "count": [1, 2]}, "list 'a' has different counts, from posit"),
    ],
)
def test_bad_impressions_are_named(columns, message):
    good = {"position": [1, 2], "clicked": [0, 1]}
    with pytest.raises((TypeError, ValueError), match=message):
        Impressions.of(**{**good, **columns})


# ---- weights ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("propensity", "message"),
    [
        ([1.0, 0.0], r"propensity of position 2 is 0; it must lie in \(0, 1\]"),
        ([1.5], "propensity of position 1 is 1.5"),
        ([-0.5], "is -0.5"),
        ([], "propensity is empty"),
    ],
)
def test_bad_propensities_are_named(propensity, message):
    with pytest.raises(ValueError, match=message):
        ips_weights([1], propensity)


def test_weights_are_inverse_and_bounded():
    assert_allclose(ips_weights([1, 2, 4], power_law(4, 2.0)), [1, 4, 16])
    assert ips_weights([1, 2, 4], power_law(4, 2.0), max_weight=5).tolist() == [1, 4, 5]
    assert power_law(3, 0).tolist() == [1.0, 1.0, 1.0]


def simulate(attractiveness=0.5, **options):
    return simulate_clicks([attractiveness], ["q"], [0.0], [1.0], **{"n_lists": 1, **options})


STUCK = Impressions.of([1, 2, 3, 1, 2], [1, 1, 1, 0, 0], row=[0, 1, 2, 1, 0])


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: ips_weights([1], [1.0], max_weight=0.5), r"max_weight must be >= 1, .* got 0\.5"),
        (lambda: ips_weights([0], [1.0]), "integers >= 1"),
        (lambda: power_law(3, -1.0), "eta must be finite and >= 0"),
        (lambda: power_law(3, np.inf), "eta must be finite and >= 0"),
        (lambda: power_law(0), "n_positions must be an integer >= 1, got 0"),
        (lambda: power_law(10, 1e6), "lower eta or n_positions"),
        (lambda: simulate(noise=-1), "noise must be >= 0, got -1"),
        (lambda: simulate(2.0), r"attractiveness must lie in \[0, 1\]"),
        (lambda: simulate(n_lists=0), "n_lists must be an integer >= 1, got 0"),
        (lambda: fit_position_model(STUCK), "no row links position 3 with position 1"),
        (lambda: harvest(STUCK), "0 rows were shown at both positions 2 and 3"),
        (lambda: click_rates(Impressions.of([1, 3], [1, 1])), "nothing .* position 2, but at 3"),
        (lambda: click_rates(Impressions.of([1, 10**12], [1, 1])), "2, but at 1000000000000"),
        (
            lambda: click_rates(Impressions.of([1, 2], [1, 0], count=[1, 7])),
            "position 2 was not clicked in 7 showings",
        ),
        (lambda: fit_position_model(Impressions.of([1], [0], row=[0])), "there is no click"),
        (lambda: harvest(Impressions.of([1], [0])), "harvest needs the row"),
    ],
)
def test_what_cannot_be_told_is_refused(wrong, message):
    with pytest.raises(ValueError, match=message):
        wrong()


def test_relevance_is_the_weighted_mean():
    log = Impressions.of([1, 2, 2, 2], [1, 1, 0, 0], row=[0, 0, 0, 2], count=[1, 2, 1, 4])
    relevance, shown = ips_relevance(log, [1.0, 0.5], n_rows=4)
    assert relevance.tolist() == [(1 + 2 * 2) / 4, 0, 0, 0]
    assert shown.tolist() == [4, 0, 4, 0]
    with pytest.raises(ValueError, match="row 2 was shown, but n_rows is 2"):
        ips_relevance(log, [1.0, 0.5], n_rows=2)


# ---- propensities from a log --------------------------------------------------------------------

TRUTH = power_law(6, 1.0)


def shown(noise):
    """The better half on top, or with noise in any order."""
    attractiveness = np.random.default_rng(0).uniform(0.05, 0.95, 60)
    given = attractiveness, np.repeat(np.arange(10), 6), attractiveness, TRUTH
    return simulate_clicks(*given, n_lists=60_000, noise=noise, random_state=1)


def test_estimates_separate_position_from_relevance():
    """Click rates mislead, and rows that moved do not, but where the order was random."""
    assert_allclose(click_rates(shown(np.inf)), TRUTH, rtol=0.06)  # 5000 clicks: 1.4 % each
    log = shown(0.3)
    assert abs(click_rates(log) / TRUTH - 1).max() > 0.3
    for found in (harvest(log), fit_position_model(log).propensity):
        assert_allclose(found, TRUTH, rtol=0.1)


def test_the_position_model_finds_the_maximum_of_the_likelihood():
    """Exact frequencies of a model are its own maximum, attractiveness included."""
    p, a = np.array([0.8, 0.4, 0.2]), np.array([0.9, 0.5, 0.25, 0.1])
    row, k = map(np.ravel, np.meshgrid(np.arange(4), np.arange(3), indexing="ij"))
    chance, n = p[k] * a[row], np.random.default_rng(0).integers(100, 5000, 12)
    log = Impressions.of(
        np.tile(k + 1, 2),
        np.repeat([1, 0], 12),
        row=np.tile(10 * row, 2),
        count=np.concatenate([n * chance, n * (1 - chance)]),
    )
    model = fit_position_model(log, tol=1e-10, max_iter=20_000)
    assert model.converged
    assert_allclose(model.propensity, p / 0.8, rtol=1e-5)
    assert_allclose(model.attractiveness, 0.8 * a, rtol=1e-5)
    assert model.rows.tolist() == [0, 10, 20, 30]
    most = n @ (chance * np.log(chance) + (1 - chance) * np.log(1 - chance))
    assert_allclose(model.log_likelihood, most, rtol=1e-9)
    assert not fit_position_model(log, max_iter=2).converged
    assert_allclose(harvest(log), p / 0.8, rtol=1e-12)


# ---- simulation ---------------------------------------------------------------------------------


def test_simulated_clicks_follow_the_model():
    attractiveness = np.array([0.2, 0.9, 0.5, 0.7, 0.1])
    qid, scores = ["a", "b", "a", "b", "a"], [3.0, 1.0, 1.0, 2.0, 2.0]
    log = simulate_clicks(attractiveness, qid, scores, [1.0, 0.5], n_lists=40_000, random_state=0)
    assert len(log.offsets) == 40_001
    shown = {(int(r), int(k)) for r, k in zip(log.row, log.position, strict=True)}
    assert shown == {(0, 1), (4, 2), (3, 1), (1, 2)}
    for row, rate in ((0, 0.2), (4, 0.05), (3, 0.7), (1, 0.45)):
        assert abs(log.clicked[log.row == row].mean() - rate) < 0.015
    again = simulate_clicks(attractiveness, qid, scores, [1.0, 0.5], n_lists=40_000, random_state=0)
    assert_array_equal(log.clicked, again.clicked)
