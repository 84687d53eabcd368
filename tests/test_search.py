"""What all searches have in common: the results as scikit-learn tells them, one fit, one report."""

import threading
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.model_selection import GroupKFold, KFold

import linrank
import papers
from linrank import Dataset, QueryKFold, evaluate, make_ranking
from linrank.data.queries import row_folds
from linrank.data.rows import as_rows
from linrank.data.scaling import Scaling
from linrank.methods.base import METHODS, Task
from linrank.methods.search import PathSearch
from linrank.ranksvm.path import as_Cs
from linrank.search import folds as validation
from linrank.search import tuning as searching
from linrank.search.folds import Fold, _score_matrix, deal, judge
from linrank.search.tuning import Tuning
from papers import RankSVM, RankSVMCV
from path_searches import path_over, tune

pytestmark = pytest.mark.filterwarnings("ignore:the best", "ignore:every")
CS = [0.001, 0.01, 0.1]


DATA = make_ranking(n_queries=24, n_features=4, n_levels=3, noise=0.6, random_state=2)


# Each search by the name of its method: the grid, and the axes in the order of the results.
GRIDS = {
    "ranksvm": ({"Cs": CS}, ["C"]),
    "factorized": ({"Cs": CS, "random_state": 0}, ["C"]),
    "domination": ({"alphas": [0.1, 1.0, 10.0]}, ["alpha"]),
    "sgd": (
        {"alphas": [0.1, 0.01], "algorithms": ["pa", "pegasos"], "n_steps": 500, "random_state": 0},
        ["algorithm", "alpha"],
    ),
    "kernel": ({"Cs": CS[:2], "gammas": [0.1, 1.0]}, ["gamma", "C"]),
}
ONE = {
    "ranksvm": "RankSVM",
    "factorized": "FactorizedRankSVM",
    "domination": "DominationRanker",
    "sgd": "SGDRanker",
    "kernel": "KernelRankSVM",
}
every_search = pytest.mark.parametrize("name", GRIDS)


def search(data, name, home=linrank, fit=None, **params):
    given = {"cv": 3, **GRIDS[name][0], **params}
    ranker = getattr(home, f"{ONE[name]}CV")(**given)
    return ranker.fit(data.X, data.y, **({"qid": data.qid} | (fit or {})))


# ---- as scikit-learn tells it -------------------------------------------------------------------


@every_search
def test_cv_results_are_those_of_scikit_learn(name):
    found, axes = search(DATA, name), GRIDS[name][1]
    results = found.cv_results_
    splits = np.array([results[f"split{k}_test_score"] for k in range(3)])
    assert_array_equal(splits, found.scores_.reshape(3, -1))
    assert_allclose(results["mean_test_score"], splits.mean(axis=0))
    assert_allclose(results["std_test_score"], splits.std(axis=0))
    assert results["rank_test_score"][np.argmax(results["mean_test_score"])] == 1
    assert max(results["rank_test_score"]) <= splits.shape[1]
    assert list(results["params"][0]) == axes
    for axis in axes:
        assert results[f"param_{axis}"].tolist() == [p[axis] for p in results["params"]]
        assert found.best_params_[axis] == getattr(found, f"{axis}_")
        assert getattr(found, f"{axis}_") in list(getattr(found, f"{axis}s_"))
    assert results["params"][found.best_index_] == found.best_params_
    assert results["mean_test_score"][found.best_index_] == found.best_score_


