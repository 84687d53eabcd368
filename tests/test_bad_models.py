"""Hostile model files: each ends in a ModelFormatError that says what, where and what to do."""

import base64
import json
import os
import threading
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fuzz_files
from fuzz_files import renew
from hypothesis_profiles import examples
from linrank import KernelModel, LinearModel, ModelFormatError, load_model
from linrank.data.rows import ColumnStatistics, CsrRows, DenseRows
from linrank.data.scaling import Scaling
from linrank.kernels.functions import Kernel
from linrank.models import file as model_file
from peaks import peak_of

HUGE = 2**40
CORPUS = Path(__file__).parent / "corpus" / "model"


def document_of(model):
    return json.loads(model.to_json())


def saved(name):
    """A file of the corpus, which shows the format as it is."""
    return json.loads((CORPUS / name).read_text())


def packed(values, dtype="float64"):
    array = np.array(values, dtype=dtype)
    data = base64.b64encode(array.tobytes()).decode()
    return {"dtype": dtype, "shape": list(array.shape), "data": data}


ROWS = np.array([[1, 2], [3, 4], [5, 6]], np.float32)
COEF, SUPPORT, MINMAX = [0.5, -1.0, 0.5], [0, 4, 8], Scaling("minmax", np.array([1.0, 2.0]))
RBF = Kernel("rbf", 0.5)
OF_KERNEL = {"feature_names": ["a", "b"], "training": {"C": 1.0}, "scaling": MINMAX}
CSR = CsrRows(ROWS.ravel()[:3], np.array([0, 1, 1]), np.array([0, 2, 2, 3]), 2)
LINEAR = document_of(LinearModel([0.5, -1.0], ["a", "b"], training={"C": 1.0}))
KERNEL = document_of(KernelModel(ROWS, COEF, RBF, SUPPORT, 9, **OF_KERNEL))
SPARSE = document_of(KernelModel(CSR, COEF, RBF, SUPPORT, 9, **OF_KERNEL))
PRECOMPUTED = document_of(KernelModel(None, COEF, Kernel("precomputed", 0.5), SUPPORT, 9))
# Six features, of which the coefficients of two are stored.
SHORT = {"n_features": 6, "feature_names": None, "coef": {"indices": [1, 4], "values": [0.5, -1.0]}}
SHORT = {**LINEAR, **SHORT}
LONG = {**LINEAR, "coef": packed([0.5, -1.0])}
KNOWN = LinearModel([0.5, -1.0], statistics=ColumnStatistics.of(DenseRows(ROWS)))
KNOWN = document_of(KNOWN)
CURVES, INTERACTIONS, MEAN = map(saved, ("additive", "interactions", "missing_mean"))

