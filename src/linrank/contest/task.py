"""What a method is given, and what it is to hand over."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linrank.data.dataset import Dataset
from linrank.metrics import Convention, convention, parse
from linrank.metrics.evaluate import evaluate_queries

__all__ = ["Candidate", "Size", "Task", "fair_convention"]

Array = NDArray[Any]
Value = str | int | float | None


def fair_convention(name: str | Convention) -> Convention:
    """The convention with equal scores averaged over their orders where it takes input order.

    Trees and single features tie many rows. In a file sorted by label, input order would rank
    tied rows perfectly.
    """
    chosen = convention(name)
    return convention(chosen, ties="average") if chosen.ties == "stable" else chosen


@dataclass(frozen=True)
class Task:
    """The data and the rules of one fold, as a method sees them.

    Attributes
    ----------
    train, valid : Dataset
        The rows of a query come together, in both.
    scoring : str
        The measure that candidates are chosen by.
    convention : Convention
        Its rules.
    scale : {"standard", "minmax", "none"}
        Scaling of the features for methods that depend on it, to be fitted on ``train``.
    seed : int
        Of everything random.
    """

    train: Dataset
    valid: Dataset
    scoring: str
    convention: Convention
    scale: str = "standard"
    seed: int = 0

    def judge(self, scores: Any) -> float:
        """The measure of scores of the validation rows, signed so that higher is better.

        Scores that it cannot judge, as equal ones by Kendall's τ, are worse than all others.
        """
        measure = parse(self.scoring)
        result = evaluate_queries(
            self.valid.queries,
            self.valid.labels,
            np.asarray(scores, dtype=np.float64),
            metrics=measure,
            convention=self.convention,
            n_jobs=1,
        )
        value = next(iter(result.values()))
        if np.isnan(value):
            return -np.inf
        return value if measure.higher_is_better else 0.0 - value


@dataclass(frozen=True)
class Size:
    """How large a model is: bytes of its saved form, and what it is made of."""

    n_bytes: int
    n_parts: int = 0
    part: str = "weights"


@dataclass(frozen=True)
class Candidate:
    """A model with the parameters that it was trained with.

    Attributes
    ----------
    parameters : mapping of str to str, int, float or None
        What distinguishes it from the others of its grid.
    predict : callable
        Scores of the rows of a dataset.
    size : callable
        Its `Size`; called for models that are kept.
    seconds : float or None
        Processor time of its training; None where it came out of a search that has no time for
        each candidate, as a path has not.
    fit : callable or None
        Trains it once more, from the beginning, with nothing but the chosen parameters: timed if
        it is chosen, in place of ``seconds``, which for boosters holds rounds that are not kept
        and their validation.
    """

    parameters: Mapping[str, Value]
    predict: Callable[[Dataset], Array]
    size: Callable[[], Size]
    seconds: float | None = None
    fit: Callable[[], object] | None = field(default=None)
