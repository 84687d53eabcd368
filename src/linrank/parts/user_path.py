"""Regularisation paths as users ask for them: of data in memory, or of a store in passes."""

from __future__ import annotations

from typing import Any

from linrank.data.dataset import Dataset
from linrank.data.queries import query_weights
from linrank.io.store.outline import is_limited
from linrank.io.store.store import Store
from linrank.options import SELECTED_PAIRS
from linrank.parts.path import path_of_parts
from linrank.parts.stores import StoreParts, recipe_of
from linrank.ranksvm.path import PathResult, as_Cs, solve_path, warn_unless_certified
from linrank.solvers.result import Callback
from linrank.system.resources import resolve
from linrank.system.seeds import seed_of


def ranksvm_path(
    X: Any,
    y: Any = None,
    qid: Any = None,
    *,
    Cs: Any = "auto",
    loss: str = "squared_hinge",
    pairs: str = "all",
    n_closest: int | str = "auto",
    n_random: int | str = "auto",
    pair_weighting: str = "uniform",
    solver: str = "newton",
    tol: float | None = None,
    max_iter: int | None = None,
    scale: str = "none",
    query_normalization: str | None = None,
    positive: bool = False,
    coef_bounds: Any = None,
    group: Any = None,
    sample_weight: Any = None,
    query_weight: Any = None,
    random_state: Any = None,
    memory_limit: float | str | None = None,
    n_jobs: int | None = None,
    callback: Callback | None = None,
) -> PathResult:
    """Fit ``RankSVM`` for many C at once, each model certified to ``tol``.

    For every C the objective is ``½‖w‖² + C Σ ω_ij l(1 - w·(x_i - x_j))``, as in
    :class:`linrank.RankSVM`. Each model starts from that of the C before; with the squared hinge,
    26 of them cost about as much as five fits.

    Parameters
    ----------
    X, y, qid, group, sample_weight, query_weight
        The data, as in :meth:`linrank.RankSVM.fit`; a :class:`linrank.Store` stands for all but
        query_weight.
    Cs : "auto" or array of float
        Weights of the pair losses, > 0; sorted, and each used once. ``"auto"`` is 2^-15, 2^-14,
        ..., 2^10.
    loss, pairs, n_closest, n_random, pair_weighting, solver
        As in :class:`linrank.RankSVM`. The squared hinge by ``newton`` is what the path is fast
        for; other combinations fit one C after the other, each from the last.
    tol : float or None, default=None
        Each model is improved until its certified duality gap is at most ``tol·F(w)``: 1e-4 if
        None, or 1e-3 for the hinge and for ``solver="bundle"``. For the squared hinge this is
        stricter than the `tol` of ``RankSVM``, which looks at an estimate.
    max_iter : int or None, default=None
        Steps at most for each C; 100 if None, of the bundle 2000.
    scale : {"none", "standard", "minmax", "query"}, default="none"
        Feature scaling, folded into ``coefs``.
    query_normalization : {None, "pairs"}, default=None
        ``"pairs"`` makes every query count the same.
    positive, coef_bounds
        Bounds of the coefficients, as in :class:`linrank.RankSVM`; every C is then a fit of its
        own, from the last.
    random_state : int, RandomState, Generator or None, default=None
        Of the pairs drawn for ``pairs="closest"`` and ``"pruned"``, the same for every C.
    memory_limit : int, float, str or None, default=None
        As in :class:`linrank.RankSVM`: what the process may have in memory, for a store that is
        then read pass after pass.
    n_jobs : int or None, default=None
        Threads; None or -1 means all cores. The result does not depend on it.
    callback : callable or None
        Called with the state of each iterate, ``"C"`` included; returning True ends the path with
        the values of C that are done.

    Returns
    -------
    PathResult

    Examples
    --------
    >>> from linrank import make_ranking, ranksvm_path
    >>> data = make_ranking(n_queries=20, n_features=3, random_state=0)
    >>> path = ranksvm_path(data.X, data.y, data.qid, Cs=[0.01, 0.1, 1])
    >>> path.coefs.shape, bool((path.gaps <= 1e-4 * path.objectives).all())
    ((3, 3), True)
    """
    grid = as_Cs(Cs)
    own = {"qid": qid, "group": group, "sample_weight": sample_weight}
    common: dict[str, Any] = {
        "tol": tol,
        "max_iter": max_iter,
        "scale": scale,
        "positive": positive,
        "coef_bounds": coef_bounds,
        "callback": callback,
    }
    kind: dict[str, Any] = {
        "loss": loss,
        "pairs": pairs,
        "pair_weighting": pair_weighting,
        "solver": solver,
        "query_normalization": query_normalization,
    }
    if is_limited(X, y, memory_limit, **own):
        parts = StoreParts(X, memory_limit, resolve(n_jobs))
        path = path_of_parts(parts, recipe_of(query_weight, **kind), grid, **common).path
    else:
        data = X.dataset() if isinstance(X, Store) else Dataset.of(X, y, **own, n_jobs=n_jobs)
        path, _ = solve_path(
            data,
            grid,
            query_weight=query_weights(query_weight, data.queries),
            n_jobs=n_jobs,
            n_closest=n_closest,
            n_random=n_random,
            seed=seed_of(random_state) if pairs in SELECTED_PAIRS else 0,
            **kind,
            **common,
        )
    warn_unless_certified(path)
    return path