@every_search
def test_what_a_search_records(name, tmp_path):
    found = search(DATA, name, scoring="ndcg@5")
    assert found.scores_.shape[0] == 3
    assert_allclose(found.mean_scores_, found.scores_.mean(axis=0))
    assert found.best_score_ == found.mean_scores_.max()
    assert found.n_queries_ == 24
    assert found.rank(DATA.X, qid=DATA.qid).min() == 1
    assert 0.5 < found.score(DATA.X, DATA.y, qid=DATA.qid) <= 1
    assert not hasattr(found, "fit_pairs")  # preferences have no folds
    found.save(tmp_path / "m.json")
    model = linrank.load_model(tmp_path / "m.json")
    assert_allclose(model.predict(DATA.X), found.predict(DATA.X), rtol=1e-9, atol=1e-12)
    expected = {"score": found.best_score_, "scoring": "ndcg@5", **found.best_params_}
    gamma = expected.pop("gamma", None)  # it is part of the kernel
    assert gamma is None or model.kernel.gamma == gamma
    assert {key: model.training[key] for key in expected} == expected
    assert clone(found).get_params() == found.get_params()


@pytest.mark.parametrize("scale", ["none", "standard"])
@every_search
def test_threads_do_not_change_it(name, scale):
    one, three = (search(DATA, name, n_jobs=n, scale=scale) for n in (1, 3))
    assert_allclose(three.scores_, one.scores_, rtol=1e-12)
    assert_allclose(three.predict(DATA.X), one.predict(DATA.X), rtol=1e-9)
    assert one.best_params_ == three.best_params_


@every_search
def test_kinds_of_cv_agree(name):
    by_number = search(DATA, name).scores_
    splits = list(QueryKFold(3).split(DATA.X, DATA.y, DATA.qid))
    for cv in (QueryKFold(3), splits, iter(splits)):
        assert_array_equal(search(DATA, name, cv=cv).scores_, by_number)
    assert len(search(DATA, name, cv=GroupKFold(4)).scores_) == 4


@every_search
def test_without_qid_rows_are_dealt_out_by_label(name):
    graded = replace(DATA, labels=(DATA.y > 0).astype(float))
    ranker = search(graded, name, scoring="pairwise_accuracy", fit={"qid": None})
    assert len(ranker.scores_) == 3
    assert ranker.best_score_ > 0.5
    assert not ranker.needs_qid_


@every_search
def test_verbose_is_a_line_of_every_model(name, capsys):
    found = search(DATA, name, verbose=1, n_jobs=1)
    lines = capsys.readouterr().err.splitlines()
    assert sum(line.startswith("linrank: fold ") for line in lines) == found.scores_.size
    assert all(line.endswith(" weights") == (name == "domination") for line in lines)
    begins = {"sgd": "algorithm pa, alpha 0.1, score 0.", "kernel": "gamma 0.1, C 0.001, objective"}
    assert lines[0].startswith(f"linrank: fold 1, {begins.get(name, GRIDS[name][1][0])}")


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"scoring": "ndgc"}, ValueError, "ndgc"),
        ({"selection": "worst"}, ValueError, "selection must be 'best' or 'one_se', got 'worst'"),
        ({"cv": 1}, ValueError, "at least 2 folds, got 1"),
        ({"cv": 50}, ValueError, "24 queries cannot fill 50 folds"),
        ({"cv": "five"}, TypeError, "cv must be a number of folds, .* got 'five'"),
    ],
    ids=str,
)
@every_search
def test_wrong_parameters_are_told(name, options, error, message):
    with pytest.raises(error, match=message):
        search(DATA, name, **options)


@every_search
def test_parts_that_cannot_be_used_are_told(name):
    with pytest.raises(ValueError, match="needs the spread over at least two folds"):
        search(DATA, name, selection="one_se", cv=(DATA.X, DATA.y, DATA.qid))
    few = replace(DATA, labels=np.where(DATA.qid < 2, DATA.y, 0.0))
    one, rest = np.flatnonzero(DATA.qid < 2), np.flatnonzero(DATA.qid >= 2)
    with pytest.raises(linrank.NoPairsError, match="fold 2 of 2: "):
        search(few, name, cv=[(one, rest), (rest, one)], scoring="p@5")


def test_equal_means_have_the_same_rank():
    tuning = Tuning({"C": np.array([1.0, 2.0, 3.0, 4.0])}, np.array([[0.5, 0.7, 0.7, 0.1]]))
    assert tuning.cv_results["rank_test_score"].tolist() == [3, 1, 1, 4]


