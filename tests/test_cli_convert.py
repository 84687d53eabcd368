"""``linrank convert``: reports, options, interruptions."""

from __future__ import annotations

import gzip
import io
import json
import os
import subprocess
import sys

import numpy as np
from numpy.testing import assert_array_equal

from linrank import load, load_model
from linrank.io.store.store import Store

COMMAND = [sys.executable, "-m", "linrank", "convert"]


def test_a_file_becomes_a_store(files, tmp_path, cli):
    store, data = tmp_path / "store", load(files["train"])
    out, err = cli(f"convert {files['train']} {store} --json")
    report = json.loads(out)
    assert (report["rows"], report["features"], report["passes"]) == (data.n_rows, 6, 1)
    assert report["bytes_read"] == os.path.getsize(files["train"])
    assert report["pairs"] == data.queries.n_pairs
    assert err.startswith(f"read      {files['train']}: ")
    assert f"wrote     {store}: {data.n_rows:,} rows, 40 queries" in err
    assert_array_equal(Store(store).dataset().X, data.X)
    assert Store(store).dtype == report["dtype"] == "float32"  # as linrank.load has it
    err = cli(f"convert {files['valid']} {store}", status=1).err
    assert "name another folder, or overwrite it (--force)" in err


def test_options_reach_the_conversion(files, tmp_path, cli):
    store, packed = tmp_path / "store", tmp_path / "valid.gz"
    cli(f"convert {files['train']} {store} -q")
    with open(files["valid"], "rb") as file:
        packed.write_bytes(gzip.compress(file.read()))
    options = "--storage csr --dtype float64 --n-features 9 --index-base 0 --memory-limit 128MiB"
    options += " --chunk-size 10kB -j 1 -q --force"
    assert cli(f"convert {files['train']} {packed} {store} {options}").err == ""
    found, data = Store(store), load(files["train"], dtype="float64", zero_based=True)
    assert (found.storage, found.dtype, found.n_features) == ("csr", np.float64, 9)
    assert (found.index_base, found.n_chunks > 1) == (0, True)
    assert found.n_rows == data.n_rows + load(packed).n_rows


def test_passes_are_told(tmp_path, cli):
    path = tmp_path / "data"
    path.write_text("1 qid:1 1:1\n" * 200_000 + "0 qid:2 1:1\n1 qid:1 1:3\n")
    err = cli(f"convert {path} {tmp_path / 'store'} -v").err
    assert "pass 2: a line asked for another layout or order" in err


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
    qrels, model, wrong = (tmp_path / name for name in ("a.qrels", "model.json", "wrong.txt"))
    cli(f"convert {files['train']} {qrels} -q")
    cli(f"convert {files['train']} {tmp_path / 'store'} -q")
    with open(files["train"]) as file:
        wrong.write_text("".join("0 " + line.split(" ", 1)[1] for line in file))
    for data in (files["train"], wrong, tmp_path / "store"):
        cli(f"train {data} {model} --qrels {qrels} -q")
        assert_array_equal(load_model(model).coef, load_model(files["model"]).coef)