# What is no document, or none of a model.
TEXTS = {
    "empty": ("", "the file is empty; restore"),
    "blank": (" \n ", "not JSON at line 2, column 2"),
    "truncated": (json.dumps(LINEAR)[:-20], "not JSON at line 1, column"),
    "truncated in a string": ('{"format": "linr', "not JSON at line 1"),
    "trailing text": (json.dumps(LINEAR) + "}", "not JSON at line 1"),
    "not UTF-8": (b'{"format": "\xff"}', "byte 12 is not UTF-8"),
    "UTF-16": (json.dumps(LINEAR).encode("utf-16"), "not UTF-8"),
    "byte order mark": (b"\xef\xbb\xbf" + json.dumps(LINEAR).encode(), "not JSON at line 1"),
    "NUL bytes": (b"\0" * 100, "not JSON at line 1"),
    "pickle": (b"\x80\x04\x95\x10\x00.", "not UTF-8.*save.. of a linrank model"),
    "Parquet": (b"PAR1....", "a table .Parquet or Arrow., not a model; pass a file"),
    "liblinear model": ("solver_type L2R_L2LOSS_RANKSVM\nnr_feature 2\n", "not JSON at line 1"),
    "JSON list": ("[1, 2]", "holds a list, not an object; pass a file"),
    "JSON number": ("17", "holds a int, not an object"),
    "foreign JSON": ('{"learner": {"version": [3, 0]}}', r'no "format": "linrank-model"'),
    "duplicate key": (json.dumps(LINEAR)[:-1] + ', "coef": [9, 9]}', "'coef' occurs twice"),
    "deeply nested objects": ('{"a":' * 10**5, "more lists and objects"),
}
# The JSON text of one value of a linear model replaced.
RAW = {
    "duplicate nested key": ("training", '{"C": 1, "C": 2}', "'C' occurs twice"),
    "NaN": ("coef", "[NaN, 1]", "holds NaN, which is not a finite number"),
    "Infinity": ("coef", "[1, -Infinity]", "holds -Infinity"),
    "beyond double": ("coef", "[1e999, 1]", r"coef\[0\] is inf"),
    "half a character": ("feature_names", r'["\ud800", "b"]', "half of a surrogate pair"),
    "the other half": ("training", r'{"a": "x\uDFFFy"}', "half of a surrogate pair"),
    "deeply nested": ("training", "[" * 10**6, "more lists and objects"),
    "many values": ("coef", "[" + "0," * model_file.MAX_VALUES + "0]", "more than 4000000 values"),
    "endless integer": ("n_features", "9" * 10**6, "a number of more than 64 characters"),
    "endless fraction": ("coef", f"[0.{'3' * 10**6}, 1]", "more than 64 characters"),
}
for name, (key, value, message) in RAW.items():
    TEXTS[name] = (json.dumps({**LINEAR, key: "@"}).replace('"@"', value), message)
