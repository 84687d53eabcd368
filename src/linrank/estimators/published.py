"""PublishedRankSVM: the baselines of the literature as a scikit-learn estimator."""

from __future__ import annotations

from linrank.estimators.base import LinearRanker, MethodRanker
from linrank.methods.base import PUBLISHED
from linrank.methods.parameters import PublishedParameters


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
