"""Displays of all kinds and of awkward data, for the tests that look at every picture."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np

from dual_values import support_of
from linrank import (
    ComparisonDisplay,
    ConvergenceDisplay,
    CurvesDisplay,
    GridDisplay,
    InductionDisplay,
    LabelsDisplay,
    PairExplanationDisplay,
    PathDisplay,
    QueryHistogramDisplay,
    QueryScatterDisplay,
    RankProfileDisplay,
    SupportDistributionDisplay,
    WeightsDisplay,
)

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
