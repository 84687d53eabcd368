"""Problems one after the other, each from the last: many weights C, and losses ever less smooth."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from linrank.objective import Sum
from linrank.solvers.conjugate import Directions, Preconditioner
from linrank.solvers.newton import line_search, too_few
from linrank.solvers.result import Callback, Recorder, Result, lower_bound

# Shares of the tolerance and of the slack, and the largest step; tuned on iterations of small sets.
_AIM = 0.8
_READY = 0.3
_LARGEST_STEP = 20.0
_SMALLEST = 2.0**-23  # ε below which slacks, and the slopes of the pairs in the band, are rounding
_BAND = 2.0  # pairs a feature that a band should hold: with fewer there is no curvature to go by


class Sharpening:
    """Lowers ε of the Huberised hinge while its slack keeps the certified gap above the tolerance.

    The gap at the optimum of ``h_ε`` is the slack of its dual point, which falls as ``ε²`` while
    the band holds many pairs: their number and what each of them leaves both shrink with ε. (In
    the end about one a feature stays, and it falls as ε: then it takes more than one change.) So
    the ε that a tolerance needs is known from any ε at hand, and is taken at once where that is no
    more than a factor 20 and leaves enough pairs in the band; but not before the step in hand has
    brought ``F_ε`` down to the order of the slack.

    Parameters
    ----------
    objective : callable
        ``objective(ε)`` is the smoothed objective.
    tol : float
        The gap that will do, relative to the objective.
    """

    def __init__(self, objective: Callable[[float], Sum], tol: float) -> None:
        # At w = 0 all slacks are 1, and only ε >= 1 gives the first step a curvature.
        self.objective, self.tol, self.epsilon = objective, tol, 1.0

    def __call__(self, point: Any, decrement: float) -> Any:
        slack, aim = point.dual.slack, _AIM * self.tol * point.primal
        if slack <= aim or decrement > _READY * slack or self.epsilon <= _SMALLEST:
            return point
        largest = min(_LARGEST_STEP, max(2.0, self._in_band(point) / (_BAND * point.w.shape[-1])))
        epsilon = max(_SMALLEST, self.epsilon * max(math.sqrt(aim / slack), 1.0 / largest))
        self.epsilon = 2.0 ** math.floor(math.log2(epsilon))  # sums over its band are exact
        return self.objective(self.epsilon).resume(point)

    def best_bound(self, point: Any) -> float:
        epsilons = 2.0 ** np.arange(math.log2(_SMALLEST), 1.0)
        return max(lower_bound(self.objective(float(one)).resume(point)) for one in epsilons)

    def _in_band(self, point: Any) -> float:
        """About the number of pairs that the loss is curved for."""
        shares = (
            part.loss.total_curvature / part.risk.loss.mean_weight for part in point.parts[1:]
        )
        return self.epsilon * float(sum(shares))


_KEEP = 0.1  # share of the tolerance within which the last minimizer serves the next C as well
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
    """Yield a minimizer for every C, with a certified gap of at most ``tol·F``.

    The loss, its gradient and its sorted scores do not depend on C. So the last minimizer is a
    point of the next objective, gap included, that costs nothing; and a Newton step from it, with
    the Hessian there, follows the path as far as few pairs change sides.

    Parameters
    ----------
    point : Point
        Start, a point of the objective for ``Cs[0]``.
    Cs : sequence of float
        Weights > 0; in ascending order, so that neighbors are near each other.
    preconditioner : Preconditioner
        Serves all C.
    tol : float
        Relative gap to be certified.
    max_iter : int
        Newton steps for each C.
    callback : callable, optional
        Called with the state of each iterate, its ``"C"`` included; True ends the path.
    """
    directions = Directions(preconditioner, len(point.w))
    for before, C in pairwise((Cs[0], *Cs)):
        point = point.reweighted(C / before)
        directions.memory.reweight(C / before)
        tell: Any = callback and (lambda state, C=C: callback({**state, "C": C}))  # type: ignore[misc]
        recorder = Recorder(tell, time.perf_counter())
        result, point = _certify(point, directions, recorder, tol, max_iter)
        yield result
        if result.stopped == "callback":
            return


def _certify(
    point: Any, directions: Directions, recorder: Recorder, tol: float, max_iter: int
) -> tuple[Result, Any]:
    """Newton steps until the gap is certified: the result, and the point that they end at."""
    n_hvp, t = 0, 0.0
    while True:
        wants_stop = recorder.record(point, step=t, n_hvp=n_hvp)
        is_start = recorder.n_iter == 0
        if recorder.gap <= (_KEEP if is_start else 1.0) * tol * point.primal:
            message = f"certified F - F* <= {tol:g}·F"
            return recorder.result(point, "tolerance", message), point
        if wants_stop:
            return recorder.result(point, "callback", "stopped by the callback"), point
        if recorder.last_decrement <= _SETTLED * point.primal:
            break
        if recorder.n_iter >= max_iter:
            return recorder.result(point, *too_few(recorder, tol, max_iter)), point
        # The residual of the system is the gradient that the quadratic model foresees after
        # the step, and ½‖∇F‖² bounds the gap there: it ends where the model is certified.
        step = directions.at(point, residual=_RESIDUAL * tol * point.primal)
        n_hvp += step.n
        recorder.note_decrement(step.decrement)
        trial, t = line_search(point, step.d, step.image)
        if trial is None:
            break
        point = trial
    message = (
        "steps have fallen below the rounding of F, but the certified gap is "
        f"{recorder.gap / point.primal:.2g}·F: features of very different ranges make the bound "
        "loose; scale them, or raise tol"
    )
    return recorder.result(point, "precision", message), point
