"""What a solver returns, and the certificate that comes with it."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from linrank.data import Array, Box, dot
from linrank.data.frames import read_only
from linrank.losses.base import Dual

_UNIT = 2.0**-53  # of rounding


def duality_gap(point: Any) -> float:
    """A bound on ``F(w) - F*`` from the dual point that goes with ``w``."""
    return float(point.primal + point.primal_error - lower_bound(point))


LOOSE = 0.01  # a proven bound wider than this share of F says little


def certified_share(objective: float, gap: float) -> float | None:
    """The bound on ``F - F*`` as a share of F; None where it is too wide to say anything."""
    share = gap / abs(objective) if objective else 0.0
    return share if share <= LOOSE else None


def distance_text(objective: float, gap: float, converged: bool) -> str:
    """How far an objective is from its minimum at most, for readers; no number that says nothing.

    >>> print(distance_text(298.0, 7.5e-06, True))
    at most 7.5e-06 (2.5e-08 of it) above the minimum: certified by the dual
    """
    share = certified_share(objective, gap)
    if share is not None:
        return f"at most {gap:.2g} ({share:.1e} of it) above the minimum: certified by the dual"
    told = "no useful bound on its distance to the minimum is proven"
    # A fit that did not converge has a warning with a remedy of its own.
    return f"{told}: scaled features, a smaller C or tol may give one" if converged else told


def lower_bound(point: Any) -> float:
    """A lower bound of ``F*`` from the dual point that goes with ``w``, at its best length.

    No risk is negative, so that the least of the regularizer is one as well, and rounding so large
    that it makes D no number costs no more than that.
    """
    dual, box = point.dual, point.box
    bound = _freely(point, dual) if box is None else _in_box(point, box, dual)
    least = 0.0 if box is None else _least(box)
    return float(bound) if bound > least else least


def _freely(point: Any, dual: Dual) -> float:
    """``max_t ta - t²b`` with ``a = e'α``, ``b = ½(‖u‖ + ‖e‖)² + ‖α‖²/4C`` on the safe side."""
    half = (0.5 * float(point.risk_square) + dual.quadratic) * (1.0 + 8.0 * _UNIT)
    if not (dual.linear > 0.0 and half > 0.0):
        return 0.0  # rounding has eaten e'α, and no length of α is any good
    t = min(dual.linear / (2.0 * half), dual.largest)
    linear, quadratic = t * dual.linear, t * t * half
    return linear - quadratic - 4.0 * _UNIT * (linear + quadratic)


def _in_box(point: Any, box: Box, dual: Dual) -> float:
    """The same with ``R*(v) = v·clip(v) - ½‖clip(v)‖²``.

    The slope of R* is ``clip(v)``, which moves no farther than v: an error e of u costs at most
    ``t e·|clip(tu)| + ½t²‖e‖²``.
    """
    u, error = -point.risk_gradient, point.risk_gradient_error
    t = _best_length(u, box, dual)
    v = box.clip(t * u)
    terms = v * (t * u - 0.5 * v)
    sizes = np.abs(v) * (np.abs(t * u) + 0.5 * np.abs(v))
    linear, quadratic = t * dual.linear, t * t * dual.quadratic
    value = linear - quadratic - float(terms.sum())
    with np.errstate(invalid="ignore", over="ignore"):  # of an error without bound: no number
        value -= t * float(error @ np.abs(v)) + 0.5 * t * t * float(error @ error)
    n = len(u) + 8
    return value - n * _UNIT * (abs(linear) + quadratic + float(sizes.sum()))


def _least(box: Box) -> float:
    """``min ½‖w‖²`` in the box, rounded down."""
    nearest = box.clip(np.zeros_like(box.lower))
    return 0.5 * float(nearest @ nearest) * (1.0 - (len(nearest) + 4) * _UNIT)


