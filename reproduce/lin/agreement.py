"""Whether our figure agrees with a published one, given the errors of both."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from report import Table

COLUMNS = ["ours", "paper", "difference", "within the error bars"]
NOTE = (
    "errors are standard errors of the mean over the rounds; `within`: the two bars touch; `2σ`: "
    "they do not, but the difference is at most twice its own standard error; `OUTSIDE`: neither"
)


@dataclass(frozen=True)
class Figure:
    """A mean and its standard error."""

    mean: float
    error: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Figure:
        a = np.asarray(values, dtype=np.float64)
        error = a.std(ddof=1) / math.sqrt(len(a)) if len(a) > 1 else 0.0
        return cls(float(a.mean()), float(error))

    def to_text(self, digits: int = 2) -> str:
        return f"{self.mean:.{digits}f} ± {self.error:.{digits}f}"


def parse_figure(text: str | None) -> Figure | None:
    """``"99.94 ± 0.01"`` as a figure; None for what is not there."""
    if text is None:
        return None
    mean, error = text.split(" ± ")
    return Figure(float(mean), float(error))


def agreement(ours: Figure, paper: Figure) -> str:
    difference = abs(ours.mean - paper.mean)
    if difference <= ours.error + paper.error:
        return "within"
    sigmas = difference / math.hypot(ours.error, paper.error)
    return "2σ" if sigmas <= 2.0 else f"OUTSIDE, {sigmas:.1f}σ"


def compare_cells(values: Sequence[float], paper: str | None, digits: int = 2) -> list[str]:
    """Cells of `COLUMNS`."""
    ours, theirs = Figure.of(values), parse_figure(paper)
    if theirs is None:
        return [ours.to_text(digits), "-", "", "not in the paper"]
    difference = f"{ours.mean - theirs.mean:+.{digits}f}"
    return [ours.to_text(digits), paper or "", difference, agreement(ours, theirs)]


def count(table: Table) -> str:
    """How many of the figures that the paper has agree."""
    verdicts = [row[-1] for row in table.rows if row[-1] != "not in the paper"]
    return (
        f"{verdicts.count('within')} of {len(verdicts)} within the error bars, "
        f"{verdicts.count('2σ')} more within 2σ, "
        f"{sum(one.startswith('OUTSIDE') for one in verdicts)} outside"
    )


def in_processes(call: Callable[..., Any], jobs: Iterable[Sequence[Any]]) -> list[Any]:
    """The results of ``call(*job)``, in order; a process of one thread on each core we may use."""
    with ProcessPoolExecutor(len(os.sched_getaffinity(0)), initializer=_one_thread) as pool:
        futures = [pool.submit(call, *job) for job in jobs]
        return [future.result() for future in futures]


def _one_thread() -> None:
    threadpool_limits(1)
