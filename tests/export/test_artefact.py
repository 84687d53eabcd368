"""Artefacts: what they say of themselves, where files go, and ``linrank export``."""

import json
import os

import numpy as np
import pytest

from linrank import LinearModel
from linrank.data.missing import Missing
from linrank.export.artefact import Artefact

ONE = Artefact("solr", {"model.json": b"{}\n"}, "Put model.json there.\n")
TOLD = "First more.json, then @model.json, not a.model.json.\n"
TWO = Artefact("solr", {"model.json": b"{}\n", "more.json": b"[]\n"}, TOLD, ("careful",))


def test_what_it_says_of_itself():
    assert repr(ONE) == "<Artefact for solr: model.json (3 bytes)>"
    assert repr(TWO).endswith("more.json (3 bytes); 1 warning>")
    assert TWO.text == "{}\n"
    with pytest.raises(ValueError, match="no text"):
        _ = Artefact("onnx", {"m.onnx": b"\xff\xfe"}, "").text


BESIDE = "First es.more.json, then @es.json, not a.model.json.\n"
SAVED = [
    (ONE, "it.json", ["it.json", "it.README.txt"], "Put it.json there.\n"),
    (TWO, "es.json", ["es.json", "es.more.json", "es.README.txt"], BESIDE),
    (TWO, "out", ["out/model.json", "out/more.json", "out/README.txt"], TOLD),
    (TWO, "out/", ["out/model.json", "out/more.json", "out/README.txt"], TOLD),
    (ONE, "out/", ["out/model.json", "out/README.txt"], ONE.instructions),
    (ONE, "", ["model.json", "README.txt"], ONE.instructions),  # a folder that is there
]


@pytest.mark.parametrize(("artefact", "path", "names", "told"), SAVED)
def test_files_and_instructions_go_where_the_path_says(tmp_path, artefact, path, names, told):
    for _ in range(2):  # the second time over the old ones
        assert artefact.save(f"{tmp_path}/{path}") == [str(tmp_path / name) for name in names]
    found = {str(f.relative_to(tmp_path)): f for f in tmp_path.rglob("*") if f.is_file()}
    contents = [*artefact.files.values(), told.encode()]
    assert {name: f.read_bytes() for name, f in found.items()} == dict(
        zip(names, contents, strict=True)
    )


@pytest.mark.parametrize(
    ("artefact", "name", "error", "told"),
    [
        (TWO, "there", NotADirectoryError, r"2 files \(model.json, more.json\)"),
        (ONE, "nowhere/model.json", FileNotFoundError, "there is no folder"),
    ],
)
def test_a_place_that_cannot_be_is_named(tmp_path, artefact, name, error, told):
    (tmp_path / "there").write_text("old")
    with pytest.raises(error, match=told):
        artefact.save(tmp_path / name)
    assert os.listdir(tmp_path) == ["there"]


@pytest.mark.skipif(not os.path.exists("/dev/null"), reason="needs a device")
def test_devices_are_written_to_and_not_replaced():
    assert ONE.save("/dev/null") == ["/dev/null"]
    assert not os.path.isfile("/dev/null")


@pytest.mark.parametrize("name", ["it's.json", "a b.json", "$(x).json", '".json', "a\nb.json"])
def test_a_name_that_a_shell_would_change_stays_out_of_the_instructions(tmp_path, name):
    ONE.save(tmp_path / name)
    told = (tmp_path / f"{name[:-5]}.README.txt").read_text()
    assert told == f"What is called model.json here has been written as {name!r}.\n\n" + (
        ONE.instructions
    )


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "model.json"
    LinearModel([0.5, 0.25], ["bm25", "age"]).save(path)
    return str(path)


def test_one_file_goes_to_standard_output(model, cli):
    out, err = cli(f"export {model} --to solr --name mine")
    assert json.loads(out)["name"] == "mine"
    assert "schema/model-store" in err
    assert "warning" not in err


def test_quiet_leaves_the_warnings(tmp_path, cli):
    LinearModel([0.5, -0.25], ["bm25", "age"]).save(tmp_path / "model.json")
    out, err = cli(f"export {tmp_path / 'model.json'} --to es -q")
    assert json.loads(out)["model"]["name"] == "linrank"
    assert err.startswith("linrank: warning: scores can be negative")
    assert len(err.splitlines()) == 1


def test_a_file_gets_its_instructions_beside(model, tmp_path, cli):
    output = tmp_path / "solr.json"
    out, err = cli(f"export {model} --to solr -o {output}")
    assert json.loads(output.read_text())["name"] == "linrank"
    assert "@solr.json" in (tmp_path / "solr.README.txt").read_text()
    assert out == ""
    assert f"wrote     {output}\n" in err
    assert "@solr.json" in err


def test_several_files_need_a_folder(model, tmp_path, cli):
    missing = Missing("mean", values=np.array([1.0, 0.0]))
    LinearModel([0.5, 0.25], ["bm25", "age"], missing=missing).save(model)
    err = cli(f"export {model} --to solr", status=1).err
    assert "2 files (model.json, features.json)" in err
    cli(f"export {model} --to solr -o {tmp_path / 'out'} -q")
    names = {"README.txt", "features.json", "model.json"}
    assert {path.name for path in (tmp_path / "out").iterdir()} == names


def test_maps_and_options_reach_the_target(model, tmp_path, cli):
    mapping = tmp_path / "map.txt"
    mapping.write_text("bm25 bm25(title)\nage attribute(age)\n")
    options = f"--feature-map {mapping} --option phase=second --option inherits=other"
    out = cli(f"export {model} --to vespa {options} -q").out
    assert "inherits other" in out
    assert "second-phase" in out
    assert "0.5 * bm25(title)" in out


def test_json_holds_all_of_it(model, tmp_path, cli):
    report = cli(f"export {model} --to ranklib --json -q").json
    assert report["command"] == "export"
    assert report["contents"]["model.txt"].endswith("1:0.5 2:0.25\n")
    assert report["written"] == []
    assert "RankLib" in report["instructions"]
    output = str(tmp_path / "ranker.txt")
    report = cli(f"export {model} --to ranklib --json -q -o {output}").json
    assert report["written"][0] == output
    assert "contents" not in report


@pytest.mark.parametrize(
    ("options", "victim"),
    [
        ("--to elasticsearch -o {folder}", "model.json"),  # the artefact has one too
        ("--to json -o {folder}", "model.json"),
        ("--to solr --feature-map {map} -o {folder}/out.txt", "out.README.txt"),
    ],
)
def test_what_is_read_is_not_written_over(model, tmp_path, options, victim, cli):
    readme = tmp_path / "out.README.txt"
    readme.write_text("age document_age\n")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    err = cli(f"export {model} {options}", status=1, folder=tmp_path, map=readme).err
    assert f"{victim}: is read and would be overwritten" in err
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
