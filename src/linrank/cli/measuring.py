"""Which metrics a command computes: those asked for, or the usual ones that the labels allow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from linrank.cli.console import Console
    from linrank.data.dataset import Dataset


def check_metrics(metrics: Sequence[str] | None, convention: str) -> None:
    """Raise ValueError for a misspelt metric or convention, before anything is read."""
    from linrank.metrics import convention as named_convention
    from linrank.metrics import parse

    named_convention(convention)
    for metric in metrics or ():
        parse(metric)


def metrics_for(
    data: Dataset,
    asked: Sequence[str] | None,
    usual: Sequence[str],
    convention: str,
    console: Console,
) -> Sequence[str]:
    """The metrics asked for; else the usual ones, without NDCG where labels are negative.

    Labels -1 and +1, or those of a regression, are fine for everything else: to fail on a metric
    that nobody named would be no help.
    """
    from linrank.metrics import convention as named_convention

    lowest = float(data.labels.min())
    if asked or lowest >= 0.0 or named_convention(convention).negative_is_zero:
        return asked or usual
    console.say("note", f"ndcg is left out: a label below 0 ({lowest:g} occurs) has no gain")
    return [metric for metric in usual if "ndcg" not in metric]
