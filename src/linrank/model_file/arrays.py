"""The arrays of a model of very many features, in a safetensors file beside the JSON."""

from __future__ import annotations

import json
import os
import re
import stat
from typing import TYPE_CHECKING, Any

import numpy as np

from linrank.model_file.contents import MAX_JSON_BYTES, Invalid

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from linrank.model_file.contents import Contents

__all__ = ["decode_names", "digest", "encode", "path_beside", "read_tensors"]

MAX_NAMES_BYTES = 8 * MAX_JSON_BYTES


def path_beside(target: str) -> str:
    """The name of the arrays file of the model file `target`."""
    stem, suffix = os.path.splitext(target)
    if suffix == ".safetensors":
        raise ValueError(f"{target}: that name is needed for the arrays; save to {stem}.json")
    return stem + ".safetensors"


def encode(contents: Contents) -> bytes:
    """The arrays of `contents` as a safetensors file; names travel as a JSON list in UTF-8."""
    try:
        from safetensors.numpy import save
    except ImportError:
        raise _missing(f"saving a model of {contents.coef.size} features") from None
    tensors: dict[str, NDArray[Any]] = {"coef": np.ascontiguousarray(contents.coef)}
    if contents.factors is not None:
        tensors["factors"] = np.ascontiguousarray(contents.factors)
    if contents.feature_names is not None:
        names = json.dumps(list(contents.feature_names), ensure_ascii=False).encode()
        tensors["feature_names"] = np.frombuffer(names, dtype=np.uint8)
    return bytes(save(tensors))


def digest(content: bytes) -> str:
    """Ties the two files together: an interrupted save over an older model is noticed."""
    import hashlib  # loads OpenSSL, 3 ms that no ordinary model needs

    return hashlib.sha256(content).hexdigest()


def read_tensors(path: str, n_features: int, expected_digest: str) -> dict[str, NDArray[Any]]:
    """The tensors of a file, whose types and sizes are checked before they are read."""
    try:
        from safetensors import SafetensorError, safe_open
    except ImportError:
        raise _missing(f"reading {path}") from None
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise Invalid("not a regular file")
        with safe_open(path, framework="numpy") as file:
            keys = list(file.keys())
            _check_tensors({key: file.get_slice(key) for key in keys}, n_features)
            if _digest_of_file(path) != expected_digest:
                raise Invalid("it belongs to another model (its SHA-256 differs)")
            return {key: file.get_tensor(key) for key in keys}
    except FileNotFoundError:
        raise Invalid("the file is missing", "keep it beside the JSON file") from None
    except (SafetensorError, OSError) as error:
        raise Invalid(f"not a valid safetensors file ({error})") from None


def decode_names(encoded: NDArray[np.uint8]) -> list[str]:
    """The feature names of an arrays file; whether they are strings is the model's to check."""
    content = encoded.tobytes()
    # Without its strings, a list of strings has one bracket and no number: nothing that could
    # nest or grow when it is parsed.
    skeleton = re.sub(rb'"[^"\\]*(?:\\.[^"\\]*)*"', b"", content, flags=re.DOTALL)
    if re.fullmatch(rb"\[[, ]*\]", skeleton) is None:
        raise Invalid("the tensor 'feature_names' is not a JSON list of strings")
    try:
        names: list[str] = json.loads(content)
    except ValueError:
        raise Invalid("the tensor 'feature_names' is not a JSON list of strings") from None
    return names


def _check_tensors(slices: dict[str, Any], n_features: int) -> None:
    if "coef" not in slices:
        raise Invalid("there is no tensor 'coef'")
    for key, part in slices.items():
        if key not in ("coef", "factors", "feature_names"):
            raise Invalid(f"unknown tensor {key[:80]!r}")
        shape, dtype = list(part.get_shape()), str(part.get_dtype())
        if key == "feature_names":
            if dtype != "U8" or len(shape) != 1 or shape[0] > MAX_NAMES_BYTES:
                raise Invalid(f"'feature_names' is {dtype} {shape}, expected bytes of text (U8)")
        elif dtype != "F64" or shape != [n_features]:
            raise Invalid(f"{key!r} is {dtype} {shape}, expected F64 [{n_features}]")


def _digest_of_file(path: str) -> str:
    import hashlib

    total = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            total.update(block)
    return total.hexdigest()


def _missing(purpose: str) -> ImportError:
    return ImportError(f"{purpose} needs safetensors: pip install linrank[safetensors]")
