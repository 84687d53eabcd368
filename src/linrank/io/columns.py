"""The columns of a table: what kind of values they hold, and these as arrays."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from linrank.data.frames import Array, check_apart, check_names, first_true
from linrank.data.words import Words, as_integers
from linrank.errors import DataFormatError, did_you_mean

Kind = Literal["number", "text", "list", "vector", "other"]
_VECTOR = {"type", "size", "indices", "values"}  # the fields of a vector of Spark ML
LISTED = 12  # columns named in a message


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


def arrow(what: str = "reading tables (Parquet, Arrow, CSV, frames)") -> Any:
    """The pyarrow module, or an error that says what needs it and how to get it."""
    try:
        import pyarrow
    except ImportError:
        raise ImportError(f"{what} needs the pyarrow package: pip install pyarrow") from None
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


def name_columns(columns: Sequence[Column]) -> str:
    """The names of columns, not too many of them."""
    names = ", ".join(repr(c.name) for c in columns[:LISTED])
    more = len(columns) - LISTED
    return f"{names} and {more} more" if more > 0 else names or "no columns"


def nearest(name: str, columns: Sequence[Column]) -> str:
    """The end of a sentence on a column that is not there."""
    return did_you_mean(name, [c.name for c in columns]) or f"; it has {name_columns(columns)}"


def _kind(type: Any) -> Kind:
    types = arrow().types
    if types.is_dictionary(type):
        return "text" if _is(type.value_type, _STRINGS) else "other"
    if _is(type, _STRINGS):
        return "text"
    if _is(type, _NUMBERS) or types.is_null(type):  # a column of nulls only: all values are missing
        return "number"
    if _is(type, _LISTS):
        return "list" if _is(type.value_type, _NUMBERS) else "other"
    return "vector" if types.is_struct(type) and _is_vector(type) else "other"


def _is_vector(type: Any) -> bool:
    """Whether a struct has the fields of a vector, each of a type that fits."""
    fields = {field.name: field.type for field in type}
    if len(fields) != type.num_fields or set(fields) != _VECTOR:
        return False
    whole = arrow().types.is_integer
    indices, values = fields["indices"], fields["values"]
    if not (_is(indices, _LISTS) and _is(values, _LISTS)):
        return False
    plain = whole(fields["type"]) and whole(fields["size"]) and whole(indices.value_type)
    return bool(plain and _is(values.value_type, _NUMBERS))


# As pyarrow calls them. Bytes are what writers leave of strings that do not annotate them; not all
# versions know views.
_NUMBERS = ("integer", "floating", "boolean", "decimal")
_STRINGS = ("string", "large_string", "string_view")
_BYTES = ("binary", "large_binary", "fixed_size_binary")
_LISTS = ("list", "large_list", "fixed_size_list")


def _is(type: Any, kinds: Sequence[str]) -> bool:
    """Whether a type is one of some kinds."""
    tests = (getattr(arrow().types, f"is_{kind}", None) for kind in kinds)
    return any(test is not None and test(type) for test in tests)


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
    """Whether each element of an array is missing.

    From the bits themselves: pyarrow's own conversion to NumPy would load pandas.
    """
    bits = column.buffers()[0]
    if column.null_count == 0 or bits is None:  # a type without values has nulls and no bits
        return np.full(len(column), column.null_count > 0)
    valid = np.unpackbits(np.frombuffer(bits, np.uint8), bitorder="little")
    return valid[column.offset : column.offset + len(column)] == 0


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


# ---- columns that have a role, as arrays ------------------------------------------------------


_EXACT = 2.0**53  # integers below are float64 numbers, each by itself


def as_numbers(column: Any, role: str, name: str, source: str) -> Array:
    """The finite float64 numbers of a column that has a role, one per row."""
    if _kind(column.type) != "number":
        first = next((str(v) for v in column if v.is_valid), None)
        told = f"; the first value is {first[:60]!r}" if first is not None else ""
        raise DataFormatError(
            f"{source}: the {role} column {name!r} is {_type_words(column.type)}, not numbers"
            f"{told}; convert it to numbers, or choose another with {role}="
        )
    whole = one_array(column)
    numbers = plain_numbers(whole)[0]
    out = numbers.astype(np.float64)
    out[missing_of(whole)] = np.nan
    if (row := first_true(~np.isfinite(out))) is not None:
        what = "is missing" if np.isnan(out[row]) else f"is {out[row]}"
        raise DataFormatError(
            f"{source}: the {role} of row {row} (column {name!r}) {what}; every row needs a number"
        )
    if role == "label":
        try:
            check_apart(numbers, f"the label column {name!r}")
        except ValueError as error:
            raise DataFormatError(f"{source}: {error}") from None
    return out


def as_query_ids(column: Any, name: str, source: str, is_text: bool = False) -> Array:
    """Query ids: integers as they are, others as an object array, one object per id.

    Of a text, where all is written in one way, ids that are integers are taken for integers.
    """
    types, whole = arrow().types, one_array(_plain_ids(column, name, source))
    if whole.null_count:
        raise _no_id(missing_of(whole), name, source)
    if not types.is_dictionary(whole.type):
        ids = plain_numbers(whole)[0]
        if types.is_floating(whole.type) and not np.isfinite(ids).all():
            raise _no_id(~np.isfinite(ids), name, source)
        return ids.astype(np.int64) if types.is_floating(whole.type) and _are_whole(ids) else ids
    codes = plain_numbers(whole.indices)[0]
    found = [None if v is None else str(v) for v in whole.dictionary.to_pylist()]
    for code, id_ in enumerate(found):
        if (id_ is None or (is_text and not id_)) and (codes == code).any():
            raise _no_id(codes == code, name, source)
    numbers = as_integers([id_ or "0" for id_ in found]) if is_text else None
    names: Array = np.array(found, dtype=object) if numbers is None else numbers
    return names[codes]


def _plain_ids(column: Any, name: str, source: str) -> Any:
    """Ids as numbers, or as codes of strings: those of all chunks may be more than one array holds.

    Categories of numbers are these numbers; bytes are UTF-8 text.
    """
    pa = arrow()
    types, kind = pa.types, column.type
    try:
        if types.is_dictionary(kind) and not _is(kind.value_type, _STRINGS):
            column, kind = column.cast(kind.value_type), kind.value_type
        if _is(kind, _BYTES):
            column, kind = column.cast(pa.large_string()), pa.large_string()
        if types.is_null(kind) or types.is_nested(kind):
            raise pa.ArrowInvalid("no ids")
        is_plain = types.is_dictionary(kind) or _is(kind, ("boolean", "integer", "floating"))
        return column if is_plain else column.dictionary_encode()
    except pa.ArrowException:
        raise _no_ids(column, "qid", name, source) from None


def _no_id(is_missing: Array, name: str, source: str) -> DataFormatError:
    return DataFormatError(
        f"{source}: the qid of row {int(np.argmax(is_missing))} (column {name!r}) is missing; "
        "every row belongs to a query"
    )


def _no_ids(column: Any, role: str, name: str, source: str) -> DataFormatError:
    return DataFormatError(
        f"{source}: the {role} column {name!r} is {column.type}; ids are numbers or strings"
    )


def as_docids(column: Any, name: str, source: str) -> Words:
    """Document ids as text; a missing one is empty."""
    pa = arrow()
    try:
        if pa.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        if pa.types.is_floating(column.type):
            numbers = (plain_numbers(part)[0][~missing_of(part)] for part in column.chunks)
            is_whole = all(map(_are_whole, numbers))
            column = column.cast(pa.int64(), safe=False) if is_whole else column
        # Before the chunks are joined: together they may be longer than a plain string array.
        whole = one_array(column.cast(pa.large_string()))
    except pa.ArrowException:
        raise _no_ids(column, "docid", name, source) from None
    if whole.null_count:
        whole = whole.fill_null("")
    _, offsets, text = whole.buffers()
    ends = np.frombuffer(offsets, np.int64, whole.offset + len(whole) + 1)[whole.offset :]
    data = np.frombuffer(text, np.uint8) if text is not None else np.empty(0, np.uint8)
    return Words(data[ends[0] : ends[-1]], ends - ends[0])


def _are_whole(ids: Array) -> bool:
    """Whether floats are integers: pandas makes floats of integers with gaps."""
    return bool(np.all((np.abs(ids) < _EXACT) & (ids == np.floor(ids))))


def _type_words(type: Any) -> str:
    types = arrow().types
    has_text = types.is_dictionary(type) or "string" in str(type)
    return f"text ({type})" if has_text else str(type)
