"""Missing: what a model does with a value that is not there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from linrank.choices import MISSING
from linrank.data.rows import Array, CsrRows, DenseRows, Rows, first_place, row_blocks
from linrank.errors import check_one_of
from linrank.system.resources import check_fits

if TYPE_CHECKING:
    from linrank.data.dataset import Dataset
    from linrank.data.queries import Queries

_NO_COLUMNS = np.empty(0, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Filling:
    """How missing values of some training rows were filled in.

    Attributes
    ----------
    kind : {"zero", "mean", "indicator"}
        The policy.
    n_features : int
        Features of a raw row.
    values : float64 array (n_features,) or None
        What stands in for a missing value; None for zeros.
    columns : int64 array
        Features that have an indicator column, ascending; the indicators follow the features.
    absent : bool array (n_features,) or None
        Of ``"mean"``, the features that were missing in a training row.
    """

    kind: str
    n_features: int
    values: Array | None = None
    columns: Array = field(default_factory=lambda: _NO_COLUMNS)
    absent: Array | None = None

    @classmethod
    def fit(cls, kind: str, rows: Rows, weight: Array | None = None) -> Filling:
        """The filling of this kind for these rows, by `fit_parts`.

        Parameters
        ----------
        kind : {"zero", "mean", "indicator"}
            The policy.
        rows : DenseRows or CsrRows
            Raw training rows, NaN where a value is missing; what CSR leaves out is a 0 that is
            there.
        weight : float64 array (n_rows,) or None
            A row of weight 2 counts as two rows, one of weight 0 as none.

        Examples
        --------
        >>> rows = DenseRows(np.array([[1.0, np.nan], [4.0, 2.0], [np.nan, 4.0]]))
        >>> Filling.fit("mean", rows).values
        array([2.5, 3. ])
        >>> Filling.fit("indicator", rows).fill(rows).values
        array([[1., 0., 0., 1.],
               [4., 2., 0., 0.],
               [0., 4., 1., 0.]])
        """
        return cls.fit_parts(kind, [(rows, weight)])

    @classmethod
    def fit_parts(cls, kind: str, parts: Iterable[tuple[Rows, Array | None]]) -> Filling:
        """The filling for rows and weights that come part by part, at least one: a single pass.

        A mean is ``Σ u x / Σ u`` over the values that are there, 0 for a feature without any.
        """
        if kind not in ("zero", "mean", "indicator"):
            raise ValueError(f"missing values are filled by zero, mean or indicator, got {kind!r}")
        total, share, absent = np.empty(0), np.empty(0), np.empty(0, dtype=bool)
        for rows, weight in parts:
            if len(total) == 0:
                total, share = np.zeros((2, rows.shape[1]))
                absent = np.zeros(rows.shape[1], dtype=bool)
            for part, block in row_blocks(rows) if kind != "zero" else ():
                u = np.ones(block.shape[0]) if weight is None else weight[part]
                absent |= _has_missing(block, u > 0.0)
                if kind == "mean":
                    sums = _sums(block, u)
                    total, share = total + sums[0], share + sums[1]
        n_features = len(total)
        if kind == "mean":
            means = np.divide(total, share, out=np.zeros(n_features), where=share > 0.0)
            return cls(kind, n_features, means, absent=absent)
        columns = np.flatnonzero(absent) if kind == "indicator" else _NO_COLUMNS
        return cls(kind, n_features, None, columns)

    @property
    def n_columns(self) -> int:
        """Columns of a filled row: the features and the indicators."""
        return self.n_features + len(self.columns)

    def fill(self, rows: Rows) -> Rows:
        """Rows with nothing missing: `rows` itself where nothing is and no indicator is needed."""
        if rows.shape[1] != self.n_features:
            raise ValueError(
                f"the rows have {rows.shape[1]} features, those that the missing values were "
                f"learned from {self.n_features}"
            )
        if not len(self.columns) and first_place(rows, np.isnan) is None:
            return rows
        if isinstance(rows, DenseRows):
            return self._fill_dense(rows)
        return self._fill_sparse(rows)

    def dataset(self, data: Dataset) -> Dataset:
        """The data with filled rows, the names of indicators added, and this filling noted.

        Data that were filled in alike are returned as they are, others that were are refused.
        """
        if data.filling is not None:
            if not self._is_like(data.filling):
                raise ValueError(
                    f"the missing values of {data.source} were filled in from that data, by "
                    f"missing={data.filling.kind!r}, not as those of the training data; load it "
                    "with missing='keep' (of a store: load what it was made of)"
                )
            return data
        names = data.feature_names
        if names is not None:
            names = self.names(names)
        return keep_queries(data, rows=self.fill(data.rows), feature_names=names, filling=self)

    def _is_like(self, other: Filling) -> bool:
        if self.kind != other.kind or not np.array_equal(self.columns, other.columns):
            return False
        one, two = (np.zeros(f.n_features) if f.values is None else f.values for f in (self, other))
        return np.array_equal(one, two)

    def names(self, names: Sequence[str]) -> tuple[str, ...]:
        """The names of the columns of filled rows; of an indicator, ``missing(NAME)``."""
        return (*names, *(f"missing({names[j]})" for j in self.columns.tolist()))

    def _fill_dense(self, rows: DenseRows) -> DenseRows:
        n_rows = rows.shape[0]
        n_bytes = n_rows * self.n_columns * rows.dtype.itemsize
        remedy = "fill them in before, or use missing='zero' on float32"
        check_fits(n_bytes, "the rows with their missing values filled in", remedy)
        values = np.empty((n_rows, self.n_columns), rows.dtype)
        stand_in = 0.0 if self.values is None else self.values.astype(rows.dtype)
        for part, block in row_blocks(rows):
            absent = np.isnan(block.values)
            values[part, : self.n_features] = np.where(absent, stand_in, block.values)
            values[part, self.n_features :] = absent[:, self.columns]
        return DenseRows(values)

    def _fill_sparse(self, rows: CsrRows) -> CsrRows:
        absent = np.isnan(rows.values)
        stand_in = 0.0 if self.values is None else rows.by_entry(self.values)
        values = np.where(absent, stand_in, rows.values).astype(rows.dtype)
        if not len(self.columns):
            return replace(rows, values=values)
        # Indicator k of feature j stands in column n_features + k, so behind all features.
        place = np.full(self.n_features, -1, dtype=np.int64)
        place[self.columns] = self.n_features + np.arange(len(self.columns))
        marked = np.flatnonzero(absent & (place[rows.columns] >= 0))
        row_of = np.searchsorted(rows.offsets, marked, side="right") - 1
        ends = rows.offsets[row_of + 1]
        columns = np.insert(rows.columns, ends, place[rows.columns[marked]])
        values = np.insert(values, ends, values.dtype.type(1.0))
        added = np.searchsorted(row_of, np.arange(len(rows.offsets)), side="left")
        return CsrRows(values, columns, rows.offsets + added, self.n_columns)


def keep_queries(data: Dataset, queries: Queries | None = None, **changes: Any) -> Dataset:
    """The data with changes that have no part in its queries.

    `replace` drops what was computed of them; here they stay, or are those given.
    """
    changed = replace(data, **changes)
    known = data.__dict__.get("queries") if queries is None else queries
    if known is not None:
        changed.__dict__["queries"] = known
    return changed


def _has_missing(rows: Rows, counted: Array) -> Array:
    """Whether each feature is missing in a row that counts."""
    absent = np.isnan(rows.values)
    if isinstance(rows, DenseRows):
        return np.asarray(absent[counted].any(axis=0))
    absent &= np.repeat(counted, np.diff(rows.offsets))
    found: Array = np.zeros(rows.shape[1], dtype=bool)
    found[rows.columns[absent]] = True
    return found


def _sums(rows: Rows, u: Array) -> tuple[Array, Array]:
    """``Σ u x`` and ``Σ u`` of each feature over the values that are there."""
    absent = np.isnan(rows.values)
    present = np.where(absent, 0.0, rows.values).astype(np.float64)
    if isinstance(rows, DenseRows):
        return u @ present, u @ ~absent
    by_entry, n_columns = np.repeat(u, np.diff(rows.offsets)), rows.shape[1]
    total = np.bincount(rows.columns, by_entry * present, n_columns)
    return total, u.sum() - np.bincount(rows.columns, by_entry * absent, n_columns)


@dataclass(frozen=True, eq=False)
class Missing:
    """The policy of a linear model for missing values.

    A value that is there adds ``coef_j x_j`` to the score, a missing one (NaN, or a null of a
    table) adds ``coef_j v_j + c_j``.

    Attributes
    ----------
    kind : {"error", "zero", "mean", "indicator"}
        ``error`` refuses missing values. ``zero``: v = 0 and c = 0. ``mean``: v is the mean of the
        feature in the training rows, c = 0. ``indicator``: v = 0, and c is learned, for the
        features that had missing values in the training rows.
    values : float64 array (n_features,) or None
        ``v``; None for zeros.
    weights : float64 array (n_features,) or None
        ``c``; None for zeros.
    absent : bool array (n_features,) or None
        Of ``mean``, the features that were missing in a training row: those of which a search
        engine has to know ``v``. None where that is not known.
    """

    kind: str = "error"
    values: Array | None = None
    weights: Array | None = None
    absent: Array | None = None

    def __post_init__(self) -> None:
        check_one_of("missing", self.kind, MISSING)
        if self.absent is not None and self.kind != "mean":
            raise ValueError(f"missing={self.kind!r} takes no absent")
        needed = {"values": self.kind == "mean", "weights": self.kind == "indicator"}
        for name, is_needed in needed.items():
            array = getattr(self, name)
            if (array is not None) != is_needed:
                verb = "needs" if is_needed else "takes no"
                raise ValueError(f"missing={self.kind!r} {verb} {name}")
            if array is not None and not np.isfinite(array).all():
                raise ValueError(f"the {name} of missing={self.kind!r} must be finite")

    @classmethod
    def of_contents(cls, contents: Mapping[str, Any]) -> Missing:
        """The policy of a file; the inverse of `contents`."""
        kind, filled, absent = (contents[key] for key in ("missing", "filled", "absent"))
        if absent is not None and not np.isin(absent, (0.0, 1.0)).all():
            raise ValueError("'absent' holds a number other than 0 and 1")
        values, weights = (None, filled) if kind == "indicator" else (filled, None)
        return cls(kind, values, weights, None if absent is None else absent != 0.0)

    @property
    def contents(self) -> dict[str, Any]:
        """What a file has of it: the kind, the one array that it has, and who was missing."""
        filled = self.weights if self.values is None else self.values
        absent = None if self.absent is None else self.absent.astype(np.float64)
        return {"missing": self.kind, "filled": filled, "absent": absent}

    @property
    def is_filled(self) -> bool:
        """Whether rows may have missing values."""
        return self.kind != "error"

    def check_size(self, n_features: int) -> None:
        """Refuse arrays of another size than the coefficients."""
        for name in ("values", "weights", "absent"):
            array = getattr(self, name)
            if array is not None and array.shape != (n_features,):
                raise ValueError(f"{array.size} {name} of missing ones for {n_features} features")

    def contributions(self, coef: Array) -> Array:
        """What a missing value of each feature adds to the score, ``coef ∘ v + c``."""
        by_value = np.zeros_like(coef) if self.values is None else coef * self.values
        return by_value if self.weights is None else by_value + self.weights

    def uses(self, coef: Array) -> Array:
        """Whether each feature has a part in any score."""
        used: Array = coef != 0.0
        return used if self.weights is None else used | (self.weights != 0.0)

    def fill(self, rows: Rows) -> Rows:
        """Rows with v in place of what is missing."""
        kind = "mean" if self.values is not None else "zero"
        return Filling(kind, rows.shape[1], self.values).fill(rows)

    @classmethod
    def split(cls, weights: Array, filling: Filling | None) -> tuple[Array, Missing]:
        """The coefficients of raw features and the policy, from those of filled columns."""
        if filling is None:
            return weights, cls()
        coef, added = weights[: filling.n_features], None
        if filling.kind == "indicator":
            added = np.zeros(filling.n_features)
            added[filling.columns] = weights[filling.n_features :]
        return coef, cls(filling.kind, filling.values, added, filling.absent)

    def join(self, coef: Array, filling: Filling | None) -> Array:
        """The inverse of `split`, for columns that may be filled in another way than before."""
        if filling is None or not len(filling.columns):
            return coef
        known = np.zeros(coef.size) if self.weights is None else self.weights
        return np.concatenate([coef, known[filling.columns]])


def scores_with_missing(rows: Rows, coef: Array, added: Array) -> Array:
    """Scores of rows that lack values; ``added`` is what a missing one of each feature adds.

    The score of a row has the same bits whatever rows come with it.
    """
    absent = np.isnan(rows.values)
    present = np.where(absent, rows.dtype.type(0.0), rows.values)
    parts = (present, coef), (absent.astype(rows.dtype), added)
    return np.add(*(replace(rows, values=values).scores(w, None, 1) for values, w in parts))


def contributions(rows: Rows, coef: Array, missing: Missing) -> Rows:
    """What each feature adds to each score, entry by entry."""
    products = rows.values * rows.by_entry(coef)
    if missing.is_filled:
        added = rows.by_entry(missing.contributions(coef))
        products = np.where(np.isnan(rows.values), added, products)
    return replace(rows, values=products)
