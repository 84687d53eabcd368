"""The document of a linear model: lists of numbers, or some of them by index and value."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from linrank.data.statistics import ColumnStatistics
from linrank.models.file import arrays, sparse
from linrank.models.file.contents import (
    LISTS,
    MAX_FEATURES,
    MAX_INLINE_FEATURES,
    MAX_ROWS,
    PROVENANCE,
    SPARSE,
    Contents,
    Invalid,
)
from linrank.models.file.fields import field, integer, known_keys, names, training

if TYPE_CHECKING:
    from numpy.typing import NDArray

KEYS = (
    *("format", "version", "kind", "linrank", "n_features", "scaling", "training"),
    *("arrays", "feature_names", "factors", "coef"),
)
LATER_KEYS = ("missing", "filled", "statistics")
MOMENTS = ("mean", "variance", "low", "high")
TENSORS = ("factors", "coef", "filled")


def decode(document: dict[str, Any], folder: str) -> Contents:
    """The fields of a document, whose header is checked already."""
    known_keys(document, KEYS if document["version"] < PROVENANCE else (*KEYS, *LATER_KEYS))
    n_features = integer(document, "n_features", 1, MAX_FEATURES)
    reference = field(document, "arrays", dict, type(None))
    beside: NDArray[np.float64] | None = None
    if reference is None:
        named, factors, coef = _inline_arrays(document, n_features)
    else:
        named, found = _arrays_beside(document, reference, folder, n_features)
        coef, factors, beside = found["coef"], found.get("factors"), found.get("filled")
    scaling = field(document, "scaling", str)
    return Contents(
        coef,
        named,
        scaling,
        factors,
        training(document),
        field(document, "linrank", str),
        *_provenance(document, n_features, beside),
    )


def _provenance(
    document: dict[str, Any], n_features: int, beside: NDArray[np.float64] | None
) -> tuple[Any, ...]:
    """The policy for missing values, its numbers, and the statistics of the training rows."""
    if document["version"] < PROVENANCE:
        return "error", None, None
    missing = field(document, "missing", str)
    filled = field(document, "filled", list, dict, type(None))
    if beside is not None:
        field(document, "filled", type(None))  # it is given in one place only
        filled = beside
    elif filled is not None:
        filled = _numbers("filled", filled, n_features)
    statistics = field(document, "statistics", dict, type(None))
    if statistics is not None:
        statistics = _statistics(statistics, n_features)
    return missing, filled, statistics


def _statistics(found: dict[str, Any], n_features: int) -> ColumnStatistics:
    known_keys(found, ("weight", "n_rows", *MOMENTS, "n_nonzero"), " of 'statistics'")
    weight = float(field(found, "weight", float, int, name="statistics.weight"))
    n_rows = integer(found, "n_rows", 1, MAX_ROWS, name="statistics.n_rows")
    arrays_of = {}
    for key in (*MOMENTS, "n_nonzero"):
        name = f"statistics.{key}"
        listed = field(found, key, list, dict, name=name)
        arrays_of[key] = _numbers(name, listed, n_features)
        if not np.isfinite(arrays_of[key]).all():
            raise Invalid(f"{name!r} holds a number that is not finite")
    counts = arrays_of.pop("n_nonzero")
    if not (0.0 < weight < np.inf) or (arrays_of["variance"] < 0.0).any():
        raise Invalid("'statistics' has a weight or a variance that no rows have")
    if (counts < 0.0).any() or (counts > n_rows).any() or (counts % 1.0).any():
        raise Invalid(f"'statistics.n_nonzero' counts no rows from 0 to {n_rows}")
    return ColumnStatistics(weight, n_rows, **arrays_of, n_nonzero=counts.astype(np.int64))


_Arrays = tuple["list[str] | None", "NDArray[np.float64] | None", "NDArray[np.float64]"]


def _inline_arrays(document: dict[str, Any], n_features: int) -> _Arrays:
    # The names first, before memory is taken for what a few characters can claim.
    named = names(document, n_features)
    forms = (list, dict) if document["version"] >= SPARSE else (list,)
    factors = field(document, "factors", *forms, type(None))
    coef = _numbers("coef", field(document, "coef", *forms), n_features)
    return named, None if factors is None else _numbers("factors", factors, n_features), coef


def _numbers(key: str, values: Any, n_features: int) -> NDArray[np.float64]:
    """The array of a list of all its numbers, or of the indices and values of some."""
    if isinstance(values, dict):
        return sparse.expand(key, values, n_features)
    if len(values) != n_features:
        raise Invalid(f"{key!r} has {len(values)} entries for {n_features} features")
    for j, value in enumerate(values):
        if type(value) is not float and type(value) is not int:
            raise Invalid(f"{key}[{j}] is a {type(value).__name__}, expected a number")
    return np.array(values, dtype=np.float64)


def _arrays_beside(
    document: dict[str, Any], reference: dict[str, Any], folder: str, n_features: int
) -> tuple[list[str] | None, dict[str, NDArray[np.float64]]]:
    for key in ("feature_names", "factors", "coef"):
        field(document, key, type(None))  # they are given in one place only

    known = TENSORS if document["version"] >= PROVENANCE else TENSORS[:2]

    def check(key: str, dtype: str, shape: list[int]) -> None:
        if key not in known:
            raise Invalid(f"unknown tensor {key[:80]!r}")
        if dtype != "F64" or shape != [n_features]:
            raise Invalid(f"{key!r} is {dtype} {shape}, expected F64 [{n_features}]")

    tensors, named = arrays.read_beside(reference, folder, n_features, check)
    return named, tensors


# ---- writing ------------------------------------------------------------------------------------


def size(contents: Contents) -> str:
    """How large the model is, in words."""
    return f"{contents.coef.size} features"


def document_inline(contents: Contents) -> dict[str, Any] | None:
    """The one file of a model whose lists are not too long for that; else None."""
    named, coef, factors = contents.feature_names, contents.coef, contents.factors
    few = [(array, sparse.compact(array)) for array in (factors, coef, contents.filled)]
    fits = named is None and all(short is not None or array is None for array, short in few)
    if coef.size > MAX_INLINE_FEATURES and not fits:
        return None
    return _document(
        contents,
        LISTS if all(short is None for _, short in few) else SPARSE,
        feature_names=None if named is None else list(named),
        factors=_listed(*few[0]),
        coef=_listed(*few[1]),
        filled=_listed(*few[2]),
    )


def document_beside(contents: Contents, reference: dict[str, str]) -> dict[str, Any]:
    """The file of a model whose arrays are in another one."""
    return _document(contents, LISTS, reference=reference)


def tensors(contents: Contents) -> dict[str, NDArray[Any]]:
    """The arrays for the file beside."""
    found = {key: getattr(contents, key) for key in TENSORS}
    return {key: array for key, array in found.items() if array is not None}


def _listed(array: NDArray[np.float64] | None, short: dict[str, Any] | None) -> Any:
    """The short form where there is one, else all numbers."""
    return short if short is not None or array is None else array.tolist()


def _document(
    contents: Contents,
    version: int,
    *,
    reference: dict[str, str] | None = None,
    feature_names: list[str] | None = None,
    factors: Any = None,
    coef: Any = None,
    filled: Any = None,
) -> dict[str, Any]:
    later = _later(contents, filled)
    return {
        "version": PROVENANCE if later else version,
        "kind": "linear",
        "linrank": contents.linrank_version,
        "n_features": int(contents.coef.size),
        "scaling": contents.scaling,
        "training": dict(sorted(contents.training.items())),
        "arrays": reference,
        "feature_names": feature_names,
        "factors": factors,
        "coef": coef,
        **later,
    }


def _later(contents: Contents, filled: Any) -> dict[str, Any]:
    """The keys of version 4, or none where an older version says it all."""
    if contents.missing == "error" and contents.statistics is None:
        return {}
    statistics = None
    if contents.statistics is not None:
        found = contents.statistics
        columns = {key: _short(getattr(found, key)) for key in MOMENTS}
        counts = _short(found.n_nonzero.astype(np.float64))
        sizes = {"weight": found.weight, "n_rows": found.n_rows}
        statistics = {**sizes, **columns, "n_nonzero": counts}
    return {
        "missing": contents.missing,
        "filled": filled,
        "statistics": statistics,
    }


def _short(array: NDArray[np.float64]) -> Any:
    return _listed(array, sparse.compact(array))