def test_an_unknown_attribute_of_a_tuning_is_an_attribute_error():
    tuning = Tuning({"C": np.array([1.0, 2.0])}, np.array([[0.5, 0.7]]))
    assert (tuning.C, tuning.Cs.tolist()) == (2.0, [1.0, 2.0])
    with pytest.raises(AttributeError, match="no attribute 'alphas'"):
        tuning.alphas  # noqa: B018


def test_a_path_has_the_grid_of_its_own_parameter():
    over_C = papers.ranksvm_path(DATA.X, DATA.y, DATA.qid, Cs=CS)
    over_alpha = linrank.domination_path(DATA.X, DATA.y, DATA.qid, alphas=[1.0, 10.0])
    assert (over_C.Cs.tolist(), over_alpha.alphas.tolist()) == (CS, [10.0, 1.0])
    with pytest.raises(AttributeError, match="a path over C: it has Cs"):
        over_C.alphas  # noqa: B018


# ---- equal to the same by hand ------------------------------------------------------------------

# Tolerances so tight that a model of a path and one by itself rank alike.
PLAIN = {
    "ranksvm": {"tol": 1e-9},
    "factorized": {},
    "domination": {"alphas": [1.0, 10.0], "tol": 1e-9},
    "sgd": {},
    "kernel": {"Cs": CS, "gammas": [0.05, 0.5], "tol": 1e-9, "random_state": 0},
}
OPTIONS = [
    *((name, {}) for name in PLAIN),
    *((name, {"scale": scale}) for name in PLAIN for scale in ("standard", "query")),
    ("ranksvm", {"loss": "hinge", "tol": 1e-6, "scoring": "map"}),
    ("ranksvm", {"pairs": "adjacent", "scoring": "pairwise_accuracy"}),
    ("ranksvm", {"pair_weighting": "grade_diff", "query_normalization": "pairs"}),
    ("ranksvm", {"solver": "tron", "max_iter": 200, "tol": 1e-5}),
    ("ranksvm", {"coef_bounds": (-0.2, 0.05)}),
    ("domination", {"penalty": "l2"}),
    ("domination", {"margin": 1.0}),
    ("sgd", {"average": True, "algorithms": ["hybrid", "sgd-svm"]}),
    ("kernel", {"scale": "minmax", "kernel": "poly", "degree": 2, "coef0": 1.0}),
    ("kernel", {"pairs": "closest", "n_closest": 30}),
    ("kernel", {"pairs": "pruned", "n_closest": 25, "n_random": 10, "scoring": "map"}),
    ("kernel", {"pair_weighting": "grade_diff", "query_normalization": "pairs"}),
    ("kernel", {"loss": "hinge", "tol": 1e-4, "scoring": "pairwise_accuracy"}),
]


@pytest.mark.parametrize("name", ["factorized", "sgd", "kernel"])
def test_the_model_is_that_of_a_plain_fit(name):
    found = search(DATA, name, papers, scale="standard", random_state=0)
    chosen = ("Cs", "gammas", "alphas", "algorithms")
    shared = {key: value for key, value in GRIDS[name][0].items() if key not in chosen}
    given = {**shared, "scale": "standard", "random_state": 0, **found.best_params_}
    plain = getattr(papers, ONE[name])(**given).fit(DATA.X, DATA.y, qid=DATA.qid)
    assert_array_equal(found.model_.coef, plain.model_.coef)
    own = {"Cs", "gammas", "alphas", "alpha", "algorithm", "algorithms", "scores", "mean_scores"}
    own |= {"best_score", "best_params", "best_index", "cv_results", "C"}
    names = {key for key in vars(found) if key.endswith("_")}
    assert names - {f"{key}_" for key in own} <= vars(plain).keys()
    for key in ("objective_", "duality_gap_", "n_pairs_", "lower_bound_", "converged_"):
        np.testing.assert_equal(getattr(found, key, None), getattr(plain, key, None))
    known = found.model_.training
    assert {**plain.model_.training, "score": 0, "scoring": ""}.keys() == known.keys()


