"""What a source is: told by its first bytes, then by its name."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linrank.data.dataset import Dataset
from linrank.data.frames import as_weights
from linrank.data.queries import as_sizes
from linrank.errors import DataFormatError, did_you_mean
from linrank.io.blocks import Replay, name_of, standard_input
from linrank.system.durable import naming

FORMATS = ("svmlight", "parquet", "arrow", "csv", "tsv")

_MAGIC = {b"PAR1": "parquet", b"ARROW1": "arrow"}
_STREAM = b"\xff\xff\xff\xff"  # in front of each message of an Arrow stream
_BINARY = {".parquet": "Parquet", ".arrow": "Arrow", ".feather": "Arrow"}
_EXTENSIONS = {".csv": "csv", ".tsv": "tsv", ".tab": "tsv"}
_COMPRESSIONS = (".gz", ".bz2", ".xz", ".zst")
_HEAD = 8


def open_source(source: Any) -> tuple[Any, str, bytes]:
    """(what to read, its name in messages, its first bytes) of a path, "-" or file object.

    What can be opened again stays a path; of anything else no byte is lost.
    """
    if hasattr(source, "read"):
        opened = Replay(source, name_of(source), _HEAD)
    elif source == "-":
        opened = Replay(standard_input(), "<stdin>", _HEAD)
    else:
        name = os.fsdecode(os.fspath(source))
        if os.path.isdir(source):
            return source, name, b"PAR1"
        if stat.S_ISREG(os.stat(source).st_mode):
            with naming(name), open(source, "rb") as file:
                return source, name, file.read(_HEAD)
        opened = Replay(open(source, "rb", buffering=0), name, _HEAD)  # noqa: SIM115  (a pipe)
    return opened, opened.name, opened.head


def parquet_parts(path: Any) -> list[str]:
    """The Parquet files of a folder, as Spark writes a table, by name; none if it is a store."""
    names = sorted(os.listdir(os.fsdecode(path)))
    if "manifest.json" in names:
        return []
    parts = [name for name in names if name.endswith(".parquet") and name[0] not in "._"]
    return [os.path.join(os.fsdecode(path), name) for name in parts]


def format_of(name: str, head: bytes, wanted: str | None) -> str:
    """The format: as wanted, by the first bytes, by the name, else SVMlight text.

    Examples
    --------
    >>> format_of("a", b"PAR1....", None), format_of("b.csv.gz", b"", None)
    ('parquet', 'csv')
    """
    by_bytes = next((kind for magic, kind in _MAGIC.items() if head.startswith(magic)), None)
    if by_bytes is None and is_arrow_stream(head):
        by_bytes = "arrow"
    if wanted is None:
        _check_name(name, head, by_bytes)
        return by_bytes or _by_name(name)
    if wanted not in FORMATS:
        hint = did_you_mean(wanted, FORMATS, 0.5)
        raise ValueError(f"format must be one of {', '.join(FORMATS)}, run, got {wanted!r}{hint}")
    return wanted


def is_arrow_stream(head: bytes) -> bool:
    """Whether these are the first bytes of an Arrow stream: a mark and a length below 2³⁰."""
    return head.startswith(_STREAM) and len(head) >= _HEAD and head[7] < 0x40


def _check_name(name: str, head: bytes, by_bytes: str | None) -> None:
    """Fail on a file that is called Parquet or Arrow and does not begin like either."""
    extension = os.path.splitext(name.lower())[1]
    if by_bytes is None and extension in _BINARY:
        raise DataFormatError(
            f"{name}: its name says {_BINARY[extension]}, but it begins with {head[:8]!r}: it is "
            "damaged or something else; say with format= what it is"
        )


def _by_name(name: str) -> str:
    stem, extension = os.path.splitext(name.lower())
    if extension in _COMPRESSIONS:
        extension = os.path.splitext(stem)[1]
    return _EXTENSIONS.get(extension, "svmlight")


Array = NDArray[Any]
_LARGEST = 2.0**40  # rows of a query: more fit nowhere, and their sum stays an integer
_IGNORE = "remove one, or ignore the files beside the data with sidecars=False"


def attach(data: Dataset, path: Any, note: Callable[[str], object]) -> Dataset:
    """The data with what the files beside it say.

    They are named like the data (with or without the ending of a compression) and end in
    ``.query`` or ``.group`` (the number of rows of each query, in order), ``.weight`` (a number a
    row, or a query) and ``.position`` (a number a row); one number a line, as LightGBM and XGBoost
    have them.
    """
    found = files_beside(path)
    data = _with_queries(data, found)
    if ".weight" in found:
        data = _with_weights(data, found[".weight"])
    if ".position" in found:
        data = _with_positions(data, found[".position"])
    for name in found.values():
        note(f"read beside {os.fsdecode(path)}: {name}")
    return data


def files_beside(path: Any) -> dict[str, str]:
    """The files beside a text that `attach` would read, by their endings."""
    path = os.fsdecode(path)
    return {
        ending: name
        for ending in (".query", ".group", ".weight", ".position")
        if (name := _beside(path, ending)) is not None
    }


def _beside(path: str, ending: str) -> str | None:
    names = [path + ending]
    stem, last = os.path.splitext(path)
    if last.lower() in _COMPRESSIONS:
        names.append(stem + ending)
    return next((name for name in names if os.path.isfile(name)), None)


def _with_queries(data: Dataset, found: dict[str, str]) -> Dataset:
    names = [found[ending] for ending in (".query", ".group") if ending in found]
    if not names:
        return data
    if len(names) > 1:
        raise DataFormatError(f"{names[0]} and {names[1]} both tell the queries; {_IGNORE}")
    if data.qid is not None:
        raise DataFormatError(
            f"{names[0]} tells the queries, and {data.source} has query ids; {_IGNORE}"
        )
    numbers = _numbers(names[0])
    bad = (numbers != np.floor(numbers)) | (numbers < 1) | (numbers > _LARGEST)
    sizes = np.where(bad, 0, numbers).astype(np.int64)
    if bad.any():
        line = int(np.argmax(bad))
        raise DataFormatError(
            f"{names[0]}:{line + 1}: {numbers[line]:g} is no number of rows of a query"
        )
    if int(sizes.sum()) != data.n_rows:
        raise DataFormatError(
            f"{names[0]}: its {len(sizes):,} queries have {int(sizes.sum()):,} rows together, "
            f"{data.source} has {data.n_rows:,}"
        )
    qid = np.repeat(np.arange(len(sizes)), as_sizes(sizes, data.n_rows))
    return replace(data, qid=qid)


def _with_weights(data: Dataset, name: str) -> Dataset:
    """Weights u of rows, or c of queries: a pair weighs ``u_i u_j``, so u = √c in a query."""
    if data.weight is not None:
        raise DataFormatError(f"{name} tells weights, and {data.source} has some; {_IGNORE}")
    weights = _numbers(name)
    queries = data.queries
    if len(weights) not in (data.n_rows, queries.n_queries):
        raise DataFormatError(
            f"{name}: {len(weights):,} weights for the {data.n_rows:,} rows and "
            f"{queries.n_queries:,} queries of {data.source}"
        )
    if (weights < 0).any():
        line = int(np.argmax(weights < 0))
        raise DataFormatError(f"{name}:{line + 1}: the weight {weights[line]:g} is below 0")
    if len(weights) != data.n_rows:
        weights = queries.scatter(np.repeat(np.sqrt(weights), np.diff(queries.offsets)))
    weighted = replace(data, weight=as_weights(weights, data.n_rows, name))
    weighted.__dict__["queries"] = queries  # weights do not change them
    return weighted


def _with_positions(data: Dataset, name: str) -> Dataset:
    if data.position is not None:
        raise DataFormatError(f"{name} tells positions, and {data.source} has some; {_IGNORE}")
    positions = _numbers(name)
    if len(positions) != data.n_rows:
        raise DataFormatError(
            f"{name}: {len(positions):,} positions for the {data.n_rows:,} rows of {data.source}"
        )
    return replace(data, position=positions)


def _numbers(name: str) -> Array:
    """One finite number a line; an error names the line."""
    with naming(name), open(name, encoding="utf-8", errors="backslashreplace") as file:
        lines = file.read().split("\n")
    while lines and not lines[-1].strip():
        lines.pop()
    numbers = np.empty(len(lines))
    for i, line in enumerate(lines):
        try:
            numbers[i] = float(line)
        except ValueError:
            numbers[i] = np.nan
        if not np.isfinite(numbers[i]):
            raise DataFormatError(f"{name}:{i + 1}: expected one number, got {line[:60]!r}")
    return numbers
