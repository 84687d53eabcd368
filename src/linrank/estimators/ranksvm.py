"""RankSVM in its linear forms, with scikit-learn's interface: no mathematics here."""

from __future__ import annotations

from linrank.estimators.base import LinearRanker, MethodRanker, PairRanker
from linrank.methods import FACTORIZED, PUBLISHED, RANKSVM, REGULARIZED
from linrank.methods import parameters as of


class RankSVM(PairRanker, LinearRanker, of.RankSVMParameters):
    """Linear ranker by RankSVM on all pairs, or on fewer.

    Minimizes ``½‖w‖² + C Σ_q Σ_(i above j in q) ω_ij l(1 - w·(x_i - x_j))``, where ``i above j``
    means a larger label in the same query, ``ω_ij = c_q u_i u_j`` is made of the weights of the
    query and of the rows, and ``l`` is the loss. There is no intercept: no pair can see it.

    Parameters
    ----------
    C : float or "auto", default="auto"
        Weight of the pair losses, > 0. Training on every query twice equals doubling ``C``.
        ``"auto"`` is ``n / (v Σω_ij)``, v the variance of a feature as it is trained on, 1 where
        `scale` is ``"standard"``. n is the number of queries over 40, or the number of rows where
        there is one query, or more than 10 different labels in a query on average. For sparse rows
        it is ``500 / Σω_ij`` over the variance of all features together.
    loss : {"squared_hinge", "hinge"}, default="squared_hinge"
        ``l(ξ) = max(0, ξ)²`` or ``max(0, ξ)``.
    pairs : {"all", "adjacent", "closest", "pruned"}, default="all"
        Which pairs of a query are compared. ``"adjacent"``: rows of neighboring labels only;
        fewer pairs, and cheaper ones where labels are many. ``"closest"``: the `n_closest` pairs
        whose labels are closest. ``"pruned"``: these and `n_random` of the others.
    n_closest : int or "auto", default="auto"
        Pairs in order of the difference of the ranks of their labels within the query, up to the
        number of all pairs; the last difference is cut at random. ``"auto"`` is all pairs of
        neighboring labels. For ``"closest"`` and ``"pruned"`` only.
    n_random : int or "auto", default="auto"
        Pairs drawn from the others, uniformly and none twice; ``"auto"`` is as many as the closest.
        Where there are no more others, all pairs are compared. For ``"pruned"`` only.
    pair_weighting : {"auto", "uniform", "grade_diff", "gain_diff"} or a measure, default="auto"
        Another factor of ``ω_ij``: ``y_i - y_j``, or ``2^y_i - 2^y_j``, the difference of gains in
        NDCG. Then the values of the labels matter, not their order alone. A measure of ranked
        lists, as in ``"ndcg@20"``, ``"map"``, ``"mrr"``, ``"err@10"``, ``"p@5"``: a first model is
        trained on all pairs, each query of the same weight, and ``ω_ij`` is what swapping i and j
        in its ranking changes in the measure, scaled so that all weights sum to the number of
        queries. These are LambdaRank's weights, frozen at a good start, so that the problem stays
        convex and is certified as any other. ``"auto"`` is ``"ndcg@20"`` where at least 40 queries
        have pairs, labels are at most 10 grades from 0 to 30, and `pairs`, `solver` and the rows,
        which must not be sparse, allow it; else ``"uniform"``.
    n_rounds : int, default=1
        How often a measure weighs the pairs anew, each time in the ranking of the model before.
    solver : {"newton", "bundle", "tron", "prsvm", "prsvm+"}, default="newton"
        ``newton``: preconditioned Newton with an exact line search; the hinge is smoothed as
        little as `tol` demands. ``bundle``: cutting planes, the method of SVM-rank and TreeRankSVM
        with a line search, for either loss. ``tron``: the trust-region method as published, on one
        thread; a reference, for the squared hinge over all pairs. ``prsvm`` and ``prsvm+``: the
        same on listed pairs, and level by level.
    tol : float or None, default=None
        ``newton`` stops when its estimate of ``F(w) - F*`` is below ``tol·F(w)`` (default 1e-4)
        and `duality_gap_`, a certified bound on it, below ``tol·F(w)`` on up to 2²⁰ values, below
        ``max(tol, 1e-3)·F(w)`` on more; for the hinge when the bound is below ``tol·F(w)``
        (default 1e-3), as ``bundle`` does for both, the others when
        ``‖∇F(w)‖ <= tol·‖∇F(0)‖`` (default 1e-3).
    max_iter : int or None, default=None
        Steps at most, >= 1; None for 100, and for 2000 of ``bundle``.
    scale : {"auto", "none", "standard", "minmax", "query"}, default="auto"
        Train on ``x_j·d_j``: ``standard`` takes ``d_j = 1/std(x_j)``, ``minmax``
        ``d_j = 1/(max x_j - min x_j)``, 0 for a constant feature. The factors are folded into
        ``coef_``, so that raw rows are scored. ``query`` divides by the range of each feature
        within the row's query, on a copy; scoring then needs ``qid``. ``"auto"`` is ``standard``,
        and ``none`` for sparse rows: at most a tenth of their values is not 0, whatever they are
        stored in, and no feature has half of the variance of all.
    missing : {"error", "zero", "mean", "indicator"}, default="error"
        What a missing value, NaN or null, means; kept in the model, so that it means the same when
        scoring. ``"error"`` refuses it; ``"zero"`` reads 0; ``"mean"`` reads the mean of the
        feature in the training rows; ``"indicator"`` reads 0 and learns what a missing value is
        worth, for each feature that has some in the training rows.
    curves : {None, "quantile", "spline", "step"}, default=None
        Learn an additive model, ``score(x) = Σ_j f_j(x_j)``, in place of a linear one, its curves
        linear between knots. ``"quantile"``: a line and the distribution function of each feature.
        ``"spline"``: a line and ramps between knots, any continuous curve. ``"step"``: steps at
        the knots. All columns have variance 1. Sparse rows are made dense.
    n_knots : int or None, default=None
        Knots of each curve, 2 to 200, at quantiles of up to 10,000 rows; 200 for ``"quantile"``,
        else 8 if None.
    interactions : int, default=0
        So many training rows, drawn by `random_state`, make a term of all features together:
        Nyström features of the kernel ``exp(-γ‖q(a) - q(b)‖²)``. q has two ramps from 0 to 1 for
        each of the p features that vary, over the lower and the upper half of its distribution;
        ``γ = 1.7 / p``. The variances of these columns sum to 8p; ``C`` of about 0.3 over the
        number of queries suits them where every query has weight 1.
    increasing, decreasing : list of feature names or column numbers, or None, default=None
        Features whose curves must not fall, or not rise: bounds on the weights of their columns,
        certified like all bounds. Needs `curves`, ``solver="newton"`` and no interactions.
    query_normalization : {"auto", None, "pairs"}, default="auto"
        ``"pairs"`` divides ``c_q`` by the sum of ``ω_ij`` over the pairs of the query, so that
        every query counts the same. ``"auto"`` does so, unless there is one query, or a measure
        weighs pairs.
    positive : bool, default=False
        Keep all coefficients ``>= 0``.
    coef_bounds : array of shape (n_features, 2), (lower, upper), dict or None, default=None
        Keep ``lower <= coef_ <= upper``: a row (low, high) for each feature, a tuple of two numbers
        for all features or of two arrays, or a dict from feature names or column numbers to
        (low, high). None, -inf and inf leave an end open. Of both `positive` and `coef_bounds`
        the narrower holds. Needs ``solver="newton"``.
    warm_start : bool, default=False
        Start at the ``coef_`` of the previous fit instead of at 0.
    early_stopping : bool, default=False
        Stop once `scoring` on the validation data has not improved for `n_iter_no_change`
        iterations, and keep the best iterate. Needs validation data in ``fit``.
    n_iter_no_change : int, default=5
        Patience of `early_stopping`, >= 1.
    scoring : str or callable, default="ndcg@10"
        Measure of the validation data, by name or as a function: see :func:`linrank.evaluate`.
    random_state : int, RandomState, Generator or None, default=None
        Of the pairs drawn for ``pairs="closest"`` and ``"pruned"``, and of the rows that make
        `interactions`; nothing else is random.
    memory_limit : int, float, str or None, default=None
        For a :class:`linrank.Store`: bytes, or a size such as ``"1.5GB"``, that the fit may take
        beyond what the process holds when it begins. The store is read pass after pass, one for
        each Hessian product. The same bits for any limit. None takes the store as a whole, in
        memory where it fits.
    device : str, default="cpu"
        "cuda", "cuda:1" and so on: rows are copied to this device, which computes everything that
        has a number for each row. Rows that lie on a device already (CuPy, torch, anything with
        DLPack) are computed with where they are. A device serves linear weights, not `curves` or
        `interactions`. Pairs that are listed or weighed one by one, as by a measure, and those of
        ``bundle``, are swept on the host.
    callback : callable or None, default=None
        Called after every iteration with a dict of the latest entries of ``history_`` and ``w``;
        returning True stops.
    n_jobs : int or None, default=None
        Threads; None or -1 means all cores available to the process.
    verbose : int, default=0
        Report each iteration when positive: to the logger ``linrank`` if it is set up for INFO,
        else to standard error, in a notebook to standard output.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Coefficients of the raw features; ``decision_function(X) = X @ coef_`` unless
        ``scale="query"``. Read-only. Additive models have ``model_.curves`` in its place.
    C_ : float
        The weight of the losses that was taken.
    settings_ : dict
        `C`, `scale`, `pair_weighting` and `query_normalization` as they were taken, without
        ``"auto"``. The problem of the papers has ``C=1.0, scale="none", pair_weighting="uniform",
        query_normalization=None``.
    n_iter_ : int
        Iterations of the solver.
    converged_ : bool
        Whether `tol` was reached.
    objective_ : float
        ``F`` at the solution.
    duality_gap_ : float
        Certified upper bound of ``F - F*``, its rounding and that of `objective_` included. On
        features of very different ranges it can be far above the true distance, up to ``F``;
        `scale` or a smaller `tol` tightens it.
    kkt_residual_ : float
        ``‖w - clip(w - ∇F(w), lower, upper)‖``: 0 at the optimum, and ``‖∇F(w)‖`` without bounds.
    history_ : dict of lists
        Objective, gap, seconds and so on by iteration, from the starting point on; with validation
        data also ``val_<scoring>``.
    best_iteration_ : int
        Where ``history_["val_<scoring>"]`` is best; only with validation data.
    n_pairs_, n_queries_ : int
        Pairs that were compared, and queries, of the training data.
    needs_qid_ : bool
        Whether the fit used query ids, so that ``score`` and ``rank`` need them.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features, when `X` had string column names.
    model_ : LinearModel or AdditiveModel
        The model itself, independent of scikit-learn.

    Examples
    --------
    >>> from linrank import RankSVM
    >>> X = [[0.0, 1.0], [1.0, 1.0], [2.0, 0.0], [5.0, 1.0], [4.0, 0.0]]
    >>> ranker = RankSVM(C=1.0).fit(X, [0, 1, 2, 1, 0], qid=["a", "a", "a", "b", "b"])
    >>> ranker.rank(X, qid=["a", "a", "a", "b", "b"]).tolist()
    [3, 2, 1, 1, 2]
    """

    method = RANKSVM


