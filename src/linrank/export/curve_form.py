"""CurveForm: an additive model as engines see it, its curves as steps where they take trees.

score(x) = Σ_j f_j(x_j),   a missing x_j counting f_j(fill_j) + extra_j.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from linrank.data.curves import Curves, Function
from linrank.data.rows import DenseRows
from linrank.export.linear_form import LinearForm

Array = NDArray[Any]
Step = tuple[str, float, float]  # feature, where it is, how high


@dataclass(frozen=True, eq=False)
class CurveForm(LinearForm):
    """As `LinearForm`, with a curve of each exported feature in place of its weight.

    Attributes
    ----------
    curves : Curves
        One for each name, in order.
    interactions : Interactions or None
        A term of all features of the model.
    """

    curves: Curves
    interactions: Any = None
    what: ClassVar[str] = "An additive model"

    @classmethod
    def of(
        cls,
        model: Any,
        *,
        target: str = "linrank",
        feature_map: Any = None,
        precision: str = "float64",
        dense: bool = False,
        named: bool = True,
        by_query: bool = False,
    ) -> CurveForm:
        """The form of a model; the arguments are those of `LinearForm.of`."""
        is_used = model.is_used
        if not is_used.any() and model.interactions is None:
            raise ValueError(
                "all curves of the model are constant, so that every row scores alike: there is "
                "nothing to export; train with a larger C or a weaker penalty"
            )
        kept = np.arange(len(is_used)) if dense or model.interactions else np.flatnonzero(is_used)
        curves = Curves.of((k, *model.curves[j][1:]) for k, j in enumerate(kept.tolist()))
        own = {"curves": curves, "interactions": model.interactions}
        return cls.of_features(model, kept, target, feature_map, named, **own)

    @property
    def contributions(self) -> NDArray[np.float64]:
        """What a missing value of each feature adds to the score: ``f(fill) + extra``."""
        at_fill: Array = self.curves.columns(DenseRows(self.fill[None, :])).values[0]
        return at_fill + self.extra

    @property
    def defaults(self) -> NDArray[np.float64]:
        """The value that counts as a missing one; NaN where none is known to."""
        return np.where(self.extra == 0.0, self.fill, np.nan)

    def steps(self, tolerance: Any = None, n_steps: Any = None) -> tuple[list[Step], list[str]]:
        """The curves as steps, and what to say of the difference.

        Parameters
        ----------
        tolerance : float or None
            How far steps may be from a curve.
        n_steps : int or None
            How many there may be in all, 1000 if neither is given.
        """
        if tolerance is not None and n_steps is not None:
            raise ValueError("give tolerance or steps, not both")
        lines = [self.curves.polyline(k, *self._range(k)) for k in range(len(self.names))]
        if tolerance is None:
            tolerance = _least_tolerance(lines, 1000 if n_steps is None else int(n_steps))
        if not float(tolerance) >= 0.0:
            raise ValueError(f"tolerance must be a number >= 0, got {tolerance!r}")
        steps, errors = [], []
        for name, (x, y) in zip(self.names, lines, strict=True):
            cuts, heights, error = as_steps(x, y, float(tolerance))
            rises = np.diff(heights).tolist()
            steps += [(name, cut, rise) for cut, rise in zip(cuts, rises, strict=True) if rise]
            errors.append(error)
        if not max(errors):
            return steps, []
        return steps, [
            f"the curves are written as {len(steps):,} steps, each within {max(errors):.3g} of its "
            f"curve, so that a score is at most {sum(errors):.3g} off, and beyond the values of "
            "training they are constant; tolerance= or steps= asks for other steps, and a model of "
            "curves='step' is exact"
        ]

    def _range(self, k: int) -> tuple[float, float]:
        knots = self.curves[k][1]
        if self.statistics is not None:
            return float(self.statistics.low[k]), float(self.statistics.high[k])
        if not len(knots):
            raise ValueError(
                f"the range of {self.names[k]!r} in training is not known, so that its line cannot "
                "be written as steps; train the model again"
            )
        return float(knots[0]), float(knots[-1])


def _least_tolerance(lines: list[tuple[Array, Array]], n_steps: int) -> float:
    """The least error, to a few digits, that so many steps allow."""
    if n_steps < 1:
        raise ValueError(f"steps must be an integer >= 1, got {n_steps}")
    if not any(_has_slope(x, y) for x, y in lines):
        return 0.0
    low, high = 0.0, max(float(np.ptp(y)) for _, y in lines) / 2.0
    for _ in range(20):
        middle = (low + high) / 2.0
        enough = sum(len(as_steps(x, y, middle)[0]) for x, y in lines) <= n_steps
        low, high = (low, middle) if enough else (middle, high)
    return high


def _has_slope(x: Array, y: Array) -> bool:
    return bool(((x[1:] > x[:-1]) & (y[1:] != y[:-1])).any())


def as_steps(x: Array, y: Array, tolerance: float) -> tuple[list[float], list[float], float]:
    """The fewest constants within ``tolerance`` of a line through points.

    Returns
    -------
    cuts, heights : lists
        ``heights[k]`` holds up to ``cuts[k]``, that point included; the last one beyond.
    error : float
        The largest difference, at most the tolerance.

    Examples
    --------
    >>> as_steps(np.array([0.0, 4.0]), np.array([0.0, 2.0]), 0.5)
    ([2.0], [0.5, 1.5], 0.5)
    """
    if tolerance == 0.0 and _has_slope(x, y):
        raise ValueError("curves that are no steps cannot be written as steps without an error")
    cuts, heights, room = [], [], 2.0 * tolerance
    points = zip(x.tolist(), y.tolist(), strict=True)
    x0, y0 = next(points)
    low = high = y0
    error = 0.0
    for x1, y1 in points:
        while max(high, y1) - min(low, y1) > room * (1.0 + 1e-9):
            # The constant at hand holds up to where the line leaves its room.
            limit = low + room if y1 > high else high - room
            is_jump = x1 <= x0
            cut = x0 if is_jump else x0 + (limit - y0) * (x1 - x0) / (y1 - y0)
            low, high = (low, high) if is_jump else (min(low, limit), max(high, limit))
            cuts.append(cut)
            heights.append((low + high) / 2.0)
            error = max(error, (high - low) / 2.0)
            x0, y0 = (x1, y1) if is_jump else (cut, limit)
            low = high = y0
        low, high = min(low, y1), max(high, y1)
        x0, y0 = x1, y1
    return cuts, [*heights, (low + high) / 2.0], max(error, (high - low) / 2.0)


def decisions(function: Function, x: str, number: Callable[[float], str], choice: str) -> str:
    """A curve as nested choices, each halving its knots, of pieces ``value + slope·(x - origin)``.

    ``number`` writes a number, and ``choice`` has places for the value ``{x}`` of the feature, a
    ``{knot}``, and what is chosen ``{above}`` it, or else ``{below}``.
    """
    _, knots, values, slopes = function
    origins = [*knots[:1].tolist(), *knots.tolist()] or [0.0]

    def part(first: int, last: int) -> str:
        if first == last:
            sign = "-" if origins[first] >= 0.0 else "+"
            distance = f"({x} {sign} {number(abs(origins[first]))})"
            moved = f" + {number(slopes[first])} * {distance}" if slopes[first] else ""
            return number(values[first]) + moved
        middle = (first + last) // 2
        below, above = part(first, middle), part(middle + 1, last)
        return choice.format(x=x, knot=number(knots[middle]), above=above, below=below)

    return part(0, len(knots))
