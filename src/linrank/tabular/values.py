"""Columns of Arrow as arrays: numbers with missing values, ids, document ids."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linrank.data.words import Words
from linrank.errors import DataFormatError
from linrank.tabular.columns import arrow
from linrank.tabular.docids import Docids

__all__ = ["as_docids", "as_numbers", "as_query_ids", "plain_numbers"]

Array = NDArray[Any]
_FLOATS = {"float": "float32", "double": "float64", "halffloat": "float16"}
_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,17}")  # as str() writes one, within int64
_EXACT = 2.0**53  # integers below are float64 numbers, each by itself


def plain_numbers(column: Any) -> tuple[Array, Array | None, int]:
    """The values of a numeric array, its validity bits if any is missing, and the first bit.

    Views, for the types that the core knows; others are converted.
    """
    pa = arrow()
    if pa.types.is_null(column.type):
        return np.full(len(column), np.nan, np.float32), None, 0
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.uint8())
    elif pa.types.is_decimal(column.type):
        column = column.cast(pa.float64())
    name = str(column.type)
    dtype = np.dtype(_FLOATS.get(name, name))
    bits, data = column.buffers()
    end = column.offset + len(column)
    if data is None:  # nothing there: no rows, or no values in any
        return np.full(len(column), np.nan, np.float32), None, 0
    values = np.frombuffer(data, dtype, end)[column.offset :]
    if dtype == np.float16:
        values = values.astype(np.float32)
    if column.null_count == 0 or bits is None:
        return values, None, 0
    return values, np.frombuffer(bits, np.uint8), column.offset


def as_numbers(column: Any, role: str, name: str, source: str) -> Array:
    """The finite float64 numbers of a column that has a role, one per row."""
    pa = arrow()
    if not _is_numeric(column.type):
        first = next((str(v) for v in column if v.is_valid), None)
        told = f"; the first value is {first[:60]!r}" if first is not None else ""
        raise DataFormatError(
            f"{source}: the {role} column {name!r} is {_type_words(column.type)}, not numbers"
            f"{told}; convert it to numbers, or choose another with {role}="
        )
    parts = [plain_numbers(chunk) for chunk in column.chunks]
    out = np.empty(len(column), np.float64)
    begin = 0
    for (values, _, _), chunk in zip(parts, column.chunks, strict=True):
        out[begin : begin + len(values)] = values
        if chunk.null_count:
            missing = chunk.is_null().to_numpy(zero_copy_only=False)
            out[begin : begin + len(values)][missing] = np.nan
        begin += len(values)
    del pa
    finite = np.isfinite(out)
    if not finite.all():
        row = int(np.argmin(finite))
        what = "is missing" if np.isnan(out[row]) else f"is {out[row]}"
        raise DataFormatError(
            f"{source}: the {role} of row {row} (column {name!r}) {what}; every row needs a number"
        )
    return out


def as_query_ids(column: Any, name: str, source: str, is_text: bool = False) -> Array:
    """Query ids: integers as int64 or uint64, others as an object array, one object per id.

    Of a text, where all is written in one way, ids that are integers are taken for integers.
    """
    pa = arrow()
    if column.null_count:
        row = int(np.argmax(column.is_null().to_numpy()))
        raise _no_id(row, name, source)
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.uint8())
    if pa.types.is_integer(column.type):
        return np.asarray(column.to_numpy())
    if pa.types.is_floating(column.type):
        return _whole_numbers(column.to_numpy(), name, source)
    if pa.types.is_nested(column.type) or pa.types.is_null(column.type):
        raise DataFormatError(
            f"{source}: the qid column {name!r} is {column.type}; ids are numbers or strings"
        )
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    whole = column.unify_dictionaries().combine_chunks()
    whole = whole.chunk(0) if isinstance(whole, pa.ChunkedArray) else whole
    codes = whole.indices.to_numpy(zero_copy_only=False)
    names = [str(v) for v in whole.dictionary.to_pylist()]
    if is_text and all(_INTEGER.fullmatch(v) for v in names):
        found: Array = np.array([int(v) for v in names], np.int64)[codes]
    else:
        found = np.array(names, dtype=object)[codes]
    return found


def _whole_numbers(ids: Array, name: str, source: str) -> Array:
    """Float ids as integers where they are: pandas makes floats of integers with gaps."""
    bad = ~np.isfinite(ids)
    if bad.any():
        raise _no_id(int(np.argmax(bad)), name, source)
    whole = bool(np.all((np.abs(ids) < _EXACT) & (ids == np.floor(ids))))
    return ids.astype(np.int64) if whole else ids


def _no_id(row: int, name: str, source: str) -> DataFormatError:
    return DataFormatError(
        f"{source}: the qid of row {row} (column {name!r}) is missing; every row belongs to a query"
    )


def as_docids(column: Any, name: str, source: str) -> Docids:
    """Document ids as text; a missing one is none."""
    pa = arrow()
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_floating(column.type):
        column = pa.chunked_array([pa.array(_whole_numbers(column.to_numpy(), name, source))])
    try:
        column = column.cast(pa.large_string())
    except pa.ArrowException:
        raise DataFormatError(
            f"{source}: the docid column {name!r} is {column.type}; ids are numbers or strings"
        ) from None
    whole = column.combine_chunks()
    if isinstance(whole, pa.ChunkedArray):
        whole = whole.chunk(0) if whole.num_chunks else pa.array([], pa.large_string())
    whole = whole.fill_null("")
    _, offsets, text = whole.buffers()
    ends = np.frombuffer(offsets, np.int64, whole.offset + len(whole) + 1)[whole.offset :]
    data = np.frombuffer(text, np.uint8) if text is not None else np.empty(0, np.uint8)
    return Docids(Words(data[ends[0] : ends[-1]], ends - ends[0]))


def _is_numeric(type: Any) -> bool:
    types = arrow().types
    plain = types.is_integer(type) or types.is_floating(type)
    return bool(plain or types.is_boolean(type) or types.is_decimal(type) or types.is_null(type))


def _type_words(type: Any) -> str:
    types = arrow().types
    is_text = types.is_dictionary(type) or "string" in str(type)
    return f"text ({type})" if is_text else str(type)
