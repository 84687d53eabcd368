"""AutoRanker: what it tries, what it chooses, and that the choice is the model it says."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from linrank import AutoRanker, RankSVM, evaluate, make_ranking
from linrank.methods.auto import WEIGHTS


def curved(seed: int = 0, n_queries: int = 40, n_rows: int = 12) -> tuple:
    """Labels by a hill of the first feature: no line ranks them."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_queries * n_rows, 4))
    y = np.clip(np.round(2.5 - 2.0 * np.abs(X[:, 0]) + 0.3 * rng.normal(size=len(X))), 0, 3)
    return X, y, np.repeat(np.arange(n_queries), n_rows)


def test_interactions_are_chosen_where_lines_cannot_rank() -> None:
    X, y, qid = curved()
    ranker = AutoRanker("ndcg@5", cv=3, random_state=0).fit(X, y, qid=qid)
    assert ranker.best_params_["model"] == "interactions"
    best = {one["model"]: one["score"] for one in ranker.tried_}
    assert best["interactions"] > best["linear"] + 0.1
    assert ranker.best_score_ == pytest.approx(max(best.values()))
    fresh, labels, groups = curved(1)
    linear = RankSVM().fit(X, y, qid=qid)
    values = [
        evaluate(labels, model.predict(fresh), qid=groups, metrics="ndcg@5")["ndcg@5"]
        for model in (ranker, linear)
    ]
    assert values[0] > values[1] + 0.1


def test_the_choice_is_the_model_that_its_parameters_make() -> None:
    X, y, qid = curved()
    ranker = AutoRanker(cv=3, random_state=3).fit(X, y, qid=qid)
    chosen = {"curves": "quantile"}
    if ranker.best_params_["model"] == "interactions":
        chosen["interactions"] = 300
    C = ranker.best_params_["weight"] / 40
    twin = RankSVM(C, pair_weighting="ndcg@20", random_state=3, **chosen).fit(X, y, qid=qid)
    np.testing.assert_allclose(ranker.predict(X), twin.predict(X), rtol=1e-9)
    assert ranker.model_.training["metric"] == "ndcg@10"


def test_one_standard_error_takes_the_simpler_model() -> None:
    data = make_ranking(n_queries=20, n_features=3, random_state=0)
    names = ["few weights", "linear", "linear, ndcg@20", "curves", "interactions"]
    best = AutoRanker(cv=4, random_state=0).fit(data)
    simple = AutoRanker(cv=4, random_state=0, selection="one_se").fit(data)
    assert list(best.models_) == names
    place = [names.index(each.best_params_["model"]) for each in (simple, best)]
    assert place[0] <= place[1]
    place = np.unravel_index(best.best_index_, (len(names), len(WEIGHTS)))
    error = best.scores_.std(axis=0, ddof=1)[place] / 2.0
    assert simple.best_score_ >= best.best_score_ - error - 1e-12


def test_no_time_leaves_the_rest_untried() -> None:
    X, y, qid = curved(n_queries=12)
    ranker = AutoRanker(time_limit=1e-6, cv=3).fit(X, y, qid=qid)
    assert [("skipped" in one) for one in ranker.tried_] == [False, True, True, True, True]
    assert "time_limit" in ranker.tried_[1]["skipped"]
    assert "linear" in ranker.summary()
    with pytest.raises(ValueError, match="time_limit"):
        AutoRanker(time_limit=-1.0).fit(X, y, qid=qid)


def test_what_data_cannot_have_is_not_tried() -> None:
    X, y, qid = curved(n_queries=12)
    thin = AutoRanker(cv=3).fit(sparse.csr_matrix(X), y, qid=qid)
    assert list(thin.models_) == ["few weights", "linear", "linear, ndcg@20"]
    negative = AutoRanker("map", cv=3).fit(X, y - 2.0, qid=qid)
    assert list(negative.models_) == ["few weights", "linear", "curves", "interactions"]
    pairwise = AutoRanker("pairwise_accuracy", cv=3).fit(X, y, qid=qid)
    assert list(pairwise.models_) == ["few weights", "linear", "curves", "interactions"]
