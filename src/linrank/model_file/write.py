"""Write a model file, whole or not at all; the same model gives the same bytes."""

from __future__ import annotations

import errno
import json
import os
from typing import TYPE_CHECKING, Any

from linrank.model_file import arrays, sparse
from linrank.model_file.contents import FORMAT, LISTS, MAX_INLINE_FEATURES, MAX_JSON_BYTES, SPARSE

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from linrank.model_file.contents import Contents

__all__ = ["write"]


def write(contents: Contents, path: str | os.PathLike[str]) -> None:
    """Write `contents` to `path`, and beyond a million values to a second file beside it."""
    name = os.fspath(path)
    if os.path.exists(name) and not os.path.isfile(name) and not os.path.isdir(name):
        _write_to_stream(name, contents)
        return
    target = os.path.realpath(name)
    _check_place(target, name)
    whole = _encode_inline(contents)
    if whole is not None:
        _write_atomically(target, whole)
        return
    beside = arrays.path_beside(target)
    tensors = arrays.encode(contents)
    reference = {"file": os.path.basename(beside), "sha256": arrays.digest(tensors)}
    text = _encode(contents, LISTS, reference=reference)
    _write_atomically(beside, tensors)
    _write_atomically(target, text)


def _write_to_stream(name: str, contents: Contents) -> None:
    """Pipes and devices: a rename would put a file in their place, of /dev/null too."""
    whole = _encode_inline(contents)
    if whole is None:
        raise ValueError(
            f"{name}: a model of {contents.coef.size} features takes two files and cannot go to a "
            "pipe or device; name a file"
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


def _encode_inline(contents: Contents) -> bytes | None:
    """The one file of a model whose lists are not too long for that; else None."""
    names, coef, factors = contents.feature_names, contents.coef, contents.factors
    few = [(array, sparse.compact(array)) for array in (factors, coef)]
    fits = names is None and all(short is not None or array is None for array, short in few)
    if coef.size > MAX_INLINE_FEATURES and not fits:
        return None
    return _encode(
        contents,
        LISTS if all(short is None for _, short in few) else SPARSE,
        feature_names=None if names is None else list(names),
        factors=_listed(*few[0]),
        coef=_listed(*few[1]),
    )


def _listed(array: NDArray[np.float64] | None, short: dict[str, Any] | None) -> Any:
    """The short form where there is one, else all numbers."""
    return short if short is not None or array is None else array.tolist()


def _encode(
    contents: Contents,
    version: int,
    *,
    reference: dict[str, str] | None = None,
    feature_names: list[str] | None = None,
    factors: Any = None,
    coef: Any = None,
) -> bytes:
    document = {
        "format": FORMAT,
        "version": version,
        "kind": "linear",
        "linrank": contents.linrank_version,
        "n_features": int(contents.coef.size),
        "scaling": contents.scaling,
        "training": dict(sorted(contents.training.items())),
        "arrays": reference,
        "feature_names": feature_names,
        "factors": factors,
        "coef": coef,
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
