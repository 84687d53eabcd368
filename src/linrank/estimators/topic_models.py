"""TopicModels: the models of all topics, in the memory of their non-zero coefficients."""

from __future__ import annotations

import copy
import math
import time
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from sklearn.utils.validation import check_array

from linrank.data import frames
from linrank.data.bounds import weight_bounds
from linrank.data.dataset import Dataset
from linrank.data.rows import Array, Rows
from linrank.data.scaling import Scaling
from linrank.domination.layering import is_by_row
from linrank.errors import is_number
from linrank.estimators.base import LinearRanker
from linrank.methods.ground import choose_scale
from linrank.models.linear import LinearModel
from linrank.system.seeds import seed_of_part


@dataclass(frozen=True, eq=False)
class TopicFit:
    """What the fit of one topic leaves behind; nothing where its labels are all equal.

    Attributes
    ----------
    columns, values : arrays
        The non-zero weights of the model.
    training : mapping or None
        Summary of the run, as in :class:`linrank.LinearModel`.
    converged : bool
        Whether the estimator reached its tolerance, if it has one.
    seconds : float
        Time of the fit; nan where there was none.
    """

    columns: NDArray[np.int32] = field(default_factory=lambda: np.zeros(0, dtype=np.int32))
    values: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))
    training: Mapping[str, Any] | None = None
    converged: bool = False
    seconds: float = math.nan


def stack_weights(fits: list[TopicFit], n_features: int) -> Any:
    """The coefficients as a ``scipy.sparse.csr_array``; takes the weights out of ``fits``.

    A topic's weights are let go of as soon as they are copied, so that there is hardly more than
    one copy at a time.
    """
    offsets = np.concatenate([[0], np.cumsum([len(one.values) for one in fits], dtype=np.int64)])
    n_entries = int(offsets[-1])
    index = np.int32 if n_entries <= np.iinfo(np.int32).max else np.int64
    values, columns = np.empty(n_entries), np.empty(n_entries, dtype=index)
    for t, (begin, end) in enumerate(pairwise(offsets.tolist())):
        one, fits[t] = fits[t], TopicFit()
        values[begin:end], columns[begin:end] = one.values, one.columns
    shape = (len(fits), n_features)
    return csr_array((values, columns, offsets.astype(index)), shape=shape)


@dataclass(frozen=True, eq=False)
class TopicModels(Sequence[Any]):
    """A :class:`linrank.LinearModel` for each topic, None for one that could not be learnt.

    They are made when they are asked for: what is kept is ``coef``, sparse.

    Attributes
    ----------
    coef : scipy.sparse.csr_array of shape (n_topics, n_features)
        Coefficients of the raw features.
    trainings : list of mapping or None
        Summary of the run of each topic; None for a topic without a model.
    scaling : Scaling
        The same for all.
    feature_names : tuple of str or None
        Likewise.
    """

    coef: Any
    trainings: list[Mapping[str, Any] | None]
    scaling: Scaling
    feature_names: tuple[str, ...] | None

    def __len__(self) -> int:
        return len(self.trainings)

    def __getitem__(self, t: int | slice) -> Any:
        if isinstance(t, slice):
            return [self[i] for i in range(*t.indices(len(self)))]
        training = self.trainings[t]
        if training is None:
            return None
        return LinearModel(self.weights(t), self.feature_names, self.scaling, training)

    def __repr__(self) -> str:
        n_missing = sum(training is None for training in self.trainings)
        missing = f", {n_missing} without a model" if n_missing else ""
        return f"<TopicModels: {len(self)} topics{missing}, {self.coef.nnz} non-zero weights>"

    def weights(self, t: int) -> NDArray[np.float64]:
        """The coefficients of topic ``t`` as a dense vector."""
        return self.coef[[range(len(self))[t]]].toarray()[0]


@dataclass(frozen=True, eq=False)
class TopicLabels:
    """A label for each row and topic; what a sparse matrix leaves out is 0.

    Attributes
    ----------
    matrix : array or scipy.sparse.csc_array of shape (n_rows, n_topics)
        The labels, finite.
    topics : array (n_topics,)
        The names of the topics.
    is_named : bool
        Whether they were given; else they are 0, 1, 2, ...
    """

    matrix: Any
    topics: Array
    is_named: bool

    @property
    def n_topics(self) -> int:
        return int(self.matrix.shape[1])

    def of(self, t: int) -> Array:
        """Return the labels of topic ``t`` as a float64 vector of its own."""
        column = self.matrix[:, [t]]
        column = column if isinstance(column, np.ndarray) else column.toarray()
        return np.array(column[:, 0], dtype=np.float64)

    @classmethod
    def read(cls, Y: Any, n_rows: int, topics: Any = None) -> TopicLabels:
        """Check labels as users give them.

        Parameters
        ----------
        Y : array, scipy.sparse matrix or array, pandas, polars or pyarrow table
            2-D, real, finite, ``n_rows`` rows and at least one column.
        n_rows : int
            Rows of the features.
        topics : sequence of hashable, optional
            Names of the columns; those of a table if None, else 0, 1, 2, ...
        """
        if Y is None:
            raise ValueError("Y is None; give a label for each row and topic")
        names = topics
        if frames.is_frame(Y):
            names = frames.all_column_names(Y) if topics is None else topics
            coo = frames.sparse_part(Y)
            Y = frames.to_matrix(Y, "Y") if coo is None else coo
        elif np.ma.isMaskedArray(Y):  # whose mask scikit-learn does not see
            Y = frames.as_array(Y, "Y")
        # Small integers stay small: a topic becomes float64 when its turn comes.
        matrix: Any = check_array(Y, accept_sparse="csc", ensure_min_samples=0, input_name="Y")
        if not isinstance(matrix, np.ndarray) and not matrix.has_canonical_format:
            matrix = matrix.copy() if matrix is Y else matrix
            matrix.sum_duplicates()  # each label once
        if matrix.shape[0] != n_rows:
            transposed = "; it looks transposed: pass Y.T" if matrix.shape[1] == n_rows else ""
            raise ValueError(
                f"inconsistent lengths: X has {n_rows} rows but Y has {matrix.shape[0]}{transposed}"
            )
        return cls(matrix, _names(names, matrix.shape[1]), names is not None)


