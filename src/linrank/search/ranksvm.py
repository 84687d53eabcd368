"""The choice of C: a path per fold, all its models measured on the rows that it has not seen."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linrank.data.dataset import Dataset
from linrank.data.scaling import Scaling
from linrank.metrics import parse_scoring
from linrank.models.linear import LinearModel
from linrank.ranksvm.path import PathResult, solve_path
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
from linrank.solvers.result import Result
from linrank.system.threads import resolve

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Tuning:
    """The measure of every C on every fold, and the C that they speak for.

    Attributes
    ----------
    Cs : float64 array (n_C,)
        Ascending.
    scores : float64 array (n_folds, n_C)
        The measure on the validation part of each fold; an error has a minus sign.
    selection : {"best", "one_se"}
        The rule of choice.
    paths : tuple of PathResult
        The path of each fold.
    """

    Cs: Array
    scores: Array
    selection: str
    paths: tuple[PathResult, ...] = field(repr=False)

    @property
    def mean_scores(self) -> Array:
        """Mean over folds, for each C."""
        mean: Array = self.scores.mean(axis=0)
        return mean

    @property
    def best(self) -> int:
        """Index of the largest mean; the smallest C among those that differ by rounding only."""
        return first_best(self.mean_scores)

    @property
    def chosen(self) -> int:
        """Index of the C to use.

        ``one_se`` takes the smallest C whose mean is within one standard error, that of the best
        one, of the largest: the most regularised model that the folds cannot tell from it.
        """
        return self.best if self.selection == "best" else simplest(self.scores)

    @property
    def edge(self) -> str | None:
        """What to say when the largest mean is at an end of the grid; None elsewhere."""
        return edge("C", self.Cs, self.mean_scores)

    @property
    def choice(self) -> dict[str, float]:
        """What the model is to know of the choice."""
        return {"C": float(self.Cs[self.chosen]), "score": float(self.mean_scores[self.chosen])}

    def model(
        self, path: PathResult, data: Dataset, scaling: Scaling, **settings: Any
    ) -> LinearModel:
        """The model of the chosen C on the ``path`` of all data, and what is known of it."""
        return LinearModel.of(path.results[self.chosen], data, scaling, **settings, **self.choice)


def tune(
    data: Dataset,
    folds: Sequence[Fold],
    Cs: Array,
    *,
    scoring: str = "ndcg@10",
    convention: str = "linrank",
    selection: str = "best",
    query_weight: Array | None = None,
    n_jobs: int | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> Tuning:
    """Measure the models of every fold's path.

    Parameters
    ----------
    data : Dataset
        What the row numbers of the folds refer to.
    folds : sequence of Fold
        Training and validation parts.
    Cs : array
        The grid, as `linrank.ranksvm.path.as_Cs` returns it.
    scoring, convention : str
        The measure; of an error, less is better.
    selection : {"best", "one_se"}
        How `Tuning.chosen` decides.
    query_weight : array (n_queries,), optional
        The factors c_q, in the order of ``data.queries``.
    n_jobs : int or None
        Threads in all: folds run side by side, each with its share. Results do not depend on it.
    progress : callable, optional
        Called with ``fold``, ``C``, ``gap``, ``n_done`` and ``n_total`` after each model.
    **options
        Of `solve_path`, for every fold.
    """
    parse_scoring(scoring)
    check_selection(selection, len(folds))
    work = _Work(data, folds, Cs, scoring, convention, query_weight, progress, options)
    outcomes = side_by_side(
        work.run, len(folds), affordable_folds(data), resolve(n_jobs), work.cancelled
    )
    scores = np.array([score for score, _ in outcomes])
    return Tuning(Cs, scores, selection, tuple(path for _, path in outcomes))


class _Work:
    """The work of all folds, in any order and from any thread."""

    def __init__(
        self,
        data: Dataset,
        folds: Sequence[Fold],
        Cs: Array,
        scoring: str,
        convention: str,
        query_weight: Array | None,
        progress: Progress | None,
        options: dict[str, Any],
    ) -> None:
        self.data, self.folds, self.Cs = data, folds, Cs
        self.scoring, self.convention = scoring, convention
        self.query_weight, self.options = query_weight, options
        self._reports = Reports(progress, len(folds) * len(Cs))
        self.cancelled = threading.Event()

    def run(self, k: int, n_threads: int) -> tuple[Array, PathResult]:
        """Scores and path of fold k."""
        fold = self.folds[k]
        part = self.data if fold.train is None else self.data.select(fold.train)
        Cs = iter(self.Cs.tolist())
        path, scaling = solve_path(
            part,
            self.Cs,
            query_weight=weight_of_part(self.query_weight, self.data, part, fold.train),
            n_jobs=n_threads,
            callback=lambda _: self.cancelled.is_set(),
            progress=lambda result: self._report(k, next(Cs), result),
            **self.options,
        )
        scores = judge(
            path.coefs,
            self.data,
            fold,
            k,
            scaling,
            self.scoring,
            convention=self.convention,
            n_jobs=n_threads,
        )
        return scores, path

    def _report(self, k: int, C: float, result: Result) -> None:
        self._reports.tell(fold=k, C=C, gap=result.gap, objective=result.value)
