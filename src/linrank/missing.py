"""Missing: what a model does with a value that is not there."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from linrank import _core
from linrank.data.filling import Filling
from linrank.data.rows import DenseRows
from linrank.options import MISSING

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from linrank.data.rows import Rows

__all__ = ["Missing", "contributions", "dense_contributions", "scores_with_missing"]

Array = Any


@dataclass(frozen=True, eq=False)
class Missing:
    """The policy of a linear model for missing values.

    A value that is there adds ``coef_j x_j`` to the score, a missing one (NaN, or a null of a
    table) adds ``coef_j v_j + c_j``.

    Attributes
    ----------
    kind : {"error", "zero", "mean", "indicator"}
        ``error`` refuses missing values. ``zero``: v = 0 and c = 0. ``mean``: v is the mean of the
        feature in the training rows, c = 0. ``indicator``: v = 0, and c is learnt, for the
        features that had missing values in the training rows.
    values : float64 array (n_features,) or None
        ``v``; None for zeros.
    weights : float64 array (n_features,) or None
        ``c``; None for zeros.
    """

    kind: str = "error"
    values: NDArray[np.float64] | None = None
    weights: NDArray[np.float64] | None = None

    def __post_init__(self) -> None:
        if self.kind not in MISSING:
            expected = ", ".join(map(repr, MISSING))
            raise ValueError(f"missing must be one of {expected}, got {self.kind!r}")
        needed = {"values": self.kind == "mean", "weights": self.kind == "indicator"}
        for name, is_needed in needed.items():
            array = getattr(self, name)
            if (array is not None) != is_needed:
                verb = "needs" if is_needed else "takes no"
                raise ValueError(f"missing={self.kind!r} {verb} {name}")
            if array is not None and not np.isfinite(array).all():
                raise ValueError(f"the {name} of missing={self.kind!r} must be finite")

    @property
    def is_filled(self) -> bool:
        """Whether rows may have missing values."""
        return self.kind != "error"

    def check_size(self, n_features: int) -> None:
        """Refuse arrays of another size than the coefficients."""
        for name in ("values", "weights"):
            array = getattr(self, name)
            if array is not None and array.shape != (n_features,):
                raise ValueError(f"{array.size} {name} of missing ones for {n_features} features")

    def contributions(self, coef: NDArray[np.float64]) -> NDArray[np.float64]:
        """What a missing value of each feature adds to the score, ``coef ∘ v + c``."""
        by_value = np.zeros_like(coef) if self.values is None else coef * self.values
        return by_value if self.weights is None else by_value + self.weights

    def uses(self, coef: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Whether each feature has a part in any score."""
        used: NDArray[np.bool_] = coef != 0.0
        return used if self.weights is None else used | (self.weights != 0.0)

    def filled(self, rows: Rows) -> Rows:
        """Rows with v in place of what is missing."""
        kind = "mean" if self.values is not None else "zero"
        return Filling(kind, rows.shape[1], self.values).filled(rows)

    @classmethod
    def split(
        cls, weights: NDArray[np.float64], filling: Filling | None
    ) -> tuple[NDArray[np.float64], Missing]:
        """The coefficients of raw features and the policy, from those of filled columns."""
        if filling is None:
            return weights, cls()
        coef, added = weights[: filling.n_features], None
        if filling.kind == "indicator":
            added = np.zeros(filling.n_features)
            added[filling.columns] = weights[filling.n_features :]
        return coef, cls(filling.kind, filling.values, added)

    def joined(self, coef: NDArray[np.float64], filling: Filling | None) -> NDArray[np.float64]:
        """The inverse of `split`, for columns that may be filled in another way than before."""
        if filling is None or not len(filling.columns):
            return coef
        known = np.zeros(coef.size) if self.weights is None else self.weights
        return np.concatenate([coef, known[filling.columns]])


def scores_with_missing(rows: Rows, coef: Array, added: Array) -> Array:
    """Scores of rows that lack values; ``added`` is what a missing one of each feature adds.

    Those of a row are the same bits in whatever company it comes.
    """
    absent = np.isnan(rows.values)
    present = np.where(absent, rows.dtype.type(0.0), rows.values)
    parts = (present, coef), (absent.astype(rows.dtype), added)
    by_part = (
        _core.scores(replace(rows, values=values).core, weights, None, 1)
        for values, weights in parts
    )
    scores: Array = sum(by_part)
    return scores


def contributions(rows: Rows, coef: Array, missing: Missing) -> Any:
    """What each feature adds to each score: an array for dense rows, else a ``csr_array``."""
    if isinstance(rows, DenseRows):
        return dense_contributions(rows, coef, missing)
    from scipy.sparse import csr_array

    entries = rows.values * coef[rows.columns]
    if missing.is_filled:
        added = missing.contributions(coef)[rows.columns]
        entries = np.where(np.isnan(rows.values), added, entries)
    return csr_array((entries, rows.columns, rows.offsets), shape=rows.shape)


def dense_contributions(rows: Rows, coef: Array, missing: Missing) -> Array:
    """The same as an array, of sparse rows too."""
    values = rows.values if isinstance(rows, DenseRows) else rows.to_user().toarray()
    products: Array = values * coef
    if missing.is_filled:
        products = np.where(np.isnan(values), missing.contributions(coef), products)
    return products
