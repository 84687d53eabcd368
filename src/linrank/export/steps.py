"""Curves as steps, for engines that take trees, and as nested choices, for those that compute."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from linrank.data import Array
from linrank.data.curves import Function
from linrank.export.form import Form

Step = tuple[str, float, float]  # feature, where it is, how high


def steps_of(
    form: Form, tolerance: Any = None, n_steps: Any = None
) -> tuple[list[Step] | None, list[str]]:
    """The curves of a form as steps, None for a linear form, and what to say of the difference.

    Parameters
    ----------
    form : Form
        Names, curves, and ranges in training.
    tolerance : float or None
        How far steps may be from a curve.
    n_steps : int or None
        How many there may be in all, 1000 if neither is given.
    """
    if form.curves is None:
        if tolerance is not None or n_steps is not None:
            raise ValueError("tolerance and steps are of curves, and the model is linear")
        return None, []
    if tolerance is not None and n_steps is not None:
        raise ValueError("give tolerance or steps, not both")
    knots = (function[1] for function in form.curves)
    lines = [form.curves.polyline(k, *_range(form, k, t)) for k, t in enumerate(knots)]
    if tolerance is None:
        tolerance = _least_tolerance(lines, 1000 if n_steps is None else int(n_steps))
    if not float(tolerance) >= 0.0:
        raise ValueError(f"tolerance must be a number >= 0, got {tolerance!r}")
    steps, errors = [], []
    for name, (x, y) in zip(form.names, lines, strict=True):
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


def _range(form: Form, k: int, knots: Array) -> tuple[float, float]:
    if form.statistics is not None:
        return float(form.statistics.low[k]), float(form.statistics.high[k])
    if not len(knots):
        raise ValueError(
            f"the range of {form.names[k]!r} in training is not known, so that its line cannot "
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
