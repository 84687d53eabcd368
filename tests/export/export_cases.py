"""What tests of exports share."""

from __future__ import annotations

import numpy as np

from linrank.data.rows import ColumnStatistics


def statistics(low, high):
    """Statistics of columns that are spread evenly between two ends."""
    low, high = np.array(low, dtype=float), np.array(high, dtype=float)
    spread = (high - low) ** 2 / 12
    return ColumnStatistics(
        10.0, 10, (low + high) / 2, spread, low, high, np.full(len(low), 10, dtype=np.int64)
    )
