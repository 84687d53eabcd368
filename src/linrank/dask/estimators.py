"""RankSVM and DominationRanker on a Dask cluster: as in memory, with four more parameters."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from sklearn.utils.validation import check_is_fitted

from linrank.dask.partitions import Partitions, partitions_of
from linrank.dask.training import (
    Options,
    Outcome,
    scaling_of,
    train_domination,
    train_ranksvm,
)
from linrank.data.bounds import weight_bounds
from linrank.data.dataset import Dataset
from linrank.errors import ConvergenceWarning
from linrank.estimators.base import LinearRanker, SparseRanker
from linrank.estimators.domination import DominationRanker as InMemoryDominationRanker
from linrank.estimators.ranksvm import RankSVM as InMemoryRankSVM
from linrank.methods.base import values_of
from linrank.methods.parameters import (
    DominationParameters,
    RankSVMParameters,
    defaults_of,
    plain,
)
from linrank.methods.ranksvm import options_of, settings_of
from linrank.options import DOMINATION, IN_MEMORY_ONLY
from linrank.pairs.layering import describe_margin
from linrank.parts.choices import check_domination, check_query_weight, check_rank
from linrank.parts.recipes import DominationRecipe, RankRecipe
from linrank.search.monitor import Monitor, validation_sets

if TYPE_CHECKING:
    from linrank.data.scaling import Scaling
    from linrank.models.linear import LinearModel

Refused = tuple[str, Any, str]  # parameter, the only value that it may have here, what to do


@plain
class ClusterParameters:
    """What only a cluster has."""

    client: Any = None
    on_split: str = "repair"
    checkpoint: Any = None
    patience: float = 60.0


class ClusterRanker(LinearRanker):
    """Fits and scores rows that lie on the workers of a Dask cluster.

    A subclass has the parameters ``client``, ``on_split``, ``checkpoint`` and ``patience``, those
    of the estimator in memory that ``to_local`` makes, and sets ``_in_memory`` to its class.
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
        from linrank.dask.scoring import predict

        check_is_fitted(self, "model_")
        if isinstance(X, np.ndarray):
            return super().decision_function(X, qid=qid)
        return predict(self.model_, X, qid=qid)

    def predict(self, X: Any, qid: Any = None) -> Any:
        """The same scores as :meth:`decision_function`."""
        return self.decision_function(X, qid=qid)

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
        from linrank.dask.evaluating import evaluate

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
        clustered = defaults_of(ClusterParameters)
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

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        qid: Any = None,
        sample_weight: Any = None,
        query_weight: Any = None,
        X_val: Any = None,
        y_val: Any = None,
        qid_val: Any = None,
        resume: bool = False,
    ) -> Any:
        """Learn ``coef_`` from labelled rows on the cluster.

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
        self._check()
        weights = check_query_weight(query_weight)
        with self._partitions(X, y, qid, sample_weight) as data:
            scaling = self._scaling(data)
            monitor = self._monitor(data, scaling, X_val, y_val, qid_val)
            options = self._run_options(data, scaling, monitor, resume)
            found, settings = self._solve(data, scaling, weights, options)
            self._finish(found, data, scaling, monitor, **settings)
        return self

    def _check(self) -> None:
        """Raise ValueError for a parameter that a cluster cannot serve."""
        raise NotImplementedError(f"{type(self).__name__} does not say what a cluster can serve")

    def _solve(
        self, data: Partitions, scaling: Scaling, weights: Any, options: Options
    ) -> tuple[Outcome, dict[str, Any]]:
        """Train; what was found, and what the model is to know of the parameters."""
        raise NotImplementedError(f"{type(self).__name__} does not say how it trains")

    # ---- for fit ---------------------------------------------------------------------------------

    def _partitions(self, X: Any, y: Any, qid: Any, sample_weight: Any) -> Partitions:
        how: dict[str, Any] = {"on_split": self.on_split, "patience": self.patience}
        data = partitions_of(X, y, qid, sample_weight, self.client, gathers=self._gathers, **how)
        if data.one_query and not self._gathers:
            with data:
                raise ValueError(
                    f"without qid the rows of all {len(data.futures)} partitions are one query, "
                    "whose pairs are no sum over partitions; pass qid, or the rows in one partition"
                )
        return data

    def _scaling(self, data: Partitions) -> Scaling:
        return scaling_of(self.scale, data, self.patience)

    def _monitor(
        self, data: Partitions, scaling: Scaling, X_val: Any, y_val: Any, qid_val: Any
    ) -> Monitor:
        sets = validation_sets(_Training(data), X_val, y_val, qid_val, None, None, None)  # type: ignore[arg-type]
        return Monitor.of(self, sets, scaling)

    def _run_options(
        self, data: Partitions, scaling: Scaling, monitor: Monitor, resume: bool
    ) -> Options:
        return Options(
            tol=self.tol,
            max_iter=self.max_iter,
            w0=self._start(scaling, data.n_features),
            patience=self.patience,
            checkpoint=self.checkpoint,
            resume=resume,
            n_jobs=self.n_jobs,
            callback=monitor if monitor.is_needed else None,
        )

    def _finish(
        self, found: Outcome, data: Partitions, scaling: Scaling, monitor: Monitor, **settings: Any
    ) -> None:
        """Set the attributes of a fit."""
        result = found.result
        if result.stopped in ("max_iter", "precision"):
            remedy = "" if result.stopped == "max_iter" else "; raise tol to accept it"
            message = f"{type(self).__name__} did not converge: {result.message}{remedy}"
            warnings.warn(message, ConvergenceWarning, stacklevel=4)
        if self.early_stopping:
            result = monitor.best(result)
        self._adopt_validation(monitor)
        model = Outcome(result, *_counts(found)).model(data, scaling, **settings)
        self._adopt_cluster(result, model, data)
        self.history_ = {**result.history, **monitor.history}
        self.n_rounds_, self.n_repeated_ = found.n_rounds, found.n_repeated

    def _adopt_cluster(self, result: Any, model: LinearModel, data: Partitions) -> None:
        self.model_, self.coef_ = model, model.coef
        self.n_queries_ = data.n_queries
        self.needs_qid_ = data.query_ids is not None
        self.n_features_in_ = data.n_features
        if data.feature_names is not None:
            self.feature_names_in_ = np.array(data.feature_names, dtype=object)
        elif hasattr(self, "feature_names_in_"):  # of an earlier fit
            del self.feature_names_in_
        self.n_iter_, self.converged_ = result.n_iter, result.converged
        self.objective_, self.duality_gap_ = result.value, result.gap
        self.kkt_residual_ = result.kkt_residual
        self.n_pairs_ = model.training["n_pairs"]
        self.repair_ = data.repair


class _Training:
    """What validation data are compared with."""

    def __init__(self, data: Partitions) -> None:
        self.qid = data.query_ids
        self.n_features = data.n_features
        self.filling = None


def _counts(found: Outcome) -> tuple[int, int, int, int]:
    return found.n_pairs, found.n_rounds, found.n_repeated, found.n_before


def refuse(ranker: Any, table: tuple[Refused, ...]) -> None:
    """Raise ValueError for a parameter that means nothing on a cluster, with the remedy."""
    for name, only, remedy in table:
        value = getattr(ranker, name)
        if value is not only and value != only:
            raise ValueError(
                f"{name}={value!r} does not go with linrank.dask.{type(ranker).__name__}, which "
                f"takes {name}={only!r}; {remedy}"
            )


# ---- the estimators ------------------------------------------------------------------------------

_CHOICES = ("loss", "pairs", "pair_weighting", "solver", "query_normalization")
_NO_LIST: Refused = ("n_closest", "auto", "it counts listed pairs; use pairs='all' or 'adjacent'")
_ELSEWHERE: tuple[Refused, ...] = (
    ("missing", "error", "fill them in before, workers know their own rows only"),
    ("memory_limit", None, "the rows lie on the workers"),
    ("curves", None, IN_MEMORY_ONLY),
    ("interactions", 0, IN_MEMORY_ONLY),
)
_OF_RANKSVM: tuple[Refused, ...] = (
    *_ELSEWHERE,
    _NO_LIST,
    ("n_random", *_NO_LIST[1:]),
    ("random_state", None, "nothing is random here"),
)


@dataclass(eq=False, repr=False)
class _OnCluster(RankSVMParameters, ClusterParameters):
    """The parameters of both."""


class RankSVM(ClusterRanker, _OnCluster):
    """:class:`linrank.RankSVM` for rows on a Dask cluster: the same objective, the same solver.

    Every pass over the rows is a round of tasks, one a worker; Newton's method itself runs where
    ``fit`` is called. A lost worker costs its part of a round, and changes no bit of the result.

    Parameters
    ----------
    C, loss, pairs, pair_weighting, tol, max_iter, scale, query_normalization, positive, coef_bounds
        As in :class:`linrank.RankSVM`; of `pairs` ``"all"`` and ``"adjacent"``.
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
    solver, n_closest, n_random, random_state, curves, n_knots, interactions
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

    _in_memory = InMemoryRankSVM
    _gathers = True

    def _check(self) -> None:
        check_ranksvm(self)

    def _solve(
        self, data: Partitions, scaling: Scaling, weights: Any, options: Options
    ) -> tuple[Outcome, dict[str, Any]]:
        recipe = RankRecipe(
            self.loss,
            self.pairs,
            self.pair_weighting,
            self.query_normalization,
            weights,
            by_query=scaling.needs_queries,
        )
        described = cast(Dataset, data)  # of which only names and number of features are asked
        bounds = weight_bounds(self.positive, self.coef_bounds, described, scaling.factors)
        found = train_ranksvm(
            data, recipe, C=self.C, scaling=scaling, options=options, bounds=bounds
        )
        return found, {"C": self.C, **settings_of(self, options_of(self))}


