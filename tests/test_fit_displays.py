"""Displays of fits draw what they say, to PNG and SVG."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pytest
from matplotlib.figure import Figure

from linrank import (
    ConvergenceDisplay,
    GridDisplay,
    PathDisplay,
    QueryHistogramDisplay,
    WeightsDisplay,
    make_ranking,
)
from linrank.search.tuning import Tuning
from papers import FactorizedRankSVM, KernelRankSVMCV, RankSVM, RankSVMCV, SGDRanker, ranksvm_path

HISTORY = {
    "objective": [100.0, 20.0, 12.0, 11.5],
    "gap": [100.0, 9.0, 1.0, 0.01],
    "seconds": [0.0, 0.1, 0.2, 0.35],
}


@pytest.fixture
def ax():
    return Figure(layout="constrained").subplots()


def test_convergence_is_measured_from_the_best_bound(ax):
    assert ConvergenceDisplay(HISTORY).plot(ax).ax_ is ax
    above, gap = ax.get_lines()
    # The best bound is 11.5 - 0.01, proved by the last iterate.
    np.testing.assert_allclose(above.get_ydata(), (np.array(HISTORY["objective"]) - 11.49) / 11.5)
    np.testing.assert_allclose(gap.get_ydata(), np.array(HISTORY["gap"]) / 11.5)
    np.testing.assert_array_equal(above.get_xdata(), HISTORY["seconds"])
    assert ax.get_yscale() == "log"
    assert "3 iterations" in ax.get_title()
    assert len(ax.get_legend().get_texts()) == 2


def test_convergence_draws_an_exact_optimum(ax):
    """A gap of 0 has no logarithm but must not vanish from the picture."""
    history = {"objective": [2.0, 1.0], "gap": [1.0, 0.0], "seconds": [0.0, 1.0]}
    ConvergenceDisplay(history).plot(ax)
    for line in ax.get_lines():
        assert (line.get_ydata() > 0).all()


def test_convergence_without_a_certificate(ax):
    data = make_ranking(n_queries=10, n_features=3, random_state=0)
    ranker = FactorizedRankSVM(2, 0.01, random_state=0).fit(data.X, data.y, qid=data.qid)
    ConvergenceDisplay.from_estimator(ranker).plot(ax)
    (line,) = ax.get_lines()
    objective = np.array(ranker.history_["objective"])
    expected = (objective - objective[-1]) / abs(objective[-1])
    np.testing.assert_allclose(line.get_ydata()[:-1], expected[:-1])
    assert "its last value" in line.get_label()


def test_convergence_needs_a_history():
    with pytest.raises(ValueError, match="the history has no objective: fit a model first"):
        ConvergenceDisplay({"objective": [], "gap": [], "seconds": []})


def test_descent_draws_the_objective_against_steps_and_the_optimum(ax):
    data = make_ranking(n_queries=10, n_features=3, random_state=0)
    ranker = SGDRanker(n_steps=1000, record="exact", random_state=0)
    ranker.fit(data.X, data.y, qid=data.qid)
    ConvergenceDisplay.from_estimator(ranker, optimum=0.25).plot(ax, label="pegasos")
    curve, line = ax.get_lines()
    np.testing.assert_array_equal(curve.get_xdata(), [100, 178, 316, 562, 1000])
    np.testing.assert_array_equal(curve.get_ydata(), ranker.history_["objective"])
    assert set(line.get_ydata()) == {0.25}
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")
    assert [t.get_text() for t in ax.get_legend().get_texts()] == ["pegasos", "optimum"]
    assert "1,000 steps" in ax.get_title()


@pytest.mark.parametrize("history", [{}, {"n_steps": [100], "objective": [float("nan")]}])
def test_descent_needs_a_recorded_objective(history):
    with pytest.raises(ValueError, match="with record='exact' or 'sampled'"):
        ConvergenceDisplay(history)


def test_weights_shows_the_largest_first(ax):
    WeightsDisplay([0.5, -3.0, 0.1, 2.0], ["a", "b", "c", "d"], n=3).plot(ax)
    shown = sorted(ax.patches, key=lambda bar: -bar.get_y())
    assert [bar.get_width() for bar in shown] == [-3.0, 2.0, 0.5]
    names = [t.get_text() for t in sorted(ax.get_yticklabels(), key=lambda t: -t.get_position()[1])]
    assert names == ["b", "d", "a"]
    assert "3 largest of 4" in ax.get_title()


def test_weights_times_spread_reorders(ax):
    WeightsDisplay([1.0, 2.0], spread=[10.0, 1.0]).plot(ax)
    shown = sorted(ax.patches, key=lambda bar: -bar.get_y())
    assert [bar.get_width() for bar in shown] == [10.0, 2.0]
    assert {t.get_text() for t in ax.get_yticklabels()} == {"feature 0", "feature 1"}


def test_weights_rejects_what_does_not_fit():
    with pytest.raises(ValueError, match="names has 1 entries for 2"):
        WeightsDisplay([1.0, 2.0], ["a"])
    with pytest.raises(ValueError, match="n must be ≥ 1, got 0"):
        WeightsDisplay([1.0], n=0)


def test_histogram_counts_every_query_that_takes_part(ax):
    QueryHistogramDisplay([0.0, 0.5, 0.52, 1.0, np.nan], "ndcg@5", bins=10).plot(ax)
    heights = [bar.get_height() for bar in ax.patches]
    assert sum(heights) == 4
    assert heights[0] == 1
    assert heights[5] == 2
    assert heights[9] == 1
    assert ax.get_title() == "ndcg@5 of 4 queries, 1 left out"
    assert any("mean 0.505" in t.get_text() for t in ax.get_legend().get_texts())


def test_queries_that_no_ranking_can_order_are_grey(ax):
    is_flat = [True, False, False, False, True]
    QueryHistogramDisplay([0.0, 0.0, 0.5, 1.0, np.nan], bins=10, is_flat=is_flat).plot(ax)
    heights = [bar.get_height() for bar in ax.patches]
    assert heights[:10] == [2, 0, 0, 0, 0, 1, 0, 0, 0, 1]  # all of them
    assert heights[10:] == [1] + 9 * [0]
    assert ax.patches[10].get_facecolor() != ax.patches[0].get_facecolor()
    assert "of one label" in [t.get_text() for t in ax.get_legend().get_texts()]


def test_histogram_needs_a_value():
    with pytest.raises(ValueError, match="undefined for all 2 queries"):
        QueryHistogramDisplay([np.nan, np.nan])


@pytest.mark.parametrize("format", ["png", "svg"])
def test_pictures_can_be_written(tmp_path, format):
    displays = (
        ConvergenceDisplay(HISTORY),
        WeightsDisplay(np.linspace(-1, 1, 50)),
        QueryHistogramDisplay(np.linspace(0, 1, 99)),
    )
    for k, display in enumerate(displays):
        path = tmp_path / f"{k}.{format}"
        display.to_figure().savefig(path)
        start = path.read_bytes()[:300]
        assert start.startswith(b"\x89PNG") if format == "png" else b"<svg" in start + b"<svg"
        assert path.stat().st_size > 5000
        if format == "svg":
            assert re.search(r"<svg [^>]*viewBox", path.read_text())


# ---- paths --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def data():
    return make_ranking(n_queries=20, n_features=4, n_levels=3, random_state=1)


def panels(n):
    return list(Figure(layout="constrained").subplots(n, 1, squeeze=False)[:, 0])


def test_path_of_a_result(data):
    found = ranksvm_path(data.X, data.y, data.qid, Cs=[0.01, 0.1, 1.0])
    axes = PathDisplay(found).plot(panels(2)).axes_  # all models have 4 weights: no panel of them
    for ax, values in zip(axes, (found.objectives, found.norms), strict=True):
        (line,) = ax.get_lines()
        np.testing.assert_array_equal(line.get_xdata(), [0.01, 0.1, 1.0])
        np.testing.assert_array_equal(line.get_ydata(), values)
        assert ax.get_xscale() == "log"


@pytest.mark.filterwarnings("ignore:the best C")
def test_path_of_an_estimator(data):
    ranker = RankSVMCV([0.01, 0.1, 1.0], cv=3).fit(data.X, data.y, qid=data.qid)
    axes = PathDisplay.from_estimator(ranker).plot(panels(1)).axes_
    means, chosen = axes[0].get_lines()
    np.testing.assert_allclose(means.get_ydata(), ranker.mean_scores_)
    assert chosen.get_xdata() == [ranker.C_] * 2
    assert len(axes[0].collections) == 1  # the band of one standard error
    assert axes[0].get_ylabel() == "ndcg@10\n(3 folds)"


@pytest.mark.parametrize("other", [RankSVM(), RankSVMCV(), 3])
def test_path_of_something_else(other):
    with pytest.raises(TypeError, match=f"DominationRankerCV, got {type(other).__name__}"):
        PathDisplay.from_estimator(other)
    with pytest.raises(TypeError, match=f"domination_path returns, got {type(other).__name__}"):
        PathDisplay(other)


def test_path_of_zero_models_is_drawn_on_linear_axes(data):
    found = ranksvm_path(np.ones_like(data.X), data.y, data.qid, Cs=[0.1, 1.0])
    assert [ax.get_yscale() for ax in PathDisplay(found).to_figure().axes] == ["log", "linear"]
    with pytest.raises(ValueError, match="ax has 3 axes for 1 panels"):
        PathDisplay(found, [0.5, 0.6]).plot(panels(3))


# ---- a grid of C and γ --------------------------------------------------------------------------


def searched(n_gammas=2, n_Cs=3, **options):
    scores = np.arange(2.0 * n_gammas * n_Cs).reshape(2, n_gammas, n_Cs) / 100
    gammas, Cs = 10.0 ** np.arange(n_gammas), 2.0 ** np.arange(n_Cs)
    tuning = Tuning({"gamma": gammas, "C": Cs}, scores, "best")
    return GridDisplay(Cs, gammas, tuning.mean_scores, tuning.chosen, **options)


def test_grid_is_a_map_of_the_means_with_the_choice_marked(ax):
    display = searched(metric="map").plot(ax)
    (image,) = ax.get_images()
    np.testing.assert_allclose(image.get_array(), display.means)
    (mark,) = ax.get_lines()
    assert (mark.get_xdata()[0], mark.get_ydata()[0]) == (2, 1)
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["1", "2", "4"]
    assert [tick.get_text() for tick in ax.get_yticklabels()] == ["1", "10"]
    assert ax.get_title() == "map 0.0800 at C = 4, γ = 10"
    assert sorted(text.get_text() for text in ax.texts) == [
        f"{mean:.3f}" for mean in np.sort(display.means.ravel())
    ]


def test_grid_writes_numbers_where_there_is_room(ax):
    searched(20, 20).plot(ax)
    assert len(ax.texts) == 0
    other = Figure().subplots()
    searched(numbers=False).plot(other)
    assert len(other.texts) == 0


def test_grid_of_an_estimator(ax):
    data = make_ranking(n_queries=8, n_features=3, random_state=0)
    ranker = KernelRankSVMCV(
        Cs=[0.1, 1.0, 10.0], gammas=[0.01, 0.1, 1.0], cv=2, scoring="map", random_state=0
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        ranker.fit(data.X, data.y, qid=data.qid)
    GridDisplay.from_estimator(ranker).plot(ax)
    (mark,) = ax.get_lines()
    assert ranker.Cs_[int(mark.get_xdata()[0])] == ranker.C_
    assert ranker.gammas_[int(mark.get_ydata()[0])] == ranker.gamma_
    assert ax.get_title().startswith(f"map {ranker.best_score_:.4f} at")


def test_grid_of_something_else():
    with pytest.raises(TypeError, match="belongs to a fitted KernelRankSVMCV, got dict"):
        GridDisplay.from_estimator({})
