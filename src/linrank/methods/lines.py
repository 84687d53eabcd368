"""Lines on a training that several methods tell, each a label and a sentence."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from linrank.system.words import count

if TYPE_CHECKING:
    from linrank.solvers.result import Result

LOOSE = 0.01  # a bound wider than this share of F needs a word: the truth may be far smaller


def relative_gap(result: Result) -> float:
    """The certified bound on ``F - F*`` as a share of F."""
    return result.gap / result.value if result.value > 0 else 0.0


def optimum_line(value: float, gap: float) -> tuple[str, str]:
    """The objective, and how far from its minimum it is at most."""
    share = gap / value if value > 0 else 0.0
    return (
        "optimum",
        f"objective {value:.10g}, at most {gap:.2g} ({share:.1e} of it) above the minimum: "
        "certified by the dual",
    )


def weights_line(n_nonzero: int, n_features: int) -> tuple[str, str]:
    """How many weights are not 0."""
    share = 100 * n_nonzero / n_features
    return "weights", f"{n_nonzero:,} of {count(n_features, 'feature')} ({share:.3g} %)"


def pairs_line(training: Mapping[str, Any]) -> tuple[str, str]:
    """How many pairs were chosen; ``training`` is what the model knows."""
    told = f"{training['n_closest']:,} closest"
    if training["pairs"] == "pruned":
        told += f" and {training['n_random']:,} random"
    return "pairs", f"{told} of the labels, seed {training['seed']}"
