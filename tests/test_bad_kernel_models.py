"""Hostile files of kernel models: each ends in a ModelFormatError that says what and what to do."""

from __future__ import annotations

import base64
import json
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hypothesis_profiles import examples
from kernel_models import kernel_models
from linrank import KernelModel, ModelFormatError, load_model
from linrank.data.rows import CsrRows
from linrank.data.scaling import Scaling
from linrank.kernels.functions import Kernel
from linrank.models import file as arrays
from linrank.models import file as model_file
from peaks import peak_of
from test_bad_models import check_refused, mutate, peak_of_refusal, renew

HUGE = 2**40


def encoded(values, dtype, shape=None):
    array = np.array(values, dtype=dtype)
    data = base64.b64encode(array.tobytes()).decode()
    return {"dtype": dtype, "shape": list(shape or array.shape), "data": data}


VALID = {
    "format": "linrank-model",
    "version": 1,
    "kind": "kernel",
    "linrank": "0.1.0",
    "kernel": "rbf",
    "gamma": 0.5,
    "degree": 3,
    "coef0": 0.0,
    "n_features": 2,
    "n_support": 3,
    "n_train": 9,
    "scaling": "minmax",
    "training": {"C": 1.0},
    "arrays": None,
    "sha256": None,
    "feature_names": ["a", "b"],
    "rows": encoded([[1, 2], [3, 4], [5, 6]], "float32"),
    "values": None,
    "columns": None,
    "offsets": None,
    "coef": encoded([0.5, -1.0, 0.5], "float64"),
    "phases": None,
    "support": encoded([0, 4, 8], "int32"),
    "factors": encoded([1.0, 2.0], "float64"),
}
SPARSE = {
    **VALID,
    "rows": None,
    "values": encoded([1, 2, 3], "float32"),
    "columns": encoded([0, 1, 1], "int32"),
    "offsets": encoded([0, 2, 2, 3], "int32"),
}
COSINES = {
    **VALID,
    "kernel": "fourier",
    "phases": encoded([0.0, 1.0, 2.0], "float64"),
}
PRECOMPUTED = {
    **VALID,
    **{"kernel": "precomputed", "n_features": 9, "rows": None},
    **{"scaling": "none", "factors": None, "feature_names": None},
}


def changed(document=VALID, **changes):
    return json.dumps({**document, **changes})


def part(key, document=VALID, **changes):
    """The document with something of one array changed; None takes it away."""
    parts = {k: v for k, v in {**document[key], **changes}.items() if v is not None}
    return changed(document, **{key: parts})


def sparse(key, values, dtype="int32"):
    return changed(SPARSE, **{key: encoded(values, dtype)})


