"""Commands that read data take the folder of a store in its place."""

from __future__ import annotations

import numpy as np
import pytest

import linrank
from linrank import Store

TEXT = "".join(
    f"{(7 * i) % 3} qid:{i // 6} 1:{i % 5} 2:{(i * i) % 7} 3:{i % 2} # docid = d{i}\n"
    for i in range(120)
)


@pytest.fixture
def place(tmp_path):
    (tmp_path / "data.txt").write_text(TEXT)
    Store.of(tmp_path / "store", linrank.load(tmp_path / "data.txt"), chunk_bytes=300)
    return tmp_path


@pytest.mark.parametrize("options", [[], ["--method", "domination"], ["--method", "sgd"]])
def test_train_predict_and_evaluate_as_with_text(place, options, cli):
    found = {}
    for source in ("data.txt", "store"):
        model = place / f"{source}.json"
        cli("train", place / source, model, *options, "--quiet")
        coef = linrank.load_model(model).coef
        scores = cli("predict", place / source, model, "--quiet").out
        measures = cli("evaluate", place / source, "--model", model, "--json").json
        found[source] = coef, scores, measures["metrics"]
    np.testing.assert_array_equal(found["data.txt"][0], found["store"][0])
    assert found["data.txt"][1:] == found["store"][1:]


def test_inspect_and_tune(place, cli):
    reports = [cli("inspect", place / source, "--json").json for source in ("data.txt", "store")]
    for report in reports:
        report.pop("source")
    assert reports[0] == reports[1]
    cli("tune", place / "store", "-o", place / "m.json", "--Cs", "0.1,1", "--quiet")
    assert linrank.load_model(place / "m.json").n_features == 3


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--dtype", "float64"], "--dtype float64 cannot change; leave --dtype out"),
        (["--index-base", "0"], "--index-base 0 cannot change; leave --index-base out"),
    ],
)
def test_what_is_decided_cannot_be_changed(place, options, message, cli):
    err = cli("train", place / "store", place / "m.json", *options, status=1).err
    assert message in err
    assert not (place / "m.json").exists()


def test_damage_is_told(place, cli):
    content = bytearray((place / "store" / "values.bin").read_bytes())
    content[100] ^= 1
    (place / "store" / "values.bin").write_bytes(content)
    message = cli("inspect", place / "store", status=1).err
    assert "values.bin: chunk 0" in message
    assert "Traceback" not in message
    (place / "store" / "manifest.json").unlink()
    assert "has no manifest.json" in cli("inspect", place / "store", status=1).err
