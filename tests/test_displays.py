"""Displays: the artists hold the data that were given, every picture can be read, SVG for pages."""

from __future__ import annotations

import re
import sys
from itertools import pairwise
from types import SimpleNamespace
from xml.etree import ElementTree

import matplotlib
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.figure import Figure

from cli_files import run_code
from dual_values import support_of
from hypothesis_profiles import examples
from linrank import (
    ComparisonDisplay,
    ConvergenceDisplay,
    CurvesDisplay,
    GridDisplay,
    InductionDisplay,
    LabelsDisplay,
    LinearModel,
    PairExplanationDisplay,
    PathDisplay,
    QueryHistogramDisplay,
    QueryScatterDisplay,
    RankProfileDisplay,
    SupportDistributionDisplay,
    WeightsDisplay,
    evaluate,
    make_ranking,
    themed_svg,
)
from linrank.displays import Display
from linrank.displays.base import _ems, readable
from papers import RankSVM

# ---- displays of every class, and of what is hard to draw ---------------------------------------

HOSTILE = [
    "<script>alert('x')</script>",
    "$x_1$ and $\\frac{1}{0}$",
    "two\nlines\tand\x00a\x1bcontrol",
    'a & b "quoted" ]]> <!-- -->',
    "_starts_with_underscore",
    "x" * 500,
    "",
    "日本語の特徴の名前がとても長い場合はどうなるか見てみましょう",
    "turned \u202e around",
    "half \ud800 a pair",
    "\ufffe no character",
    "\\textbf{latex} 100 %",
]
HISTORY = {
    "objective": [100.0, 20.0, 12.0, 11.5],
    "gap": [100.0, 9.0, 1.0, 0.01],
    "seconds": [0.0, 0.1, 0.2, 0.35],
}
SCRIPT = HOSTILE[0]


def cell(difference: float, half: float, p: float) -> SimpleNamespace:
    ends = {"difference_low": difference - half, "difference_high": difference + half}
    return SimpleNamespace(difference=difference, p_corrected=p, **ends)


def comparison(names: list[str], metric: str = "ndcg@10") -> SimpleNamespace:
    """The first name is the baseline; the others differ from it by 0.01, -0.02, 0.03, ..."""
    steps = [(-1) ** (k + 1) * 0.01 * k for k in range(len(names))]
    cells = [cell(step, 0.015, 0.001 if abs(step) > 0.025 else 0.2) for step in steps]
    found = SimpleNamespace(methods=names, metrics=[metric], baseline=names[0], confidence=0.95)
    found.cells = dict(zip([(name, metric) for name in names], cells, strict=True))
    found.higher_is_better = lambda metric: "error" not in metric
    return found


def path_of(n_models: int = 5) -> SimpleNamespace:
    """What a path result has, without training."""
    up, values = np.arange(1.0, n_models + 1), 2.0 ** np.arange(n_models)
    sizes = {"objectives": up, "norms": up / 2, "n_nonzero": np.arange(n_models)}
    return SimpleNamespace(parameter="C", values=values, **sizes)


def rounds_of(n_rounds: int, validation: float | None = 0.5) -> list[SimpleNamespace]:
    """What the rounds of a feature induction have."""
    return [
        SimpleNamespace(objective=9.0 / k, n_nonzero=k, n_chosen=2 * k, validation=validation)
        for k in range(1, n_rounds + 1)
    ]


def profile_of(ratios: np.ndarray) -> SimpleNamespace:
    """What a rank profile has, with itself as its baseline."""

    def distribution(relative_to: str) -> np.ndarray:
        return np.array([np.histogram(column, 10, (0, 1))[0] for column in ratios.T])

    shown = {"distribution": distribution, "ratios": lambda relative_to: ratios}
    return SimpleNamespace(energy=[0.9, 0.99], baseline=SimpleNamespace(**shown), **shown)


