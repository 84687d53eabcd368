"""What every command refuses (cli_refusals.txt): one line with value, place and remedy, no file."""

import os
import re
from dataclasses import replace
from pathlib import Path

import pytest

from cli_files import write_svmlight
from linrank import KernelModel, Store, convert, load
from linrank.cli.main import main
from linrank.data.synthetic import make_ranking
from linrank.kernels.functions import Kernel

TEXTS = {
    "bad": "1 qid:1 1:1\n0 qid:1 1:x\n",
    "flat": "1 qid:1 1:1\n1 qid:1 1:2\n",
    "plain": "1 1:1\n0 1:2\n",
    "two": "1 qid:1 1:2\n0 qid:1 1:1\n",
    "signed": "0 qid:1 1:1\n-1 qid:1 1:2\n",
    "back": "1 qid:1 1:1\n1 qid:2 1:1\n1 qid:1 1:2\n",
    "huge": "1 qid:1 1:1\n0 qid:1 2000000000:1\n",
    "long": "1 qid:1 1:1\n0 qid:1 " + " " * 5_000_000,
    "alone": "1 qid:1 1:1\n0 qid:2 1:2\n",
    "weighted": "1:2 qid:1 1:1\n",
    "bare": "1 qid:1\n0 qid:1\n",
    "short": "1\n2\n",
    "words": "1\ntwo\n",
    "nan": "1\nnan\n",
    "empty": "",
    "latin": "1.0\n\udcff\n",
    "names": "one\n\nthree\n",
    "qrels": "q1 0 a 2\nq2 0 a 1\n",
    "other_qrels": "nowhere 0 d0 1\n",
    "run": "q1 Q0 a 1 3.5 t\nq2 Q0 b 1 1 t\n",
    "other_run": "301 Q0 a 1 1 t\n",
    "columns": "qid,rel,f1\n1,0,2\n",
    "sidecar": "1 qid:1 1:1\n0 qid:1 1:2\n1 qid:2 1:3\n0 qid:2 1:1\n",
}
TABLES = {
    "shop": "query,docid,label,a,b\nred shoes,u/1,1,0.5,1\nred shoes,u/2,0,0.25,2\n",
    "gaps": "label,qid,f\n0,1,\n1,1,2\n",
    "numbers": "GX1,0,0.0,0.0\nGX2,1,0.5,0.1\n",
    "unnamed": "stars,session,a\n1,1,2\n0,1,3\n",
    "weight": "label,qid,a,weight\n1,1,2,3\n0,1,1,1\n",
    "rank": "label,qid,a,rank\n1,1,2,3\n0,1,1,1\n",
}


@pytest.fixture(scope="module")
def place(files, tmp_path_factory):
    """Files by name: those of `files`, texts and tables that are wrong in a way, stores."""
    folder = tmp_path_factory.mktemp("refused")
    paths = {name: str(path) for name, path in files.items() if isinstance(path, Path)}
    for texts, suffix in ((TEXTS, "txt"), (TABLES, "csv")):
        for name, text in texts.items():
            paths[name] = str(folder / f"{name}.{suffix}")
            (folder / f"{name}.{suffix}").write_bytes(text.encode(errors="surrogateescape"))
    (folder / "sidecar.txt.query").write_text("2\n2\n")
    (folder / "fake.parquet").write_text(TEXTS["plain"])
    paths |= {name: str(folder / f"{name}.parquet") for name in ("fake", "table")}
    convert(paths["train"], paths["table"])
    data = make_ranking(n_queries=10, n_features=9, random_state=0)
    paths["wide"] = write_svmlight(folder / "wide.txt", replace(data, qid=data.qid + 500))
    for name in ("store", "damaged"):
        paths[name] = str(folder / name)
        Store.of(paths[name], load(paths["train"]))
    with open(folder / "damaged" / "values.bin", "r+b") as file:
        file.write(bytes(100))
    paths["kernel"], paths["folder"] = str(folder / "kernel.json"), str(folder / "folder")
    (folder / "folder").mkdir()
    (folder / "folder" / "notes").write_text("mine")
    paths["by_query"] = str(folder / "by_query.json")
    assert main(["train", paths["train"], paths["by_query"], "--scale", "query", "-q"]) == 0
    KernelModel([[0.0], [1.0]], [-1.0, 2.0], Kernel("rbf", gamma=0.5)).save(paths["kernel"])
    return paths


TABLE = Path(__file__).with_name("cli_refusals.txt").read_text(encoding="utf-8")
ROWS = [line.partition(" | ")[::2] for line in TABLE.splitlines() if line[:1] in ("1", "2")]


@pytest.mark.parametrize(("line", "message"), ROWS, ids=[line for line, _ in ROWS])
def test_it_is_one_line_and_nothing_is_written(line, message, place, tmp_path, monkeypatch, cli):
    monkeypatch.chdir(tmp_path)
    status, command = line.split(" ", 1)
    out, err = cli(command, status=int(status), **place)
    *notes, told = err.splitlines()
    assert message in told
    assert out == ""
    assert re.match("linrank: error: " if status == "1" else r"linrank( \w+)?: error: ", told)
    assert status == "1" or not notes
    assert "Traceback" not in err
    assert os.listdir(tmp_path) == []
