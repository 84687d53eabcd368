"""Training a ranker ``Σ β_i k(x_i, ·)`` exactly: on all pairs, or on those chosen."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import astuple, dataclass, field, replace
from typing import Any

import numpy as np

from linrank.choices import LOSSES
from linrank.data import Array, Dataset, dot
from linrank.errors import check_numbers
from linrank.kernels.functions import Kernel
from linrank.kernels.landmarks import (
    HESSIAN_BYTES,
    KernelDirections,
    Landmarks,
    OnLandmarks,
    settle_coefficients,
)
from linrank.kernels.matrices import KernelMatrix, kernel_matrix
from linrank.losses.base import Dual, Errors, ScoreLoss
from linrank.losses.device_pairs import DeviceLoss, loss_on_device
from linrank.objective import Ridge, RiskPoint, Sum
from linrank.pairs import Pairs
from linrank.ranksvm.train import Problem, check_choices
from linrank.solvers.continuation import Sharpening
from linrank.solvers.newton import newton
from linrank.solvers.result import Callback, Result, kkt_residual, lower_bound
from linrank.system.device import (
    HOST,
    Device,
    DeviceArray,
    check_device,
    device_of,
    is_on_device,
    to_host,
)
from linrank.system.resources import allowed, cached_property, resolve, useful_threads

_FEW = 1500  # landmarks that may be all rows: their Hessian takes a tenth of a second
_LEAST = 64  # landmarks that are always taken
_WORSE = 0.1  # share of the tolerance by which a settled β may be worse
_NARROW = 1e-3  # share of the pairs' curvature 1/ε that the hinge may have in the end


# ---- the space -----------------------------------------------------------------------------------

# The objective in the space of a kernel: functions ``Σ β_i k(x_i, ·)``, given at the rows.
#
# A function is an array (2, n), its coefficients β and its values ``s = Qβ`` at the rows, and
# ``<a, b> = a'Qb``. In this inner product, with L a loss of the scores,
#
# ``f = ½<β, β> + C·L(Qβ)``, ``∇f = β + C∇L(s)``, ``∇²f v = v + C∇²L(s) Qv``,
#
# all in coefficients: Q is never inverted and may be singular. The values of a product are those of
# its coefficients, one product with Q for each gradient and for each ``∇²f v``; all else, line
# searches above all, is sweeps over the scores.


def as_function(coefficients: Array, matrix: KernelMatrix) -> Array:
    """The function of these coefficients: one product with Q, none for zeros."""
    function = np.zeros((2, matrix.n))
    if coefficients.any():
        function[0] = coefficients
        function[1] = matrix.product(function[0])
    return function


class JointLoss(ScoreLoss):
    """The sum of losses that look at the rows by positions of their own; its positions are rows."""

    def __init__(self, losses: Sequence[ScoreLoss], n_rows: int) -> None:
        super().__init__(None, n_rows, losses[0].n_threads)
        self.losses, self.has_kink = losses, losses[0].has_kink

    @property
    def mean_weight(self) -> float:
        return float(np.mean([loss.mean_weight for loss in self.losses]))

    @property
    def total_weight(self) -> float:
        return float(sum(loss.total_weight for loss in self.losses))

    def errors(self, point: JointPoint, z: Array | None) -> Errors:
        found = [astuple(loss.errors(part, None)) for loss, part in self._each(point)]
        return Errors(*np.sum(found, axis=0).tolist())

    def at(self, z: Array, near: JointPoint | None = None) -> JointPoint:
        near = near or JointPoint(self, [None] * len(self.losses))
        return JointPoint(self, [loss.at(z[_rows_of(loss)], at) for loss, at in self._each(near)])

    def _each(self, point: JointPoint) -> Iterator[tuple[ScoreLoss, Any]]:
        """Each loss with its own point."""
        return zip(self.losses, point.points, strict=True)

    def curvature(self, point: JointPoint, v: Array) -> Array:
        if len(self.losses) == 1 and self.losses[0].order is None:  # a sweep for each landmark
            return self.losses[0].curvature(point.points[0], v)
        each = self._each(point)
        return self.by_row(loss.curvature(part, v[_rows_of(loss)]) for loss, part in each)

    def curve_rows(self, point: JointPoint, V: DeviceArray, device: Device) -> DeviceArray:
        """The same of each row of a matrix on a device: by sweeps there, or one by one here."""
        total = device.zeros(V.shape)
        for loss, part in self._each(point):
            some = device.put(V[:, _rows_of(loss)])
            if isinstance(loss, DeviceLoss):
                found = loss.curvature(part, some)
            else:
                sweeps = [loss.curvature(part, v) for v in device.get(some)]
                found = device.put(np.array(sweeps))
            total[:, _rows_of(loss)] += found
        return total

    def primal(self, point: JointPoint) -> float:
        return float(sum(loss.primal(part) for loss, part in self._each(point)))

    def dual(self, point: JointPoint, errors: Errors) -> Dual:
        each = self._each(point)
        return sum((loss.dual(part, loss.errors(part, None)) for loss, part in each), Dual())

    def by_row(self, parts: Iterable[Array]) -> Array:
        """The sum of vectors that each loss gave by its positions: no row has two."""
        total = np.zeros(self.n_positions)
        for loss, part in zip(self.losses, parts, strict=True):
            total[_rows_of(loss)] += to_host(part) if is_on_device(part) else part
        return total


@dataclass(frozen=True, eq=False)
class JointPoint:
    """`JointLoss` at scores by row."""

    loss: JointLoss
    points: Sequence[Any]

    @property
    def value(self) -> float:
        return float(sum(part.value for part in self.points))

    @property
    def total_curvature(self) -> float:
        return float(sum(part.total_curvature for part in self.points))

    @cached_property
    def gradient(self) -> Array:
        return self.loss.by_row(part.gradient for part in self.points)


@dataclass(frozen=True, eq=False)
class KernelRisk:
    """``C·L(s)`` as a function of functions."""

    matrix: KernelMatrix
    loss: JointLoss
    C: float
    entry_rounding: float = 0.0  # of every Q_ij, relative to √(Q_ii Q_jj)

    @cached_property
    def roots(self) -> Array:
        """``√Q_ii``: no entry of Q is above ``√(Q_ii Q_jj)``."""
        return np.asarray(np.sqrt(np.maximum(self.matrix.diagonal, 0.0)))

    @property
    def rounding(self) -> float:
        """ρ with ``|Qβ - exact|_i <= ρ √Q_ii Σ_j √Q_jj |β_j|``."""
        return 2.0**-53 * (self.matrix.n + 128) + self.entry_rounding

    def at(self, w: Array) -> KernelRiskPoint:
        return KernelRiskPoint(self, w, w[1])

    def resume(self, point: KernelRiskPoint) -> KernelRiskPoint:
        """From a point of another loss on the same rows and pairs: scores and order are kept."""
        return KernelRiskPoint(self, point.w, point.z, point.loss)

    def function(self, coefficients: Array) -> Array:
        return as_function(self.C * coefficients, self.matrix)


@dataclass(frozen=True, eq=False)
class KernelRiskPoint(RiskPoint):
    """`KernelRisk` at the function ``w``; ``z`` are its values."""

    risk: Any

    @cached_property
    def gradient(self) -> Array:
        return np.asarray(self.risk.function(self.loss.gradient))

    @property
    def rounding(self) -> float:
        """That of the loss, and of ``½β'Qβ``, which is as noisy as β is large."""
        noise = self.risk.rounding * float(self.risk.roots @ np.abs(self.w[0])) ** 2
        return float(self.risk.C * self.errors.value + 0.5 * noise)

    def primal_error(self, size: Array) -> float:
        """The rounding of the loss, of its scores, and of ``½β'Qβ``.

        The scores are sums of products of Q with vectors of sizes ``size[0]`` in all: score i is
        off by at most ``√Q_ii η``, ``η = ρ √Q·size[0]``.
        """
        risk, loss, (beta, values) = self.risk, self.risk.loss, np.abs(self.w)
        eta = risk.rounding * float(risk.roots @ size[0])
        weight, largest = loss.total_weight, eta * float(risk.roots.max())
        if loss.has_kink:
            moved = 2.0 * weight * largest
        else:
            moved = eta * float(risk.roots @ np.abs(self.loss.gradient))
            moved += 4.0 * weight * largest * largest
        of_square = eta * float(risk.roots @ beta)
        of_square += 2.0**-53 * (len(beta) + 8) * float(beta @ values)
        return float(risk.C * (self.errors.primal + moved) + 0.5 * of_square)

    @property
    def gradient_square(self) -> float:
        """``r'Qr`` of the gradient's coefficients r, not below its exact value.

        An error δ of r adds at most ``2‖δ‖‖Qr‖ + ‖δ‖²·trace Q``.
        """
        risk, (r, values) = self.risk, self.gradient
        off = risk.C * self.errors.gradient
        rounding = risk.rounding * float(risk.roots @ np.abs(r)) ** 2
        rounding += 2.0**-53 * (len(r) + 8) * float(np.abs(r) @ np.abs(values))
        added = 2.0 * off * math.sqrt(values @ values) + off * off * float(risk.roots @ risk.roots)
        return float(dot(self.gradient, self.gradient) + rounding + added)

    def image(self, v: Array) -> Array:
        return np.asarray(v[1])

    def hvp(self, v: Array) -> tuple[Array, Array]:
        curved = self.risk.loss.curvature(self.loss, v[1])
        return self.risk.function(curved), v[1]


