"""RankSVM, the scikit-learn face of training: parameters in, attributes out, no mathematics."""

from __future__ import annotations

from typing import Any

from linrank.estimators.base import LinearRanker, MethodRanker, with_callbacks
from linrank.methods.base import RANKSVM
from linrank.methods.parameters import RankSVMParameters
from linrank.search.monitor import validation_sets


class RankSVM(MethodRanker, LinearRanker, RankSVMParameters):
    """Linear ranker by RankSVM on all pairs, or on fewer.

    Minimises ``½‖w‖² + C Σ_q Σ_(i above j in q) ω_ij l(1 - w·(x_i - x_j))``, where ``i above j``
    means a larger label in the same query, ``ω_ij = c_q u_i u_j`` is made of the weights of the
    query and of the rows, and ``l`` is the loss. There is no intercept: no pair can see it.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the pair losses, > 0. Training on every query twice equals doubling ``C``.
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
    pair_weighting : {"uniform", "grade_diff", "gain_diff"}, default="uniform"
        Another factor of ``ω_ij``: ``y_i - y_j``, or ``2^y_i - 2^y_j``, the difference of gains in
        NDCG. Then the values of the labels matter, not their order alone.
    solver : {"newton", "bundle", "tron", "prsvm", "prsvm+"}, default="newton"
        ``newton``: preconditioned Newton with an exact line search; the hinge is smoothed as
        little as `tol` demands. ``bundle``: cutting planes, the method of SVM-rank and TreeRankSVM
        with a line search, for either loss. ``tron``: the trust-region method as published, on one
        thread; a reference, for the squared hinge over all pairs. ``prsvm`` and ``prsvm+``: the
        same on listed pairs, and level by level.
    tol : float or None, default=None
        ``newton`` stops when its estimate of ``F(w) - F*`` is below ``tol·F(w)`` (default 1e-4),
        and on up to 2²⁰ values `duality_gap_`, a certified bound on it, too; for the hinge when
        that is (default 1e-3), as ``bundle`` does for both, the others when
        ``‖∇F(w)‖ <= tol·‖∇F(0)‖`` (default 1e-3).
    max_iter : int or None, default=None
        Steps at most, >= 1; None for 100, and for 2000 of ``bundle``.
    scale : {"none", "standard", "minmax", "query"}, default="none"
        Train on ``x_j·d_j``: ``standard`` takes ``d_j = 1/std(x_j)``, ``minmax``
        ``d_j = 1/(max x_j - min x_j)``, 0 for a constant feature. The factors are folded into
        ``coef_``, so that raw rows are scored. ``query`` divides by the range of each feature
        within the row's query, on a copy; scoring then needs ``qid``.
    missing : {"error", "zero", "mean", "indicator"}, default="error"
        What a missing value, NaN or null, means; kept in the model, so that it means the same when
        scoring. ``"error"`` refuses it; ``"zero"`` reads 0; ``"mean"`` reads the mean of the
        feature in the training rows; ``"indicator"`` reads 0 and learns what a missing value is
        worth, for each feature that has some in the training rows.
    curves : {None, "quantile", "spline", "step"}, default=None
        Learn an additive model, ``score(x) = Σ_j f_j(x_j)``, in place of a linear one, its curves
        linear between knots. ``"quantile"``: a line and the distribution function of each feature.
        ``"spline"``: a line and ramps between knots, any continuous curve. ``"step"``: steps at
        the knots. All columns have variance 1. Needs dense rows in memory.
    n_knots : int or None, default=None
        Knots of each curve, 2 to 200, at quantiles of up to 10,000 rows; 200 for ``"quantile"``,
        else 8 if None.
    interactions : int, default=0
        So many training rows, drawn by `random_state`, make a term of all features together:
        Nyström features of the kernel ``exp(-γ‖q(a) - q(b)‖²)`` of the quantiles q, of variance 1,
        with ``γ = 0.2 / n_features``.
    increasing, decreasing : list of feature names or column numbers, or None, default=None
        Features whose curves must not fall, or not rise: bounds on the weights of their columns,
        certified like all bounds. Needs `curves`, ``solver="newton"`` and no interactions.
    query_normalization : {None, "pairs"}, default=None
        ``"pairs"`` divides ``c_q`` by the sum of ``ω_ij`` over the pairs of the query, so that
        every query counts the same.
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
    scoring : str, default="ndcg@10"
        Measure of the validation data, by a name that :func:`linrank.evaluate` knows.
    random_state : int, RandomState, Generator or None, default=None
        Of the pairs drawn for ``pairs="closest"`` and ``"pruned"``, and of the rows that make
        `interactions`; nothing else is random.
    memory_limit : int, float, str or None, default=None
        Bytes, or a size such as ``"1.5GB"``, that the process may have in memory, for a
        :class:`linrank.Store`: it is read pass after pass, one for each Hessian product. The same
        bits for any limit. None takes the store as a whole, in memory where it fits.
    callback : callable or None, default=None
        Called after every iteration with a dict of the latest entries of ``history_`` and ``w``;
        returning True stops.
    n_jobs : int or None, default=None
        Threads; None or -1 means all cores available to the process.
    verbose : int, default=0
        Report each iteration when positive: to the logger ``linrank`` if it is set up for INFO,
        else to standard error.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Coefficients of the raw features; ``decision_function(X) = X @ coef_`` unless
        ``scale="query"``. Read-only. Additive models have ``model_.curves`` in its place.
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
    >>> ranker = RankSVM().fit(X, [0, 1, 2, 1, 0], qid=["a", "a", "a", "b", "b"])
    >>> ranker.rank(X, qid=["a", "a", "a", "b", "b"]).tolist()
    [3, 2, 1, 1, 2]
    """

    method = RANKSVM

    @with_callbacks
    def fit_pairs(
        self,
        X: Any,
        pairs: Any,
        *,
        pair_weight: Any = None,
        qid: Any = None,
        across_queries: bool = False,
        y: Any = None,
        sample_weight: Any = None,
        query_weight: Any = None,
        group: Any = None,
        X_val: Any = None,
        y_val: Any = None,
        qid_val: Any = None,
    ) -> RankSVM:
        """Learn ``coef_`` from preferences, "this row above that one", alone or beside labels.

        Minimises ``½‖w‖² + C Σ_t ω_t max(0, 1 - w·(x_win - x_lose))²``, and with `y` the same plus
        the pair losses of the labels, as in :meth:`fit`.

        Parameters
        ----------
        X : matrix of shape (n_rows, n_features)
            NumPy or SciPy matrix or data frame; float32 stays float32.
        pairs : integers of shape (n_pairs, 2), or Preferences
            Rows of `X`, from 0: the winner, then the loser. A pair given twice counts twice; a pair
            and its reverse may both be given, and each pulls its way.
        pair_weight : array of shape (n_pairs,)
            Weights ``ω >= 0``; ones if None.
        qid : array of shape (n_rows,)
            Query of each row. A pair must then lie within a query, unless `across_queries`.
        across_queries : bool, default=False
            Whether pairs may compare rows of different queries.
        y : array of shape (n_rows,)
            Labels, if the pairs that they make are to count as well. Labels that make none (all
            equal within every query) add nothing.
        sample_weight, query_weight : arrays
            Weights of the pairs of `y`, as in :meth:`fit`; they do not touch `pairs`.
        group : array of shape (n_queries,)
            Sizes of consecutive queries, in place of `qid`.
        X_val, y_val, qid_val : validation data
            Labelled rows; `scoring` is computed on them at every iteration.

        Returns
        -------
        RankSVM
            The fitted estimator; ``n_pairs_`` counts both kinds of pairs.

        Examples
        --------
        >>> from linrank import RankSVM
        >>> X = [[0.0, 1.0], [1.0, 1.0], [2.0, 0.0]]
        >>> RankSVM().fit_pairs(X, [[2, 1], [1, 0]]).rank(X).tolist()
        [3, 2, 1]
        """
        data, preferences = self._preferences(
            X, pairs, pair_weight, qid, across_queries, y, sample_weight, query_weight, group
        )
        sets = validation_sets(data, X_val, y_val, qid_val, None, None, None)
        return self._train(data, data, tuple(sets), query_weight, preferences)
