"""Training a linear RankSVM: puts data, loss, solver and preconditioner together."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linrank.data.dataset import Dataset
from linrank.data.preferences import Preferences
from linrank.data.rows import DenseRows
from linrank.errors import check_numbers, check_one_of
from linrank.options import (
    LOSSES,
    PAIR_WEIGHTINGS,
    PAIRS,
    PUBLISHED,
    QUERY_NORMALIZATIONS,
    SELECTED_PAIRS,
    SOLVERS,
)
from linrank.published import method as published
from linrank.ranksvm.plan import is_small, plan
from linrank.ranksvm.problem import Problem
from linrank.solvers.bundle import bundle
from linrank.solvers.newton import newton
from linrank.solvers.result import Callback, Result
from linrank.solvers.tron import tron

Array = NDArray[Any]

_NARROW = 1e-5  # tolerance of the hinge below which bands get so steep that products need doubles


def train(
    data: Dataset,
    *,
    C: float = 1.0,
    loss: str = "squared_hinge",
    pairs: str = "all",
    n_closest: int | str = "auto",
    n_random: int | str = "auto",
    seed: int = 0,
    pair_weighting: str = "uniform",
    solver: str = "newton",
    counting: str | None = None,
    tol: float | None = None,
    max_iter: int | None = None,
    scale: Array | None = None,
    query_weight: Array | None = None,
    query_normalization: str | None = None,
    preferences: Preferences | None = None,
    bounds: tuple[Array, Array] | None = None,
    w0: Array | None = None,
    n_jobs: int | None = None,
    callback: Callback | None = None,
) -> Result:
    """Minimise ``F(w) = ½‖w‖² + C Σ ω_ij l(1 - w·D(x_i - x_j))`` over pairs (i above j).

    Parameters
    ----------
    data : Dataset
        Rows, labels, queries; its row weights u enter ``ω_ij = c_q u_i u_j``.
    C : float, default=1.0
        Weight of the pair losses, > 0.
    loss : {"squared_hinge", "hinge"}
        ``l(ξ) = max(0, ξ)²`` or ``max(0, ξ)``.
    pairs : {"all", "adjacent", "closest", "pruned"}
        ``"adjacent"`` compares neighbouring levels of a query only, ``"closest"`` the `n_closest`
        pairs of the closest levels, ``"pruned"`` also `n_random` of the others.
    n_closest, n_random : int or "auto"
        As in :func:`linrank.pairs.pruned`; ``"auto"`` closest pairs are those of ``"adjacent"``.
    seed : int, default=0
        Of the pairs drawn at random.
    pair_weighting : {"uniform", "grade_diff", "gain_diff"}
        Further factor of ``ω_ij``: 1, ``y_i - y_j`` or ``2^y_i - 2^y_j``.
    solver : {"newton", "bundle", "tron", "prsvm", "prsvm+"}
        ``"bundle"`` cuts planes; the last three are published methods, on one thread: ``"tron"``
        is the baseline, ``"prsvm"`` lists the pairs, ``"prsvm+"`` takes the levels one by one.
    counting : str, optional
        How tron and bundle count violated pairs: one of `linrank.published.COUNTINGS`. None is
        ``"selection-tree"`` for tron, and newton's own way for bundle.
    tol : float, optional
        newton: stop when the estimate of ``F - F*`` is at most ``tol·F`` (1e-4 if None); for the
        hinge, when the certified gap is (1e-3 if None).
        bundle: when the certified gap is, for both losses (1e-3 if None).
        Published methods: stop when ``‖∇F(w)‖ <= tol·‖∇F(0)‖`` (1e-3 if None).
    max_iter : int, optional
        Outer iterations; if None 100, of the bundle, whose iterations are cheap, 2000.
    scale : float64 array (n_features,), optional
        The diagonal of D; columns are multiplied on the fly.
    query_weight : float64 array (n_queries,), optional
        The factors c_q, in the order of ``data.queries``.
    query_normalization : {None, "pairs"}
        ``"pairs"`` divides c_q by ``Σ ω_ij`` of the query's pairs: each query counts once.
    preferences : Preferences, optional
        Pairs of rows of ``data``, with weights ω of their own; their losses are added. Labels that
        make no pair are no error then.
    bounds : (lower, upper), float64 arrays (n_features,), optional
        ``lower <= w <= upper``, ±inf where an end is open; newton only. They bind w, not ``D w``.
    w0 : float64 array, optional
        Start; zero if None. Clipped to the bounds.
    n_jobs : int, optional
        Threads; None for all cores. The result does not depend on it.
    callback : callable, optional
        Called with the state of each iterate; stops the solver by returning True.

    Returns
    -------
    Result
    """
    check_numbers(C, tol, max_iter)
    check_choices(loss, pairs, pair_weighting, solver, query_normalization)
    if bounds is not None and solver != "newton":
        raise ValueError(f"solver={solver!r} cannot keep bounds; use solver='newton'")
    published.check_counting(solver, counting)
    if counting is not None and pairs in SELECTED_PAIRS:
        raise ValueError(
            f"counting={counting!r} is a published way to count all pairs, not those of "
            f"pairs={pairs!r}; leave counting out"
        )
    started = time.perf_counter()
    problem = Problem.of(
        data,
        C,
        loss=loss,
        preferences=preferences,
        bounds=bounds,
        pairs=pairs,
        n_closest=n_closest,
        n_random=n_random,
        seed=seed,
        pair_weighting=pair_weighting,
        scale=scale,
        query_weight=query_weight,
        query_normalization=query_normalization,
        n_jobs=n_jobs,
    )
    if max_iter is None:
        max_iter = 2000 if solver == "bundle" else 100
    if solver != "newton":
        is_ours = solver == "bundle" and counting is None
        return (bundle if solver == "bundle" else tron)(
            problem.unsmoothed() if is_ours else problem.published(solver, counting),
            np.zeros(data.n_features) if w0 is None else np.array(w0, dtype=np.float64),
            tol=1e-3 if tol is None else tol,
            max_iter=max_iter,
            callback=callback,
            started=started,
        )
    if tol is None:
        tol = 1e-3 if loss == "hinge" else 1e-4
    if loss == "hinge" and tol < _NARROW and isinstance(problem.rows, DenseRows):
        problem = replace(problem, rows=_doubles(problem.rows))
    w0, preconditioner = plan(problem, w0)
    return newton(
        problem.objective(),
        w0,
        preconditioner=preconditioner,
        tol=tol,
        max_iter=max_iter,
        callback=callback,
        started=started,
        sharpen=problem.sharpening(tol),
        proven=is_small(problem),
    )


def _doubles(rows: DenseRows) -> DenseRows:
    """The same rows in double, where a copy is cheap: Hessian products then are exact to double."""
    if rows.dtype == np.float64 or rows.nbytes > 1 << 28:
        return rows
    return DenseRows(rows.values.astype(np.float64))


def check_choices(
    loss: str, pairs: str, pair_weighting: str, solver: str, query_normalization: str | None
) -> None:
    """Raise ValueError for a name that `train` does not know."""
    check_one_of("loss", loss, LOSSES)
    check_one_of("pairs", pairs, PAIRS)
    check_one_of("pair_weighting", pair_weighting, PAIR_WEIGHTINGS)
    check_one_of("solver", solver, SOLVERS)
    check_one_of("query_normalization", query_normalization, QUERY_NORMALIZATIONS)
    given = (loss, pairs, pair_weighting)
    if solver in PUBLISHED and given != (LOSSES[0], PAIRS[0], PAIR_WEIGHTINGS[0]):
        raise ValueError(
            f"solver={solver!r} is a published method: loss='squared_hinge', pairs='all', "
            f"pair_weighting='uniform'; got {given}. Use solver='newton'"
        )
