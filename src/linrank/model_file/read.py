"""Read a model file that may be damaged, foreign or hostile."""

from __future__ import annotations

import json
import os
import re
import stat
from typing import TYPE_CHECKING, Any, NoReturn

from linrank.durable import naming
from linrank.errors import ModelFormatError
from linrank.model_file import kernel, linear
from linrank.model_file.contents import (
    FOREIGN,
    FORMAT,
    KERNEL,
    MAX_INLINE_FEATURES,
    MAX_JSON_BYTES,
    RESAVE,
    VERSION,
    Invalid,
)
from linrank.model_file.fields import field, integer

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    from linrank.model_file.contents import Contents, KernelContents

    T = TypeVar("T")

__all__ = ["read"]

# What a model can hold at most: four lists of a million entries, and a few dozen settings. Those
# of statistics are of models of 20,000 features at most.
MAX_COMMAS = 4 * MAX_INLINE_FEATURES + 1000
MAX_BRACKETS = 64
MAX_NUMBER_LENGTH = 64


def read(path: str | os.PathLike[str], build: Callable[[Contents | KernelContents], T]) -> T:
    """``build(contents)`` of the file at `path`.

    Whatever is wrong with the file, the values that `build` rejects with a TypeError or
    ValueError included, becomes a ModelFormatError that names the file and the remedy.
    """
    name = os.fspath(path)
    try:
        contents = _decode(_parse(_read_bytes(name)), os.path.dirname(name))
        try:
            return build(contents)
        except (TypeError, ValueError) as error:
            raise Invalid(str(error)) from None
    except Invalid as error:
        raise ModelFormatError(f"{name}: {error.problem}; {error.remedy}") from None


def _read_bytes(name: str) -> bytes:
    status = os.stat(name)
    if not stat.S_ISREG(status.st_mode):
        raise Invalid("not a regular file", FOREIGN)
    size = status.st_size
    if size == 0:
        raise Invalid("the file is empty")
    if size > MAX_JSON_BYTES:
        raise Invalid(f"{size} bytes is more than a model can take ({MAX_JSON_BYTES})", FOREIGN)
    with naming(name), open(name, "rb") as file:
        content = file.read(size + 1)  # the buffer is taken in advance: no more than needed
    if len(content) != size:
        raise Invalid("the file changed while it was read", "load it again")
    return content


_STRING = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_LONG_NUMBER = re.compile(rb"[-+.0-9eE]{%d}" % (MAX_NUMBER_LENGTH + 1))


def _check_bulk(content: bytes) -> None:
    """Count what the parser would make: a value can take 25 times the memory of its text."""
    skeleton = _STRING.sub(b"", content)
    if skeleton.count(b"[") + skeleton.count(b"{") > MAX_BRACKETS:
        raise Invalid("more lists and objects than a linrank model has", FOREIGN)
    if skeleton.count(b",") > MAX_COMMAS:
        raise Invalid(f"more than {MAX_COMMAS} values", FOREIGN)
    if _LONG_NUMBER.search(skeleton):
        raise Invalid(f"a number of more than {MAX_NUMBER_LENGTH} characters", FOREIGN)


def _parse(content: bytes) -> dict[str, Any]:
    if content.startswith((b"PAR1", b"ARROW1")):
        raise Invalid("a table (Parquet or Arrow), not a model", FOREIGN)
    _check_bulk(content)
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        raise Invalid(f"not a text file (byte {error.start} is not UTF-8)", FOREIGN) from None
    try:
        document = json.loads(
            text, object_pairs_hook=_without_duplicates, parse_constant=_reject_constant
        )
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        # Damage leaves the first brace in place; a file without it was never a model.
        remedy = RESAVE if text.lstrip().startswith("{") else FOREIGN
        raise Invalid(f"not JSON at {where} ({error.msg})", remedy) from None
    if not isinstance(document, dict):
        raise Invalid(f"holds a {type(document).__name__}, not an object", FOREIGN)
    return document


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for key, value in pairs:
        if key in result:
            raise Invalid(f"the key {key[:80]!r} occurs twice")
        result[key] = value
    return result


def _reject_constant(name: str) -> NoReturn:
    raise Invalid(f"holds {name}, which is not a finite number")


def _decode(document: dict[str, Any], folder: str) -> Contents | KernelContents:
    if document.get("format") != FORMAT:
        raise Invalid(f'not a linrank model (no "format": "{FORMAT}")', FOREIGN)
    version = integer(document, "version", 1, 2**31)
    if version > VERSION:
        raise Invalid(
            f"format version {version} is newer than {VERSION}, the newest that this linrank reads",
            "upgrade with pip install --upgrade linrank",
        )
    kind = field(document, "kind", str)
    if kind == "linear":
        return linear.decode(document, folder)
    if kind == "kernel" and version >= KERNEL:
        return kernel.decode(document, folder)
    expected = "'linear' or 'kernel'" if version >= KERNEL else "'linear'"
    raise Invalid(f"kind is {kind[:80]!r} in version {version}, expected {expected}", FOREIGN)
