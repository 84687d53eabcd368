"""linrank export: where the artefact goes, what is said, and how mistakes are answered."""

from __future__ import annotations

import json

import numpy as np
import pytest

from linrank import LinearModel
from linrank.data.missing import Missing


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


def test_a_map_that_joins_two_features_is_refused(model, tmp_path, cli):
    mapping = tmp_path / "map.json"
    mapping.write_text('{"bm25": "age"}')
    err = cli(f"export {model} --to solr --feature-map {mapping}", status=1).err
    assert "'bm25' and 'age' with one name, 'age'" in err


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


@pytest.mark.parametrize("target", ["elasticsearch", "json"])
def test_a_folder_with_the_model_in_it_is_not_written_over(model, tmp_path, target, cli):
    """The artefact has a model.json too."""
    before = (tmp_path / "model.json").read_bytes()
    err = cli(f"export {model} --to {target} -o {tmp_path}", status=1).err
    assert "model.json: is read and would be overwritten" in err
    assert (tmp_path / "model.json").read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["model.json"]


def test_a_feature_map_is_not_written_over_by_instructions(model, tmp_path, cli):
    (tmp_path / "out.README.txt").write_text("age document_age\n")
    options = f"--feature-map {tmp_path / 'out.README.txt'} -o {tmp_path / 'out.txt'}"
    err = cli(f"export {model} --to solr {options}", status=1).err
    assert "out.README.txt: is read and would be overwritten" in err