def _best_length(u: Array, box: Box, dual: Dual) -> float:
    """The t that nearly maximizes the concave ``D(t) = t e'α - t²‖α‖²/4C - R*(tu)``.

    Its slope ``e'α - t‖α‖²/2C - u·clip(tu)`` falls, piece by piece linearly: Newton's method from
    ``t = 1``, kept between a t where it is positive and one where it is not. Far from the optimum
    the best t may be smaller by many orders of magnitude. Every t gives a bound, so none is needed
    to the last digit.
    """
    t, low, high = min(1.0, dual.largest), 0.0, math.inf
    for _ in range(100):
        v = box.clip(t * u)
        slope = dual.linear - 2.0 * t * dual.quadratic - dot(u, v)
        low, high = (t, high) if slope > 0.0 else (low, t)
        inside = np.where((box.lower < v) & (v < box.upper), u, 0.0)
        curvature = 2.0 * dual.quadratic + dot(inside, inside)
        last, t = t, t + slope / curvature if curvature > 0.0 else math.inf
        if not low < t < high:  # or no number
            t = 16.0 * low if high == math.inf else max(high / 16.0, 0.5 * (low + high))
        t = min(t, dual.largest)
        if abs(t - last) <= 1e-6 * last or not 1e-300 < t < 1e300:
            break
    return last


def kkt_residual(point: Any) -> float:
    """``‖w - clip(w - ∇F(w))‖``: how far a step down the gradient gets inside the box."""
    g = point.gradient
    if point.box is not None:
        g = point.w - point.box.clip(point.w - g)
    return math.sqrt(dot(g, g))


_LARGEST = 1e150  # of ‖∇F‖²; solvers square it
Callback = Callable[[dict[str, Any]], "bool | None"]
Reason = Literal["tolerance", "max_iter", "precision", "callback"]
Verdict = tuple[Reason, str]  # why a solver stopped, by name and in words


@dataclass(frozen=True, eq=False)
class Result:
    """The outcome of a fit.

    Attributes
    ----------
    w : float64 array
        Minimizer found, in the scaled space: scores are ``X D w``.
    value : float
        ``F(w)``.
    gap : float
        Certified: ``F(w) - min F <= gap``, and ``value - min F`` as well: the rounding of all that
        it is made of, ``value`` among it, is counted.
    gradient_norm : float
        ``‖∇F(w)‖``.
    kkt_residual : float
        ``‖w - clip(w - ∇F(w), lower, upper)‖``, 0 at the optimum; without bounds ``‖∇F(w)‖``.
    n_iter, n_hvp : int
        Outer iterations and Hessian products.
    converged : bool
        Whether the tolerance was reached.
    stopped : {"tolerance", "max_iter", "precision", "callback"}
        Why the solver stopped; "precision": rounding forbids further progress.
    message : str
        The same in words, with what to do if not converged.
    history : dict of lists
        One entry per iterate, the starting point first: "objective", "gap", "decrement" (the
        estimate of ``F - F*`` made there), "gradient_norm", "kkt_residual", "step", "n_hvp" and
        "seconds" (both since the start).
    C : float or None
        The weight of the losses, where it was chosen for the data.
    """

    w: Array
    value: float
    gap: float
    gradient_norm: float
    kkt_residual: float
    n_iter: int
    n_hvp: int
    converged: bool
    stopped: Reason
    message: str
    history: dict[str, list[float]] = field(repr=False)
    C: float | None = field(default=None, kw_only=True)

    @property
    def summary(self) -> dict[str, float | int | bool | str | None]:
        """What a model is to know of the run."""
        return {
            "objective": self.value,
            "gap": self.gap,
            "gradient_norm": self.gradient_norm,
            "kkt_residual": self.kkt_residual,
            "n_iter": self.n_iter,
            "converged": self.converged,
            "stopped": self.stopped,
        }


class Patience:
    """Tells when steps do not lower a certified gap any more, though there is little left to gain.

    What is left of it then is rounding.
    """

    LEAST = 0.9  # share of the gap that a useful step leaves, at most
    STEPS = 3  # in a row that are not

    def __init__(self) -> None:
        self._gap, self._n_vain = math.inf, 0

    def is_over(self, gap: float, is_idle: bool) -> bool:
        """Whether the last steps were in vain: each had this gap, and gained little."""
        is_vain = is_idle and gap > self.LEAST * self._gap
        self._n_vain = self._n_vain + 1 if is_vain else 0
        self._gap = min(self._gap, gap)
        return self._n_vain >= self.STEPS


def check_finite(objective: float) -> float:
    """The objective; ValueError if it has left the range of double precision."""
    if not math.isfinite(objective):
        raise ValueError(
            f"the objective is {objective:g}: features, weights or C are too large for double "
            "precision; divide them by a common factor"
        )
    return objective


