"""Arrays inside JSON: little-endian bytes in base64, with their type and shape."""

from __future__ import annotations

import base64
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from linrank.models.file.contents import Invalid
from linrank.models.file.fields import field, known_keys

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Check = Callable[[str, str, list[int]], None]

DTYPES = ("float32", "float64", "int32", "int64")
KEYS = ("dtype", "shape", "data")


def encoded_length(n_bytes: int) -> int:
    """Characters that so many bytes take in base64."""
    return 4 * ((n_bytes + 2) // 3)


def encode(array: NDArray[Any]) -> dict[str, Any]:
    """The array as an object of JSON."""
    little = array.astype(array.dtype.newbyteorder("<"), order="C", copy=False)
    data = base64.b64encode(little.tobytes()).decode("ascii")
    return {"dtype": array.dtype.name, "shape": list(array.shape), "data": data}


def decode(key: str, parts: dict[str, Any], check: Check) -> NDArray[Any]:
    """The array of what `encode` made; ``check(key, dtype, shape)`` refuses what does not fit.

    The text is as long as type and shape say before any memory is taken for the array, so that a
    file never takes more than its own size.
    """
    known_keys(parts, KEYS, f" in {key!r}")
    dtype = field(parts, "dtype", str, name=f"{key}.dtype")
    shape = _shape(key, parts)
    if dtype not in DTYPES:
        raise Invalid(f"'{key}.dtype' is {dtype[:80]!r}, expected {', '.join(DTYPES)}")
    check(key, dtype, shape)
    data = field(parts, "data", str, name=f"{key}.data")
    n_bytes = math.prod(shape) * np.dtype(dtype).itemsize
    if len(data) != encoded_length(n_bytes):
        raise Invalid(
            f"'{key}.data' has {len(data)} characters, {dtype} {shape} takes "
            f"{encoded_length(n_bytes)}"
        )
    try:
        content = base64.b64decode(data, validate=True)
    except ValueError as error:  # of other characters, or of = in other places
        raise Invalid(f"'{key}.data' is not base64 ({error})") from None
    if len(content) != n_bytes:
        raise Invalid(f"'{key}.data' holds {len(content)} bytes, {dtype} {shape} takes {n_bytes}")
    little = np.frombuffer(content, dtype=np.dtype(dtype).newbyteorder("<")).reshape(shape)
    return little.astype(dtype, copy=False)


def _shape(key: str, parts: dict[str, Any]) -> list[int]:
    shape: list[Any] = field(parts, "shape", list, name=f"{key}.shape")
    if len(shape) not in (1, 2):
        raise Invalid(f"'{key}.shape' has {len(shape)} entries, expected 1 or 2")
    for size in shape:
        if type(size) is not int or size < 0:
            raise Invalid(f"'{key}.shape' holds {str(size)[:80]}, expected an integer >= 0")
    return shape
