"""Formats of data, for reading and writing: by name, by the first bytes, or as the user says."""

from __future__ import annotations

import os
from typing import Any

from linrank.data.frames import is_frame
from linrank.errors import DataFormatError, did_you_mean
from linrank.io.blocks import HEAD, open_stream

TABLES = ("parquet", "arrow", "csv", "tsv")
READ = ("svmlight", *TABLES)
WRITTEN = ("svmlight", *TABLES, "store", "qrels")
TEXTS = ("svmlight", "csv", "tsv", "qrels")  # that may be compressed
COMPRESSIONS = (".gz", ".bz2", ".xz", ".zst")
_ENDINGS = {
    "parquet": (".parquet", ".pq"),
    "arrow": (".arrow", ".arrows", ".feather", ".ipc"),
    "csv": (".csv",),
    "tsv": (".tsv", ".tab"),
    "qrels": (".qrels",),
    "svmlight": (".dat", ".letor", ".libsvm", ".svm", ".svmlight", ".txt"),
}
_EXTENSIONS = {ending: format for format, endings in _ENDINGS.items() for ending in endings}
_OTHER_NAMES = {"letor": "svmlight", "libsvm": "svmlight", "text": "svmlight"}
_OTHER_NAMES |= {"ipc": "arrow", "feather": "arrow"}
_OF_TREC = {
    ".qrels": "judgments, not rows; give the rows, and these as their qrels",
    ".run": "a run, not rows; linrank.load_run reads it, and linrank evaluate measures it",
}
_MAGIC = {b"PAR1": "parquet", b"ARROW1": "arrow"}
_STREAM = b"\xff\xff\xff\xff"  # in front of each message of an Arrow stream


def extension_of(name: str) -> tuple[str, bool]:
    """The extension that tells the format, in lower case, and whether one of a compression follows.

    Examples
    --------
    >>> extension_of("a.CSV.gz"), extension_of("a.csv")
    (('.csv', True), ('.csv', False))
    """
    stem, extension = os.path.splitext(name.lower())
    if extension not in COMPRESSIONS:
        return extension, False
    return os.path.splitext(stem)[1], True


# ---- reading ------------------------------------------------------------------------------------


def open_source(source: Any) -> tuple[Any, str, bytes]:
    """(what to read, its name in messages, its first bytes) of a path, "-" or file object.

    What can be opened again stays a path; of anything else no byte is lost.
    """
    is_path = isinstance(source, (str, bytes, os.PathLike)) and source != "-"
    if is_path and os.path.isdir(source):
        return source, os.fsdecode(source), b"PAR1"
    opened = open_stream(source)
    if is_path and os.path.isfile(source):
        opened.close()
        return source, opened.name, opened.head
    return opened, opened.name, opened.head


def open_rows(source: Any, format: str | None) -> tuple[tuple[Any, str, bytes], str]:
    """What `open_source` returns of a text or a table, and its format."""
    if is_frame(source):
        return (source, "", b""), "frame"
    opened = open_source(source)
    return opened, format_of(opened[1], opened[2], format)


def parquet_parts(path: Any) -> list[str]:
    """The Parquet files of a folder, as Spark writes a table, by name; none if it is a store."""
    names = sorted(os.listdir(os.fsdecode(path)))
    if "manifest.json" in names:
        return []
    parts = [name for name in names if name.endswith(".parquet") and name[0] not in "._"]
    return [os.path.join(os.fsdecode(path), name) for name in parts]


def format_of(name: str, head: bytes, wanted: str | None) -> str:
    """The format to read: as wanted, by the first bytes, by the name, else SVMlight text.

    Examples
    --------
    >>> format_of("a", b"PAR1....", None), format_of("b.csv.gz", b"", None)
    ('parquet', 'csv')
    """
    if wanted is not None:
        if wanted in READ:
            return wanted
        hint = did_you_mean(wanted, READ, 0.5)
        raise ValueError(f"format must be one of {', '.join(READ)}, got {wanted!r}{hint}")
    if (found := binary_format(head)) is not None:
        return found
    extension, _ = extension_of(name)
    if extension in _OF_TREC:
        raise ValueError(f"{name}: holds {_OF_TREC[extension]}")
    named = _EXTENSIONS.get(extension)
    if named in ("parquet", "arrow"):
        raise DataFormatError(
            f"{name}: its name says {named.capitalize()}, but it begins with {head[:8]!r}: it is "
            "damaged or something else; say with format= what it is"
        )
    return named if named in ("csv", "tsv") else "svmlight"


def binary_format(head: bytes) -> str | None:
    """The format that data begin like, of those that are no text; None for a text."""
    found = next((kind for magic, kind in _MAGIC.items() if head.startswith(magic)), None)
    return "arrow" if found is None and is_arrow_stream(head) else found


def is_arrow_stream(head: bytes) -> bool:
    """Whether these are the first bytes of an Arrow stream: a mark and a length below 2³⁰."""
    return head.startswith(_STREAM) and len(head) >= HEAD and head[7] < 0x40


# ---- writing ------------------------------------------------------------------------------------


def target_format(path: str | os.PathLike[str], to: str | None = None) -> str:
    """Return the format to write `path` in: that of its name, unless `to` says which.

    A store is a folder: a name that ends in a slash or in .store, or has no extension (a number,
    as in letor4.0, is none). Any other extension means something that is not written: ValueError.

    Examples
    --------
    >>> target_format("train.parquet"), target_format("train.txt.gz"), target_format("train")
    ('parquet', 'svmlight', 'store')
    """
    name = os.fspath(path)
    if to is None and name == "-":
        files = ", ".join(format for format in WRITTEN if format != "store")
        raise ValueError(
            f"standard output has no extension to tell the format by; say one of {files}"
        )
    extension, is_compressed = extension_of(name)
    is_folder = os.path.isdir(name)
    if to is not None:
        found = _OTHER_NAMES.get(to.lower(), to.lower())
        if found not in WRITTEN:
            hint = did_you_mean(found, WRITTEN)
            raise ValueError(f"there is no format {to!r} to write, only {', '.join(WRITTEN)}{hint}")
    elif is_folder or extension in ("", ".store") or extension[1:].isdecimal():
        found = "store"
    elif extension in _EXTENSIONS:
        found = _EXTENSIONS[extension]
    else:
        raise ValueError(
            f"{name}: no format that is written has the extension {extension}; those that are: "
            f"{' '.join(_EXTENSIONS)}, of text also with {' '.join(COMPRESSIONS)} behind; for a "
            f"store, a folder, end the name in / or .store{did_you_mean(extension, _EXTENSIONS)}"
        )
    if is_compressed and not is_folder and found not in TEXTS:
        raise ValueError(
            f"{name}: only text is compressed as a whole (.csv.gz, .txt.xz); tables of other "
            "formats are compressed inside: leave the last extension out"
        )
    return found


def table_format(path: str) -> str | None:
    """The format of a table, where the name of a file says that it is one; else None.

    Examples
    --------
    >>> table_format("scores.csv.gz"), table_format("scores.txt")
    ('csv', None)
    """
    return target_format(path) if _EXTENSIONS.get(extension_of(path)[0]) in TABLES else None
