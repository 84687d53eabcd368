"""descend: a stochastic fit on data in memory."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count, takewhile
from types import SimpleNamespace
from typing import Any

import numpy as np

from linrank import _core
from linrank.choices import ALGORITHMS, RECORDS
from linrank.data import Array, Dataset, Rows
from linrank.errors import check_natural, check_one_of, check_positive
from linrank.losses.base import Dual, Huber
from linrank.objective import Ridge, Risk, SumPoint
from linrank.solvers.result import Callback, History, duality_gap
from linrank.stochastic.descent import Course, Learner, needs_plan
from linrank.stochastic.samplers import (
    PLANNED,
    RECORDED,
    Draw,
    DrawnPairs,
    PairSampler,
    pair_sampler,
    sampler_of,
)
from linrank.system.resources import resolve

BAND = 0.1  # ε of the smoothing that gives the dual point; the value is that of the hinge itself


_SUMMED = ("primal", "dual", "gradient", "gradient_error")  # what the gap asks of the risk


@dataclass(frozen=True, eq=False)
class ExactObjective:
    """``λ/2 ‖w‖² + Σ ω max(0, 1 - w·x_ij) / Σ ω`` over all pairs that the sampler may draw.

    It costs a pass over the rows and a sort of every query: no pair is listed.

    Attributes
    ----------
    parts : callable
        ``(C, rows, sampler)`` of each part of the data: all of them in memory.
    alpha : float
        λ.
    n_threads : int
        Threads.
    """

    parts: Callable[[], Iterable[tuple[float, Rows, PairSampler]]]
    alpha: float
    n_threads: int = 1

    @classmethod
    def of(
        cls, rows: Rows, sampler: PairSampler, alpha: float, n_threads: int = 1
    ) -> ExactObjective:
        """Of rows in memory."""
        C = 1.0 / (alpha * sampler.total_weight)
        return cls(lambda: [(C, rows, sampler)], alpha, n_threads)

    def __call__(self, w: Array) -> tuple[float, float]:
        """(objective, certified bound on what it is above the minimum).

        RankSVM's ``½‖w‖² + C Σ ω loss`` with ``C = 1/(λ Σω)`` is this objective divided by λ. Of
        the parts nothing is kept but sums.
        """
        sums: list[Any] = [0.0, Dual(), 0.0, 0.0, 0.0]
        for C, rows, sampler in self.parts():
            point = Risk(rows, Huber(sampler.pairs, self.n_threads, epsilon=BAND), C).at(w)
            found = (*(getattr(point, name) for name in _SUMMED), point.primal_error(np.abs(w)))
            sums = [total + term for total, term in zip(sums, found, strict=True)]
        risk = SimpleNamespace(**dict(zip(_SUMMED, sums, strict=False)))
        risk.primal_error = lambda size: sums[-1]
        whole = SumPoint(w, [Ridge().at(w), risk])
        return self.alpha * float(whole.primal), self.alpha * duality_gap(whole)


# (objective of weights, certified bound on what it is above the minimum, or nan)
Objective = Callable[[Array], tuple[float, float]]


def sampled_objective(drawn: DrawnPairs, alpha: float, *, logistic: bool = False) -> Objective:
    """The same with the mean loss of some pairs, drawn once, in place of that of all pairs.

    The pairs stay the same, so that two values differ by the weights and not by the draw. With
    ``logistic=True`` the loss is ``log(1 + exp(-w·x_ij))``. A sample certifies nothing.
    """
    pairs = np.stack([drawn.winners, drawn.losers])
    order, places = np.unique(pairs, return_inverse=True)
    winners, losers = places.reshape(pairs.shape)

    def objective(w: Array) -> tuple[float, float]:
        scores = _core.scores(drawn.rows.core, w, order, 1)
        margins = scores[winners] - scores[losers]
        losses = np.logaddexp(0, -margins) if logistic else np.maximum(0, 1 - margins)
        return 0.5 * alpha * float(w @ w) + float(losses.mean()), math.nan

    return objective


_PATIENCE = 2  # milestones without progress that `tol` takes for the end


def milestones(n_steps: int) -> Iterator[int]:
    """100, 178, 316, 562, 1000, ...: four per decade, the last step last."""
    steps = (round(100 * 10 ** (k / 4)) for k in count())
    yield from takewhile(lambda step: step < n_steps, steps)
    yield n_steps


class Watch(History):
    """What happens at a milestone: history, tolerance, callback."""

    def __init__(
        self, order: Order, objective: Objective | None, watched: Objective | None
    ) -> None:
        super().__init__(order.callback, keys=("n_steps", "objective", "gap", "loss", "seconds"))
        self._objective, self._watched, self._tol = objective, watched, order.tol
        self._at_zero = math.log(2) if order.algorithm == "logistic" else 1.0  # F of w = 0
        self._best, self._n_stalled = math.inf, 0

    @property
    def n_iter(self) -> int:
        """Milestones; the start is none."""
        return len(self.history["objective"])

    def __call__(self, run: Course) -> tuple[str, str] | None:
        """Why to stop, if so."""
        w, loss = run.weights()[0], float(run.mean_losses()[0])
        value, gap = (math.nan, math.nan) if self._objective is None else self._objective(w)
        entry = {"n_steps": run.n_steps, "objective": value, "gap": gap, "loss": loss}
        if self.append(lambda: w, entry):
            return "callback", f"stopped by the callback after {run.n_steps:,} steps"
        if self._tol is None or self._objective is None or self._watched is None:
            return None
        # Long first steps lead far away, and the objective may rise for some milestones before it
        # falls: weights worse than none are not the end of a descent, nor is a stop of a first
        # rule.
        is_lost = value > (1 + self._tol) * self._at_zero or run.has_switches
        if self._watched is not self._objective:
            value = self._watched(w)[0]
        if value < (1 - self._tol) * self._best or is_lost:
            self._best, self._n_stalled = min(value, self._best), 0
            return None
        self._n_stalled += 1
        if self._n_stalled < _PATIENCE:
            return None
        return (
            "tolerance",
            f"the objective fell by less than {self._tol:g} of it for {_PATIENCE} milestones",
        )


_DEFAULT_ALPHA = 1e-4


@dataclass(frozen=True, eq=False)
class DescentResult:
    """The outcome of a stochastic fit.

    Attributes
    ----------
    w : float64 array
        The weights, averaged if asked for.
    alpha : float
        λ.
    n_steps : int
        Steps taken.
    objective : float
        At ``w``, as recorded; nan if it was not.
    gap : float
        Certified bound on ``objective - minimum``; nan unless the record is exact.
    loss : float
        Mean loss that the steps met, each pair before the update that it caused.
    stopped : {"n_steps", "tolerance", "callback"}
        Why it ended.
    message : str
        The same in words.
    n_pairs : int
        Pairs that the sampler may draw.
    history : dict of lists
        At each milestone "n_steps", "objective", "gap", "loss" and "seconds".
    """

    w: Array
    alpha: float
    n_steps: int
    objective: float
    gap: float
    loss: float
    stopped: str
    message: str
    n_pairs: int
    history: dict[str, list[float]] = field(repr=False)

    @property
    def summary(self) -> dict[str, float | int | str]:
        """What a model is to know of the run."""
        names = ("alpha", "n_steps", "objective", "gap", "loss", "stopped", "n_pairs")
        return {name: getattr(self, name) for name in names}


@dataclass(frozen=True, eq=False, kw_only=True)
class Order:
    """What a descent is asked for, on data in memory or in chunks.

    Attributes
    ----------
    algorithm : {"pegasos", "sgd-svm", "pa", "romma", "logistic", "hybrid"}
        See :mod:`linrank.stochastic.descent`; ``hybrid`` is ``pa`` first, ``pegasos`` after.
    alpha, C : float, optional
        λ, > 0, or the C of RankSVM with ``λ = 1/(C Σω)``, Σω the total weight of the pairs; 1e-4 if
        neither is given.
    aggressiveness : float
        Largest step of ``pa``.
    n_steps : int
        Steps, at most if `tol` is given.
    sampling : str
        The distribution of the pairs; see :mod:`linrank.stochastic.samplers`.
    average : {None, "weighted", "uniform"}
        Of the iterates.
    tol : float, optional
        Stop when the objective has not fallen by the share `tol` for two milestones. It is that of
        `record`, or, with `validation`, of pairs sampled there. While the weights are worse for
        the training data than w = 0, no milestone counts.
    record : {None, "sampled", "exact"}
        The objective to compute at milestones, four per decade: on 16,384 pairs, or on all.
    seed : int
        Of the pairs. The same seed gives the same bits, whatever `n_jobs`.
    w0 : array, optional
        Weights to start from, with step sizes that do not erase them.
    validation : Dataset, optional
        Held-out data that `tol` looks at, scaled.
    n_jobs : int, optional
        Threads of the exact objective; the steps of one model are taken one after another.
    callback : callable, optional
        Called with the state at every milestone; True stops.
    """

    algorithm: str = "pegasos"
    alpha: float | None = None
    C: float | None = None
    aggressiveness: float = 1.0
    n_steps: int = 100_000
    sampling: str = "pairs"
    average: str | None = None
    tol: float | None = None
    record: str | None = None
    seed: int = 0
    w0: Array | None = None
    validation: Dataset | None = None
    n_jobs: int | None = None
    callback: Callback | None = None

    def __post_init__(self) -> None:
        check_descent(self.algorithm, self.n_steps, self.record, self.tol)

    @property
    def draws(self) -> list[Draw]:
        """The pairs that are drawn once, before the first step."""
        is_sampled = self.record == "sampled" or (self.record is None and self.tol is not None)
        planned = [PLANNED] if needs_plan([self.algorithm], self.w0) else []
        return planned + ([RECORDED] if is_sampled else [])

    def descend(
        self,
        n_features: int,
        visits: Iterable[tuple[int, Rows, PairSampler]],
        drawn: Mapping[Draw, DrawnPairs],
        exact: Objective | None,
        alpha: float,
        n_pairs: int,
    ) -> DescentResult:
        """Take the steps of all visits.

        Parameters
        ----------
        n_features : int
            Of the rows.
        visits : iterable of (steps, rows, sampler)
            Where the steps are taken, one after the other.
        drawn : mapping
            The pairs of each of the `draws`.
        exact : Objective or None
            The objective, where it is recorded over all pairs.
        alpha : float
            λ.
        n_pairs : int
            Pairs that may be drawn.
        """
        logistic = self.algorithm == "logistic"
        objective = exact
        if RECORDED in drawn:
            objective = sampled_objective(drawn[RECORDED], alpha, logistic=logistic)
        watched, held_out = objective, self.validation
        if held_out is not None and self.tol is not None:
            sampler = pair_sampler(held_out.queries, self.sampling, labels=held_out.labels)
            pairs = DrawnPairs.of(held_out.rows, sampler, RECORDED, self.seed)
            watched = sampled_objective(pairs, alpha, logistic=logistic)
        watch = Watch(self, objective, watched)
        run = Course(
            n_features,
            [Learner(self.algorithm, alpha, self.aggressiveness)],
            self.n_steps,
            average=self.average,
            seed=self.seed,
            w0=self.w0,
            planned=drawn.get(PLANNED),
        )
        is_watched = objective is not None or self.callback is not None
        verdict = _walk(run, visits, watch, milestones(self.n_steps) if is_watched else iter(()))
        last, w = watch.history, run.weights()[0]
        return DescentResult(
            w,
            alpha,
            run.n_steps,
            last["objective"][-1] if watch.n_iter else math.nan,
            last["gap"][-1] if watch.n_iter else math.nan,
            float(run.mean_losses()[0]),
            *verdict,
            n_pairs,
            last,
        )


def _walk(
    run: Course, visits: Iterable[tuple[int, Rows, PairSampler]], watch: Watch, stops: Iterator[int]
) -> tuple[str, str]:
    """Take the steps of all visits, with a look at every milestone; say why it ended."""
    taken, stop = 0, next(stops, None)
    for n_steps, rows, sampler in visits:
        run.move(rows, sampler)
        taken += n_steps
        while stop is not None and stop <= taken:
            run.until(stop)
            if (ended := watch(run)) is not None:
                return ended
            stop = next(stops, None)
        run.until(taken)
    return "n_steps", f"took all {taken:,} steps"


def descend(data: Dataset, *, query_weight: Array | None = None, **options: Any) -> DescentResult:
    """Learn weights from sampled pairs.

    Parameters
    ----------
    data : Dataset
        The rows, scaled if they are to be.
    query_weight : array by query, optional
        Factors c of the pair weights.
    **options
        As in `Order`.
    """
    order = Order(**options)
    sampler = sampler_of(data, order.sampling, query_weight)
    alpha = regularization(order.alpha, order.C, sampler.total_weight)
    drawn = {draw: DrawnPairs.of(data.rows, sampler, draw, order.seed) for draw in order.draws}
    exact: Objective | None = None
    if order.record == "exact":
        exact = ExactObjective.of(data.rows, sampler, alpha, resolve(order.n_jobs))
    visits = [(order.n_steps, data.rows, sampler)]
    return order.descend(data.n_features, visits, drawn, exact, alpha, sampler.n_pairs)


def regularization(
    alpha: float | None, C: float | None = None, total_weight: float = math.nan
) -> float:
    """λ from what the user gave: itself, or ``1/(C Σω)``, or the default."""
    if alpha is not None and C is not None:
        raise ValueError(f"give alpha or C, not both: got alpha={alpha} and C={C}")
    check_positive("alpha", alpha, optional=True)
    check_positive("C", C, optional=True)
    if C is not None:
        return 1.0 / (float(C) * total_weight)
    return _DEFAULT_ALPHA if alpha is None else float(alpha)


def check_descent(algorithm: str, n_steps: Any, record: str | None, tol: float | None) -> None:
    """Refuse options that no data could make right."""
    check_one_of("algorithm", algorithm, ALGORITHMS)
    check_natural("n_steps", n_steps)
    check_one_of("record", record, (None, *RECORDS))
    if record == "exact" and algorithm == "logistic":
        raise ValueError(
            "record='exact' sums the hinge over all pairs; the logistic loss has no such sum: "
            "use record='sampled'"
        )
    check_positive("tol", tol, optional=True)
