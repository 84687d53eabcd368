"""The choice of alpha for the domination loss: a path per fold, measured on the rows left out."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linrank.data.dataset import Dataset
from linrank.domination.path import PathProblem
from linrank.metrics import parse_scoring
from linrank.pairs.layering import margin_of_part
from linrank.search.folds import (
    Fold,
    Progress,
    Reports,
    affordable_folds,
    check_selection,
    edge,
    first_best,
    judge,
    side_by_side,
    simplest,
    weight_of_part,
)
from linrank.system.threads import resolve

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class DominationTuning:
    """The measure of every alpha on every fold, and the alpha that they speak for.

    Attributes
    ----------
    alphas : float64 array (n_alphas,)
        Descending; those that the paths of all folds have come to.
    scores : float64 array (n_folds, n_alphas)
        The measure on the validation part of each fold.
    n_nonzero : int64 array (n_folds, n_alphas)
        Coefficients other than 0 of each model.
    selection : {"best", "one_se"}
        The rule of choice.
    """

    alphas: Array
    scores: Array
    n_nonzero: Array
    selection: str = "best"

    @property
    def mean_scores(self) -> Array:
        """Mean over folds, for each alpha."""
        mean: Array = self.scores.mean(axis=0)
        return mean

    @property
    def chosen(self) -> int:
        """Index of the alpha to use: the largest among the best ones, or within one error."""
        return first_best(self.mean_scores) if self.selection == "best" else simplest(self.scores)

    @property
    def alpha(self) -> float:
        """The alpha to use."""
        return float(self.alphas[self.chosen])

    @property
    def edge(self) -> str | None:
        """What to say when the largest mean is at an end of the grid; None elsewhere."""
        said = edge("alpha", self.alphas, self.mean_scores)
        best = first_best(self.mean_scores)
        if said is None or self.n_nonzero[:, best].any() or np.ptp(self.mean_scores) == 0.0:
            return said
        return (  # larger values leave no weight either
            f"the best alpha, {self.alphas[best]:g}, leaves no weight: no model of the grid ranks "
            "better than equal scores do; check the features and the folds"
        )


def tune_domination(
    data: Dataset,
    folds: Sequence[Fold],
    alphas: Array,
    *,
    scoring: str = "ndcg@10",
    convention: str = "linrank",
    selection: str = "best",
    max_features: int | None = None,
    query_weight: Array | None = None,
    n_jobs: int | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> DominationTuning:
    """Measure the models of every fold's path.

    Parameters
    ----------
    data : Dataset
        What the row numbers of the folds refer to.
    folds : sequence of Fold
        Training and validation parts.
    alphas : array
        The grid, descending.
    scoring, convention : str
        The measure; of an error, less is better.
    selection : {"best", "one_se"}
        How `DominationTuning.chosen` decides.
    max_features : int, optional
        Where a path ends; the alphas that not all folds have come to are left out.
    query_weight : array (n_queries,), optional
        The factors c_q, in the order of ``data.queries``.
    n_jobs : int or None
        Threads in all: folds run side by side, each with its share. Results do not depend on it.
    progress : callable, optional
        Called with ``fold``, ``alpha``, ``objective``, ``gap``, ``n_nonzero``, ``n_done`` and
        ``n_total`` after each model.
    **options
        Of `PathProblem.of`, for every fold; margins of rows and of layers are those of `data`.
    """
    parse_scoring(scoring)
    check_selection(selection, len(folds))
    reports = Reports(progress, len(folds) * len(alphas))
    work = _Work(
        data, folds, alphas, scoring, convention, max_features, query_weight, options, reports
    )
    most = max(1, affordable_folds(data) // 2)  # a fold has its rows by column, too
    outcomes = side_by_side(work.run, len(folds), most, resolve(n_jobs), work.cancelled)
    n_common = min(len(scores) for scores, _ in outcomes)
    return DominationTuning(
        alphas[:n_common],
        np.array([scores[:n_common] for scores, _ in outcomes]),
        np.array([n_nonzero[:n_common] for _, n_nonzero in outcomes]),
        selection,
    )


def _margin(options: dict[str, Any], data: Dataset, train: Array | None) -> Any:
    margin = options.get("margin")
    if train is None:
        return margin
    return margin_of_part(margin, options.get("layers", "labels"), data, train)


@dataclass(eq=False)
class _Work:
    """The work of all folds, in any order and from any thread."""

    data: Dataset
    folds: Sequence[Fold]
    alphas: Array
    scoring: str
    convention: str
    max_features: int | None
    query_weight: Array | None
    options: dict[str, Any]
    reports: Reports
    cancelled: threading.Event = field(default_factory=threading.Event)  # folds are to stop

    def run(self, k: int, n_threads: int) -> tuple[Array, Array]:
        """Scores and non-zero coefficients of the models of fold k."""
        fold, data = self.folds[k], self.data
        part = data if fold.train is None else data.select(fold.train)
        problem = PathProblem.of(
            part,
            query_weight=weight_of_part(self.query_weight, data, part, fold.train),
            n_jobs=n_threads,
            **{**self.options, "margin": _margin(self.options, data, fold.train)},
        )
        remaining = iter(self.alphas.tolist())
        path = problem.solve(
            self.alphas,
            max_features=self.max_features,
            callback=lambda _: self.cancelled.is_set(),
            progress=lambda result: self._report(k, next(remaining), result),
        )
        scores = judge(
            path.coefs,
            data,
            fold,
            k,
            problem.scaling,
            self.scoring,
            convention=self.convention,
            n_jobs=n_threads,
        )
        return scores, path.n_nonzero

    def _report(self, k: int, alpha: float, result: Any) -> None:
        self.reports.tell(
            fold=k,
            alpha=alpha,
            objective=result.value,
            gap=result.gap,
            n_nonzero=int(np.count_nonzero(result.w)),
        )
