"""Paths of the domination loss: the models of a whole grid of alpha, each from the last."""

from __future__ import annotations

from typing import Any

from linrank.data.dataset import Dataset
from linrank.domination.path_problem import PathProblem, as_alphas, check_path
from linrank.domination.path_result import DominationPathResult, warn_unless_certified
from linrank.seeds import seed_of
from linrank.solvers.result import Callback
from linrank.weights import query_weights

__all__ = ["domination_path"]


def domination_path(
    X: Any,
    y: Any,
    qid: Any = None,
    *,
    alphas: Any = "auto",
    n_alphas: int = 50,
    eps: float | None = None,
    max_features: int | None = None,
    penalty: str = "l1",
    margin: Any = None,
    layers: Any = "labels",
    pooled: bool = False,
    solver: str = "auto",
    negative_sampling: float | None = None,
    curvature: str = "local",
    order: str = "sequential",
    tol: float | None = None,
    max_iter: int | None = None,
    scale: str = "none",
    group: Any = None,
    sample_weight: Any = None,
    query_weight: Any = None,
    random_state: Any = None,
    n_jobs: int | None = None,
    callback: Callback | None = None,
) -> DominationPathResult:
    """Fit ``DominationRanker`` for many alphas, from the largest down, each certified to ``tol``.

    Each model starts from that of the alpha before. With l1, the strong rule says which features
    can get a weight at all: only these are looked at on the way, and the certificate of every
    model is that of all features.

    Parameters
    ----------
    X, y, qid, group, sample_weight, query_weight
        The data, as in :meth:`linrank.DominationRanker.fit`.
    alphas : "auto" or array of float
        Weights of the penalty, > 0; sorted, and each used once. ``"auto"``: `n_alphas` values,
        equal factors apart, down to `eps` times the largest; this is ``‖∇L(0)‖_∞`` for l1, at and
        above which all weights are 0, and for l2 the alpha at which weights of 0 are certified to
        be within 1 % of the minimum.
    n_alphas : int, default=50
        Number of them if "auto".
    eps : float or None, default=None
        Smallest alpha relative to the largest if "auto": 1e-3 if None, with l2 1e-6.
    max_features : int or None, default=None
        End the path with the first model that has more coefficients than this.
    penalty : {"l1", "l2"}, default="l1"
        As in :class:`linrank.DominationRanker`; without a penalty there is no path.
    margin, layers, pooled, solver, negative_sampling, curvature, order
        As in :class:`linrank.DominationRanker`.
    tol : float or None, default=None
        Largest certified gap of each model, relative to its objective; 1e-4 if None.
    max_iter : int or None, default=None
        Sweeps at most for each alpha, or Newton steps; 1000 or 100 if None.
    scale : {"none", "standard", "minmax", "query"}, default="none"
        Feature scaling, folded into ``coefs``.
    random_state : int, None, RandomState or Generator, default=None
        Of `negative_sampling` and of ``order="shuffled"``.
    n_jobs : int or None, default=None
        Threads; None or -1 means all cores. The result does not depend on it.
    callback : callable or None
        Called with the state of each iterate, ``"alpha"`` included; returning True ends the path
        with the alphas that are done.

    Returns
    -------
    DominationPathResult

    Examples
    --------
    >>> from linrank import domination_path, make_ranking
    >>> data = make_ranking(n_queries=20, n_features=5, random_state=0)
    >>> path = domination_path(data.X, data.y, data.qid, n_alphas=10)
    >>> path.coefs.shape, int(path.n_nonzero[0]), bool(path.converged.all())
    ((10, 5), 0, True)
    """
    check_path(penalty=penalty, n_alphas=n_alphas, eps=eps, max_features=max_features)
    data = Dataset.of(X, y, qid=qid, group=group, sample_weight=sample_weight, n_jobs=n_jobs)
    problem = PathProblem.of(
        data,
        penalty=penalty,
        margin=margin,
        layers=layers,
        pooled=pooled,
        solver=solver,
        negative_sampling=negative_sampling,
        curvature=curvature,
        order=order,
        tol=tol,
        max_iter=max_iter,
        scale=scale,
        query_weight=query_weights(query_weight, data.queries),
        seed=seed_of(random_state),
        n_jobs=n_jobs,
    )
    grid = as_alphas(alphas, problem.problem, n_alphas, eps)
    path = problem.solve(grid, max_features=max_features, callback=callback)
    warn_unless_certified(path)
    return path
