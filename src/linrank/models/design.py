"""Design: the columns that an additive model is trained on, and the model of their weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from linrank.choices import CURVES
from linrank.data import Array, keep_queries
from linrank.data.bounds import feature_column
from linrank.data.curves import MAX_KNOTS, CurveRows, Curves, dense_sample, fit_curves, level_curves
from linrank.data.dataset import Dataset
from linrank.data.missing import Missing
from linrank.data.rows import ColumnStatistics, CsrRows, DenseRows, without_offsets
from linrank.errors import check_natural, check_one_of
from linrank.models.additive import AdditiveModel, Interactions
from linrank.models.linear import LinearModel
from linrank.system import check_fits, resolve, seed_of

_LEVELS = 2  # of each feature's distribution
_WIDTH = 1.7  # γ times the number of features that vary
_VOLUME = 8.0  # variance of all columns of interactions, per feature; a curve has 1 or 2
_BLOCK_ROWS = 4096  # whose kernel with the landmarks is held at a time
_SCALED_ROWS = 2000  # that tell the variance of the columns
_STORED_BYTES = 1 << 30  # of columns that are stored: products with two per feature are faster
_MOST_COLUMNS = 4000  # beyond, only stored ones have a preconditioner
_RIDGE = 1e-6  # below it float32 knows nothing of a kernel whose largest value is 1


@dataclass(frozen=True)
class Shape:
    """What is asked of an additive model; see the parameters of :class:`linrank.RankSVM`."""

    curves: str | None
    n_knots: int | None
    interactions: int
    increasing: tuple[Any, ...]
    decreasing: tuple[Any, ...]
    seed: int
    by_products: bool = False  # whether training asks no more of rows than products

    @classmethod
    def of(cls, parameters: Any) -> Shape:
        """What the parameters ask for, checked."""
        p = parameters
        check_one_of("curves", p.curves, CURVES)
        if p.n_knots is not None and p.curves is None:
            raise ValueError(f"n_knots={p.n_knots!r} is of curves, and curves is None")
        check_natural("n_knots", p.n_knots, optional=True)
        if p.n_knots is not None and not 2 <= p.n_knots <= MAX_KNOTS:
            raise ValueError(f"n_knots must be from 2 to {MAX_KNOTS}, got {p.n_knots}")
        if p.interactions:
            check_natural("interactions", p.interactions)
        rising, falling = (_as_tuple(p, name) for name in ("increasing", "decreasing"))
        if (rising or falling) and (p.curves is None or p.interactions):
            reason = "has no curves" if p.curves is None else "has interactions, which keep no sign"
            raise ValueError(f"increasing and decreasing are of curves, and the model {reason}")
        if getattr(p, "scale", None) == "query":
            reason = "the curves are those of raw values"
            raise ValueError(f"scale='query' does not go with curves or interactions: {reason}")
        for name, told in (("positive", "all"), ("coef_bounds", "some")):
            remedy = f"keep {told} of the curves rising by increasing="
            if getattr(p, name, None) not in (None, False):
                raise ValueError(f"{name} is of weights, and curves have many each; {remedy}")
        if getattr(p, "feature_induction", None) is not None:
            raise ValueError("feature_induction adds weights, not curves; penalty='l1' chooses")
        seed = seed_of(p.random_state) if p.interactions else 0
        by_products = getattr(p, "solver", None) == "newton" and not hasattr(p, "penalty")
        return cls(p.curves, p.n_knots, int(p.interactions), rising, falling, seed, by_products)

    @property
    def settings(self) -> dict[str, Any]:
        """What the model is to know of it."""
        own = {"curves": self.curves, "n_knots": self.n_knots}
        monotone = bool(self.increasing or self.decreasing)
        return own | {"interactions": self.interactions, "monotone": monotone}

    def fit_columns(self, data: Dataset, n_jobs: int | None = None) -> tuple[Design, Dataset]:
        """The columns for these training rows, and the data with them in place of its rows."""
        data = with_dense_rows(data)
        design = self.fit(data, n_jobs)
        return design, design.dataset(data, n_jobs)

    def fit(
        self, data: Dataset, n_jobs: int | None = None, statistics: ColumnStatistics | None = None
    ) -> Design:
        """The columns for dense training rows, or for those that ``data`` are a sample of.

        Of these the ``statistics`` are known.
        """
        rows = data.rows
        assert isinstance(rows, DenseRows)
        n_features = data.n_raw_features
        curves = fit_curves(
            self.curves,
            rows,
            n_features,
            n_knots=self.n_knots,
            weight=data.weight,
            statistics=statistics,
            n_jobs=n_jobs,
        )
        if len(curves) == 0:
            raise ValueError("all features are constant: there is nothing to rank by")
        nystroem = Nystroem.fit(self, rows, n_features, data.weight) if self.interactions else None
        return Design(self, curves, n_features, nystroem, self._bounds(curves, data))

    def _bounds(self, curves: Curves, data: Dataset) -> tuple[Array, Array] | None:
        """Signs of weights: every column of a feature rises with it."""
        if not self.increasing and not self.decreasing:
            return None
        rising, falling = (
            {feature_column(feature, data, name) for feature in getattr(self, name)}
            for name in ("increasing", "decreasing")
        )
        if rising & falling:
            raise ValueError(f"column {min(rising & falling)} cannot be increasing and decreasing")
        lower = np.where(np.isin(curves.feature, sorted(rising)), 0.0, -np.inf)
        upper = np.where(np.isin(curves.feature, sorted(falling)), 0.0, np.inf)
        return lower, upper


def _as_tuple(parameters: Any, name: str) -> tuple[Any, ...]:
    given = getattr(parameters, name, None)
    if given is None:
        return ()
    if isinstance(given, str) or not isinstance(given, (Sequence, np.ndarray, set, frozenset)):
        raise TypeError(f"{name} must be a list of feature names or column numbers, got {given!r}")
    return tuple(given)


def with_dense_rows(data: Dataset) -> Dataset:
    """The data with dense rows, a copy of sparse ones: a curve takes every value, 0 or not."""
    rows = data.rows
    if isinstance(rows, DenseRows):
        return data
    if not isinstance(rows, CsrRows):
        raise ValueError(
            f"curves and interactions are made of rows, and these are {rows.describe()}; give qid "
            "and on_split='repair', or use a linear model"
        )
    n_bytes = rows.shape[0] * rows.shape[1] * rows.dtype.itemsize
    check_fits(n_bytes, "sparse rows as curves need them, dense,", "use a linear model")
    return keep_queries(data, rows=DenseRows(rows.to_user().toarray()))


@dataclass(frozen=True, eq=False)
class Nystroem:
    """``z(x) = T⁻¹ k(L, q(x))``: ``z(a)·z(b)`` is about ``c exp(-γ‖q(a) - q(b)‖²)``, c a constant.

    With levels of quantiles for q, ``‖q(a) - q(b)‖²`` grows like the square of a small difference
    of a feature, and like a large one itself: no feature decides alone what is near.

    Attributes
    ----------
    quantiles : Curves
        q: the levels of every feature that varies.
    landmarks : float64 array (m, n_quantiles)
        L: those of training rows.
    whitening : float64 array (m, m)
        ``T⁻ᵀ``.
    gamma : float
        γ.
    """

    quantiles: Curves
    landmarks: Array
    whitening: Array
    gamma: float

    @classmethod
    def fit(cls, shape: Shape, rows: DenseRows, n_features: int, weight: Array | None) -> Nystroem:
        """Landmarks drawn from the rows that have any weight."""
        sample = dense_sample(rows, weight)
        ordered = np.sort(np.ascontiguousarray(sample.values[:, :n_features].T), axis=1)
        quantiles = Curves.of(level_curves(ordered, _LEVELS))
        n_varying = _n_varying(quantiles)
        index = np.arange(rows.shape[0]) if weight is None else np.flatnonzero(weight > 0.0)
        rng = np.random.default_rng(shape.seed)
        drawn = rng.choice(index, min(shape.interactions, len(index)), replace=False)
        taken = DenseRows(rows.values[np.sort(drawn)].astype(np.float64))
        landmarks, gamma = quantiles.columns(taken).values, _WIDTH / n_varying
        # Rows that are alike make K_LL singular, but for what is added to k(x, x) = 1. A triangle
        # turns the columns of the symmetric root, which no ridge can see, and costs a tenth of it.
        kernel = _rbf(landmarks, landmarks, gamma)
        kernel[np.diag_indices_from(kernel)] += _RIDGE
        whitening = np.linalg.inv(np.linalg.cholesky(kernel)).T
        # One factor for all columns: they stay a rotation of the kernel's own, and weigh the same
        # beside curves whatever the number of landmarks.
        values = sample.values[:: max(1, len(sample.values) // _SCALED_ROWS)]
        z = _rbf(quantiles.columns(DenseRows(values)).values, landmarks, gamma) @ whitening
        whitening *= np.sqrt(_VOLUME * n_varying / max(z.var(axis=0).sum(), _RIDGE))
        return cls(quantiles, landmarks, whitening, gamma)

    def columns(self, rows: DenseRows, n_jobs: int | None) -> Array:
        """z of rows, in float32."""
        landmarks, whitening = (a.astype(np.float32) for a in (self.landmarks, self.whitening))
        found = np.empty((rows.shape[0], len(landmarks)), dtype=np.float32)
        for begin in range(0, len(found), _BLOCK_ROWS):
            part = slice(begin, begin + _BLOCK_ROWS)
            quantiles = self.quantiles.columns(DenseRows(rows.values[part]), n_jobs).values
            kernel = _rbf(quantiles.astype(np.float32, copy=False), landmarks, self.gamma)
            np.matmul(kernel, whitening, out=found[part])
        return found

    def term(self, w: Array) -> Interactions:
        """``w·z(x)`` as a sum over the landmarks."""
        return Interactions(self.quantiles, self.landmarks, self.whitening @ w, self.gamma)


def _n_varying(levels: Curves) -> int:
    return max(1, len(levels) // _LEVELS)


def _rbf(a: Array, b: Array, gamma: float) -> Array:
    """``exp(-γ‖a - b‖²)`` by one product of matrices, in their type."""
    distances = a @ b.T
    distances *= -2.0
    distances += np.einsum("ij,ij->i", a, a)[:, None]
    distances += np.einsum("ij,ij->i", b, b)
    np.maximum(distances, 0.0, out=distances)
    distances *= -gamma
    kernel: Array = np.exp(distances, out=distances)
    return kernel


@dataclass(frozen=True, eq=False)
class Design:
    """Columns of rows: curves of single features, and interactions behind them.

    Attributes
    ----------
    shape : Shape
        What was asked for.
    curves : Curves
        All of them rising.
    n_features : int
        Of a raw row; columns behind these are indicators of missing values.
    nystroem : Nystroem or None
        Interactions.
    bounds : (array, array) or None
        Of the weights of the columns, where curves are to rise or to fall.
    """

    shape: Shape
    curves: Curves
    n_features: int
    nystroem: Nystroem | None
    bounds: tuple[Array, Array] | None

    @property
    def n_columns(self) -> int:
        """How many columns there are at most; interactions are no more than rows."""
        return len(self.curves) + self.shape.interactions

    @property
    def spread(self) -> float:
        """The variance of all columns together: 1 for each of the curves, more for interactions."""
        extra = 0.0 if self.nystroem is None else _VOLUME * _n_varying(self.nystroem.quantiles)
        return len(self.curves) + extra

    def dataset(self, data: Dataset, n_jobs: int | None = None) -> Dataset:
        """The data with these columns in place of its rows: stored, or a byte for each value."""
        data = with_dense_rows(data)
        rows: Any = data.rows
        columns: Any = self._coded_columns(rows, n_jobs) or self._stored_columns(rows, n_jobs)
        return keep_queries(data, rows=columns, feature_names=None, filling=None)

    def _coded_columns(self, rows: DenseRows, n_jobs: int | None) -> CurveRows | None:
        """Columns of so many rows that they are better not stored; None where they had better."""
        n_columns = len(self.curves)
        is_small = rows.shape[0] * n_columns * rows.dtype.itemsize <= _STORED_BYTES
        if is_small or not self.shape.by_products or n_columns > _MOST_COLUMNS:
            return None
        if self.nystroem is not None or len(self.curves.knots) == 0:
            return None
        if without_offsets(rows) is not rows:
            return None  # what most values of a column share would drown the rest in products
        return CurveRows(rows, self.curves, resolve(n_jobs))

    def _stored_columns(self, rows: DenseRows, n_jobs: int | None) -> DenseRows:
        n_bytes = rows.shape[0] * self.n_columns * rows.dtype.itemsize
        remedy = "use float32, fewer knots or fewer interactions"
        check_fits(n_bytes, "the columns of curves", remedy)
        columns = self.curves.columns(rows, n_jobs)
        if self.nystroem is None:
            return columns
        both = columns.values, self.nystroem.columns(rows, n_jobs)
        return DenseRows(np.concatenate(both, axis=1, dtype=rows.dtype))

    def model(self, linear: LinearModel, data: Dataset) -> AdditiveModel:
        """The model whose columns have the weights of a linear one; ``data`` are the raw rows."""
        n_curves, filling = len(self.curves), data.filling
        n_columns = self.n_features if filling is None else filling.n_columns
        whole = list(self.curves.combine(linear.coef[:n_curves], n_columns))
        indicators = np.array([slopes[0] for _, _, _, slopes in whole[self.n_features :]])
        _, missing = Missing.split(np.concatenate([np.zeros(self.n_features), indicators]), filling)
        interactions = None
        if self.nystroem is not None:
            interactions = self.nystroem.term(linear.coef[n_curves:])
        model = AdditiveModel(
            Curves.of(whole[: self.n_features]),
            data.raw_feature_names,
            {**linear.training, **self.shape.settings},
            missing=missing,
            interactions=interactions,
        )
        return model.with_training_data(data)
