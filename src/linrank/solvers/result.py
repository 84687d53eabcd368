"""What a solver returns, and the certificate that comes with it."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from linrank.data.vectors import read_only
from linrank.inner_product import dot
from linrank.solvers.certificate import kkt_residual, lower_bound

__all__ = ["Callback", "Patience", "Recorder", "Result", "Verdict"]

Array = NDArray[Any]
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
        Minimiser found, in the scaled space: scores are ``X D w``.
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
        return self.add(
            point,
            lower_bound(point),
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
        rounding = point.primal_error
        entry = {
            "objective": point.primal,
            "gap": max(rounding, point.primal + rounding - self.best_bound),
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
        # The solver goes on from the weights that the callback looks at.
        return bool(self.callback({**entry, "w": read_only(point.w), "n_iter": self.n_iter}))

    def revise(self, point: Any, bound: float) -> None:
        """The last iterate by another point of the same ``w``, and a lower bound found there."""
        self.best_bound = max(self.best_bound, bound)
        rounding = point.primal_error
        self.history["objective"][-1] = point.primal
        self.history["gap"][-1] = max(rounding, point.primal + rounding - self.best_bound)

    @property
    def n_iter(self) -> int:
        return len(self.history["objective"]) - 1

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