def cases() -> dict[str, object]:
    """A display of every class, and of what is hard to draw."""
    rng = np.random.default_rng(0)
    n = len(HOSTILE)
    spread = rng.beta(2, 2, 400)
    noisy = np.clip(spread + rng.normal(0, 0.1, 400), 0, 1)
    supported = support_of(rng.normal(size=30), np.arange(30) % 6, C=10.0)
    gaps = np.where(rng.random(400) < 0.2, np.nan, noisy)
    return {
        "convergence": ConvergenceDisplay(HISTORY),
        "convergence, without gap": ConvergenceDisplay({"objective": [3.0], "seconds": [0.0]}),
        "descent": ConvergenceDisplay({"n_steps": [10, 100, 500], "objective": [9.0, 3.0, 2.5]}),
        "path, one model": PathDisplay(path_of(1), [0.5], 1.0, "map"),
        "path, folds": PathDisplay(path_of(), rng.random((3, 5)), 4.0, SCRIPT),
        "grid": GridDisplay([0.1, 1.0, 10.0], [0.01, 0.1], rng.random((2, 3)), (1, 2), SCRIPT),
        "induction": InductionDisplay(rounds_of(6), metric="m" * 90),
        "induction, by round": InductionDisplay(rounds_of(1, None), "rounds"),
        "support": SupportDistributionDisplay(supported),
        "support, by difference": SupportDistributionDisplay(supported, by_difference=True),
        "rank profile": RankProfileDisplay(profile_of(rng.random((30, 2)))),
        "weights": WeightsDisplay(rng.normal(size=46)),
        "weights, zeros": WeightsDisplay(np.zeros(5)),
        "weights, 700": WeightsDisplay(rng.normal(size=700) * 1e-7),
        "weights, hostile": WeightsDisplay(np.arange(1.0, n + 1), HOSTILE),
        "curves": CurvesDisplay([(np.arange(5.0), rng.normal(size=5)) for _ in range(9)]),
        "curves, hostile": CurvesDisplay([([0.0, 1.0], [0.0, k]) for k in range(n)], HOSTILE, n),
        "weights, huge": WeightsDisplay([1e300, -1e299]),
        "pair": PairExplanationDisplay(rng.normal(size=46), pair=("D1", "D2")),
        "pair, tied": PairExplanationDisplay([1.0, -1.0], ["a", "b"]),
        "pair, hostile": PairExplanationDisplay(
            np.arange(1.0, n + 1), HOSTILE, (SCRIPT, "$y$" * 100), n=4
        ),
        "histogram": QueryHistogramDisplay(gaps),
        "histogram, equal": QueryHistogramDisplay(np.ones(9), "map"),
        "histogram, negative": QueryHistogramDisplay([-0.5, 0.25, 1.0], "kendall_tau"),
        "histogram, wide": QueryHistogramDisplay([0.5, 25.0, 3.0], SCRIPT),
        "scatter": QueryScatterDisplay(spread, gaps, ("ours", "theirs"), "map"),
        "scatter, one": QueryScatterDisplay([0.25], [0.75]),
        "scatter, equal": QueryScatterDisplay(np.full(30, 0.5), np.full(30, 0.5)),
        "scatter, many": QueryScatterDisplay(rng.random(9000), rng.random(9000)),
        "scatter, hostile": QueryScatterDisplay(
            spread, noisy, (SCRIPT, "$z$" * 80), "m" * 90, [SCRIPT] * 400
        ),
        "labels": LabelsDisplay([0, 1, 2], [800, 150, 50], rng.integers(5, 200, 50)),
        "labels, one query": LabelsDisplay([0.5], [7], [7]),
        "labels, many": LabelsDisplay(np.sort(rng.normal(size=300)), np.ones(300, int), [300]),
        "comparison": ComparisonDisplay(comparison(["base", "a", "b", "c", "d"])),
        "comparison, hostile": ComparisonDisplay(comparison(HOSTILE, "e" * 60)),
    }


CASES = cases()


@pytest.fixture
def ax():
    return Figure(layout="constrained").subplots()


@pytest.fixture(scope="module")
def data():
    return make_ranking(n_queries=20, n_features=4, n_levels=3, random_state=1)


