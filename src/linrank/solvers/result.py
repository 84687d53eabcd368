"""What a solver returns, and the certificate that comes with it."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from linrank.bounds import Box
from linrank.inner_product import dot
from linrank.losses.base import Dual

__all__ = ["Callback", "Recorder", "Result", "Verdict", "duality_gap", "kkt_residual"]

Array = NDArray[Any]
_LARGEST = 1e150  # of ‖∇F‖²; the duality gap squares it
Callback = Callable[[dict[str, Any]], "bool | None"]
Reason = Literal["tolerance", "max_iter", "precision", "callback"]
Verdict = tuple[Reason, str]  # why a solver stopped, by name and in words


@dataclass(frozen=True, eq=False)
class Result:
    """The outcome of a fit.

    Attributes
    ----------
    w : float64 array
        Minimiser found, in the scaled space: scores are ``X D w``.
    value : float
        ``F(w)``.
    gap : float
        Certified: ``F(w) - min F <= gap``.
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


def duality_gap(point: Any) -> float:
    """Bound on ``F(w) - F*`` from the dual point α that goes with ``w``, at its best length.

    With ``u = w - ∇F(w)``, ``a = e'α`` and ``b = ½‖u‖² + ‖α‖²/4C``, the dual value of ``tα`` is
    ``ta - t²b``. ``t = 1`` gives the identity ``F - D = ½‖∇F‖²`` plus the slack of α, and
    ``t = a/2b`` the largest value. Near the optimum the gap is what the length saves on
    ``½‖∇F‖²``: the difference of F and D would lose all digits below the rounding of F. Where
    ``½‖∇F‖²`` is above F, far from it, it is the other way round.
    """
    if point.box is not None:
        return _gap_in_box(point)
    u = point.w - point.gradient
    dual = point.dual
    half = 0.5 * dot(u, u) + dual.quadratic
    at_one = 0.5 * dot(point.gradient, point.gradient) + dual.slack
    if half <= 0.0:
        return float(at_one)
    # e'α less the allowance for its rounding may be negative: no length of α is then any good.
    t = min(max(0.0, dual.linear / (2.0 * half)), dual.largest)
    if at_one > point.primal:
        return float(point.primal - t * (dual.linear - t * half))
    return _less_gain(at_one, (t - 1.0) * (dual.linear - (t + 1.0) * half))


def _gap_in_box(point: Any) -> float:
    """The same with the conjugate of ``½‖w‖²`` on the box, ``R*(u) = u·ŵ - ½‖ŵ‖²``, ŵ = clip(u).

    At ``t = 1`` the bound is ``½‖w - ŵ‖² + (w - ŵ)·(ŵ - u)`` plus the slack of α; no term of the
    sums is negative, so nothing cancels.
    """
    box, dual = point.box, point.dual
    u = point.w - point.gradient
    best = box.clip(u)
    off = point.w - best
    at_one = 0.5 * dot(off, off) + float(np.maximum(off * (best - u), 0.0).sum()) + dual.slack
    t = _best_length(u, box, dual)
    # D(t) - D(1), by differences: R*(tu) - R*(u) = (t - 1) u·ŵ + Σ (v - ŵ)(tu - ½(v + ŵ)).
    v = box.clip(t * u)
    moved = float(((v - best) * (t * u - 0.5 * (v + best))).sum())
    gain = (t - 1.0) * (dual.linear - (t + 1.0) * dual.quadratic - dot(u, best)) - moved
    return _less_gain(at_one, max(gain, 0.0))


def _less_gain(at_one: float, gain: float) -> float:
    """The bound at ``t = 1`` less what another length gains.

    Nothing gains more than there is: such a gain is rounding (of ``e'α`` above all), and proves
    nothing. The bound at ``t = 1`` has no such difference.
    """
    return float(at_one - gain if gain < at_one else at_one)


