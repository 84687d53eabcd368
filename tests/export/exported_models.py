"""Models of every kind that is exported, and random rows for them: zeros, missing, extremes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from linrank import LinearModel
from linrank.data.missing import Missing
from linrank.data.rows import ColumnStatistics, DenseRows
from linrank.data.scaling import Scaling

N_ROWS = 100_000
N_WIDE = 20_000  # rows of more features than a hundred


def statistics(low, high):
    """Statistics of columns that are spread evenly between two ends."""
    low, high = np.array(low, dtype=float), np.array(high, dtype=float)
    counts = np.full(len(low), 10, dtype=np.int64)
    return ColumnStatistics(10.0, 10, (low + high) / 2, (high - low) ** 2 / 12, low, high, counts)


@dataclass(frozen=True)
class Kind:
    """How a model is made: its scaling, its missing values, its size and its magnitudes."""

    scale: str = "none"
    missing: str = "error"
    n_features: int = 12
    magnitude: float = 1.0
    spread: float = 0.0  # decimal orders by which weights differ
    named: bool = True
    known: bool = True  # whether the model has statistics

    def __str__(self) -> str:
        plain = Kind()
        told = [
            f"{key}={value}" for key, value in vars(self).items() if getattr(plain, key) != value
        ]
        return ",".join(told) or "plain"


KINDS = [
    *(Kind(scale, missing) for scale in ("none", "standard") for missing in ("error", "zero")),
    Kind("minmax", "error"),
    Kind("minmax", "mean"),
    Kind("standard", "mean"),
    Kind("standard", "indicator"),
    Kind("none", "indicator"),
    Kind(named=False),
    Kind(n_features=1),
    Kind("standard", "mean", n_features=200),
    Kind(magnitude=1e-40),
    Kind("standard", "mean", magnitude=1e-300),
    Kind("standard", "indicator", magnitude=1e38),
    Kind("none", "zero", magnitude=1e27),  # held in training, not by values far out
    Kind(magnitude=1e38, known=False),
    Kind("none", "mean", magnitude=1e290),
    Kind("standard", "indicator", spread=4.0),
]


@cache
def training_rows(n_features: int, seed: int) -> np.ndarray:
    """Columns of very different sizes, some far from 0, the third (of many) constant."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(400, n_features)) * 10.0 ** rng.uniform(-2, 3, n_features)
    rows[:, ::4] = np.abs(rows[:, ::4])
    rows[:, 1::4] += rng.uniform(-5, 5, n_features)[1::4] * rows[:, 1::4].std(axis=0)
    if n_features > 2:
        rows[:, 2] = 7.0
    return rows.astype(np.float32)


@cache
def model_of(kind: Kind, seed: int = 0) -> LinearModel:
    rows = training_rows(kind.n_features, seed)
    rng = np.random.default_rng([seed, 1])
    statistics = ColumnStatistics.of(DenseRows(rows))
    scaling = Scaling.fit(kind.scale, DenseRows(rows))
    weights = rng.normal(size=kind.n_features) * 10.0 ** rng.uniform(-1, 1, kind.n_features)
    weights *= 10.0 ** (kind.spread * rng.uniform(-0.5, 0.5, kind.n_features))
    deviations = np.sqrt(statistics.variance)
    if kind.scale == "none":
        weights = np.divide(weights, deviations, out=np.zeros_like(weights), where=deviations > 0)
    coef = scaling.fold(weights) * kind.magnitude
    if kind.n_features > 4:
        coef[4] = 0.0
    return LinearModel(
        coef,
        [f"feature_{j}" for j in range(kind.n_features)] if kind.named else None,
        scaling,
        missing=_missing(kind, coef, statistics, rng),
        statistics=statistics if kind.known else None,
    )


def _missing(
    kind: Kind, coef: np.ndarray, statistics: ColumnStatistics, rng: np.random.Generator
) -> Missing:
    if kind.missing == "mean":
        return Missing("mean", statistics.mean.copy())
    if kind.missing == "indicator":
        # What a missing value is worth, of the size of what the values are worth. A weight of its
        # own for a feature that has none is another kind: engines with defaults cannot express it.
        worth = rng.normal(size=coef.size) * np.abs(coef) * np.sqrt(statistics.variance)
        return Missing("indicator", None, worth)
    return Missing(kind.missing)


@cache
def random_rows(n_features: int, with_missing: bool, seed: int = 0) -> np.ndarray:
    """Rows like those of training, but for zeros, values far out, near ties and missing ones.

    Stored by columns, and all of them single precision, so that every engine reads them exactly.
    """
    rng = np.random.default_rng([seed, 2])
    n_rows = N_ROWS if n_features <= 100 else N_WIDE
    train = training_rows(n_features, seed)
    rows = np.asfortranarray(train[rng.integers(0, len(train), n_rows)])
    rows *= rng.uniform(0.5, 1.5, (n_rows, 1)).astype(np.float32)
    chance = rng.random(rows.shape, dtype=np.float32)
    rows[chance < 0.2] = 0.0
    rows[(chance > 0.2) & (chance < 0.203)] *= np.float32(1e12)
    rows[(chance > 0.21) & (chance < 0.213)] *= np.float32(1e-12)
    near = n_rows // 10
    rows[1:near] = rows[0] * rng.uniform(1 - 1e-5, 1 + 1e-5, (near - 1, 1))
    if with_missing:
        rows[chance > 0.9] = np.nan
        rows[:5] = np.nan
    return rows


def rows_of(kind: Kind) -> np.ndarray:
    return random_rows(kind.n_features, kind.missing != "error")
