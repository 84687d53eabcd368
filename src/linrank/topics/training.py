"""Trainer: the fits of all topics over one matrix, which is checked and scaled once."""

from __future__ import annotations

import copy
import math
import numbers
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from linrank.bounds import weight_bounds
from linrank.data.dataset import Dataset
from linrank.margins import is_by_row
from linrank.scaling import Scaling
from linrank.seeds import seed_of_part
from linrank.topics.models import Learnt

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from linrank.data.rows import Rows
    from linrank.linear_ranker import LinearRanker
    from linrank.topics.labels import TopicLabels

    Array = NDArray[Any]

__all__ = ["Trainer", "check_share"]

_SAMPLE, _FIT = 0, 1  # what the seeds of a topic are for


@dataclass(frozen=True, eq=False)
class Trainer:
    """Fits the model of any topic; from several threads at once, if they like.

    Attributes
    ----------
    template : LinearRanker
        Not fitted, for rows that are scaled already, on one thread; copied for each topic.
    rows : Rows
        The scaled features. Every fit reads these arrays, and none copies them.
    scaling : Scaling
        The factors that are in ``rows``.
    labels : TopicLabels
        The labels of all topics.
    share : float or None
        Of the rows of the lowest label that a fit sees; None for all.
    seed : int
        Where the seeds of the topics come from.
    """

    template: LinearRanker
    rows: Rows
    scaling: Scaling
    labels: TopicLabels
    share: float | None
    seed: int

    @classmethod
    def of(
        cls,
        estimator: LinearRanker,
        rows: Rows,
        names: tuple[str, ...] | None,
        labels: TopicLabels,
        share: float | None,
        seed: int,
        n_jobs: int | None,
    ) -> Trainer:
        """Prepare what the topics have in common; ``estimator`` is a clone, to be changed here."""
        _check_options(estimator, share)
        params = estimator.get_params(deep=False)
        scaling = Scaling.fit(params.get("scale", "none"), rows, n_jobs=n_jobs)
        if params.get("coef_bounds") is not None:
            # They bind coefficients of raw features, which may be called by their names.
            data = Dataset(rows, np.zeros(0), feature_names=names)
            bounds = weight_bounds(False, params["coef_bounds"], data, scaling.factors)
            estimator.set_params(coef_bounds=None if bounds is None else np.column_stack(bounds))
        rows = scaling.applied(Dataset(rows, np.zeros(0)), n_jobs=n_jobs).rows
        common = {"scale": "none", "n_jobs": 1, "verbose": 0}
        estimator.set_params(**{name: common[name] for name in common.keys() & params.keys()})
        if share is None and hasattr(estimator, "_prepare_rows"):
            estimator._prepare_rows(rows)  # what it needs beside the rows, once for all topics
        return cls(estimator, rows, scaling, labels, share, seed)

    def __call__(self, t: int) -> Learnt | None:
        """The model of topic ``t``; None if its labels are all equal."""
        start = time.perf_counter()
        labels = self.labels.of(t)
        lowest = labels.min()
        is_above = labels > lowest
        if not is_above.any():
            return None
        ranker = copy.copy(self.template)
        if hasattr(ranker, "random_state"):
            ranker.random_state = seed_of_part(self.seed, t, _FIT)
        rows, weight = self.rows, None
        if self.share is not None:
            index = self._sample(t, is_above)
            rows, labels = rows.take(index), labels[index]
            weight = _weights(is_above[index], len(is_above))
            if is_by_row(getattr(ranker, "margin", None)):
                ranker.margin = np.asarray(ranker.margin)[index]
            if getattr(ranker, "sampling", None) == "query-level":
                weight = None  # it draws a row of a level, whatever the size of the level
        try:
            ranker.fit(rows, labels, sample_weight=weight)
        except Exception as error:
            raise self._named(t, error) from error
        w = self.scaling.fold(ranker.coef_)
        columns = np.flatnonzero(w).astype(np.int32)
        training = dict(ranker.model_.training) | {"topic": str(self._name(t))}
        if self.share is not None:
            training["negative_sampling"] = self.share
        seconds = time.perf_counter() - start
        return Learnt(columns, w[columns], training, _converged(ranker), seconds)

    def _sample(self, t: int, is_above: Array) -> Array:
        """The rows of topic ``t`` above the lowest label, and a share of the others, ascending."""
        assert self.share is not None
        lowest = np.flatnonzero(~is_above)
        n_kept = math.ceil(self.share * len(lowest))
        rng = np.random.default_rng(seed_of_part(self.seed, t, _SAMPLE))
        kept = is_above.copy()
        kept[lowest[rng.choice(len(lowest), n_kept, replace=False, shuffle=False)]] = True
        return np.flatnonzero(kept)

    def _name(self, t: int) -> Any:
        return self.labels.topics[t : t + 1].tolist()[0]

    def _named(self, t: int, error: Exception) -> Exception:
        """The same error, telling the topic."""
        message = f"topic {self._name(t)!r}: {error}"
        try:
            return type(error)(message)
        except Exception:  # of a type that takes more than a message
            return RuntimeError(message)


def check_share(share: Any) -> None:
    """Raise ValueError for a share of negatives that is none."""
    if share is None:
        return
    is_number = isinstance(share, numbers.Real) and not isinstance(share, bool)
    if not (is_number and 0.0 < float(share) <= 1.0):
        raise ValueError(
            f"negative_sampling must be None or a share > 0 and <= 1 of the rows of the lowest "
            f"label, got {share!r}"
        )


def _check_options(estimator: LinearRanker, share: float | None) -> None:
    """Refuse options of the estimator that mean nothing, or something else, for topics."""
    if getattr(estimator, "early_stopping", False):
        raise ValueError(
            "early_stopping=True needs validation data, which there are none of for topics; set "
            "early_stopping=False"
        )
    if getattr(estimator, "scale", "none") == "query":
        raise ValueError(
            "scale='query' divides by ranges within a query, and here all rows are one query; use "
            "scale='minmax', which takes the same ranges from the training rows"
        )
    if share is None:
        return
    if getattr(estimator, "negative_sampling", None) is not None:
        raise ValueError(
            f"negative_sampling is {share} here and {estimator.negative_sampling} in the "
            "estimator: negatives would be sampled twice; set one of them to None"
        )
    if getattr(estimator, "sampling", None) == "rejection":
        raise ValueError(
            "sampling='rejection' cannot weigh the negatives that negative_sampling keeps; use "
            "sampling='pairs', which draws the same pairs"
        )


def _weights(is_above: Array, n_rows: int) -> Array:
    """Each kept row of the lowest label stands for n/kept of them: C and alpha keep their meaning.

    ``n_rows`` are those of the whole topic.
    """
    n_above = int(np.count_nonzero(is_above))
    return np.where(is_above, 1.0, (n_rows - n_above) / (len(is_above) - n_above))


def _converged(ranker: Any) -> bool:
    if hasattr(ranker, "converged_"):
        return bool(ranker.converged_)
    return ranker.tol is None or ranker.stopped_ != "n_steps"
