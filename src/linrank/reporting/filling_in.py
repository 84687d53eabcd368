"""Data and model without missing values, so that everything on a page is a sum over columns."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from linrank.data.filling import Filling
from linrank.data.rows import CsrRows, resized
from linrank.missing import Missing
from linrank.model import LinearModel
from linrank.reporting.rankings import fitted_to

if TYPE_CHECKING:
    from linrank.data.dataset import Dataset

__all__ = ["filled_in"]


def filled_in(parts: dict[str, Dataset], model: Any) -> tuple[dict[str, Dataset], Any]:
    """The parts with their missing values filled in, and the model of the filled columns.

    They are filled in as the model does it or, where one is to be trained, as those of the training
    data were. An indicator is a column like any other then, with a weight of its own.
    """
    linear = getattr(model, "model_", model)
    filling: Filling | None
    if isinstance(linear, LinearModel) and linear.missing.is_filled:
        filling = _filling(linear.missing, linear.n_features)
        parts = {name: fitted_to(data, linear) for name, data in parts.items()}
        model = _plain(linear, filling)
    else:
        filling = parts.get("train", parts["test"]).filling
    if filling is None:
        return parts, model
    return {name: _filled(data, filling) for name, data in parts.items()}, model


def _filling(missing: Missing, n_features: int) -> Filling:
    weights = np.zeros(n_features) if missing.weights is None else missing.weights
    return Filling(missing.kind, n_features, missing.values, np.flatnonzero(weights))


def _plain(model: LinearModel, filling: Filling) -> LinearModel:
    """The model as one of the filled columns, of which nothing is missing."""
    scaling, names = model.scaling, model.feature_names
    n_added = len(filling.columns)
    if scaling.factors is not None:
        factors = np.pad(scaling.factors, (0, n_added), constant_values=1.0)
        scaling = replace(scaling, factors=factors)
    return replace(
        model,
        coef=model.missing.joined(model.coef, filling),
        feature_names=None if names is None else filling.names(names),
        scaling=scaling,
        missing=Missing(),
        statistics=None if n_added else model.statistics,
    )


def _filled(data: Dataset, filling: Filling) -> Dataset:
    if data.filling is None:
        if isinstance(data.rows, CsrRows):  # text leaves zeros out, and so the last features
            data = replace(data, rows=resized(data.rows, filling.n_features))
        data = filling.dataset(data)
    elif not _are_alike(data.filling, filling):
        raise ValueError(
            f"the missing values of {data.source} were filled in from that data, by "
            f"missing={data.filling.kind!r}, not as those of the training data; load it with "
            "missing='keep'"
        )
    plain = replace(data, filling=None)
    if "queries" in data.__dict__:  # which the rows have no part in
        plain.__dict__["queries"] = data.queries
    return plain


def _are_alike(one: Filling, other: Filling) -> bool:
    def values(filling: Filling) -> Any:
        return np.zeros(filling.n_features) if filling.values is None else filling.values

    return (
        one.kind == other.kind
        and np.array_equal(one.columns, other.columns)
        and np.array_equal(values(one), values(other))
    )
