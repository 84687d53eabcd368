"""Training for the domination loss: checks the options, makes the problem, calls the solver."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linrank.data.dataset import Dataset
from linrank.data.rows import without_offsets
from linrank.domination.descent import Descent, Log, descend
from linrank.domination.induction import induce
from linrank.domination.negatives import sample_negatives
from linrank.domination.newton import by_newton
from linrank.domination.parameters import check_parameters, choose_solver
from linrank.domination.problem import DominationProblem
from linrank.layering import Layering
from linrank.solvers.result import Callback, Result
from linrank.threads import resolve, useful_threads

__all__ = ["certified", "make_problem", "train"]

Array = NDArray[Any]

TOLERANCE = 1e-4  # of the certified gap, relative to F
SWEEPS = 1000  # of coordinate descent
STEPS = 100  # of Newton's method
# Options of `train` that say what is minimised, not how.
_PROBLEM = (
    *("penalty", "alpha", "layers", "margin", "pooled", "negative_sampling"),
    *("scale", "query_weight", "seed", "n_jobs"),
)


def train(
    data: Dataset,
    *,
    penalty: str = "l1",
    alpha: float = 1.0,
    layers: str | Callable[[Array], Any] = "labels",
    margin: Any = None,
    pooled: bool = False,
    solver: str = "auto",
    feature_induction: int | None = None,
    negative_sampling: float | None = None,
    curvature: str = "local",
    order: str = "sequential",
    tol: float | None = None,
    max_iter: int | None = None,
    scale: Array | None = None,
    query_weight: Array | None = None,
    w0: Array | None = None,
    seed: int = 0,
    n_jobs: int | None = None,
    callback: Callback | None = None,
) -> Result:
    """Minimise ``F(w) = L(XDw) + alpha·pen(w)``, L the domination loss of `Layering`.

    Parameters
    ----------
    data : Dataset
        Rows, labels, queries, row weights.
    penalty : {"l1", "l2", "none"}
        ``‖w‖₁``, ``‖w‖²`` or nothing.
    alpha : float
        Weight of the penalty.
    layers, margin, pooled, query_weight
        As in `Layering.of`.
    solver : {"auto", "coordinate", "newton"}
        ``"newton"`` is for l2 only; ``"auto"`` takes it there, and coordinate descent elsewhere.
    feature_induction : int, optional
        Features that enter at a time, chosen by what they promise; all from the start if None.
    negative_sampling : float, optional
        Share of the lowest layer of each query that is kept.
    curvature : {"local", "range", "paper"}
        How coordinate descent bounds the second derivative along a feature. ``"local"`` follows
        it, and makes Newton steps between sweeps; ``"range"`` (a quarter of the squared range, for
        every row) and ``"paper"`` (the square of the largest value) are plain descents, for
        comparison.
    order : {"sequential", "shuffled"}
        Order of the features in a sweep.
    tol : float, optional
        Stop when the certified gap is at most ``tol·F``; 1e-4 if None.
    max_iter : int, optional
        Sweeps at most, or Newton steps; 1000 or 100 if None.
    scale : float64 array (n_features,), optional
        The diagonal of D.
    w0 : float64 array, optional
        Start; zero if None.
    seed : int
        Of the sampling and the shuffling.
    n_jobs : int, optional
        Threads; None for all cores. The result does not depend on it.
    callback : callable, optional
        Called with the state of each iterate; stops by returning True.
    """
    check_parameters(
        penalty=penalty,
        alpha=alpha,
        solver=solver,
        feature_induction=feature_induction,
        negative_sampling=negative_sampling,
        curvature=curvature,
        order=order,
        tol=tol,
        max_iter=max_iter,
    )
    log = Log(callback, time.perf_counter())
    problem = make_problem(
        data,
        penalty=penalty,
        alpha=alpha,
        layers=layers,
        margin=margin,
        pooled=pooled,
        negative_sampling=negative_sampling,
        scale=scale,
        query_weight=query_weight,
        seed=seed,
        n_jobs=n_jobs,
    )
    tol = TOLERANCE if tol is None else tol
    if choose_solver(solver, penalty, feature_induction) == "newton":
        return by_newton(
            problem.rows,
            problem.layering,
            alpha,
            scale=scale,
            w0=w0,
            tol=tol,
            max_iter=STEPS if max_iter is None else max_iter,
            n_threads=problem.n_threads,
            callback=callback,
        )
    descent = Descent(problem, w0, curvature=curvature, order=order, seed=seed)
    n_sweeps = SWEEPS if max_iter is None else max_iter
    if feature_induction is not None:
        return induce(descent, feature_induction, tol=tol, max_iter=n_sweeps, log=log)
    return descend(descent, tol=tol, max_iter=n_sweeps, is_plain=curvature != "local", log=log)


def make_problem(
    data: Dataset,
    *,
    penalty: str,
    alpha: float,
    scale: Array | None = None,
    negative_sampling: float | None = None,
    seed: int = 0,
    n_jobs: int | None = None,
    **layering: Any,
) -> DominationProblem:
    """The problem of these data; ``layering`` are the options of `Layering.of`."""
    made = Layering.of(data, **layering)
    if negative_sampling is not None and negative_sampling < 1.0:
        made = sample_negatives(made, negative_sampling, np.random.default_rng(seed))
    n_threads = useful_threads(data.rows.nbytes, resolve(n_jobs))
    rows = without_offsets(data.rows)
    return DominationProblem(rows, made, penalty, float(alpha), scale, n_threads)


def certified(result: Result, data: Dataset, **options: Any) -> Result:
    """The result with the gap and the residual at its ``w``, all features counted.

    What a history says of an iterate of feature induction is of the features that had entered by
    then. ``options`` are those that `train` was called with.
    """
    given = {name: options[name] for name in _PROBLEM if name in options}
    point = make_problem(data, **given).at(result.w)
    residual = point.kkt_residual
    return replace(result, gap=point.gap, gradient_norm=residual, kkt_residual=residual)
