"""Hostile model files: each ends in a ModelFormatError that says what, where and what to do."""

from __future__ import annotations

import contextlib
import json
import os
import random
import struct
import tempfile
import threading
import time
from dataclasses import fields

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hypothesis_profiles import examples
from linrank import LinearModel, ModelFormatError, load_model
from linrank.data.missing import Missing
from linrank.data.rows import ColumnStatistics, DenseRows
from linrank.data.scaling import Scaling
from linrank.models import file as arrays
from linrank.models import file as model_file
from peaks import peak_of

VALID = {
    "format": "linrank-model",
    "version": 1,
    "kind": "linear",
    "linrank": "0.1.0",
    "n_features": 2,
    "scaling": "none",
    "training": {"C": 1.0},
    "arrays": None,
    "sha256": None,
    "feature_names": ["a", "b"],
    "missing": "error",
    "filled": None,
    "absent": None,
    **{f"statistics.{field.name}": None for field in fields(ColumnStatistics)},
    "factors": None,
    "coef": [0.5, -1.0],
}


def changed(**changes):
    return json.dumps({**VALID, **changes})


def some(coef=None, **changes):
    """Six features, of which the coefficients of two are stored."""
    parts = {"indices": [1, 4], "values": [0.5, -1.0], **(coef or {})}
    parts = {key: value for key, value in parts.items() if value is not None}
    small = {"n_features": 6, "feature_names": None, "coef": parts}
    return json.dumps({**VALID, **small, **changes})


def without(key):
    return json.dumps({k: v for k, v in VALID.items() if k != key})


def raw(key, text):
    """The valid file with the JSON text of one value replaced."""
    return changed(**{key: "@"}).replace('"@"', text)


