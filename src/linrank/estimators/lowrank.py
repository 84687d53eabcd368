"""FactorizedRankSVM, the scikit-learn face of factorized duals: parameters in, attributes out."""

from __future__ import annotations

import warnings
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from linrank.data.queries import query_weights
from linrank.data.scaling import Scaling
from linrank.errors import ConvergenceWarning
from linrank.estimators.base import LinearRanker
from linrank.estimators.callbacks import CallbackSupport, with_callbacks
from linrank.lowrank.factorized import train_factorized
from linrank.lowrank.regularized import train_regularized
from linrank.models.linear import LinearModel
from linrank.options import FACTORIZED, REGULARIZED
from linrank.search.monitor import Monitor, validation_sets
from linrank.system.seeds import seed_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from linrank.data.dataset import Dataset
    from linrank.solvers.result import Result


class LowRankRanker(LinearRanker):
    """Trains on the dual of RankSVM, whose variables form a matrix of low rank per query.

    A subclass names its method, the parameters beside ``C`` that go to the training as they are,
    and says whether the training takes a seed; it has ``C``, ``scale``, ``early_stopping``,
    ``random_state`` and what `Monitor` asks for too.
    Its ``fit`` calls `_fit`, and sets what the result has beyond the attributes of `_adopt`.
    """

    _method: ClassVar[str]
    _passed_on: ClassVar[tuple[str, ...]]
    _is_random: ClassVar[bool]

    def _fit(
        self, train: Callable[..., Any], data: Dataset, sets: list[Dataset], query_weight: Any
    ) -> Any:
        """Train, validate, warn; the outcome, after the attributes that both methods have."""
        scaling = Scaling.fit(self.scale, data.rows, weight=data.weight, n_jobs=self.n_jobs)
        monitor = Monitor.of(self, sets, scaling, data.filling)
        options = {name: getattr(self, name) for name in ("C", *self._passed_on)}
        if self._is_random:
            options["seed"] = seed_of(self.random_state)
        run = partial(
            train,
            scaling.transformed(data, n_jobs=self.n_jobs),
            **options,
            scale=scaling.factors,
            query_weight=query_weights(query_weight, data.queries),
            n_jobs=self.n_jobs,
        )
        result = run(callback=monitor if monitor.is_needed else None)
        if result.stopped in ("max_iter", "precision"):
            message = f"{type(self).__name__} did not converge: {result.message}"
            warnings.warn(message, ConvergenceWarning, stacklevel=4)
        if self.early_stopping:
            result = _best(result, monitor, run)
        self._adopt_validation(monitor)
        settings = {"method": self._method, **options}
        self._adopt(result, LinearModel.of(result, data, scaling, **settings), data)
        self.history_ = {**result.history, **monitor.history}
        return result

    def _adopt(self, result: Result, model: LinearModel, data: Dataset) -> None:
        """Set the attributes of a fit."""
        self._adopt_model(model, data)
        self.n_iter_ = result.n_iter
        self.converged_ = result.converged
        self.objective_ = result.value
        self.duality_gap_ = result.gap
        self.n_pairs_ = data.queries.n_pairs

    def _adopt_optional(self, name: str, value: Any) -> None:
        """Set an attribute that a fit may lack; None forgets that of an earlier fit."""
        if value is not None:
            setattr(self, name, value)
        elif hasattr(self, name):
            delattr(self, name)


def _best(result: Any, monitor: Monitor, run: Callable[..., Any]) -> Any:
    """The iterate that the validation data liked best, with all that belongs to it.

    Another iterate than the one kept is reached by training once more: the same seed gives the same
    bits, and keeping the duals of the best one would cost their memory twice in every fit.
    """
    best = monitor.best_iteration
    if best == result.kept:
        return result
    found = run(callback=lambda state: state["n_iter"] >= best)
    return replace(
        found,
        n_iter=result.n_iter,
        converged=False,
        stopped="callback",
        message=f"iteration {best} had the best {monitor.keys[-1]}",
        history=result.history,
    )


