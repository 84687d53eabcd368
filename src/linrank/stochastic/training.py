"""descend: a stochastic fit on data in memory."""

from __future__ import annotations

import math
import numbers
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from linrank import threads
from linrank.options import ALGORITHMS, RECORDS
from linrank.stochastic.drawn_pairs import RECORDED, DrawnPairs
from linrank.stochastic.objectives import ExactObjective, SampledObjective
from linrank.stochastic.run import Rule, Run
from linrank.stochastic.samplers import pair_sampler
from linrank.stochastic.watch import Watch, milestones

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from linrank.data.dataset import Dataset
    from linrank.data.rows import Rows
    from linrank.stochastic.run import Course
    from linrank.stochastic.samplers import PairSampler
    from linrank.stochastic.watch import Objective

    Array = NDArray[Any]
    Callback = Callable[[dict[str, Any]], bool | None]

__all__ = [
    "DescentResult",
    "check_descent",
    "descend",
    "finished",
    "regularisation",
]

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


def descend(
    data: Dataset,
    *,
    algorithm: str = "pegasos",
    alpha: float | None = None,
    C: float | None = None,
    aggressiveness: float = 1.0,
    n_steps: int = 100_000,
    sampling: str = "pairs",
    average: str | None = None,
    tol: float | None = None,
    record: str | None = None,
    seed: int = 0,
    w0: Array | None = None,
    query_weight: Array | None = None,
    validation: Dataset | None = None,
    n_jobs: int | None = None,
    callback: Callback | None = None,
) -> DescentResult:
    """Learn weights from `n_steps` sampled pairs.

    Parameters
    ----------
    data : Dataset
        The rows, scaled if they are to be.
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
        The objective to compute at milestones, four a decade: on 16,384 pairs, or on all.
    seed : int
        Of the pairs. The same seed gives the same bits, whatever `n_jobs`.
    w0 : array, optional
        Weights to start from, with step sizes that do not erase them.
    query_weight : array by query, optional
        Factors c of the pair weights.
    validation : Dataset, optional
        Held-out data that `tol` looks at.
    n_jobs : int, optional
        Threads of the exact objective; the steps of one model are taken one after another.
    callback : callable, optional
        Called with the state at every milestone; True stops.
    """
    check_descent(algorithm, n_steps, record, tol)
    sampler = pair_sampler(
        data.queries,
        sampling,
        labels=data.labels,
        row_weight=data.weight,
        query_weight=query_weight,
    )
    alpha = regularisation(alpha, C, sampler.total_weight)
    rule = Rule(algorithm, alpha, aggressiveness)
    run = Run(data.rows, sampler, [rule], n_steps, average=average, seed=seed, w0=w0)
    if record is None and tol is not None:
        record = "sampled"
    objective = _objective(data.rows, sampler, alpha, record, algorithm, seed, n_jobs)
    watched = objective
    if validation is not None and tol is not None:
        held_out = pair_sampler(validation.queries, sampling, labels=validation.labels)
        watched = _objective(validation.rows, held_out, alpha, "sampled", algorithm, seed, n_jobs)
    watch = Watch(objective, watched, tol, callback)
    verdict = ("n_steps", f"took all {n_steps:,} steps")
    if objective is None and callback is None:
        run.until(n_steps)
    else:
        for milestone in milestones(n_steps):
            run.until(milestone)
            if (ended := watch(run)) is not None:
                verdict = ended
                break
    return finished(run, watch, verdict, alpha, sampler.n_pairs)


def finished(
    run: Course, watch: Watch, verdict: tuple[str, str], alpha: float, n_pairs: int
) -> DescentResult:
    """The outcome of a run that has come to its end."""
    last, w = watch.latest, run.weights()[0]
    return DescentResult(
        w,
        alpha,
        run.n_steps,
        last.get("objective", math.nan),
        last.get("gap", math.nan),
        float(run.mean_losses()[0]),
        *verdict,
        n_pairs,
        watch.history,
    )


def regularisation(
    alpha: float | None, C: float | None = None, total_weight: float = math.nan
) -> float:
    """λ from what the user gave: itself, or ``1/(C Σω)``, or the default."""
    if alpha is not None and C is not None:
        raise ValueError(f"give alpha or C, not both: got alpha={alpha} and C={C}")
    for name, value in (("alpha", alpha), ("C", C)):
        if value is not None and not (
            isinstance(value, numbers.Real) and value > 0 and math.isfinite(value)
        ):
            raise ValueError(f"{name} must be finite and > 0, got {value!r}")
    if C is not None:
        return 1.0 / (float(C) * total_weight)
    return _DEFAULT_ALPHA if alpha is None else float(alpha)


def check_descent(algorithm: str, n_steps: Any, record: str | None, tol: float | None) -> None:
    """Refuse options that no data could make right."""
    if algorithm not in ALGORITHMS:
        expected = ", ".join(map(repr, ALGORITHMS))
        raise ValueError(f"algorithm must be one of {expected}, got {algorithm!r}")
    if not isinstance(n_steps, numbers.Integral) or isinstance(n_steps, bool) or n_steps < 1:
        raise ValueError(f"n_steps must be an integer >= 1, got {n_steps!r}")
    if record not in (None, *RECORDS):
        expected = ", ".join(map(repr, RECORDS))
        raise ValueError(f"record must be None or one of {expected}, got {record!r}")
    if record == "exact" and algorithm == "logistic":
        raise ValueError(
            "record='exact' sums the hinge over all pairs; the logistic loss has no such sum: "
            "use record='sampled'"
        )
    if tol is not None and not (tol > 0 and math.isfinite(tol)):
        raise ValueError(f"tol must be finite and > 0, got {tol}")


def _objective(
    rows: Rows,
    sampler: PairSampler,
    alpha: float,
    record: str | None,
    algorithm: str,
    seed: int,
    n_jobs: int | None,
) -> Objective | None:
    if record is None:
        return None
    if record == "exact":
        return ExactObjective(rows, sampler, alpha, threads.resolve(n_jobs))
    drawn = DrawnPairs.of(rows, sampler, RECORDED, seed)
    return SampledObjective(drawn, alpha, logistic=algorithm == "logistic")
