"""Models chosen by an error: the least one wins, wherever a measure steers."""

from __future__ import annotations

import json

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone

from linrank import make_ranking, ranking_scorer
from linrank.cli.main import main
from linrank.metrics import evaluate
from linrank.search.tuning import Tuning
from papers import DominationRanker, DominationRankerCV, RankSVM, RankSVMCV, SGDRanker, SGDRankerCV


@pytest.fixture(scope="module")
def parts():
    data = make_ranking(n_queries=40, n_features=8, noise=2.0, random_state=3)
    rows = np.arange(data.n_rows)
    held_out = np.isin(data.qid, np.unique(data.qid)[30:])
    return data.select(rows[~held_out]), data.select(rows[held_out])


SEARCHES = {
    "C": RankSVMCV(Cs=[1e-6, 1e-4, 1e-2, 1.0], cv=3),
    "lambda": SGDRankerCV([10.0, 1e-1, 1e-3], cv=3, n_steps=2000, random_state=0),
    "alpha": DominationRankerCV(n_alphas=6, cv=3),
}


@pytest.mark.parametrize("selection", ["best", "one_se"])
@pytest.mark.parametrize("name", SEARCHES)
def test_the_least_error_chooses_the_model_of_the_largest_accuracy(parts, name, selection):
    accuracy, error = (
        clone(SEARCHES[name])
        .set_params(scoring=scoring, selection=selection)
        .fit(parts[0].X, parts[0].y, qid=parts[0].qid)
        for scoring in ("pairwise_accuracy", "all_pairs_error")
    )
    assert np.ptp(accuracy.mean_scores_) > 0
    assert error.best_params_ == accuracy.best_params_
    # But for a model of zeros: tied pairs are errors of both.
    first = int(name == "alpha")
    assert_allclose(error.scores_[..., first:], accuracy.scores_[..., first:] - 1.0, atol=1e-12)
    assert error.best_score_ <= 0.0


@pytest.mark.parametrize(
    "ranker",
    [
        RankSVM(C=10.0, tol=1e-8),
        SGDRanker(alpha=1e-4, n_steps=20_000, random_state=0),
        DominationRanker(alpha=0.1, tol=1e-8),
    ],
)
def test_early_stopping_keeps_the_least_error(parts, ranker):
    train, valid = parts
    histories = {}
    for name in ("pairwise_accuracy", "all_pairs_error"):
        ranker.set_params(scoring=name, early_stopping=True, n_iter_no_change=100)
        ranker.fit(train.X, train.y, qid=train.qid, X_val=valid.X, y_val=valid.y, qid_val=valid.qid)
        histories[name] = np.array(ranker.history_[f"val_{name}"]), ranker.best_iteration_
    errors, best = histories["all_pairs_error"]
    assert errors.min() >= 0.0  # as it is, without a sign
    assert best == np.argmin(errors) == histories["pairwise_accuracy"][1]
    assert best > 0


def test_the_scorer_turns_an_error_around(parts):
    train, valid = parts
    ranker = RankSVM().fit(train.X, train.y, qid=train.qid)
    name = "domination_error(ties=error)"
    truth = evaluate(valid.y, ranker.predict(valid.X), qid=valid.qid, metrics=name)[name]
    assert truth > 0
    assert ranking_scorer(name)(ranker, valid.X, valid.y, qid=valid.qid) == -truth


@pytest.mark.parametrize(
    "choose",
    [
        lambda data: ranking_scorer("domination_error"),
        lambda data: RankSVMCV(scoring="domination_error").fit(data.X, data.y, qid=data.qid),
        lambda data: SGDRankerCV(scoring="dominated_error").fit(data.X, data.y, qid=data.qid),
        lambda data: DominationRankerCV(scoring="domination_error").fit(
            data.X, data.y, qid=data.qid
        ),
        lambda data: RankSVM(scoring="domination_error").fit(data.X, data.y, qid=data.qid),
    ],
)
def test_an_error_that_likes_ties_is_refused(parts, choose):
    with pytest.raises(ValueError, match="counts rows that are only tied as right"):
        choose(parts[0])


def test_the_edge_of_the_grid_is_that_of_the_least_error():
    errors = 0.0 - np.array([[0.4, 0.3, 0.2]])
    tuning = Tuning({"C": np.array([0.1, 1.0, 10.0])}, errors)
    assert "the best C, 10, is the largest" in tuning.edge


def test_the_command_line_tunes_by_an_error(tmp_path, capsys):
    path = tmp_path / "train.txt"
    rng = np.random.default_rng(0)
    lines = [
        f"{int(x + rng.normal() > 0)} qid:{i // 10} 1:{x:.3f} 2:{rng.normal():.3f}\n"
        for i, x in enumerate(rng.normal(size=120))
    ]
    path.write_text("".join(lines))
    assert main(["tune", str(path), "-m", "domination_error"]) != 0
    assert "write domination_error(ties=error)" in capsys.readouterr().err
    arguments = ["-m", "domination_error(ties=error)", "--json", "--Cs", "0.01,1"]
    assert main(["tune", str(path), *arguments]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["score"] == max(report["path"]["mean_scores"]) <= 0
    scores = tmp_path / "scores.txt"
    scores.write_text("".join(f"{line.split(':')[2].split()[0]}\n" for line in lines))
    assert main(["evaluate", str(path), str(scores), "-m", "domination_error", "--json"]) == 0
    assert 0 < json.loads(capsys.readouterr().out)["metrics"]["domination_error"] < 1
