"""The columns of a table that are no features: numbers, query ids, document ids."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linrank.data.vectors import check_apart
from linrank.data.words import Words
from linrank.errors import DataFormatError
from linrank.tabular.buffers import missing_of, one_array, plain_numbers
from linrank.tabular.columns import arrow, holds_bytes, holds_text
from linrank.tabular.docids import Docids

__all__ = ["as_docids", "as_numbers", "as_query_ids"]

Array = NDArray[Any]
_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,18}")  # as str() writes one
_EXACT = 2.0**53  # integers below are float64 numbers, each by itself


def as_numbers(column: Any, role: str, name: str, source: str) -> Array:
    """The finite float64 numbers of a column that has a role, one per row."""
    if not _is_numeric(column.type):
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
    finite = np.isfinite(out)
    if not finite.all():
        row = int(np.argmin(finite))
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
        raise _no_id(int(np.argmax(missing_of(whole))), name, source)
    if types.is_integer(whole.type) or types.is_boolean(whole.type):
        return plain_numbers(whole)[0]
    if types.is_floating(whole.type):
        return _whole_numbers(plain_numbers(whole)[0], name, source)
    codes = plain_numbers(whole.indices)[0]
    found = [None if v is None else str(v) for v in whole.dictionary.to_pylist()]
    for code, id_ in enumerate(found):
        if (id_ is None or (is_text and not id_)) and (codes == code).any():
            raise _no_id(int(np.argmax(codes == code)), name, source)
    if is_text and all(map(_is_integer, found)):
        numbers: Array = np.array([int(id_ or "0") for id_ in found], np.int64)
        return numbers[codes]
    names: Array = np.array(found, dtype=object)
    return names[codes]


def _is_integer(id_: str | None) -> bool:
    """Whether an id, where there is one, is an integer of 64 bits."""
    if id_ is None or not id_:
        return True
    return _INTEGER.fullmatch(id_) is not None and -(2**63) <= int(id_) < 2**63


def _plain_ids(column: Any, name: str, source: str) -> Any:
    """Ids as numbers, or as codes of strings: those of all chunks may be more than one array holds.

    Categories of numbers are these numbers; bytes are UTF-8 text.
    """
    pa = arrow()
    types, kind = pa.types, column.type
    try:
        if types.is_dictionary(kind) and not holds_text(kind.value_type):
            column, kind = column.cast(kind.value_type), kind.value_type
        if holds_bytes(kind):
            column, kind = column.cast(pa.large_string()), pa.large_string()
        if types.is_null(kind) or types.is_nested(kind):
            raise pa.ArrowInvalid("no ids")
        if types.is_dictionary(kind) or types.is_boolean(kind) or types.is_integer(kind):
            return column
        return column if types.is_floating(kind) else column.dictionary_encode()
    except pa.ArrowException:
        raise DataFormatError(
            f"{source}: the qid column {name!r} is {column.type}; ids are numbers or strings"
        ) from None


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
    try:
        if pa.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        if pa.types.is_floating(column.type):  # integers with gaps, as pandas has them
            is_whole = all(map(_are_whole, column.chunks))
            column = column.cast(pa.int64(), safe=False) if is_whole else column
        # Before the chunks are joined: together they may be longer than a plain string array.
        whole = one_array(column.cast(pa.large_string()))
    except pa.ArrowException:
        raise DataFormatError(
            f"{source}: the docid column {name!r} is {column.type}; ids are numbers or strings"
        ) from None
    if whole.null_count:
        whole = whole.fill_null("")
    _, offsets, text = whole.buffers()
    ends = np.frombuffer(offsets, np.int64, whole.offset + len(whole) + 1)[whole.offset :]
    data = np.frombuffer(text, np.uint8) if text is not None else np.empty(0, np.uint8)
    return Docids(Words(data[ends[0] : ends[-1]], ends - ends[0]))


def _are_whole(numbers: Any) -> bool:
    values = plain_numbers(numbers)[0][~missing_of(numbers)]
    return bool(np.all((np.abs(values) < _EXACT) & (values == np.floor(values))))


def _is_numeric(type: Any) -> bool:
    types = arrow().types
    plain = types.is_integer(type) or types.is_floating(type)
    return bool(plain or types.is_boolean(type) or types.is_decimal(type) or types.is_null(type))


def _type_words(type: Any) -> str:
    types = arrow().types
    has_text = types.is_dictionary(type) or "string" in str(type)
    return f"text ({type})" if has_text else str(type)
