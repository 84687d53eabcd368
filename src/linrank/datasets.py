"""Made-up ranking problems that behave like real ones."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from linrank.data.dataset import Dataset
from linrank.data.rows import Rows
from linrank.data.synthetic import dense_rows, zipf_rows

__all__ = ["make_ranking"]

Array = NDArray[Any]
_GRADE_RATIO = 0.4  # each grade is this much rarer than the one below


def make_ranking(
    n_queries: int = 100,
    rows_per_query: int | tuple[int, int] = (5, 40),
    n_features: int = 20,
    n_levels: int | None = 5,
    *,
    noise: float = 1.0,
    n_informative: int | None = None,
    correlation: float = 0.9,
    density: float = 1.0,
    dtype: str = "float32",
    random_state: int | np.random.Generator | None = None,
) -> Dataset:
    """Make a ranking problem with the traits of search data.

    Dense features come in families, as the same statistic taken of title, body and whole page
    does: members follow one low-rank signal and differ by noise of very uneven size. Marginals
    are log-normal, heavy-tailed, bounded, counts with many zeros, or Gaussian; each query shifts
    and stretches them. Labels grade a noisy utility ``u_i = Σ_j β_j s_ij + noise·ε_i`` of the
    signals s behind the features, plus the ease of the query; high grades are rare.

    The problem is as collinear as LETOR and MSLR-WEB, which is what makes real problems slow for
    plain conjugate gradients: with ten features or more and the default ``correlation``, the
    condition number of the within-query covariance is above 10⁴, and that of the correlation
    matrix (what scaling leaves) 5·10⁴ to 5·10⁶ (MQ2008: 2·10⁶, a sample of MSLR-WEB: 4·10⁶).

    Parameters
    ----------
    n_queries : int
        Number of queries, numbered from 0 in ``qid``.
    rows_per_query : int or (low, high)
        Rows of every query, or inclusive bounds of a log-normal-like spread.
    n_features : int
        Number of columns.
    n_levels : int or None
        Grades 0 .. n_levels - 1, each ``0.4`` times as frequent as the one below; None gives
        every row of a query a label of its own (0 .. rows - 1).
    noise : float
        Standard deviation of ε against that of the rest of the utility, >= 0. Least squares on
        20 features orders 93, 87, 78 and 67 % of the pairs correctly at 0, 0.5, 1 and 2 (five
        grades, median of ten seeds; from 65 to 83 % among the seeds at 1).
    n_informative : int or None
        Number of columns with β_j ≠ 0; None means half of them.
    correlation : float
        In [0, 1): how closely the columns of a family agree. 0 makes all columns independent.
    density : float
        In (0, 1]. Below 1 the result is CSR with about this share of non-zeros: column frequencies
        follow Zipf's law, values are log-normal, and ``correlation`` is not used.
    dtype : {"float32", "float64"}
        Type of the features.
    random_state : int, Generator or None
        Seed; the same seed gives the same problem.

    Returns
    -------
    Dataset

    Examples
    --------
    >>> data = make_ranking(n_queries=3, rows_per_query=4, n_features=2, random_state=0)
    >>> data.n_rows, data.n_features, data.queries.n_queries
    (12, 2, 3)
    """
    _check(n_queries, rows_per_query, n_features, n_levels, noise, correlation, density)
    if np.dtype(dtype) not in (np.float32, np.float64):
        raise ValueError(f"dtype must be float32 or float64, got {dtype!r}")
    n_informative = (n_features + 1) // 2 if n_informative is None else n_informative
    if not 1 <= n_informative <= n_features:
        raise ValueError(f"n_informative must be in 1 .. {n_features}, got {n_informative}")
    rng = np.random.default_rng(random_state)
    sizes = _sizes(rng, n_queries, rows_per_query)
    beta = np.zeros(n_features)
    beta[rng.choice(n_features, n_informative, replace=False)] = rng.standard_normal(n_informative)
    rows: Rows
    if density < 1:
        rows, utility = zipf_rows(rng, int(sizes.sum()), beta, density, np.dtype(dtype))
    else:
        rows, utility = dense_rows(rng, sizes, beta, correlation, np.dtype(dtype))
    labels = _grade(rng, sizes, utility, noise, n_levels)
    qid = np.repeat(np.arange(n_queries), sizes)
    return Dataset(rows, labels, qid, source="<make_ranking>")


def _check(
    n_queries: int,
    rows_per_query: int | tuple[int, int],
    n_features: int,
    n_levels: int | None,
    noise: float,
    correlation: float,
    density: float,
) -> None:
    for name, value in [("n_queries", n_queries), ("n_features", n_features)]:
        if value < 1:
            raise ValueError(f"{name} must be >= 1, got {value}")
    low, high = _bounds(rows_per_query)
    if not 1 <= low <= high:
        raise ValueError(f"rows_per_query must be >= 1 and ascending, got {rows_per_query}")
    if n_levels is not None and n_levels < 1:
        raise ValueError(f"n_levels must be >= 1, or None for distinct labels, got {n_levels}")
    if not 0 <= noise < np.inf:
        raise ValueError(f"noise must be finite and >= 0, got {noise}")
    if not 0 <= correlation < 1:
        raise ValueError(f"correlation must be in [0, 1), got {correlation}")
    if not 0 < density <= 1:
        raise ValueError(f"density must be in (0, 1], got {density}")


def _bounds(rows_per_query: int | tuple[int, int]) -> tuple[int, int]:
    if isinstance(rows_per_query, tuple | list):
        low, high = rows_per_query
        return low, high
    return rows_per_query, rows_per_query


def _sizes(rng: np.random.Generator, n_queries: int, rows_per_query: Any) -> Array:
    low, high = _bounds(rows_per_query)
    # log size ~ N(middle, spread) with the bounds two deviations out, then clipped to them.
    middle, spread = np.log(low * high) / 2, np.log(high / low) / 4
    drawn = np.exp(rng.normal(middle, spread, n_queries))
    return np.clip(np.rint(drawn), low, high).astype(np.int64)


def _grade(
    rng: np.random.Generator, sizes: Array, utility: Array, noise: float, n_levels: int | None
) -> Array:
    """Labels of noisy utilities: thresholds common to all queries, so that queries differ."""
    query = np.repeat(np.arange(len(sizes)), sizes)
    utility /= np.std(utility) or 1.0
    utility += noise * rng.standard_normal(len(utility))
    if n_levels is None:
        labels = np.empty(len(utility))
        begin = np.repeat(np.cumsum(sizes) - sizes, sizes)
        labels[np.lexsort((utility, query))] = np.arange(len(utility)) - begin
        return labels
    utility += 0.5 * np.hypot(1.0, noise) * rng.standard_normal(len(sizes))[query]  # easy, hard
    share = _GRADE_RATIO ** np.arange(n_levels)
    thresholds = np.quantile(utility, np.cumsum(share)[:-1] / share.sum())
    return np.searchsorted(thresholds, utility, side="right").astype(np.float64)
