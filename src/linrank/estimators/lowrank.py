"""FactorizedRankSVM and RegularizedRankSVM, the scikit-learn faces of duals of low rank."""

from __future__ import annotations

from linrank.estimators.base import LinearRanker, MethodRanker
from linrank.methods.base import FACTORIZED, REGULARIZED
from linrank.methods.parameters import FactorizedParameters, RegularizedParameters


class FactorizedRankSVM(MethodRanker, LinearRanker, FactorizedParameters):
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
    scale : {"auto", "none", "standard", "minmax", "query"}, default="auto"
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
    scoring : str or callable, default="ndcg@10"
        Measure of the validation data, by name or as a function: see :func:`linrank.evaluate`.
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

    method = FACTORIZED


class RegularizedRankSVM(MethodRanker, LinearRanker, RegularizedParameters):
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
    scale : {"auto", "none", "standard", "minmax", "query"}, default="auto"
        As in :class:`RankSVM`.
    missing : {"error", "zero", "mean", "indicator"}, default="error"
        What a missing value, NaN or null, means; kept in the model, so that it means the same when
        scoring. ``"error"`` refuses it; ``"zero"`` reads 0; ``"mean"`` reads the mean of the
        feature in the training rows; ``"indicator"`` reads 0 and learns what a missing value is
        worth, for each feature that has some in the training rows.
    memory_limit : int, float, str or None, default=None
        Bytes that the fit may take beyond what the process holds when it begins: those of the
        dual variables and their copies. None for what the system has left.
    keep_duals : bool, default=False
        Keep α as ``duals_``.
    early_stopping : bool, default=False
        Stop once `scoring` on the validation data has not improved for `n_iter_no_change`
        iterations, and keep the best iterate. Needs validation data in ``fit``.
    n_iter_no_change : int, default=5
        Patience of `early_stopping`, >= 1.
    scoring : str or callable, default="ndcg@10"
        Measure of the validation data, by name or as a function: see :func:`linrank.evaluate`.
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

    method = REGULARIZED
