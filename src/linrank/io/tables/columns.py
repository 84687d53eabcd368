"""The columns of a table: their names, and what kind of values they hold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from linrank.data.frames import check_names
from linrank.errors import DataFormatError, did_you_mean

Array = NDArray[Any]

Kind = Literal["number", "text", "list", "vector", "other"]
_VECTOR = {"type", "size", "indices", "values"}  # the fields of a vector of Spark ML
_LISTED = 12  # columns named in a message


@dataclass(frozen=True)
class Column:
    """A column of a table.

    Attributes
    ----------
    name : str
        Its name, as in the file.
    kind : {"number", "text", "list", "vector", "other"}
        Numbers and booleans; strings and categories; a list of numbers in each row; a vector as
        Spark ML stores it; anything else, such as dates.
    type : str
        The type in Arrow's words, for messages.
    """

    name: str
    kind: Kind
    type: str = ""


def arrow() -> Any:
    """The pyarrow module, or an error that says how to get it."""
    try:
        import pyarrow
    except ImportError:
        raise ImportError(
            "reading tables (Parquet, Arrow, CSV, frames) needs the pyarrow package: "
            "pip install linrank[arrow]"
        ) from None
    return pyarrow


def columns_of(schema: Any, source: str) -> list[Column]:
    """The columns of an Arrow schema; names must differ and not be empty."""
    try:
        columns = [Column(field.name, _kind(field.type), str(field.type)) for field in schema]
    except UnicodeDecodeError:
        raise DataFormatError(f"{source}: the name of a column is not UTF-8 text") from None
    counts = Counter(column.name for column in columns)
    repeated = [name for name, n in counts.items() if n > 1]
    if repeated:
        raise DataFormatError(
            f"{source}: {counts[repeated[0]]} columns are named {repeated[0]!r}; rename all but one"
        )
    if "" in counts:
        raise DataFormatError(
            f"{source}: column {schema.names.index('')} (counted from 0) has no name; name it, or "
            "leave it out: pandas writes its index so unless index=False"
        )
    try:
        check_names(schema.names)
    except ValueError as error:
        raise DataFormatError(f"{source}: {error}") from None
    return columns


def listed(columns: Sequence[Column]) -> str:
    """The names of columns, not too many of them."""
    names = ", ".join(repr(c.name) for c in columns[:_LISTED])
    more = len(columns) - _LISTED
    return f"{names} and {more} more" if more > 0 else names or "no columns"


def nearest(name: str, columns: Sequence[Column]) -> str:
    """The end of a sentence on a column that is not there."""
    return did_you_mean(name, [c.name for c in columns]) or f"; it has {listed(columns)}"


def _kind(type: Any) -> Kind:
    types = arrow().types
    if types.is_dictionary(type):
        return "text" if holds_text(type.value_type) else "other"
    if holds_text(type):
        return "text"
    if _is_number(type) or types.is_null(type):  # a column of nulls only: all values are missing
        return "number"
    if _is_list(type):
        return "list" if _is_number(type.value_type) else "other"
    return "vector" if types.is_struct(type) and _is_vector(type) else "other"


def _is_list(type: Any) -> bool:
    types = arrow().types
    return bool(types.is_list(type) or types.is_large_list(type) or types.is_fixed_size_list(type))


def _is_vector(type: Any) -> bool:
    """Whether a struct has the fields of a vector, each of a type that fits."""
    fields = {field.name: field.type for field in type}
    if len(fields) != type.num_fields or set(fields) != _VECTOR:
        return False
    whole = arrow().types.is_integer
    indices, values = fields["indices"], fields["values"]
    if not (_is_list(indices) and _is_list(values)):
        return False
    plain = whole(fields["type"]) and whole(fields["size"]) and whole(indices.value_type)
    return bool(plain and _is_number(values.value_type))


def _is_number(type: Any) -> bool:
    types = arrow().types
    plain = types.is_integer(type) or types.is_floating(type)
    return bool(plain or types.is_boolean(type) or types.is_decimal(type))


def holds_text(type: Any) -> bool:
    """Whether values are strings."""
    types = arrow().types
    view = getattr(types, "is_string_view", None)
    short = types.is_string(type) or types.is_large_string(type)
    return bool(short or (view is not None and view(type)))


def holds_bytes(type: Any) -> bool:
    """Whether values are bytes, as writers leave strings that do not annotate them."""
    types = arrow().types
    return bool(
        types.is_binary(type) or types.is_large_binary(type) or types.is_fixed_size_binary(type)
    )


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
