"""``linrank compare``: contests and comparisons from the shell."""

import io
import json
import os
import signal
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from cli_files import processes_of, start, wait_for_the_end_of, write_svmlight
from linrank.cli.compare import names_of
from linrank.data.synthetic import make_ranking
from linrank.judging import candidates
from linrank.judging.candidates import contestants

FAST = "--methods best-feature,random --baseline random -j 1"


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
    out, err = cli(f"compare {' '.join(subsets[:3])} {FAST} -m map -v -o {page}")
    assert out.startswith("map: higher is better; 10 queries; one split")
    assert "random (baseline)" in out
    assert "best-feature" in out
    assert f"read      {subsets[0]}: " in err
    assert page.read_text().startswith("<!doctype html>")
    assert "best-feature" in page.read_text()
    told = [line for line in err.splitlines() if ": chosen by map 0." in line]
    assert len(told) == 2
    assert any("best-feature, fold 1: chosen" in line for line in told)


def test_the_number_of_folds_and_the_metric_that_chooses(subsets, tmp_path, cli):
    """On a file that leaves out the last features."""
    data = make_ranking(n_queries=5, n_features=3, random_state=0)
    narrow = write_svmlight(tmp_path / "narrow.txt", replace(data, qid=data.qid + 500))
    asked = "--folds 3 -m map,ndcg@5 --n-features 5 --json -q"
    found = cli(f"compare {subsets[0]} {narrow} {FAST} {asked}").json
    assert found["selection"] == "in 3-fold cross-validation over the training queries"
    assert (found["scoring"], found["metrics"]) == ("map", ["map", "ndcg@5"])
    assert found["sources"] == [subsets[0], narrow]


def test_folds_as_json(subsets, cli):
    out, err = cli(f"compare --fold-files {' '.join(subsets[:3])} {FAST} --json -q")
    found = json.loads(out)
    assert err == ""
    assert found["command"] == "compare"
    assert found["comparison"]["n_queries"] == 30
    assert [m["method"] for m in found["methods"]] == ["best-feature", "random"]
    assert len(found["methods"][0]["folds"]) == 3
    assert found["metrics"] == ["ndcg@10", "map", "pairwise_accuracy"]


def test_leaks_are_warned_of(subsets, cli, monkeypatch):
    """On a terminal that lacks some letters, too: they do not cost the result."""
    screen = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", screen)
    err = cli(f"compare {subsets[0]} {subsets[1]} {subsets[0]} {FAST} -q").err
    screen.flush()
    out = screen.buffer.getvalue()
    assert "linrank: warning: 10 of the 10 queries of" in err
    assert b"leaks into what is measured" in out.replace(b"\n  ", b" ")
    assert b"? better, ? worse than random" in out


def test_models_and_scores_at_hand(subsets, tmp_path, cli):
    models = [str(tmp_path / name) for name in ("small.json", "large.json")]
    for model, C in zip(models, ("1e-6", "1"), strict=True):
        cli(f"train {subsets[0]} {model} -c {C} -q")
    scores, table = tmp_path / "scores.txt", tmp_path / "table.md"
    cli(f"predict {subsets[4]} {models[1]} -o {scores} -q")
    asked = f"--models {' '.join(models)} --scores {scores} --baseline large -o {table}"
    report = cli(f"compare {subsets[4]} {asked} --json -q").json
    found = report["metrics"]["ndcg@10"]["methods"]
    assert list(found) == ["small", "large", "scores"]
    assert found["scores"]["mean"] == pytest.approx(found["large"]["mean"], abs=1e-6)
    alone = cli(f"evaluate {subsets[4]} --model {models[0]} -m ndcg@10 --json").json["metrics"]
    assert found["small"]["mean"] == pytest.approx(alone["ndcg@10"])
    assert "| large (baseline)" in table.read_text()


def test_models_are_compared_on_negative_labels_without_ndcg(subsets, cli, tmp_path):
    lines = [line.split(" ", 1) for line in Path(subsets[2]).read_text().splitlines(keepends=True)]
    lower, model = tmp_path / "lower.txt", str(tmp_path / "model.json")
    lower.write_text("".join(f"{float(label) - 3:g} {rest}" for label, rest in lines))
    cli(f"train {subsets[0]} {model} -q")
    found = cli(f"compare {lower} --models {model} --json").json["metrics"]
    assert list(found) == ["map", "pairwise_accuracy"]


def test_models_that_count_features_differently_are_refused(subsets, cli, tmp_path):
    zero, models = tmp_path / "zero.txt", [tmp_path / name for name in ("zero.json", "one.json")]
    zero.write_text("1 qid:1 0:1 1:2\n0 qid:1 0:3\n")
    for data, model in zip((zero, subsets[0]), models, strict=True):
        cli(f"train {data} {model} -q")
    line = f"compare {subsets[1]} --models {models[0]} {models[1]}"
    assert "counts features from 0" in cli(line, status=1).err


def test_names_of_files():
    assert names_of(["a/old.json", "b/new.json"]) == ["old", "new"]
    assert names_of(["a/m.json", "b/m.json", "c.txt"]) == ["a/m.json", "b/m.json", "c"]
    with pytest.raises(ValueError, match=r"a\.json is given twice"):
        names_of(["a.json", "a.json"])


def test_the_list_of_methods(cli):
    out = cli("compare --list-methods").out
    assert all(name in out for name in contestants())
    methods = cli("compare --list-methods --json").json["methods"]
    assert [method["name"] for method in methods] == list(contestants())


def test_no_result_at_all_is_a_failure(subsets, cli, monkeypatch):
    lost = replace(contestants()["random"], needs="no_such_package")
    monkeypatch.setattr(candidates, "RIVALS", (lost,))
    line = f"compare {' '.join(subsets[:3])} --methods random --baseline random"
    assert "no_such_package is not installed" in cli(line, status=1).out


# ---- signals ------------------------------------------------------------------------------------


@pytest.fixture
def long_contest(subsets, tmp_path):
    """A contest that has come to its second method, which takes long."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    options = ["--methods", "random,forest", "--baseline", "random", "-v", "-j", "1"]
    env = {**os.environ, "TMPDIR": str(folder)}
    process = start("compare", *subsets[:3], *options, "-o", tmp_path / "table.txt", env=env)
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
