"""PerQueryRanker: one model for each topic over one matrix of features."""

from __future__ import annotations

import copy
import math
import time
import warnings
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator, clone
from sklearn.utils import Tags
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from linrank import _core
from linrank.data import Array, Dataset, Rows, Scaling, as_rows, column_names, frames, weight_bounds
from linrank.domination.layering import margin_form
from linrank.errors import ConvergenceWarning, DataWarning, NoPairsError, check_natural, check_share
from linrank.estimators.base import LinearRanker
from linrank.methods.ground import choose_scale, tell
from linrank.metrics import Convention, Evaluation, evaluate
from linrank.metrics import convention as conventions
from linrank.metrics.evaluate import measures_of
from linrank.metrics.measures import Metric
from linrank.models.linear import LinearModel, check_scores
from linrank.system import check_fits, map_threads, resolve, seed_of, seed_of_part

# ---- labels and models of topics ----------------------------------------------------------------


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
        # Small integers stay small: a topic becomes float64 when its turn comes. What is specific
        # to topics is checked below.
        matrix: Any = check_array(
            Y,
            accept_sparse="csc",
            ensure_2d=False,
            allow_nd=True,
            ensure_all_finite=False,
            ensure_min_samples=0,
            ensure_min_features=0,
            input_name="Y",
        )
        if matrix.ndim != 2:
            raise ValueError(
                f"Y must be 2-D, rows × topics, got shape {matrix.shape}; for one topic fit the "
                "estimator itself, or pass Y.reshape(-1, 1)"
            )
        if not isinstance(matrix, np.ndarray) and not matrix.has_canonical_format:
            matrix = matrix.copy() if matrix is Y else matrix
            matrix.sum_duplicates()  # each label once
        if matrix.shape[0] != n_rows:
            transposed = "; it looks transposed: pass Y.T" if matrix.shape[1] == n_rows else ""
            raise ValueError(
                f"inconsistent lengths: X has {n_rows} rows but Y has {matrix.shape[0]}{transposed}"
            )
        if matrix.shape[1] == 0:
            raise ValueError("Y has no column; give at least one topic")
        named = _names(names, matrix.shape[1])
        _check_finite(matrix, named)
        return cls(matrix, named, names is not None)


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


def _check_finite(matrix: Any, topics: Array) -> None:
    values = matrix if isinstance(matrix, np.ndarray) else matrix.data
    if values.dtype.kind != "f" or np.isfinite(values).all():
        return
    with np.errstate(invalid="ignore"):
        rows, columns = (matrix * 0.0).nonzero()  # dense or sparse: NaN, or 0 for what is finite
    row, t = int(rows[0]), int(columns[0])
    what = "NaN" if np.isnan(matrix[row, t]) else "infinity (inf)"
    name = topics[t : t + 1].tolist()[0]
    raise ValueError(
        f"Input Y contains {what} at row {row}, column {t} (topic {name!r}); labels must be finite"
    )


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
            if margin_form(margin) == "rows" and len(margin) == len(is_above):
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


# ---- the estimator ------------------------------------------------------------------------------


_EVERY = 1.0  # seconds between two lines


class Progress:
    """Reports now and then how many topics are done."""

    def __init__(self, n_topics: int) -> None:
        self._n_topics = n_topics
        self._start = self._last = time.perf_counter()

    def __call__(self, n_done: int) -> None:
        now = time.perf_counter()
        is_end = n_done == self._n_topics
        if now - self._last < _EVERY and not is_end:
            return
        self._last, took = now, now - self._start
        left = took / n_done * (self._n_topics - n_done)
        rest = "" if is_end else f", about {left:.0f} s left"
        tell(f"{n_done:,} of {self._n_topics:,} topics, {took:.1f} s{rest}")


def top_rows(scores: NDArray[np.float64], k: int) -> NDArray[np.int64]:
    """Rows of the k highest scores, best first, equal ones in input order; O(n + k log k).

    Examples
    --------
    >>> top_rows(np.array([0.5, 2.0, 0.5, 0.5, 1.0]), 3).tolist()
    [1, 4, 0]
    """
    place = len(scores) - k
    least = np.partition(scores, place)[place]
    above = np.flatnonzero(scores > least)
    level = np.flatnonzero(scores == least)[: k - len(above)]
    found: NDArray[np.int64] = np.concatenate([above, level])
    return found[np.argsort(-scores[found], kind="stable")]


