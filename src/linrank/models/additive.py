"""AdditiveModel: a sum of curves, one for each feature, and of interactions if there are any."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from linrank import __version__
from linrank.data.curves import Curves, dense_blocks
from linrank.data.dataset import Dataset
from linrank.data.frames import feature_name
from linrank.data.missing import Missing
from linrank.data.rows import ColumnStatistics, DenseRows, Rows
from linrank.data.scaling import Scaling
from linrank.errors import check_positive
from linrank.kernels.functions import Kernel
from linrank.models.file import CURVE_PARTS
from linrank.models.linear import (
    FeatureModel,
    Scalar,
    check_scores,
    has_non_finite,
    score_blocks,
    vector,
)
from linrank.system.resources import resolve

_BLOCK_ROWS = 1 << 13  # whose quantiles are held at a time
INTERACTIONS = "interactions"  # what the term is called beside those of features


@dataclass(frozen=True, eq=False)
class Interactions:
    """``Σ_m coef_m exp(-γ‖l_m - q(x)‖²)``, with q levels of the quantiles of the features of x.

    Parameters
    ----------
    quantiles : Curves
        q: for every feature that varies, ramps from 0 to 1 over parts of its distribution.
    landmarks : array of shape (n_landmarks, n_quantiles)
        The l_m, quantiles of training rows.
    coef : array of shape (n_landmarks,)
        Their coefficients.
    gamma : float
        γ > 0.
    """

    quantiles: Curves
    landmarks: NDArray[np.float64]
    coef: NDArray[np.float64]
    gamma: float

    def __post_init__(self) -> None:
        check_positive("gamma", self.gamma)
        landmarks = np.array(self.landmarks, dtype=np.float64)
        object.__setattr__(self, "coef", vector("the coefficients of interactions", self.coef))
        expected = (self.coef.size, len(self.quantiles))
        if landmarks.shape != expected or not np.isfinite(landmarks).all():
            raise ValueError(
                f"landmarks must be finite numbers of shape {expected}, got {landmarks.shape}"
            )
        landmarks.flags.writeable = False
        object.__setattr__(self, "landmarks", landmarks)

    def scores(self, rows: DenseRows, n_jobs: int | None = 1) -> NDArray[np.float64]:
        """The sum for each of some filled rows, in double precision whatever their type."""
        kernel, landmarks = Kernel("rbf", self.gamma), DenseRows(self.landmarks)

        def scores_of(block: DenseRows) -> NDArray[np.float64]:
            block = DenseRows(block.values.astype(np.float64))
            quantiles = self.quantiles.columns(block, n_jobs)
            return np.asarray(kernel.product(quantiles, landmarks, self.coef, resolve(n_jobs)))

        return score_blocks(rows, _BLOCK_ROWS, scores_of)


@dataclass(frozen=True, eq=False, repr=False)
class AdditiveModel(FeatureModel):
    """An additive ranking function, ``score(x) = Σ_j f_j(x_j)``; higher is better.

    Parameters
    ----------
    curves : Curves
        The f_j, linear between knots or steps, one for each feature in order.
    feature_names : sequence of str or None
        Names of the features, in order.
    training : mapping of str to str, int, float, bool or None
        Summary of the training run: ``curves``, ``C``, ``objective``, ``gap`` and so on.
    linrank_version : str
        The version of linrank that trained the model.
    missing : Missing
        What the model does with missing values: f_j is taken of what stands in for one, and the
        weight of ``missing="indicator"`` is added.
    statistics : ColumnStatistics or None
        Mean, variance and range of the raw training features, as in :class:`linrank.LinearModel`.
    interactions : Interactions or None
        A term of all features together.

    Examples
    --------
    >>> from linrank import RankSVM
    >>> X = [[0.0], [1.0], [2.0], [3.0], [4.0]]
    >>> ranker = RankSVM(curves="spline", n_knots=3).fit(X, [0, 2, 3, 1, -1])
    >>> ranker.rank(X).tolist()
    [4, 2, 1, 3, 5]
    """

    curves: Curves
    feature_names: Sequence[str] | None = None
    training: Mapping[str, Scalar] = field(default_factory=dict)
    linrank_version: str = __version__
    missing: Missing = field(default_factory=Missing)
    statistics: ColumnStatistics | None = None
    interactions: Interactions | None = None
    scaling: ClassVar[Scaling] = Scaling()  # type: ignore[misc]  # it is in the curves
    kind = "additive"
    shown = ("curves", "C", "alpha", "n_pairs")

    def __post_init__(self) -> None:
        n_features = len(self.curves)
        if n_features == 0 or (self.curves.feature != np.arange(n_features)).any():
            raise ValueError("an additive model has one curve for each feature, in their order")
        self._check_shared()
        if self.interactions is not None:
            of = self.interactions.quantiles.feature
            if len(of) and (of.min() < 0 or of.max() >= n_features):
                raise ValueError(f"interactions are of features beyond the {n_features} there are")

    @property
    def sizes(self) -> list[str]:
        """What the short form says of the model itself."""
        term = self.interactions
        landmarks = [] if term is None else [f"{term.coef.size} landmarks"]
        return [*super().sizes, f"{self.n_nonzero} with a curve", *landmarks]

    @property
    def n_features(self) -> int:
        """Number of features of a row."""
        return len(self.curves)

    @property
    def is_used(self) -> NDArray[np.bool_]:
        """Whether each feature has a part in any score: in interactions all have."""
        return self.has_curve | (self.interactions is not None)

    @property
    def has_curve(self) -> NDArray[np.bool_]:
        """Whether each curve is other than constant, or missing values count."""
        used = [bool(v.any() and len(t)) or bool(s.any()) for _, t, v, s in self.curves]
        found: NDArray[np.bool_] = np.array(used)
        return found if self.missing.weights is None else found | (self.missing.weights != 0.0)

    @property
    def n_nonzero(self) -> int:
        """Number of features that have a part in any score but for interactions."""
        return int(self.has_curve.sum())

    def curve(self, j: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The points that ``f_j`` goes through over the range of the feature in training.

        Where that range is not known, from the first knot to the last. A step has two points above
        one another at its knot.
        """
        _, knots, _, _ = self.curves[j]
        if self.statistics is not None:
            ends = self.statistics.low[j], self.statistics.high[j]
        else:
            ends = (knots[0], knots[-1]) if len(knots) else (0.0, 1.0)
        return self.curves.polyline(j, *map(float, ends))

    @property
    def n_terms(self) -> int:
        """Number of columns of :meth:`explain`."""
        return self.n_features + (self.interactions is not None)

    @property
    def term_names(self) -> tuple[str, ...]:
        """What the columns of :meth:`explain` are: features by name or number, interactions."""
        names, base = self.feature_names, self.training.get("index_base")
        own = (feature_name(names, j, base) for j in range(self.n_features))
        return (*own, *((INTERACTIONS,) if self.interactions is not None else ()))

    def predict(self, X: Any, *, qid: Any = None, n_jobs: int | None = None) -> NDArray[np.float64]:
        """Scores of rows, higher is better.

        Parameters
        ----------
        X : Dataset or matrix of shape (n_rows, n_features)
            Raw rows: a dataset, NumPy or SciPy matrix, or data frame. NaN and null are missing
            values, which `missing` allows or refuses.
        qid : array of shape (n_rows,) or None
            Not looked at: no query matters to these scores.
        n_jobs : int or None
            Threads; None means all cores.
        """
        rows = self._restore_missing(X)
        scores = np.empty(rows.shape[0])
        for part, block in dense_blocks(rows):
            found = self._scores(block, n_jobs)
            if has_non_finite(found):
                self._check_values(block, n_jobs)
                filled, added = self._fill_missing(block)
                found = self._scores(filled, n_jobs)
                found += 0.0 if added is None else added.sum(axis=1)
            scores[part] = found
        return check_scores(scores)

    def _restore_missing(self, X: Any) -> Rows:
        """The rows of X; in those that were filled in as in training, what indicators tell."""
        if not isinstance(X, Dataset) or X.filling is None:
            return self._raw_rows(X)
        filling = self._own_filling(X)
        assert filling is not None
        whole = np.concatenate([block.values for _, block in dense_blocks(X.rows)])
        values, absent = np.split(whole, [filling.n_features], axis=1)
        values[:, filling.columns] = np.where(absent != 0.0, np.nan, values[:, filling.columns])
        return DenseRows(values)

    def _fill_missing(self, rows: DenseRows) -> tuple[DenseRows, NDArray[np.float64] | None]:
        """Rows without missing values, and what these add beside the curves."""
        weights = self.missing.weights
        added = None if weights is None else np.where(np.isnan(rows.values), weights, 0.0)
        filled = self.missing.fill(rows)
        assert isinstance(filled, DenseRows)
        return filled, added

    def _scores(self, rows: DenseRows, n_jobs: int | None) -> NDArray[np.float64]:
        scores = self.curves.sums(rows, n_jobs)
        if self.interactions is not None and not has_non_finite(scores):
            scores += self.interactions.scores(rows, n_jobs)
        return scores

    def _terms(self, rows: Rows) -> NDArray[np.float64]:
        return np.concatenate([self._terms_of(block) for _, block in dense_blocks(rows)])

    def _terms_of(self, rows: DenseRows) -> NDArray[np.float64]:
        rows, added = self._fill_missing(DenseRows(rows.values.astype(np.float64)))
        terms = self.curves.columns(rows).values
        if added is not None:
            terms += added
        if self.interactions is None:
            return terms
        return np.column_stack([terms, self.interactions.scores(rows)])

    @property
    def contents(self) -> dict[str, Any]:
        """The fields of the model file."""
        own, term = {"curves": self.curves}, self.interactions
        found = super().contents | {"n_landmarks": 0, "n_quantiles": 0}
        if term is not None:
            own["quantiles"] = term.quantiles
            found |= {
                "n_landmarks": term.coef.size,
                "n_quantiles": len(term.quantiles),
                **{name: getattr(term, name) for name in ("gamma", "landmarks", "coef")},
            }
        for name, curves in own.items():
            found |= {f"{name}.{part}": getattr(curves, part) for part in CURVE_PARTS}
        return found

    @classmethod
    def from_contents(cls, contents: Mapping[str, Any]) -> AdditiveModel:
        """The model of a file; raises ValueError or TypeError for what no model can be."""

        def curves(name: str) -> Curves:
            parts = {part: contents[f"{name}.{part}"] for part in CURVE_PARTS}
            for part in (part for part, array in parts.items() if array is None):
                raise ValueError(f"there is no array '{name}.{part}'")
            return Curves(**parts)

        if contents["scaling"] != "none":
            raise ValueError("the scaling of an additive model is in its curves: 'none'")
        interactions = None
        if contents["gamma"] is not None:
            parts = contents["landmarks"], contents["coef"]
            if any(part is None for part in parts):
                raise ValueError("interactions have landmarks and coefficients")
            interactions = Interactions(curves("quantiles"), *parts, contents["gamma"])
        fields = cls._shared_fields(contents) | {"interactions": interactions}
        model = cls(curves("curves"), **fields)
        if model.n_features != contents["n_features"]:
            raise ValueError(f"{model.n_features} curves for {contents['n_features']} features")
        return model
