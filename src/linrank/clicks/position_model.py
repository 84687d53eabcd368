"""The position-based click model: a click takes a look and an attractive result."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linrank.clicks.harvesting import Cells
from linrank.clicks.impressions import Impressions

__all__ = ["PositionModel", "fit_position_model"]

Array = NDArray[Any]
_LEAST = 1e-9  # of a probability: at 0 or 1 the algorithm could not leave it again


@dataclass(frozen=True, eq=False)
class PositionModel:
    """``P(click) = p(position) · a(row)``, fitted to a log.

    Attributes
    ----------
    propensity : float64 array (n_positions,)
        p, relative to the largest, which is 1.
    attractiveness : float64 array (n,)
        a, in [0, 1], of the rows that were shown.
    rows : int64 array (n,)
        Those rows, ascending.
    log_likelihood : float
        Of the log under the model.
    n_iter : int
        Iterations.
    converged : bool
        Whether the tolerance was reached.
    """

    propensity: Array
    attractiveness: Array
    rows: Array
    log_likelihood: float
    n_iter: int
    converged: bool


def fit_position_model(
    impressions: Impressions, *, tol: float = 1e-6, max_iter: int = 2000
) -> PositionModel:
    """Fit propensities and attractiveness by expectation-maximisation.

    A log determines the propensities relative to each other only, and only as far as rows were
    shown at several positions: positions that no row connects with the others are an error.

    Parameters
    ----------
    impressions : Impressions
        With rows.
    tol : float, default=1e-6
        Stop when no propensity, relative to the largest, changes by more in an iteration.
    max_iter : int, default=2000
        Iterations at most.

    Returns
    -------
    PositionModel

    Examples
    --------
    >>> shown = {"position": [1, 1, 2, 2] * 2, "clicked": [1, 0] * 4, "row": [0] * 4 + [1] * 4}
    >>> log = Impressions.of(**shown, count=[80, 20, 40, 60, 40, 60, 20, 80])
    >>> fit_position_model(log).propensity.round(3).tolist()
    [1.0, 0.5]
    """
    if not tol > 0:
        raise ValueError(f"tol must be > 0, got {tol}")
    if max_iter < 1:
        raise ValueError(f"max_iter must be >= 1, got {max_iter}")
    cells = Cells(impressions, "fit_position_model")
    _check_connected(cells)
    if not cells.n_clicked.any():
        raise ValueError("there is no click in the impressions")
    p, a = _start(cells)
    change, n_iter = np.inf, 0
    while change > tol and n_iter < max_iter:
        last = p / p.max()
        p, a = _iterate(cells, p, a)
        change = float(np.abs(p / p.max() - last).max())
        n_iter += 1
    chance = p[cells.position] * a[cells.row]
    misses = cells.n_shown - cells.n_clicked
    likelihood = cells.n_clicked @ np.log(chance) + misses @ np.log1p(-chance)
    largest = p.max()
    return PositionModel(
        p / largest,
        np.minimum(a * largest, 1.0),
        cells.rows,
        float(likelihood),
        n_iter,
        change <= tol,
    )


def _start(cells: Cells) -> tuple[Array, Array]:
    """Click rates by position, and of the rows given those, both well inside (0, 1)."""
    shown = np.bincount(cells.position, cells.n_shown)
    rate = np.bincount(cells.position, cells.n_clicked) / shown
    p = np.clip(0.9 * rate / rate.max(), 0.01, 0.9)
    expected = np.bincount(cells.row, cells.n_shown * p[cells.position])
    a = np.clip(np.bincount(cells.row, cells.n_clicked) / expected, 0.01, 0.99)
    return p, a


def _iterate(cells: Cells, p: Array, a: Array) -> tuple[Array, Array]:
    """One step of expectation-maximisation.

    Without a click, either nobody looked or the result did not attract: it was looked at with the
    probability ``p(1-a) / (1-pa)``, and attractive with ``a(1-p) / (1-pa)``. The new p and a are
    the means of the two over what was shown at the position, or of the row; 1 for a click.
    """
    pk, ai = p[cells.position], a[cells.row]
    missed = (cells.n_shown - cells.n_clicked) / (1.0 - pk * ai)
    looked = cells.n_clicked + missed * pk * (1.0 - ai)
    attractive = cells.n_clicked + missed * ai * (1.0 - pk)
    new_p = np.bincount(cells.position, looked) / np.bincount(cells.position, cells.n_shown)
    new_a = np.bincount(cells.row, attractive) / np.bincount(cells.row, cells.n_shown)
    return np.clip(new_p, _LEAST, 1.0 - _LEAST), np.clip(new_a, _LEAST, 1.0 - _LEAST)


def _check_connected(cells: Cells) -> None:
    """Raise if the positions fall into groups that no row links."""
    follows = cells.row[1:] == cells.row[:-1]
    n = cells.n_positions
    links = np.unique(cells.position[:-1][follows] * n + cells.position[1:][follows])
    group = np.arange(n)
    for first, second in zip(*np.divmod(links, n), strict=True):
        group[group == group[second]] = group[first]
    apart = np.flatnonzero(group != group[0])
    if apart.size:
        raise ValueError(
            f"no row links position {apart[0] + 1} with position 1: without rows shown at several "
            "positions the propensities cannot be told from the relevance of what was shown; use a "
            "log with swaps or changes of the ranking, or give the propensities"
        )
