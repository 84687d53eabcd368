"""Pictures of pairs: α by closeness, accuracy by number of pairs."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.figure import Figure

from linrank import plots, support_distribution
from linrank.duals import closeness


@pytest.fixture
def ax():
    return Figure(layout="constrained").subplots()


@pytest.fixture
def found():
    rng = np.random.default_rng(0)
    y, scores = rng.integers(0, 6, 30), rng.normal(size=30)
    return support_distribution({"C": 10.0}, scores=scores, y=y)


def test_every_pair_is_a_point_and_the_closest_are_marked(ax, found):
    assert plots.support_distribution(found, ax=ax) is ax
    far, near = ax.get_lines()
    n = found.n_closest
    np.testing.assert_array_equal(near.get_xdata(), np.arange(n))
    np.testing.assert_array_equal(near.get_ydata(), found.alpha[:n])
    np.testing.assert_array_equal(far.get_xdata(), np.arange(n, len(found.alpha)))
    np.testing.assert_array_equal(far.get_ydata(), found.alpha[n:])
    assert near.get_color() != far.get_color()
    assert near.get_label() == f"1-closest: {n}"
    assert f"{len(found.alpha)} pairs, C = 10: " in ax.get_title()


def test_means_by_difference_where_pairs_are_many(ax, found, monkeypatch):
    monkeypatch.setattr(closeness, "_LISTED", 10)
    rng = np.random.default_rng(0)
    y, scores = rng.integers(0, 6, 30), rng.normal(size=30)
    summed = support_distribution({"C": 10.0}, scores=scores, y=y)
    plots.support_distribution(summed, ax=ax)
    means, near = ax.get_lines()
    np.testing.assert_array_equal(means.get_xdata(), found.difference)
    np.testing.assert_allclose(means.get_ydata(), found.mean_alpha)
    np.testing.assert_array_equal(near.get_xdata(), [1])
    other = Figure().subplots()
    plots.support_distribution(found, by_difference=True, ax=other)
    np.testing.assert_allclose(other.get_lines()[0].get_ydata(), found.mean_alpha)


def test_a_sample_is_said_to_be_one(ax):
    rng = np.random.default_rng(0)
    some = support_distribution(
        {"C": 1.0}, scores=rng.normal(size=30), y=np.arange(30), n_sample=50
    )
    plots.support_distribution(some, ax=ax)
    assert "a sample of 50 of 435 pairs" in ax.get_title()


def test_support_distribution_draws_nothing_else(ax):
    with pytest.raises(
        TypeError, match=r"draws what linrank\.support_distribution returns; got dict"
    ):
        plots.support_distribution({}, ax=ax)


def test_accuracy_against_pairs(ax):
    curves = {"closest": ([10, 100], [0.8, 0.9]), "pruned": ([20, 200], [0.85, 0.92], [0.1, 0.01])}
    assert plots.pair_accuracy(curves, whole=0.95, ax=ax) is ax
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert sorted(labels) == ["all pairs", "closest", "pruned"]
    by_name = {bars.get_label(): bars for bars in ax.containers}
    np.testing.assert_array_equal(by_name["closest"].lines[0].get_ydata(), [0.8, 0.9])
    np.testing.assert_array_equal(by_name["pruned"].lines[0].get_xdata(), [20, 200])
    (low, high) = by_name["pruned"].lines[2][0].get_segments()[0][:, 1]
    assert (low, high) == pytest.approx((0.75, 0.95))
    assert ax.get_xscale() == "log"
    (whole,) = (line for line in ax.get_lines() if line.get_label() == "all pairs")
    assert set(whole.get_ydata()) == {0.95}


def test_accuracy_refuses_what_is_no_curve(ax):
    with pytest.raises(ValueError, match="curves is empty"):
        plots.pair_accuracy({}, ax=ax)
    with pytest.raises(ValueError, match=r"the curve 'a' must be .* got 2 of lengths \[2, 1\]"):
        plots.pair_accuracy({"a": ([1, 2], [0.5])}, ax=ax)
