"""``linrank convert``: reports, options, interruptions."""

from __future__ import annotations

import gzip
import json
import os
import sys

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from cli_files import interrupted
from linrank import load
from linrank.cli.main import main
from linrank.store.store import Store

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
        (["{train}"], 2, "the following arguments are required: "),
        (["{train}", "{store}", "--memory-limit", "lots"], 2, "a size such as 2GB or 512MiB"),
        (["{train}", "{store}", "--memory-limit", "1MB"], 1, "must be at least 67.1 MB"),
        (["{train}", "{store}", "--chunk-size", "1GB"], 1, "give a memory_limit of 4.0 GB"),
        (["nowhere", "{store}"], 1, "nowhere: No such file or directory"),
        (["{train}", "{folder}"], 1, "and is no store; name another folder"),
        (["{model}", "{store}"], 1, "is JSON, like a model"),
        (["{train}", "{store}", "--n-features", "3"], 1, "train.txt:1:"),
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
