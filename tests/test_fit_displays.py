"""Displays of fits and of their dual variables draw what they say."""

from dataclasses import replace

import numpy as np
import pytest
from matplotlib.figure import Figure

import linrank
from dual_values import support_of
from linrank.search.tuning import Tuning
from papers import FactorizedRankSVM, KernelRankSVMCV, RankSVMCV, SGDRanker, ranksvm_path
from test_displays import HISTORY

DATA = linrank.make_ranking(n_queries=20, n_features=4, n_levels=3, random_state=1)


@pytest.fixture
def ax():
    return Figure(layout="constrained").subplots()


def test_convergence_is_measured_from_the_best_bound(ax):
    assert linrank.ConvergenceDisplay(HISTORY).plot(ax).ax_ is ax
    above, gap = ax.get_lines()
    # The best bound is 11.5 - 0.01, proved by the last iterate.
    np.testing.assert_allclose(above.get_ydata(), (np.array(HISTORY["objective"]) - 11.49) / 11.5)
    np.testing.assert_allclose(gap.get_ydata(), np.array(HISTORY["gap"]) / 11.5)
    np.testing.assert_array_equal(above.get_xdata(), HISTORY["seconds"])
    assert ax.get_yscale() == "log"
    assert "3 iterations" in ax.get_title()
    assert len(ax.get_legend().get_texts()) == 2
    linrank.ConvergenceDisplay(HISTORY | {"gap": [1.0, 1.0, 1.0, 0.0]}).plot(ax)
    assert all((line.get_ydata() > 0).all() for line in ax.get_lines())  # 0 has no logarithm
    assert linrank.ConvergenceDisplay(HISTORY).description == (
        "After 3 iterations the objective is 11.5, certified to be within 0.01 of the optimum."
    )


def test_convergence_without_a_certificate(ax):
    ranker = FactorizedRankSVM(2, 0.01, random_state=0).fit(DATA.X, DATA.y, qid=DATA.qid)
    linrank.ConvergenceDisplay.from_estimator(ranker).plot(ax)
    (line,) = ax.get_lines()
    objective = np.array(ranker.history_["objective"])
    expected = (objective - objective[-1]) / abs(objective[-1])
    np.testing.assert_allclose(line.get_ydata()[:-1], expected[:-1])
    assert "its last value" in line.get_label()


def test_descent_draws_the_objective_against_steps_and_the_optimum(ax):
    ranker = SGDRanker(n_steps=1000, record="exact", random_state=0)
    ranker.fit(DATA.X, DATA.y, qid=DATA.qid)
    linrank.ConvergenceDisplay.from_estimator(ranker, optimum=0.25).plot(ax, label="pegasos")
    curve, line = ax.get_lines()
    np.testing.assert_array_equal(curve.get_xdata(), [100, 178, 316, 562, 1000])
    np.testing.assert_array_equal(curve.get_ydata(), ranker.history_["objective"])
    assert set(line.get_ydata()) == {0.25}
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")
    assert [t.get_text() for t in ax.get_legend().get_texts()] == ["pegasos", "optimum"]
    assert "1,000 steps" in ax.get_title()


# ---- paths --------------------------------------------------------------------------------------


def panels(n):
    return list(Figure(layout="constrained").subplots(n, 1, squeeze=False)[:, 0])


def test_path_of_a_result():
    found = ranksvm_path(DATA.X, DATA.y, DATA.qid, Cs=[0.01, 0.1, 1.0])
    axes = (
        linrank.PathDisplay(found).plot(panels(2)).axes_
    )  # all models have 4 weights: no panel of them
    for ax, values in zip(axes, (found.objectives, found.norms), strict=True):
        (line,) = ax.get_lines()
        np.testing.assert_array_equal(line.get_xdata(), [0.01, 0.1, 1.0])
        np.testing.assert_array_equal(line.get_ydata(), values)
        assert ax.get_xscale() == "log"


