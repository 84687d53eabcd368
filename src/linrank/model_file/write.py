"""Write a model file, whole or not at all; the same model gives the same bytes."""

from __future__ import annotations

import errno
import json
import os
from typing import Any

from linrank.model_file import arrays, kernel, linear
from linrank.model_file.contents import FORMAT, MAX_JSON_BYTES, Contents, KernelContents

__all__ = ["write"]


def write(contents: Contents | KernelContents, path: str | os.PathLike[str]) -> None:
    """Write `contents` to `path`, and beyond a million values to a second file beside it."""
    name = os.fspath(path)
    if os.path.exists(name) and not os.path.isfile(name) and not os.path.isdir(name):
        _write_to_stream(name, contents)
        return
    target = os.path.realpath(name)
    _check_place(target, name)
    whole = _inline(contents)
    if whole is not None:
        _write_atomically(target, whole)
        return
    beside, kind = arrays.path_beside(target), _kind(contents)
    tensors = arrays.encode(kind.tensors(contents), contents.feature_names, kind.size(contents))
    reference = {"file": os.path.basename(beside), "sha256": arrays.digest(tensors)}
    text = _text(kind.document_beside(contents, reference))
    _write_atomically(beside, tensors)
    _write_atomically(target, text)


def _write_to_stream(name: str, contents: Contents | KernelContents) -> None:
    """Pipes and devices: a rename would put a file in their place, of /dev/null too."""
    whole = _inline(contents)
    if whole is None:
        raise ValueError(
            f"{name}: a model of {_kind(contents).size(contents)} takes two files and cannot go "
            "to a pipe or device; name a file"
        )
    with open(name, "wb") as stream:
        stream.write(whole)


def _check_place(target: str, path: str) -> None:
    """Name the path that was asked for: the error of the system would name a temporary one."""
    if os.path.isdir(target):
        raise IsADirectoryError(errno.EISDIR, "is a folder; name a file in it", path)
    folder = os.path.dirname(target)
    if not os.path.isdir(folder):
        raise FileNotFoundError(errno.ENOENT, f"there is no folder {folder}; create it", path)


def _inline(contents: Contents | KernelContents) -> bytes | None:
    document = _kind(contents).document_inline(contents)
    return None if document is None else _text(document)


def _kind(contents: Contents | KernelContents) -> Any:
    """The module that knows the documents of such a model."""
    return linear if isinstance(contents, Contents) else kernel


def _text(document: dict[str, Any]) -> bytes:
    # Python writes a float as the shortest decimal that reads back as the same bits: at most 17
    # digits. One line per key keeps the file readable and the encoder in C.
    lines = (
        f"{json.dumps(key)}: {json.dumps(value, allow_nan=False, ensure_ascii=False)}"
        for key, value in {"format": FORMAT, **document}.items()
    )
    text = ("{\n" + ",\n".join(lines) + "\n}\n").encode()
    if len(text) > MAX_JSON_BYTES:
        raise ValueError(
            f"the model takes {len(text)} bytes as JSON, more than {MAX_JSON_BYTES}; "
            "shorten or drop its feature names"
        )
    return text


def _write_atomically(path: str, content: bytes) -> None:
    """Write beside `path` and rename: readers see the old file or the new one, never a part."""
    temporary = f"{path}.{os.getpid()}.{os.urandom(4).hex()}.tmp"
    try:
        with open(temporary, "xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException as error:
        if os.path.exists(temporary):
            os.remove(temporary)
        if isinstance(error, OSError) and error.errno and not error.filename:  # a full disk
            error.filename = path
        raise