FILES = {
    "another kind": (changed(kind="tree"), "'tree', expected 'linear' or 'additive' or 'kernel'"),
    "newer version": (changed(version=2), "version 2 is newer than 1.*upgrade linrank"),
    "unknown key": (changed(intercept=1.0), "unknown key 'intercept'"),
    "kernel as object": (changed(kernel={"name": "rbf"}), "'kernel' is a dict, expected str"),
    "unknown kernel": (changed(kernel="laplace"), "kernel must be .*'fourier', got 'laplace'"),
    "callable kernel": (changed(kernel="callable"), "kernel must be .*, got 'callable'"),
    "kernel with a function": (changed(function="os.system"), "unknown key 'function'"),
    "gamma of 0": (changed(gamma=0), "gamma must be a finite number > 0, got 0.0"),
    "gamma below 0": (changed(gamma=-1.0), "gamma must be a finite number > 0"),
    "gamma endless": (changed().replace("0.5", "1e999", 1), "gamma must be a finite number > 0"),
    "gamma NaN": (changed().replace("0.5", "NaN", 1), "holds NaN, which is not a finite number"),
    "gamma as boolean": (changed(gamma=True), "'gamma' is a bool, expected int or float"),
    "gamma as text": (changed(gamma="scale"), "'gamma' is a str"),
    "degree of 0": (changed(degree=0), "'degree' is 0, expected 1 to 2147483647"),
    "degree beyond": (changed(degree=2**31), "'degree' is 2147483648"),
    "degree of 2.5": (changed(degree=2.5), "'degree' is a float, expected int"),
    "coef0 endless": (changed(coef0=0.25).replace("0.25", "-1e999"), "coef0 must be a finite"),
    "coef0 null": (changed(coef0=None), "'coef0' is a NoneType"),
    "no features": (changed(n_features=0), "'n_features' is 0, expected 1 to"),
    "absurd features": (changed(n_features=10**18), "'n_features' is 10{18}, expected"),
    "other features": (changed(n_features=3), "2 feature names for 3 features"),
    "negative support": (changed(n_support=-1), "'n_support' is -1, expected 0 to"),
    "absurd support": (changed(n_support=10**30), "'n_support' is 10{30}, expected"),
    "other support": (changed(n_support=4), r"'rows' has the shape \[3, 2\], expected \[4, 2\]"),
    "support as number": (changed(n_support=3.0), "'n_support' is a float, expected int"),
    "training rows of 0": (changed(n_train=0), "'n_train' is 0, expected 1 to"),
    "training rows as text": (changed(n_train="9"), "'n_train' is a str, expected int or null"),
    "too few training rows": (changed(n_train=8), r"support\[2\] is 8, .* training row of 8"),
    "unknown scaling": (changed(scaling="robust"), "scale must be 'none'"),
    "factors missing": (changed(factors=None), "'minmax' needs factors"),
    "factors unexpected": (changed(scaling="query"), "takes no factors"),
    "negative factor": (changed(factors=encoded([1, -1], "float64")), "finite and >= 0"),
    "too many factors": (
        changed(factors=encoded([1, 1, 1], "float64")),
        r"'factors' has the shape \[3\], expected \[2\]",
    ),
    "training nested": (changed(training={"C": [1]}), "'training.C' is a list"),
    "names of numbers": (changed(feature_names=[1, 2]), "must be strings, got 1"),
    "array as list": (changed(coef=[0.5, -1.0, 0.5]), "'coef' is a list, expected dict or null"),
    "no coefficients": (changed(coef=None), "there is no array 'coef'"),
    "array without a type": (part("coef", dtype=None), "the key 'coef.dtype' is missing"),
    "array without a shape": (part("coef", shape=None), "the key 'coef.shape' is missing"),
    "array without data": (part("coef", data=None), "the key 'coef.data' is missing"),
    "array with more": (part("coef", order="F"), "unknown key 'order' in 'coef'"),
    "type of objects": (part("rows", dtype="object"), "'rows' is object, expected float32 or"),
    "type as code": (part("rows", dtype="<f4"), "'rows' is <f4, expected float32"),
    "type of a tensor": (part("rows", dtype="F32"), "'rows' is F32, expected float32"),
    "type as number": (part("rows", dtype=4), "'rows.dtype' is a int, expected str"),
    "rows of integers": (part("rows", dtype="int32"), "'rows' is int32, expected float32 or fl"),
    "single coefficients": (
        changed(coef=encoded([1, 2, 3], "float32")),
        "'coef' is float32, expected float64",
    ),
    "support of floats": (part("support", dtype="float32"), "'support' is float32, expected int"),
    "shape as number": (part("coef", shape=3), "'coef.shape' is a int, expected list"),
    "shape of nothing": (part("coef", shape=[]), r"'coef' has the shape \[\], expected \[3\]"),
    "shape of three": (part("rows", shape=[3, 2, 1]), r"shape \[3, 2, 1\], expected \[3, 2\]"),
    "shape below 0": (part("rows", shape=[-3, -2]), "'rows.shape' holds -3, expected an integer"),
    "shape of floats": (part("coef", shape=[3.0]), "'coef.shape' holds 3.0, expected an integer"),
    "shape of booleans": (part("coef", shape=[True]), "'coef.shape' holds True"),
    "transposed rows": (part("rows", shape=[2, 3]), r"the shape \[2, 3\], expected \[3, 2\]"),
    "flat rows": (part("rows", shape=[6]), r"'rows' has the shape \[6\], expected \[3, 2\]"),
    "matrix of coefficients": (part("coef", shape=[3, 1]), r"\[3, 1\], expected \[3\]"),
    "data too short": (part("coef", data="AAAA"), "'coef.data' has 4 characters, .* takes 32"),
    "data too long": (part("coef", data="A" * 36), "'coef.data' has 36 characters"),
    "data empty": (part("coef", data=""), "'coef.data' has 0 characters"),
    "data as list": (part("coef", data=[0] * 32), "'coef.data' is a list, expected str"),
    "data of other characters": (part("coef", data="!" * 32), "'coef.data' is not base64"),
    "data with spaces": (part("coef", data=" " * 32), "'coef.data' is not base64"),
    "data not ASCII": (part("coef", data="é" * 32), "'coef.data' is not base64"),
    "data of padding": (part("coef", data="=" * 32), "'coef.data' (is not base64|holds 0 bytes)"),
    "data with one = more": (
        part("coef", data=VALID["coef"]["data"][:-1] + "="),
        "'coef.data' (is not base64|holds 23 bytes)",
    ),
    "NaN in the rows": (
        changed(rows=encoded([[1, 2], [3, np.nan], [5, 6]], "float32")),
        "support row 1 is not finite in column 1",
    ),
    "infinity in sparse rows": (sparse("values", [1, np.inf, 3], "float32"), "row 0 is not finite"),
    "NaN coefficient": (changed(coef=encoded([1, 2, np.nan], "float64")), r"coef\[2\] is nan"),
    "infinite coefficient": (changed(coef=encoded([-np.inf, 2, 3], "float64")), "is -inf"),
    "rows missing": (changed(rows=None), "only a precomputed kernel has none"),
    "rows in both forms": (changed(SPARSE, rows=VALID["rows"]), "has rows, values, columns"),
    "sparse without offsets": (changed(SPARSE, offsets=None), "has values, columns; support rows"),
    "sparse without columns": (changed(SPARSE, columns=None), "has values, offsets; support"),
    "more values than columns": (
        sparse("values", [1, 2, 3, 4], "float64"),
        "'values' has 4 entries, 'columns' 3",
    ),
    "column below": (sparse("columns", [-1, 1, 1]), "column"),
    "column beyond": (sparse("columns", [0, 2, 1]), "column"),
    "column far beyond": (sparse("columns", [0, 2**31 - 1, 1]), "column"),
    "wide column beyond": (sparse("columns", [0, 2**62, 1], "int64"), "column"),
    "columns that fall": (sparse("columns", [1, 0, 1]), "must increase"),
    "column twice": (sparse("columns", [1, 1, 1]), "must increase"),
    "columns of floats": (sparse("columns", [0, 1, 1], "float32"), "'columns' is float32"),
    "matrix of values": (
        part("values", SPARSE, shape=[3, 1]),
        r"'values' has the shape \[3, 1\], expected \[3\]",
    ),
    "offsets that fall": (sparse("offsets", [0, 2, 1, 3]), "offset"),
    "offsets from 1": (sparse("offsets", [1, 2, 2, 3]), "offset"),
    "offsets below 0": (sparse("offsets", [0, -2, 2, 3]), "offset"),
    "offsets beyond": (sparse("offsets", [0, 2, 2, 4]), "offset|values"),
    "offsets far beyond": (sparse("offsets", [0, 2, 2, 2**62], "int64"), "offset|values"),
    "offsets that end early": (sparse("offsets", [0, 1, 1, 2]), "offset|values"),
    "too few offsets": (sparse("offsets", [0, 2, 3]), r"shape \[3\], expected \[4\]"),
    "support below 0": (changed(support=encoded([0, -1, 2], "int64")), r"support\[1\] is -1"),
    "support beyond": (changed(support=encoded([0, 9, 2], "int64")), r"support\[1\] is 9"),
    "support twice": (changed(support=encoded([0, 4, 4], "int64")), "a training row twice"),
    "phases missing": (changed(COSINES, phases=None), "'fourier' needs phases"),
    "phases unexpected": (changed(phases=COSINES["phases"]), "'rbf' takes no phases"),
    "phases NaN": (
        changed(COSINES, phases=encoded([0, np.nan, 1], "float64")),
        r"phases\[1\] is nan",
    ),
    "precomputed with rows": (
        changed(PRECOMPUTED, rows=encoded(np.zeros((3, 9)), "float32")),
        "precomputed kernel takes no rows",
    ),
    "precomputed without support": (changed(PRECOMPUTED, support=None), "needs support and n_tr"),
    "precomputed without n_train": (changed(PRECOMPUTED, n_train=None), "needs support and n_tr"),
    "precomputed of other width": (
        changed(PRECOMPUTED, n_features=8),
        "n_features is 8, but",
    ),
    "precomputed and scaled": (changed(PRECOMPUTED, scaling="query"), "cannot be scaled by scale"),
    "arrays of another type": (changed(arrays=["m.safetensors"]), "'arrays' is a list, expected"),
    "arrays in two places": (
        changed(arrays="m.safetensors", sha256=""),
        "'feature_names' is a list, expected null",
    ),
    **{
        f"missing {key}": (
            json.dumps({k: v for k, v in VALID.items() if k != key}),
            "not a linrank model" if key == "format" else f"'{key}' is missing",
        )
        for key in VALID
    },
}


