"""What a data set can be written as, and how a path tells it."""

from __future__ import annotations

import os

from linrank.errors import did_you_mean

FORMATS = ("svmlight", "parquet", "arrow", "csv", "tsv", "store", "qrels")
TABLES = ("parquet", "arrow", "csv", "tsv")
TEXTS = ("svmlight", "csv", "tsv", "qrels")  # that may be compressed
COMPRESSIONS = (".gz", ".bz2", ".xz", ".zst")
_EXTENSIONS = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".arrows": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".qrels": "qrels",
    ".dat": "svmlight",
    ".letor": "svmlight",
    ".libsvm": "svmlight",
    ".svm": "svmlight",
    ".svmlight": "svmlight",
    ".txt": "svmlight",
}
_OTHER_NAMES = {"letor": "svmlight", "libsvm": "svmlight", "text": "svmlight", "ipc": "arrow"}
_OTHER_NAMES["feather"] = "arrow"


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
        raise ValueError(
            f"standard output has no extension to tell the format by; say one of "
            f"{', '.join(set_of_files())}"
        )
    stem, extension = os.path.splitext(name.lower())
    is_compressed = extension in COMPRESSIONS and not os.path.isdir(name)
    if is_compressed:
        extension = os.path.splitext(stem)[1]
    found = _named(to) if to is not None else _told_by(name, extension)
    if is_compressed and found not in TEXTS:
        raise ValueError(
            f"{name}: only text is compressed as a whole (.csv.gz, .txt.xz); tables of other "
            "formats are compressed inside: leave the last extension out"
        )
    return found


def _told_by(name: str, extension: str) -> str:
    if os.path.isdir(name) or extension in ("", ".store") or extension[1:].isdecimal():
        return "store"
    if extension in _EXTENSIONS:
        return _EXTENSIONS[extension]
    raise ValueError(
        f"{name}: no format that is written has the extension {extension}; those that are: "
        f"{' '.join(_EXTENSIONS)}, of text also with {' '.join(COMPRESSIONS)} behind; for a store, "
        f"a folder, end the name in / or .store{did_you_mean(extension, _EXTENSIONS)}"
    )


def set_of_files() -> tuple[str, ...]:
    """The formats that are one file, and so can go into a pipe."""
    return tuple(name for name in FORMATS if name != "store")


def _named(to: str) -> str:
    name = _OTHER_NAMES.get(to.lower(), to.lower())
    if name in FORMATS:
        return name
    hint = did_you_mean(name, FORMATS)
    raise ValueError(f"there is no format {to!r} to write, only {', '.join(FORMATS)}{hint}")
