"""What a contest is made of: its parts and folds, and every method with its grid."""

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
from threadpoolctl import threadpool_limits

from linrank import Dataset, NoPairsError, RankSVM, load, make_ranking
from linrank import choices as options
from linrank.judging.candidates import (
    BEST,
    N_FOLDS,
    Trial,
    chosen_methods,
    contestants,
    fair_convention,
)
from linrank.judging.contest import check_protocol, leak_warnings
from linrank.judging.inspect import shared_queries
from linrank.judging.runner import one_split, read_joined, rotation, write_subset
from linrank.metrics import CONVENTIONS, evaluate

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


def candidates(name, trial, most=2, where=lambda point: True):
    method = METHODS[name]
    if method.needs is not None:
        pytest.importorskip(method.needs)
    points = [point for point in method.points(trial) if where(point)]
    return [(point, method.model(trial, point)) for point in points[:most]]


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
    ((point, model),) = candidates(name, trial, 1, lambda point: BEST in point.values())
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


def part(seed, first_id=None, n_queries=6, n_features=4):
    data = make_ranking(n_queries=n_queries, n_features=n_features, random_state=seed)
    offset = 100 * seed if first_id is None else first_id
    return replace(data, qid=np.asarray(data.qid) + offset)


def checked(protocol, scoring="ndcg@10", metrics=("map",)):
    return check_protocol(protocol, scoring, metrics, fair_convention("linrank"))


# ---- folds --------------------------------------------------------------------------------------


def test_the_rotation_is_that_of_letor():
    folds = rotation([part(k) for k in range(5)]).folds
    trained = [(0, 1, 2), (1, 2, 3), (2, 3, 4), (3, 4, 0), (4, 0, 1)]
    assert [fold.train for fold in folds] == trained
    assert [fold.valid for fold in folds] == [(3,), (4,), (0,), (1,), (2,)]
    assert [fold.test for fold in folds] == [(4,), (0,), (1,), (2,), (3,)]


@pytest.mark.parametrize("n", [3, 4, 7])
def test_every_subset_has_one_part_in_every_fold_and_is_tested_once(n):
    folds = rotation([part(k) for k in range(n)]).folds
    assert all(sorted([*f.train, *f.valid, *f.test]) == list(range(n)) for f in folds)
    assert sorted(fold.test[0] for fold in folds) == list(range(n))
    with pytest.raises(ValueError, match=r"at least 3 subsets.*got 2"):
        rotation([part(0), part(1)])


# ---- checks -------------------------------------------------------------------------------------


def test_good_parts_give_no_warning_and_weights_give_one():
    assert checked(one_split(part(0), part(1), part(2))) == []
    weighted = replace(part(0), weight=np.ones(part(0).n_rows))
    (said,) = checked(one_split(weighted, part(1), part(2)))
    assert said.startswith("the weights of the rows of train are left out")


def test_different_numbers_of_features_name_the_files_and_the_remedy(tmp_path):
    paths = []
    for name, features in (("a.txt", "1:1 2:2"), ("b.txt", "1:1 2:5"), ("c.txt", "1:1")):
        (tmp_path / name).write_text(f"1 qid:{name} {features}\n0 qid:{name} 1:3\n")
        paths.append(tmp_path / name)
    protocol = one_split(*map(load, paths))
    with pytest.raises(ValueError, match=r"a\.txt 2, .*b\.txt 2, .*c\.txt 1; .*--n-features 2"):
        checked(protocol)
    (said,) = checked(one_split(*(load(path, n_features=2) for path in paths)))
    assert "single query" in said


def test_features_counted_from_0_and_from_1_do_not_mix(tmp_path):
    zero, one = tmp_path / "zero.txt", tmp_path / "one.txt"
    zero.write_text("1 qid:1 0:1 1:2\n0 qid:1 0:3\n")
    one.write_text("1 qid:2 1:1 2:2\n0 qid:2 1:3\n")
    with pytest.raises(ValueError, match=r"zero\.txt has a feature 0 and .*one\.txt has none"):
        checked(one_split(load(zero), load(one), load(one)))


