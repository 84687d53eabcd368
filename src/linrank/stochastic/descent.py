"""Descent: models that take a step on one sampled pair after another, by rules that users name.

With ``x = x_winner - x_loser`` and step t counted from ``first_step + 1``, the steps are

=========  ================================================================================
sgd-svm    ``w ← (1 - 1/t) w + [w·x < 1] x/(λt)``
pegasos    the same, then ``w ← min(1, 1/(√λ‖w‖)) w``
logistic   ``w ← (1 - 1/t) w + σ(-w·x) x/(λt)``, σ the logistic function
pa         ``w ← w + min(A, max(0, 1 - w·x)/‖x‖²) x``, A the aggressiveness
romma      the w of least norm with ``w·x ≥ 1`` and ``w·w_before ≥ ‖w_before‖²``, if ``w·x < 1``
=========  ================================================================================
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from linrank import _core
from linrank.choices import ALGORITHMS, AVERAGES
from linrank.data.rows import Array, Rows
from linrank.errors import check_one_of, check_positive
from linrank.stochastic.samplers import PLANNED, DrawnPairs, PairSampler

RULES = {"sgd-svm": 0, "pegasos": 1, "pa": 2, "romma": 3, "logistic": 4}  # as in core/simd.hpp
_AVERAGES = {None: 0, "uniform": 1, "weighted": 2}
_SHRINKING = ("sgd-svm", "pegasos", "logistic")


@dataclass(frozen=True)
class Learner:
    """The rule of one model.

    Attributes
    ----------
    algorithm : {"pegasos", "sgd-svm", "pa", "romma", "logistic", "hybrid"}
        See the module; ``"hybrid"`` is for a `Course`, which plans when it changes its rule.
    alpha : float
        λ > 0, the weight of ``½‖w‖²`` beside the mean loss; ``pa`` and ``romma`` have none.
    aggressiveness : float
        Largest step of ``pa``, > 0.
    first_step : float
        Steps to count as taken already, >= 0: the first has the length ``1/(λ(first_step + 1))``.
    """

    algorithm: str = "pegasos"
    alpha: float = 1e-4
    aggressiveness: float = 1.0
    first_step: float = 0.0

    def __post_init__(self) -> None:
        check_one_of("algorithm", self.algorithm, ALGORITHMS)
        for name in ("alpha", "aggressiveness"):
            check_positive(name, getattr(self, name))
        if not (self.first_step >= 0 and math.isfinite(self.first_step)):
            raise ValueError(f"first_step must be finite and >= 0, got {self.first_step}")

    @property
    def shrinks(self) -> bool:
        """Whether the rule has a λ."""
        return self.algorithm in _SHRINKING

    def _scalars(self) -> Array:
        """As in core/simd.hpp: rule, strength, a, t, ‖v‖², first, K, Σρ, loss, updates."""
        strength = self.alpha if self.shrinks else self.aggressiveness
        start = self.first_step
        return np.array([RULES[self.algorithm], strength, 1, start, 0, start, 0, 0, 0, 0.0])


class Descent:
    """One or several models that learn from the same stream of pairs.

    The same seed, rows, samplers and learners give the same bits, however the steps are divided
    into calls and whatever the number of threads. Alone and beside others, a model is the same up
    to rounding.

    Parameters
    ----------
    n_features : int
        Length of the weights; see :meth:`grow`.
    learners : sequence of Learner
        One for each model. All of them start at ``w = 0``.
    average : {None, "uniform", "weighted"}
        The weights are the last iterate, ``Σ w_s / T`` or ``Σ s w_s / Σ s``, s counted from 1 where
        the model started or last changed its rule.
    seed : int
        Of the random numbers, 0 to 2⁶⁴ - 1.
    """

    def __init__(
        self,
        n_features: int,
        learners: Sequence[Learner],
        average: str | None = None,
        seed: int = 0,
    ) -> None:
        check_one_of("average", average, (None, *AVERAGES))
        self.learners = list(learners)
        self.average = average
        self.random = _core.Random(seed)
        self._core = _core.Descent(
            n_features, [learner._scalars() for learner in learners], _AVERAGES[average]
        )

    @property
    def n_features(self) -> int:
        """Length of the weights."""
        return int(self._core.n_columns)

    @property
    def n_steps(self) -> int:
        """Steps taken so far, the same for all models."""
        return int(self._core.n_steps)

    def run(self, rows: Rows, sampler: Any, n_steps: int, n_threads: int = 1) -> None:
        """Take `n_steps` steps on pairs that the ``core`` of the sampler draws."""
        self._core.run(rows.core, sampler.core, self.random, n_steps, n_threads)

    def step(self, rows: Rows, winners: Any, losers: Any, n_threads: int = 1) -> None:
        """Take a step on each pair of rows (winner, loser), in order."""
        i, j = (np.ascontiguousarray(part, dtype=np.int64) for part in (winners, losers))
        self._core.step(rows.core, i, j, n_threads)

    def weights(self) -> Array:
        """The weights of all models, of shape (n_models, n_features); averaged if iterates are."""
        return np.array([self._core.weights(m) for m in range(len(self.learners))])

    def iterate(self, model: int) -> Array:
        """The latest weights of a model without a λ, whether or not iterates are averaged."""
        scalars, v, _ = self._core.kept(model)
        return np.asarray(scalars[2] * v)

    def mean_losses(self) -> Array:
        """The mean loss that the steps of each model have met, every pair before its update.

        On fresh pairs this is an honest estimate: the model has not learned from them yet.
        """
        losses = [self._core.kept(m)[0][8] for m in range(len(self.learners))]
        return np.array(losses) / max(self.n_steps, 1)

    def check_finite(self) -> None:
        """Raise ValueError if the numbers of a model have left the range of floating point."""
        for m, learner in enumerate(self.learners):
            scalars = self._core.kept(m)[0]
            if not (np.isfinite(scalars).all() and np.isfinite(self._core.weights(m)).all()):
                raise ValueError(
                    f"the numbers of {learner.algorithm!r} left the range of floating point after "
                    f"{self.n_steps:,} steps; scale the features (scale='standard')"
                    + ("" if learner.shrinks else ", or use algorithm='pegasos'")
                )

    def become(self, model: int, learner: Learner, w: Any) -> None:
        """Let a model go on by another rule from the weights `w`; its average starts anew.

        A rule with λ scales `w` by ``1 - 1/t`` at once, so with ``first_step=0`` nothing of it
        would be left; that is refused unless `w` is zero.
        """
        start = np.ascontiguousarray(w, dtype=np.float64)
        if learner.shrinks and learner.first_step == 0 and start.any():
            raise ValueError("a start other than 0 needs first_step > 0: the first step erases it")
        self._core.become(model, learner._scalars(), start)
        self.learners[model] = learner

    def grow(self, n_features: int) -> None:
        """Make room for more features; their weights are 0."""
        self._core.grow(n_features)

    def state(self) -> dict[str, Any]:
        """All that :meth:`restore` needs to go on bit for bit: arrays, numbers and strings."""
        kept = [self._core.kept(m) for m in range(len(self.learners))]
        return {
            "average": self.average,
            "n_steps": self.n_steps,
            "random": np.array(self.random.state, dtype=np.uint64),
            "scalars": np.array([scalars for scalars, _, _ in kept]),
            "v": np.array([v for _, v, _ in kept]),
            "z": np.array([z for _, _, z in kept]),
            "rules": np.array(
                [[r.alpha, r.aggressiveness, r.first_step] for r in self.learners], dtype=np.float64
            ),
        }

    def __reduce__(self) -> tuple[Any, ...]:
        return Descent.restore, (self.state(),)

    @classmethod
    def restore(cls, state: Mapping[str, Any]) -> Descent:
        """A descent that goes on where the one of the state stood."""
        names = list(RULES)
        scalars, v, z = (
            np.ascontiguousarray(state[key], np.float64) for key in ("scalars", "v", "z")
        )
        rules = np.asarray(state["rules"], dtype=np.float64)
        shapes = [scalars.shape[1:], rules.shape[1:], v.ndim, z.ndim]
        n_models = {len(scalars), len(rules), len(v), len(z)}
        if shapes != [(10,), (3,), 2, 2] or len(n_models) > 1 or n_models == {0}:
            raise ValueError("the state of the descent is damaged: its arrays do not fit together")
        if not np.isin(scalars[:, 0], range(len(names))).all():
            raise ValueError("the state of the descent is damaged: unknown algorithm")
        learners = [
            Learner(names[int(scalar[0])], *map(float, rule))
            for scalar, rule in zip(scalars, rules, strict=True)
        ]
        descent = cls(v.shape[1], learners, state["average"])
        for m in range(len(learners)):
            descent._core.restore(m, scalars[m], v[m], z[m])
        descent._core.n_steps = int(state["n_steps"])
        descent.random.state = np.ascontiguousarray(state["random"], dtype=np.uint64)
        return descent


# ---- runs ---------------------------------------------------------------------------------------

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


class Course(Descent):
    """One or several models that learn from the same pairs; ``hybrid`` changes its rule on time.

    Alone and beside others, a model is the same up to rounding: its inner products are summed in
    another order. ``logistic`` may magnify rounding while its steps are long, ``‖x‖²/(λt) > 8``:
    the weights then differ visibly, but hardly in how good they are.

    Steps are taken on the rows that `move` names last.

    Parameters
    ----------
    n_features : int
        Length of the weights.
    rules : sequence of Learner
        One for each model, without a first step: that is planned where `w0` is given.
    n_steps : int
        Steps that will be taken, which ``hybrid`` plans for.
    average, seed
        As in `Descent`.
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
        rules: Sequence[Learner],
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
            planned_rule = replace(rule, first_step=first_step)
            if rule.algorithm == "hybrid":
                self._switches.append((n_first, model, replace(planned_rule, algorithm="pegasos")))
                rule = replace(rule, algorithm="pa", aggressiveness=eager)
            elif w0 is not None:
                rule = planned_rule
            learners.append(rule)
        self._switches.sort(key=lambda switch: switch[:2])
        super().__init__(n_features, learners, average, seed)
        for model, learner in enumerate(learners if w0 is not None else ()):
            self.become(model, learner, w0)

    @property
    def has_switches(self) -> bool:
        """Whether a model has yet to change its rule."""
        return bool(self._switches)

    def weights(self) -> Array:
        self.check_finite()
        return super().weights()

    def move(self, rows: Rows, sampler: PairSampler) -> None:
        """Go on with pairs of other rows."""
        self.rows, self.sampler = rows, sampler

    def until(self, n_steps: int, n_threads: int = 1) -> None:
        """Go on until `n_steps` steps have been taken."""
        while self._switches and n_steps > self._switches[0][0]:
            n_first, model, then = self._switches.pop(0)
            self._advance(n_first, n_threads)
            self.become(model, then, self.iterate(model))
        self._advance(n_steps, n_threads)

    def _advance(self, n_steps: int, n_threads: int) -> None:
        """Take steps in chunks of some milliseconds: Python answers Ctrl-C between them."""
        chunk = 256
        while (n_left := n_steps - self.n_steps) > 0:
            start = time.perf_counter()
            self.run(self.rows, self.sampler, min(chunk, n_left), n_threads)
            if time.perf_counter() - start < _CHUNK_SECONDS / 2:
                chunk *= 2


def course_over(
    rows: Rows, sampler: PairSampler, rules: Sequence[Learner], n_steps: int, **options: Any
) -> Course:
    """The course of models over the pairs of data in memory, from w = 0; options as in `Course`."""
    planned = None
    if needs_plan([rule.algorithm for rule in rules], None):
        planned = DrawnPairs.of(rows, sampler, PLANNED, options.get("seed", 0))
    course = Course(rows.shape[1], rules, n_steps, planned=planned, **options)
    course.move(rows, sampler)
    return course


def needs_plan(algorithms: Sequence[str], w0: Array | None) -> bool:
    """Whether the length of the first steps depends on the rows."""
    return w0 is not None or "hybrid" in algorithms


def _finite_square(planned: DrawnPairs, rules: Sequence[Learner]) -> float:
    """The mean of ``‖x_i - x_j‖²``, if plans can be made with it."""
    square = planned.mean_square()
    if not math.isfinite(square / min(rule.alpha for rule in rules)):
        raise ValueError(
            f"the mean of ‖x_i - x_j‖² over some pairs, {square:g}, has left the range of floating "
            "point, or does once divided by λ; scale the features (scale='standard')"
        )
    return square