class History:
    """Numbers by iterate under their names, ``objective`` and ``seconds`` always among them.

    Parameters
    ----------
    callback : callable or None
        Called with the numbers of every iterate, ``w`` and ``n_iter``; stops by returning True.
    started : float, optional
        When the seconds began, by ``time.perf_counter``; now if None.
    keys : iterable of str
        The names that are known from the start, in their order.
    """

    def __init__(
        self,
        callback: Callback | None,
        started: float | None = None,
        keys: Iterable[str] = ("objective",),
    ) -> None:
        self.callback = callback
        self.started = time.perf_counter() if started is None else started
        self.history: dict[str, list[float]] = {key: [] for key in keys}

    @property
    def objective(self) -> float:
        """That of the last iterate."""
        return self.history["objective"][-1]

    @property
    def n_iter(self) -> int:
        """Iterates after the first."""
        return len(self.history["objective"]) - 1

    def append(self, weights: Callable[[], Any], entry: dict[str, float]) -> bool:
        """Add an iterate; True if the callback asks to stop. Only a callback needs its weights."""
        entry["seconds"] = time.perf_counter() - self.started
        for key, value in entry.items():
            self.history.setdefault(key, []).append(value)
        if self.callback is None:
            return False
        # The solver goes on from the weights that the callback looks at.
        return bool(self.callback({**entry, "w": read_only(weights()), "n_iter": self.n_iter}))

    def ending(self, stopped: Reason, message: str, residual: float) -> dict[str, Any]:
        """What the result says of a descent that takes no products with a Hessian."""
        return {
            "gradient_norm": residual,
            "kkt_residual": residual,
            "n_iter": self.n_iter,
            "n_hvp": 0,
            "converged": stopped == "tolerance",
            "stopped": stopped,
            "message": message,
            "history": self.history,
        }


class Recorder(History):
    """The history of a solver whose points are certified."""

    def __init__(self, callback: Callback | None, started: float | None = None) -> None:
        keys = ("objective", "gap", "decrement", "gradient_norm", "kkt_residual")
        super().__init__(callback, started, (*keys, "step", "n_hvp", "seconds"))
        self.best_bound = -np.inf

    def record(self, point: Any, *, step: float, n_hvp: int) -> bool:
        """Add an iterate; True if the callback asks to stop."""
        square = dot(point.gradient, point.gradient)
        if not square < _LARGEST:
            raise ValueError(
                f"the gradient of the objective has the squared norm {square:g}: features, weights "
                "or C are too large for double precision; divide them by a common factor"
            )
        norms = {"gradient_norm": math.sqrt(square), "kkt_residual": kkt_residual(point)}
        return self.add(point, lower_bound(point), **norms, step=step, n_hvp=n_hvp)

    def add(self, point: Any, bound: float, **numbers: float) -> bool:
        """Add an iterate with a lower bound of ``F*`` from elsewhere; True as of `record`.

        ``numbers`` are the norms, the step and the products, as in the history.
        """
        gap = self._gap(point, bound)
        entry = {"objective": point.primal, "gap": gap, "decrement": math.nan, **numbers}
        return self.append(lambda: point.w, entry)

    def revise(self, point: Any, bound: float) -> None:
        """The last iterate by another point of the same ``w``, and a lower bound found there."""
        self.history["gap"][-1] = self._gap(point, bound)
        self.history["objective"][-1] = point.primal

    def _gap(self, point: Any, bound: float) -> float:
        """The certified bound on ``F - F*`` at a point, from the best lower bound so far."""
        self.best_bound = max(self.best_bound, bound)
        rounding = point.primal_error
        return float(max(rounding, point.primal + rounding - self.best_bound))

    @property
    def gap(self) -> float:
        """The certified bound on ``F - F*`` at the last iterate."""
        return self.history["gap"][-1]

    @property
    def last_decrement(self) -> float:
        """What the step to the last iterate was to gain; infinite of the first."""
        return self.history["decrement"][-2] if self.n_iter > 0 else math.inf

    @property
    def kkt_residual(self) -> float:
        """That of the last iterate."""
        return self.history["kkt_residual"][-1]

    def note_decrement(self, decrement: float) -> None:
        """The estimate of ``F - F*`` made at the last iterate."""
        self.history["decrement"][-1] = decrement

    def result(self, point: Any, stopped: Reason, message: str) -> Result:
        told = self.ending(stopped, message, self.kkt_residual)
        told["gradient_norm"] = self.history["gradient_norm"][-1]
        told["n_hvp"] = int(self.history["n_hvp"][-1])
        return Result(w=point.w, value=point.primal, gap=self.gap, **told)