# Fields of a document changed; "array.part" is a part of one, and ... takes it away.
DAMAGES = [
    (LINEAR, {"format": ["linrank-model"]}, "not a linrank model"),
    (LINEAR, {"version": 2}, "version 2 is newer than 1.*upgrade linrank"),
    (LINEAR, {"version": 0}, "'version' is 0, expected 1 to"),
    (LINEAR, {"kind": "tree"}, "kind is 'tree', expected 'linear' or 'additive' or 'kernel'"),
    (LINEAR, {"intercept": 3.0}, "unknown key 'intercept'"),
    (LINEAR, {"coef": [True, 1.0]}, r"coef\[0\] is a bool, expected a number"),
    (LINEAR, {"coef": {"a": 1}}, "unknown key 'a' in 'coef'"),
    (LINEAR, {"coef": [1.0]}, "'coef' has 1 entries, expected 2"),
    (LINEAR, {"coef": None}, "there is no array 'coef'"),
    (LINEAR, {"n_features": 0, "coef": []}, "'n_features' is 0, expected 1 to"),
    (LINEAR, {"feature_names": ["a"] * 3}, "3 feature names for 2"),
    (LINEAR, {"feature_names": [1, 2]}, "must be strings, got 1"),
    (LINEAR, {"scaling": "robust"}, "scale must be 'none'"),
    (LINEAR, {"scaling": "standard"}, "needs factors"),
    (LINEAR, {"factors": [1.0, 1.0]}, "takes no factors"),
    (LINEAR, {"scaling": "minmax", "factors": [1.0, -1.0]}, "finite and >= 0"),
    (LINEAR, {"training": {"C": [1]}}, "'training.C' is a list"),
    (LINEAR, {"statistics.weight": 3.0}, "'statistics.n_rows' is null, but other statistics"),
    (KNOWN, {"statistics.weight": 0}, "a weight or a variance that no rows have"),
    (KNOWN, {"statistics.variance": [-1.0, 1.0]}, "a weight or a variance that no rows have"),
    (KNOWN, {"statistics.n_rows": 0}, "'statistics.n_rows' is 0"),
    (KNOWN, {"statistics.low": None}, "'statistics.low' is null, but other"),
    (MEAN, {"missing": "guess"}, "missing must be 'error', "),
    (MEAN, {"filled": None}, "missing='mean' needs values"),
    (MEAN, {"filled": [0.5]}, "'filled' has 1 entries, expected"),
    (MEAN, {"absent": [0.5] * MEAN["n_features"]}, "'absent' holds a number other than 0 and 1"),
    (KNOWN, {"statistics.mean": packed([1, np.inf])}, "'statistics.mean' holds a number that is"),
    (KNOWN, {"statistics.n_nonzero": [1, 4]}, "'statistics.n_nonzero' counts no rows from 0 to 3"),
    (CURVES, {"curves.knots": None}, "there is no array 'curves.knots'"),
    (CURVES, {"curves.offsets": packed([0], "int64")}, "offsets of 2 curves do not fit their 6"),
    (CURVES, {"curves.feature": packed([0])}, "'curves.feature' is float64, expected int32"),
    (CURVES, {"n_features": 5}, "'filled' has 2 entries, expected 5"),
    (CURVES, {"scaling": "standard"}, "the scaling of an additive model is in its curves: 'none'"),
    (CURVES, {"gamma": 1.0}, "interactions have landmarks and coefficients"),
    (INTERACTIONS, {"gamma": -1.0}, "gamma must be a finite number > 0, got -1.0"),
    (INTERACTIONS, {"landmarks": None}, "interactions have landmarks and coefficients"),
    (INTERACTIONS, {"n_landmarks": 3}, r"'landmarks' has the shape \[2, 2\], expected \[3, 2\]"),
    (INTERACTIONS, {"coef": packed([0.0])}, r"'coef' has the shape \[1\], expected \[2\]"),
    (LONG, {"coef.shape": [3]}, r"'coef' has the shape \[3\], expected \[2\]"),
    (LONG, {"coef": packed([1, np.nan])}, r"coef\[1\] is nan"),
    (SHORT, {"coef.indices": ...}, "the key 'coef.indices' is missing"),
    (SHORT, {"coef.default": 1.0}, "unknown key 'default' in 'coef'"),
    (SHORT, {"coef.indices": [1]}, "'coef' has 1 indices and 2 values"),
    (SHORT, {"coef.indices": [4, 4]}, r"coef.indices\[1\] is 4, expected 5 to 5: they inc"),
    (SHORT, {"coef.values": [1.0, None]}, r"coef.values\[1\] is a NoneType"),
    (SHORT, {"n_features": 2**24 + 1}, "16777217 entries, and there is free memory for 16777216"),
    (KERNEL, {"kernel": "laplace"}, "kernel must be .*'precomputed', got 'laplace'"),
    (KERNEL, {"kernel": "callable"}, "kernel must be .*, got 'callable'"),
    (KERNEL, {"gamma": 0}, "gamma must be a finite number > 0, got 0.0"),
    (KERNEL, {"n_train": 8}, r"support\[2\] is 8, .* training row of 8"),
    (KERNEL, {"coef": None}, "there is no array 'coef'"),
    (KERNEL, {"coef.dtype": ...}, "the key 'coef.dtype' is missing"),
    (KERNEL, {"coef.order": "F"}, "unknown key 'order' in 'coef'"),
    (KERNEL, {"rows.dtype": "object"}, "'rows' is object, expected float32 or"),
    (KERNEL, {"rows.shape": [-3, -2]}, "'rows.shape' holds -3, expected an integer"),
    (KERNEL, {"coef.shape": [3.0]}, "'coef.shape' holds 3.0, expected an integer"),
    (KERNEL, {"coef.data": "AAAA"}, "'coef.data' has 4 characters, .* takes 32"),
    (KERNEL, {"coef.data": [0] * 32}, "'coef.data' is a list, expected str"),
    (KERNEL, {"coef.data": "!" * 32}, "'coef.data' is not base64"),
    (KERNEL, {"coef.data": "A" * 31 + "="}, "'coef.data' (is not base64|holds 23 bytes)"),
    (KERNEL, {"rows": packed([[1, 2], [3, np.nan], [5, 6]])}, "support row 1 is not finite in col"),
    (KERNEL, {"rows": None}, "only a precomputed kernel has none"),
    (KERNEL, {"support": packed([0, -1, 2], "int64")}, r"support\[1\] is -1"),
    (KERNEL, {"support": packed([0, 4, 4], "int64")}, "a training row twice"),
    (SPARSE, {"values": packed([1, np.inf, 3], "float32")}, "row 0 is not finite"),
    (SPARSE, {"rows": KERNEL["rows"]}, "has rows, values, columns"),
    (SPARSE, {"values": packed([1, 2, 3, 4])}, "'values' has 4 entries, 'columns' 3"),
    (SPARSE, {"columns": packed([-1, 1, 1], "int32")}, "column"),
    (SPARSE, {"columns": packed([1, 1, 1], "int32")}, "must increase"),
    (SPARSE, {"offsets": packed([0, 2, 1, 3], "int32")}, "offset"),
    (SPARSE, {"offsets": packed([0, 2, 2, 2**62], "int64")}, "offset|values"),
    (SPARSE, {"offsets": packed([0, 2, 3], "int32")}, r"shape \[3\], expected \[4\]"),
    (PRECOMPUTED, {"rows": packed(np.zeros((3, 9)))}, "precomputed kernel takes no rows"),
    (PRECOMPUTED, {"support": None}, "needs support and n_tr"),
    (PRECOMPUTED, {"n_features": 8}, "n_features is 8, but"),
    (PRECOMPUTED, {"scaling": "query"}, "cannot be scaled by scale"),
]