FILES = {
    "empty": (b"", "the file is empty; restore"),
    "blank": (b" \n ", "not JSON at line 2, column 2"),
    "truncated": (json.dumps(VALID)[:-20], "not JSON at line 1, column"),
    "truncated in a string": ('{"format": "linr', "not JSON at line 1"),
    "trailing text": (json.dumps(VALID) + "}", "not JSON at line 1"),
    "not UTF-8": (b'{"format": "\xff"}', "byte 12 is not UTF-8"),
    "UTF-16": (json.dumps(VALID).encode("utf-16"), "not UTF-8"),
    "byte order mark": (b"\xef\xbb\xbf" + json.dumps(VALID).encode(), "not JSON at line 1"),
    "NUL bytes": (b"\0" * 100, "not JSON at line 1"),
    "pickle": (b"\x80\x04\x95\x10\x00.", "not UTF-8.*save.. of a linrank model"),
    "liblinear model": ("solver_type L2R_L2LOSS_RANKSVM\nnr_feature 2\n", "not JSON at line 1"),
    "JSON list": ("[1, 2]", "holds a list, not an object; pass a file"),
    "JSON number": ("17", "holds a int, not an object"),
    "foreign JSON": ('{"learner": {"version": [3, 0]}}', r'no "format": "linrank-model"'),
    "format of another type": (changed(format=["linrank-model"]), "not a linrank model"),
    "newer version": (changed(version=2), "version 2 is newer than 1.*upgrade linrank"),
    "version 0": (changed(version=0), "'version' is 0, expected 1 to"),
    "version as text": (changed(version="1"), "'version' is a str, expected int"),
    "version as boolean": (changed(version=True), "'version' is a bool, expected int"),
    "another kind": (
        changed(kind="tree"),
        "kind is 'tree', expected 'linear' or 'additive' or 'kernel'",
    ),
    "unknown key": (changed(intercept=3.0), "unknown key 'intercept'"),
    "duplicate key": (json.dumps(VALID)[:-1] + ', "coef": [9, 9]}', "'coef' occurs twice"),
    "duplicate nested key": (raw("training", '{"C": 1, "C": 2}'), "'C' occurs twice"),
    "NaN": (raw("coef", "[NaN, 1]"), "holds NaN, which is not a finite number"),
    "Infinity": (raw("coef", "[1, -Infinity]"), "holds -Infinity"),
    "number beyond double": (raw("coef", "[1e999, 1]"), r"coef\[0\] is inf"),
    "boolean coefficient": (changed(coef=[True, 1.0]), r"coef\[0\] is a bool, expected a number"),
    "text coefficient": (changed(coef=["1", 1.0]), r"coef\[0\] is a str"),
    "null coefficient": (changed(coef=[None, 1.0]), r"coef\[0\] is a NoneType"),
    "nested coefficients": (changed(coef=[[1.0, 2.0], 1.0]), r"coef\[0\] is a list"),
    "coefficients as object": (changed(coef={"a": 1}), "unknown key 'a' in 'coef'"),
    "too few coefficients": (changed(coef=[1.0]), "'coef' has 1 entries, expected 2"),
    "no features": (changed(n_features=0, coef=[]), "'n_features' is 0, expected 1 to"),
    "negative features": (changed(n_features=-2), "'n_features' is -2"),
    "absurd features": (changed(n_features=10**18), "'n_features' is 1000000000000000000"),
    "many features claimed": (
        changed(n_features=2**30, feature_names=None),
        "2 entries, expected 1073741824",
    ),
    "many names missing": (changed(n_features=2**30), "2 feature names for 1073741824"),
    "fractional features": (changed(n_features=2.0), "'n_features' is a float, expected int"),
    "too many names": (changed(feature_names=["a"] * 3), "3 feature names for 2"),
    "names of another type": (changed(feature_names=[1, 2]), "must be strings, got 1"),
    "names as text": (changed(feature_names="ab"), "'feature_names' is a str, expected list"),
    "half a character": (raw("feature_names", r'["\ud800", "b"]'), "half of a surrogate pair"),
    "unknown scaling": (changed(scaling="robust"), "scale must be 'none'"),
    "scaling of another type": (changed(scaling=None), "'scaling' is a NoneType, expected str"),
    "factors missing": (changed(scaling="standard"), "needs factors"),
    "factors unexpected": (changed(factors=[1.0, 1.0]), "takes no factors"),
    "negative factor": (changed(scaling="minmax", factors=[1.0, -1.0]), "finite and >= 0"),
    "too many factors": (changed(scaling="minmax", factors=[1.0] * 3), "'factors' has 3 entries"),
    "training as list": (changed(training=[]), "'training' is a list, expected dict"),
    "training nested": (changed(training={"C": [1]}), "'training.C' is a list"),
    "deeply nested": (raw("training", "[" * 10**6), "more lists and objects"),
    "deeply nested objects": ('{"a":' * 10**5, "more lists and objects"),
    "very many values": (raw("coef", "[" + "0," * 4_001_100 + "0]"), "more than 4001000 values"),
    "endless integer": (raw("n_features", "9" * 10**6), "a number of more than 64 characters"),
    "endless fraction": (raw("coef", f"[0.{'3' * 10**6}, 1]"), "more than 64 characters"),
    "arrays of another type": (changed(arrays={}), "'arrays' is a dict, expected str or null"),
    "arrays without a digest": (
        changed(arrays="m.safetensors", coef=None, feature_names=None),
        "'sha256' is a NoneType, expected str",
    ),
    "no coefficients": (changed(coef=None), "there is no array 'coef'"),
    "names of parts": (changed(statistics={"mean": [1, 2]}), "unknown key 'statistics'"),
    **{
        f"missing {key}": (without(key), "not a linrank model" if key == "format" else f"'{key}'")
        for key in VALID
    },
}