class FactorizedRankSVM(CallbackSupport, LowRankRanker):
    """Linear ranker by RankSVM with the hinge, its dual variables factorized.

    RankSVM with the hinge is ``w = Σ α_ij (x_i - x_j)`` over the pairs "i above j" of each query,
    with ``0 <= α_ij <= C ω_ij`` and ``ω_ij = c_q u_i u_j`` made of the weights of the query and of
    the rows. Here every row has a vector ``v_i >= 0`` of `n_components` numbers and
    ``α_ij = v_i·v_j``; minimises the dual objective

    ``f(V) = ½‖w‖² - Σ v_i·v_j``.

    That is not convex: another seed can give another model. ``-f(V)`` is a lower bound of the
    minimum of RankSVM's hinge objective, whatever V is. No pair is listed: an epoch takes a time
    proportional to the rows.

    Parameters
    ----------
    n_components : int, default=5
        K, the length of each ``v_i``, >= 1.
    C : float, default=1.0
        The largest α of a pair of weight 1, > 0; the C of :class:`RankSVM` with ``loss="hinge"``.
    constraint : {"box", "ball"}, default="box"
        What keeps ``v_i·v_j <= C ω_ij``, with ``b_i = u_i √(c_q C)``. ``box``, the published one:
        every number of ``v_i`` is at most ``b_i/√K``. ``ball``: ``‖v_i‖ <= b_i``, which contains
        the box, and with which more components never make the minimum of f larger.
    tol : float or None, default=None
        Stop when f falls by at most ``tol·|f|`` an epoch, on average over five, and
        `kkt_residual_` is at most ``1e4·tol·|f|``; None for 1e-6.
    max_iter : int or None, default=None
        Epochs at most, >= 1; None for 2000.
    query_normalization : {None, "pairs"}, default=None
        ``"pairs"`` divides ``c_q`` by the sum of ``ω_ij`` over the pairs of the query, so that
        every query counts the same.
    scale : {"none", "standard", "minmax", "query"}, default="none"
        As in :class:`RankSVM`.
    missing : {"error", "zero", "mean", "indicator"}, default="error"
        What a missing value, NaN or null, means; kept in the model, so that it means the same when
        scoring. ``"error"`` refuses it; ``"zero"`` reads 0; ``"mean"`` reads the mean of the
        feature in the training rows; ``"indicator"`` reads 0 and learns what a missing value is
        worth, for each feature that has some in the training rows.
    keep_factors : bool, default=False
        Keep V in ``factors_``: `n_components` numbers for each training row.
    early_stopping : bool, default=False
        Stop once `scoring` on the validation data has not improved for `n_iter_no_change` epochs,
        and keep the best one, which is found again by training up to it a second time. Needs
        validation data in ``fit``.
    n_iter_no_change : int, default=5
        Patience of `early_stopping`, >= 1.
    scoring : str, default="ndcg@10"
        Measure of the validation data, by a name that :func:`linrank.evaluate` knows.
    random_state : int, None, RandomState or Generator, default=None
        Of the V to start from, and of the order of the queries in an epoch. With an integer, the
        same data give the same bits, on any number of threads.
    callback : callable or None, default=None
        Called after every epoch with a dict of the latest entries of ``history_`` and ``w``;
        returning True stops.
    n_jobs : int or None, default=None
        Threads; None or -1 means all cores available to the process.
    verbose : int, default=0
        Report each epoch when positive, as in :class:`RankSVM`.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Coefficients of the raw features. Read-only.
    factors_ : ndarray of shape (n_rows, n_components)
        V, a row for each row of the training data; only with `keep_factors`.
    objective_ : float
        ``f(V)``.
    lower_bound_ : float
        ``-f(V)``: no coefficients have a smaller hinge objective.
    hinge_objective_ : float
        ``½‖w‖² + C Σ ω_ij max(0, 1 - w·(x_i - x_j))``, RankSVM's, of these coefficients.
    duality_gap_ : float
        ``hinge_objective_ - lower_bound_``: how far these coefficients can be, at most, from the
        optimum of RankSVM. It does not fall to 0: factors of few components cannot reach that
        optimum.
    kkt_residual_ : float
        How much f falls by its linearisation within the constraint, at most: 0 where V is
        stationary, as local minima are.
    n_iter_ : int
        Epochs.
    converged_ : bool
        Whether `tol` was reached.
    history_ : dict of lists
        ``objective``, ``lower_bound``, seconds and so on by epoch, from the starting point on; with
        validation data also ``val_<scoring>``.
    best_iteration_ : int
        Where ``history_["val_<scoring>"]`` is best; only with validation data.
    n_pairs_, n_queries_, needs_qid_, n_features_in_, feature_names_in_, model_ : as in RankSVM

    Examples
    --------
    >>> from linrank import FactorizedRankSVM
    >>> X = [[0.0, 1.0], [1.0, 1.0], [2.0, 0.0], [5.0, 1.0], [4.0, 0.0]]
    >>> ranker = FactorizedRankSVM(n_components=2, random_state=0)
    >>> ranker = ranker.fit(X, [0, 1, 2, 1, 0], qid=["a", "a", "a", "b", "b"])
    >>> ranker.rank(X, qid=["a", "a", "a", "b", "b"]).tolist()
    [3, 2, 1, 1, 2]
    """

    _method = "factorized"
    _passed_on = FACTORIZED
    _is_random = True

    def __init__(
        self,
        n_components: int = 5,
        C: float = 1.0,
        *,
        constraint: str = "box",
        tol: float | None = None,
        max_iter: int | None = None,
        query_normalization: str | None = None,
        scale: str = "none",
        missing: str = "error",
        keep_factors: bool = False,
        early_stopping: bool = False,
        n_iter_no_change: int = 5,
        scoring: str = "ndcg@10",
        random_state: Any = None,
        callback: Callable[[dict[str, Any]], bool | None] | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.C = C
        self.constraint = constraint
        self.tol = tol
        self.max_iter = max_iter
        self.query_normalization = query_normalization
        self.scale = scale
        self.missing = missing
        self.keep_factors = keep_factors
        self.early_stopping = early_stopping
        self.n_iter_no_change = n_iter_no_change
        self.scoring = scoring
        self.random_state = random_state
        self.callback = callback
        self.n_jobs = n_jobs
        self.verbose = verbose

    @with_callbacks
    def fit(
        self,
        X: Any,
        y: Any = None,
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
    ) -> FactorizedRankSVM:
        """Learn ``coef_`` from labelled rows.

        Parameters
        ----------
        X : matrix of shape (n_rows, n_features), Dataset or Store
            NumPy or SciPy matrix or data frame; float32 stays float32.
        y : array of shape (n_rows,)
            Real labels; only their order within a query matters.
        qid : array of shape (n_rows,)
            Query of each row, of any hashable type and in any order. None: all rows are one query.
        sample_weight : array of shape (n_rows,)
            Row weights ``u >= 0``: a weight of 2 makes the same problem as the row twice.
        query_weight : mapping from query id to weight, or array
            Query weights ``c >= 0``, as in :meth:`RankSVM.fit`.
        group : array of shape (n_queries,)
            Sizes of consecutive queries, in place of `qid`.
        X_val, y_val, qid_val : validation data
            `scoring` is computed on them at every epoch.
        eval_set, eval_qid, eval_group : validation data as XGBoost, LightGBM and PyTerrier pass it
            ``eval_set=[(X, y), ...]`` with the ids or sizes of each; the last one steers
            `early_stopping`.

        Returns
        -------
        FactorizedRankSVM
            The fitted estimator.
        """
        data = self._training_data(X, y, qid, group, sample_weight)
        sets = validation_sets(data, X_val, y_val, qid_val, eval_set, eval_qid, eval_group)
        result = self._fit(train_factorized, data, sets, query_weight)
        self.lower_bound_ = -result.value
        self.hinge_objective_ = result.hinge_objective
        self.kkt_residual_ = result.kkt_residual
        self._adopt_optional("factors_", result.factors if self.keep_factors else None)
        return self


class RegularizedRankSVM(CallbackSupport, LowRankRanker):
    """Linear RankSVM (hinge) whose dual variables form matrices of low rank.

    Minimises ``Ψ(α) = ½‖w‖² - Σ α_ij + Σ_q min over A of γ‖A‖_* + λ‖α_q - A‖²`` over
    ``0 <= α_ij <= C c_q u_i u_j``, with one dual variable ``α_ij`` for each pair (i above j in one
    query), ``w = Σ α_ij (x_i - x_j)``, ``α_q`` the matrix of the dual variables of query q and
    ``‖A‖_*`` the sum of its singular values; u and c are the weights of rows and queries. It is
    convex, and a certified gap says how far from the minimum a fit has ended. With ``gamma=0`` it
    is the dual of :class:`RankSVM` with ``loss="hinge"``.

    Once ``γ/2λ`` exceeds all singular values of the ``α_q``, A is 0 and γ has no effect: Ψ is then
    the dual of RankSVM with a Huberised hinge of width ``2λC c_q u_i u_j``.

    Memory grows with the number of pairs, by 32 bytes for each, and for each entry of the matrices
    that is none: more than there is, or than `memory_limit`, is refused before training begins.

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
        Stop when `duality_gap_` is at most ``tol·|Ψ|``; None for 1e-6. Ψ is negative at the
        optimum.
    max_iter : int or None, default=None
        Iterations at most, >= 1; None for 1000.
    query_normalization : {None, "pairs"}, default=None
        ``"pairs"`` divides the bounds of a query's dual variables by the total weight of its pairs,
        so that every query counts the same.
    scale : {"none", "standard", "minmax", "query"}, default="none"
        As in :class:`RankSVM`.
    missing : {"error", "zero", "mean", "indicator"}, default="error"
        What a missing value, NaN or null, means; kept in the model, so that it means the same when
        scoring. ``"error"`` refuses it; ``"zero"`` reads 0; ``"mean"`` reads the mean of the
        feature in the training rows; ``"indicator"`` reads 0 and learns what a missing value is
        worth, for each feature that has some in the training rows.
    memory_limit : int, float, str or None, default=None
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
        α, one matrix a query, with the rows that it belongs to; only with `keep_duals`.
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

    _method = "regularized"
    _passed_on = REGULARIZED
    _is_random = False

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
        missing: str = "error",
        memory_limit: int | float | str | None = None,
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
        self.missing = missing
        self.memory_limit = memory_limit
        self.keep_duals = keep_duals
        self.early_stopping = early_stopping
        self.n_iter_no_change = n_iter_no_change
        self.scoring = scoring
        self.random_state = random_state
        self.callback = callback
        self.n_jobs = n_jobs
        self.verbose = verbose

    @with_callbacks
    def fit(
        self,
        X: Any,
        y: Any = None,
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
        X : matrix of shape (n_rows, n_features), Dataset or Store
            NumPy or SciPy matrix or data frame; float32 stays float32.
        y : array of shape (n_rows,)
            Real labels; only their order within a query matters.
        qid : array of shape (n_rows,)
            Query of each row, of any hashable type and in any order. None: all rows are one query.
        sample_weight : array of shape (n_rows,)
            Row weights ``u >= 0``: α_ij goes up to ``C u_i u_j``. A weight of 2 is not the row
            twice: a row more is a row more of the matrix, with singular values of its own.
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
        result = self._fit(train_regularized, data, sets, query_weight)
        self.ranks_ = result.ranks
        self.kkt_residual_ = result.kkt_residual
        self._adopt_optional("duals_", result.duals if self.keep_duals else None)
        return self
