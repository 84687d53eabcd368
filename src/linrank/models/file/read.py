"""Read a model file that may be damaged, foreign or hostile."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING, Any

from linrank.errors import ModelFormatError
from linrank.models.file import kernel, linear
from linrank.models.file.contents import (
    FOREIGN,
    FORMAT,
    KERNEL,
    MAX_INLINE_FEATURES,
    MAX_JSON_BYTES,
    RESAVE,
    VERSION,
    Invalid,
)
from linrank.models.file.fields import field, integer
from linrank.system import json_text
from linrank.system.durable import naming

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    from linrank.models.file.contents import Contents, KernelContents

    T = TypeVar("T")

# What a model can hold at most: four lists of a million entries, and a few dozen settings. Those
# of statistics are of models of 20,000 features at most.
MAX_VALUES = 4 * MAX_INLINE_FEATURES + 1000


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


def _parse(content: bytes) -> dict[str, Any]:
    if content.startswith((b"PAR1", b"ARROW1")):
        raise Invalid("a table (Parquet or Arrow), not a model", FOREIGN)
    try:
        document = json_text.parse(content, MAX_VALUES)
    except json_text.TooMuchJSON as error:
        raise Invalid(str(error), FOREIGN) from None
    except json_text.MalformedJSON as error:
        # Damage leaves the first brace in place; a file without it was never a model.
        raise Invalid(str(error), RESAVE if content.lstrip()[:1] == b"{" else FOREIGN) from None
    if not isinstance(document, dict):
        raise Invalid(f"holds a {type(document).__name__}, not an object", FOREIGN)
    return document


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
