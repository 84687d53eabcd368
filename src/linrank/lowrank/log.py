"""Log: the history of a run on the dual, whose objective must stay within doubles."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from linrank.solvers.result import History


class Log(History):
    """Numbers by iterate, from wherever they come."""

    def add(self, weights: Callable[[], Any], **numbers: float) -> bool:
        """As `append`, of an objective that is a number."""
        if not math.isfinite(numbers["objective"]):
            raise ValueError(
                f"the objective is {numbers['objective']:g}: features, weights or C are too large "
                "for double precision; divide them by a common factor"
            )
        return self.append(weights, {key: float(number) for key, number in numbers.items()})
