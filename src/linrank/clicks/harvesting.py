"""Propensities from click rates: of shuffled results, or of rows seen at several positions."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from linrank.clicks.impressions import Impressions

__all__ = ["Cells", "click_rates", "harvest"]

Array = NDArray[Any]


class Cells:
    """Showings and clicks of each row at each position, in ascending order of row, then position.

    Attributes
    ----------
    row, position : int64 arrays (n_cells,)
        Rows numbered 0..n_rows-1, in ascending order of ``rows``; positions from 0.
    n_shown, n_clicked : float64 arrays (n_cells,)
        Totals of the counts.
    rows : int64 array
        The rows of the feature matrix that were shown.
    n_positions : int
        Positions; all of them were shown.
    """

    def __init__(self, impressions: Impressions, what: str) -> None:
        self.rows, code = np.unique(impressions.rows_needed(what), return_inverse=True)
        self.n_positions = _shown_positions(impressions)
        key = code * self.n_positions + impressions.position - 1
        cells, of_cell = np.unique(key, return_inverse=True)
        self.row, self.position = np.divmod(cells, self.n_positions)
        self.n_shown = np.bincount(of_cell, impressions.count)
        self.n_clicked = np.bincount(of_cell, impressions.count * impressions.clicked)


def click_rates(impressions: Impressions) -> Array:
    """Propensities from results in random order: the click rate of each position.

    Where chance decides what is shown where, every position holds the same mixture of rows, and
    click rates differ by propensity only. A log of results ranked by relevance will not do: there
    the top is clicked because it is good.

    Parameters
    ----------
    impressions : Impressions
        Shown in random order, or at least the lists in which the order was random.

    Returns
    -------
    float64 array (n_positions,)
        Relative to the largest, which is 1: a log says no more.

    Examples
    --------
    >>> log = Impressions.of([1, 1, 2, 2], [1, 0, 1, 0], count=[40, 60, 10, 90])
    >>> click_rates(log).tolist()
    [1.0, 0.25]
    """
    n_positions = _shown_positions(impressions)
    at = impressions.position - 1
    n_shown = np.bincount(at, impressions.count, minlength=n_positions)
    clicks = np.bincount(at, impressions.count * impressions.clicked, minlength=n_positions)
    if (clicks == 0).any():
        k = int(np.argmax(clicks == 0))
        raise ValueError(
            f"position {k + 1} was not clicked in {n_shown[k]:g} showings, and a propensity of 0 "
            "has no inverse; leave out such positions or gather more clicks"
        )
    rate = clicks / n_shown
    relative: Array = rate / rate.max()
    return relative


def harvest(impressions: Impressions) -> Array:
    """Propensities from rows that were shown at neighbouring positions, whatever the reason.

    A row that was shown at both positions k and k+1, because results were swapped or rankers
    changed, is as relevant here as there: ``p_(k+1) / p_k = Σ h c_(k+1) / Σ h c_k`` over
    such rows, with c the click rate of the row at the position and ``h = n n' / (n + n')`` its
    evidence from n and n' showings. The ratios are chained from position to position. After the
    intervention harvesting of Agarwal and others (2019).

    Parameters
    ----------
    impressions : Impressions
        With rows.

    Returns
    -------
    float64 array (n_positions,)
        Relative to the largest, which is 1.

    Examples
    --------
    >>> shown = {"position": [1, 1, 2, 2], "clicked": [1, 0, 1, 0], "row": [7, 7, 7, 7]}
    >>> harvest(Impressions.of(**shown, count=[60, 40, 30, 70])).tolist()
    [1.0, 0.5]
    """
    cells = Cells(impressions, "harvest")
    is_next = (cells.row[1:] == cells.row[:-1]) & (cells.position[1:] == cells.position[:-1] + 1)
    here = np.flatnonzero(is_next)
    n, m = cells.n_shown[here], cells.n_shown[here + 1]
    evidence, at = n * m / (n + m), cells.position[here]
    size = cells.n_positions - 1
    upper = np.bincount(at, evidence * cells.n_clicked[here] / n, minlength=size)
    lower = np.bincount(at, evidence * cells.n_clicked[here + 1] / m, minlength=size)
    is_bad = (upper == 0) | (lower == 0)
    if is_bad.any():
        k = int(np.argmax(is_bad))
        n_rows = int(np.count_nonzero(at == k))
        raise ValueError(
            f"{n_rows} rows were shown at both positions {k + 1} and {k + 2}, and not clicked at "
            "both; the ratio of their propensities cannot be estimated"
        )
    chain = np.concatenate([[1.0], np.cumprod(lower / upper)])
    relative: Array = chain / chain.max()
    return relative


def _shown_positions(impressions: Impressions) -> int:
    """The number of positions; an error if one of them was never shown."""
    n = impressions.n_positions
    is_shown = np.zeros(min(n, len(impressions) + 1), dtype=bool)  # more cannot all be shown
    is_shown[impressions.position[impressions.position <= len(is_shown)] - 1] = True
    if not is_shown.all():
        k = int(np.argmin(is_shown)) + 1
        raise ValueError(f"nothing was shown at position {k}, but at {n}; number ranks from 1")
    return n