def _rows_of(loss: ScoreLoss) -> Array | slice:
    """The rows of its positions."""
    return slice(None) if loss.order is None else loss.order


# ---- training ------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class KernelResult(Result):
    """The outcome of a fit in the space of a kernel.

    ``w`` are the coefficients β of the rows. Norms, of the gradient above all, are those of the
    space: ``‖r‖² = r'Qr``.

    Attributes
    ----------
    scores : float64 array (n_rows,)
        ``Qβ``, the scores of the training rows.
    n_pairs : int
        Pairs that were compared.
    n_landmarks : int
        Rows that the preconditioner was made of.
    epsilon : float
        Width of the band within which the hinge was smoothed in the end; 0 of the squared hinge.
    """

    scores: Array = field(repr=False)
    n_pairs: int
    n_landmarks: int
    epsilon: float

    @property
    def summary(self) -> dict[str, float | int | bool | str | None]:
        told = {**super().summary, "n_pairs": self.n_pairs}
        return told | ({"epsilon": self.epsilon} if self.epsilon else {})


def train_kernel(
    data: Dataset,
    *,
    kernel: Kernel,
    C: float = 1.0,
    loss: str = LOSSES[0],
    tol: float | None = None,
    max_iter: int | None = None,
    memory_limit: int | float | str | None = None,
    matrix: KernelMatrix | None = None,
    beta0: Array | None = None,
    settle: bool = True,
    n_jobs: int | None = None,
    callback: Callback | None = None,
    device: str = "cpu",
    **weighing: Any,
) -> KernelResult:
    """Minimize ``f(β) = ½β'Qβ + C Σ ω_ij l(1 - s_i + s_j)`` with ``s = Qβ``, ``Q = K(X, X)``.

    Parameters
    ----------
    data : Dataset
        Rows as the kernel is to see them, labels, queries, weights of the rows. Of
        ``kernel.name == "precomputed"``, the rows are those of Q.
    kernel : Kernel
        k; positive semidefinite.
    C, loss
        As of `linrank.ranksvm.train.train`.
    tol : float, optional
        Stop when the certified bound of ``f - f*`` is at most ``tol·f``; if None 1e-4, of the hinge
        1e-3.
    max_iter : int, optional
        Newton steps at most; if None 100, of the hinge 500: it takes hundreds where all pairs can
        be ranked and C is large.
    memory_limit : int, float or str, optional
        Bytes that Q and what belongs to it may take; None for half of what is free, for Q alone.
    matrix : KernelMatrix, optional
        Q, where it is known already.
    beta0 : float64 array (n_rows,), optional
        Start; zeros if None.
    settle : bool, default=True
        Whether to end with the β described below; scores are as good without.
    n_jobs : int, optional
        Threads; None for all cores.
    callback : callable, optional
        Called with the state of each iterate, ``w`` being β; stops by returning True.
    device : str
        "cpu", or the device that has Q, landmarks and sweeps over all pairs of queries: "cuda".
    **weighing
        Which pairs and what they weigh, as of `Problem.of`: pairs, pair_weighting,
        query_normalization, n_closest, n_random, seed, query_weight, preferences.

    Returns
    -------
    KernelResult
        Where it has converged, its β is 0 for rows without a violated pair, and sums to 0 in each
        query (over all rows, with preferences across queries).
    """
    check_numbers(C, tol, max_iter)
    check_choices(loss, **weighing)
    check_device(device)
    started = time.perf_counter()
    problem = Problem.of(data, C, loss=loss, n_jobs=n_jobs, **weighing)
    n_threads = resolve(n_jobs)
    limit = None if memory_limit is None else allowed(memory_limit)
    there = None if device == "cpu" else device_of(device)
    most, beside = plan_landmarks(data.n_rows, limit, there)
    if matrix is None:
        how: dict[str, Any] = {"memory_limit": limit, "beside": beside, "n_threads": n_threads}
        matrix = kernel_matrix(kernel, data.rows, device=there, **how)
    if tol is None:
        tol = 1e-3 if loss == "hinge" else 1e-4
    landmarks = _landmarks(problem, matrix, most)
    sweeping = useful_threads(landmarks.coordinates.nbytes, n_threads)
    preconditioner = OnLandmarks(landmarks, patience=6, n_threads=sweeping)
    training = _Training(problem, matrix, tol, preconditioner, _entry_rounding(kernel, data))
    return training.run(
        np.zeros(matrix.n) if beta0 is None else np.array(beta0, dtype=np.float64),
        settle,
        max_iter=max_iter or (500 if loss == "hinge" else 100),
        callback=callback and (lambda state: callback({**state, "w": state["w"][0]})),
        started=started,
    )


