"""Scaling left to the engine: a shift and a width for each feature, and weights to match.

``w_j x_j`` and ``w_j s_j · (x_j - a_j) / s_j`` differ by ``w_j a_j``, the same for all rows: the
order is that of the folded weights, the numbers are those of the training.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from linrank.export.linear_form import about_magnitudes
from linrank.export.magnitudes import power_of_two
from linrank.export.numbers import singles

if TYPE_CHECKING:
    from linrank.export.linear_form import LinearForm

__all__ = ["Normalizers"]


@dataclass(frozen=True)
class Normalizers:
    """What an engine subtracts from each feature and divides it by, all of it in float32.

    Attributes
    ----------
    kind : {"standard", "minmax"}
        ``(x - mean) / deviation`` or ``(x - low) / (high - low)``.
    lows, highs : list of float
        Mean and deviation, or least and largest value.
    weights : list of float
        Of the scaled features.
    warnings : tuple of str
        What the model does not know.
    """

    kind: str
    lows: list[float]
    highs: list[float]
    weights: list[float]
    warnings: tuple[str, ...] = ()

    @classmethod
    def of(cls, form: LinearForm) -> Normalizers:
        """Those of a form whose model was trained with ``scale="standard"`` or ``"minmax"``."""
        if form.divisors is None:
            raise ValueError(
                "normalizers='engine' writes the scaling of the training, and the model was "
                f"trained with scale={form.scale!r}; use 'folded', or train with "
                "scale='standard' or 'minmax'"
            )
        known = form.statistics
        if form.scale == "standard":
            shifts = np.zeros_like(form.weights) if known is None else known.mean
            lows, highs = singles(shifts), singles(form.divisors)
            widths = np.array(highs, dtype=np.float32)
        else:
            shifts = np.zeros_like(form.weights) if known is None else known.low
            lows, highs, widths = _ranges(shifts, form.divisors)
        scaled = form.weights * np.asarray(widths, dtype=np.float64)
        with np.errstate(over="ignore", invalid="ignore"):
            # The order is kept by a factor of their own: these may be large where raw ones are
            # small. That of the raw weights has no part in default values, which are quotients.
            weights = (scaled * _factor(scaled)).astype(np.float32)
        usable = np.isfinite(widths) & (widths > 0) & np.isfinite(weights) & np.isfinite(lows)
        if not usable.all():
            j = int(np.flatnonzero(~usable)[0])
            raise ValueError(
                f"the feature {form.names[j]!r} is divided by {form.divisors[j]:g} in training, "
                "which an engine cannot do in float32; use normalizers='folded'"
            )
        warnings = [] if known is not None else [_SHIFTLESS]
        warnings += about_magnitudes(
            form.names, form.weights, weights.astype(np.float64), "float32"
        )
        return cls(form.scale, lows, highs, singles(weights), tuple(warnings))


def _factor(weights: np.ndarray[tuple[int], np.dtype[np.float64]]) -> float:
    held = weights[np.isfinite(weights) & (weights != 0.0)]
    return power_of_two(held, None, np.empty(0), "float32") if held.size else 1.0


_SHIFTLESS = (
    "the model does not know the means and ranges of its training data: the normalizers subtract "
    "0, which gives the same order; scores differ by a constant"
)


def _ranges(
    shifts: np.ndarray[tuple[int], np.dtype[np.float64]],
    divisors: np.ndarray[tuple[int], np.dtype[np.float64]],
) -> tuple[list[float], list[float], np.ndarray[tuple[int], np.dtype[np.float32]]]:
    """Ends in float32, and the difference that the engine makes of them.

    Where rounding would close the range, or change it by more than a thousandth, it begins at 0.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        lows = shifts.astype(np.float32)
        highs = (shifts + divisors).astype(np.float32)
        off = ~(np.abs((highs - lows) / divisors - 1.0) < 1e-3)
        lows = np.where(off, np.float32(0), lows)
        highs = np.where(off, divisors.astype(np.float32), highs)
        return singles(lows), singles(highs), highs - lows
