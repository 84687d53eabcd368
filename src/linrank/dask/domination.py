"""DominationRanker on a Dask cluster, with the l2 penalty."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from linrank.dask.partitions import Partitions
from linrank.dask.ranker import ClusterRanker, Refused, refuse
from linrank.dask.training import train_domination
from linrank.estimators import domination as domination_ranker
from linrank.estimators.base import SparseRanker
from linrank.options import DOMINATION
from linrank.pairs.layering import describe_margin
from linrank.parts.choices import check_domination, check_query_weight
from linrank.parts.recipes import DominationRecipe

_OF_DOMINATION: tuple[Refused, ...] = (
    ("curvature", "local", "it is of coordinate descent"),
    ("order", "sequential", "it is of coordinate descent"),
    ("random_state", None, "nothing is random here"),
)


class DominationRanker(ClusterRanker, SparseRanker):
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
    pooled, solver, feature_induction, negative_sampling, curvature, order, random_state
        Only their defaults (and ``solver="newton"``); another value is refused.

    Attributes
    ----------
    coef_, n_iter_, converged_, objective_, duality_gap_, kkt_residual_, history_, model_
        As in :class:`linrank.DominationRanker`.
    repair_, n_rounds_, n_repeated_
        As in :class:`linrank.dask.RankSVM`.
    """

    _in_memory = domination_ranker.DominationRanker

    def __init__(
        self,
        penalty: str = "l2",
        alpha: float = 1.0,
        *,
        margin: Any = None,
        layers: Any = "labels",
        pooled: bool = False,
        solver: str = "auto",
        feature_induction: int | None = None,
        negative_sampling: float | None = None,
        curvature: str = "local",
        order: str = "sequential",
        tol: float | None = None,
        max_iter: int | None = None,
        scale: str = "none",
        warm_start: bool = False,
        early_stopping: bool = False,
        n_iter_no_change: int = 5,
        scoring: str = "ndcg@10",
        random_state: Any = None,
        callback: Callable[[dict[str, Any]], bool | None] | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        client: Any = None,
        on_split: str = "repair",
        checkpoint: Any = None,
        patience: float = 60.0,
    ) -> None:
        self.penalty = penalty
        self.alpha = alpha
        self.margin = margin
        self.layers = layers
        self.pooled = pooled
        self.solver = solver
        self.feature_induction = feature_induction
        self.negative_sampling = negative_sampling
        self.curvature = curvature
        self.order = order
        self.tol = tol
        self.max_iter = max_iter
        self.scale = scale
        self.warm_start = warm_start
        self.early_stopping = early_stopping
        self.n_iter_no_change = n_iter_no_change
        self.scoring = scoring
        self.random_state = random_state
        self.callback = callback
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.client = client
        self.on_split = on_split
        self.checkpoint = checkpoint
        self.patience = patience

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
    ) -> DominationRanker:
        """Learn ``coef_`` from labelled rows on the cluster; as :meth:`linrank.dask.RankSVM.fit`.

        Parameters
        ----------
        X, y, qid, sample_weight, query_weight, X_val, y_val, qid_val, resume
            As there.

        Returns
        -------
        DominationRanker
            The fitted estimator.
        """
        self._check()
        weights = check_query_weight(query_weight)
        with self._partitions(X, y, qid, sample_weight) as data:
            return self._fit_on(data, weights, resume, X_val, y_val, qid_val)

    def _fit_on(
        self, data: Partitions, weights: Any, resume: bool, *validation: Any
    ) -> DominationRanker:
        scaling = self._scaling(data)
        monitor = self._monitor(data, scaling, *validation)
        recipe = DominationRecipe(self.layers, self.margin, weights, by_query=scaling.needs_queries)
        options = self._run_options(data, scaling, monitor, resume)
        found = train_domination(data, recipe, alpha=self.alpha, scaling=scaling, options=options)
        self._finish(found, data, scaling, monitor, **self._described())
        self.n_nonzero_, self.density_ = self.model_.n_nonzero, self.model_.density
        return self

    def _check(self) -> None:
        refuse(self, _OF_DOMINATION)
        check_domination("a cluster", alpha=self.alpha, **self._options())

    def _described(self) -> dict[str, Any]:
        """What the model is to know of the parameters."""
        return {
            "method": "domination",
            "alpha": self.alpha,
            **{name: getattr(self, name) for name in DOMINATION},
            "solver": "newton",
            "layers": self.layers if isinstance(self.layers, str) else "function",
            "margin": describe_margin(self.margin),
            "seed": None,
        }
