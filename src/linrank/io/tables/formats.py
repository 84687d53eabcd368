"""What a source is: told by its first bytes, then by its name."""

from __future__ import annotations

import os
import stat
from typing import Any

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