def check_ranksvm(ranker: Any) -> None:
    """Raise ValueError for a parameter of a RankSVM that a cluster cannot serve."""
    check_rank("a cluster", **values_of(ranker, _CHOICES))
    refuse(ranker, _OF_RANKSVM)


_OF_DOMINATION: tuple[Refused, ...] = (
    *_ELSEWHERE,
    ("curvature", "local", "it is of coordinate descent"),
    ("order", "sequential", "it is of coordinate descent"),
    ("random_state", None, "nothing is random here"),
)


@dataclass(eq=False, repr=False)
class _WithL2(DominationParameters, ClusterParameters):
    """The parameters of both, the l1 penalty being for data in memory."""

    penalty: str = "l2"


class DominationRanker(ClusterRanker, SparseRanker, _WithL2):
    """:class:`linrank.DominationRanker` with its l2 penalty for rows on a Dask cluster.

    Minimises ``L(w) + α‖w‖²`` by Newton's method, L the domination loss, in rounds of tasks as
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
    pooled, solver, feature_induction, negative_sampling, curvature, order, random_state, curves
        Only their defaults (and ``solver="newton"``); another value is refused.

    Attributes
    ----------
    coef_, n_iter_, converged_, objective_, duality_gap_, kkt_residual_, history_, model_
        As in :class:`linrank.DominationRanker`.
    repair_, n_rounds_, n_repeated_
        As in :class:`linrank.dask.RankSVM`.
    """

    _in_memory = InMemoryDominationRanker

    def _check(self) -> None:
        refuse(self, _OF_DOMINATION)
        check_domination("a cluster", alpha=self.alpha, **values_of(self, DOMINATION))

    def _solve(
        self, data: Partitions, scaling: Scaling, weights: Any, options: Options
    ) -> tuple[Outcome, dict[str, Any]]:
        recipe = DominationRecipe(self.layers, self.margin, weights, by_query=scaling.needs_queries)
        found = train_domination(data, recipe, alpha=self.alpha, scaling=scaling, options=options)
        return found, {
            "method": "domination",
            "alpha": self.alpha,
            **values_of(self, DOMINATION),
            "solver": "newton",
            "layers": self.layers if isinstance(self.layers, str) else "function",
            "margin": describe_margin(self.margin),
            "seed": None,
        }

    def _adopt_cluster(self, result: Any, model: LinearModel, data: Partitions) -> None:
        super()._adopt_cluster(result, model, data)
        self.n_nonzero_, self.density_ = model.n_nonzero, model.density