@dataclass(frozen=True, eq=False)
class _Training:
    """A problem in the space of a kernel, and the way to its solution."""

    problem: Problem
    matrix: KernelMatrix
    tol: float
    preconditioner: OnLandmarks
    entry_rounding: float

    def objective(self, epsilon: float = 1.0) -> Sum:
        """f, with the hinge smoothed within ``epsilon`` of its kink."""
        losses = JointLoss(self._losses(epsilon), self.matrix.n)
        return Sum(Ridge(), KernelRisk(self.matrix, losses, self.problem.C, self.entry_rounding))

    def _losses(self, epsilon: float) -> Sequence[ScoreLoss]:
        """Those of the problem; sweeps over the pairs of labels are where the matrix is."""
        problem, device = self.problem, self.matrix.place
        if device is HOST or not isinstance(problem.pairs, Pairs):
            return problem.losses(epsilon)
        rest = replace(problem, pairs=None).losses(epsilon)
        return [loss_on_device(problem.loss, problem.pairs, device, epsilon), *rest]

    def run(self, beta0: Array, settle: bool, **options: Any) -> KernelResult:
        """Newton's method, and then the β that the last step speaks for."""
        inner_tol = self.tol * (1.0 - 2.0 * _WORSE)  # what settling and rounding may spoil is left
        hinge = self.problem.loss == "hinge"
        sharpening = Sharpening(self.objective, inner_tol) if hinge else None
        found = newton(
            self.objective(),
            as_function(beta0, self.matrix),
            preconditioner=self.preconditioner,
            tol=inner_tol,
            sharpen=sharpening,
            certified=True,
            directions=KernelDirections,
            **options,
        )
        epsilon = 0.0 if sharpening is None else sharpening.epsilon
        # Afresh: the values of the iterates are sums of many products, each with its rounding.
        objective = self.objective(epsilon or 1.0)
        point = objective.at(as_function(found.w[0], self.matrix))
        if settle and found.converged:
            beta = settle_coefficients(point, self.preconditioner, self.tol)
            end = point if beta is None else objective.at(as_function(beta, self.matrix))
            # Settling knows the values by sums as well; the rounding of Qβ may undo its promise.
            if end.primal <= (1.0 + _WORSE * self.tol) * point.primal:
                point = end
        nothing = objective.at(np.zeros_like(point.w))
        if not point.primal <= nothing.primal:  # rounding has eaten all
            point = nothing
        return self._result(found, point, epsilon)

    def _result(self, found: Result, point: Any, epsilon: float) -> KernelResult:
        """The result at a point with values computed afresh, and whether that certifies it."""
        problem, value = self.problem, point.primal
        n_swept = 0 if problem.pairs is None else problem.pairs.n_pairs
        n_listed = 0 if problem.preferences is None else len(problem.preferences)
        known = found.value - found.gap  # the best lower bound on the way
        norm, rounding = kkt_residual(point), point.primal_error
        gap = max(rounding, value + rounding - max(known, lower_bound(point)))
        is_certified = gap <= self.tol * value
        if is_certified and not found.converged and found.stopped != "callback":
            message = f"certified F - F* <= {self.tol:g}·F"
            found = replace(found, converged=True, stopped="tolerance", message=message)
        if found.converged and not is_certified:
            message = (
                f"Q times the coefficients, computed afresh, certifies F - F* <= {gap:.3g} only, "
                f"above tol·F = {self.tol * value:.3g}: the kernel matrix is too large or too "
                "ill-conditioned for this C"
            )
            found = replace(found, converged=False, stopped="precision", message=message)
        here = {"w": point.w[0].copy(), "value": value, "gap": gap}
        return KernelResult(
            **vars(found) | here | {"gradient_norm": norm, "kkt_residual": norm},
            scores=point.w[1].copy(),
            n_pairs=n_swept + n_listed,
            n_landmarks=len(self.preconditioner.landmarks),
            epsilon=epsilon,
        )


