"""Made-up ranking problems that behave like real ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from linrank.data.dataset import Dataset
from linrank.data.queries import query_runs
from linrank.data.rows import Array, CsrRows, DenseRows, Rows
from linrank.data.words import Words

Cells = Callable[[int], tuple[Array, Array]]
_BLOCK_VALUES = 1 << 20  # values made at a time: the working memory beside the result
_BERNOULLI_DENSITY = 0.05  # above this, testing every cell is cheaper than merging draws

# Marginals of about unit size for a standard normal signal: log-normal, heavy, bounded, counts with
# zeros, Gaussian. Exponents stop short of overflow.
_SHAPES: tuple[Callable[[Array], Array], ...] = (
    lambda s: np.exp(np.minimum(np.float32(0.8) * s, 6)) / np.float32(1.5),
    lambda s: np.exp(np.minimum(np.float32(1.3) * s, 8)) / np.float32(4),
    lambda s: np.float32(4) / (1 + np.exp(np.minimum(np.float32(-1.5) * s, 80))),
    lambda s: np.floor(np.exp(np.minimum(s, 8))),
    lambda s: s,
)


class _Families:
    """What all blocks of a dense problem share.

    Column j of family f carries the signal ``s_j = √(1 - a_j²)·b_f + a_j·ε_j``, where the family
    signals b are a low-rank mixture plus noise; all have unit variance.
    """

    def __init__(self, rng: np.random.Generator, n_features: int, correlation: float) -> None:
        n_families = max(1, n_features // 4)
        self.family = family = np.arange(n_features) * n_families // n_features  # of each column
        mixing = rng.standard_normal((max(1, n_families // 3), n_families))
        mixing *= np.sqrt(correlation) / np.linalg.norm(mixing, axis=0)
        self.mixing = mixing.astype(np.float32)
        self.own_family = float(np.sqrt(1 - correlation))  # share of b_f that is not mixture
        # Real columns range from near copies to nearly unrelated; the near copies set the condition
        # number. So the members of a family spread evenly over the exponents: at correlation 0.9,
        # a runs from 0.8 down to 0.0025. The first member is the closest to the signal.
        size = np.bincount(family, minlength=n_families)
        member = np.arange(n_features) - (np.cumsum(size) - size)[family]
        spread = (member - rng.random(n_features)) / np.maximum(1, size - 1)[family]
        own = (1 - correlation) ** np.where(member == 0, 2.6, 0.1 + 2.5 * spread)
        self.own = own.astype(np.float32)  # a_j
        # An index into _SHAPES by column, one for each family.
        self.shape = rng.permutation(np.arange(n_families) % len(_SHAPES))[family]
        self.scale = np.exp(rng.uniform(-1, 1, n_features)).astype(np.float32)

    def signals(self, rng: np.random.Generator, n_rows: int) -> Array:
        """Signals of ``n_rows`` rows, alike in all queries: utilities are made of them."""
        n_factors, n_families = self.mixing.shape
        base = rng.standard_normal((n_rows, n_factors), dtype=np.float32) @ self.mixing
        base += np.float32(self.own_family) * rng.standard_normal(
            (n_rows, n_families), dtype=np.float32
        )
        signals = rng.standard_normal((n_rows, len(self.family)), dtype=np.float32)
        signals *= self.own
        signals += np.sqrt(1 - self.own**2) * base[:, self.family]
        return signals

    def features(self, rng: np.random.Generator, signals: Array, sizes: Array) -> Array:
        """Signals shifted and stretched by query and family, then given their marginals."""
        query = np.repeat(np.arange(len(sizes)), sizes)
        drawn = rng.standard_normal((2, len(sizes), self.mixing.shape[1]), dtype=np.float32)
        shift, stretch = drawn[0] / 2, np.exp(np.float32(0.3) * drawn[1])
        signals *= stretch[:, self.family][query]
        signals += shift[:, self.family][query]
        for k, shape in enumerate(_SHAPES):
            columns = self.shape == k
            signals[:, columns] = shape(signals[:, columns])
        signals *= self.scale
        return signals


def dense_rows(
    rng: np.random.Generator, sizes: Array, beta: Array, correlation: float, dtype: np.dtype[Any]
) -> tuple[DenseRows, Array]:
    """Rows of queries of the given sizes, and their utilities ``Σ_j β_j s_ij``."""
    families = _Families(rng, len(beta), correlation)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    values = np.empty((int(offsets[-1]), len(beta)), dtype=dtype)
    utility = np.empty(len(values))
    for first, last in query_runs(offsets, max(1, _BLOCK_VALUES // len(beta))):
        rows = slice(offsets[first], offsets[last])
        signals = families.signals(rng, int(offsets[last] - offsets[first]))
        utility[rows] = signals @ beta.astype(np.float32)
        values[rows] = families.features(rng, signals, sizes[first:last])
    return DenseRows(values), utility


def zipf_rows(
    rng: np.random.Generator, n_rows: int, beta: Array, density: float, dtype: np.dtype[Any]
) -> tuple[CsrRows, Array]:
    """CSR rows with about ``density`` non-zeros, and their utilities ``Σ_j β_j x_ij``."""
    n_features = len(beta)
    is_dense = density >= _BERNOULLI_DENSITY
    cells = (_bernoulli_cells if is_dense else _drawn_cells)(rng, n_features, density)
    block = int(_BLOCK_VALUES / (n_features if is_dense else max(1.0, density * n_features))) + 1
    capacity = int(1.05 * density * n_rows * n_features) + 1
    values, columns = np.empty(capacity, dtype), np.empty(capacity, np.int32)
    offsets, utility = np.zeros(n_rows + 1, np.int64), np.empty(n_rows)
    filled = 0
    for begin in range(0, n_rows, block):
        rows = slice(begin, min(begin + block, n_rows))
        row, column = cells(rows.stop - rows.start)
        drawn = np.exp(np.float32(0.5) * rng.standard_normal(len(row), dtype=np.float32))
        utility[rows] = np.bincount(row, drawn * beta[column], minlength=rows.stop - rows.start)
        counts = np.bincount(row, minlength=rows.stop - rows.start)
        offsets[rows.start + 1 : rows.stop + 1] = filled + np.cumsum(counts)
        new = slice(filled, filled + len(row))
        if new.stop > len(values):  # large arrays are remapped, not copied, by realloc
            for a in (values, columns):
                a.resize(new.stop + new.stop // 8, refcheck=False)
        values[new], columns[new] = drawn, column
        filled = new.stop
    for a in (values, columns):
        a.resize(filled, refcheck=False)
    return CsrRows(values, columns, offsets, n_features), utility


def _bernoulli_cells(rng: np.random.Generator, n_features: int, density: float) -> Cells:
    """Each cell of the column of rank r is set with probability ``min(1, c/(r+1))``."""
    rank = rng.permutation(n_features) + 1.0  # frequent columns lie anywhere
    low, high = 0.0, float(n_features)
    for _ in range(60):  # c by bisection: the mean probability is the density
        c = (low + high) / 2
        low, high = (c, high) if np.minimum(1, c / rank).mean() < density else (low, c)
    probability = np.minimum(1, high / rank).astype(np.float32)

    def cells(n_rows: int) -> tuple[Array, Array]:
        row, column = np.nonzero(rng.random((n_rows, n_features), np.float32) < probability)
        return row, column

    return cells


def _drawn_cells(rng: np.random.Generator, n_features: int, density: float) -> Cells:
    """Rows draw columns of rank r with probability ``log((r+2)/(r+1)) / log(n+1)``, once each.

    Rows draw Poisson numbers around m·(a log-normal factor), with m such that the expected
    number of different columns, ``Σ_r 1 - exp(-m p_r)``, is ``density`` times n.
    """
    column_of = rng.permutation(n_features)
    log_n = np.log(n_features + 1.0)
    p = np.log1p(1 / np.arange(1.0, n_features + 1)) / log_n
    m = target = density * n_features
    for _ in range(30):  # Newton from below on a concave function: no overshoot
        missed = np.exp(-m * p)
        step = (target - (n_features - missed.sum())) / (p * missed).sum()
        m += step
        if step < 1e-6 * m:
            break

    def cells(n_rows: int) -> tuple[Array, Array]:
        length = rng.poisson(m * np.exp(0.4 * rng.standard_normal(n_rows) - 0.08))
        row = np.repeat(np.arange(n_rows), length)
        rank = np.exp(log_n * rng.random(len(row))).astype(np.int64) - 1
        key = row * n_features + column_of[np.minimum(rank, n_features - 1)]
        key.sort()
        key = key[np.diff(key, prepend=-1) > 0]
        row = key // n_features
        return row, key - row * n_features

    return cells


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
    is_range = isinstance(rows_per_query, tuple | list)
    bounds: Any = rows_per_query if is_range else (rows_per_query, rows_per_query)
    low, high = bounds
    n_informative = (n_features + 1) // 2 if n_informative is None else n_informative
    levels, kind = 1 if n_levels is None else n_levels, np.dtype(dtype)
    for name, value, is_good, must in (
        ("n_queries", n_queries, n_queries >= 1, ">= 1"),
        ("n_features", n_features, n_features >= 1, ">= 1"),
        ("rows_per_query", rows_per_query, 1 <= low <= high, ">= 1 and ascending"),
        ("n_levels", n_levels, levels >= 1, ">= 1, or None for distinct labels"),
        ("noise", noise, 0 <= noise < np.inf, "finite and >= 0"),
        ("correlation", correlation, 0 <= correlation < 1, "in [0, 1)"),
        ("density", density, 0 < density <= 1, "in (0, 1]"),
        ("dtype", dtype, kind in (np.float32, np.float64), "float32 or float64"),
        ("n_informative", n_informative, 1 <= n_informative <= n_features, f"in 1 .. {n_features}"),
    ):
        if not is_good:
            raise ValueError(f"{name} must be {must}, got {value!r}")
    rng = np.random.default_rng(random_state)
    sizes = _sizes(rng, n_queries, low, high)
    beta = np.zeros(n_features)
    beta[rng.choice(n_features, n_informative, replace=False)] = rng.standard_normal(n_informative)
    rows: Rows
    if density < 1:
        rows, utility = zipf_rows(rng, int(sizes.sum()), beta, density, kind)
    else:
        rows, utility = dense_rows(rng, sizes, beta, correlation, kind)
    labels = _grade(rng, sizes, utility, noise, n_levels)
    qid = np.repeat(np.arange(n_queries), sizes)
    return Dataset(rows, labels, qid, source="<make_ranking>")


def _sizes(rng: np.random.Generator, n_queries: int, low: int, high: int) -> Array:
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
    # The two sums round differently: the last shares may come out above 1.
    thresholds = np.quantile(utility, np.minimum(np.cumsum(share)[:-1] / share.sum(), 1.0))
    return np.searchsorted(thresholds, utility, side="right").astype(np.float64)


# ---- a small shop with names -------------------------------------------------------------------

SAMPLE_PARTS = {"train": 160, "valid": 40, "test": 100}  # queries
_KINDS = (
    *("running", "trail", "waterproof", "leather", "kids", "winter", "wireless", "folding"),
    *("vintage", "lightweight", "insulated", "cotton", "travel", "outdoor", "compact", "organic"),
)
_GOODS = (
    *("shoes", "jacket", "backpack", "gloves", "tent", "lamp", "bottle", "headphones", "chair"),
    *("socks", "watch", "umbrella", "blanket", "sunglasses", "helmet", "bag", "scarf", "towel"),
    *("mug", "keyboard"),
)


def _up_to(value: Array, most: float) -> Array:
    """More for a larger value, ever less so, and not beyond ``most``."""
    return np.log1p(np.minimum(value, most))


def _near(value: Array, best: float, width: float) -> Array:
    """1 at the best value, less on both sides of it."""
    return np.exp(-(((value - best) / width) ** 2))


# Texts that match, sales and stars help, and less so the more there is of them already. Of prices
# and discounts the middle is best, new goods and full shelves count, and the last two do not.
# Of each feature: the digits of its values, how a standard normal signal becomes a value, and what
# that is worth; utilities are sums of these.
_SHOP: dict[str, tuple[int, Callable[[Array], Array], Callable[[Array], Array]]] = {
    "bm25_title": (2, lambda s: np.exp(0.5 * s + 1.6), lambda v: 0.55 * np.log(v)),
    "bm25_body": (2, lambda s: np.exp(0.4 * s + 2.2), lambda v: 0.6 * np.log(v)),
    "title_match": (2, lambda s: np.clip(0.5 + s / 3, 0, 1), lambda v: 0.9 * v),
    "clicks_30d": (0, lambda s: np.floor(np.exp(1.5 * s + 3)), lambda v: 0.3 * _up_to(v, 60)),
    "sales_30d": (0, lambda s: np.floor(np.exp(1.3 * s)), lambda v: 0.3 * _up_to(v, 5)),
    "rating": (1, lambda s: np.clip(4 + 0.6 * s, 1, 5), lambda v: 0.8 * (v > 3.6)),
    "reviews": (0, lambda s: np.floor(np.exp(1.4 * s + 2)), lambda v: 0.15 * _up_to(v, 30)),
    "price": (2, lambda s: np.exp(0.7 * s + 3.7), lambda v: 1.3 * _near(np.log(v), 3.7, 0.6)),
    "discount": (0, lambda s: np.clip(12 * s + 8, 0, 60), lambda v: 0.8 * _near(v, 18, 9)),
    "age_days": (0, lambda s: np.floor(np.exp(1.1 * s + 5)), lambda v: 0.9 * (v < 60)),
    "stock": (0, lambda s: np.floor(np.exp(1.5 * s + 1.5)), lambda v: 1.2 * (v > 1)),
    "delivery_days": (0, lambda s: np.floor(np.clip(1.5 * s + 3, 1, 9)), lambda v: 0 * v),
    "photos": (0, lambda s: np.floor(np.clip(2 * s + 4, 0, 12)), lambda v: 0 * v),
}


def make_sample(*, random_state: int | np.random.Generator | None = 0) -> dict[str, Dataset]:
    """Make the judged queries of a small shop: names in place of numbers.

    300 queries in words, some 4,500 products by their address, grades from 0 to 4 and 13 features,
    of which ``rating`` is missing for products that nobody has reviewed. A price in the middle
    ranks best, clicks count less the more there are, and two features say nothing: so learning
    beats every single feature, and curves beat straight lines.

    Parameters
    ----------
    random_state : int, Generator or None, default=0
        Seed; the same seed gives the same data. ``linrank sample DIR`` writes those of 0.

    Returns
    -------
    dict of str to Dataset
        ``"train"``, ``"valid"`` and ``"test"``, of 160, 40 and 100 queries.

    Examples
    --------
    >>> sample = make_sample()
    >>> sample["train"].feature_names[:4]
    ('bm25_title', 'bm25_body', 'title_match', 'clicks_30d')
    """
    rng = np.random.default_rng(random_state)
    texts = [f"{kind} {good}" for kind in _KINDS for good in _GOODS]
    names = [texts[k] for k in rng.permutation(len(texts))[: sum(SAMPLE_PARTS.values())]]
    sizes = _sizes(rng, len(names), 8, 24)
    query = np.repeat(np.arange(len(names)), sizes)
    # What is popular is clicked, bought and reviewed; what matches does so in title and body.
    shared = rng.standard_normal((2, len(query)))
    signals = rng.standard_normal((len(_SHOP), len(query)))
    for of, columns in zip(shared, ((0, 1, 2), (3, 4, 6)), strict=True):
        for j in columns:
            signals[j] = 0.7 * of + np.sqrt(1 - 0.7**2) * signals[j]
    values = {
        name: np.round(value(s), digits)
        for (name, (digits, value, _)), s in zip(_SHOP.items(), signals, strict=True)
    }
    utility = np.sum([worth(values[name]) for name, (_, _, worth) in _SHOP.items()], axis=0)
    values["rating"] = np.where(values["reviews"] > 2, values["rating"], np.nan)
    labels = _grade(rng, sizes, utility, 0.35, 5)
    matrix = np.column_stack(list(values.values())).astype(np.float32)
    number = rng.permutation(len(query)) + 1000
    data = Dataset(
        DenseRows(matrix),
        labels,
        np.array(names)[query],
        feature_names=tuple(_SHOP),
        comments=Words.of(f"/p/{n}" for n in number.tolist()),
        source="<make_sample>",
    )
    ends = np.cumsum([0, *SAMPLE_PARTS.values()])
    parts = zip(SAMPLE_PARTS, ends[:-1], ends[1:], strict=True)
    return {
        name: replace(data.select((query >= low) & (query < high)), source=f"sample {name} queries")
        for name, low, high in parts
    }
