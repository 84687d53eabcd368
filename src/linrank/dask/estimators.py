"""The estimators of a Dask cluster: as in memory, with parameters that say which cluster."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from linrank.dask.checkpoints import on_cluster
from linrank.dask.partitions import Partitions, partitions_of
from linrank.dask.scoring import evaluate, predict
from linrank.data.queries import UNSAID
from linrank.estimators import cross_validation as search
from linrank.estimators.base import LinearRanker, MethodRanker, SparseRanker
from linrank.estimators.domination import DominationRanker as InMemoryDominationRanker
from linrank.estimators.ranksvm import RankSVM as InMemoryRankSVM
from linrank.methods import DOMINATION, RANKSVM
from linrank.methods import parameters as settings
from linrank.methods.base import Task, defaults_of, takes
from linrank.methods.search import certified_path
from linrank.metrics import parse_scoring
from linrank.parts import folds_of, weighs_by_measure
from linrank.ranksvm.path import PathResult, as_Cs
from linrank.solvers.result import Callback


@dataclass(eq=False, repr=False, kw_only=True)
class ClusterParameters:
    """What only a cluster has."""

    client: Any = None
    on_split: str = "repair"
    patience: float = 60.0


@dataclass(eq=False, repr=False, kw_only=True)
class KeptParameters(ClusterParameters):
    """And what only a training there has."""

    checkpoint: Any = None


# What means nothing on a cluster beyond its default, and what to do instead.
_REMEDIES = {
    "missing": "fill them in before, workers know their own rows only",
    "memory_limit": "the rows lie on the workers",
    "n_closest": "it counts listed pairs; use pairs='all' or 'adjacent'",
    "n_random": "it counts listed pairs; use pairs='all' or 'adjacent'",
    "random_state": "nothing is random here",
}


class ClusterRanker(LinearRanker):
    """Fits and scores rows that lie on the workers of a Dask cluster.

    A subclass has the parameters of a cluster, those of the estimator in memory that ``to_local``
    makes, and sets ``_in_memory`` to its class.
    """

    _in_memory: type[LinearRanker]
    _gathers = False  # whether it can train on queries that lie in several partitions

    def decision_function(self, X: Any, qid: Any = None) -> Any:
        """Scores of rows, lazy: a dask array with the partitions of `X`.

        Parameters
        ----------
        X : dask array or dataframe, or list of delayed blocks
            Raw rows. Rows in memory are scored at once.
        qid : dask array or series, list of delayed blocks, or name of a column
            Query of each row; only ``scale="query"`` looks at it, and needs it.
        """
        check_is_fitted(self, "model_")
        if isinstance(X, np.ndarray):
            return super().decision_function(X, qid=qid)
        return predict(self.model_, X, qid=qid)

    def rank(self, X: Any, qid: Any = None, k: int | None = None) -> Any:
        """Rank of each row within its query, from 1, of rows in memory.

        Partitions may cut queries, so distributed rows are refused.

        Parameters
        ----------
        X : matrix of shape (n_rows, n_features)
            Raw rows, as a NumPy array.
        qid, k
            As in :meth:`linrank.RankSVM.rank`.
        """
        if not isinstance(X, np.ndarray):
            raise TypeError(
                f"rank() needs the rows of each query together, in a NumPy array, got "
                f"{type(X).__name__}; compute the rows, or rank the scores of predict()"
            )
        return super().rank(X, qid=qid, k=k)

    def score(self, X: Any, y: Any = None, *, qid: Any = None, sample_weight: Any = None) -> float:
        """Share of the pairs that the scores put in the right order, over all partitions.

        Parameters
        ----------
        X, y, qid
            Distributed rows, labels and query ids, as in ``fit``.
        sample_weight : None
            Weights are not supported here; `to_local` has them.
        """
        if sample_weight is not None:
            raise ValueError("score() on a cluster takes no sample_weight; use to_local().score")
        self._check_qid("score", qid)
        found = evaluate(
            y,
            self.decision_function(X, qid=qid),
            qid,
            metrics="pairwise_accuracy",
            client=self.client,
            patience=self.patience,
        )
        return float(found["pairwise_accuracy"])

    def to_local(self) -> Any:
        """The fitted estimator of the same name in ``linrank``, without a cluster."""
        check_is_fitted(self, "model_")
        own = self.get_params(deep=False)
        clustered = defaults_of(KeptParameters)
        local = self._in_memory(**{k: v for k, v in own.items() if k not in clustered})
        for name, value in vars(self).items():
            if name.endswith("_") and not name.startswith("_"):
                setattr(local, name, value)
        return local

    def __sklearn_clone__(self) -> Any:
        """A copy without what was fitted; the client is shared, for it cannot be copied."""
        from sklearn.base import clone

        own = self.get_params(deep=False)
        shared = {"client": own.pop("client")}
        return type(self)(**{k: clone(v, safe=False) for k, v in own.items()}, **shared)

    # ---- for fit ---------------------------------------------------------------------------------

    def _check(self, query_weight: Any) -> None:
        """Raise ValueError for what a cluster cannot serve, before it is asked to read anything."""
        self.method.recipe(self, Partitions.where, query_weight)
        defaults = defaults_of(type(self))
        for name, remedy in _REMEDIES.items():
            value, only = getattr(self, name, None), defaults.get(name)
            if name == "random_state" and getattr(self, "interactions", None):
                continue  # landmarks are drawn
            if value is not only and value != only:
                raise ValueError(
                    f"{name}={value!r} does not go with linrank.dask.{type(self).__name__}, which "
                    f"takes {name}={only!r}; {remedy}"
                )

    @contextmanager
    def _place(
        self, X: Any, y: Any, qid: Any, sample_weight: Any, **options: Any
    ) -> Iterator[Partitions]:
        """The rows as partitions, forgotten at the end; what the fit shows of them."""
        is_unsaid, qid = qid is UNSAID, None if qid is UNSAID else qid
        options |= {"on_split": self.on_split, "patience": self.patience, "n_jobs": self.n_jobs}
        with partitions_of(
            X, y, qid, sample_weight, self.client, gathers=self._gathers, **options
        ) as data:
            if data.one_query and not self._gathers:
                raise ValueError(
                    f"without qid the rows of all {len(data.futures)} partitions are one query, "
                    "whose pairs are no sum over partitions; pass qid, or the rows in one partition"
                )
            if is_unsaid and data.query_ids is None:
                parts = data.summaries
                ends = np.array([[part.low, part.high] for part in parts])
                levels = max(int(part.n_levels.max()) for part in parts)
                self._warn_of_one_query(ends, data.n_rows, levels)
            yield data
            self._note_columns(data.columns)
            self.repair_ = data.repair


class ClusterTrainer(ClusterRanker, MethodRanker):
    """The fit of every estimator that trains one model on a cluster."""

    def fit(  # type: ignore[override]
        self,
        X: Any,
        y: Any = None,
        *,
        qid: Any = UNSAID,
        sample_weight: Any = None,
        query_weight: Any = None,
        X_val: Any = None,
        y_val: Any = None,
        qid_val: Any = None,
        resume: bool = False,
    ) -> Any:
        """Learn ``coef_`` from labeled rows on the cluster.

        Parameters
        ----------
        X : dask array or dataframe, list of delayed blocks or of futures, Store or its path
            The rows. A store is read by the workers, which must see its folder; it has its own
            labels and queries.
        y, qid, sample_weight : dask array or series, list of blocks, or name of a column
            Labels, queries and weights of the rows, in any partitions. Queries may come in any
            order, and lie in several partitions.
        query_weight : mapping from query id to weight
            Query weights ``c >= 0``.
        X_val, y_val, qid_val : validation data, in memory
            `scoring` is computed on them at every iteration.
        resume : bool, default=False
            Begin with the weights that the file `checkpoint` holds, where there is one.

        Returns
        -------
        self
            The fitted estimator.
        """
        self._check(query_weight)
        kept = {"checkpoint": self.checkpoint, "resume": resume, "keep": weighs_by_measure(self)}
        with self._place(X, y, qid, sample_weight, **kept) as place:
            validation = (X_val, y_val, qid_val, None, None, None)
            sets = self._validation_sets(place.columns, validation)
            self._train(place, place.columns, sets, query_weight)
            self.n_rounds_, self.n_repeated_ = place.n_rounds, place.n_repeated
        return self


@dataclass(eq=False, repr=False)
class RankSVM(ClusterTrainer, settings.RankSVMParameters, KeptParameters):
    """:class:`linrank.RankSVM` for rows on a Dask cluster: the same objective, the same solver.

    Every pass over the rows is a round of tasks, one a worker; Newton's method itself runs where
    ``fit`` is called. A lost worker costs its part of a round, and changes no bit of the result.

    Parameters
    ----------
    C, loss, pairs, pair_weighting, n_rounds, tol, max_iter, scale, query_normalization
        As in :class:`linrank.RankSVM`; of `pairs` ``"all"`` and ``"adjacent"``.
    positive, coef_bounds
        Bounds of the coefficients, as there.
    warm_start, early_stopping, n_iter_no_change, scoring, callback, verbose
        As in :class:`linrank.RankSVM`. Validation data are in memory.
    n_jobs : int or None, default=None
        Threads of the work on a sample, which is done here; a worker uses its own threads.
    client : distributed.Client or None, default=None
        None takes the one in force.
    on_split : {"repair", "error", "gather"}, default="repair"
        What to do with a query whose rows lie in several partitions: bring them together, raise, or
        leave them and gather the scores of all rows, 8 bytes each, for every product. Without `qid`
        all rows are one query, and scores are gathered where there are several partitions.
    checkpoint : str, os.PathLike or None, default=None
        A file for the weights of each iteration, to go on from when the cluster is lost.
    patience : float, default=60
        Seconds for which no worker may be there, or the scheduler silent, before
        :class:`linrank.errors.ClusterError` is raised.
    curves, n_knots, interactions, increasing, decreasing, random_state
        Of an additive model, as there; knots, and landmarks, are those of a sample of 10,000 rows.
    solver, n_closest, n_random
        Only their defaults; another value is refused.

    Attributes
    ----------
    coef_, n_iter_, converged_, objective_, duality_gap_, kkt_residual_, history_, model_
        As in :class:`linrank.RankSVM`, as are ``best_iteration_``, ``n_pairs_``, ``n_queries_``,
        ``needs_qid_``, ``n_features_in_`` and ``feature_names_in_``.
    repair_ : Repair
        Queries and rows that were moved to make split queries whole.
    n_rounds_, n_repeated_ : int
        Rounds of tasks, and how many were repeated because a worker was lost.
    """

    method = on_cluster(RANKSVM)
    _in_memory = InMemoryRankSVM
    _gathers = True


@dataclass(eq=False, repr=False)
class DominationRanker(ClusterTrainer, SparseRanker, settings.DominationParameters, KeptParameters):
    """:class:`linrank.DominationRanker` with its l2 penalty for rows on a Dask cluster.

    Minimizes ``L(w) + α‖w‖²`` by Newton's method, L the domination loss, in rounds of tasks as
    :class:`linrank.dask.RankSVM` does.

    Parameters
    ----------
    penalty : {"l2"}, default="l2"
        The l1 penalty needs columns, and is for data in memory.
    alpha, margin, layers, tol, max_iter, scale
        As in :class:`linrank.DominationRanker`; `margin` is None, a number, a name, a
        tuple or a function of the labels.
    warm_start, early_stopping, n_iter_no_change, scoring, callback, verbose
        As in :class:`linrank.DominationRanker`. Validation data are in memory.
    n_jobs, client, on_split, checkpoint, patience
        As in :class:`linrank.dask.RankSVM`.
    curves, n_knots, interactions, random_state
        As in :class:`linrank.dask.RankSVM`.
    pooled, solver, feature_induction, negative_sampling
        Only their defaults (and ``solver="newton"``); another value is refused.

    Attributes
    ----------
    coef_, n_iter_, converged_, objective_, duality_gap_, kkt_residual_, history_, model_
        As in :class:`linrank.DominationRanker`.
    repair_, n_rounds_, n_repeated_
        As in :class:`linrank.dask.RankSVM`.
    """

    penalty: str = "l2"
    method = on_cluster(DOMINATION)
    _in_memory = InMemoryDominationRanker


@dataclass(eq=False, repr=False)
class RankSVMCV(ClusterRanker, search.RankSVMCV, ClusterParameters):
    """:class:`linrank.RankSVMCV` for rows on a Dask cluster: the same folds, the same choice.

    For every fold a regularization path is fitted on the queries of the other folds, which stay on
    their workers, and its models are measured there on the queries of the fold.

    Parameters
    ----------
    Cs, cv, scoring, selection
        As in :class:`linrank.RankSVMCV`. Folds are those that the same rows in memory would have;
        validation data ``cv=(X_val, y_val, qid_val)`` are in memory.
    loss, pairs, pair_weighting, n_rounds, tol, max_iter, scale, query_normalization
        As in :class:`linrank.RankSVMCV`; of `pairs` ``"all"`` and ``"adjacent"``.
    positive, coef_bounds
        Bounds of the coefficients, as there.
    n_jobs : int or None, default=None
        Threads of what is done here; a worker uses its own threads.
    verbose : int, default=0
        Report each model when positive.
    client, on_split, patience
        As in :class:`linrank.dask.RankSVM`.
    curves, n_knots, interactions, increasing, decreasing, random_state
        As in :class:`linrank.dask.RankSVM`; every fold has the knots of its training part.
    n_closest, n_random, solver, missing, memory_limit
        Only their defaults; another value is refused.

    Attributes
    ----------
    C_, Cs_, scores_, mean_scores_, best_score_, path_
        As in :class:`linrank.RankSVMCV`.
    coef_, n_iter_, converged_, objective_, duality_gap_, kkt_residual_, history_, model_
        As in :class:`linrank.RankSVMCV`.
    repair_ : Repair
        Queries and rows that were moved to make split queries whole.
    """

    _in_memory = search.RankSVMCV
    _gathers = True

    def fit(  # type: ignore[override]
        self,
        X: Any,
        y: Any = None,
        *,
        qid: Any = UNSAID,
        sample_weight: Any = None,
        query_weight: Any = None,
    ) -> RankSVMCV:
        """Choose C and learn ``coef_`` with it, on the cluster.

        Parameters
        ----------
        X, y, qid, sample_weight, query_weight
            The training data, as in :meth:`linrank.dask.RankSVM.fit`.

        Returns
        -------
        RankSVMCV
            The fitted estimator.
        """
        as_Cs(self.Cs)
        parse_scoring(self.scoring)
        self._check(query_weight)
        with self._place(X, y, qid, sample_weight, keep=True) as place, place.open_data() as data:
            folds = folds_of(self.cv, data, np.empty((data.n_rows, 0)))
            self._search(data, place.columns, folds, query_weight)
        return self


@takes(settings.RankSVMPath)
def ranksvm_path(
    X: Any,
    y: Any = None,
    qid: Any = None,
    *,
    Cs: Any = "auto",
    sample_weight: Any = None,
    query_weight: Any = None,
    client: Any = None,
    on_split: str = "repair",
    patience: float = 60.0,
    n_jobs: int | None = None,
    callback: Callback | None = None,
    **options: Any,
) -> PathResult:
    """Fit ``RankSVM`` for many C on a cluster, each model certified to ``tol``.

    The models are those of :func:`linrank.ranksvm_path` on the same rows, to within their gaps.
    The partitions stay on their workers from the first C to the last.

    Parameters
    ----------
    X, y, qid, sample_weight, query_weight
        The data, as in :meth:`linrank.dask.RankSVM.fit`.
    Cs, loss, pair_weighting, n_rounds, tol, max_iter, scale, query_normalization
        As in :func:`linrank.ranksvm_path`.
    positive, coef_bounds
        Bounds of the coefficients, as there.
    pairs, n_closest, n_random, random_state
        As there; ``"closest"`` and ``"pruned"`` where scores are gathered only (`on_split`).
    client : dask.distributed.Client or None
        The cluster; None takes the client in force.
    on_split : {"repair", "error", "gather"}, default="repair"
        What to do with a query whose rows lie in several partitions: move them to one, refuse, or
        leave them and gather the scores of all rows, 8 bytes each, for every product.
    patience : float, default=60
        Seconds for which no worker may be there before the fit is given up.
    n_jobs : int or None
        Threads of what is done here: work on samples, and the sweep of gathered scores.
    callback : callable or None
        Called with the state of each iterate, ``"C"`` included; returning True ends the path.

    Returns
    -------
    PathResult
    """
    as_Cs(Cs)
    how: dict[str, Any] = {"on_split": on_split, "patience": patience, "n_jobs": n_jobs}
    with (
        partitions_of(X, y, qid, sample_weight, client, gathers=True, keep=True, **how) as place,
        place.open_data() as data,
    ):
        parameters = settings.RankSVMPath(Cs=Cs, n_jobs=n_jobs, **options)
        return certified_path(Task(data, parameters, query_weight=query_weight), callback)
