"""The model file: versioned JSON, with safetensors beside it for very many features.

A file is data from anywhere: every size is bounded before memory is taken for it, every type is
checked, and whatever is wrong ends in a ModelFormatError that names the file and the remedy.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from linrank.errors import ModelFormatError
from linrank.model import LinearModel
from linrank.scaling import KINDS, Scaling

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["read_model", "write_model"]

FORMAT = "linrank-model"
VERSION = 1
MAX_INLINE_FEATURES = 1_000_000
MAX_FEATURES = 2**30
MAX_JSON_BYTES = 2**28
# What a model can hold at most: three lists of a million entries, and a few dozen settings.
MAX_COMMAS = 3 * MAX_INLINE_FEATURES + 1000
MAX_BRACKETS = 64
MAX_NUMBER_LENGTH = 64
KEYS = (
    "format",
    "version",
    "kind",
    "linrank",
    "n_features",
    "scaling",
    "training",
    "arrays",
    "feature_names",
    "factors",
    "coef",
)
RESAVE = "restore the file from a copy, or train and save the model again"


class _Invalid(Exception):
    """What is wrong in a document, before it is known which file it came from."""

    def __init__(self, problem: str, remedy: str = RESAVE) -> None:
        super().__init__(problem)
        self.problem, self.remedy = problem, remedy


# ---- writing ------------------------------------------------------------------------------------


def write_model(model: LinearModel, path: str | os.PathLike[str]) -> None:
    """Write `model` to `path`; the same model gives the same bytes."""
    target = os.path.realpath(os.fspath(path))
    if model.n_features <= MAX_INLINE_FEATURES:
        text = _encode(model, None)
    else:
        text = _encode(model, _write_arrays(model, target))
    if len(text) > MAX_JSON_BYTES:
        raise ValueError(
            f"the model takes {len(text)} bytes as JSON, more than {MAX_JSON_BYTES}; "
            "shorten or drop its feature names"
        )
    _write_atomically(target, text)


def _encode(model: LinearModel, arrays: dict[str, str] | None) -> bytes:
    inline = arrays is None
    factors = model.scaling.factors
    document = {
        "format": FORMAT,
        "version": VERSION,
        "kind": "linear",
        "linrank": model.linrank_version,
        "n_features": model.n_features,
        "scaling": model.scaling.kind,
        "training": dict(sorted(model.training.items())),
        "arrays": arrays,
        "feature_names": list(model.feature_names) if inline and model.feature_names else None,
        "factors": factors.tolist() if inline and factors is not None else None,
        "coef": model.coef.tolist() if inline else None,
    }
    # Python writes a float as the shortest decimal that reads back as the same bits: at most 17
    # digits. One line per key keeps the file readable and the encoder in C.
    lines = (
        f"{json.dumps(key)}: {json.dumps(value, allow_nan=False, ensure_ascii=False)}"
        for key, value in document.items()
    )
    return ("{\n" + ",\n".join(lines) + "\n}\n").encode()


def _write_arrays(model: LinearModel, target: str) -> dict[str, str]:
    """Write the safetensors file that belongs to `target`; how the JSON is to refer to it."""
    try:
        from safetensors.numpy import save
    except ImportError:
        raise ImportError(_missing_safetensors(f"saving {model.n_features} features")) from None
    stem, suffix = os.path.splitext(target)
    if suffix == ".safetensors":
        raise ValueError(f"{target}: that name is needed for the arrays; save to {stem}.json")
    arrays = {"coef": np.ascontiguousarray(model.coef)}
    if model.scaling.factors is not None:
        arrays["factors"] = np.ascontiguousarray(model.scaling.factors)
    if model.feature_names is not None:
        names = json.dumps(model.feature_names, ensure_ascii=False).encode()
        arrays["feature_names"] = np.frombuffer(names, dtype=np.uint8)
    content = save(arrays)
    _write_atomically(stem + ".safetensors", content)
    # The digest ties the two files together: an interrupted save over an older model is noticed.
    digest = hashlib.sha256(content).hexdigest()
    return {"file": os.path.basename(stem) + ".safetensors", "sha256": digest}


def _write_atomically(path: str, content: bytes) -> None:
    """Write beside `path` and rename: readers see the old file or the new one, never a part."""
    temporary = f"{path}.{os.getpid()}.{os.urandom(4).hex()}.tmp"
    try:
        with open(temporary, "xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        if os.path.exists(temporary):
            os.remove(temporary)
        raise


def _missing_safetensors(purpose: str) -> str:
    return f"{purpose} needs safetensors: pip install linrank[safetensors]"


# ---- reading ------------------------------------------------------------------------------------


def read_model(path: str | os.PathLike[str]) -> LinearModel:
    """Read the model at `path`, or raise ModelFormatError."""
    name = os.fspath(path)
    try:
        return _decode(_read_bytes(name), os.path.dirname(name))
    except _Invalid as error:
        raise ModelFormatError(f"{name}: {error.problem}; {error.remedy}") from error.__cause__


def _read_bytes(name: str) -> bytes:
    status = os.stat(name)
    if not stat.S_ISREG(status.st_mode):
        raise _Invalid("not a regular file", "pass the JSON file that save() wrote")
    _check_json_size(status.st_size)
    with open(name, "rb") as file:
        content = file.read(MAX_JSON_BYTES + 1)
    _check_json_size(len(content))  # it may have grown since
    return content


def _check_json_size(size: int) -> None:
    if size == 0:
        raise _Invalid("the file is empty")
    if size > MAX_JSON_BYTES:
        raise _Invalid(
            f"{size} bytes is more than a model can take ({MAX_JSON_BYTES})",
            "pass the JSON file that save() wrote",
        )


def _decode(content: bytes, folder: str) -> LinearModel:
    document = _parse(content)
    _check_header(document)
    n_features = _integer(document, "n_features", 1, MAX_FEATURES)
    arrays = _field(document, "arrays", dict, type(None))
    if arrays is None:
        names, factors, coef = _inline_arrays(document, n_features)
    else:
        names, factors, coef = _read_arrays(document, arrays, folder, n_features)
    try:
        scaling = Scaling(_scaling_kind(document, factors), factors)
        return LinearModel(
            coef, names, scaling, _training(document), _field(document, "linrank", str)
        )
    except (TypeError, ValueError) as error:
        raise _Invalid(str(error)) from error


_STRING = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_LONG_NUMBER = re.compile(rb"[-+.0-9eE]{%d}" % (MAX_NUMBER_LENGTH + 1))


def _parse(content: bytes) -> dict[str, Any]:
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        raise _Invalid(f"not a text file (byte {error.start} is not UTF-8)") from None
    # A parsed value takes up to 25 times its text, so values are counted before they are made.
    skeleton = _STRING.sub(b"", content)
    if skeleton.count(b"[") + skeleton.count(b"{") > MAX_BRACKETS:
        raise _Invalid("more lists and objects than a linrank model has", _foreign())
    if skeleton.count(b",") > MAX_COMMAS:
        raise _Invalid(f"more than {MAX_COMMAS} values", _foreign())
    if _LONG_NUMBER.search(skeleton):
        raise _Invalid(f"a number of more than {MAX_NUMBER_LENGTH} characters", _foreign())
    try:
        document = json.loads(
            text, object_pairs_hook=_without_duplicates, parse_constant=_reject_constant
        )
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise _Invalid(f"not JSON at {where} ({error.msg})") from None
    except RecursionError:
        raise _Invalid("nested too deeply", _foreign()) from None
    if not isinstance(document, dict):
        raise _Invalid(f"holds a {type(document).__name__}, not an object", _foreign())
    return document


def _foreign() -> str:
    return "pass a file written by LinearModel.save"


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise _Invalid(f"the key {twice[:80]!r} occurs twice")
    return result


def _reject_constant(name: str) -> NoReturn:
    raise _Invalid(f"holds {name}, which is not a finite number")


def _check_header(document: dict[str, Any]) -> None:
    if document.get("format") != FORMAT:
        raise _Invalid(f'not a linrank model (no "format": "{FORMAT}")', _foreign())
    version = _integer(document, "version", 1, 2**31)
    if version > VERSION:
        raise _Invalid(
            f"format version {version} is newer than {VERSION}, the newest that this linrank reads",
            "upgrade with pip install --upgrade linrank",
        )
    kind = _field(document, "kind", str)
    if kind != "linear":
        raise _Invalid(f'kind is {kind[:80]!r}, expected "linear"', _foreign())
    # A key that we do not know may change what the scores mean.
    unknown = [key for key in document if key not in KEYS]
    if unknown:
        raise _Invalid(f"unknown key {unknown[0][:80]!r}")


def _field(document: dict[str, Any], key: str, *types: type) -> Any:
    if key not in document:
        raise _Invalid(f"the key {key!r} is missing")
    value = document[key]
    if type(value) not in types:
        expected = " or ".join("null" if t is type(None) else t.__name__ for t in types)
        raise _Invalid(f"{key!r} is of type {type(value).__name__}, expected {expected}")
    return value


def _integer(document: dict[str, Any], key: str, low: int, high: int) -> int:
    value = _field(document, key, int)
    if not low <= value <= high:
        raise _Invalid(f"{key!r} is {value}, expected {low} to {high}")
    return int(value)


def _scaling_kind(document: dict[str, Any], factors: NDArray[np.float64] | None) -> str:
    kind = str(_field(document, "scaling", str))
    if kind not in KINDS:
        raise _Invalid(f"'scaling' is {kind[:80]!r}, expected one of {', '.join(KINDS)}")
    if (kind in ("standard", "minmax")) != (factors is not None):
        raise _Invalid(f"scaling {kind!r} does not go with the factors in the file")
    if factors is not None and not (np.isfinite(factors) & (factors >= 0.0)).all():
        raise _Invalid("a scaling factor is negative or not finite")
    return kind


def _training(document: dict[str, Any]) -> dict[str, Any]:
    training: dict[str, Any] = _field(document, "training", dict)
    for key, value in training.items():
        _field({f"training.{key[:80]}": value}, f"training.{key[:80]}", *_SCALARS)
    return training


_SCALARS = (str, int, float, bool, type(None))
_Arrays = tuple["list[str] | None", "NDArray[np.float64] | None", "NDArray[np.float64]"]


def _inline_arrays(document: dict[str, Any], n_features: int) -> _Arrays:
    names = _field(document, "feature_names", list, type(None))
    factors = _field(document, "factors", list, type(None))
    coef = _numbers("coef", _field(document, "coef", list), n_features)
    return names, None if factors is None else _numbers("factors", factors, n_features), coef


def _numbers(key: str, values: list[Any], n_features: int) -> NDArray[np.float64]:
    if len(values) != n_features:
        raise _Invalid(f"{key!r} has {len(values)} entries for {n_features} features")
    for j, value in enumerate(values):
        if type(value) is not float and type(value) is not int:
            raise _Invalid(f"{key}[{j}] is of type {type(value).__name__}, expected a number")
    return np.array(values, dtype=np.float64)


# ---- the arrays of a large model ----------------------------------------------------------------


def _read_arrays(
    document: dict[str, Any], arrays: dict[str, Any], folder: str, n_features: int
) -> _Arrays:
    for key in ("feature_names", "factors", "coef"):
        if _field(document, key, list, type(None)) is not None:
            raise _Invalid(f"{key!r} is given both here and in the arrays file")
    name = _field(arrays, "file", str)
    if name in ("", ".", "..") or re.search(r"[/\\\0]", name):
        raise _Invalid(f"the arrays file {name[:80]!r} must be a plain file name")
    path = os.path.join(folder, name)
    try:
        tensors = _read_tensors(path, n_features, _field(arrays, "sha256", str))
    except _Invalid as error:
        raise _Invalid(f"in {path}: {error.problem}", error.remedy) from error.__cause__
    names = tensors.get("feature_names")
    return None if names is None else _names(names), tensors.get("factors"), tensors["coef"]


def _read_tensors(path: str, n_features: int, digest: str) -> dict[str, NDArray[Any]]:
    try:
        from safetensors import SafetensorError, safe_open
    except ImportError:
        raise ImportError(_missing_safetensors(f"reading {path}")) from None
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise _Invalid("not a regular file")
        with safe_open(path, framework="numpy") as file:
            _check_tensors({key: file.get_slice(key) for key in file.keys()}, n_features)
            if _digest(path) != digest:
                raise _Invalid("belongs to another model (its SHA-256 differs)")
            return {key: file.get_tensor(key) for key in file.keys()}
    except FileNotFoundError:
        raise _Invalid("the file is missing", "keep it beside the JSON file") from None
    except (SafetensorError, OSError) as error:
        raise _Invalid(f"not a valid safetensors file ({error})") from error


def _check_tensors(slices: dict[str, Any], n_features: int) -> None:
    if "coef" not in slices:
        raise _Invalid("there is no tensor 'coef'")
    for key, part in slices.items():
        if key not in ("coef", "factors", "feature_names"):
            raise _Invalid(f"unknown tensor {key[:80]!r}")
        shape, dtype = list(part.get_shape()), str(part.get_dtype())
        if key == "feature_names":
            if dtype != "U8" or len(shape) != 1 or shape[0] > 4 * MAX_JSON_BYTES:
                raise _Invalid(f"'feature_names' is {dtype} {shape}, expected U8 text")
        elif dtype != "F64" or shape != [n_features]:
            raise _Invalid(f"{key!r} is {dtype} {shape}, expected F64 [{n_features}]")


def _digest(path: str) -> str:
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def _names(encoded: NDArray[np.uint8]) -> list[str]:
    content = encoded.tobytes()
    skeleton = _STRING.sub(b"", content)
    if skeleton.count(b"[") + skeleton.count(b"{") != 1 or _LONG_NUMBER.search(skeleton):
        raise _Invalid("'feature_names' in the arrays file is not a list of strings")
    try:
        names = json.loads(content)
    except ValueError:
        raise _Invalid("'feature_names' in the arrays file is not JSON") from None
    if not isinstance(names, list):
        raise _Invalid("'feature_names' in the arrays file is not a list of strings")
    return names