@pytest.mark.parametrize("name", FILES)
def test_hostile_file(name, tmp_path):
    check_refused(tmp_path / "model.json", *FILES[name])


@pytest.mark.parametrize("document", [VALID, SPARSE, COSINES, PRECOMPUTED])
def test_the_valid_files_are_valid(document, tmp_path):
    """Else the files above could be refused for another reason."""
    (tmp_path / "m.json").write_text(changed(document))
    model = load_model(tmp_path / "m.json")
    assert model.coef.tolist() == [0.5, -1.0, 0.5]
    assert model.support.tolist() == [0, 4, 8]
    assert np.isfinite(model.predict(np.ones((2, model.n_features)))).all()


@pytest.mark.parametrize(
    "content",
    [
        changed(n_support=HUGE, rows={**VALID["rows"], "shape": [HUGE, 2]}),
        changed(n_features=2**30, feature_names=None, rows={**VALID["rows"], "shape": [3, 2**30]}),
        changed(n_support=HUGE, rows=None, coef={**VALID["coef"], "shape": [HUGE]}),
        changed(SPARSE, n_support=HUGE, offsets={**SPARSE["offsets"], "shape": [HUGE + 1]}),
        changed(SPARSE, values={**SPARSE["values"], "shape": [2**60]}),
        changed(SPARSE, values={**SPARSE["values"], "shape": [10**60]}),
        changed(PRECOMPUTED, n_features=2**30, n_train=2**30 - 1),
        changed(SPARSE, n_features=2**30, feature_names=None, scaling="none"),
    ],
)
def test_a_short_file_takes_no_memory(content, tmp_path):
    (tmp_path / "m.json").write_text(content)
    assert peak_of_refusal(tmp_path / "m.json") < 1 << 20