def _entry_rounding(kernel: Kernel, data: Dataset) -> float:
    """The rounding of every ``k(a, b)``, relative to ``√(k(a, a) k(b, b))``, from above.

    0 where Q is what is given. Products and distances are sums of as many terms as there are
    features. Of "rbf", distances of dense rows are off by that share of themselves, of which the
    exponential leaves at most a third; those of sparse rows by that share of the norms.
    """
    if kernel.name in ("precomputed", "callable"):
        return 0.0
    unit = 2.0**-53 * (data.n_features + 32)
    if kernel.name == "linear" or (kernel.name == "rbf" and not data.rows.is_sparse):
        return unit
    if kernel.name == "poly" and kernel.coef0 >= 0.0:
        return unit * kernel.degree
    square = float(Kernel("linear").diagonal(data.rows, 1).max())
    if kernel.name == "rbf":
        return unit * (1.0 + 4.0 * kernel.gamma * square)
    base = kernel.gamma * square + abs(kernel.coef0)
    absolute = kernel.degree * base**kernel.degree if kernel.name == "poly" else 1.0 + base
    least = float(np.abs(kernel.diagonal(data.rows, 1)).min())
    return unit * absolute / least if least > 0.0 else math.inf


def plan_landmarks(n: int, limit: int | None, device: Device | None) -> tuple[int, int]:
    """How many landmarks there may be, and the bytes of a limit that are not for Q."""
    limit = limit if device is None else device.limit(limit)
    most = _most_landmarks(n, limit)
    beside = 0 if limit is None else _bytes_beside(n, most)
    return most, beside + (0 if device is None else _bytes_of_sweeps(n, most))


