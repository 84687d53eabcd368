"""Write a model file, whole or not at all; the same model gives the same bytes."""

from __future__ import annotations

import errno
import json
import os
from typing import TYPE_CHECKING

from linrank.model_file import arrays
from linrank.model_file.contents import FORMAT, MAX_INLINE_FEATURES, MAX_JSON_BYTES, VERSION

if TYPE_CHECKING:
    from linrank.model_file.contents import Contents

__all__ = ["write"]


def write(contents: Contents, path: str | os.PathLike[str]) -> None:
    """Write `contents` to `path`, and beyond a million features to a second file beside it."""
    name = os.fspath(path)
    if os.path.exists(name) and not os.path.isfile(name) and not os.path.isdir(name):
        _write_to_stream(name, contents)
        return
    target = os.path.realpath(name)
    _check_place(target, name)
    if contents.coef.size <= MAX_INLINE_FEATURES:
        _write_atomically(target, _encode(contents, None))
        return
    beside = arrays.path_beside(target)
    tensors = arrays.encode(contents)
    reference = {"file": os.path.basename(beside), "sha256": arrays.digest(tensors)}
    text = _encode(contents, reference)
    _write_atomically(beside, tensors)
    _write_atomically(target, text)


def _write_to_stream(name: str, contents: Contents) -> None:
    """Pipes and devices: a rename would put a file in their place, of /dev/null too."""
    if contents.coef.size > MAX_INLINE_FEATURES:
        raise ValueError(
            f"{name}: a model of {contents.coef.size} features takes two files and cannot go to a "
            "pipe or device; name a file"
        )
    with open(name, "wb") as stream:
        stream.write(_encode(contents, None))


def _check_place(target: str, path: str) -> None:
    """Name the path that was asked for: the error of the system would name a temporary one."""
    if os.path.isdir(target):
        raise IsADirectoryError(errno.EISDIR, "is a folder; name a file in it", path)
    folder = os.path.dirname(target)
    if not os.path.isdir(folder):
        raise FileNotFoundError(errno.ENOENT, f"there is no folder {folder}; create it", path)


def _encode(contents: Contents, reference: dict[str, str] | None) -> bytes:
    inline = reference is None
    names, factors = contents.feature_names, contents.factors
    document = {
        "format": FORMAT,
        "version": VERSION,
        "kind": "linear",
        "linrank": contents.linrank_version,
        "n_features": int(contents.coef.size),
        "scaling": contents.scaling,
        "training": dict(sorted(contents.training.items())),
        "arrays": reference,
        "feature_names": list(names) if inline and names is not None else None,
        "factors": factors.tolist() if inline and factors is not None else None,
        "coef": contents.coef.tolist() if inline else None,
    }
    # Python writes a float as the shortest decimal that reads back as the same bits: at most 17
    # digits. One line per key keeps the file readable and the encoder in C.
    lines = (
        f"{json.dumps(key)}: {json.dumps(value, allow_nan=False, ensure_ascii=False)}"
        for key, value in document.items()
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
