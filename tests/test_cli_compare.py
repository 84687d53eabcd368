"""``linrank compare``: contests and comparisons from the shell."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pytest

from cli_files import processes_of, wait_for_the_end_of, write_svmlight
from linrank.cli.compare import names_of
from linrank.cli.main import main
from linrank.data.synthetic import make_ranking
from linrank.judging import candidates
from linrank.judging.candidates import contestants

FAST = ["--methods", "best-feature,random", "--baseline", "random", "-j", "2"]


@pytest.fixture(scope="module")
def subsets(tmp_path_factory):
    """Five files of one ranking."""
    folder = tmp_path_factory.mktemp("compare")
    data = make_ranking(n_queries=50, n_features=5, noise=0.5, random_state=1)
    return [
        write_svmlight(folder / f"S{k + 1}.txt", data.select(np.asarray(data.qid) % 5 == k))
        for k in range(5)
    ]


def test_three_files(subsets, cli, tmp_path):
    page = tmp_path / "table.html"
    out, err = cli("compare", *subsets[:3], *FAST, "-m", "map", "-o", page)
    assert out.startswith("map: higher is better; 10 queries; one split")
    assert "random (baseline)" in out
    assert "best-feature" in out
    assert f"read      {subsets[0]}: " in err
    assert page.read_text().startswith("<!doctype html>")
    assert "best-feature" in page.read_text()


def test_the_number_of_folds_and_the_metric_that_chooses(subsets, cli):
    asked = ["--folds", "3", "-m", "map,ndcg@5", "--json", "-q"]
    found = cli("compare", *subsets[:2], *FAST, *asked).json
    assert found["selection"] == "in 3-fold cross-validation over the training queries"
    assert (found["scoring"], found["metrics"]) == ("map", ["map", "ndcg@5"])
    assert found["sources"] == subsets[:2]


def test_folds_as_json(subsets, cli):
    out, err = cli("compare", "--fold-files", *subsets[:3], *FAST, "--json", "-q")
    found = json.loads(out)
    assert err == ""
    assert found["command"] == "compare"
    assert found["comparison"]["n_queries"] == 30
    assert [m["method"] for m in found["methods"]] == ["best-feature", "random"]
    assert len(found["methods"][0]["folds"]) == 3
    assert found["metrics"] == ["ndcg@10", "map", "pairwise_accuracy"]


def test_every_fit_is_told_of_with_v(subsets, cli):
    lines = cli("compare", *subsets[:3], *FAST, "-v").err.splitlines()
    told = [line for line in lines if ": chosen by ndcg@10 0." in line]
    assert len(told) == 2
    assert any("best-feature, fold 1: chosen" in line for line in told)


def test_leaks_are_warned_of(subsets, cli):
    out, err = cli("compare", subsets[0], subsets[1], subsets[0], *FAST, "-q")
    assert "linrank: warning: 10 of the 10 queries of" in err
    assert "leaks into what is measured" in out.replace("\n  ", " ")


def test_models_and_scores_at_hand(subsets, tmp_path, cli):
    models = [str(tmp_path / name) for name in ("small.json", "large.json")]
    for model, C in zip(models, ("1e-6", "1"), strict=True):
        cli("train", subsets[0], model, "-c", C, "-q")
    scores, table = str(tmp_path / "scores.txt"), tmp_path / "table.md"
    cli("predict", subsets[4], models[1], "-o", scores, "-q")
    command = ["compare", subsets[4], "--models", *models, "--scores", scores]
    found = cli(*command, "--baseline", "large", "--json", "-o", table, "-q").json["metrics"][
        "ndcg@10"
    ]["methods"]
    assert list(found) == ["small", "large", "scores"]
    assert found["scores"]["mean"] == pytest.approx(found["large"]["mean"], abs=1e-6)
    alone = cli("evaluate", subsets[4], "--model", models[0], "-m", "ndcg@10", "--json").json[
        "metrics"
    ]["ndcg@10"]
    assert found["small"]["mean"] == pytest.approx(alone)
    assert "| large (baseline)" in table.read_text()


def test_models_are_compared_on_negative_labels_without_ndcg(subsets, cli, tmp_path):
    with open(subsets[2], encoding="utf-8") as file:
        lines = [line.split(" ", 1) for line in file]
    lower, model = tmp_path / "lower.txt", str(tmp_path / "model.json")
    lower.write_text("".join(f"{float(label) - 3:g} {rest}" for label, rest in lines))
    cli("train", subsets[0], model, "-q")
    found = cli("compare", lower, "--models", model, "--json").json["metrics"]
    assert list(found) == ["map", "pairwise_accuracy"]


def test_models_that_count_features_differently_are_refused(subsets, cli, tmp_path):
    zero = tmp_path / "zero.txt"
    zero.write_text("1 qid:1 0:1 1:2\n0 qid:1 0:3\n")
    models = [str(tmp_path / name) for name in ("zero.json", "one.json")]
    for data, model in zip((str(zero), subsets[0]), models, strict=True):
        cli("train", data, model, "-q")
    assert "counts features from 0" in cli("compare", subsets[1], "--models", *models, status=1).err


def test_names_of_files():
    assert names_of(["a/old.json", "b/new.json"]) == ["old", "new"]
    assert names_of(["a/m.json", "b/m.json", "c.txt"]) == ["a/m.json", "b/m.json", "c"]
    with pytest.raises(ValueError, match=r"a\.json is given twice"):
        names_of(["a.json", "a.json"])


def test_the_list_of_methods(cli):
    out = cli("compare", "--list-methods").out
    assert all(name in out for name in contestants())
    assert [m["name"] for m in cli("compare", "--list-methods", "--json").json["methods"]] == list(
        contestants()
    )


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["{0}"], 2, "give TRAIN VALID TEST or TRAIN TEST, got 1 files"),
        (["--fold-files", "{0}", "{1}"], 2, "--fold-files needs at least 3 files (LETOR has 5)"),
        (["--folds", "{0}", "{1}"], 2, "for files, one per fold, say compare --fold-files"),
        (["{0}", "--fold-files", "{0}", "{1}", "{2}"], 2, "not both"),
        (["{0}", "{1}", "-"], 2, "cannot be standard input"),
        (["{0}", "{1}", "nowhere.txt"], 1, "nowhere.txt: No such file"),
        (["{0}", "{1}", "{2}", "-o", "table.pdf"], 2, "must end in .txt, .md, .html, .json"),
        (["{0}", "{1}", "{2}", "--methods", "ranksvn"], 1, "did you mean 'ranksvm'?"),
        (["{0}", "{1}", "{2}", "-m", "ndgc@10"], 1, "Did you mean 'ndcg'?"),
        (["{0}", "{1}", "{2}", "--budget", "0"], 2, "must be finite and > 0"),
        (["{0}", "{1}", "--models", "{2}"], 2, "give one FILE"),
        (["{0}", "--models", "{1}", "--budget", "3"], 2, "--budget is for training"),
        (["{0}", "--scores", "{1}", "--baseline", "x"], 1, "--baseline x is none of those"),
    ],
)
def test_wrong_usage_is_told_at_once(subsets, cli, arguments, status, message):
    assert message in cli("compare", *(a.format(*subsets) for a in arguments), status=status).err


def test_files_of_different_features_are_refused(subsets, tmp_path, cli):
    data = make_ranking(n_queries=5, n_features=3, random_state=0)
    narrow = write_svmlight(tmp_path / "narrow.txt", replace(data, qid=data.qid + 500))
    command = ["compare", subsets[0], subsets[1], narrow, *FAST]
    assert "narrow.txt 3; use files of the same features" in cli(*command, status=1).err
    cli(*command, "--n-features", "5", "-q")


def test_no_result_at_all_is_a_failure(subsets, cli, monkeypatch):
    lost = replace(contestants()["random"], needs="no_such_package")
    monkeypatch.setattr(candidates, "RIVALS", (lost,))
    out = cli("compare", *subsets[:3], "--methods", "random", "--baseline", "random", status=1).out
    assert "no_such_package is not installed" in out


# ---- signals ------------------------------------------------------------------------------------


def test_letters_that_the_terminal_lacks_do_not_cost_the_result(subsets, monkeypatch):
    out = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", out)
    assert main(["compare", *subsets[:3], *FAST, "-q"]) == 0
    out.flush()
    assert b"? better, ? worse than random" in out.buffer.getvalue()


@pytest.fixture
def long_contest(subsets, tmp_path):
    """A contest that has come to its second method, which takes long."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    options = ["--methods", "random,forest", "--baseline", "random", "-v", "-j", "1"]
    table = str(tmp_path / "table.txt")
    process = subprocess.Popen(
        [sys.executable, "-m", "linrank", "compare", *subsets[:3], *options, "-o", table],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(folder)},
    )
    assert process.stderr is not None
    while "1 of 2 fits" not in process.stderr.readline():
        assert process.poll() is None
    deadline = time.monotonic() + 30
    while len(processes_of(folder)) < 2:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    yield process, folder
    process.kill()
    process.communicate()


def test_an_interrupt_ends_all_processes_and_leaves_nothing(long_contest, tmp_path):
    process, folder = long_contest
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=300)
    assert process.returncode == 130
    assert out == ""
    assert err.endswith("linrank: interrupted\n")
    assert "Traceback" not in err
    assert os.listdir(folder) == []
    wait_for_the_end_of(folder)
    assert sorted(os.listdir(tmp_path)) == ["temporary"]


def test_workers_do_not_outlive_a_parent_that_is_killed(long_contest):
    process, folder = long_contest
    process.kill()
    process.communicate()
    wait_for_the_end_of(folder)
