"""The document of a linear model: lists of numbers, or some of them by index and value."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from linrank.model_file import arrays, sparse
from linrank.model_file.contents import (
    LISTS,
    MAX_FEATURES,
    MAX_INLINE_FEATURES,
    SPARSE,
    Contents,
    Invalid,
)
from linrank.model_file.fields import field, integer, known_keys, names, training

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["decode", "document_beside", "document_inline", "size", "tensors"]

KEYS = (
    *("format", "version", "kind", "linrank", "n_features", "scaling", "training"),
    *("arrays", "feature_names", "factors", "coef"),
)


def decode(document: dict[str, Any], folder: str) -> Contents:
    """The fields of a document, whose header is checked already."""
    known_keys(document, KEYS)
    n_features = integer(document, "n_features", 1, MAX_FEATURES)
    reference = field(document, "arrays", dict, type(None))
    if reference is None:
        named, factors, coef = _inline_arrays(document, n_features)
    else:
        named, factors, coef = _arrays_beside(document, reference, folder, n_features)
    scaling = field(document, "scaling", str)
    return Contents(
        coef, named, scaling, factors, training(document), field(document, "linrank", str)
    )


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
) -> _Arrays:
    for key in ("feature_names", "factors", "coef"):
        field(document, key, type(None))  # they are given in one place only

    def check(key: str, dtype: str, shape: list[int]) -> None:
        if key not in ("coef", "factors"):
            raise Invalid(f"unknown tensor {key[:80]!r}")
        if dtype != "F64" or shape != [n_features]:
            raise Invalid(f"{key!r} is {dtype} {shape}, expected F64 [{n_features}]")

    tensors, named = arrays.read_beside(reference, folder, check)
    return named, tensors.get("factors"), tensors["coef"]


# ---- writing ------------------------------------------------------------------------------------


def size(contents: Contents) -> str:
    """How large the model is, in words."""
    return f"{contents.coef.size} features"


def document_inline(contents: Contents) -> dict[str, Any] | None:
    """The one file of a model whose lists are not too long for that; else None."""
    named, coef, factors = contents.feature_names, contents.coef, contents.factors
    few = [(array, sparse.compact(array)) for array in (factors, coef)]
    fits = named is None and all(short is not None or array is None for array, short in few)
    if coef.size > MAX_INLINE_FEATURES and not fits:
        return None
    return _document(
        contents,
        LISTS if all(short is None for _, short in few) else SPARSE,
        feature_names=None if named is None else list(named),
        factors=_listed(*few[0]),
        coef=_listed(*few[1]),
    )


def document_beside(contents: Contents, reference: dict[str, str]) -> dict[str, Any]:
    """The file of a model whose arrays are in another one."""
    return _document(contents, LISTS, reference=reference)


def tensors(contents: Contents) -> dict[str, NDArray[Any]]:
    """The arrays for the file beside."""
    found: dict[str, NDArray[Any]] = {"coef": contents.coef}
    return found if contents.factors is None else {**found, "factors": contents.factors}


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
) -> dict[str, Any]:
    return {
        "version": version,
        "kind": "linear",
        "linrank": contents.linrank_version,
        "n_features": int(contents.coef.size),
        "scaling": contents.scaling,
        "training": dict(sorted(contents.training.items())),
        "arrays": reference,
        "feature_names": feature_names,
        "factors": factors,
        "coef": coef,
    }