@pytest.fixture(autouse=True)
def no_free_memory(monkeypatch):
    """Else the limits are those of the machine."""
    monkeypatch.setattr(model_file, "available", lambda: 0)


def changed(document, changes):
    """The document with fields, or parts of them, changed."""
    found = json.loads(json.dumps(document))
    for where, value in changes.items():
        key, _, part = (where, "", "") if where in document else where.partition(".")
        holder, key = (found[key], part) if part else (found, key)
        if value is ...:
            del holder[key]
        else:
            holder[key] = value
    return found


def refusal(path, content):
    """The error says which file, what of it, and what to do."""
    content = json.dumps(content) if isinstance(content, dict) else content
    renew(path, content if isinstance(content, bytes) else content.encode())
    with pytest.raises(ModelFormatError) as caught:
        load_model(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert "; " in str(caught.value)  # there is a remedy
    return caught


@pytest.mark.parametrize("name", TEXTS)
def test_what_is_no_document_is_refused(name, tmp_path):
    content, message = TEXTS[name]
    refusal(tmp_path / "m.json", content).match(message)


def test_damaged_fields_are_refused(tmp_path):
    for document, changes, message in DAMAGES:
        refusal(tmp_path / "m.json", changed(document, changes)).match(message)


@pytest.mark.parametrize(
    "document", [LINEAR, KERNEL, INTERACTIONS], ids=["linear", "kernel", "additive"]
)
def test_every_field_is_there_and_of_its_type(document, tmp_path):
    names = {type(None): "null"}
    for key, spec in model_file.TABLES[document["kind"]].items():
        lacking = "not a linrank model" if key == "format" else f"the key '{key}' is missing"
        refusal(tmp_path / "m.json", changed(document, {key: ...})).match(lacking)
        expected = " or ".join(names.get(kind, kind.__name__) for kind in spec.types)
        for value in (None, True, 7, 2.5, "x", [], {}):
            if type(value) not in spec.types and key != "format":
                caught = refusal(tmp_path / "m.json", changed(document, {key: value}))
                caught.match(f"'{key}' is a {type(value).__name__}, expected {expected}")


@pytest.mark.parametrize("document", [LINEAR, SHORT, LONG, KNOWN, KERNEL, SPARSE, PRECOMPUTED])
def test_the_valid_documents_are_valid(document, tmp_path):
    """Else the damaged ones could be refused for another reason."""
    (tmp_path / "m.json").write_text(json.dumps(document))
    model = load_model(tmp_path / "m.json")
    assert np.isfinite(model.predict(np.ones((2, model.n_features)))).all()
    assert model.coef[model.coef != 0.0].tolist()[:2] == [0.5, -1.0]


def peak_of_refusal(path):
    """The memory that it takes to refuse a file."""

    def refuse():
        with pytest.raises(ModelFormatError):
            load_model(path)

    return peak_of(refuse)


@pytest.mark.parametrize(
    ("document", "changes"),
    [
        (SHORT, {"n_features": 2**30}),
        (SHORT, {"n_features": 2**24, "coef.indices": [1, 2**24]}),
        (LONG, {"n_features": 2**30, "feature_names": None, "coef.shape": [2**30]}),
        (KERNEL, {"n_support": HUGE, "rows.shape": [HUGE, 2]}),
        (KERNEL, {"n_features": 2**30, "feature_names": None, "rows.shape": [3, 2**30]}),
        (KERNEL, {"n_support": HUGE, "rows": None, "coef.shape": [HUGE]}),
        (SPARSE, {"n_support": HUGE, "offsets.shape": [HUGE + 1]}),
        (SPARSE, {"values.shape": [2**60]}),
        (PRECOMPUTED, {"n_features": 2**30, "n_train": 2**30 - 1}),
        (SPARSE, {"n_features": 2**30, "feature_names": None, "scaling": "none"}),
    ],
)
def test_a_short_file_takes_no_memory_before_it_is_checked(document, changes, tmp_path):
    (tmp_path / "m.json").write_text(json.dumps(changed(document, changes)))
    assert peak_of_refusal(tmp_path / "m.json") < 1 << 20


def test_a_huge_file_is_refused_before_it_is_read(tmp_path):
    path = tmp_path / "huge.json"
    with open(path, "wb") as file:
        file.truncate(model_file.MAX_BYTES + 1)  # sparse: takes no disk
    assert peak_of_refusal(path) < 1 << 20


def test_memory_is_bounded_by_the_text(tmp_path):
    """Ten million empty lists would take 640 MB; they are counted, not made."""
    path = tmp_path / "lists.json"
    path.write_text('{"coef": [' + "[]," * 10**7 + "[]]}")
    assert peak_of_refusal(path) < 4 * path.stat().st_size


@pytest.mark.parametrize("kind", ["linear", "kernel"])
def test_reading_takes_a_few_times_the_memory_of_the_file(kind, tmp_path, monkeypatch):
    monkeypatch.setattr(model_file, "MAX_LISTED", 1000)
    path, rows = tmp_path / "m.json", np.random.default_rng(0).normal(size=(20_000, 30))
    model = LinearModel(rows.ravel()) if kind == "linear" else KernelModel(rows, rows[:, 0], RBF)
    model.save(path)
    assert peak_of(lambda: load_model(path)) < 3.5 * path.stat().st_size


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
    worker.join(60)
    assert failures == [f"{path}: not a regular file; {model_file.FOREIGN}"]


def test_a_file_that_changes_while_it_is_read_is_refused(tmp_path, monkeypatch):
    path, stat = tmp_path / "m.json", os.stat
    path.write_text(json.dumps(LINEAR))

    def longer(name):
        found = stat(name)
        with open(name, "a") as file:
            file.write(" ")
        return found

    monkeypatch.setattr(model_file.os, "stat", longer)
    with pytest.raises(ModelFormatError, match="changed while it was read; load it again"):
        load_model(path)


# ---- any damage (fuzz_files.py damages bytes) ----------------------------------------------------

DOCUMENTS = [saved(path.name) for path in sorted(CORPUS.iterdir()) if path.name != "cut"]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=5,
)


@examples(200)
@given(st.sampled_from(DOCUMENTS), st.lists(st.tuples(st.integers(0, 99), JSON), max_size=3))
def test_any_value_in_place_of_any_field(document, changes):
    keys = list(document)
    whole = {**document, **{keys[k % len(keys)]: value for k, value in changes}}
    fuzz_files.model(json.dumps(whole).encode())


@examples(100)
@given(st.sampled_from(DOCUMENTS), st.data())
def test_any_bytes_in_place_of_those_of_an_array(document, data):
    parts = [key for key, value in document.items() if isinstance(value, dict) and "data" in value]
    if not parts:
        return
    key = data.draw(st.sampled_from(parts))
    n_bytes = len(base64.b64decode(document[key]["data"]))
    content = data.draw(st.binary(min_size=n_bytes, max_size=n_bytes))
    whole = {**document[key], "data": base64.b64encode(content).decode()}
    fuzz_files.model(json.dumps({**document, key: whole}).encode())
