"""Course and Run: models on their way over the same pairs, by the rules that users name."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from linrank.data.rows import Rows
from linrank.stochastic.descent import Descent, Learner
from linrank.stochastic.samplers import PLANNED, DrawnPairs, PairSampler

Array = NDArray[Any]

_SHARE = 4  # a quarter of the steps is passive-aggressive, at most
_NO_PLAN = (0, 1.0, 1.0)  # where the squares of the features leave the range of numbers
_SHORT = 300  # steps from which on those after the switch are shorter than 1/R²


def switch_plan(mean_square: float, alpha: float, n_steps: int) -> tuple[int, float, float]:
    """(passive-aggressive steps, `first_step` of Pegasos, aggressiveness) for so many steps in all.

    Parameters
    ----------
    mean_square : float
        R². If it is 0, rows that are compared are equal, and any plan is as good; so it is if the
        numbers overflow.
    alpha : float
        λ.
    n_steps : int
        Steps in all.

    Examples
    --------
    >>> switch_plan(4.0, 1 / 225, 100_000)
    (900, 1800.0, 0.25)
    >>> switch_plan(4.0, 1 / 225, 900)
    (225, 1800.0, 0.25)
    """
    if not 0.0 < mean_square < math.inf:
        return _NO_PLAN
    whole = mean_square / alpha  # κ
    first_step = max(1.0, whole * math.sqrt(1.0 + min(n_steps, whole) / _SHORT))
    eager = 1.0 / mean_square
    if not (math.isfinite(first_step) and math.isfinite(eager)):
        return _NO_PLAN
    return int(min(whole, n_steps / _SHARE)), first_step, eager


_CHUNK_SECONDS = 0.05  # Ctrl-C is answered between chunks


@dataclass(frozen=True)
class Rule:
    """How one model is to learn: an algorithm of `linrank.options.ALGORITHMS` and its numbers."""

    algorithm: str
    alpha: float
    aggressiveness: float = 1.0


class Course:
    """One or several models that learn from the same pairs; ``hybrid`` changes its rule on time.

    Alone and beside others, a model is the same up to rounding: its inner products are summed in
    another order. ``logistic`` may magnify rounding while its steps are long, ``‖x‖²/(λt) > 8``:
    the weights then differ visibly, but hardly in how good they are.

    Steps are taken on the rows that `move` names last.

    Parameters
    ----------
    n_features : int
        Length of the weights.
    rules : sequence of Rule
        One for each model.
    n_steps : int
        Steps that will be taken, which ``hybrid`` plans for.
    average, seed
        As in :class:`linrank.stochastic.descent.Descent`.
    w0 : array, optional
        Weights to start from, of all models.
    planned : DrawnPairs, optional
        Pairs to plan with, if `needs_plan`.
    """

    rows: Rows
    sampler: PairSampler

    def __init__(
        self,
        n_features: int,
        rules: Sequence[Rule],
        n_steps: int,
        *,
        average: str | None = None,
        seed: int = 0,
        w0: Array | None = None,
        planned: DrawnPairs | None = None,
    ) -> None:
        square = 0.0 if planned is None else _finite_square(planned, rules)
        learners, self._switches = [], []
        for model, rule in enumerate(rules):
            n_first, first_step, eager = switch_plan(square, rule.alpha, n_steps)
            if rule.algorithm == "hybrid":
                then = Learner("pegasos", rule.alpha, rule.aggressiveness, first_step)
                self._switches.append((n_first, model, then))
                learners.append(Learner("pa", rule.alpha, eager))
            else:
                begin = 0.0 if w0 is None else first_step
                learners.append(Learner(rule.algorithm, rule.alpha, rule.aggressiveness, begin))
        self._switches.sort(key=lambda switch: switch[:2])
        self._descent = Descent(n_features, learners, average, seed)
        for model, learner in enumerate(learners if w0 is not None else ()):
            self._descent.become(model, learner, w0)

    @property
    def n_steps(self) -> int:
        """Steps taken so far."""
        return self._descent.n_steps

    @property
    def changes(self) -> bool:
        """Whether a model has yet to change its rule."""
        return bool(self._switches)

    def mean_losses(self) -> Array:
        """The mean loss that the steps of each model met."""
        return self._descent.mean_losses()

    def weights(self) -> Array:
        """The weights of all models, of shape (n_models, n_features)."""
        self._descent.check_finite()
        return self._descent.weights()

    def move(self, rows: Rows, sampler: PairSampler) -> None:
        """Go on with pairs of other rows."""
        self.rows, self.sampler = rows, sampler

    def until(self, n_steps: int, n_threads: int = 1) -> None:
        """Go on until `n_steps` steps have been taken."""
        while self._switches and n_steps > self._switches[0][0]:
            n_first, model, then = self._switches.pop(0)
            self._advance(n_first, n_threads)
            self._descent.become(model, then, self._descent.iterate(model))
        self._advance(n_steps, n_threads)

    def _advance(self, n_steps: int, n_threads: int) -> None:
        _run_in_chunks(self._descent, self.rows, self.sampler, n_steps - self.n_steps, n_threads)


class Run(Course):
    """The course of models over the pairs of data in memory.

    Parameters
    ----------
    rows, sampler
        The rows, and what draws pairs of them.
    rules, n_steps, average, seed, w0
        As in `Course`.
    """

    def __init__(
        self,
        rows: Rows,
        sampler: PairSampler,
        rules: Sequence[Rule],
        n_steps: int,
        *,
        average: str | None = None,
        seed: int = 0,
        w0: Array | None = None,
    ) -> None:
        is_planned = needs_plan([rule.algorithm for rule in rules], w0)
        planned = DrawnPairs.of(rows, sampler, PLANNED, seed) if is_planned else None
        super().__init__(
            rows.shape[1], rules, n_steps, average=average, seed=seed, w0=w0, planned=planned
        )
        self.move(rows, sampler)


def needs_plan(algorithms: Sequence[str], w0: Array | None) -> bool:
    """Whether the length of the first steps depends on the rows."""
    return w0 is not None or "hybrid" in algorithms


def _finite_square(planned: DrawnPairs, rules: Sequence[Rule]) -> float:
    """The mean of ``‖x_i - x_j‖²``, if plans can be made with it."""
    square = planned.mean_square()
    if not math.isfinite(square / min(rule.alpha for rule in rules)):
        raise ValueError(
            f"the mean of ‖x_i - x_j‖² over some pairs, {square:g}, has left the range of floating "
            "point, or does once divided by λ; scale the features (scale='standard')"
        )
    return square


def _run_in_chunks(
    descent: Descent, rows: Rows, sampler: PairSampler, n_steps: int, n_threads: int = 1
) -> None:
    """Take steps in chunks of some milliseconds: Python answers Ctrl-C between them."""
    chunk = 256
    while n_steps > 0:
        chunk = min(chunk, n_steps)
        start = time.perf_counter()
        descent.run(rows, sampler, chunk, n_threads)
        n_steps -= chunk
        if time.perf_counter() - start < _CHUNK_SECONDS / 2:
            chunk *= 2