@pytest.mark.filterwarnings("ignore:the best C")
def test_path_of_an_estimator():
    ranker = RankSVMCV([0.01, 0.1, 1.0], cv=3).fit(DATA.X, DATA.y, qid=DATA.qid)
    display = linrank.PathDisplay.from_estimator(ranker)
    assert "3 models for C from 0.01 to 1." in display.description
    assert f"Chosen: C = {ranker.C_:.3g}." in display.description
    axes = display.plot(panels(1)).axes_
    means, chosen = axes[0].get_lines()
    np.testing.assert_allclose(means.get_ydata(), ranker.mean_scores_)
    assert chosen.get_xdata() == [ranker.C_] * 2
    assert len(axes[0].collections) == 1  # the band of one standard error
    assert axes[0].get_ylabel() == "ndcg@10\n(3 folds)"


def test_path_of_zero_models_is_drawn_on_linear_axes():
    found = ranksvm_path(np.ones_like(DATA.X), DATA.y, DATA.qid, Cs=[0.1, 1.0])
    assert [ax.get_yscale() for ax in linrank.PathDisplay(found).to_figure().axes] == [
        "log",
        "linear",
    ]
    with pytest.raises(ValueError, match="ax has 3 axes for 1 panels"):
        linrank.PathDisplay(found, [0.5, 0.6]).plot(panels(3))


# ---- a grid of C and γ --------------------------------------------------------------------------


def searched(n_gammas=2, n_Cs=3, **options):
    scores = np.arange(2.0 * n_gammas * n_Cs).reshape(2, n_gammas, n_Cs) / 100
    gammas, Cs = 10.0 ** np.arange(n_gammas), 2.0 ** np.arange(n_Cs)
    tuning = Tuning({"gamma": gammas, "C": Cs}, scores, "best")
    return linrank.GridDisplay(Cs, gammas, tuning.mean_scores, tuning.chosen, **options)


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


@pytest.mark.parametrize("display", [searched(20, 20), searched(numbers=False)])
def test_grid_writes_numbers_where_there_is_room(ax, display):
    display.plot(ax)
    assert len(ax.texts) == 0


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_grid_of_an_estimator(ax):
    grid = {"Cs": [0.1, 1.0, 10.0], "gammas": [0.01, 0.1, 1.0]}
    ranker = KernelRankSVMCV(**grid, cv=2, scoring="map", random_state=0)
    ranker.fit(DATA.X, DATA.y, qid=DATA.qid)
    linrank.GridDisplay.from_estimator(ranker).plot(ax)
    (mark,) = ax.get_lines()
    assert ranker.Cs_[int(mark.get_xdata()[0])] == ranker.C_
    assert ranker.gammas_[int(mark.get_ydata()[0])] == ranker.gamma_
    assert ax.get_title().startswith(f"map {ranker.best_score_:.4f} at")


# ---- dual variables -----------------------------------------------------------------------------


@pytest.fixture
def found():
    rng = np.random.default_rng(0)
    y, scores = rng.integers(0, 6, 30), rng.normal(size=30)
    return support_of(scores, y, C=10.0)


def test_every_pair_is_a_point_and_the_closest_are_marked(ax, found):
    linrank.SupportDistributionDisplay(found).plot(ax)
    far, near = ax.get_lines()
    n = found.n_closest
    np.testing.assert_array_equal(near.get_xdata(), np.arange(n))
    np.testing.assert_array_equal(near.get_ydata(), found.alpha[:n])
    np.testing.assert_array_equal(far.get_xdata(), np.arange(n, len(found.alpha)))
    np.testing.assert_array_equal(far.get_ydata(), found.alpha[n:])
    assert near.get_color() != far.get_color()
    assert near.get_label() == f"1-closest: {n}"
    assert f"{len(found.alpha)} pairs, C = 10: " in ax.get_title().replace("\n", " ")


def test_means_by_difference_where_pairs_are_many(ax, found):
    for display in (
        linrank.SupportDistributionDisplay(replace(found, rows=None, alpha=None)),
        linrank.SupportDistributionDisplay(found, by_difference=True),
    ):
        ax.clear()
        means, near = display.plot(ax).ax_.get_lines()
        np.testing.assert_array_equal(means.get_xdata(), found.difference)
        np.testing.assert_allclose(means.get_ydata(), found.mean_alpha)
        np.testing.assert_array_equal(near.get_xdata(), [1])
