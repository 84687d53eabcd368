"""Paths of the domination loss: the models of a whole grid of alpha, each from the last."""

from __future__ import annotations

import itertools
import numbers
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linrank.data.dataset import Dataset
from linrank.data.queries import query_weights, varying_columns
from linrank.data.rows import Array
from linrank.data.scaling import Scaling
from linrank.domination import train
from linrank.domination.coordinate import Descent, Log, descend
from linrank.domination.problem import DominationProblem, PenalizedPoint
from linrank.domination.train import by_newton
from linrank.errors import check_natural
from linrank.ranksvm.path import PathResult, as_grid, reporting, warn_unless_certified
from linrank.solvers.result import Callback, Result, Verdict
from linrank.system.resources import check_fits
from linrank.system.seeds import seed_of


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
    tol: float,
    max_iter: int | None,
    max_features: int | None = None,
    callback: Callback | None = None,
) -> Iterator[Result]:
    """Minimize ``L(XDw) + alpha·pen(w)`` for each of the descending ``alphas`` to ``tol·F``.

    Ends after the first model with more than ``max_features`` weights, or when ``callback``, whose
    state has ``"alpha"`` too, returns True: without the model that it was called for.
    """
    if train.choose_solver(solver, problem.penalty, None) == "coordinate":
        made = Descent(problem)
        found = _descents(made, alphas, tol, max_iter or train.SWEEPS, callback)
    else:

        def fit(alpha: float, **options: Any) -> Result:
            steps = max_iter or train.STEPS
            return by_newton(replace(problem, alpha=alpha), tol=tol, max_iter=steps, **options)

        found = each_from_last(fit, alphas.tolist(), callback)
    kept = itertools.takewhile(lambda result: result.stopped != "callback", found)
    return until_wide(kept, max_features)


def until_wide(results: Iterable[Result], max_features: int | None) -> Iterator[Result]:
    """The results up to the first with more weights than ``max_features``."""
    for result in results:
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
            yield descend(descent, tol=tol, max_iter=max_iter, log=log)


def _screened(
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


def each_from_last(
    fit: Callable[..., Result], alphas: Sequence[float], callback: Callback | None
) -> Iterator[Result]:
    """The minimizers by ``fit(alpha=, w0=, callback=)``, each from the last.

    It ends where ``callback`` stops a fit, without the model that it was called for.
    """
    w: Array | None = None
    for alpha in alphas:

        def told(state: dict[str, Any], alpha: float = alpha) -> bool:
            return callback is not None and bool(callback({**state, "alpha": alpha}))

        result = fit(alpha=alpha, w0=w, callback=told)
        if result.stopped == "callback":
            return
        yield result
        w = result.w


def check_path(
    *, penalty: str, n_alphas: int, eps: float | None, max_features: int | None = None
) -> None:
    """Raise ValueError for what no path can be made of."""
    if penalty == "none":
        raise ValueError(
            "penalty='none' has no alpha to follow a path of; use 'l1' or 'l2', or a single "
            "DominationRanker"
        )
    check_natural("n_alphas", n_alphas)
    if max_features is not None:
        check_natural("max_features", max_features, ", or None")
    if eps is not None and not (isinstance(eps, numbers.Real) and 0.0 < eps < 1.0):
        raise ValueError(f"eps must be a number > 0 and < 1, or None, got {eps!r}")


def as_alphas(alphas: Any, auto: Callable[[], Array]) -> NDArray[np.float64]:
    """The grid as a descending array, each value once; ``auto`` makes the one of ``"auto"``."""
    is_auto = isinstance(alphas, str) and alphas == "auto"
    values = auto().tolist() if is_auto else ()
    return np.ascontiguousarray(as_grid("alphas", alphas, values)[::-1])


@dataclass(frozen=True, eq=False)
class PathProblem:
    """What all alphas of a path share: the data, their scaling and the options of the solver."""

    problem: DominationProblem
    scaling: Scaling
    options: dict[str, Any] = field(repr=False)

    @classmethod
    def of(
        cls,
        data: Dataset,
        *,
        scale: str = "none",
        n_jobs: int | None = None,
        **asked: Any,
    ) -> PathProblem:
        """Of a dataset; the rest as in `of_scaled`."""
        scaling = Scaling.fit(scale, data.rows, weight=data.weight, n_jobs=n_jobs)
        return cls.of_scaled(
            scaling.transformed(data, n_jobs=n_jobs), scaling, n_jobs=n_jobs, **asked
        )

    @classmethod
    def of_scaled(
        cls,
        scaled: Dataset,
        scaling: Scaling,
        *,
        solver: str = "auto",
        tol: float | None = None,
        max_iter: int | None = None,
        n_jobs: int | None = None,
        **asked: Any,
    ) -> PathProblem:
        """Of what `Scaling.transformed` returns; ``asked`` is as `train.make_problem` takes it."""
        solving: dict[str, Any] = {"solver": solver, "max_iter": max_iter}
        checked = {name: asked[name] for name in ("penalty", "negative_sampling") if name in asked}
        train.check_parameters(tol=tol, **solving, **checked)
        problem = train.make_problem(scaled, scale=scaling.factors, n_jobs=n_jobs, **asked)
        tol = train.TOLERANCE if tol is None else tol
        return cls(problem, scaling, {**solving, "tol": tol})

    def solve(
        self,
        alphas: Array,
        *,
        max_features: int | None = None,
        callback: Callback | None = None,
        progress: Callable[[Result], None] | None = None,
    ) -> DominationPathResult:
        """The path of the descending ``alphas``; ``progress`` is called with each result."""
        n_features = self.problem.n_features
        check_fits(
            len(alphas) * n_features * 8,
            f"a path of {len(alphas)} models of {n_features} features",
            "use fewer alphas, or max_features with a larger eps",
        )
        found = follow(
            self.problem, alphas, max_features=max_features, callback=callback, **self.options
        )
        results = list(reporting(found, progress))
        varies = varying_columns(self.problem.rows, self.problem.layering.queries)
        return DominationPathResult.of(alphas, results, self.scaling, varies, parameter="alpha")


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
    margin, layers, pooled, solver, negative_sampling
        As in :class:`linrank.DominationRanker`.
    tol : float or None, default=None
        Largest certified gap of each model, relative to its objective; 1e-4 if None.
    max_iter : int or None, default=None
        Sweeps at most for each alpha, or Newton steps; 1000 or 100 if None.
    scale : {"none", "standard", "minmax", "query"}, default="none"
        Feature scaling, folded into ``coefs``.
    random_state : int, None, RandomState or Generator, default=None
        Of `negative_sampling`.
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
        tol=tol,
        max_iter=max_iter,
        scale=scale,
        query_weight=query_weights(query_weight, data.queries),
        seed=seed_of(random_state),
        n_jobs=n_jobs,
    )
    grid = as_alphas(alphas, lambda: geometric_alphas(problem.problem, n_alphas, eps))
    path = problem.solve(grid, max_features=max_features, callback=callback)
    warn_unless_certified(path)
    return path