def measured(ranker, valid, scoring):
    """The measure on validation data; None of a model of zeros, which ranks nothing."""
    scores = ranker.predict(valid.X, qid=valid.qid)
    if not np.ptp(scores):
        return None
    return evaluate(valid.y, scores, qid=valid.qid, metrics=scoring)[scoring]


def check_scores(name, found, k, train, valid, options, **weights):
    """The measures of a fold are those of separate fits."""
    plain = getattr(papers, ONE[name])
    shared = {name: value for name, value in options.items() if name not in ("scoring", "cv")}
    shared = {k: v for k, v in shared.items() if k not in ("Cs", "alphas", "gammas", "algorithms")}
    scoring, results = options.get("scoring", "ndcg@10"), found.cv_results_
    for point, score in zip(results["params"], results[f"split{k}_test_score"], strict=True):
        alone = plain(**shared, **point).fit(train.X, train.y, qid=train.qid, **weights)
        value = measured(alone, valid, scoring)
        if value is not None:
            assert_allclose(score, value, atol=5e-3)


@pytest.mark.filterwarnings("ignore::linrank.ConvergenceWarning")
@pytest.mark.parametrize(("name", "options"), OPTIONS, ids=str)
def test_scores_are_those_of_separate_fits(name, options):
    options = {**GRIDS[name][0], **PLAIN[name], **options}
    held_out = make_ranking(n_queries=12, n_features=4, n_levels=3, noise=0.6, random_state=8)
    found = search(DATA, name, papers, **options, cv=(held_out.X, held_out.y, held_out.qid))
    assert found.scores_.shape[0] == 1
    check_scores(name, found, 0, DATA, held_out, options)
    for key in set(options) & {"pairs", "loss", "pair_weighting", "scoring"}:
        assert found.model_.training[key] == options[key]
    assert "coef_bounds" not in options or found.model_.training["bounded"]
    if name == "sgd":
        return  # folds are drawn from by a mask, and other rows draw other pairs
    found, fold = search(DATA, name, papers, **options), deal(DATA, 3)[1]
    check_scores(name, found, 1, DATA.select(fold.train), DATA.select(fold.valid), options)


@pytest.mark.parametrize("name", [name for name in PLAIN if name != "sgd"])
def test_weights_reach_the_folds(name):
    rng, options = np.random.default_rng(3), {**GRIDS[name][0], **PLAIN[name]}
    u = rng.integers(0, 3, DATA.n_rows).astype(float)
    c = dict(zip(DATA.queries.ids.tolist(), rng.integers(1, 5, 24).tolist(), strict=True))
    weights = {"sample_weight": u, "query_weight": c}
    found = search(DATA, name, papers, fit=weights, **options)
    for k, fold in enumerate(deal(DATA, 3)):
        own = {"sample_weight": u[fold.train], "query_weight": c}
        check_scores(
            name, found, k, DATA.select(fold.train), DATA.select(fold.valid), options, **own
        )
    unweighted = search(DATA, name, papers, **options)
    assert not np.array_equal(found.predict(DATA.X), unweighted.predict(DATA.X))


@pytest.mark.parametrize("name", ["ranksvm", "domination", "sgd"])
def test_a_fold_never_sees_its_validation_rows(name, monkeypatch):
    """Spoilt rows of a fold change the measure there and nothing else about its models."""
    folds = [(fold.train, fold.valid) for fold in deal(DATA, 3)]
    X = np.array(DATA.X)
    X[folds[1][1]] = 1e3 * np.random.default_rng(0).standard_normal(X[folds[1][1]].shape)
    scores, judge = [], searching.judge

    def overheard(w, *arguments, **options):
        scores.append(w)
        return judge(w, *arguments, **options)

    monkeypatch.setattr(searching, "judge", overheard)
    for rows in (DATA.X, X):
        one = replace(DATA, rows=as_rows(rows))
        search(one, name, papers, cv=folds, scale="standard", n_jobs=1, **PLAIN[name])
    assert_array_equal(scores[1], scores[4])
    assert not np.allclose(scores[0], scores[3])