def join_topics(values: list[Evaluation], topics: NDArray[Any], rules: Convention) -> Evaluation:
    """The evaluations of topics, each of one query, as one; means are over topics.

    Measures that pool the pairs of queries do not pool those of topics.
    """
    per_topic = {
        name: np.array([one.per_query[name][0] for one in values]) for name in values[0].means
    }
    means = {}
    for name, column in per_topic.items():
        judged = column[~np.isnan(column)]
        means[name] = float(judged.mean()) if judged.size else float("nan")
    return Evaluation(means, per_topic, topics, rules)


_METRICS = ("map", "p@10", "domination_error", "all_pairs_error")


@dataclass(eq=False, repr=False)
class PerQueryRanker(BaseEstimator):  # type: ignore[misc]
    """One linear model for each topic, all over the same rows.

    Topic t is one query: every row takes part in it, with the label ``Y[row, t]``. Its model is
    that of ``estimator.fit(X, Y[:, t])``, but the matrix is checked, scaled and kept in memory
    once, and topics are trained side by side, each on one thread.

    Parameters
    ----------
    estimator : RankSVM, SGDRanker or DominationRanker
        What learns one topic. It is copied, never fitted itself; its ``n_jobs``, ``verbose`` and
        ``random_state`` are set for it. ``SGDRanker("pa")`` is PAMIR: passive-aggressive steps on
        a random positive and a random negative.
    negative_sampling : float or None, default=None
        Let a fit see the rows above the topic's lowest label and this share of those of the lowest
        one, > 0 and <= 1: exactly ``ceil(share·n)`` of n, drawn anew for every topic, each
        weighing ``n / ceil(share·n)``, so that ``C`` and ``alpha`` keep their meaning. These rows
        are copied for the time of the fit. None shows all rows, and copies none.
    random_state : int, RandomState, Generator or None, default=None
        Seed of the topics, each of which has one of its own: with an integer the same data give
        the same bits on any number of threads. None takes that of the estimator, if it has one.
    n_jobs : int or None, default=None
        Threads, each with a topic of its own; None or -1 means all cores available to the process.
    verbose : int, default=0
        Report progress when positive, at most every second: to the logger ``linrank`` if it is set
        up for INFO, else to standard error, in a notebook to standard output.

    Attributes
    ----------
    topics_ : ndarray of shape (n_topics,)
        Names of the topics.
    models_ : sequence of LinearModel or None
        The model of each topic, made when asked for; None for a topic whose labels are all equal.
    coef_ : scipy.sparse.csr_array of shape (n_topics, n_features)
        Coefficients of the raw features, a row for each topic; empty for one without a model.
    n_nonzero_ : ndarray of shape (n_topics,)
        Non-zero coefficients of each topic.
    converged_ : ndarray of shape (n_topics,)
        False where the estimator did not reach its tolerance, or there is no model.
    fit_seconds_ : ndarray of shape (n_topics,)
        Time of each fit; nan where there was none.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features, when `X` had string column names.

    Examples
    --------
    >>> from linrank import PerQueryRanker, RankSVM
    >>> X = [[0.0, 1.0], [1.0, 1.0], [2.0, 0.0], [5.0, 1.0], [4.0, 0.0]]
    >>> Y = [[0, 1], [0, 1], [0, 0], [1, 1], [1, 0]]  # rows × topics
    >>> ranker = PerQueryRanker(RankSVM()).fit(X, Y, topics=["first", "second"])
    >>> ranker.rank(X, k=2).tolist()  # the first two rows of each topic
    [[3, 4], [0, 1]]
    """

    estimator: Any
    _: KW_ONLY
    negative_sampling: float | None = None
    random_state: Any = None
    n_jobs: int | None = None
    verbose: int = 0

    def fit(self, X: Any, Y: Any, *, topics: Any = None) -> PerQueryRanker:
        """Learn a model for each topic.

        Parameters
        ----------
        X : matrix of shape (n_rows, n_features)
            NumPy or SciPy matrix or data frame; float32 stays float32.
        Y : matrix of shape (n_rows, n_topics)
            Labels, real numbers, as a NumPy or SciPy matrix or data frame; what a sparse matrix
            leaves out is 0. A topic whose labels are all equal gets no model, and a warning tells.
        topics : sequence of hashable
            Names of the topics, in the order of the columns; those of a data frame if None, else
            0, 1, 2 and so on.

        Returns
        -------
        PerQueryRanker
            The fitted estimator.
        """
        share = self.negative_sampling
        check_share("negative_sampling", share, " of the rows of the lowest label")
        estimator = _copy_of(self.estimator)
        n_threads = resolve(self.n_jobs)
        rows = as_rows(X, n_jobs=self.n_jobs)
        labels = TopicLabels.read(Y, rows.shape[0], topics)
        validate_data(self, X, skip_check_array=True)
        state = self.random_state
        if state is None:
            state = getattr(estimator, "random_state", None)
        trainer = Trainer(
            estimator,
            rows,
            column_names(X),
            labels,
            self.negative_sampling,
            seed_of(state),
            self.n_jobs,
        )
        progress = Progress(labels.n_topics) if self.verbose > 0 else None
        with warnings.catch_warnings():
            # One warning at the end, instead of one a topic; and a topic is one query.
            warnings.simplefilter("ignore", ConvergenceWarning)
            warnings.simplefilter("ignore", DataWarning)
            fits = map_threads(labels.n_topics, trainer, n_threads, progress)
        return self._adopt(fits, labels.topics, trainer, column_names(X))

    def decision_function(self, X: Any, *, topics: Any = None) -> NDArray[np.float64]:
        """Scores of rows for topics; within a topic, higher is better.

        Parameters
        ----------
        X : matrix of shape (n_rows, n_features)
            Raw rows.
        topics : a name or a sequence of names from ``topics_``
            The topics to score; None for all. A few at a time where all scores do not fit in
            memory.

        Returns
        -------
        ndarray of shape (n_rows, number of topics)
            0 for a topic without a model.
        """
        rows = self._rows(X)
        chosen = self._positions(topics)
        shape = (rows.shape[0], len(chosen))
        check_fits(8 * shape[0] * shape[1], f"scores of {shape}", "pass fewer topics at a time")
        scores = np.empty(shape, order="F")  # a topic at a time is written

        def fill(place: int) -> None:
            scores[:, place] = self._scores(rows, int(chosen[place]))

        map_threads(len(chosen), fill, resolve(self.n_jobs))
        return scores

    def predict(self, X: Any) -> NDArray[np.float64]:
        """The same scores as :meth:`decision_function`, for all topics."""
        return self.decision_function(X)

    def rank(self, X: Any, k: int = 10, *, topics: Any = None) -> NDArray[np.int64]:
        """The rows with the highest scores of each topic.

        Parameters
        ----------
        X : matrix of shape (n_rows, n_features)
            Raw rows.
        k : int, default=10
            How many, >= 1; all rows if there are fewer.
        topics : a name or a sequence of names from ``topics_``
            None for all.

        Returns
        -------
        ndarray of shape (number of topics, k)
            Row numbers, best first; equal scores in input order.
        """
        check_natural("k", k)
        rows = self._rows(X)
        chosen = self._positions(topics)
        n_best = min(int(k), rows.shape[0])

        def find(place: int) -> NDArray[np.int64]:
            return top_rows(self._scores(rows, int(chosen[place])), n_best)

        found = map_threads(len(chosen), find, resolve(self.n_jobs))
        return np.array(found, dtype=np.int64).reshape(len(chosen), n_best)

    def evaluate(
        self,
        X: Any,
        Y: Any,
        metrics: Metric | Iterable[Metric] = _METRICS,
        *,
        topics: Any = None,
        convention: str | Convention = "linrank",
    ) -> Evaluation:
        """Measures of every topic, and their means.

        Parameters
        ----------
        X : matrix of shape (n_rows, n_features)
            Raw rows.
        Y : matrix of shape (n_rows, n_topics)
            Labels, as in :meth:`fit`. With names, those of a data frame or of `topics`, the columns
            may be some of the topics in any order; without, they are all topics in order.
        metrics : names or measures
            As in :func:`linrank.evaluate`.
        topics : sequence of names from ``topics_``
            Names of the columns.
        convention : str or Convention
            As in :func:`linrank.evaluate`, but a topic without relevant rows has no part in a mean.
            Ties of a topic whose scores are all 0 are averaged.

        Returns
        -------
        Evaluation
            The means over topics; ``per_query`` has the value of each topic, NaN where it has no
            part in the mean, and ``query_ids`` the names.
        """
        rows = self._rows(X)
        labels = TopicLabels.read(Y, rows.shape[0], topics)
        chosen = self._columns(labels)
        rules = conventions(convention, empty="skip")
        wanted = measures_of(metrics)

        def judge(place: int) -> Evaluation:
            t = int(chosen[place])
            # Scores that are all equal rank nothing: the order of the input must not count.
            ties = rules if self.n_nonzero_[t] else conventions(rules, ties="average")
            how: dict[str, Any] = {"metrics": wanted, "convention": ties, "n_jobs": 1}
            return evaluate(labels.of(place), self._scores(rows, t), qid=None, **how)

        values = map_threads(len(chosen), judge, resolve(self.n_jobs))
        return join_topics(values, self.topics_[chosen], rules)

    def score(self, X: Any, Y: Any) -> float:
        """Mean over topics of the share of pairs that the scores put in the right order."""
        return float(self.evaluate(X, Y, "pairwise_accuracy")["pairwise_accuracy"])

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.estimator_type = "ranker"
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        tags.target_tags.single_output = False
        tags.input_tags.sparse = True
        return tags

    # ---- within ----------------------------------------------------------------------------------

    def _adopt(
        self,
        fits: list[TopicFit],
        topics: NDArray[Any],
        trainer: Trainer,
        names: tuple[str, ...] | None,
    ) -> PerQueryRanker:
        trainings = [one.training for one in fits]
        missing = np.array([training is None for training in trainings])
        converged = np.array([one.converged for one in fits])
        self.fit_seconds_ = np.array([one.seconds for one in fits])
        if missing.all():
            raise NoPairsError(
                f"none of the {len(fits)} topics has two different labels, so no pair can be "
                "formed; check that Y has a row for each row of X and a column for each topic"
            )
        _warn(missing, "have labels that are all equal, and get no model", topics, UserWarning)
        stalled = ~missing & ~converged
        _warn(stalled, "did not converge: see converged_", topics, ConvergenceWarning)
        self.topics_ = topics
        self.coef_ = stack_weights(fits, trainer.rows.shape[1])
        self.models_ = TopicModels(self.coef_, trainings, trainer.scaling, names)
        self.n_nonzero_ = np.diff(self.coef_.indptr)
        self.converged_ = converged
        return self

    def _rows(self, X: Any) -> Rows:
        check_is_fitted(self)
        rows = as_rows(X, n_jobs=self.n_jobs)
        validate_data(self, X, reset=False, skip_check_array=True)
        return rows

    def _positions(self, topics: Any) -> NDArray[np.int64]:
        if topics is None:
            return np.arange(len(self.topics_))
        return positions_of(topics, self.topics_)

    def _columns(self, labels: TopicLabels) -> NDArray[np.int64]:
        """The topic of each column of labels to compare with."""
        if labels.is_named:
            return positions_of(labels.topics, self.topics_)
        if labels.n_topics != len(self.topics_):
            raise ValueError(
                f"Y has {labels.n_topics} columns but there are {len(self.topics_)} topics; name "
                "the columns by topics="
            )
        return np.arange(labels.n_topics)

    def _scores(self, rows: Rows, t: int) -> NDArray[np.float64]:
        scores: NDArray[np.float64] = _core.scores(rows.core, self.models_.weights(t), None, 1)
        return check_scores(scores)


def _copy_of(estimator: Any) -> LinearRanker:
    if not isinstance(estimator, LinearRanker):
        what = f"the class {estimator.__name__}" if isinstance(estimator, type) else repr(estimator)
        raise TypeError(
            f"estimator must be a linear ranker of linrank, such as RankSVM() or SGDRanker(), got "
            f"{what}"
        )
    return clone(estimator)


def _warn(
    is_concerned: NDArray[np.bool_], what: str, topics: NDArray[Any], category: type[Warning]
) -> None:
    if is_concerned.any():
        first = topics[is_concerned][:1].tolist()[0]
        message = (
            f"{int(is_concerned.sum())} of {len(topics)} topics {what}; the first is {first!r}"
        )
        warnings.warn(message, category, stacklevel=4)
