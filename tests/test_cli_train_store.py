"""``linrank train STORE --memory-limit``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import linrank
from linrank.cli.main import main
from linrank.io.store.store import Store


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    data = linrank.make_ranking(n_queries=80, n_features=5, random_state=0)
    path = tmp_path_factory.mktemp("stores") / "store"
    return Store.write(path, data.X, data.y, qid=data.qid, chunk_bytes=5_000)


def run(*arguments: Any) -> int:
    return main([str(argument) for argument in arguments])


@pytest.mark.parametrize(
    ("flags", "ranker"),
    [
        (["--C", "0.1"], linrank.RankSVM(C=0.1)),
        (
            ["--loss", "hinge", "--scale", "standard"],
            linrank.RankSVM(loss="hinge", scale="standard"),
        ),
        (
            ["--method", "domination", "--penalty", "l2", "--alpha", "2"],
            linrank.DominationRanker("l2", 2.0),
        ),
        (
            ["--method", "sgd", "--n-steps", "5000", "--seed", "3", "--passes", "2"],
            linrank.SGDRanker(n_steps=5000, random_state=3, passes=2),
        ),
    ],
)
def test_the_command_trains_what_the_estimator_trains(
    flags: list[str], ranker: Any, store: Store, tmp_path: Path, capsys: Any
) -> None:
    model = tmp_path / "model.json"
    assert run("train", store.path, model, "--memory-limit", "64GB", "--json", *flags) == 0
    told = json.loads(capsys.readouterr().out)
    found = linrank.load_model(model)
    fitted = ranker.set_params(memory_limit="64GB").fit(store)
    np.testing.assert_array_equal(found.coef, fitted.coef_)
    assert told["data"]["chunks"] == store.n_chunks > 1
    assert found.training["n_rows"] == store.n_rows
    assert found.training["n_queries"] == 80
    assert found.training["n_pairs"] == fitted.n_pairs_


def test_faults_are_told(store: Store, tmp_path: Path, capsys: Any) -> None:
    model = tmp_path / "model.json"
    text = tmp_path / "train.txt"
    text.write_text("1 qid:1 1:2\n0 qid:1 1:1\n")
    assert run("train", store.path, model, "--memory-limit", "1MB") == 1
    assert "too small" in capsys.readouterr().err
    assert run("train", text, model, "--memory-limit", "1GB") == 2
    assert "is no store; write one first" in capsys.readouterr().err
    assert run("train", store.path, model, "--memory-limit", "1GB", "--solver", "bundle") == 1
    assert "use solver='newton'" in capsys.readouterr().err
    assert run("train", store.path, model, "--memory-limit", "1GB", "--index-base", "0") == 1
    assert "--index-base is for text" in capsys.readouterr().err
    limit, method = ["--memory-limit", "1GB"], ["--method", "factorized"]
    assert run("train", store.path, model, *limit, *method) == 2
    assert "--memory-limit belongs to --method ranksvm, sgd, domination" in capsys.readouterr().err
    assert run("train", store.path, model, "--method", "sgd", "--stream") == 2
    assert "leave it out, and --memory-limit SIZE goes through a store" in capsys.readouterr().err
    assert run("train", store.path, model, "--method", "sgd", "--passes", "2") == 2
    assert "--passes needs --memory-limit" in capsys.readouterr().err
    assert run("train", store.path, model, "--checkpoint", "weights") == 2
    assert "--checkpoint needs --dask" in capsys.readouterr().err
    assert not model.exists()


def test_tune_searches_the_domination_loss_within_a_limit(store: Store, capsys: Any) -> None:
    options = ["--method", "domination", "--penalty", "l2", "--n-alphas", "3", "--folds", "3"]
    assert run("tune", store.path, *options, "--memory-limit", "1GB", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert run("tune", store.path, *options, "--json") == 0
    truth = json.loads(capsys.readouterr().out)
    np.testing.assert_allclose(found["path"]["scores"], truth["path"]["scores"], atol=1e-3)
    np.testing.assert_allclose(found["path"]["objectives"], truth["path"]["objectives"], rtol=1e-3)
    assert found["alpha"] == pytest.approx(truth["alpha"])


def test_tune_within_a_limit_chooses_what_the_estimator_chooses(
    store: Store, tmp_path: Path, capsys: Any
) -> None:
    model = tmp_path / "model.json"
    options = ["--memory-limit", "2GB", "--Cs", "0.01,0.1,1", "--folds", "3", "--json"]
    assert run("tune", store.path, "-o", model, *options) == 0
    told = json.loads(capsys.readouterr().out)
    fitted = linrank.RankSVMCV([0.01, 0.1, 1.0], cv=3, memory_limit="2GB").fit(store)
    np.testing.assert_allclose(told["path"]["scores"], fitted.scores_)
    np.testing.assert_array_equal(linrank.load_model(model).coef, fitted.coef_)
    assert told["data"]["chunks"] == store.n_chunks
    assert run("tune", store.path, "--memory-limit", "2GB", "--valid", store.path) == 2
    assert "leave out --valid" in capsys.readouterr().err
    text = tmp_path / "train.txt"
    text.write_text("1 qid:1 1:2\n0 qid:1 1:1\n")
    assert run("tune", text, "--memory-limit", "2GB") == 2
    assert "is no store; write one first: linrank convert" in capsys.readouterr().err
