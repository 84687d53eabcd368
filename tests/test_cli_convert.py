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
from cli_files import interrupted
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


def test_a_store_is_replaced_by_force_only(files, tmp_path, capsys):
    store = str(tmp_path / "store")
    assert main(["convert", files["train"], store]) == 0
    assert main(["convert", files["valid"], store]) == 1
    assert "name another folder, or overwrite it (--force)" in capsys.readouterr().err
    assert main(["convert", files["valid"], store, "--force"]) == 0
    assert Store(store).n_queries == 20


def test_passes_are_told(tmp_path, capsys):
    path, store = tmp_path / "data", str(tmp_path / "store")
    path.write_text("1 qid:1 1:1\n" * 200_000 + "0 qid:2 1:1\n1 qid:1 1:3\n")
    assert main(["convert", str(path), store, "-v"]) == 0
    assert "pass 2: a line asked for another layout or order" in capsys.readouterr().err


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
def test_faults(files, tmp_path, capsys, arguments, status, message):
    names = {**files, "store": tmp_path / "store"}
    assert main(["convert", *(one.format(**names) for one in arguments)]) == status
    assert message in capsys.readouterr().err
    assert os.listdir(tmp_path) == []


def test_interrupt_leaves_nothing(tmp_path):
    data, line = tmp_path / "data", "1 qid:{} " + " ".join(f"{j}:0.5" for j in range(200)) + "\n"
    with data.open("w") as file:
        for i in range(60_000):
            file.write(line.format(i % 7000))
    interrupted([*COMMAND, str(data), str(tmp_path / "store"), "-v"], at="converting")
    assert os.listdir(tmp_path) == ["data"]


def test_an_interrupted_file_leaves_nothing(tmp_path):
    data, line = tmp_path / "data", "1 qid:{} " + " ".join(f"{j}:0.5" for j in range(200)) + "\n"
    with data.open("w") as file:
        for i in range(30_000):  # two blocks of rows, and a part
            file.write(line.format(i % 7000))
    command = [*COMMAND, str(data), str(tmp_path / "a.csv"), "-v", "--dtype", "float64"]
    interrupted(command, at="wrote")
    assert os.listdir(tmp_path) == ["data"]


def test_files_of_any_format(files, tmp_path, capsys):
    data = load(files["train"])
    previous = files["train"]
    for name in ("a.parquet", "a.csv", "a.arrow", "a.store", "a.tsv.gz", "a.txt"):
        assert main(["convert", previous, str(tmp_path / name), "--json"]) == 0
        out = capsys.readouterr()
        report = json.loads(out.out)
        assert (report["rows"], report["features"]) == (data.n_rows, 6)
        assert f"wrote     {tmp_path / name}: " in out.err
        previous = str(tmp_path / name)
        assert load(previous).X.tobytes() == data.X.tobytes()
    assert report["left_out"] == ["the names of the features"]
    assert "note      svmlight has no place for the names of the features" in out.err
    assert main(["convert", files["train"], previous]) == 1
    assert "is there already; name another, or overwrite it (--force)" in capsys.readouterr().err
    assert main(["convert", files["train"], previous, "--force", "-q"]) == 0
    assert capsys.readouterr().err == ""


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


def test_labels_from_judgements(files, tmp_path, capsys):
    """A model of the labels as qrels is that of the labels, however the rows are read."""
    qrels, models = str(tmp_path / "a.qrels"), []
    assert main(["convert", files["train"], qrels, "-q"]) == 0
    assert main(["convert", files["train"], str(tmp_path / "store"), "-q"]) == 0
    wrong = tmp_path / "wrong.txt"
    with open(files["train"]) as file:
        wrong.write_text("".join("0 " + line.split(" ", 1)[1] for line in file))
    for data in (files["train"], str(wrong), str(tmp_path / "store")):
        model = str(tmp_path / "model.json")
        assert main(["train", data, model, "--qrels", qrels, "-q"]) == 0
        models.append(linrank.load_model(model).coef)
    assert_array_equal(models[0], linrank.load_model(files["model"]).coef)
    assert_array_equal(models[1], models[0])
    assert_array_equal(models[2], models[0])
    (tmp_path / "other.qrels").write_text("nowhere 0 d0 1\n")
    arguments = ["train", files["train"], model, "--qrels", str(tmp_path / "other.qrels")]
    assert main(arguments) == 1
    assert "is judged in" in capsys.readouterr().err
