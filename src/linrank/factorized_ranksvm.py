"""FactorizedRankSVM, the scikit-learn face of factorized duals: parameters in, attributes out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from linrank.lowrank.factorized import train_factorized
from linrank.lowrank_ranker import LowRankRanker
from linrank.monitor import validation_sets
from linrank.options import FACTORIZED
from linrank.sklearn_callbacks import CallbackSupport, with_callbacks

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["FactorizedRankSVM"]


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
