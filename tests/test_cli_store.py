"""Commands that read data take the folder of a store in its place, and train within a limit."""

from __future__ import annotations

import numpy as np
import pytest

import linrank
from linrank import Store

TEXT = "".join(
    f"{(7 * i) % 3} qid:{i // 6} 1:{i % 5} 2:{(i * i) % 7} 3:{i % 2} # docid = d{i}\n"
    for i in range(120)
)


@pytest.fixture
def place(tmp_path):
    (tmp_path / "data.txt").write_text(TEXT)
    Store.of(tmp_path / "store", linrank.load(tmp_path / "data.txt"), chunk_bytes=300)
    return tmp_path


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    data = linrank.make_ranking(n_queries=80, n_features=5, random_state=0)
    path = tmp_path_factory.mktemp("stores") / "store"
    return Store.write(path, data.X, data.y, qid=data.qid, chunk_bytes=5_000)


@pytest.mark.parametrize("options", ["", "--method domination", "--method sgd"])
def test_train_predict_and_evaluate_as_with_text(place, options, cli):
    found = {}
    for source in ("data.txt", "store"):
        model, data = place / f"{source}.json", place / source
        cli(f"train {data} {model} {options} -q")
        scores = cli(f"predict {data} {model} -q").out
        measures = cli(f"evaluate {data} --model {model} --json").json["metrics"]
        found[source] = linrank.load_model(model).coef.tolist(), scores, measures
    assert found["data.txt"] == found["store"]


def test_inspect_and_tune(place, cli):
    reports = [cli(f"inspect {place / name} --json").json for name in ("data.txt", "store")]
    for report in reports:
        report.pop("source")
    assert reports[0] == reports[1]
    cli(f"tune {place / 'store'} -o {place / 'm.json'} --Cs 0.1,1 -q")
    assert linrank.load_model(place / "m.json").n_features == 3


@pytest.mark.parametrize(
    ("flags", "ranker"),
    [
        ("--C 0.1", linrank.RankSVM(C=0.1)),
        ("--loss hinge --scale standard", linrank.RankSVM(loss="hinge", scale="standard")),
        ("--method domination --penalty l2 --alpha 2", linrank.DominationRanker("l2", 2.0)),
        (
            "--method sgd --n-steps 5000 --seed 3 --passes 2",
            linrank.SGDRanker(n_steps=5000, random_state=3, passes=2),
        ),
    ],
)
def test_within_a_limit_it_trains_what_the_estimator_trains(flags, ranker, store, tmp_path, cli):
    line = f"train {store.path} {tmp_path / 'm.json'} --memory-limit 64GB --json {flags}"
    told, found = cli(line).json, linrank.load_model(tmp_path / "m.json")
    fitted = ranker.set_params(memory_limit="64GB").fit(store)
    np.testing.assert_array_equal(found.coef, fitted.coef_)
    assert told["data"]["chunks"] == store.n_chunks > 1
    assert found.training["n_rows"] == store.n_rows
    assert found.training["n_queries"] == 80
    assert found.training["n_pairs"] == fitted.n_pairs_


def test_tune_searches_the_domination_loss_within_a_limit(store, cli):
    line = f"tune {store.path} --method domination --penalty l2 --n-alphas 3 --folds 3 --json"
    found, truth = cli(f"{line} --memory-limit 1GB").json, cli(line).json
    np.testing.assert_allclose(found["path"]["scores"], truth["path"]["scores"], atol=1e-3)
    np.testing.assert_allclose(found["path"]["objectives"], truth["path"]["objectives"], rtol=1e-3)
    assert found["alpha"] == pytest.approx(truth["alpha"])


def test_tune_within_a_limit_chooses_what_the_estimator_chooses(store, tmp_path, cli):
    model = tmp_path / "model.json"
    line = f"tune {store.path} -o {model} --memory-limit 2GB --Cs 0.01,0.1,1 --folds 3 --json"
    told = cli(line).json
    fitted = linrank.RankSVMCV([0.01, 0.1, 1.0], cv=3, memory_limit="2GB").fit(store)
    np.testing.assert_allclose(told["path"]["scores"], fitted.scores_)
    np.testing.assert_array_equal(linrank.load_model(model).coef, fitted.coef_)
    assert told["data"]["chunks"] == store.n_chunks


def test_a_store_without_its_manifest_is_none(place, cli):
    (place / "store" / "manifest.json").unlink()
    assert "has no manifest.json" in cli(f"inspect {place / 'store'}", status=1).err
