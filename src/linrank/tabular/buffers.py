"""The memory of Arrow's arrays as NumPy's, without pyarrow's own conversions: these load pandas."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from linrank.tabular.columns import arrow

__all__ = ["list_sizes", "missing_of", "one_array", "plain_numbers"]

Array = NDArray[Any]
_FLOATS = {"float": "float32", "double": "float64", "halffloat": "float16"}


def plain_numbers(column: Any) -> tuple[Array, Array | None, int]:
    """The values of a numeric array, its validity bits if any is missing, and the first bit.

    Views, for the types that the core knows; others are converted.
    """
    pa = arrow()
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.uint8())
    elif pa.types.is_decimal(column.type):
        column = column.cast(pa.float64())
    parts = column.buffers()
    if parts[-1] is None:  # nothing there: no rows, or no value in any of them
        return np.full(len(column), np.nan, np.float32), None, 0
    name = str(column.type)
    dtype = np.dtype(_FLOATS.get(name, name))
    values = np.frombuffer(parts[-1], dtype, column.offset + len(column))[column.offset :]
    if dtype == np.float16:
        values = values.astype(np.float32)
    elif not values.flags.aligned:  # files may place them anywhere; the core reads whole words
        values = values.copy()
    if column.null_count == 0 or parts[0] is None:
        return values, None, 0
    return values, np.frombuffer(parts[0], np.uint8), column.offset


def missing_of(column: Any) -> Array:
    """Whether each element of an array is missing."""
    bits = column.buffers()[0]
    if column.null_count == 0:
        return np.zeros(len(column), bool)
    if bits is None:  # a column of the type that has no values
        return np.ones(len(column), bool)
    valid = np.unpackbits(np.frombuffer(bits, np.uint8), bitorder="little")
    missing: Array = valid[column.offset : column.offset + len(column)] == 0
    return missing


def list_sizes(lists: Any) -> Array:
    """The length of each list of an array, whatever it has where a list is missing."""
    if arrow().types.is_fixed_size_list(lists.type):
        return np.full(len(lists), lists.type.list_size, np.int64)
    return np.diff(plain_numbers(lists.offsets)[0]).astype(np.int64)


def one_array(column: Any) -> Any:
    """The chunks of a column as one array."""
    if arrow().types.is_dictionary(column.type):
        column = column.unify_dictionaries()
    whole = column.combine_chunks()
    if not isinstance(whole, arrow().ChunkedArray):
        return whole
    return whole.chunk(0)
