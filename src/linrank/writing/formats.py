"""What a data set can be written as, and how a path tells it."""

from __future__ import annotations

import os

from linrank.nearest import did_you_mean

__all__ = ["COMPRESSIONS", "FORMATS", "TABLES", "TEXTS", "target_format"]

FORMATS = ("svmlight", "parquet", "arrow", "csv", "tsv", "store", "qrels")
TABLES = ("parquet", "arrow", "csv", "tsv")
TEXTS = ("svmlight", "csv", "tsv", "qrels")  # that may be compressed
COMPRESSIONS = (".gz", ".bz2", ".xz")
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

    A name without an extension, or with one that means nothing here, is that of a store.

    Examples
    --------
    >>> target_format("train.parquet"), target_format("train.txt.gz"), target_format("train")
    ('parquet', 'svmlight', 'store')
    """
    name = os.fspath(path)
    if to is not None:
        return _named(to)
    if name == "-":
        raise ValueError(
            f"standard output has no extension to tell the format by; say one of "
            f"{', '.join(set_of_files())}"
        )
    if os.path.isdir(name):
        return "store"
    stem, extension = os.path.splitext(name.lower())
    if extension in COMPRESSIONS:
        extension = os.path.splitext(stem)[1]
        if _EXTENSIONS.get(extension) not in TEXTS:
            raise ValueError(
                f"{name}: only text is compressed as a whole (.csv.gz, .txt.xz); tables of other "
                "formats are compressed inside: leave the last extension out"
            )
    return _EXTENSIONS.get(extension, "store")


def set_of_files() -> tuple[str, ...]:
    """The formats that are one file, and so can go into a pipe."""
    return tuple(name for name in FORMATS if name != "store")


def _named(to: str) -> str:
    name = _OTHER_NAMES.get(to.lower(), to.lower())
    if name in FORMATS:
        return name
    hint = did_you_mean(name, FORMATS)
    raise ValueError(f"there is no format {to!r} to write, only {', '.join(FORMATS)}{hint}")
