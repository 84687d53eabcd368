"""The arrays of a large model, in a safetensors file beside the JSON."""

from __future__ import annotations

import json
import os
import stat
from typing import TYPE_CHECKING, Any

import numpy as np

from linrank.models.file.contents import MAX_JSON_BYTES, Invalid
from linrank.models.file.fields import field
from linrank.system import json_text
from linrank.system.durable import name_beside

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    # Refuses, by an Invalid, a tensor of this key, type (as in "F64") and shape.
    Check = Callable[[str, str, list[int]], None]

MAX_NAMES_BYTES = 8 * MAX_JSON_BYTES
_MAX_REFERRING_BYTES = 1 << 20  # of a JSON file without arrays of its own


def names_beside(target: str) -> tuple[str, str]:
    """The names that the arrays file of the model file `target` may have.

    There are two: one for the arrays of a model that is there, one for those of its successor. The
    second is no name that the arrays of another model have: there may be a model.2.json.
    """
    stem, suffix = os.path.splitext(target)
    if suffix == ".safetensors":
        raise ValueError(f"{target}: that name is needed for the arrays; save to {stem}.json")
    return name_beside(target, ".safetensors"), name_beside(target, ".successor.safetensors")


def used_by(target: str) -> str | None:
    """The arrays file of the model at `target`, if there is one that has such a file."""
    try:
        if not os.path.isfile(target) or os.path.getsize(target) > _MAX_REFERRING_BYTES:
            return None
        with open(target, "rb") as file:
            document = json_text.parse(file.read(_MAX_REFERRING_BYTES), _MAX_REFERRING_BYTES)
        path = os.path.join(os.path.dirname(target), document["arrays"]["file"])
        return path if path in names_beside(target) else None
    except (OSError, ValueError, TypeError, LookupError):
        return None


def encode(
    tensors: Mapping[str, NDArray[Any]], feature_names: Sequence[str] | None, size: str
) -> bytes:
    """Arrays as a safetensors file, of a model of that ``size``; names travel as a JSON list."""
    try:
        from safetensors.numpy import save
    except ImportError:
        raise _missing(f"saving a model of {size}") from None
    whole = {key: np.ascontiguousarray(array) for key, array in tensors.items()}
    if feature_names is not None:
        names = json.dumps(list(feature_names), ensure_ascii=False).encode()
        whole["feature_names"] = np.frombuffer(names, dtype=np.uint8)
    return bytes(save(whole))


def digest(content: bytes) -> str:
    """Ties the two files together: an interrupted save over an older model is noticed."""
    import hashlib  # loads OpenSSL, 3 ms that no ordinary model needs

    return hashlib.sha256(content).hexdigest()


def read_beside(
    reference: dict[str, Any], folder: str, n_features: int, check: Check
) -> tuple[dict[str, NDArray[Any]], list[str] | None]:
    """Tensors and feature names of the file that a document refers to."""
    name = field(reference, "file", str, name="arrays.file")
    if name in ("", ".", "..") or set(name) & set("/\\\0"):
        raise Invalid(f"arrays.file is {name[:80]!r}, expected a file name without a folder")
    path = os.path.join(folder, name)
    try:
        expected = field(reference, "sha256", str, name="arrays.sha256")
        tensors = _read_tensors(path, expected, check)
        names = tensors.pop("feature_names", None)
        return tensors, None if names is None else _decode_names(names, n_features)
    except Invalid as error:
        raise Invalid(f"its arrays file {path}: {error.problem}", error.remedy) from None


def _read_tensors(path: str, expected_digest: str, check: Check) -> dict[str, NDArray[Any]]:
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
            _check_tensors({key: file.get_slice(key) for key in keys}, check)
            if _digest_of_file(path) != expected_digest:
                raise Invalid("it belongs to another model (its SHA-256 differs)")
            return {key: file.get_tensor(key) for key in keys}
    except FileNotFoundError:
        raise Invalid("the file is missing", "keep it beside the JSON file") from None
    except (SafetensorError, OSError) as error:
        raise Invalid(f"not a valid safetensors file ({error})") from None


def _check_tensors(slices: dict[str, Any], check: Check) -> None:
    if "coef" not in slices:
        raise Invalid("there is no tensor 'coef'")
    for key, part in slices.items():
        shape, dtype = list(part.get_shape()), str(part.get_dtype())
        if key != "feature_names":
            check(key, dtype, shape)
        elif dtype != "U8" or len(shape) != 1 or shape[0] > MAX_NAMES_BYTES:
            raise Invalid(f"'feature_names' is {dtype} {shape}, expected bytes of text (U8)")


def _decode_names(encoded: NDArray[np.uint8], n_features: int) -> list[str]:
    """The feature names of an arrays file."""
    problem = "the tensor 'feature_names' is not a JSON list of strings"
    try:
        names = json_text.parse(encoded.tobytes(), n_features, max_brackets=1)
    except json_text.MalformedJSON as error:
        raise Invalid(f"{problem}: {error}") from None
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise Invalid(problem)
    return names


def _digest_of_file(path: str) -> str:
    import hashlib

    total = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            total.update(block)
    return total.hexdigest()


def _missing(purpose: str) -> ImportError:
    return ImportError(f"{purpose} needs safetensors: pip install linrank[safetensors]")
