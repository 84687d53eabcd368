"""Propensities: the chance that a position is looked at, and weights that make up for it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linrank.clicks.impressions import Impressions
from linrank.data.frames import as_array, as_float

__all__ = ["as_propensity", "ips_relevance", "ips_weights", "power_law"]

Array = NDArray[Any]


def power_law(n_positions: int, eta: float = 1.0) -> Array:
    """Propensities ``1 / rank^η`` of the positions 1 to ``n_positions``.

    Parameters
    ----------
    n_positions : int
        Positions, >= 1.
    eta : float, default=1.0
        η >= 0: 0 for no bias, about 1 in many logs of web search.

    Returns
    -------
    float64 array (n_positions,)
        Of position 1 first, which is 1.

    Examples
    --------
    >>> power_law(4).round(2).tolist()
    [1.0, 0.5, 0.33, 0.25]
    """
    if n_positions < 1:
        raise ValueError(f"n_positions must be >= 1, got {n_positions}")
    if not (math.isfinite(eta) and eta >= 0):
        raise ValueError(f"eta must be finite and >= 0, got {eta}")
    propensity: Array = np.arange(1, n_positions + 1, dtype=np.float64) ** -float(eta)
    if propensity[-1] == 0.0:
        raise ValueError(
            f"eta={eta:g} leaves position {n_positions} a propensity below what a number can hold; "
            "lower eta or n_positions"
        )
    return propensity


def ips_weights(position: Any, propensity: Any, *, max_weight: float | None = None) -> Array:
    """Inverse propensities ``min(1 / p(position), max_weight)``, one for each position given.

    A click at a position that is looked at once in ten times stands for ten: weighted like this,
    the clicks have the expectation that they would have if everything were looked at. A bound on
    the weights trades some of that for less variance.

    Parameters
    ----------
    position : integers
        Ranks, from 1.
    propensity : array (n_positions,)
        Propensity of each rank, in (0, 1]; of rank 1 first.
    max_weight : float, optional
        Bound of the weights, >= 1; none if None.

    Returns
    -------
    float64 array, of the shape of `position`
        The weights.

    Examples
    --------
    >>> ips_weights([1, 3, 3], [1.0, 0.5, 0.1], max_weight=5).tolist()
    [1.0, 5.0, 5.0]
    """
    p = as_propensity(propensity)
    ranks = as_array(position, "position")
    if ranks.size and (ranks.dtype.kind not in "iu" or ranks.min() < 1):
        raise ValueError("position must hold integers >= 1")
    if ranks.size and ranks.max() > len(p):
        raise ValueError(
            f"position {ranks.max()} occurs, but propensity has {len(p)} elements; give one for "
            "each position"
        )
    weight: Array = 1.0 / p[ranks.astype(np.int64) - 1]
    if max_weight is None:
        return weight
    if not max_weight >= 1.0:
        raise ValueError(f"max_weight must be >= 1, the weight of a sure look, got {max_weight}")
    return np.minimum(weight, max_weight)


def ips_relevance(
    impressions: Impressions, propensity: Any, *, n_rows: int, max_weight: float | None = None
) -> tuple[Array, Array]:
    """The inverse-propensity estimate of each row's chance of a click when looked at.

    ``r_i = Σ count·clicked / p(position) / Σ count`` over the showings of row i: without bias where
    the chance of a click is propensity times r_i.

    Parameters
    ----------
    impressions : Impressions
        With rows.
    propensity : array (n_positions,)
        Propensity of each rank, in (0, 1].
    n_rows : int
        Rows of the feature matrix.
    max_weight : float, optional
        Bound of ``1 / p``, >= 1.

    Returns
    -------
    relevance : float64 array (n_rows,)
        r; 0 for a row that was never shown. Usable as labels.
    n_shown : float64 array (n_rows,)
        Showings of each row.

    Examples
    --------
    >>> from linrank.clicks import Impressions
    >>> log = Impressions.of(position=[1, 2, 2], clicked=[1, 1, 0], row=[0, 1, 1])
    >>> relevance, n_shown = ips_relevance(log, [1.0, 0.5], n_rows=3)
    >>> relevance.tolist(), n_shown.tolist()
    ([1.0, 1.0, 0.0], [1.0, 2.0, 0.0])
    """
    row = impressions.rows_needed("ips_relevance")
    if row.max() >= n_rows:
        raise ValueError(f"row {row.max()} was shown, but n_rows is {n_rows}")
    weight = ips_weights(impressions.position, propensity, max_weight=max_weight)
    clicks = np.bincount(row, impressions.count * impressions.clicked * weight, minlength=n_rows)
    n_shown = np.bincount(row, impressions.count, minlength=n_rows)
    return np.divide(clicks, n_shown, out=np.zeros(n_rows), where=n_shown > 0), n_shown


def as_propensity(propensity: Any) -> Array:
    """Propensities as a float64 vector in (0, 1]."""
    a = as_array(propensity, "propensity")
    if a.ndim != 1 or a.size == 0:
        raise ValueError(f"propensity must hold a number for each position, got shape {a.shape}")
    p = as_float(a, "propensity").astype(np.float64)
    is_bad = ~((p > 0) & (p <= 1))
    if is_bad.any():
        k = int(np.argmax(is_bad))
        raise ValueError(f"propensity of position {k + 1} is {p[k]:g}; it must lie in (0, 1]")
    return p
