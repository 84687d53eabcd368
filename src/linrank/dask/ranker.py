"""ClusterRanker: what the estimators of a cluster share beside what all linear rankers do."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from linrank.dask.partitions import Partitions, partitions_of
from linrank.dask.training import Options, Outcome, scaling_of
from linrank.errors import ConvergenceWarning
from linrank.estimators.base import LinearRanker
from linrank.search.monitor import Monitor, validation_sets

if TYPE_CHECKING:
    from linrank.data.scaling import Scaling
    from linrank.models.linear import LinearModel

Refused = tuple[str, Any, str]  # parameter, the only value that it may have here, what to do
_LOCAL = ("client", "on_split", "checkpoint", "patience")  # parameters that only a cluster has


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
        local = self._in_memory(**{k: v for k, v in own.items() if k not in _LOCAL})
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