def positions_of(wanted: Any, topics: Array) -> Array:
    """Return where the topics ``wanted``, one name or several, are among ``topics``."""
    places = {name: t for t, name in enumerate(topics.tolist())}
    if isinstance(wanted, str | bytes) or not isinstance(wanted, Iterable):
        wanted = [wanted]
    names = wanted.tolist() if isinstance(wanted, np.ndarray) else list(wanted)
    for name in names:
        if name not in places:
            known = ", ".join(map(repr, topics[:3].tolist()))
            raise ValueError(f"there is no topic {name!r}; topics_ begins with {known}")
    return np.array([places[name] for name in names], dtype=np.int64)


def _names(names: Any, n_topics: int) -> Array:
    """The names as an array, each once."""
    if names is None:
        return np.arange(n_topics)
    if isinstance(names, str | bytes) or not isinstance(names, Iterable):
        raise TypeError(f"topics must be a sequence of names, got {names!r}")
    listed: Sequence[Hashable] = names.tolist() if isinstance(names, np.ndarray) else list(names)
    if len(listed) != n_topics:
        raise ValueError(f"Y has {n_topics} columns but topics has {len(listed)} names")
    for name, n_times in Counter(listed).items():
        if n_times > 1:
            raise ValueError(f"the topic {name!r} occurs twice; names of topics must differ")
    if len({type(name) for name in listed}) == 1 and isinstance(listed[0], str | int):
        return np.asarray(listed)
    array = np.empty(n_topics, dtype=object)  # 1 and "1" differ; np.asarray would merge them
    array[:] = listed
    return array


_SAMPLE, _FIT = 0, 1  # what the seeds of a topic are for


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

    def __init__(
        self,
        estimator: LinearRanker,
        rows: Rows,
        names: tuple[str, ...] | None,
        labels: TopicLabels,
        share: float | None,
        seed: int,
        n_jobs: int | None,
    ) -> None:
        """Prepare what the topics have in common; ``estimator`` is a clone, to be changed here."""
        _check_options(estimator, share)
        params = estimator.get_params(deep=False)
        scale = choose_scale(params.get("scale", "none"), rows, n_jobs)
        self.scaling = scaling = Scaling.fit(scale, rows, n_jobs=n_jobs)
        if params.get("coef_bounds") is not None:
            # They bind coefficients of raw features, which may be called by their names.
            data = Dataset(rows, np.zeros(0), feature_names=names)
            bounds = weight_bounds(False, params["coef_bounds"], data, scaling.factors)
            estimator.set_params(coef_bounds=None if bounds is None else np.column_stack(bounds))
        self.rows = scaling.applied(Dataset(rows, np.zeros(0)), n_jobs=n_jobs).rows
        common = {"scale": "none", "n_jobs": 1, "verbose": 0}
        estimator.set_params(**{name: common[name] for name in common.keys() & params.keys()})
        if share is None and hasattr(estimator, "_prepare_rows"):
            estimator._prepare_rows(self.rows)  # what it needs beside the rows, once for all topics
        self.template, self.labels, self.share, self.seed = estimator, labels, share, seed

    def __call__(self, t: int) -> TopicFit:
        """The model of topic ``t``."""
        start = time.perf_counter()
        labels = self.labels.of(t)
        is_above = labels > labels.min()
        if not is_above.any():
            return TopicFit()
        ranker = copy.copy(self.template)
        if hasattr(ranker, "random_state"):
            ranker.random_state = seed_of_part(self.seed, t, _FIT)
        rows, weight = self.rows, None
        if self.share is not None:
            index = self._sample(t, is_above)
            rows, labels = rows.take(index), labels[index]
            weight = _weights(is_above[index], len(is_above))
            margin: Any = getattr(ranker, "margin", None)
            if is_by_row(margin) and len(margin) == len(is_above):
                ranker.margin = np.asarray(margin)[index]
            if getattr(ranker, "sampling", None) == "query-level":
                weight = None  # it draws a row of a level, whatever the size of the level
        try:
            ranker.fit(rows, labels, sample_weight=weight)
        except Exception as error:
            raise self._error_of_topic(t, error) from error
        w = self.scaling.fold(ranker.coef_)
        columns = np.flatnonzero(w).astype(np.int32)
        training = dict(ranker.model_.training) | {"topic": str(self._name(t))}
        if self.share is not None:
            training["negative_sampling"] = self.share
        seconds = time.perf_counter() - start
        return TopicFit(columns, w[columns], training, _has_converged(ranker), seconds)

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

    def _error_of_topic(self, t: int, error: Exception) -> Exception:
        """The same error, telling the topic."""
        message = f"topic {self._name(t)!r}: {error}"
        try:
            return type(error)(message)
        except Exception:  # of a type that takes more than a message
            return RuntimeError(message)


def check_share(share: Any) -> None:
    """Raise ValueError for a share of negatives that is none."""
    if share is not None and not (is_number(share) and 0.0 < float(share) <= 1.0):
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


def _has_converged(ranker: Any) -> bool:
    if hasattr(ranker, "converged_"):
        return bool(ranker.converged_)
    return ranker.tol is None or ranker.stopped_ != "n_steps"