def test_reading_takes_a_few_times_the_memory_of_the_file(tmp_path):
    path = tmp_path / "m.json"
    rows = np.random.default_rng(0).normal(size=(20_000, 30)).astype(np.float32)
    KernelModel(rows, np.ones(20_000), Kernel("rbf")).save(path)
    assert peak_of(lambda: load_model(path)) < 3.5 * path.stat().st_size


# ---- the safetensors file beside a large model --------------------------------------------------


@pytest.fixture
def pair(tmp_path, monkeypatch):
    """Write a model in two files, with some tensors exchanged behind the back of the checks."""

    def write(**changes):
        original = arrays.to_tensors
        monkeypatch.setattr(arrays, "MAX_PACKED", -1)
        monkeypatch.setattr(
            arrays,
            "to_tensors",
            lambda tensors, names, size: original(
                {k: v for k, v in {**tensors, **changes}.items() if v is not None}, names, size
            ),
        )
        rows = CsrRows(np.ones(3), np.array([0, 1, 1]), np.array([0, 2, 2, 3]), 2)
        support = np.array([0, 4, 8])
        KernelModel(rows, np.ones(3), Kernel("rbf"), support, 9, feature_names="ab").save(
            tmp_path / "m.json"
        )
        return tmp_path / "m.json"

    return write


TENSORS = {
    "no coefficients": ({"coef": None}, "there is no array 'coef'"),
    "one more": ({"x": np.ones(2)}, "unknown tensor 'x'"),
    "single precision": ({"coef": np.ones(3, np.float32)}, "'coef' is float32, expected float64"),
    "half precision": ({"values": np.ones(3, np.float16)}, "'values' is F16, expected float32"),
    "other length": ({"coef": np.ones(4)}, r"'coef' has the shape \[4\], expected \[3\]"),
    "matrix": ({"values": np.ones((3, 1))}, r"'values' has the shape \[3, 1\], expected \[3\]"),
    "NaN": ({"values": np.array([1, np.nan, 2])}, "support row 0 is not finite in column 1"),
    "column beyond": ({"columns": np.array([0, 2, 1])}, "column"),
    "offsets beyond": ({"offsets": np.array([0, 2, 2, 2**40])}, "offset|values"),
    "no offsets": ({"offsets": None}, "has values, columns; support rows are"),
    "support twice": ({"support": np.array([1, 1, 2])}, "a training row twice"),
}


