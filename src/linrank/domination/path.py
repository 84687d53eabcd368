"""Paths of the domination loss: the models of a whole grid of alpha, each from the last."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from linrank.data.rows import Array
from linrank.domination import train
from linrank.domination.coordinate import Descent, Log, descend
from linrank.domination.problem import DominationProblem, PenalizedPoint
from linrank.errors import check_natural, is_number
from linrank.ranksvm.path import PathResult, as_grid
from linrank.solvers.result import Callback, Result, Verdict


class DominationPathResult(PathResult):
    """The models for a grid of alpha, in descending order: the sparsest first."""


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
    return alphas_by_slopes(slopes, start.value, problem.penalty, n_alphas, eps)


def alphas_by_slopes(
    slopes: Array, value: float, penalty: str, n_alphas: int, eps: float | None
) -> Array:
    """The same by the slopes of the loss at 0, exact zeros included, and its value there."""
    if penalty == "l1":
        largest = float(np.abs(slopes).max())
    else:
        largest = float(slopes @ slopes) / (4.0 * _NEGLIGIBLE * value)
    if not largest > 0.0:
        raise ValueError(
            "the loss has no slope at 0: every feature is the same in all rows that are compared, "
            "or balanced between them; check the features, or give alphas"
        )
    eps = EPS[penalty] if eps is None else eps
    return largest * np.geomspace(1.0, eps, n_alphas) if n_alphas > 1 else np.array([largest])


def strong_features(point: PenalizedPoint, alpha: float) -> Array:
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
    tol: float | None,
    max_iter: int | None,
    max_features: int | None = None,
    callback: Callback | None = None,
) -> Iterator[Result]:
    """Minimize ``L(XDw) + alpha·pen(w)`` for each of the descending ``alphas`` to ``tol·F``.

    Ends after the first model with more than ``max_features`` weights, or when ``callback``, whose
    state has ``"alpha"`` too, returns True: without the model that it was called for.
    """
    tol = train.TOLERANCE if tol is None else tol
    if train.choose_solver(solver, problem.penalty, None) == "coordinate":
        fit = _coordinate_fit(problem, tol, max_iter or train.SWEEPS)
    else:

        def fit(alpha: float, **options: Any) -> Result:
            part, steps = replace(problem, alpha=alpha), max_iter or train.STEPS
            return train.minimize_ridge(part, alpha=alpha, tol=tol, max_iter=steps, **options)

    return until_wide(each_from_last(fit, alphas.tolist(), callback), max_features)


def until_wide(results: Iterable[Result], max_features: int | None) -> Iterator[Result]:
    """The results up to the first with more weights than ``max_features``."""
    for result in results:
        yield result
        if max_features is not None and np.count_nonzero(result.w) > max_features:
            return


def _coordinate_fit(problem: DominationProblem, tol: float, max_iter: int) -> Callable[..., Result]:
    """``fit(alpha=, w0=, callback=)`` by one descent, which goes on from where it is."""
    is_sparse = problem.penalty == "l1"
    # At 0, the optimum of all alphas from the largest on.
    top = replace(problem, alpha=problem.largest_alpha()) if is_sparse else problem
    descent = Descent(top)
    point = descent.point()

    def fit(alpha: float, w0: Array | None, callback: Callback) -> Result:
        nonlocal point
        log = Log(callback, time.perf_counter())
        log.context = {"alpha": alpha}
        descent.problem = replace(problem, alpha=alpha)
        if not is_sparse:
            return descend(descent, tol=tol, max_iter=max_iter, log=log)
        result, point = _descend_screened(
            descent, strong_features(point, alpha), tol, max_iter, log
        )
        return result

    return fit


def _descend_screened(
    descent: Descent, features: Array, tol: float, max_iter: int, log: Log
) -> tuple[Result, PenalizedPoint]:
    """Minimize over ``features``, and those that turn out to be missing among them.

    Certificates on the way need the derivatives of these features only; the last is that of all.
    """
    first, enough = descent.n_sweeps, tol
    while True:
        n_left = max_iter - (descent.n_sweeps - first)
        found = descend(descent, tol=enough, max_iter=n_left, among=features, log=log)
        point = descent.certified_point()
        verdict: Verdict = (found.stopped, found.message)
        if log.record(descent, point, len(features)):
            verdict = ("callback", "stopped by the callback")
        elif found.converged and point.gap > tol * point.value:
            missing = np.flatnonzero(np.abs(point.derivatives) > point.alpha)
            n_before, features = len(features), np.union1d(features, missing)
            if len(features) == n_before:  # the certificates differ by rounding: go on, not round
                enough *= 0.5
            if enough >= 1e-2 * tol:
                continue
            verdict = ("precision", "the certified gap has fallen to the rounding of F")
        return log.result(point, descent.n_sweeps - first, verdict), point


def each_from_last(
    fit: Callable[..., Result], alphas: Sequence[float], callback: Callback | None
) -> Iterator[Result]:
    """The minimizers by ``fit(alpha=, w0=, callback=)``, each from the last.

    It ends where ``callback`` stops a fit, without the model that it was called for.
    """
    w: Array | None = None
    for alpha in alphas:

        def watch(state: dict[str, Any], alpha: float = alpha) -> bool:
            return callback is not None and bool(callback({**state, "alpha": alpha}))

        result = fit(alpha=alpha, w0=w, callback=watch)
        if result.stopped == "callback":
            return
        yield result
        w = result.w


def check_path(parameters: Any) -> None:
    """Raise ValueError for parameters, as of a search, that no path can be made of."""
    max_features, eps = parameters.max_features, parameters.eps
    if parameters.penalty == "none":
        raise ValueError(
            "penalty='none' has no alpha to follow a path of; use 'l1' or 'l2', or a single "
            "DominationRanker"
        )
    check_natural("n_alphas", parameters.n_alphas)
    check_natural("max_features", max_features, ", or None", optional=True)
    if eps is not None and not (is_number(eps) and 0.0 < eps < 1.0):
        raise ValueError(f"eps must be a number > 0 and < 1, or None, got {eps!r}")


def as_alphas(alphas: Any, auto: Callable[[], Array]) -> Array:
    """The grid as a descending array, each value once; ``auto`` makes the one of ``"auto"``."""
    is_auto = isinstance(alphas, str) and alphas == "auto"
    values = auto().tolist() if is_auto else ()
    return np.ascontiguousarray(as_grid("alphas", alphas, values)[::-1])