FILES |= {
    "sparse without indices": (some({"indices": None}), "the key 'coef.indices' is missing"),
    "sparse without values": (some({"values": None}), "the key 'coef.values' is missing"),
    "sparse with more": (some({"default": 1.0}), "unknown key 'default' in 'coef'"),
    "sparse of one index less": (some({"indices": [1]}), "'coef' has 1 indices and 2 values"),
    "sparse of one value more": (some({"values": [1.0] * 3}), "has 2 indices and 3 values"),
    "sparse indices as text": (some({"indices": "14"}), "'coef.indices' is a str, expected list"),
    "sparse values as object": (some({"values": {}}), "'coef.values' is a dict, expected list"),
    "index below": (some({"indices": [-1, 4]}), r"coef.indices\[0\] is -1, expected 0 to 5"),
    "index beyond": (some({"indices": [1, 6]}), r"coef.indices\[1\] is 6, expected 2 to 5"),
    "index far beyond": (some({"indices": [1, 10**60]}), r"coef.indices\[1\] is 10{60}, expected"),
    "index twice": (
        some({"indices": [4, 4]}),
        r"coef.indices\[1\] is 4, expected 5 to 5: they inc",
    ),
    "indices that fall": (some({"indices": [4, 1]}), r"coef.indices\[1\] is 1, expected 5 to 5"),
    "index as number": (some({"indices": [1.0, 4]}), r"coef.indices\[0\] is a float, expected int"),
    "index as boolean": (some({"indices": [True, 4]}), r"coef.indices\[0\] is a bool"),
    "index nested": (some({"indices": [[1], 4]}), r"coef.indices\[0\] is a list"),
    "sparse value as text": (some({"values": ["1", 2.0]}), r"coef.values\[0\] is a str"),
    "sparse value null": (some({"values": [1.0, None]}), r"coef.values\[1\] is a NoneType"),
    "sparse NaN": (some().replace("-1.0", "NaN"), "holds NaN, which is not a finite number"),
    "sparse beyond double": (some().replace("-1.0", "1e999"), r"coef\[4\] is inf"),
    "sparse of too many features": (
        some(n_features=2**24 + 1),
        "that form is for at most 16777216",
    ),
    "sparse with too few names": (some(feature_names=["a"]), "1 feature names for 6"),
    "sparse coefficient twice": (
        some().replace('"values"', '"indices"'),
        "'indices' occurs twice",
    ),
    "sparse factors negative": (
        some(scaling="minmax", factors={"indices": [0], "values": [-1.0]}),
        "finite and >= 0",
    ),
    "sparse factors for none": (
        some(factors={"indices": [], "values": []}),
        "takes no factors",
    ),
}


