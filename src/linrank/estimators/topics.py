"""PerQueryRanker: one model for each topic over one matrix of features."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, validate_data

from linrank import _core
from linrank.data.frames import column_names
from linrank.data.rows import Rows, as_rows
from linrank.errors import ConvergenceWarning, DataWarning, NoPairsError, check_natural
from linrank.estimators import topic_models
from linrank.estimators.base import LinearRanker
from linrank.methods.ground import tell
from linrank.metrics import Convention, Evaluation, evaluate
from linrank.metrics import convention as conventions
from linrank.metrics.evaluate import measures_of
from linrank.metrics.measures import Metric
from linrank.models.linear import check_scores
from linrank.system.resources import check_fits, resolve
from linrank.system.seeds import seed_of


def map_threads(
    n_items: int,
    work: Callable[[int], Any],
    n_threads: int = 1,
    progress: Callable[[int], None] | None = None,
) -> list[Any]:
    """The results of ``work(i)`` for every i below `n_items`, on `n_threads` threads.

    The error of the lowest item is raised, the same one on any number of threads. After an error
    or Ctrl-C no other item is begun, and those on their way are finished.

    Parameters
    ----------
    n_items : int
        How many there are.
    work : callable
        It may run in several threads at once.
    n_threads : int
        1 works in the calling thread.
    progress : callable, optional
        Called in the calling thread with the number of items that are done.
    """
    with ThreadPoolExecutor(max(1, n_threads)) as pool:
        # On one thread the work is done here, where Ctrl-C ends an item in its midst.
        calls = [
            partial(work, i) if n_threads <= 1 else pool.submit(work, i).result
            for i in range(n_items)
        ]
        found = []
        try:
            for n_done, call in enumerate(calls, start=1):
                found.append(call())
                if progress is not None:
                    progress(n_done)
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
    return found


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

    def __init__(
        self,
        estimator: Any,
        *,
        negative_sampling: float | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.estimator = estimator
        self.negative_sampling = negative_sampling
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

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
        topic_models.check_share(self.negative_sampling)
        estimator = _copy_of(self.estimator)
        n_threads = resolve(self.n_jobs)
        rows = as_rows(X, n_jobs=self.n_jobs)
        labels = topic_models.TopicLabels.read(Y, rows.shape[0], topics)
        validate_data(self, X, skip_check_array=True)
        state = self.random_state
        if state is None:
            state = getattr(estimator, "random_state", None)
        trainer = topic_models.Trainer(
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
        labels = topic_models.TopicLabels.read(Y, rows.shape[0], topics)
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
        fits: list[topic_models.TopicFit],
        topics: NDArray[Any],
        trainer: topic_models.Trainer,
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
        self.coef_ = topic_models.stack_weights(fits, trainer.rows.shape[1])
        self.models_ = topic_models.TopicModels(self.coef_, trainings, trainer.scaling, names)
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
        return topic_models.positions_of(topics, self.topics_)

    def _columns(self, labels: topic_models.TopicLabels) -> NDArray[np.int64]:
        """The topic of each column of labels to compare with."""
        if labels.is_named:
            return topic_models.positions_of(labels.topics, self.topics_)
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
