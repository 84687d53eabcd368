"""``linrank convert``: reports, options, interruptions."""

from __future__ import annotations

import gzip
import io
import json
import os
import subprocess
import sys

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import linrank
from linrank import load
from linrank.cli.main import main
from linrank.io.store.store import Store

COMMAND = [sys.executable, "-m", "linrank", "convert"]


def test_a_file_becomes_a_store(files, tmp_path, capsys):
    store = str(tmp_path / "store")
    assert main(["convert", files["train"], store, "--json"]) == 0
    out, data = capsys.readouterr(), load(files["train"])
    report = json.loads(out.out)
    assert (report["rows"], report["features"], report["passes"]) == (data.n_rows, 6, 1)
    assert report["bytes_read"] == os.path.getsize(files["train"])
    assert report["pairs"] == data.queries.n_pairs
    assert out.err.startswith(f"read      {files['train']}: ")
    assert f"wrote     {store}: {data.n_rows:,} rows, 40 queries" in out.err
    assert_array_equal(Store(store).dataset().X, data.X)
    assert Store(store).dtype == report["dtype"] == "float32"  # as linrank.load has it


def test_options_reach_the_conversion(files, tmp_path, capsys):
    store = str(tmp_path / "store")
    packed = tmp_path / "valid.gz"
    with open(files["valid"], "rb") as file:
        packed.write_bytes(gzip.compress(file.read()))
    options = ["--storage", "csr", "--dtype", "float64", "--n-features", "9", "--index-base", "0"]
    options += ["--memory-limit", "128MiB", "--chunk-size", "10kB", "-j", "1", "-q", "--force"]
    assert main(["convert", files["train"], str(packed), store, *options]) == 0
    found, data = Store(store), load(files["train"], dtype="float64", zero_based=True)
    assert (found.storage, found.dtype, found.n_features) == ("csr", np.float64, 9)
    assert (found.index_base, found.n_chunks > 1) == (0, True)
    assert found.n_rows == data.n_rows + load(packed).n_rows
    assert capsys.readouterr().err == ""


def test_a_store_is_replaced_by_force_only(files, tmp_path, cli):
    store = str(tmp_path / "store")
    cli("convert", files["train"], store)
    err = cli("convert", files["valid"], store, status=1).err
    assert "name another folder, or overwrite it (--force)" in err
    cli("convert", files["valid"], store, "--force")
    assert Store(store).n_queries == 20


def test_passes_are_told(tmp_path, cli):
    path, store = tmp_path / "data", str(tmp_path / "store")
    path.write_text("1 qid:1 1:1\n" * 200_000 + "0 qid:2 1:1\n1 qid:1 1:3\n")
    err = cli("convert", path, store, "-v").err
    assert "pass 2: a line asked for another layout or order" in err


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["{train}"], 2, "name what to write as well: linrank convert DATA -o OUT"),
        (["{train}", "{store}", "--memory-limit", "lots"], 2, "a size such as 2GB or 512MiB"),
        (["{train}", "{store}", "--memory-limit", "1MB"], 1, "must be at least 67.1 MB"),
        (["{train}", "{store}", "--chunk-size", "1GB"], 1, "give a memory_limit of 4.0 GB"),
        (["nowhere", "{store}"], 1, "nowhere: No such file or directory"),
        (["{train}", "{folder}"], 1, "and is no store; name another folder"),
        (["{model}", "{store}"], 1, "is JSON, like a model"),
        (["{train}", "{store}", "--n-features", "3"], 1, "train.txt:1:"),
        (["{train}", "-"], 2, "OUT is -, standard output: say with --to which format"),
        (["{train}", "-", "--to", "store"], 2, "which format, but a store"),
        (["{train}", "-", "--to", "csv", "--json"], 2, "both want standard output"),
        (["{train}", "{store}", "--to", "xml"], 2, "invalid choice: 'xml'"),
        (["{train}", "{store}.gz"], 1, "only text is compressed as a whole"),
        (["{train}", "{store}.txt", "--label", "y"], 1, "--label is for tables, and"),
        (["{train}", "{store}.txt", "--unjudged", "drop"], 1, "--qrels, which is not given"),
        (["{train}", "{store}.csv", "--storage", "csr"], 1, "CSV has no place for sparse rows"),
        (["{folder}", "{store}"], 1, "has no manifest.json: it is no store"),
        (["{train}", "{store}/deep"], 1, "cannot be written: there is no folder"),
    ],
)
def test_faults(files, tmp_path, cli, arguments, status, message):
    names = {**files, "store": tmp_path / "store"}
    assert message in cli("convert", *(one.format(**names) for one in arguments), status=status).err
    assert os.listdir(tmp_path) == []


def test_files_of_any_format(files, tmp_path, cli):
    data = load(files["train"])
    previous = files["train"]
    for name in ("a.parquet", "a.csv", "a.arrow", "a.store", "a.tsv.gz", "a.txt"):
        out = cli("convert", previous, tmp_path / name, "--json")
        report = json.loads(out.out)
        assert (report["rows"], report["features"]) == (data.n_rows, 6)
        assert f"wrote     {tmp_path / name}: " in out.err
        previous = str(tmp_path / name)
        assert load(previous).X.tobytes() == data.X.tobytes()
    assert report["left_out"] == ["the names of the features"]
    assert "note      svmlight has no place for the names of the features" in out.err
    err = cli("convert", files["train"], previous, status=1).err
    assert "is there already; name another, or overwrite it (--force)" in err
    assert cli("convert", files["train"], previous, "--force", "-q").err == ""


def test_standard_streams(files):
    command = [*COMMAND, "-", "-", "--to"]
    with open(files["train"], "rb") as text:
        table = subprocess.run([*command, "parquet"], stdin=text, capture_output=True, check=True)
    back = subprocess.run(
        [*command, "svmlight", "-q"], input=table.stdout, capture_output=True, check=True
    )
    found = load(io.BytesIO(back.stdout))
    assert found.X.tobytes() == load(files["train"]).X.tobytes()
    assert back.stderr == b""
    assert b"wrote     -: parquet; dense float32" in table.stderr


def test_labels_from_judgments(files, tmp_path, cli):
    """A model of the labels as qrels is that of the labels, however the rows are read."""
    qrels, models = str(tmp_path / "a.qrels"), []
    cli("convert", files["train"], qrels, "-q")
    cli("convert", files["train"], tmp_path / "store", "-q")
    wrong = tmp_path / "wrong.txt"
    with open(files["train"]) as file:
        wrong.write_text("".join("0 " + line.split(" ", 1)[1] for line in file))
    for data in (files["train"], str(wrong), str(tmp_path / "store")):
        model = str(tmp_path / "model.json")
        cli("train", data, model, "--qrels", qrels, "-q")
        models.append(linrank.load_model(model).coef)
    assert_array_equal(models[0], linrank.load_model(files["model"]).coef)
    assert_array_equal(models[1], models[0])
    assert_array_equal(models[2], models[0])
    (tmp_path / "other.qrels").write_text("nowhere 0 d0 1\n")
    arguments = ["train", files["train"], model, "--qrels", str(tmp_path / "other.qrels")]
    assert "is judged in" in cli(*arguments, status=1).err