class PublishedRankSVM(MethodRanker, LinearRanker, of.PublishedParameters):
    """Linear RankSVM on all pairs by a method as it was published, on one thread.

    For comparison and teaching; :class:`linrank.RankSVM` finds the same minimum in a fraction of
    the time. Minimizes ``½‖w‖² + C Σ_q Σ_(i above j in q) l(1 - w·(x_i - x_j))``.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the pair losses, > 0.
    solver : {"tron", "bundle", "prsvm", "prsvm+"}, default="tron"
        ``tron``: the trust-region Newton method of Lee and Lin. ``bundle``: the cutting planes of
        SVM-rank and TreeRankSVM. ``prsvm`` and ``prsvm+``: the first on listed pairs, and level by
        level.
    loss : {"squared_hinge", "hinge"}, default="squared_hinge"
        ``bundle`` takes both, the others the squared hinge.
    counting : str or None, default=None
        How ``tron`` and ``bundle`` count violated pairs, one of ``linrank.published.COUNTINGS``;
        None is ``"selection-tree"`` for ``tron``, and as in :class:`linrank.RankSVM` for
        ``bundle``. Changes the time, not the result.
    tol : float or None, default=None
        Stop when ``‖∇F(w)‖ <= tol·‖∇F(0)‖``, ``bundle`` at a certified gap of ``tol·F``; None for
        1e-3.
    max_iter : int or None, default=None
        Steps at most; None for 100, and for 2000 of ``bundle``.
    query_normalization, scale, missing, random_state, callback, n_jobs, verbose
        As in :class:`linrank.RankSVM`.

    Attributes
    ----------
    coef_, n_iter_, converged_, objective_, duality_gap_, kkt_residual_, history_, model_
        As in :class:`linrank.RankSVM`.
    """

    method = PUBLISHED


class FactorizedRankSVM(MethodRanker, LinearRanker, of.FactorizedParameters):
    """Linear ranker by RankSVM with the hinge, its dual variables factorized.

    RankSVM with the hinge is ``w = Σ α_ij (x_i - x_j)`` over the pairs "i above j" of each query,
    with ``0 <= α_ij <= C ω_ij`` and ``ω_ij = c_q u_i u_j`` made of the weights of the query and of
    the rows. Here every row has a vector ``v_i >= 0`` of `n_components` numbers and
    ``α_ij = v_i·v_j``; minimizes the dual objective

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
        How much f falls by its linearization within the constraint, at most: 0 where V is
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


class RegularizedRankSVM(MethodRanker, LinearRanker, of.RegularizedParameters):
    """Linear RankSVM (hinge) whose dual variables form matrices of low rank.

    Minimizes ``Ψ(α) = ½‖w‖² - Σ α_ij + Σ_q min over A of γ‖A‖_* + λ‖α_q - A‖²`` over
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