@pytest.mark.parametrize("name", TENSORS)
def test_hostile_arrays(name, pair):
    changes, message = TENSORS[name]
    path = pair(**changes)
    with pytest.raises(ModelFormatError, match=message) as caught:
        load_model(path)
    assert str(path) in str(caught.value)


def test_the_valid_arrays_are_valid(pair):
    model = load_model(pair())
    assert model.feature_names == ["a", "b"]
    assert model.rows.offsets.tolist() == [0, 2, 2, 3]


# ---- fuzzing ------------------------------------------------------------------------------------


def check_loads_or_refuses(path):
    """Whether the file is accepted; anything but a sound model or a ModelFormatError fails."""
    try:
        model = load_model(path)
    except ModelFormatError:
        return False
    assert np.isfinite(model.coef).all()
    if model.n_features < 1000:
        zeros = np.zeros((2, model.n_features))
        try:
            with np.errstate(all="ignore"):
                assert model.predict(zeros, qid=[0, 1]).shape == (2,)
        except ValueError as error:  # numbers that are finite, their products not
            if "overflows on these rows" not in str(error):
                raise
    return True


@pytest.mark.parametrize("document", [VALID, SPARSE, COSINES, PRECOMPUTED])
def test_fuzzed_json(document, tmp_path):
    path, rng = tmp_path / "m.json", random.Random(11)
    seed = changed(document).encode()
    outcomes = []
    for _ in range(10 * settings().max_examples):
        renew(path, mutate(rng, seed))
        outcomes.append(check_loads_or_refuses(path))
    # Most of the text is data, where an edit may well be another number.
    assert 0 < sum(outcomes) < 0.8 * len(outcomes)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=5,
)


@examples(40)  # each writes a file
@given(model=kernel_models(), key=st.sampled_from(sorted(VALID)), value=JSON)
def test_any_value_in_place_of_any_field(model, key, value, tmp_path_factory):
    path = tmp_path_factory.getbasetemp() / "any-value.json"
    model.save(path)
    document = json.loads(path.read_text())
    renew(path, json.dumps({**document, key: value}).encode())
    check_loads_or_refuses(path)


@examples(40)  # each writes a file
@given(model=kernel_models(), data=st.data())
def test_any_bytes_in_place_of_those_of_an_array(model, data, tmp_path_factory):
    path = tmp_path_factory.getbasetemp() / "any-bytes.json"
    model.save(path)
    document = json.loads(path.read_text())
    keys = [key for key, value in document.items() if isinstance(value, dict) and key != "training"]
    parts = document[data.draw(st.sampled_from(keys))]
    n_bytes = len(base64.b64decode(parts["data"]))
    content = data.draw(st.binary(min_size=n_bytes, max_size=n_bytes))
    parts["data"] = base64.b64encode(content).decode()
    renew(path, json.dumps(document).encode())
    check_loads_or_refuses(path)


def test_big_endian_numbers_give_the_same_bytes():
    values, spec = np.array([1.0, -2.5, 3e300]), model_file.TABLES["kernel"]["coef"]
    assert spec.encode(values) == spec.encode(values.astype(">f8"))
    back = spec.decode("coef", spec.encode(values.astype(">f8")), {"n_support": 3})
    assert back.tolist() == values.tolist()
    assert back.dtype.isnative


def test_scaled_models_are_fuzzed_too(tmp_path):
    path, rng = tmp_path / "m.json", random.Random(5)
    scaling = Scaling("standard", np.array([1.0, 0.5]))
    KernelModel(np.ones((2, 2)), [1.0, -1.0], Kernel("poly"), scaling=scaling).save(path)
    seed = path.read_bytes()
    outcomes = []
    for _ in range(300):
        renew(path, mutate(rng, seed))
        outcomes.append(check_loads_or_refuses(path))
    assert 0 < sum(outcomes) < len(outcomes)