def test_a_measure_that_no_query_counts_in_is_named():
    bad = replace(part(1), labels=part(1).labels - 10.0)
    with pytest.raises(ValueError, match="negative label"):
        checked(one_split(part(0), bad, part(2)))
    with pytest.raises(ValueError, match=r"test, to test by: .*negative label"):
        checked(one_split(part(0), part(1), bad), metrics=("ndcg@10",))
    flat = replace(part(2), labels=np.ones(part(2).n_rows))
    with pytest.raises(NoPairsError, match=r"test has no pair.*6 queries"):
        checked(one_split(part(0), part(1), flat))
    assert checked(one_split(part(0), bad, part(2)), scoring="pairwise_accuracy") == []


@pytest.mark.parametrize("name", ["kendall_tau", "gamma", "pairwise_accuracy(ties=skip)"])
def test_measures_that_ties_leave_undefined_are_measures(name):
    assert checked(one_split(part(0), part(1), part(2)), name, (name,)) == []


def test_a_measure_that_favors_ties_is_warned_of():
    three = one_split(part(0), part(1), part(2))
    (said,) = checked(three, metrics=("map", "domination_error"))
    assert "domination_error(ties=error)" in said
    assert checked(three, metrics=("domination_error(ties=error)", "all_pairs_error")) == []


def test_a_single_test_query_is_warned_of():
    one, bare = part(2, n_queries=1), Dataset.of(part(2).X, part(2).y)
    (said,) = checked(one_split(part(0), part(1), one))
    assert said.startswith("test has a single query: no interval")
    (said,) = checked(one_split(part(0), part(1), bare))
    assert "no qid" in said
    assert checked(rotation([part(0), one, bare])) == []


TRAIN, BARE = part(0, first_id=0), [Dataset.of(part(k).X, part(k).y) for k in range(2)]
SAME = replace(TRAIN, qid=np.asarray(TRAIN.qid) + 7)


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ((TRAIN, part(1), part(2, 5)), "1 of the 6 query ids of test also occurs in train, such"),
        ((TRAIN, part(1), part(2, 3)), "3 of the 6 query ids of test also occur in train, such as"),
        ((TRAIN, part(1), part(2, 100)), "6 of the 6 query ids of test also occur in valid"),
        ((TRAIN, part(1), SAME), "6 of the 6 queries of test are in train too, row by row"),
        ((*BARE, BARE[0]), "1 of the 1 queries of test is in train too"),  # without ids
    ],
)
def test_queries_of_two_parts_are_counted(parts, message):
    (said,) = leak_warnings(one_split(*parts))
    assert said.startswith(message)
    assert "leaks" in said


def test_subsets_that_are_never_apart_cannot_leak():
    """In a single fold, what two training files share is no leak."""
    protocol = rotation([part(0), part(1, first_id=0), part(2), part(3), part(4)])
    one_fold = replace(protocol, folds=protocol.folds[:1])
    assert leak_warnings(one_fold) == []
    assert len(leak_warnings(protocol)) == 1


# ---- arrays that are shared ---------------------------------------------------------------------


@pytest.mark.parametrize("sparse", [False, True])
def test_a_subset_comes_back_with_its_queries_together(tmp_path, sparse):
    data = part(3)
    order = np.random.default_rng(0).permutation(data.n_rows)
    X = csr_array(data.X[order]) if sparse else data.X[order]
    mixed = Dataset.of(X, data.y[order], qid=data.qid[order])
    write_subset(str(tmp_path), 7, mixed)
    back = read_joined(str(tmp_path), [7])
    gathered = mixed.queries.gather(np.arange(data.n_rows))
    dense = back.X.toarray() if sparse else back.X
    np.testing.assert_array_equal(dense, data.X[order][gathered])
    np.testing.assert_array_equal(back.labels, mixed.labels[gathered])
    assert back.queries.order is None
    assert back.queries.n_pairs == data.queries.n_pairs
    write_subset(str(tmp_path), 2, data)  # the ids are the same, the queries are others
    both = read_joined(str(tmp_path), [2, 7])
    assert both.queries.n_queries == 2 * back.queries.n_queries
    assert both.queries.n_pairs == 2 * back.queries.n_pairs
    joined = both.X.toarray() if sparse else both.X
    np.testing.assert_array_equal(joined, np.concatenate([data.X, data.X[order][gathered]]))