def check_refused(path, content, message):
    """The error says which file, what of it, and what to do."""
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(ModelFormatError, match=message) as caught:
        load_model(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert "; " in str(caught.value)  # there is a remedy


def peak_of_refusal(path, match=""):
    """The memory that it takes to refuse a file."""

    def refuse():
        with pytest.raises(ModelFormatError, match=match):
            load_model(path)

    return peak_of(refuse)


@pytest.mark.parametrize("name", FILES)
def test_hostile_file(name, tmp_path):
    started = time.perf_counter()
    check_refused(tmp_path / "model.json", *FILES[name])
    assert time.perf_counter() - started < 10


def test_the_valid_file_is_valid(tmp_path):
    """Else the files above could be refused for another reason."""
    (tmp_path / "m.json").write_text(json.dumps(VALID))
    model = load_model(tmp_path / "m.json")
    assert model.feature_names == ["a", "b"]
    assert model.coef.tolist() == [0.5, -1.0]


def test_the_valid_sparse_file_is_valid(tmp_path):
    (tmp_path / "m.json").write_text(some())
    assert load_model(tmp_path / "m.json").coef.tolist() == [0.0, 0.5, 0.0, 0.0, -1.0, 0.0]


@pytest.mark.parametrize(
    "content",
    [
        some(n_features=2**30),
        some({"indices": [1, 2**24]}, n_features=2**24),
        some({"values": [0.5, None]}, n_features=2**24),
        some(n_features=2**24, feature_names=["a"]),
    ],
)
def test_a_short_file_takes_no_memory_before_it_is_checked(content, tmp_path):
    (tmp_path / "m.json").write_text(content)
    assert peak_of_refusal(tmp_path / "m.json") < 1 << 20


def test_a_huge_file_is_refused_before_it_is_read(tmp_path):
    path = tmp_path / "huge.json"
    with open(path, "wb") as file:
        file.truncate(arrays.MAX_JSON_BYTES + 1)  # sparse: takes no disk
    assert peak_of_refusal(path, match="more than a model can take") < 1 << 20


def test_memory_is_bounded_by_the_text(tmp_path):
    """Ten million empty lists would take 640 MB; they are counted, not made."""
    path = tmp_path / "lists.json"
    path.write_text('{"coef": [' + "[]," * 10**7 + "[]]}")
    assert peak_of_refusal(path, match="more lists and objects") < 4 * path.stat().st_size


@pytest.mark.parametrize("kind", ["folder", "pipe", "device"])
def test_what_is_no_file_is_refused_without_waiting(kind, tmp_path):
    path = tmp_path / "m"
    if kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    else:
        path = "/dev/zero"
    failures = []

    def load():
        try:
            load_model(path)
        except ModelFormatError as error:
            failures.append(str(error))

    worker = threading.Thread(target=load, daemon=True)
    worker.start()
    worker.join(10)
    assert failures == [f"{path}: not a regular file; {model_file.FOREIGN}"]


# ---- the safetensors file beside a large model --------------------------------------------------


def tensor_file(header, data=b""):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def f64(n=2, begin=0, dtype="F64"):
    return {"dtype": dtype, "shape": [n], "data_offsets": [begin, begin + 8 * n]}


TWO = np.array([0.5, -1.0]).tobytes()
NAMES = {"dtype": "U8", "shape": [3], "data_offsets": [16, 19]}
TENSORS = {
    "empty": (b"", "not a valid safetensors file"),
    "short": (b"\1\2\3", "not a valid safetensors file"),
    "header beyond the file": (struct.pack("<Q", 2**63 - 1) + b"{}", "not a valid safetensors"),
    "header of 100 MB": (struct.pack("<Q", 10**8) + b"{}", "not a valid safetensors"),
    "header is no JSON": (tensor_file(b"{{{{"), "not a valid safetensors file"),
    "no tensors": (tensor_file({}), "there is no array 'coef'"),
    "another tensor": (tensor_file({"weight": f64()}, TWO), "unknown tensor 'weight'"),
    "one more tensor": (
        tensor_file({"coef": f64(), "x": f64(2, 16)}, TWO * 2),
        "unknown tensor 'x'",
    ),
    "single precision": (
        tensor_file({"coef": {"dtype": "F32", "shape": [4], "data_offsets": [0, 16]}}, TWO),
        "'coef' is float32, expected float64",
    ),
    "wrong length": (tensor_file({"coef": f64(1)}, TWO[:8]), r"shape \[1\], expected \[2\]"),
    "matrix": (
        tensor_file({"coef": {"dtype": "F64", "shape": [1, 2], "data_offsets": [0, 16]}}, TWO),
        r"'coef' has the shape \[1, 2\], expected \[2\]",
    ),
    "shape and offsets differ": (
        tensor_file({"coef": {"dtype": "F64", "shape": [2], "data_offsets": [0, 8]}}, TWO[:8]),
        "not a valid safetensors file",
    ),
    "offsets beyond the data": (tensor_file({"coef": f64(2, 8)}, TWO), "not a valid safetensors"),
    "shape that overflows": (
        tensor_file({"coef": {"dtype": "F64", "shape": [2**62], "data_offsets": [0, 16]}}, TWO),
        "not a valid safetensors file",
    ),
    "data cut off": (tensor_file({"coef": f64()}, TWO[:9]), "not a valid safetensors file"),
    "NaN coefficient": (tensor_file({"coef": f64()}, np.array([1, np.nan]).tobytes()), "is nan"),
    "factors without need": (
        tensor_file({"coef": f64(), "factors": f64(2, 16)}, TWO * 2),
        "takes no factors",
    ),
    "names as numbers": (
        tensor_file({"coef": f64(), "feature_names": f64(2, 16)}, TWO * 2),
        "expected bytes of text",
    ),
    "names of another type": (
        tensor_file({"coef": f64(), "feature_names": NAMES}, TWO + b"[1]"),
        "not a JSON list of strings",
    ),
    "names nested": (
        tensor_file({"coef": f64(), "feature_names": NAMES}, TWO + b"[[["),
        "not a JSON list of strings",
    ),
    "names cut off": (
        tensor_file({"coef": f64(), "feature_names": NAMES}, TWO + b'["a'),
        "not a JSON list of strings",
    ),
    "names not UTF-8": (
        tensor_file(
            {"coef": f64(), "feature_names": {**NAMES, "shape": [5], "data_offsets": [16, 21]}},
            TWO + b'["\xff"]',
        ),
        "not a JSON list of strings",
    ),
    "too few names": (
        tensor_file(
            {"coef": f64(), "feature_names": {**NAMES, "shape": [5], "data_offsets": [16, 21]}},
            TWO + b'["a"]',
        ),
        "1 feature names for 2",
    ),
}


def write_pair(folder, content, name="m.safetensors"):
    renew(folder / "m.safetensors", content)
    digest = arrays.digest([content])
    document = changed(arrays=name, sha256=digest, coef=None, feature_names=None)
    renew(folder / "m.json", document.encode())
    return folder / "m.json"


@pytest.mark.parametrize("name", TENSORS)
def test_hostile_arrays(name, tmp_path):
    content, message = TENSORS[name]
    path = write_pair(tmp_path, content)
    with pytest.raises(ModelFormatError, match=message) as caught:
        load_model(path)
    assert str(path) in str(caught.value)


def test_the_valid_arrays_are_valid(tmp_path):
    content = tensor_file(
        {"coef": f64(), "feature_names": {**NAMES, "shape": [10], "data_offsets": [16, 26]}},
        TWO + b'["a", "b"]',
    )
    model = load_model(write_pair(tmp_path, content))
    assert model.coef.tolist() == [0.5, -1.0]
    assert model.feature_names == ["a", "b"]


@pytest.mark.parametrize(
    "name", ["../m.safetensors", "/etc/passwd", "a/b", "a\\b", "", ".", "..", "m\0.safetensors"]
)
def test_the_arrays_file_lies_beside(name, tmp_path):
    path = write_pair(tmp_path, tensor_file({"coef": f64()}, TWO), name)
    with pytest.raises(ModelFormatError, match="expected a file name without a folder"):
        load_model(path)


def test_arrays_of_another_model_are_noticed(tmp_path):
    """As after a save that was interrupted between the two files."""
    path = write_pair(tmp_path, tensor_file({"coef": f64()}, TWO))
    (tmp_path / "m.safetensors").write_bytes(tensor_file({"coef": f64()}, TWO[::-1]))
    with pytest.raises(ModelFormatError, match=r"m\.safetensors: it belongs to another model"):
        load_model(path)


def test_missing_arrays_and_arrays_in_two_places(tmp_path):
    path = write_pair(tmp_path, tensor_file({"coef": f64()}, TWO))
    (tmp_path / "m.safetensors").unlink()
    with pytest.raises(ModelFormatError, match="the file is missing; keep it beside"):
        load_model(path)
    os.mkfifo(tmp_path / "m.safetensors")
    with pytest.raises(ModelFormatError, match="not a regular file"):
        load_model(path)
    path.write_text(changed(arrays="m.safetensors", sha256=""))
    with pytest.raises(ModelFormatError, match="'feature_names' is a list, expected null"):
        load_model(path)


# ---- fuzzing ------------------------------------------------------------------------------------

TOKENS = [
    b"{",
    b"}",
    b"[",
    b"]",
    b",",
    b":",
    b'"',
    b"\\",
    b"null",
    b"true",
    b"-",
    b"1e999",
    b"NaN",
    b"0",
    b"9" * 30,
    b"\xff",
    b"\0",
    b"\\ud800",
    b'"coef"',
    b'"arrays"',
    b'""',
    b"0.5",
    b" ",
]


def mutate(rng, content):
    """A few edits of the kinds that break parsers: flips, cuts, copies, moves, tokens."""
    content = bytearray(content)
    for _ in range(rng.choice([1, 1, 1, 2, 3, 8])):
        at = rng.randrange(len(content) + 1)
        end = min(len(content), at + rng.choice([1, 1, 2, 5, 40]))
        kind = rng.randrange(6)
        if kind == 0 and at < len(content):
            content[at] ^= 1 << rng.randrange(8)
        elif kind == 1:
            del content[at:end]
        elif kind == 2:
            content[at:at] = content[at:end]
        elif kind == 3:
            content[at:end] = rng.choice(TOKENS)
        elif kind == 4:
            content[at:at] = rng.choice(TOKENS) * rng.choice([1, 2, 1000])
        else:
            del content[at:]
    return bytes(content)


def renew(path, content):
    """Write a new file: overwriting one makes some file systems wait for the disk."""
    path.unlink(missing_ok=True)
    path.write_bytes(content)


def check_loads_or_refuses(path):
    """Whether the file is accepted; anything but a sound model or a ModelFormatError fails."""
    try:
        model = load_model(path)
    except ModelFormatError:
        return False
    assert model.coef.dtype == np.float64
    assert np.isfinite(model.coef).all()
    assert np.isfinite(model.predict(np.zeros((1, model.n_features)), qid=[0])).all()
    return True


def test_fuzzed_json(tmp_path):
    path = tmp_path / "m.json"
    training = {"C": 1.0, "solver": "newton", "gap": None, "converged": True}
    LinearModel(
        [0.1, -2e-300, 3.0],
        ["a", "ü", 'q"'],
        Scaling("standard", np.array([1.0, 0.0, 2.5])),
        training,
    ).save(path)
    fuzz(path, 20261115)


def test_fuzzed_sparse_json(tmp_path):
    path = tmp_path / "m.json"
    coef = np.zeros(60)
    coef[[3, 17, 41]] = 0.25, -0.0, 1e-300
    LinearModel(coef, scaling=Scaling("minmax", np.abs(coef)), training={"C": 1.0}).save(path)
    assert json.loads(path.read_text())["coef"]["indices"] == [3, 17, 41]
    fuzz(path, 5)


def fuzz(path, seed_of_edits):
    """Load thousands of edited copies of a file."""
    seed = path.read_bytes()
    rng = random.Random(seed_of_edits)
    deadline = time.monotonic() + 20
    outcomes = []
    for _ in range(4000):
        renew(path, mutate(rng, seed))
        outcomes.append(check_loads_or_refuses(path))
        if time.monotonic() > deadline:
            break
    assert len(outcomes) >= 500
    # Some edits only touch a digit or a name; most must be noticed.
    assert 0 < sum(outcomes) < 0.5 * len(outcomes)


def test_fuzzed_arrays(tmp_path):
    seed = tensor_file(
        {"coef": f64(), "feature_names": {**NAMES, "shape": [10], "data_offsets": [16, 26]}},
        TWO + b'["a", "b"]',
    )
    rng = random.Random(2)
    deadline = time.monotonic() + 20
    outcomes = []
    for _ in range(2000):
        outcomes.append(check_loads_or_refuses(write_pair(tmp_path, mutate(rng, seed))))
        if time.monotonic() > deadline:
            break
    assert len(outcomes) >= 300
    assert 0 < sum(outcomes) < 0.5 * len(outcomes)


STRANGE = [
    *(None, True, 0, -1, 2.5, 1e308, 5e-324, 10**63, "x", "mean", "indicator", 3, [], {}, [1]),
    *([None], [[1]], [1e308] * 3, [-1, -2, -3], {"a": 1}),
    *({"indices": [k], "values": [1.0]} for k in (0, 3, -1, True)),
]


@given(
    st.sampled_from(["mean", "indicator"]),
    st.lists(st.tuples(st.integers(0, 999), st.sampled_from(STRANGE)), min_size=1, max_size=3),
)
@examples(100)
def test_any_document_is_read_or_refused(kind, changes):
    """Every value of the document is replaced by what does not belong there."""
    numbers = np.array([0.5, 0.0, 2.0])
    missing = Missing(kind, *((numbers, None) if kind == "mean" else (None, numbers)))
    statistics = ColumnStatistics.of(DenseRows(np.array([[1.0, 2.0, 0.0], [2.0, 2.0, 1.0]])))
    model = LinearModel([1.0, 0.0, -2.0], missing=missing, statistics=statistics)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "m.json")
        model.save(path)
        with open(path) as file:
            document = json.load(file)
        for place, value in changes:
            places = [(document, key) for key in document]
            part = document.get("filled")
            places += [(part, key) for key in part] if isinstance(part, dict) else []
            holder, key = places[place % len(places)]
            holder[key] = value
        with open(path, "w") as file:
            json.dump(document, file)
        with contextlib.suppress(ModelFormatError):
            assert load_model(path).n_features == document["n_features"]


@pytest.mark.parametrize("name", [r"\ud800", r"x\uDFFFy"])
def test_half_a_surrogate_pair_is_no_text(tmp_path, name):
    """It was read, and the model could not be saved again."""
    path = tmp_path / "m.json"
    LinearModel([1.0, 2.0]).save(path)
    path.write_text(path.read_text().replace('"training": {}', f'"training": {{"a": "{name}"}}'))
    with pytest.raises(ModelFormatError, match="half of a surrogate pair"):
        load_model(path)