# ---- every model is told of ---------------------------------------------------------------------


@every_search
def test_a_search_by_the_registry_is_that_of_the_estimator(name):
    states, parameters = [], METHODS[name].search(**GRIDS[name][0])
    found = METHODS[name].path(Task(DATA, parameters), deal(DATA, 3), progress=states.append)
    same = search(DATA, name)
    assert_array_equal(found.scores, same.scores_)
    assert_array_equal(found.model.predict(DATA.X), same.predict(DATA.X))
    assert found.choice == {**same.best_params_, "score": same.best_score_}
    assert found.model.training["score"] == same.best_score_
    assert [state["n_done"] for state in states] == list(range(1, same.scores_.size + 1))
    assert {state["n_total"] for state in states} == {same.scores_.size}
    places = [tuple(state[axis] for axis in ("fold", *found.grid)) for state in states]
    assert len(set(places)) == same.scores_.size
    is_convex = name not in ("factorized", "sgd")  # else the objective is that of a dual, or none
    assert not is_convex or all(0 <= s["gap"] <= s["objective"] for s in states)


@pytest.mark.parametrize("n_jobs", [1, 2])
@every_search
def test_an_interrupt_in_a_fold_ends_all(name, n_jobs):
    def fail(state):
        raise KeyboardInterrupt

    parameters = METHODS[name].search(**GRIDS[name][0], n_jobs=n_jobs)
    with pytest.raises(KeyboardInterrupt):
        METHODS[name].path(Task(DATA, parameters), deal(DATA, 3), progress=fail)


def test_models_that_end_early_are_told_and_the_grid_of_low_rank_is_coarse():
    told = "models on the folds did not reach the tolerance"
    with pytest.warns(linrank.ConvergenceWarning, match=told):
        found = search(DATA, "factorized", papers, Cs="auto", cv=2, max_iter=1)
    assert_allclose(found.Cs_[1:] / found.Cs_[:-1], 4.0)
    assert found.Cs_[5] < DATA.queries.n_queries / 40 < found.Cs_[-1] * DATA.queries.n_pairs


# ---- folds, threads and the measure -------------------------------------------------------------

GRID = [1e-4, 1e-3, 1e-2, 1e-1, 1.0]


@pytest.fixture(scope="module")
def fitted():
    return RankSVMCV(GRID, cv=4).fit(DATA.X, DATA.y, qid=DATA.qid)


# ---- the search ---------------------------------------------------------------------------------


def test_the_refit_is_the_fit_at_the_chosen_C(fitted):
    cold = RankSVM(C=fitted.C_, tol=1e-10).fit(DATA.X, DATA.y, qid=DATA.qid)
    assert cold.objective_ * (1 - 1e-9) <= fitted.objective_
    assert fitted.objective_ - cold.objective_ <= fitted.duality_gap_ <= 1e-4 * fitted.objective_


def test_folds_run_side_by_side_and_share_the_threads(monkeypatch):
    seen, gate, follow = [], threading.Barrier(2, timeout=120), PathSearch.follow

    def spy(self, ground, Cs, **told):
        seen.append(ground.n_threads)
        if len(seen) <= 2:
            gate.wait()  # passes only when two folds are under way at once
        return follow(self, ground, Cs, **told)

    monkeypatch.setattr(PathSearch, "follow", spy)
    tune(DATA, deal(DATA, 3), as_Cs(GRID), n_jobs=2)
    assert seen == [1, 1, 1]
    seen.clear()
    monkeypatch.setattr(validation, "_COPY_BYTES", DATA.rows.nbytes)
    gate = threading.Barrier(1)
    tune(DATA, deal(DATA, 3), as_Cs(GRID), n_jobs=4)
    assert seen == [4, 4, 4]  # copies for one fold at a time: the core has all threads


