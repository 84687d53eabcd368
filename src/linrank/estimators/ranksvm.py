"""RankSVM, the scikit-learn face of training: parameters in, attributes out, no mathematics."""

from __future__ import annotations

from linrank.estimators.base import LinearRanker, MethodRanker, PairRanker
from linrank.methods.base import PUBLISHED, RANKSVM
from linrank.methods.parameters import PublishedParameters, RankSVMParameters


class RankSVM(PairRanker, LinearRanker, RankSVMParameters):
    """Linear ranker by RankSVM on all pairs, or on fewer.

    Minimises ``½‖w‖² + C Σ_q Σ_(i above j in q) ω_ij l(1 - w·(x_i - x_j))``, where ``i above j``
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
        Which pairs of a query are compared. ``"adjacent"``: rows of neighbouring labels only;
        fewer pairs, and cheaper ones where labels are many. ``"closest"``: the `n_closest` pairs
        whose labels are closest. ``"pruned"``: these and `n_random` of the others.
    n_closest : int or "auto", default="auto"
        Pairs in order of the difference of the ranks of their labels within the query, up to the
        number of all pairs; the last difference is cut at random. ``"auto"`` is all pairs of
        neighbouring labels. For ``"closest"`` and ``"pruned"`` only.
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


class PublishedRankSVM(MethodRanker, LinearRanker, PublishedParameters):
    """Linear RankSVM on all pairs by a method as it was published, on one thread.

    For comparison and teaching; :class:`linrank.RankSVM` finds the same minimum in a fraction of
    the time. Minimises ``½‖w‖² + C Σ_q Σ_(i above j in q) l(1 - w·(x_i - x_j))``.

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
