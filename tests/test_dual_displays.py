"""Displays of dual variables: α of the pairs by their closeness."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.figure import Figure

from linrank import SupportDistributionDisplay, support_distribution
from linrank.duals import analysis


@pytest.fixture
def ax():
    return Figure(layout="constrained").subplots()


@pytest.fixture
def found():
    rng = np.random.default_rng(0)
    y, scores = rng.integers(0, 6, 30), rng.normal(size=30)
    return support_distribution({"C": 10.0}, scores=scores, y=y)


def test_every_pair_is_a_point_and_the_closest_are_marked(ax, found):
    SupportDistributionDisplay(found).plot(ax)
    far, near = ax.get_lines()
    n = found.n_closest
    np.testing.assert_array_equal(near.get_xdata(), np.arange(n))
    np.testing.assert_array_equal(near.get_ydata(), found.alpha[:n])
    np.testing.assert_array_equal(far.get_xdata(), np.arange(n, len(found.alpha)))
    np.testing.assert_array_equal(far.get_ydata(), found.alpha[n:])
    assert near.get_color() != far.get_color()
    assert near.get_label() == f"1-closest: {n}"
    assert f"{len(found.alpha)} pairs, C = 10: " in ax.get_title().replace("\n", " ")


def test_means_by_difference_where_pairs_are_many(ax, found, monkeypatch):
    monkeypatch.setattr(analysis, "_LISTED", 10)
    rng = np.random.default_rng(0)
    y, scores = rng.integers(0, 6, 30), rng.normal(size=30)
    summed = support_distribution({"C": 10.0}, scores=scores, y=y)
    SupportDistributionDisplay(summed).plot(ax)
    means, near = ax.get_lines()
    np.testing.assert_array_equal(means.get_xdata(), found.difference)
    np.testing.assert_allclose(means.get_ydata(), found.mean_alpha)
    np.testing.assert_array_equal(near.get_xdata(), [1])
    other = Figure().subplots()
    SupportDistributionDisplay(found, by_difference=True).plot(other)
    np.testing.assert_allclose(other.get_lines()[0].get_ydata(), found.mean_alpha)
