"""Feature induction: features enter a few at a time, those first that promise most."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from linrank.data.rows import Array
from linrank.domination.coordinate import Descent, Log, descend
from linrank.domination.problem import PenalizedPoint
from linrank.solvers.result import Result, Verdict


@dataclass(frozen=True, eq=False)
class Round:
    """What a round of feature induction did.

    Attributes
    ----------
    features : int64 array
        Those that entered, the largest promise first.
    promises : float64 array
        By how much, at least, the objective falls if this feature alone is moved.
    n_chosen : int
        Features that have entered so far.
    objective : float
        ``F`` of the features that have entered, after training.
    gap : float
        Certified: how far that is above its minimum over their weights.
    n_nonzero : int
        Weights other than 0.
    n_sweeps : int
        Of this round.
    seconds : float
        Since the start of the induction.
    last : int
        Where the round ends in the history of the result.
    validation : float or None
        The measure of the validation data, if there is one.
    """

    features: Array
    promises: Array
    n_chosen: int
    objective: float
    gap: float
    n_nonzero: int
    n_sweeps: int
    seconds: float
    last: int
    validation: float | None = None


@dataclass(frozen=True, eq=False)
class InductionResult(Result):
    """The outcome of feature induction.

    `gap` and `kkt_residual` are of the problem over all features, whether they have entered or
    not; those in `history`, but for the last entry, of the features that had entered by then. The
    history has ``"round"`` (from 1; 0 at the end) and ``"n_chosen"`` too.

    Attributes
    ----------
    rounds : tuple of Round
        In order.
    """

    rounds: tuple[Round, ...] = field(repr=False)

    @property
    def order(self) -> Array:
        """Features by entry; those with a weight at the start are not among them."""
        entered = [done.features for done in self.rounds]
        return np.concatenate(entered) if entered else np.empty(0, dtype=np.int64)

    def with_measures(self, measures: Sequence[float]) -> InductionResult:
        """The same with the measures of validation data, one for each entry of the history."""
        rounds = [replace(done, validation=float(measures[done.last])) for done in self.rounds]
        return replace(self, rounds=tuple(rounds))


def induce(
    descent: Descent, n_per_round: int, *, tol: float, max_iter: int, log: Log | None = None
) -> InductionResult:
    """Minimize F over features that enter a few at a time.

    A round looks at all features outside, each on its own, for the decrease of F that its bound
    guarantees, penalty included; lets those with the largest ones in, and trains all that are in
    to convergence. It ends when no feature outside promises more than ``tol·F``: the models are
    sparse without an l1 penalty too.

    Parameters
    ----------
    descent : Descent
        Where to start, mostly at 0; features that have a weight there are in from the start.
    n_per_round : int
        Features that enter per round, at most.
    tol : float
        Least promise, relative to F, of a feature that enters; and the largest certified gap,
        relative to F, of the features that are in (without a penalty: the least decrease that a
        sweep goes on for).
    max_iter : int
        Sweeps at most in each round; a round that needs more is the last.
    log : Log, optional
        A history to go on with; the state that its callback gets has ``"round"`` and
        ``"n_chosen"`` too.
    """
    log = log or Log(None)
    first = descent.n_sweeps
    rounds: list[Round] = []
    chosen = np.flatnonzero(descent.w)
    is_settled = not len(chosen)
    while True:
        point = descent.point()
        entering, promises = _most_promising(descent, point, chosen, n_per_round, tol)
        if is_settled and not len(entering):
            n_features = descent.problem.n_features
            message = f"all {n_features} features have entered"
            if n_left := n_features - len(chosen):
                message = f"none of the {n_left} features outside promises to lower F by more than "
                message += f"{tol:g}·F"
            verdict: Verdict = ("tolerance", message)
            break
        chosen = np.union1d(chosen, entering)
        log.context = {"round": len(rounds) + 1, "n_chosen": len(chosen)}
        result = descend(descent, tol=tol, max_iter=max_iter, among=chosen, log=log)
        done = Round(
            features=entering,
            promises=promises,
            n_chosen=len(chosen),
            objective=result.value,
            gap=result.gap,
            n_nonzero=int(np.count_nonzero(result.w)),
            n_sweeps=result.n_iter,
            seconds=time.perf_counter() - log.started,
            last=len(log.history["objective"]) - 1,
        )
        rounds.append(done)
        is_settled = True
        if not result.converged:
            verdict = (result.stopped, f"round {len(rounds)}: {result.message}")
            break
    point = descent.certified_point()
    log.context = {"round": 0, "n_chosen": len(chosen)}
    log.record(descent, point, 0)
    found = log.result(point, descent.n_sweeps - first, verdict)
    return InductionResult(**vars(found), rounds=tuple(rounds))


def _most_promising(
    descent: Descent, point: PenalizedPoint, chosen: Array, n: int, tol: float
) -> tuple[Array, Array]:
    """The n features outside that promise most, more than ``tol·F``, and what they promise."""
    problem = descent.problem
    # At a weight of 0, the derivative must exceed alpha for l1 to let it move at all.
    least = problem.alpha if problem.penalty == "l1" else 0.0
    is_candidate = np.abs(point.risk.gradient) > least
    is_candidate[chosen] = False
    candidates = np.flatnonzero(is_candidate)
    decreases = descent.measure(candidates).decreases(point.w, problem.penalty, problem.alpha)
    order = np.argsort(-decreases, kind="stable")[:n]
    order = order[decreases[order] > tol * point.value]
    return candidates[order], decreases[order]
