"""The methods of a contest: all grids on small data, in this process."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
from threadpoolctl import threadpool_limits

from linrank import Dataset, RankSVM, evaluate, make_ranking
from linrank import choices as options
from linrank.judging.candidates import (
    BEST,
    N_FOLDS,
    Trial,
    chosen_methods,
    contestants,
    fair_convention,
)

METHODS = contestants()
USUAL = [name for name, one in METHODS.items() if one.is_usual]
RULES = fair_convention("linrank")


@pytest.fixture(autouse=True)
def one_thread():
    """As the workers have it: threads that wait for each other are slow on a busy machine."""
    with threadpool_limits(1):
        yield


def small_trial(scoring="ndcg@10", scale="standard", sparse=False):
    data = make_ranking(n_queries=40, n_features=5, noise=0.3, random_state=1)
    parts = []
    for chosen in (data.qid < 25, data.qid >= 25):  # of one ranking, so that there is much to learn
        part = data.select(chosen)
        parts.append(Dataset.of(csr_array(part.X) if sparse else part.X, part.y, qid=part.qid))
    return Trial(*parts, scoring, RULES, scale, seed=3)


def candidates(name, trial, most=2):
    method = METHODS[name]
    if method.needs is not None:
        pytest.importorskip(method.needs)
    return [(point, method.model(trial, point)) for point in method.points(trial)[:most]]


# ---- every method -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", METHODS)
def test_candidates_score_rows_and_can_be_told_of(name):
    trial = small_trial()
    found = candidates(name, trial)
    assert found
    for _, model in found:
        scores = np.asarray(model.predict(trial.valid))
        assert scores.shape == (trial.valid.n_rows,)
        assert np.isfinite(scores).all()
        size = model.size()
        assert size.n_bytes > 0 or name == "random"
    told = {json.dumps({**point, **model.found}) for point, model in found}
    assert len(told) == len(found)


@pytest.mark.parametrize("name", [n for n in USUAL if n not in ("random", "forest", "catboost")])
def test_a_method_ranks_better_than_chance(name):
    trial = small_trial("pairwise_accuracy")
    most = None if METHODS[name].family == "linrank" else 2
    best = max(trial.judge(m.predict(trial.valid)) for _, m in candidates(name, trial, most))
    assert best > 0.65


@pytest.mark.parametrize("name", [n for n in USUAL if n != "random"])
def test_sparse_rows_do(name):
    trial = small_trial(sparse=True)
    ((_, model),) = candidates(name, trial, 1)
    assert np.isfinite(model.predict(trial.valid)).all()


@pytest.mark.parametrize("scale", ["standard", "minmax", "none"])
@pytest.mark.parametrize("name", ["ranksvm", "svr-l2", "domination-l2"])
def test_linear_models_score_raw_rows(name, scale):
    """Features in other units are the same features, once they are scaled."""
    trial = small_trial(scale=scale)
    units = np.array([1.0, 10.0, 0.1, 2.0, 0.5])
    changed = [Dataset.of(d.X * units, d.y, qid=d.qid) for d in (trial.train, trial.valid)]
    other = Trial(*changed, trial.scoring, RULES, scale, seed=3)
    plain, scaled = (candidates(name, t, 3)[-1][1].predict(t.valid) for t in (trial, other))
    agree = np.corrcoef(plain, scaled)[0, 1] > 1 - 1e-6
    assert agree == (scale != "none")


# ---- particular ones ----------------------------------------------------------------------------


def test_the_candidates_of_ranksvm_are_its_fits():
    trial = small_trial()
    for point, model in candidates("ranksvm", trial, None)[10:20:4]:
        ranker = RankSVM(**{**options.PAPERS, **point, "scale": "standard", "tol": 1e-8})
        ranker.fit(trial.train.X, trial.train.y, qid=trial.train.qid)
        expected = ranker.predict(trial.valid.X)
        scores = model.predict(trial.valid)
        assert np.linalg.norm(scores - expected) < 0.02 * np.linalg.norm(expected)


# ---- candidates of the rivals -------------------------------------------------------------------

BOOSTERS = ["gbdt", "lightgbm", "xgboost-pairwise", "xgboost-ndcg", "catboost"]


PLAIN = {
    "forest": lambda: RandomForestRegressor(random_state=3),
    "gbdt": HistGradientBoostingRegressor,
    "lightgbm": lambda: pytest.importorskip("lightgbm").LGBMRanker(),
    "xgboost-ndcg": lambda: pytest.importorskip("xgboost").XGBRanker(objective="rank:ndcg"),
}


@pytest.mark.parametrize("name", PLAIN)
def test_the_defaults_are_what_a_library_gives_without_settings(name):
    trial = small_trial()
    assert {} in METHODS[name].points(trial)
    data = trial.train
    group = {} if METHODS[name].needs is None else {"group": np.diff(data.queries.offsets)}
    expected = PLAIN[name]().fit(data.X, data.y, **group).predict(trial.valid.X)
    scores = METHODS[name].model(trial, {}).predict(trial.valid)
    np.testing.assert_allclose(scores, expected, rtol=1e-12)


@pytest.mark.parametrize("name", USUAL)
def test_nothing_is_stopped_early_without_a_validation_part(name):
    trial = small_trial()
    with_part, without = (METHODS[name].points(t) for t in (trial, replace(trial, valid=None)))
    stopped = [point for point in with_part if BEST in point.values()]
    assert [point for point in with_part if point not in stopped] == without
    assert bool(stopped) == (name in BOOSTERS)
    if METHODS[name].family == "linrank":
        assert without[0] == {}
        assert len(without) > 1
    if name in BOOSTERS:
        gentle, defaults = without[:2]
        assert (defaults, gentle["n_estimators"], gentle["learning_rate"]) == ({}, 300, 0.02)


def stopped(name, trial):
    if METHODS[name].needs is not None:
        pytest.importorskip(METHODS[name].needs)
    point = next(p for p in METHODS[name].points(trial) if BEST in p.values())
    return point, METHODS[name].model(trial, point)


class Spied(Trial):
    """Remembers what was judged."""

    def judge(self, scores):
        self.last.setdefault("judged", []).append(super().judge(scores))
        return self.last["judged"][-1]


@pytest.mark.parametrize("name", BOOSTERS)
def test_boosters_stop_at_their_best_round_on_validation(name, monkeypatch):
    """By the measure of the contest; with that number the same model comes without a look."""
    monkeypatch.setattr("linrank.judging.candidates._ROUNDS", 60)
    plain = small_trial("map")
    trial = Spied(plain.train, plain.valid, "map", RULES, "standard", 3)
    point, model = stopped(name, trial)
    judged = trial.last["judged"]
    assert len(judged) == 60
    assert model.found == {"n_estimators": int(np.argmax(judged)) + 1}
    assert plain.judge(model.predict(trial.valid)) == pytest.approx(max(judged), abs=1e-6)
    again = METHODS[name].model(trial, {**point, **model.found})
    np.testing.assert_allclose(again.predict(trial.valid), model.predict(trial.valid), rtol=1e-6)
    assert len(judged) == 60


@pytest.mark.parametrize("name", ["xgboost-pairwise", "catboost"])
def test_pairs_have_an_order_whatever_the_labels(name):
    """Shifted by a fraction below 0, labels order the same pairs."""
    trial = small_trial("pairwise_accuracy")
    shifted = [Dataset.of(d.X, d.y - 2.5, qid=d.qid) for d in (trial.train, trial.valid)]
    ((_, plain),), ((_, moved),) = (
        candidates(name, t, 1) for t in (trial, Trial(*shifted, trial.scoring, RULES, seed=3))
    )
    assert moved.found == plain.found
    np.testing.assert_allclose(moved.predict(trial.valid), plain.predict(trial.valid), rtol=1e-3)


@pytest.mark.parametrize("name", ["lightgbm", "xgboost-ndcg", "catboost"])
def test_high_grades_do(name):
    """2^y is no number for a price."""
    trial = small_trial("pairwise_accuracy")
    high = [Dataset.of(d.X, 700 * d.y, qid=d.qid) for d in (trial.train, trial.valid)]
    ((_, model),) = candidates(name, Trial(*high, trial.scoring, RULES, seed=3), 1)
    assert trial.judge(model.predict(trial.valid)) > 0.6


@pytest.mark.parametrize("name", ["lightgbm", "xgboost-ndcg"])
def test_labels_that_are_no_grades_are_refused_by_name(name):
    data = make_ranking(n_queries=4, n_features=2, random_state=0)
    half = Dataset.of(data.X, data.y + 0.5, qid=data.qid)
    with pytest.raises(ValueError, match=r"grades 0, 1, 2.*[0-9]\.5 occurs"):
        candidates(name, Trial(half, half, "map", RULES))


def test_the_best_feature_is_found_whatever_its_direction():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 200).astype(float)
    X = rng.normal(size=(200, 30))
    X[:, 17] -= 2 * y
    data = Dataset.of(X, y, qid=np.arange(200) // 10)
    ((point, model),) = candidates("best-feature", Trial(data, data, "map", RULES), None)
    assert point == {}
    assert model.found == {"feature": 18, "order": "ascending"}
    scores = model.predict(data)
    assert evaluate(y, scores, qid=data.qid, metrics="map")["map"] > 0.8
    names = tuple(f"f{j}" for j in range(30))
    named = Trial(replace(data, feature_names=names), data, "map", RULES)
    ((_, model),) = candidates("best-feature", named, None)
    assert model.found == {"feature": "f17", "order": "ascending"}
    again = METHODS["best-feature"].model(named, model.found)
    np.testing.assert_array_equal(again.predict(data), scores)


def test_a_method_without_a_grid_takes_part_if_it_is_named():
    assert {"published", "regularized"} <= set(METHODS) - set(USUAL)
    ((point, _),) = candidates("published", small_trial())
    assert point == {}
    assert [m.name for m in chosen_methods(["regularized"])] == ["regularized"]


# ---- what candidates are judged on --------------------------------------------------------------


def test_without_a_validation_part_every_training_query_is_held_out_once():
    trial = replace(small_trial(), valid=None)
    parts, again = trial.parts(), trial.parts()
    assert len(parts) == N_FOLDS
    held_out = np.concatenate([rows for _, _, rows in parts])
    assert sorted(held_out) == list(range(trial.train.n_rows))
    for (inner, data, rows), (_, _, same) in zip(parts, again, strict=True):
        assert set(data.qid).isdisjoint(inner.train.qid)
        assert inner.valid is None
        np.testing.assert_array_equal(data.labels, trial.train.labels[rows])
        np.testing.assert_array_equal(rows, same)
    assert trial.judge(trial.train.labels) > trial.judge(-trial.train.labels)
    ((part, data, rows),) = small_trial().parts()
    assert (data, rows) == (part.valid, slice(None))


# ---- names --------------------------------------------------------------------------------------


def test_the_baseline_takes_part_in_any_case_and_some_are_left_out():
    names = [m.name for m in chosen_methods(["gbdt", "sgd", "gbdt"], baseline="ranksvm")]
    assert names == ["ranksvm", "gbdt", "sgd"]
    names = [m.name for m in chosen_methods("all", ["catboost", "forest"])]
    assert set(USUAL) - set(names) == {"catboost", "forest"}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ((["lightgmb"],), r"unknown method 'lightgmb'; did you mean 'lightgbm'\?"),
        (("all", ["foret"]), "unknown method 'foret'"),
        (([], (), "ranksvm"), r"methods is empty; name some of ranksvm, .*, or 'all'"),
        (("all", ["sgd"], "sgd"), "'sgd' is the baseline and is left out"),
        ((["sgd"], ["sgd"]), "no method is left"),
    ],
)
def test_methods_that_cannot_be_chosen(given, message):
    with pytest.raises(ValueError, match=message):
        chosen_methods(*given)