@pytest.fixture(scope="module")
def ranker(data):
    return RankSVM(C=0.1).fit(data.X, data.y, qid=data.qid)


def bars(ax):
    """Widths of the bars and their names, from the top."""
    shown = sorted(ax.patches, key=lambda bar: -bar.get_y())
    ticks = sorted(ax.get_yticklabels(), key=lambda tick: -tick.get_position()[1])
    return [bar.get_width() for bar in shown], [tick.get_text() for tick in ticks]


# ---- all of them --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", CASES)
@pytest.mark.filterwarnings("ignore:Glyph")
def test_no_text_is_cut_or_on_top_of_another(name):
    """Measured on the drawn picture, all texts and the ticks of either axis."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    figure = Figure(figsize=(4.5, CASES[name]._height), layout="constrained")
    FigureCanvasAgg(figure)
    axes = CASES[name]._draw_on(figure, {})
    figure.canvas.draw()
    page = figure.bbox
    texts = [t for t in figure.findobj(lambda a: hasattr(a, "get_fontsize")) if t.get_text()]
    boxes = {t.get_text(): t.get_window_extent() for t in texts if in_view(t, axes)}
    assert len(boxes) > 2
    for text, box in boxes.items():
        assert (box.min >= page.min - 1).all(), text
        assert (box.max <= page.max + 1).all(), text
    for ax in axes:
        assert_apart([t for t in ax.get_xticklabels() if in_view(t, axes)], "x")
        assert_apart([t for t in ax.get_yticklabels() if in_view(t, axes)], "y")
        legend = ax.get_legend()
        if legend is not None and ax.get_title():
            assert not legend.get_window_extent().overlaps(ax.title.get_window_extent())


def in_view(text, axes):
    """Ticks beyond the limits of their axis exist, but are not drawn."""
    for ax in axes:
        for axis, low_high in ((ax.xaxis, ax.get_xlim()), (ax.yaxis, ax.get_ylim())):
            for tick in (*axis.get_major_ticks(), *axis.get_minor_ticks()):
                if text is tick.label1:
                    return min(low_high) <= tick.get_loc() <= max(low_high) and text.get_visible()
                if text is tick.label2:
                    return False
    return text.get_visible()


def assert_apart(ticks, direction):
    boxes = [t.get_window_extent() for t in ticks if t.get_text()]
    ends = sorted((b.x0, b.x1) if direction == "x" else (b.y0, b.y1) for b in boxes)
    for (_, end), (start, _) in pairwise(ends):
        assert start > end - 1, [t.get_text() for t in ticks]


@pytest.mark.parametrize("name", CASES)
def test_every_picture_is_described(name):
    display = CASES[name]
    assert isinstance(display, Display)
    assert 0 < len(display.title) < 140
    assert display.description.endswith(".")
    for text in (display.title, display.description):
        assert all(c.isprintable() for c in text)


def test_plot_sets_the_attributes_of_scikit_learn(ax):
    display = WeightsDisplay([1.0, -2.0])
    assert display.plot(ax=ax, color="#123456", alpha=0.5) is display
    assert display.ax_ is ax
    assert display.axes_ == [ax]
    assert display.figure_ is ax.figure
    assert {bar.get_alpha() for bar in ax.patches} == {0.5}


def test_plot_makes_a_figure_and_to_svg_makes_none():
    matplotlib.use("Agg")
    from matplotlib import pyplot

    display = PathDisplay(path_of(), [0.1] * 5)
    before = pyplot.get_fignums()
    display.to_svg()
    assert pyplot.get_fignums() == before
    assert not hasattr(display, "ax_")
    display.plot()
    assert len(pyplot.get_fignums()) == len(before) + 1
    assert display.axes_ == list(display.figure_.axes)
    assert len(display.axes_) == 2
    pyplot.close(display.figure_)


def test_panels_are_counted(monkeypatch):
    display = LabelsDisplay([0, 1], [3, 4], [3, 4])
    axes = Figure().subplots(1, 2)
    display.plot(ax=axes)
    assert display.axes_ == list(axes)
    with pytest.raises(ValueError, match="ax has 1 axes for 2 panels"):
        display.plot(ax=axes[0])
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    for draw in (display.plot, display.to_svg):
        with pytest.raises(ImportError, match=r"pip install matplotlib"):
            draw()


def test_importing_displays_imports_neither_matplotlib_nor_scikit_learn():
    heavy = "{'matplotlib', 'sklearn', 'scipy'}"
    code = f"import sys, linrank; linrank.WeightsDisplay; print({heavy} & set(sys.modules))"
    assert run_code(code) == "set()\n"


# ---- weights ------------------------------------------------------------------------------------


def test_weights_of_estimators_and_models(ranker, ax):
    WeightsDisplay.from_estimator(ranker, n=3).plot(ax)
    values, names = bars(ax)
    order = np.argsort(-np.abs(ranker.coef_))[:3]
    np.testing.assert_array_equal(values, ranker.coef_[order])
    assert names == [f"feature {j}" for j in order]
    model = LinearModel([0.5, -2.0], feature_names=["age", "bm25"])
    assert WeightsDisplay.from_estimator(model).names == ["age", "bm25"]
    assert WeightsDisplay.from_estimator(model, names=["a", "b"]).names == ["a", "b"]


def test_weights_of_zero_are_told_not_drawn(ax):
    WeightsDisplay([0.0, 1.0, 0.0, -1.0], spread=[1.0, 3.0, 1.0, 1.0]).plot(ax)
    assert bars(ax) == ([3.0, -1.0], ["feature 1", "feature 3"])
    assert "2 of 4, the others are 0" in " ".join(ax.get_title().split())
    other = Figure().subplots()
    WeightsDisplay(np.zeros(3)).plot(other)
    assert other.get_title() == "Weights: all 3 are 0"


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=30), st.integers(1, 12))
@examples(20)
def test_bars_of_a_pair_sum_to_the_difference(contributions, n):
    ax = Figure().subplots()
    PairExplanationDisplay(contributions, n=n).plot(ax)
    values, names = bars(ax)
    scale = max(1.0, np.abs(contributions).max())
    np.testing.assert_allclose(values[-1], np.sum(contributions), atol=1e-9 * scale)
    np.testing.assert_allclose(sum(values[:-1]), values[-1], atol=1e-9 * scale)
    assert names[-1] == "difference of scores"
    assert len(values) <= n + 2


def test_pair_of_a_model(ranker, data, ax):
    display = PairExplanationDisplay.from_model(ranker, data.X, (3, 1), n=2).plot(ax)
    parts = (data.X[3] - data.X[1]) * ranker.coef_
    order = np.argsort(-np.abs(parts))
    values, names = bars(ax)
    expected = [*parts[order[:2]], parts[order[2:]].sum(), parts.sum()]
    np.testing.assert_allclose(values, expected)
    assert names[:2] == [f"feature {j}" for j in order[:2]]
    assert names[2] == "2 other features"
    verdict = "row 3 is above row 1" if parts.sum() > 0 else "row 1 is above row 3"
    assert verdict in ax.get_title().replace("\n", " ")
    assert "row 3 less that of row 1" in display.description


# ---- queries ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def judged(data, ranker):
    rng = np.random.default_rng(0)
    scores = ranker.decision_function(data.X)
    noisy = scores + 2 * rng.normal(size=len(scores))
    return [evaluate(data.y, s, qid=data.qid) for s in (scores, noisy)]


def points(ax):
    """(x, y, area) of every circle."""
    return [
        (*map(float, place), float(circles.get_sizes()[0]))
        for circles in ax.collections
        for place in circles.get_offsets()
    ]


def test_scatter_of_two_evaluations(judged, ax):
    ours, theirs = judged
    QueryScatterDisplay.from_evaluations(ours, theirs, "nDCG@10", names=("A", "B")).plot(ax)
    drawn = {(x, y) for x, y, _ in points(ax)}
    x, y = theirs.per_query["ndcg@10"], ours.per_query["ndcg@10"]
    assert drawn == set(zip(x.tolist(), y.tolist(), strict=True))
    up, down = (y > x).sum(), (y < x).sum()
    told = f"20 queries: A higher on {up}, B on {down}, equal on {20 - up - down}"
    assert ax.get_title().replace("\n", " ") == told
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("ndcg@10 of B", "ndcg@10 of A")
    (diagonal,) = ax.get_lines()
    assert list(diagonal.get_xdata()) == list(diagonal.get_ydata()) == [0.0, 1.0]


def test_scatter_of_coinciding_points_and_of_missing_ones(ax):
    values = [0.5] * 4 + [0.25, np.nan, 0.75]
    against = [0.5] * 4 + [1.0, 0.5, np.nan]
    display = QueryScatterDisplay(values, against, query_ids=list("abcdefg")).plot(ax)
    areas = {(x, y): area for x, y, area in points(ax)}
    assert set(areas) == {(0.5, 0.5), (1.0, 0.25)}
    assert areas[0.5, 0.5] == pytest.approx(2 * areas[1.0, 0.25])  # √4
    assert ax.get_title().replace("\n", " ").endswith("equal on 4, 2 left out")
    assert display.extremes(1) == [("e", 0.25, 1.0)]
    ids = np.array([*"abcdefg"], dtype=object)  # as a file with ids of text gives them
    objects = QueryScatterDisplay(values, against, query_ids=ids)
    assert objects.extremes(1) == [("e", 0.25, 1.0)]
    assert "They differ most on query e (0.250 and 1.000)" in display.description


def test_scatter_of_many_points_gathers_them(ax):
    rng = np.random.default_rng(0)
    x, y = rng.random(5000), rng.random(5000)
    QueryScatterDisplay(y, x).plot(ax)
    drawn = np.array([(px, py) for px, py, _ in points(ax)])
    assert 1000 < len(drawn) <= 2500
    cells = np.unique(np.minimum((np.stack((x, y), axis=1) * 50).astype(int), 49), axis=0)
    expected = (cells + 0.5) / 50
    np.testing.assert_allclose(drawn[np.lexsort(drawn.T)], expected[np.lexsort(expected.T)])


def test_histogram_of_an_evaluation(judged, ax):
    display = QueryHistogramDisplay.from_evaluation(judged[0], "map", bins=4).plot(ax)
    values = judged[0].per_query["map"]
    heights, _ = np.histogram(values, bins=4, range=(0, 1))
    assert [bar.get_height() for bar in ax.patches] == heights.tolist()
    assert f"mean {values.mean():.4f}" in display.description
    assert ax.get_title() == "map of 20 queries"
    assert any("mean 0." in t.get_text() for t in ax.get_legend().get_texts())


def test_queries_that_no_ranking_can_order_are_gray(ax):
    is_flat = [True, False, False, False, True]
    QueryHistogramDisplay([0.0, 0.0, 0.5, 1.0, np.nan], bins=10, is_flat=is_flat).plot(ax)
    heights = [bar.get_height() for bar in ax.patches]
    assert heights[:10] == [2, 0, 0, 0, 0, 1, 0, 0, 0, 1]  # all of them
    assert heights[10:] == [1] + 9 * [0]
    assert ax.patches[10].get_facecolor() != ax.patches[0].get_facecolor()
    assert "of one label" in [t.get_text() for t in ax.get_legend().get_texts()]


@pytest.mark.parametrize(
    ("values", "limits"),
    [([0.2, 1.0], (0, 1)), ([-0.2, 0.5], (-1, 1)), ([0.5, 12.0], (0, 12)), ([-3.0, -2.0], (-3, 0))],
)
def test_histogram_shows_all_values(ax, values, limits):
    QueryHistogramDisplay([*values, np.nan]).plot(ax)
    assert ax.get_xlim() == limits
    assert sum(bar.get_height() for bar in ax.patches) == 2
    assert "1 left out" in ax.get_title()


def test_labels_of_a_dataset(data):
    first, second = Figure().subplots(2, 1)
    LabelsDisplay.from_dataset(data).plot([first, second])
    values, counts = np.unique(data.labels, return_counts=True)
    assert [bar.get_height() for bar in first.patches] == counts.tolist()
    assert [tick.get_text() for tick in first.get_xticklabels()] == [f"{v:g}" for v in values]
    sizes = np.diff(data.queries.offsets)
    for bar in second.patches:
        middle = bar.get_x() + bar.get_width() / 2
        assert bar.get_height() == np.sum(np.abs(sizes - middle) <= bar.get_width() / 1.8)
    assert sum(bar.get_height() for bar in second.patches) == 20


# ---- comparisons --------------------------------------------------------------------------------


def marks(ax):
    """(difference, ends of the interval, filled) by method, from the top."""
    ticks = {t.get_position()[1]: t.get_text() for t in ax.get_yticklabels()}
    found = []
    for drawn in ax.containers:
        line, _, (interval,) = drawn.lines
        ends = interval.get_segments()[0][:, 0]
        filled = line.get_markerfacecolor() != "white"
        place = line.get_ydata()[0]
        found.append((place, ticks[place], line.get_xdata()[0], *ends, filled))
    return [row[1:] for row in sorted(found, reverse=True)]


def test_comparison_draws_differences_with_intervals(ax):
    ComparisonDisplay.from_comparison(comparison(["base", "a", "b", "c", "d"])).plot(ax)
    names, middles, lows, highs, filled = zip(*marks(ax), strict=True)
    assert (names, filled) == (("c", "a", "b", "d"), (True, False, False, True))
    np.testing.assert_allclose(middles, [0.03, 0.01, -0.02, -0.04])
    np.testing.assert_allclose([lows, highs], np.add.outer([-0.015, 0.015], middles))
    assert "right is better" in ax.get_xlabel().replace("\n", " ")


def test_comparison_of_errors_puts_the_smallest_on_top(ax):
    found = comparison(["base", "a", "b"], "all_pairs_error")
    display = ComparisonDisplay(found).plot(ax)
    assert [row[0] for row in marks(ax)] == ["b", "a"]
    assert "left is better" in ax.get_xlabel().replace("\n", " ")
    assert display.description.startswith("b -0.0200 (-0.0350 to -0.0050); a +0.0100")
    found.cells["a", found.metrics[0]] = cell(
        np.nan, np.nan, np.nan
    )  # what has no value is left out
    assert ComparisonDisplay(found).description == "b -0.0200 (-0.0350 to -0.0050)."


# ---- what cannot be drawn -----------------------------------------------------------------------

NOTHING = SimpleNamespace(per_query={"map": np.zeros(1)}, query_ids=None)
OTHERS = SimpleNamespace(per_query={"map": np.zeros(1)}, query_ids=np.array([7]))
REFUSED = [
    (lambda: ConvergenceDisplay({"objective": [], "seconds": []}), "no objective: fit a model"),
    (lambda: ConvergenceDisplay({"n_steps": [1], "objective": [np.nan]}), "record='exact'"),
    (lambda: ConvergenceDisplay.from_estimator(LinearModel([1.0])), "LinearModel has no history"),
    (lambda: PathDisplay(3), "domination_path returns, got int"),
    (lambda: PathDisplay.from_estimator(RankSVM()), "RankSVMCV or DominationRankerCV, got RankSVM"),
    (lambda: GridDisplay.from_estimator({}), "belongs to a fitted KernelRankSVMCV, got dict"),
    (lambda: InductionDisplay([], by="C"), "by must be 'features' or 'rounds', got 'C'"),
    (lambda: InductionDisplay.from_estimator(RankSVM()), "fitted with feature_induction, .* RankS"),
    (lambda: RankProfileDisplay(RankSVM()), r"linrank\.rank_profile returns, got RankSVM"),
    (lambda: WeightsDisplay([1.0, np.nan]), "coefficient 1 is nan"),
    (lambda: WeightsDisplay([1.0, 2.0], spread=[1.0]), "spread has 1 entries for 2"),
    (lambda: WeightsDisplay([]), "there are no coefficients"),
    (lambda: WeightsDisplay([1.0, 2.0], ["a"]), "names has 1 entries for 2"),
    (lambda: WeightsDisplay([1.0], n=0), "n must be ≥ 1, got 0"),
    (lambda: WeightsDisplay.from_estimator(3), "int has no weights of features"),
    (lambda: CurvesDisplay.from_estimator(3), "int has no curves"),
    (lambda: PairExplanationDisplay.from_model(3, [[0]], (0, 0)), "only linear models explain"),
    (lambda: QueryScatterDisplay([0.1, 0.2], [0.1]), "values has 2 queries, against 1"),
    (lambda: QueryScatterDisplay([np.nan], [0.1]), "undefined for all 1 queries"),
    (lambda: QueryScatterDisplay.from_evaluations(NOTHING, OTHERS), "of different queries, or in"),
    (lambda: QueryHistogramDisplay.from_evaluation(NOTHING, "p@7"), "'p@7' was not evaluated;"),
    (lambda: QueryHistogramDisplay([np.nan, np.nan]), "undefined for all 2 queries"),
    (lambda: LabelsDisplay([0, 1], [1], [1]), "1 counts for 2 labels"),
    (lambda: LabelsDisplay([], [], []), "0 labels and 0 queries"),
    (lambda: ComparisonDisplay.from_comparison(3), r"what linrank.compare returns, got int"),
    (lambda: ComparisonDisplay(comparison(["base", "a"]), "map"), "'map' was not compared; there"),
    (lambda: ComparisonDisplay(comparison(["base"])), "no method has a ndcg@10 to compare with"),
]


@pytest.mark.parametrize("case", range(len(REFUSED)))
def test_what_cannot_be_drawn_is_refused_at_once(case):
    make, message = REFUSED[case]
    with pytest.raises((TypeError, ValueError), match=message):
        make()


# ---- names --------------------------------------------------------------------------------------


@given(st.text(max_size=200), st.integers(5, 40))
@examples(40)
def test_a_readable_name_is_one_short_line(name, most):
    shown = readable(name, most)
    assert 0 < _ems(shown) <= max(most * 0.62, 6.0)
    assert "\n" not in shown
    shown.encode("utf-8")
    assert readable(shown, max(most, 10)) == shown


def test_readable():
    shown = {"bm25": "bm25", "two\n lines": "two lines", "\x00": "\ufffd", "": "(no name)"}
    shown |= {"a\u202eb": "ab", "abcdefghijklmnopqrstuvwxyz": "abcd…wxyz"}
    for name, short in (shown | {"日本語の特徴の名前": "日本…名前"}).items():
        assert readable(name, 11) == short


# ---- SVG for pages: well-formed, closed in itself, the same every time -------------------------

NAMESPACE = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def pictures():
    return {name: display.to_svg() for name, display in CASES.items()}


def figure_of(color="#0072B2", **options):
    figure = Figure(layout="constrained", **options)
    figure.subplots().plot([1, 2], [3, 4], "o-", color=color)
    return figure


def test_pictures_are_elements_of_xml(pictures):
    for name, svg in pictures.items():
        assert svg.startswith("<svg "), name
        root = ElementTree.fromstring(svg)
        assert root.tag == f"{NAMESPACE}svg"
        allowed = {"svg", "g", "path", "use", "defs", "text", "clipPath", "rect", "title", "desc"}
        allowed |= {"image"} if name.startswith(("grid", "support")) else set()
        tags = {element.tag.removeprefix(NAMESPACE) for element in root.iter()}
        assert tags <= allowed | {"tspan"}, (name, tags - allowed)
        title, desc = root[0], root[1]
        assert (title.tag, desc.tag) == (f"{NAMESPACE}title", f"{NAMESPACE}desc")
        assert (title.text, desc.text) == (CASES[name].title, CASES[name].description)
        assert root.get("role") == "img"
        assert root.get("aria-labelledby") == f"{title.get('id')} {desc.get('id')}"


def test_pictures_refer_to_nothing_outside(pictures):
    for name, svg in pictures.items():
        assert len(svg) < (300_000 if "many" in name else 60_000), (name, len(svg))
        assert re.findall(r"https?://[^\"]*", svg) == ["http://www.w3.org/2000/svg"], name
        for link in re.findall(r'href="([^"]*)"', svg) + re.findall(r"url\(([^)]*)\)", svg):
            assert link.startswith(("#", "data:image/png;base64,")), name
        assert "@import" not in svg
        assert "<style" not in svg


def test_ids_are_unique_across_pictures_and_all_are_found(pictures):
    ids = [i for svg in pictures.values() for i in re.findall(r'\bid="([^"]*)"', svg)]
    assert len(ids) == len(set(ids))
    for svg in pictures.values():
        own = set(re.findall(r'\bid="([^"]*)"', svg))
        used = set(re.findall(r"(?:href=\"|url\()#([\w-]+)", svg))
        labeled = set(re.search(r'aria-labelledby="([^"]*)"', svg)[1].split())
        assert used | labeled == own


def test_the_same_picture_twice_takes_a_prefix():
    one, two = (WeightsDisplay([1.0, 2.0]).to_svg(id_prefix=p) for p in ("a", "b"))
    assert set(re.findall(r'\bid="([^"]*)"', one)).isdisjoint(re.findall(r'\bid="([^"]*)"', two))
    with pytest.raises(ValueError, match="id_prefix must be a letter"):
        WeightsDisplay([1.0]).to_svg(id_prefix='1"')


@pytest.mark.parametrize("name", ["convergence", "scatter, hostile", "comparison"])
def test_the_same_data_give_the_same_bytes(pictures, name):
    """Whatever the settings of the user."""
    settings = {"font.size": 30, "axes.facecolor": "black", "svg.fonttype": "path"}
    with matplotlib.rc_context(settings):
        assert cases()[name].to_svg() == pictures[name]
        assert matplotlib.rcParams["font.size"] == 30


def test_hostile_names_are_escaped_everywhere(pictures):
    for name, svg in pictures.items():
        assert "<script" not in svg, name
        assert "\x00" not in svg, name
        svg.encode("utf-8")
    root = ElementTree.fromstring(pictures["weights, hostile"])
    texts = [element.text for element in root.iter(f"{NAMESPACE}text")]
    for shown in (HOSTILE[1], "_starts_with_underscore", "two lines and\ufffda\ufffdcontrol"):
        assert shown in texts  # as it is: no formula
    svg = themed_svg(figure_of(), SCRIPT, "a & b\x00 <i>")
    title, desc = ElementTree.fromstring(svg)[:2]
    assert title.text == SCRIPT
    assert desc.text == "a & b  <i>"


def test_colors_are_those_of_the_page(pictures):
    known = {"#0072b2", "#d55e00", "#767676", "#808080"}
    for name, svg in pictures.items():
        bare = re.sub(r"var\(--linrank-[a-z]+, [^)]*\)", "", svg)
        bare = re.sub(r"url\(#[^)]*\)|href=\"#[^\"]*\"", "", bare)
        drawn = re.sub(r"<(title|desc)[^>]*>[^<]*</\1>", "", bare)
        assert re.findall(r"(?:fill|stroke): (#[0-9a-f]+)", drawn) == [], name
        assert set(re.findall(r"var\(--linrank-[a-z]+, (#\w+)\)", svg)) <= known
    assert "var(--linrank-blue, #0072b2)" in pictures["weights"]
    assert "var(--linrank-orange, #d55e00)" in pictures["weights"]
    assert 'fill="currentColor"' in pictures["weights"]


def test_any_figure_can_be_themed_and_stays_as_it_is():
    figure = figure_of("#123456", facecolor="red")
    svg = themed_svg(figure, "t", "d")
    assert "stroke: #123456" in svg  # a color of the user
    assert "#ff0000" not in svg  # no background
    assert figure.get_facecolor() == (1.0, 0.0, 0.0, 1.0)
