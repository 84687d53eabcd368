"""Write a model file, whole or not at all; the same model gives the same bytes."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from typing import Any

from linrank.models.file import arrays, kernel, linear
from linrank.models.file.contents import FORMAT, MAX_JSON_BYTES, Contents, KernelContents
from linrank.system.durable import check_place, one_at_a_time, replacing


def write(contents: Contents | KernelContents, path: str | os.PathLike[str]) -> None:
    """Write `contents` to `path`, and beyond a million values to a second file beside it."""
    name = os.fspath(path)
    check_place(name)
    whole = _inline(contents)
    if whole is None and os.path.exists(name) and not os.path.isfile(name):
        raise ValueError(
            f"{name}: a model of {_kind(contents).size(contents)} takes two files and cannot go "
            "to a pipe or device; name a file"
        )
    target = os.path.realpath(name)
    if whole is not None and arrays.used_by(target) is None:
        _replace(name, whole)
        return
    with one_at_a_time(name):
        old = arrays.used_by(target)
        if whole is None:
            _write_both(contents, target, old)
        else:
            _replace(name, whole)
        _remove(old)


def _write_both(contents: Contents | KernelContents, target: str, old: str | None) -> None:
    """The arrays under a name that the old model does not use, which thus stays whole; then it."""
    beside = next(name for name in arrays.names_beside(target) if name != old)
    kind = _kind(contents)
    tensors = arrays.encode(kind.tensors(contents), contents.feature_names, kind.size(contents))
    reference = {"file": os.path.basename(beside), "sha256": arrays.digest(tensors)}
    text = _text(kind.document_beside(contents, reference))
    try:
        _replace(beside, tensors)
        _replace(target, text)
    except BaseException:
        if arrays.used_by(target) != beside:
            _remove(beside)
        raise


def _replace(path: str, content: bytes) -> None:
    with replacing(path) as file:
        file.write(content)


def _remove(path: str | None) -> None:
    if path is not None:
        with suppress(FileNotFoundError):
            os.unlink(path)


def _inline(contents: Contents | KernelContents) -> bytes | None:
    """The model as one file; None if it takes two."""
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
