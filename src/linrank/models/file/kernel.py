"""The document of a kernel model: a header to read, and arrays in base64."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from linrank.models.file import arrays, encoded
from linrank.models.file.contents import (
    KERNEL,
    MAX_FEATURES,
    MAX_INLINE_FEATURES,
    MAX_JSON_BYTES,
    MAX_ROWS,
    Invalid,
    KernelContents,
)
from linrank.models.file.fields import field, integer, known_keys, names, training

if TYPE_CHECKING:
    from numpy.typing import NDArray

MAX_ENCODED = MAX_JSON_BYTES - 2**24  # characters of arrays in one file; the rest is for names
MAX_DEGREE = 2**31 - 1
DENSE, SPARSE = ("rows",), ("values", "columns", "offsets")  # of the support rows, if there are any
ARRAYS = (*DENSE, *SPARSE, "coef", "phases", "support", "factors")
KEYS = (
    *("format", "version", "kind", "linrank", "kernel", "n_features", "n_support", "n_train"),
    *("scaling", "training", "arrays", "feature_names", *ARRAYS),
)
_FLOATS, _INTEGERS = ("float32", "float64"), ("int32", "int64")
_TYPES = {
    **dict.fromkeys(("rows", "values"), _FLOATS),
    **dict.fromkeys(("columns", "offsets", "support"), _INTEGERS),
    **dict.fromkeys(("coef", "phases", "factors"), ("float64",)),
}
_TENSORS = {"F32": "float32", "F64": "float64", "I32": "int32", "I64": "int64"}


def decode(document: dict[str, Any], folder: str) -> KernelContents:
    """The fields of a document, whose header is checked already.

    Arrays are of the types and shapes that belong together; what is in them, and which of them a
    kernel needs, the model checks.
    """
    known_keys(document, KEYS)
    n_features = integer(document, "n_features", 1, MAX_FEATURES)
    n_support = integer(document, "n_support", 0, MAX_ROWS)
    n_train = field(document, "n_train", int, type(None))
    if n_train is not None:
        n_train = integer(document, "n_train", 1, MAX_ROWS)
    check = partial(_check_array, n_features, n_support)
    reference = field(document, "arrays", dict, type(None))
    if reference is None:
        named = names(document, n_features)
        present = [key for key in ARRAYS if field(document, key, dict, type(None)) is not None]
        found = {key: encoded.decode(key, document[key], check) for key in present}
    else:
        found, named = _arrays_beside(document, reference, folder, check)
    _check_together(found)
    return KernelContents(
        _kernel(document),
        n_features,
        n_support,
        n_train,
        found,
        named,
        field(document, "scaling", str),
        training(document),
        field(document, "linrank", str),
    )


def _kernel(document: dict[str, Any]) -> dict[str, Any]:
    kernel: dict[str, Any] = field(document, "kernel", dict)
    known_keys(kernel, ("name", "gamma", "degree", "coef0"), " in 'kernel'")
    return {
        "name": field(kernel, "name", str, name="kernel.name"),
        "gamma": float(field(kernel, "gamma", int, float, name="kernel.gamma")),
        "degree": integer(kernel, "degree", 1, MAX_DEGREE, name="kernel.degree"),
        "coef0": float(field(kernel, "coef0", int, float, name="kernel.coef0")),
    }


def _check_array(n_features: int, n_support: int, key: str, dtype: str, shape: list[int]) -> None:
    """Refuse types and shapes that do not go with the numbers of features and support rows."""
    if key not in ARRAYS:
        raise Invalid(f"unknown tensor {key[:80]!r}")
    dtype = _TENSORS.get(dtype, dtype)
    if dtype not in _TYPES[key]:
        raise Invalid(f"{key!r} is {dtype[:80]}, expected {' or '.join(_TYPES[key])}")
    expected = {
        "rows": [n_support, n_features],
        "offsets": [n_support + 1],
        "factors": [n_features],
        "values": shape[:1],  # as many as there are
        "columns": shape[:1],
    }.get(key, [n_support])
    if shape != expected:
        raise Invalid(f"{key!r} has the shape {shape}, expected {expected}")


def _check_together(found: dict[str, NDArray[Any]]) -> None:
    if "coef" not in found:
        raise Invalid("the key 'coef' is null, expected the coefficients")
    rows = [key for key in (*DENSE, *SPARSE) if key in found]
    if tuple(rows) not in ((), DENSE, SPARSE):
        raise Invalid(f"has {', '.join(rows)}; support rows are 'rows', or all of {SPARSE}")
    if "values" in found and len(found["values"]) != len(found["columns"]):
        n_values, n_columns = len(found["values"]), len(found["columns"])
        raise Invalid(f"'values' has {n_values} entries, 'columns' {n_columns}")


def _arrays_beside(
    document: dict[str, Any], reference: dict[str, Any], folder: str, check: arrays.Check
) -> tuple[dict[str, NDArray[Any]], list[str] | None]:
    for key in ("feature_names", *ARRAYS):
        field(document, key, type(None))  # they are given in one place only
    return arrays.read_beside(reference, folder, document["n_features"], check)


# ---- writing ------------------------------------------------------------------------------------


def size(contents: KernelContents) -> str:
    """How large the model is, in words."""
    return f"{contents.n_support} support rows of {contents.n_features} features"


def tensors(contents: KernelContents) -> dict[str, NDArray[Any]]:
    """The arrays as they are written: row numbers and offsets in 32 bits where that is enough."""
    return {
        key: _narrow(array) if key in ("offsets", "support") else array
        for key, array in contents.arrays.items()
    }


def document_inline(contents: KernelContents) -> dict[str, Any] | None:
    """The one file of a model that is not too large for that; else None."""
    found, named = tensors(contents), contents.feature_names
    if sum(encoded.encoded_length(array.nbytes) for array in found.values()) > MAX_ENCODED:
        return None
    if named is not None and len(named) > MAX_INLINE_FEATURES:
        return None
    return {
        **_header(contents, None),
        "feature_names": None if named is None else list(named),
        **{key: encoded.encode(found[key]) if key in found else None for key in ARRAYS},
    }


def document_beside(contents: KernelContents, reference: dict[str, str]) -> dict[str, Any]:
    """The file of a model whose arrays are in another one."""
    return {**_header(contents, reference), **dict.fromkeys(("feature_names", *ARRAYS))}


def _header(contents: KernelContents, reference: dict[str, str] | None) -> dict[str, Any]:
    return {
        "version": KERNEL,
        "kind": "kernel",
        "linrank": contents.linrank_version,
        "kernel": dict(contents.kernel),
        "n_features": contents.n_features,
        "n_support": contents.n_support,
        "n_train": contents.n_train,
        "scaling": contents.scaling,
        "training": dict(sorted(contents.training.items())),
        "arrays": reference,
    }


def _narrow(array: NDArray[Any]) -> NDArray[Any]:
    fits = array.size == 0 or int(array.max()) <= np.iinfo(np.int32).max
    return array.astype(np.int32) if fits else array