def _most_landmarks(n: int, memory_limit: int | None) -> int:
    """As many as a Hessian on them costs some ten products with Q, or `_FEW`; fewer where they
    would take more than half of the memory.

    A product takes n² steps of half a nanosecond, the Hessian m·n·(37 + m/48) nanoseconds.
    """
    most = min(n, max(math.ceil(17.0 * math.sqrt(n)), _FEW))
    while memory_limit is not None and most > _LEAST and 2 * _bytes_beside(n, most) > memory_limit:
        most = max(_LEAST, most // 2)
    return most


def _bytes_beside(n: int, m: int) -> int:
    """What training takes beside Q: coordinates and their sweeps, Hessian, factor and inverse for
    m landmarks, and some sixty functions."""
    return 16 * m * n + 24 * m * m + 1000 * n


def _bytes_of_sweeps(n: int, m: int) -> int:
    """What these take on a device more than that: sweeps of many vectors at a time and what they
    leave on the way, a Hessian that is inverted."""
    return 8 * min(HESSIAN_BYTES, 8 * m * n) + 40 * m * m


def _landmarks(problem: Problem, matrix: KernelMatrix, most: int) -> Landmarks:
    """Those beyond which the rest ``R = Q - G'G`` does no harm: ``C·‖∇²L‖·‖R‖`` is below 1.

    ``‖∇²L‖`` is about twice the weight of the pairs of a row, and ``‖R‖``, measured, a tenth of
    the trace or less.
    """
    weight = problem.C * sum(
        part.total_weight() for part in (problem.pairs, problem.preferences) if part is not None
    )
    enough = 10.0 * matrix.n / (4.0 * weight) if weight > 0 else 0.0
    if problem.loss == "hinge":
        enough *= _NARROW
    with matrix.place.current():
        return Landmarks.of(matrix, most, enough=enough)
