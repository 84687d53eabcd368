"""RegularizedRankSVM: the RankSVM dual with a nuclear norm, as a scikit-learn estimator."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from linrank.errors import ConvergenceWarning
from linrank.linear_ranker import LinearRanker
from linrank.lowrank.regularized import train_regularized
from linrank.model import LinearModel
from linrank.monitor import Monitor, validation_sets
from linrank.options import REGULARIZED
from linrank.scaling import Scaling
from linrank.weights import query_weights

if TYPE_CHECKING:
    from collections.abc import Callable

    from linrank.data.dataset import Dataset
    from linrank.lowrank.regularized import RegularizedResult
    from linrank.solvers.result import Result

__all__ = ["RegularizedRankSVM"]


class RegularizedRankSVM(LinearRanker):
    """Linear RankSVM (hinge) whose dual variables form matrices of low rank.

    Minimises ``Ψ(α) = ½‖w‖² - Σ α_ij + Σ_q min over A of γ‖A‖_* + λ‖α_q - A‖²`` over
    ``0 <= α_ij <= C c_q u_i u_j``, with one dual variable ``α_ij`` for each pair (i above j in one
    query), ``w = Σ α_ij (x_i - x_j)``, ``α_q`` the matrix of the dual variables of query q and
    ``‖A‖_*`` the sum of its singular values; u and c are the weights of rows and queries. It is
    convex, and a certified gap says how far from the minimum a fit has ended. With ``gamma=0`` it
    is the dual of :class:`RankSVM` with ``loss="hinge"``.

    Memory grows with the number of pairs, by 32 bytes for each: more than there is, or than
    `memory_limit`, is refused before training begins.

    Parameters
    ----------
    gamma : float, default=10.0
        γ >= 0, weight of the nuclear norm. Singular values of ``α_q`` up to ``γ/2λ`` have no share
        in A: the larger γ is, the lower the ranks.
    lam : float, default=0.1
        λ > 0, weight of the distance between ``α_q`` and A.
    C : float, default=1.0
        Upper bound of the dual variables, > 0: the weight of the pair losses, as in
        :class:`RankSVM`.
    tol : float or None, default=None
        Stop when `duality_gap_` is at most ``tol·|Ψ|``; None for 1e-4. Ψ is negative at the
        optimum.
    max_iter : int or None, default=None
        Iterations at most, >= 1; None for 1000.
    query_normalization : {None, "pairs"}, default=None
        ``"pairs"`` divides the bounds of a query's dual variables by the total weight of its pairs,
        so that every query counts the same.
    scale : {"none", "standard", "minmax", "query"}, default="none"
        As in :class:`RankSVM`.
    memory_limit : int or None, default=None
        Bytes that the dual variables and their copies may take; None for what the system has left.
    keep_duals : bool, default=False
        Keep α as ``duals_``.
    early_stopping : bool, default=False
        Stop once `scoring` on the validation data has not improved for `n_iter_no_change`
        iterations, and keep the best iterate. Needs validation data in ``fit``.
    n_iter_no_change : int, default=5
        Patience of `early_stopping`, >= 1.
    scoring : str, default="ndcg@10"
        Measure of the validation data, by a name that :func:`linrank.evaluate` knows.
    random_state : int, None, RandomState or Generator, default=None
        Not looked at: nothing is random. Here because other estimators have it.
    callback : callable or None, default=None
        Called after every iteration with a dict of the latest entries of ``history_`` and ``w``;
        returning True stops.
    n_jobs : int or None, default=None
        Threads; None or -1 means all cores available to the process.
    verbose : int, default=0
        Report each iteration when positive, as in :class:`RankSVM`.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Coefficients of the raw features. Read-only.
    objective_ : float
        ``Ψ(α)`` at the solution, exactly.
    duality_gap_ : float
        Certified upper bound of ``Ψ(α) - Ψ*``.
    ranks_ : ndarray of shape (n_queries,)
        Rank of A, by query in order of first appearance: singular values of ``α_q`` above
        ``γ/2λ``. ``α_q`` itself mostly has full rank.
    duals_ : linrank.lowrank.rectangles.Rectangles
        α, one matrix a query, with the rows that it belongs to; only with `keep_duals`. Where
        early stopping goes back to an earlier iterate, `ranks_` and ``duals_`` are still those of
        the solution.
    kkt_residual_ : float
        Length of what is left of the conditions of the optimum: 0 there.
    n_iter_ : int
        Iterations, each with a decomposition of every matrix.
    converged_ : bool
        Whether `tol` was reached.
    history_ : dict of lists
        Objective (an upper bound of ``Ψ(α)``, by the A of the iteration), lower bound of ``Ψ*``,
        gap, KKT residual and seconds by iteration, ``α = 0`` first; with validation data also
        ``val_<scoring>``.
    best_iteration_ : int
        Where ``history_["val_<scoring>"]`` is best; only with validation data.
    n_pairs_ : int
        Pairs of the training data.
    n_queries_, needs_qid_, n_features_in_, feature_names_in_, model_ : as in RankSVM

    Examples
    --------
    >>> from linrank import RegularizedRankSVM
    >>> X = [[0.0, 1.0], [1.0, 1.0], [2.0, 0.0], [5.0, 1.0], [4.0, 0.0]]
    >>> ranker = RegularizedRankSVM(gamma=0.1)
    >>> ranker = ranker.fit(X, [0, 1, 2, 1, 0], qid=["a", "a", "a", "b", "b"])
    >>> ranker.rank(X, qid=["a", "a", "a", "b", "b"]).tolist()
    [3, 2, 1, 1, 2]
    """

    def __init__(
        self,
        gamma: float = 10.0,
        lam: float = 0.1,
        C: float = 1.0,
        *,
        tol: float | None = None,
        max_iter: int | None = None,
        query_normalization: str | None = None,
        scale: str = "none",
        memory_limit: int | None = None,
        keep_duals: bool = False,
        early_stopping: bool = False,
        n_iter_no_change: int = 5,
        scoring: str = "ndcg@10",
        random_state: Any = None,
        callback: Callable[[dict[str, Any]], bool | None] | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.gamma = gamma
        self.lam = lam
        self.C = C
        self.tol = tol
        self.max_iter = max_iter
        self.query_normalization = query_normalization
        self.scale = scale
        self.memory_limit = memory_limit
        self.keep_duals = keep_duals
        self.early_stopping = early_stopping
        self.n_iter_no_change = n_iter_no_change
        self.scoring = scoring
        self.random_state = random_state
        self.callback = callback
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(
        self,
        X: Any,
        y: Any,
        *,
        qid: Any = None,
        sample_weight: Any = None,
        query_weight: Any = None,
        group: Any = None,
        X_val: Any = None,
        y_val: Any = None,
        qid_val: Any = None,
        eval_set: Any = None,
        eval_qid: Any = None,
        eval_group: Any = None,
    ) -> RegularizedRankSVM:
        """Learn ``coef_`` from labelled rows.

        Parameters
        ----------
        X : matrix of shape (n_rows, n_features)
            NumPy or SciPy matrix or data frame; float32 stays float32.
        y : array of shape (n_rows,)
            Real labels; only their order within a query matters.
        qid : array of shape (n_rows,)
            Query of each row, of any hashable type and in any order. None: all rows are one query.
        sample_weight : array of shape (n_rows,)
            Row weights ``u >= 0``: α_ij goes up to ``C u_i u_j``.
        query_weight : mapping from query id to weight, or array
            Query weights ``c >= 0``, as in :meth:`RankSVM.fit`.
        group : array of shape (n_queries,)
            Sizes of consecutive queries, in place of `qid`.
        X_val, y_val, qid_val : validation data
            `scoring` is computed on them at every iteration.
        eval_set, eval_qid, eval_group : validation data as XGBoost, LightGBM and PyTerrier pass it
            ``eval_set=[(X, y), ...]`` with the ids or sizes of each; the last one steers
            `early_stopping`.

        Returns
        -------
        RegularizedRankSVM
            The fitted estimator.
        """
        data = self._training_data(X, y, qid, group, sample_weight)
        sets = validation_sets(data, X_val, y_val, qid_val, eval_set, eval_qid, eval_group)
        scaling = Scaling.fit(self.scale, data.rows, weight=data.weight, n_jobs=self.n_jobs)
        monitor = Monitor.of(self, sets, scaling)
        result = train_regularized(
            scaling.transformed(data, n_jobs=self.n_jobs),
            C=self.C,
            **self._options(),
            scale=scaling.factors,
            query_weight=query_weights(query_weight, data.queries),
            n_jobs=self.n_jobs,
            callback=monitor if monitor.is_needed else None,
        )
        if result.stopped in ("max_iter", "precision"):
            remedy = "" if result.stopped == "max_iter" else "; raise tol to accept it"
            message = f"RegularizedRankSVM did not converge: {result.message}{remedy}"
            warnings.warn(message, ConvergenceWarning, stacklevel=2)
        self._adopt_duals(result)
        best = monitor.best(result) if self.early_stopping else result
        return self._finish(best, data, scaling, monitor)

    def _options(self) -> dict[str, Any]:
        """The parameters that go to the training as they are."""
        return {name: getattr(self, name) for name in REGULARIZED}

    def _adopt_duals(self, result: RegularizedResult) -> None:
        """Set what is known of the dual variables; without `keep_duals` forget earlier ones."""
        self.ranks_ = result.ranks
        if self.keep_duals:
            self.duals_ = result.duals
        elif hasattr(self, "duals_"):
            del self.duals_

    def _finish(
        self, result: Result, data: Dataset, scaling: Scaling, monitor: Monitor
    ) -> RegularizedRankSVM:
        self._adopt_validation(monitor)
        settings = self._options()
        del settings["memory_limit"]  # says nothing of the model
        model = LinearModel.of(
            result,
            data,
            scaling,
            method="regularized",
            C=float(self.C),
            n_pairs=data.queries.n_pairs,
            mean_rank=float(np.mean(self.ranks_)),
            **settings,
        )
        self._adopt_model(model, data)
        self.n_iter_ = result.n_iter
        self.converged_ = result.converged
        self.objective_ = result.value
        self.duality_gap_ = result.gap
        self.kkt_residual_ = result.kkt_residual
        self.history_ = {**result.history, **monitor.history}
        self.n_pairs_ = data.queries.n_pairs
        return self
