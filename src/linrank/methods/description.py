"""What there is to say of a training, whatever the method: its optimum, its pairs, its end."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from linrank.choices import SELECTED_PAIRS
from linrank.methods.base import Description, Trained
from linrank.solvers.result import Result, distance_text
from linrank.system.resources import count

Line = tuple[str, str]


def optimum_attributes(result: Result) -> dict[str, Any]:
    """What every estimator shows that minimizes."""
    return {
        "n_iter": result.n_iter,
        "converged": result.converged,
        "objective": result.value,
        "duality_gap": result.gap,
    }


def doubt_of(result: Result) -> str:
    """What to say of a solver that stopped before its tolerance; nothing if it was told to."""
    if result.stopped not in ("max_iter", "precision"):
        return ""
    is_told = result.stopped == "max_iter" or "raise tol" in result.message
    remedy = "" if is_told else "; raise tol to accept it"
    return f"did not converge: {result.message}{remedy}"


def relative_gap(result: Result) -> float:
    """The certified bound on ``F - F*`` as a share of F."""
    return result.gap / result.value if result.value > 0 else 0.0


def optimum_line(result: Result) -> Line:
    """The objective, and how far from its minimum it is at most."""
    told = distance_text(result.value, result.gap, result.converged)
    return "optimum", f"objective {result.value:.10g}, {told}"


def pair_lines(training: Mapping[str, Any]) -> tuple[Line, ...]:
    """How many pairs were chosen, where not all are; ``training`` is what the model knows."""
    if training.get("pairs") not in SELECTED_PAIRS or training.get("n_closest") is None:
        return ()
    told = f"{training['n_closest']:,} closest"
    if training["pairs"] == "pruned":
        told += f" and {training['n_random']:,} random"
    return (("pairs", f"{told} of the labels, seed {training['seed']}"),)


def weight_line(n_nonzero: int, n_features: int) -> Line:
    """How many features count."""
    share = f"{100 * n_nonzero / max(n_features, 1):.3g} %"
    return "weights", f"{n_nonzero:,} of {count(n_features, 'feature')} ({share})"


def converged_lines(trained: Trained) -> tuple[Line, ...]:
    """That the tolerance was reached; `Trained.doubt` says it where it was not."""
    return (("converged", trained.result.message),) if trained.is_done else ()


def describe_optimum(trained: Trained, *lines: Line, **facts: Any) -> Description:
    """What there is to say of a minimum, with how its solver ended."""
    result = trained.result
    ended = {
        "objective": result.value,
        "duality_gap": result.gap,
        "iterations": result.n_iter,
        "converged": result.converged,
        "stopped": result.stopped,
        "message": result.message,
    }
    known = {**ended, **facts, "scale": trained.model.scaling.kind}
    return Description((*lines, *converged_lines(trained)), known)
