"""Grids of a parameter to choose from, as users give them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["as_grid"]


def as_grid(name: str, values: Any, auto: Sequence[float]) -> NDArray[np.float64]:
    """The values of the parameter ``name`` > 0, ascending and each once; ``"auto"`` is ``auto``.

    Examples
    --------
    >>> print(as_grid("alphas", [1, 0.01, 1], auto=[0.1]), as_grid("alphas", "auto", auto=[0.1]))
    [0.01 1.  ] [0.1]
    """
    wrong = f"{name} must be 'auto' or numbers > 0, got {values!r}"
    if isinstance(values, str):
        if values != "auto":
            raise ValueError(wrong)
        values = auto
    try:
        grid = np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(wrong) from None
    if grid.ndim != 1 or grid.size == 0:
        raise ValueError(f"{name} must be a non-empty list of numbers > 0, got shape {grid.shape}")
    bad = ~(np.isfinite(grid) & (grid > 0))
    if bad.any():
        k = int(np.argmax(bad))
        raise ValueError(f"{name}[{k}] is {grid[k]:g}; all must be finite and > 0")
    return np.unique(grid)