def _best_length(u: Array, box: Box, dual: Dual) -> float:
    """The t that nearly maximises the concave ``D(t) = t e'α - t²‖α‖²/4C - R*(tu)``.

    Its slope ``e'α - t‖α‖²/2C - u·clip(tu)`` is piecewise linear, so a few steps of Newton from
    ``t = 1`` find the root; every t gives a bound, so none is needed to the last digit.
    """
    t = 1.0
    for _ in range(5):
        v = box.clip(t * u)
        slope = dual.linear - 2.0 * t * dual.quadratic - dot(u, v)
        inside = np.where((box.lower < v) & (v < box.upper), u, 0.0)
        curvature = 2.0 * dual.quadratic + dot(inside, inside)
        if not curvature > 0.0:
            break
        t, last = min(max(0.0, t + slope / curvature), dual.largest), t
        if abs(t - last) <= 1e-6 * t:
            break
    return t


def kkt_residual(point: Any) -> float:
    """``‖w - clip(w - ∇F(w))‖``: how far a step down the gradient gets inside the box."""
    g = point.gradient
    if point.box is not None:
        g = point.w - point.box.clip(point.w - g)
    return math.sqrt(dot(g, g))


class Recorder:
    """Collects the history of a solver and talks to its callback."""

    def __init__(self, callback: Callback | None, started: float | None = None) -> None:
        self.callback = callback
        self.started = time.perf_counter() if started is None else started
        keys: tuple[str, ...] = ("objective", "gap", "decrement", "gradient_norm", "kkt_residual")
        keys += ("step", "n_hvp", "seconds")
        self.history: dict[str, list[float]] = {key: [] for key in keys}
        self.best_bound = -np.inf

    def record(self, point: Any, *, step: float, n_hvp: int) -> bool:
        """Add an iterate; True if the callback asks to stop."""
        square = dot(point.gradient, point.gradient)
        if not square < _LARGEST:
            raise ValueError(
                f"the gradient of the objective has the squared norm {square:g}: features, weights "
                "or C are too large for double precision; divide them by a common factor"
            )
        bound = point.primal - duality_gap(point)
        return self.add(
            point,
            bound,
            gradient_norm=math.sqrt(square),
            residual=kkt_residual(point),
            step=step,
            n_hvp=n_hvp,
        )

    def add(
        self,
        point: Any,
        bound: float,
        *,
        gradient_norm: float,
        step: float,
        n_hvp: int,
        residual: float | None = None,
    ) -> bool:
        """Add an iterate with a lower bound of ``F*`` from elsewhere; True as of `record`.

        ``residual`` is that of the KKT conditions; None where there are no bounds.
        """
        self.best_bound = max(self.best_bound, bound)
        entry = {
            "objective": point.primal,
            "gap": max(0.0, point.primal - self.best_bound),
            "decrement": float("nan"),
            "gradient_norm": gradient_norm,
            "kkt_residual": gradient_norm if residual is None else residual,
            "step": step,
            "n_hvp": n_hvp,
            "seconds": time.perf_counter() - self.started,
        }
        for key, value in entry.items():
            self.history[key].append(value)
        if self.callback is None:
            return False
        return bool(self.callback({**entry, "w": point.w, "n_iter": self.n_iter}))

    @property
    def n_iter(self) -> int:
        return len(self.history["objective"]) - 1

    @property
    def gap(self) -> float:
        """The certified bound on ``F - F*`` at the last iterate."""
        return self.history["gap"][-1]

    @property
    def kkt_residual(self) -> float:
        """That of the last iterate."""
        return self.history["kkt_residual"][-1]

    def note_decrement(self, decrement: float) -> None:
        """The estimate of ``F - F*`` made at the last iterate."""
        self.history["decrement"][-1] = decrement

    def result(self, point: Any, stopped: Reason, message: str) -> Result:
        return Result(
            w=point.w,
            value=point.primal,
            gap=self.gap,
            gradient_norm=self.history["gradient_norm"][-1],
            kkt_residual=self.kkt_residual,
            n_iter=self.n_iter,
            n_hvp=int(self.history["n_hvp"][-1]),
            converged=stopped == "tolerance",
            stopped=stopped,
            message=message,
            history=self.history,
        )
