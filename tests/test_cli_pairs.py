"""``--pairs closest`` and ``pruned`` on the command line: what they train, say and refuse."""

from __future__ import annotations

import json

import pytest
from numpy.testing import assert_allclose

from linrank import RankSVM, RankSVMCV, load, load_model
from linrank.cli.main import main
from linrank.pairs import chosen_sizes

PRUNED = ["--pairs", "pruned", "--n-closest", "20", "--n-random", "7", "--seed", "3"]


def test_train_does_what_the_estimator_does(files, tmp_path, capsys):
    model = str(tmp_path / "m.json")
    assert main(["train", files["train"], model, *PRUNED, "--json"]) == 0
    out, err = capsys.readouterr()
    told, data = json.loads(out)["training"], load(files["train"])
    truth = RankSVM(pairs="pruned", n_closest=20, n_random=7, random_state=3)
    truth.fit(data.X, data.y, qid=data.qid)
    assert_allclose(load_model(model).coef, truth.coef_, rtol=1e-9)
    names = ("pairs", "n_closest", "n_random", "seed", "n_pairs")
    assert [told[name] for name in names] == ["pruned", 20, 7, 3, 27]
    assert json.loads(out)["data"]["pairs"] == data.queries.n_pairs
    assert "20 closest and 7 random of the labels, seed 3" in err


def test_sizes_are_automatic_and_the_seed_is_0(files, tmp_path, capsys):
    model = str(tmp_path / "m.json")
    options = ["--pairs", "pruned", "--n-closest", "auto"]
    assert main(["train", files["train"], model, *options, "--json", "-q"]) == 0
    told, data = json.loads(capsys.readouterr().out)["training"], load(files["train"])
    sizes = chosen_sizes(data.queries, "pruned")
    assert {name: told[name] for name in (*sizes, "seed")} == sizes | {"seed": 0}
    assert main(["inspect", model]) == 0
    card = capsys.readouterr().out
    shown = {line.split()[0]: line.split()[1] for line in card.splitlines()}
    assert shown["pairs"] == "pruned"
    assert int(shown["n_closest"]) == sizes["n_closest"]
    assert int(shown["n_random"]) == sizes["n_random"]
    assert f"{sizes['n_pairs']:,} pairs" in card


def test_all_pairs_have_no_sizes(files, tmp_path, capsys):
    model = str(tmp_path / "m.json")
    assert main(["train", files["train"], model, "--json"]) == 0
    out, err = capsys.readouterr()
    told = json.loads(out)["training"]
    assert told["n_closest"] is told["n_random"] is told["seed"] is None
    assert "closest" not in err
    assert main(["inspect", model]) == 0
    assert "n_closest" not in capsys.readouterr().out


@pytest.mark.filterwarnings("ignore:the best C")
def test_tune_does_what_the_estimator_does(files, tmp_path, capsys):
    model = str(tmp_path / "m.json")
    options = ["--Cs", "0.01,0.1", "--folds", "2", "-o", model]
    assert main(["tune", files["train"], *options, *PRUNED, "--json"]) == 0
    out, err = capsys.readouterr()
    told, data = json.loads(out), load(files["train"])
    truth = RankSVMCV(
        [0.01, 0.1], cv=2, pairs="pruned", n_closest=20, n_random=7, random_state=3
    ).fit(data.X, data.y, qid=data.qid)
    assert_allclose(told["path"]["scores"], truth.scores_)
    assert_allclose(load_model(model).coef, truth.coef_, rtol=1e-9)
    assert (told["n_closest"], told["n_random"], told["seed"], told["n_pairs"]) == (20, 7, 3, 27)
    assert "20 closest and 7 random of the labels, seed 3" in err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--n-closest", "5"], "--n-closest needs --pairs closest or pruned"),
        (["--pairs", "adjacent", "--n-closest", "5"], "--n-closest needs --pairs closest"),
        (["--pairs", "closest", "--n-random", "5"], "--n-random needs --pairs pruned"),
        (["--pairs", "closest", "--n-closest", "0"], "must be an integer ≥ 1 or auto, got '0'"),
        (["--pairs", "closest", "--n-closest", "x"], "must be an integer ≥ 1 or auto, got 'x'"),
    ],
)
@pytest.mark.parametrize("command", ["train", "tune"])
def test_wrong_usage_ends_with_2(command, options, message, capsys):
    assert main([command, "d", *(["m"] if command == "train" else []), *options]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--pairs", "closest", "--n-closest", "999999999"], "n_closest is 999999999, but the"),
        (["--pairs", "pruned", "--solver", "tron"], "solver='tron' is a published method"),
    ],
)
def test_what_only_the_data_can_tell(options, message, files, tmp_path, capsys):
    assert main(["train", files["train"], str(tmp_path / "m"), *options]) == 1
    assert message in capsys.readouterr().err
