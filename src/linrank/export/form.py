"""Form: a linear or additive model as engines see it, in names and numbers that they can hold.

    score(x) = Σ_j w_j x_j  or  Σ_j f_j(x_j),   a missing x_j counting as fill_j, and extra_j more.

Scaling by columns is folded into the weights. An order is kept by any positive factor, so weights
that the arithmetic of an engine cannot hold are multiplied by a power of two, which is exact.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from linrank.data import Array, ColumnStatistics, Curves, DenseRows, first_true
from linrank.errors import check_one_of
from linrank.export.names import FeatureMap, engine_names

# Binary exponents of the smallest normal and of the largest number.
_LIMITS = {"float32": (-126, 127), "float64": (-1022, 1023)}
# The share of them that is used as it is. The rest is room for values that are larger or smaller
# than those of training, and for all values where those are not known. A product that is too small
# is lost among the others, one that is too large takes the whole order with it: the room above is
# the same for all, 2^63 in float32.
_SEEN, _UNSEEN = 0.8, 0.5


def power_of_two(
    coef: Array,
    reach: Array | None,
    extra: Array,
    precision: str,
) -> float:
    """The factor by which weights are to be multiplied: 1 where they are fine as they are.

    What must be held are the weights ``|w_j|``, what missing values add, the products
    ``|w_j| r_j`` with the largest training values ``r_j`` (as far as they are known) and their
    sum, the largest score. With ``lo`` and ``hi`` the least and the largest of these, the factor
    is 1 while both stay clear of the ends of the type's range. Else it puts them around the
    middle, and where they span too much for that, ``hi`` a quarter of the exponents below the top:
    small weights are lost before large scores overflow.
    """
    least, most = _limits(precision)
    weights = np.abs(coef[coef != 0.0])
    # Exponents, not products: those may overflow in double precision already.
    exponents = [np.log2(weights), np.log2(np.abs(extra[extra != 0.0]))]
    if reach is not None:
        seen = reach[coef != 0.0]
        exponents.append(np.log2(weights[seen > 0.0]) + np.log2(seen[seen > 0.0]))
    held = np.concatenate(exponents)
    low, high = float(held.min()), float(held.max()) + math.log2(len(held))
    share = _UNSEEN if reach is None else _SEEN
    if low >= share * least and high <= _UNSEEN * most:
        return 1.0
    middle = (least + most) / 2
    shift = math.floor(middle - (low + high) / 2)
    shift = min(shift, math.floor(most - most / 4 - high))
    return math.ldexp(1.0, max(-1022, min(1023, shift)))


def _limits(precision: str) -> tuple[int, int]:
    check_one_of("precision", precision, tuple(_LIMITS))
    return _LIMITS[precision]


def singles(values: Iterable[float]) -> list[float]:
    """Values rounded to float32, as floats that print with the fewest digits (at most 9).

    An engine that computes in float32 rounds what it reads. Rounding first leaves short numbers
    and changes nothing: 0.1f prints as 0.1, not as 0.10000000149011612.
    """
    with np.errstate(over="ignore"):
        return [float(str(np.float32(value))) for value in values]


def text(value: float) -> str:
    """A finite float as the shortest decimal that reads back the same, JSON and Java alike."""
    return repr(float(value))


_SHOWN = 3  # names that a warning lists


@dataclass(frozen=True, eq=False)
class Form:
    """What there is to write of a model, one entry for each exported feature.

    Attributes
    ----------
    target : str
        The engine.
    names : tuple of str
        Names in the engine.
    columns : int64 array
        The column of each feature in the model, ascending.
    weights : float64 array
        ``factor · coef``, of raw values; 0 where there are curves.
    curves : Curves or None
        Of an additive model: one for each name, in order.
    interactions : Interactions or None
        Of an additive model: a term of all its features.
    factor : float
        A power of two, 1 where the engine can hold the weights as they are.
    fill : float64 array
        What stands in for a missing value, 0 where the model has no rule for them.
    extra : float64 array
        What a missing value adds beside that; 0 but for ``missing="indicator"``.
    missing : {"error", "zero", "mean", "indicator"}
        The model's rule for missing values.
    absent : bool array
        Whether each feature was missing in a training row, as far as the model knows.
    scale : {"none", "standard", "minmax", "query"}
        How the features were scaled when the model was trained.
    statistics : ColumnStatistics or None
        Of the training values of these features.
    n_features : int
        Features of the model, exported or not.
    base : int or None
        Number of the first feature in the training file, None where there was no such file.
    warnings : tuple of str
        What an engine cannot know of this model.
    """

    target: str
    names: tuple[str, ...]
    columns: Array
    weights: Array
    curves: Curves | None
    interactions: Any
    factor: float
    fill: Array
    extra: Array
    missing: str
    absent: Array
    scale: str
    statistics: ColumnStatistics | None
    n_features: int
    base: int | None
    warnings: tuple[str, ...]

    @classmethod
    def of(
        cls,
        model: Any,
        *,
        target: str = "linrank",
        feature_map: FeatureMap | None = None,
        precision: str = "float32",
        dense: bool = False,
        named: bool = True,
        scales_queries: bool = False,
    ) -> Form:
        """The form of a model.

        Parameters
        ----------
        model : LinearModel or AdditiveModel
            A trained model.
        target : str
            The engine, by its name.
        feature_map : mapping, path or None
            Names in the engine by names, or numbers, in the model.
        precision : {"float32", "float64"}
            What the engine computes in.
        dense : bool
            Keep features of weight 0 too.
        named : bool
            Whether the engine goes by names; without, a model that has none is not warned about.
        scales_queries : bool
            Whether the engine divides features by their ranges within queries where the model does.
        """
        _check_exportable(model)
        zeros, missing = np.zeros(model.n_features), model.missing
        fill = zeros if missing.values is None else missing.values
        extra = zeros if missing.weights is None else missing.weights
        curves, interactions = getattr(model, "curves", None), getattr(model, "interactions", None)
        kept = np.arange(model.n_features) if dense else np.flatnonzero(model.is_used)
        if curves is not None:
            curves = Curves.of((k, *curves[j][1:]) for k, j in enumerate(kept.tolist()))
        base: int | None = model.training.get("index_base")
        called = engine_names(model.feature_names, model.n_features, base or 0, feature_map)
        warnings = []
        if model.scaling.kind == "query" and not scales_queries:
            warnings.append(
                "the model was trained with scale='query': its weights are those of features "
                "divided by their range within each query, which the artefact does not do; divide "
                "the features before, or train with scale='standard' or 'minmax'"
            )
        if named and model.feature_names is None and feature_map is None:
            warnings.append(
                f"the model has no feature names: the first feature is called f{base or 0} and so "
                "on; give the engine's names by a feature map"
            )
        form = cls(
            target=target,
            names=tuple(called[j] for j in kept),
            columns=kept,
            weights=zeros[kept],
            curves=curves,
            interactions=interactions,
            factor=1.0,
            fill=fill[kept],
            extra=extra[kept],
            missing=missing.kind,
            absent=np.ones(len(kept), bool) if missing.absent is None else missing.absent[kept],
            scale=model.scaling.kind,
            statistics=None if model.statistics is None else model.statistics.of_columns(kept),
            n_features=model.n_features,
            base=base,
            warnings=tuple(warnings),
        )
        if curves is not None:
            return form
        return form._with_weights(model.coef[kept], precision)

    def _with_weights(self, coef: Array, precision: str) -> Form:
        """The form with weights that the engine can hold."""
        factor = power_of_two(coef, _reach(self.statistics, self.fill), self.extra, precision)
        weights, warnings = coef * factor, list(self.warnings)
        least, _ = _limits(precision)
        lost = np.flatnonzero((coef != 0.0) & (np.abs(weights) < math.ldexp(1.0, least)))
        if lost.size:
            shown = ", ".join(repr(self.names[j]) for j in lost[:_SHOWN])
            more = f" and {lost.size - _SHOWN} more" if lost.size > _SHOWN else ""
            warnings.append(
                f"the weights span more than {precision} can hold: that of {shown}{more} is next "
                "to the largest so small that it is written with fewer digits or as 0; rescale "
                "these features"
            )
        form = replace(
            self,
            weights=weights,
            factor=factor,
            extra=self.extra * factor,
            warnings=tuple(warnings),
        )
        if (j := first_true(~np.isfinite(form.contributions))) is not None:
            raise ValueError(
                f"a missing {form.names[j]!r} adds {form.weights[j]:g} times {form.fill[j]:g} to "
                "the score, more than double precision can hold; rescale the feature and train "
                "again"
            )
        return form

    @property
    def summary(self) -> str:
        """What it is, to begin the instructions with."""
        kind = "A linear" if self.curves is None else "An additive"
        return f"{kind} model of {len(self.names)} features"

    @property
    def contributions(self) -> Array:
        """What a missing value of each feature adds to the score: that of ``fill``, and extra."""
        with np.errstate(over="ignore"):  # refused by `of`
            found = self.weights * self.fill
        if self.curves is not None:
            found = self.curves.columns(DenseRows(self.fill[None, :])).values[0]
        return found + self.extra

    @property
    def added(self) -> list[float | None]:
        """The same as numbers; None where the model refuses missing values."""
        if self.missing == "error":
            return [None] * len(self.names)
        return list(self.contributions.tolist())

    @property
    def defaults(self) -> Array:
        """The value that counts as a missing one, ``fill + extra / w``; NaN where none is known.

        With it an engine that only knows default values expresses indicators too.
        """
        added = np.full_like(self.weights, np.nan)
        with np.errstate(over="ignore"):  # infinite: no value can stand for it
            np.divide(self.extra, self.weights, out=added, where=self.weights != 0.0)
        return np.where(self.extra == 0.0, self.fill, self.fill + added)


def _check_exportable(model: Any) -> None:
    """Refuse a model of which there is nothing that an engine could compute."""
    if hasattr(model, "kernel"):
        raise TypeError(
            f"a model with the kernel {model.kernel.name!r} is no sum over features and cannot be "
            "exported; what can is a LinearModel, from RankSVM and the other linear estimators"
        )
    if not hasattr(model, "missing") or not hasattr(model, "scaling"):
        raise TypeError(f"what can be exported is a LinearModel, got {type(model).__name__}")
    if hasattr(model, "curves"):
        is_empty = not model.is_used.any()
        what, remedy = "curves of the model are constant", "a larger C or a weaker penalty"
    else:
        is_empty = not model.coef.any()
        what, remedy = "weights of the model are 0", "a larger C, a weaker penalty or wider bounds"
    if is_empty:
        raise ValueError(
            f"all {what}, so that every row scores alike: there is nothing to export; train with "
            f"{remedy}"
        )


def _reach(statistics: ColumnStatistics | None, fill: Array) -> Array | None:
    """The largest value of each feature, without its sign, that training saw or filled in."""
    if statistics is None:
        return None
    reach = np.maximum(np.abs(statistics.low), np.abs(statistics.high))
    return np.maximum(np.where(np.isfinite(reach), reach, 0.0), np.abs(fill))
