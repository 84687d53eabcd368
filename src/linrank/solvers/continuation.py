"""The minimisers for many weights C of the losses, each from the one before, each certified."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any

from linrank.solvers.conjugate import Directions, Preconditioner
from linrank.solvers.newton import line_search
from linrank.solvers.result import Callback, Recorder, Result, Verdict

_KEEP = 0.1  # share of the tolerance within which the last minimiser serves the next C as well
_RESIDUAL = 0.3  # share of the tolerance that a solve leaves; the rest is for pairs that change
_SETTLED = 1e-12  # a decrement below this share of F: the point is there, the bound is loose


def follow(
    point: Any,
    Cs: Sequence[float],
    *,
    preconditioner: Preconditioner,
    tol: float = 1e-4,
    max_iter: int = 100,
    callback: Callback | None = None,
) -> Iterator[Result]:
    """Yield a minimiser for every C, with a certified gap of at most ``tol·F``.

    The loss, its gradient and its sorted scores do not depend on C. So the last minimiser is a
    point of the next objective, gap included, that costs nothing; and a Newton step from it, with
    the Hessian there, follows the path as far as few pairs change sides.

    Parameters
    ----------
    point : Point
        Start, a point of the objective for ``Cs[0]``.
    Cs : sequence of float
        Weights > 0; in ascending order, so that neighbours are near each other.
    preconditioner : Preconditioner
        Serves all C.
    tol : float
        Relative gap to be certified.
    max_iter : int
        Newton steps for each C.
    callback : callable, optional
        Called with the state of each iterate, its ``"C"`` included; True ends the path.
    """
    corrector = _Corrector(preconditioner, tol, max_iter, len(point.w))
    before = Cs[0]
    for C in Cs:
        point = point.reweighted(C / before)
        corrector.directions.memory.reweight(C / before)
        before = C
        result, point = corrector.certify(point, _telling(callback, C))
        yield result
        if result.stopped == "callback":
            return


def _telling(callback: Callback | None, C: float) -> Callback | None:
    """The callback, told of C."""
    return None if callback is None else lambda state: callback({**state, "C": C})


class _Corrector:
    """Newton steps until the gap is certified; what they learn of the Hessian is kept."""

    def __init__(
        self, preconditioner: Preconditioner, tol: float, max_iter: int, n_features: int
    ) -> None:
        self.directions = Directions(preconditioner, n_features)
        self.tol, self.max_iter = tol, max_iter

    def certify(self, point: Any, callback: Callback | None) -> tuple[Result, Any]:
        """The result for the objective of ``point``, and the point that it ends at."""
        recorder = Recorder(callback, time.perf_counter())
        n_hvp, t = 0, 0.0
        while True:
            wants_stop = recorder.record(point, step=t, n_hvp=n_hvp)
            verdict = self._verdict(point, recorder, wants_stop)
            if verdict is not None:
                return recorder.result(point, *verdict), point
            # The residual of the system is the gradient that the quadratic model foresees after
            # the step, and ½‖∇F‖² bounds the gap there: it ends where the model is certified.
            step = self.directions.at(point, residual=_RESIDUAL * self.tol * point.primal)
            n_hvp += step.n
            recorder.note_decrement(step.decrement)
            trial, t = line_search(point, step.d, step.image)
            if trial is None:
                return recorder.result(point, *self._loose(point, recorder)), point
            point = trial

    def _verdict(self, point: Any, recorder: Recorder, wants_stop: bool) -> Verdict | None:
        """Why to stop at this point; None to go on."""
        F, gap = point.primal, recorder.history["gap"][-1]
        is_start = recorder.n_iter == 0
        if gap <= (_KEEP if is_start else 1.0) * self.tol * F:
            return "tolerance", f"certified F - F* <= {self.tol:g}·F"
        if wants_stop:
            return "callback", "stopped by the callback"
        if not is_start and recorder.history["decrement"][-2] <= _SETTLED * F:
            return self._loose(point, recorder)
        if recorder.n_iter >= self.max_iter:
            return "max_iter", (
                f"the certified gap, {gap:.3g}, is above tol·F = {self.tol * F:.3g} after "
                f"max_iter={self.max_iter} iterations; raise max_iter or tol"
            )
        return None

    def _loose(self, point: Any, recorder: Recorder) -> Verdict:
        share = recorder.history["gap"][-1] / point.primal
        return "precision", (
            f"steps have fallen below the rounding of F, but the certified gap is {share:.2g}·F: "
            "features of very different ranges make the bound loose; scale them, or raise tol"
        )
