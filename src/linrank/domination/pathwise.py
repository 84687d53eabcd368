"""Training for many alphas, each from the last: coordinate descent by strong rules, or Newton."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linrank.domination.descent import Descent, Log, descend
from linrank.domination.newton import by_newton
from linrank.domination.parameters import choose_solver
from linrank.domination.problem import DominationProblem, PenalisedPoint
from linrank.domination.training import STEPS, SWEEPS
from linrank.solvers.result import Callback, Result, Verdict

__all__ = ["follow", "geometric_alphas", "strong_features"]

Array = NDArray[Any]

_NEGLIGIBLE = 0.01  # share of F that the largest alpha of a grid for l2 leaves on the table
_NEAR = 0.8  # of the threshold of the strong rule: misses cost more than features too many
EPS = {"l1": 1e-3, "l2": 1e-6}  # smallest alpha of a grid, relative to the largest


def geometric_alphas(problem: DominationProblem, n_alphas: int, eps: float | None) -> Array:
    """``n_alphas`` values in descending order, equal factors apart, the last ``eps`` of the first.

    l1: from ``‖∇L(0)‖_∞``, where the first weight is about to leave 0. l2: no weight is ever 0;
    from ``‖∇L(0)‖²/(4·0.01·L(0))``, where 0 is certified to be within 1 % of the minimum.
    """
    start = problem.risk.at(np.zeros(problem.n_features))
    # A feature that is the same in all rows that are compared has no slope but rounding.
    bounds = Descent(problem).measure(np.arange(problem.n_features))
    slopes = np.where(bounds.bound > 0.0, start.gradient, 0.0)
    if problem.penalty == "l1":
        largest = float(np.abs(slopes).max())
    else:
        largest = float(slopes @ slopes) / (4.0 * _NEGLIGIBLE * start.value)
    if not largest > 0.0:
        raise ValueError(
            "the loss has no slope at 0: every feature is the same in all rows that are compared, "
            "or balanced between them; check the features, or give alphas"
        )
    eps = EPS[problem.penalty] if eps is None else eps
    return largest * np.geomspace(1.0, eps, n_alphas) if n_alphas > 1 else np.array([largest])


def strong_features(point: PenalisedPoint, alpha: float) -> Array:
    """Features that may have a weight at the optimum of ``alpha``, by the sequential strong rule.

    From the optimum of a larger alpha', ``point``, to that of alpha, derivatives change by no more
    than alpha itself does, nearly always: a feature with ``|∇L_r| < 2 alpha - alpha'`` stays at 0.
    As the point is an optimum to within a tolerance only, those are kept that come near. No
    promise: the certificate has to look at all features.
    """
    is_strong = np.abs(point.derivatives) >= _NEAR * (2.0 * alpha - point.alpha)
    return np.flatnonzero(is_strong | (point.w != 0.0))


def follow(
    problem: DominationProblem,
    alphas: Array,
    *,
    solver: str,
    tol: float,
    max_iter: int | None,
    max_features: int | None = None,
    curvature: str = "local",
    order: str = "sequential",
    seed: int = 0,
    callback: Callback | None = None,
) -> Iterator[Result]:
    """Minimise ``L(XDw) + alpha·pen(w)`` for each of the descending ``alphas`` to ``tol·F``.

    Ends after the first model with more than ``max_features`` weights, or when ``callback``, whose
    state has ``"alpha"`` too, returns True: without the model that it was called for.
    """
    if choose_solver(solver, problem.penalty, None) == "coordinate":
        made = Descent(problem, curvature=curvature, order=order, seed=seed)
        found = _descents(made, alphas, tol, SWEEPS if max_iter is None else max_iter, callback)
    else:
        found = _newtons(problem, alphas, tol, STEPS if max_iter is None else max_iter, callback)
    for result in found:
        if result.stopped == "callback":
            return
        yield result
        if max_features is not None and np.count_nonzero(result.w) > max_features:
            return


def _descents(
    descent: Descent, alphas: Array, tol: float, max_iter: int, callback: Callback | None
) -> Iterator[Result]:
    is_sparse = descent.problem.penalty == "l1"
    if is_sparse:  # at 0, the optimum of all alphas from here on
        descent.problem = replace(descent.problem, alpha=descent.problem.largest_alpha())
        point = descent.point()
    for alpha in alphas.tolist():
        log = Log(callback, time.perf_counter())
        log.context = {"alpha": alpha}
        descent.problem = replace(descent.problem, alpha=alpha)
        if is_sparse:
            result, point = _screened(descent, strong_features(point, alpha), tol, max_iter, log)
            yield result
        else:
            is_plain = descent.curvature != "local"
            yield descend(descent, tol=tol, max_iter=max_iter, is_plain=is_plain, log=log)


def _screened(
    descent: Descent, features: Array, tol: float, max_iter: int, log: Log
) -> tuple[Result, PenalisedPoint]:
    """Minimise over ``features``, and those that turn out to be missing among them.

    Certificates on the way need the derivatives of these features only; the last is that of all.
    """
    first, is_plain, enough = descent.n_sweeps, descent.curvature != "local", tol
    while True:
        n_left = max_iter - (descent.n_sweeps - first)
        found = descend(
            descent, tol=enough, max_iter=n_left, among=features, is_plain=is_plain, log=log
        )
        point = descent.certified_point()
        wants_stop = log.record(descent, point, len(features))
        verdict: Verdict = (found.stopped, found.message)
        if wants_stop:
            verdict = ("callback", "stopped by the callback")
        if wants_stop or not found.converged or point.gap <= tol * point.value:
            return log.result(point, descent.n_sweeps - first, verdict), point
        missing = np.flatnonzero(np.abs(point.derivatives) > point.alpha)
        n_before, features = len(features), np.union1d(features, missing)
        if len(features) == n_before:  # the two certificates differ by rounding: go on, not round
            enough *= 0.5
            if enough < 1e-2 * tol:
                verdict = ("precision", "the certified gap has fallen to the rounding of F")
                return log.result(point, descent.n_sweeps - first, verdict), point


def _newtons(
    problem: DominationProblem,
    alphas: Array,
    tol: float,
    max_iter: int,
    callback: Callback | None,
) -> Iterator[Result]:
    w: Array | None = None
    for alpha in alphas.tolist():

        def told(state: dict[str, Any], alpha: float = alpha) -> bool:
            return callback is not None and bool(callback({**state, "alpha": alpha}))

        result = by_newton(
            problem.rows,
            problem.layering,
            alpha,
            scale=problem.scale,
            w0=w,
            tol=tol,
            max_iter=max_iter,
            n_threads=problem.n_threads,
            callback=told,
        )
        w = result.w
        yield result