# ---- what a method is given ---------------------------------------------------------------------


def test_rows_in_the_order_of_their_labels_do_not_reward_ties():
    """In input order, equal scores of rows sorted by label would be a perfect ranking."""
    y, qid = [2, 1, 0, 2, 1, 0], [1, 1, 1, 2, 2, 2]
    data = Dataset.of(np.zeros((6, 1)), y, qid=qid)
    fair = Trial(data, data, "ndcg", fair_convention("linrank")).judge(np.zeros(6))
    assert evaluate(y, np.zeros(6), qid=qid, metrics="ndcg")["ndcg"] == 1.0
    assert fair < 0.9


@pytest.mark.parametrize("name", CONVENTIONS)
def test_conventions_with_a_rule_of_their_own_for_ties_keep_it(name):
    chosen, rules = CONVENTIONS[name], fair_convention(name)
    assert rules.ties == ("average" if chosen.ties == "stable" else chosen.ties)
    assert rules.gain == chosen.gain


def test_errors_are_signed_so_that_higher_is_better():
    data = part(0)
    trial = Trial(data, data, "all_pairs_error", fair_convention("linrank"))
    perfect, reversed_ = trial.judge(data.labels), trial.judge(-data.labels)
    assert perfect == 0.0 > reversed_


# ---- queries that two datasets share ------------------------------------------------------------


def dataset(queries, sparse=False):
    """From {id: [(label, *features), ...]}."""
    rows = [(qid, row) for qid, lines in queries.items() for row in lines]
    X = np.array([row[1:] for _, row in rows], dtype=np.float64)
    y, qid = [row[0] for _, row in rows], [qid for qid, _ in rows]
    return Dataset.of(csr_array(X) if sparse else X, y, qid=qid)


small = st.dictionaries(
    st.integers(0, 5),
    st.lists(st.tuples(*(st.integers(0, 2) for _ in range(3))), min_size=1, max_size=3),
    min_size=1,
    max_size=4,
)


@given(small, small, st.booleans())
def test_it_finds_what_sets_of_rows_find(one, other, sparse):
    found = shared_queries(dataset(one), dataset(other, sparse))
    known = {tuple(sorted(rows)) for rows in other.values()}
    by_id = {qid for qid in one if qid in other}
    by_rows = {qid for qid, rows in one.items() if tuple(sorted(rows)) in known}
    assert (found.n_queries, found.n_ids, found.n_rows) == (len(one), len(by_id), len(by_rows))
    assert bool(found) == bool(by_id | by_rows)
    assert found.example is None or found.example in (by_id & by_rows or by_rows or by_id)


def test_a_query_is_found_under_another_id_in_another_order_and_width():
    one = dataset({"a": [(0, 1.0, 0.0), (1, 2.0, 3.0)]})
    other = dataset({"z": [(1, 2.0, 3.0, 0.0), (0, 1.0, 0.0, 0.0)]})
    assert shared_queries(one, other).n_rows == 1
    assert shared_queries(one, other).n_ids == 0


def test_data_without_ids_are_compared_by_rows():
    data = Dataset.of([[1.0], [2.0]], [0, 1])
    found = shared_queries(data, data)
    assert (found.n_ids, found.n_rows, found.example) == (0, 1, None)


def test_rows_of_a_query_need_not_be_together():
    """The same two queries, once row by row in turn."""
    apart = Dataset.of([[1.0], [3.0], [2.0], [4.0]], [0, 0, 1, 1], qid=[1, 2, 1, 2])
    together = Dataset.of([[1.0], [2.0], [3.0], [4.0]], [0, 1, 0, 1], qid=[7, 7, 8, 8])
    assert shared_queries(apart, together).n_rows == 2