# ---- scores of a path ---------------------------------------------------------------------------


@pytest.mark.parametrize("density", [1.0, 0.3])
def test_blocks_of_rows_give_the_scores_of_predict(density, monkeypatch):
    data = make_ranking(60, 17, 9, density=density, random_state=1)
    path, scaling = path_over(data, as_Cs(GRID), scale="standard")
    monkeypatch.setattr("linrank.search.folds._BLOCK_BYTES", 3000)
    matrix = _score_matrix(data.rows, path.coefs, 1)
    for coef, scores in zip(path.coefs, matrix, strict=True):
        assert_array_equal(scores, linrank.LinearModel(coef).predict(data))
    values = judge(path.coefs, data, Fold(None, data), 0, scaling, "map")
    truth = [evaluate(data.y, z, qid=data.qid, metrics="map")["map"] for z in matrix]
    assert_array_equal(values, truth)


def test_a_model_of_zeros_is_not_perfect_on_sorted_rows():
    data = Dataset.of(np.ones((6, 2)), [2, 1, 0, 2, 1, 0], qid=[1, 1, 1, 2, 2, 2])
    path, _ = path_over(data, as_Cs([1.0]))
    assert judge(path.coefs, data, Fold(None, data), 0, Scaling(), "ndcg@10")[0] < 0.9


# ---- folds --------------------------------------------------------------------------------------


def test_rows_of_one_query_are_dealt_out_by_label():
    labels = np.array([0, 0, 0, 1, 1, 1, 0, 0, 0, 1, 1, 1])
    fold = row_folds(labels, 3)
    for k in range(3):
        assert sorted(labels[fold == k]) == [0, 0, 1, 1]
    with pytest.raises(ValueError, match="2 rows cannot fill 3 folds"):
        row_folds(labels[:2], 3)


# ---- errors -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"cv": 2.5}, TypeError, "cv must be a number of folds, .* got 2.5"),
        ({"cv": True}, TypeError, "got True"),
        ({"cv": [1, 2]}, ValueError, r"cv\[0\] must be a pair \(train, test\)"),
        ({"cv": [([0, 1], [])]}, ValueError, "fold 1 of cv has 2 training and 0 test rows"),
        ({"cv": (1,)}, ValueError, "cv is a tuple of 1; validation data is"),
        ({"cv": []}, ValueError, "cv has no folds"),
        ({"cv": iter([])}, ValueError, "an iterator serves one fit only"),
        ({"cv": [([0, 1], [99999])]}, ValueError, "fold 1 of cv has the row 99999; those of X are"),
        ({"cv": [([0, 1], [-1])]}, ValueError, "fold 1 of cv has the row -1"),
        ({"cv": [([0.0, 1.0], [2])]}, ValueError, "must hold row numbers, got float64"),
        ({"cv": [([True, False], [2])]}, ValueError, "must hold row numbers, got bool"),
        ({"cv": KFold(3)}, ValueError, "trains and tests on query .* split by query"),
    ],
)
def test_wrong_parameters(options, error, message):
    with pytest.raises(error, match=message):
        RankSVMCV(**options).fit(DATA.X, DATA.y, qid=DATA.qid)


def test_a_fold_that_cannot_be_judged_is_named():
    data = Dataset.of(np.eye(6), [0, 1, 0, 1, 1, 1], qid=[1, 1, 2, 2, 3, 3])
    folds = [Fold(np.array([0, 1]), np.array([2, 3])), Fold(np.arange(4), np.array([4, 5]))]
    with pytest.raises(ValueError, match="undefined on the validation part of fold 2"):
        tune(data, folds, as_Cs(GRID), scoring="pairwise_accuracy")
