"""What the methods have in common when they end and when they are described."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from linrank.options import SELECTED_PAIRS
from linrank.system.words import count

if TYPE_CHECKING:
    from collections.abc import Mapping

    from linrank.methods.base import Trained
    from linrank.solvers.result import Result

Line = tuple[str, str]

LOOSE = 0.01  # a bound wider than this share of F needs a word: the truth may be far smaller


def optimum_attributes(result: Result) -> dict[str, Any]:
    """What every estimator shows that minimises."""
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
    remedy = "" if result.stopped == "max_iter" else "; raise tol to accept it"
    return f"did not converge: {result.message}{remedy}"


def relative_gap(result: Result) -> float:
    """The certified bound on ``F - F*`` as a share of F."""
    return result.gap / result.value if result.value > 0 else 0.0


def optimum_line(result: Result) -> Line:
    """The objective, and how far from its minimum it is at most."""
    share = f"{result.gap:.2g} ({relative_gap(result):.1e} of it)"
    told = f"objective {result.value:.10g}, at most {share} above the minimum"
    return "optimum", f"{told}: certified by the dual"


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


def ending(result: Any) -> dict[str, Any]:
    """How a solver ended, for programs."""
    return {
        "iterations": result.n_iter,
        "converged": result.converged,
        "stopped": result.stopped,
        "message": result.message,
    }
