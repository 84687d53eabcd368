"""Pairs weighted by differences of grades or gains against uniform pairs, by NDCG@10.

Five folds each; every weighting chooses its own C on validation queries. Differences are paired by
query: a bootstrap interval of their mean, and a randomization test that flips their signs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import problems
from linrank.choices import PAIR_WEIGHTINGS
from linrank.data.dataset import Dataset
from linrank.estimators.model_selection import QueryKFold
from linrank.metrics import evaluate
from linrank.ranksvm.train import train
from report import Table, main
from reproduce.paired import N_FLIPS, N_RESAMPLES, SEED, interval, sign_flip

Array = NDArray[np.float64]
Parts = dict[str, Dataset]

METRIC = "ndcg@10"
GRID = [2.0**k for k in range(-21, 6)]
WIDENED = (
    "the grid of the first run began at 2^-15 and was widened, as some choices lay at that end; "
    "its pooled differences, grade_diff and gain_diff: MQ2008 -0.0001, +0.0007; MSLR +0.0180, "
    "+0.0256"
)


def measure(quick: bool) -> list[Table]:
    n_folds = 1 if quick else 5
    return [
        compare("MQ2008, folds as published", problems.mq2008_folds, n_folds),
        compare("MSLR sample, query-normalized, folds by QueryKFold", mslr_folds, n_folds),
    ]


def mslr_folds() -> list[Parts]:
    """A fifth of the 161 queries to test, the next to validate, three to train on."""
    data = problems.load("msn-all")
    folder = QueryKFold(5, shuffle=True, random_state=SEED)
    fifths = [test for _, test in folder.split(data.X, data.y, data.qid)]
    return [
        {
            "test": data.select(fifths[k]),
            "vali": data.select(fifths[(k + 1) % 5]),
            "train": data.select(np.sort(np.concatenate([fifths[(k + i) % 5] for i in (2, 3, 4)]))),
        }
        for k in range(5)
    ]


@dataclass(frozen=True)
class Outcome:
    """NDCG@10 of the test queries at the C that is best on the validation queries."""

    C: float
    by_query: Array


def _ndcg(data: Dataset, w: Any) -> Any:
    return evaluate(data.y, data.X @ w, qid=data.qid, metrics=[METRIC])


def choose(parts: Parts, pair_weighting: str) -> Outcome:
    w, best = None, (-np.inf, 0.0, None)
    for C in GRID:
        w = train(parts["train"], C=C, pair_weighting=pair_weighting, w0=w).w
        vali = _ndcg(parts["vali"], w)[METRIC]
        if vali > best[0]:
            best = (vali, C, w)
    values = _ndcg(parts["test"], best[2]).per_query[METRIC]
    return Outcome(best[1], values[~np.isnan(values)])


def compare(title: str, folds: Any, n_folds: int) -> Table:
    table = Table(
        f"NDCG@10 by the weight of pairs: {title}",
        [
            *("weighting", "fold", "queries", "C", "C, uniform", "NDCG@10", "uniform"),
            *("difference", "95% interval", "p"),
        ],
        notes=[
            f"C from 2^-21 .. 2^5, {len(GRID)} values, chosen by NDCG@10 on validation queries by "
            "each weighting for itself, each fit warm-started from the last",
            f"interval: expanded percentiles of the mean difference over {N_RESAMPLES} bootstrap "
            f"samples of the queries; p: two-sided, {N_FLIPS} random flips of signs; not "
            "corrected for the number of comparisons",
            WIDENED,
        ],
    )
    try:
        parts = folds()[:n_folds]
    except problems.Absent as absent:
        table.notes.append(str(absent))
        return table
    outcomes = {name: [choose(part, name) for part in parts] for name in PAIR_WEIGHTINGS}
    for name, chosen in outcomes.items():
        at_end = [k + 1 for k, outcome in enumerate(chosen) if outcome.C in (GRID[0], GRID[-1])]
        if at_end:
            table.notes.append(f"{name}: the chosen C is at an end of the grid in fold {at_end}")
    for name in PAIR_WEIGHTINGS[1:]:
        for k, (one, uniform) in enumerate(zip(outcomes[name], outcomes["uniform"], strict=True)):
            settings = (f"2^{np.log2(one.C):.0f}", f"2^{np.log2(uniform.C):.0f}")
            table.add(name, k + 1, *_row(one.by_query, uniform.by_query, settings))
        pooled = [np.concatenate([o.by_query for o in outcomes[w]]) for w in (name, "uniform")]
        table.add(name, "all", *_row(pooled[0], pooled[1], ("", "")))
    return table


def _row(values: Array, uniform: Array, settings: tuple[str, str]) -> list[Any]:
    difference = values - uniform
    low, high = interval(difference)
    return [
        len(values),
        *settings,
        f"{values.mean():.4f}",
        f"{uniform.mean():.4f}",
        f"{difference.mean():+.4f}",
        f"{low:+.4f} .. {high:+.4f}",
        f"{sign_flip(difference):.2g}",
    ]


if __name__ == "__main__":
    main(measure, __doc__)
