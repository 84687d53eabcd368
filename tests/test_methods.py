"""Laws of every method in the registry, on every storage, by the estimator that is made of it."""

from __future__ import annotations

import inspect
import json
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

import linrank
from cli_files import write_svmlight
from linrank import ConvergenceWarning, LinearModel
from linrank.choices import PAPERS
from linrank.estimators.base import LinearRanker, MethodRanker
from linrank.estimators.cross_validation import SearchRanker
from linrank.estimators.kernel import KernelRanker
from linrank.estimators.ranksvm import PublishedRankSVM
from linrank.judging.candidates import Trial, chosen_methods, fair_convention, own_contestants
from linrank.methods import parameters as declared
from linrank.methods.base import (
    METHODS,
    Description,
    Method,
    Task,
    Trained,
    defaults_of,
    method_named,
    options_of,
    register,
)
from small_data import small

STORAGES = {
    "float64": np.asarray,
    "float32": lambda X: X.astype(np.float32),
    "csr": sparse.csr_array,
}
# A twin of each estimator with a name of its own; all else about it is the method's.
NAMED = {
    "ranksvm": linrank.RankSVM,
    "published": PublishedRankSVM,
    "sgd": linrank.SGDRanker,
    "domination": linrank.DominationRanker,
    "factorized": linrank.FactorizedRankSVM,
    "regularized": linrank.RegularizedRankSVM,
    "kernel": linrank.KernelRankSVM,
}
# Small enough for a test, tight enough for weights and repeated rows to agree.
QUICK: dict[str, dict[str, Any]] = {
    "ranksvm": {"tol": 1e-12},
    "published": {"tol": 1e-10},
    "sgd": {"n_steps": 2_000, "random_state": 0},
    "domination": {"alpha": 0.1, "tol": 1e-10},
    "factorized": {"max_iter": 50, "random_state": 0},
    "regularized": {"max_iter": 50},
    "kernel": {"tol": 1e-12},
}
# The one that chooses among the others has laws of its own, in test_auto.py.
OWN = [name for name in METHODS if name != "auto"]
# Weights of rows are repetitions of rows: of the others, one draws pairs and one starts at random,
# and a matrix of duals has another rank with a row more.
REPEATING = ("ranksvm", "published", "domination", "kernel")
DATA = small(3)
X, Y, QID = np.round(DATA.X * 8) / 8, DATA.y, DATA.qid  # exact in float32 too
DATA = linrank.Dataset.of(X, Y, qid=QID)
# Tolerances are tight, steps are few.
pytestmark = pytest.mark.filterwarnings("ignore::linrank.ConvergenceWarning")


def estimator_of(method: Any, face: type = LinearRanker) -> type[MethodRanker]:
    """The estimator of a method, from nothing but its parameters."""
    name = f"{method.name.capitalize()}Ranker"
    return type(name, (MethodRanker, face, method.parameters), {"method": method})


def searcher_of(method: Any) -> type[SearchRanker]:
    """The estimator that searches the grid of a method."""
    name = f"{estimator_of(method).__name__}CV"
    return type(name, (SearchRanker, LinearRanker, method.search), {"method": method})


def made(name: str, **changed: Any) -> MethodRanker:
    face = {"face": KernelRanker} if name == "kernel" else {}
    return estimator_of(METHODS[name], **face)(**{**QUICK[name], **changed})


def fitted(name: str, X: Any, y: Any = Y, qid: Any = QID, n_jobs: int = 1, **weights: Any) -> Any:
    return made(name, n_jobs=n_jobs).fit(X, y, qid=qid, **weights)


def test_an_unknown_method_is_told_with_the_nearest_one():
    with pytest.raises(ValueError, match=r"'rank-svm'.*did you mean 'ranksvm'"):
        method_named("rank-svm")


@pytest.mark.parametrize("name", OWN)
def test_parameters_are_those_of_the_estimator(name):
    defaults, named = defaults_of(METHODS[name].parameters), NAMED[name]
    assert named.method is METHODS[name]
    assert named().get_params() == estimator_of(METHODS[name])().get_params() == defaults
    assert inspect.signature(named) == inspect.signature(METHODS[name].parameters)


@pytest.mark.parametrize("name", OWN)
def test_parameters_have_a_line_of_help_and_a_default_among_their_choices(name):
    defaults = defaults_of(METHODS[name].parameters)
    for parameter, option in options_of(METHODS[name].parameters).items():
        assert option.help
        assert "\n" not in option.help
        is_open = defaults[parameter] in (None, False)
        assert not option.choices or is_open or defaults[parameter] in option.choices


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("name", OWN)
def test_the_made_estimator_gives_the_bits_of_the_named_one_on_any_threads(name, storage):
    rows = STORAGES[storage](X)
    named = NAMED[name](**QUICK[name], n_jobs=1).fit(rows, Y, qid=QID)
    one, three = (fitted(name, rows, n_jobs=n) for n in (1, 3))
    np.testing.assert_array_equal(one.predict(rows, qid=QID), named.predict(rows, qid=QID))
    assert vars(one).keys() == vars(named).keys()
    assert one.score(rows, Y, qid=QID) > 0.6  # better than chance
    np.testing.assert_array_equal(one.model_.coef, three.model_.coef)
    np.testing.assert_array_equal(one.objective_, three.objective_)  # nan is nan


def with_query_features() -> np.ndarray:
    """With columns that are the same on all rows of a query: one of them large, one everywhere."""
    idf = np.random.default_rng(11).gamma(2.0, size=(int(QID.max()) + 1, 2))[QID] * [1.0, 1e3]
    return np.column_stack([X, idf, np.full(len(X), 0.1)])


WIDE = with_query_features()


@pytest.mark.parametrize("scale", ["none", "standard"])
@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("name", [name for name in OWN if name != "kernel"])
def test_what_no_pair_sees_has_no_weight(name, storage, scale):
    average = {"average": True} if name == "sgd" else {}  # lazily for sparse rows: it rounds
    for order in (slice(None), np.random.default_rng(2).permutation(len(Y))):
        ranker = made(name, n_jobs=1, scale=scale, **average)
        coef = ranker.fit(STORAGES[storage](WIDE[order]), Y[order], qid=QID[order]).coef_
        assert (coef[-3:] == 0.0).all()
        assert (coef[:-3] != 0.0).any()
        assert ranker.model_.n_nonzero == np.count_nonzero(coef)


def test_what_other_pairs_see_keeps_its_weight():
    a, b = (int(np.argmax(q == QID)) for q in np.unique(QID)[:2])
    ranker = linrank.RankSVM().fit_pairs(WIDE, [[a, b]], qid=QID, across_queries=True)
    pooled = linrank.DominationRanker("l2", pooled=True).fit(WIDE, Y, qid=QID)
    began = linrank.SGDRanker(n_steps=200, random_state=0, warm_start=True)
    began.fit(WIDE, Y)  # one query, in which these columns vary
    for one in (ranker, pooled, began.fit(WIDE, Y, qid=QID)):
        assert (one.coef_[-3:-1] != 0.0).all()
    bounded = linrank.RankSVM(coef_bounds={WIDE.shape[1] - 3: (0.5, None)}).fit(WIDE, Y, qid=QID)
    assert bounded.coef_[-3:].tolist() == [0.5, 0.0, 0.0]


@pytest.mark.parametrize("place", ["memory", "store"])
@pytest.mark.parametrize("early", [False, True])
def test_the_objective_is_that_of_the_weights_after_a_warm_start(early, place, tmp_path):
    ranker = linrank.RankSVM(**PAPERS, warm_start=True, max_iter=1, early_stopping=early)
    valid = {"X_val": WIDE, "y_val": WIDE @ np.ones(WIDE.shape[1]), "qid_val": QID} if early else {}
    ranker.scoring = "pairwise_accuracy"
    ranker.fit(WIDE, Y, qid=0 * QID, **valid)  # one query, in which these columns vary
    assert (ranker.coef_[-3:-1] != 0.0).any()
    if place == "store":
        store = linrank.Store.write(tmp_path / "store", WIDE, Y, qid=QID, chunk_bytes=4000)
        ranker.set_params(memory_limit="64GB").fit(store, **valid)
    else:
        ranker.fit(WIDE, Y, qid=QID, **valid)
    assert (ranker.coef_[-3:] == 0.0).all()
    pairs = (QID[:, None] == QID) & (Y[:, None] > Y)
    slack = np.maximum(0.0, 1.0 - np.subtract.outer(*2 * (WIDE @ ranker.coef_,)))[pairs]
    objective = 0.5 * ranker.coef_ @ ranker.coef_ + slack @ slack
    np.testing.assert_allclose(ranker.objective_, objective, rtol=1e-12)


@pytest.mark.parametrize("path", [linrank.ranksvm_path, linrank.domination_path])
def test_on_a_path_what_no_pair_sees_has_no_weight(path):
    options = {"penalty": "l2"} if path is linrank.domination_path else {}
    coefs = path(WIDE, Y, QID, **options).coefs
    assert (coefs[:, -3:] == 0.0).all()
    assert (coefs[-1, :-3] != 0.0).all()


@pytest.mark.parametrize("curves", ["quantile", "spline", "step"])
def test_a_curve_that_no_pair_sees_is_flat(curves):
    model = linrank.RankSVM(0.1, curves=curves).fit(WIDE, Y, qid=QID).model_
    assert model.is_used.tolist() == [True] * X.shape[1] + [False] * 3


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("name", REPEATING)
def test_a_row_of_weight_2_is_the_row_twice(name, storage):
    weight = np.random.default_rng(5).integers(1, 3, len(Y))
    twice = np.repeat(np.arange(len(Y)), weight)
    a = fitted(name, STORAGES[storage](X), sample_weight=weight)
    b = fitted(name, STORAGES[storage](X[twice]), Y[twice], QID[twice])
    scores = a.predict(X)
    np.testing.assert_allclose(b.predict(X), scores, rtol=0, atol=1e-4 * np.abs(scores).max())
    assert np.abs(scores - fitted(name, X).predict(X)).max() > 1e-3 * np.abs(scores).max()


@pytest.mark.parametrize("name", OWN)
def test_a_training_is_described_by_plain_values(name):
    p = METHODS[name].parameters(**QUICK[name])
    trained = METHODS[name].train(Task(DATA, p))
    told = METHODS[name].describe(trained, p)
    assert json.loads(json.dumps(told.facts, allow_nan=False)) == told.facts
    assert told.lines[0][0] == "trained"
    assert all(label and sentence and "\n" not in sentence for label, sentence in told.lines)
    if "converged" in told.facts:
        assert told.facts["converged"] == trained.is_done == ("converged" in dict(told.lines))
    assert trained.is_done or trained.doubt


@pytest.mark.parametrize("name", OWN)
def test_a_model_knows_how_it_was_trained(name, tmp_path):
    ranker = fitted(name, X)
    ranker.save(tmp_path / "model.json")
    fitted(name, X).save(tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == (tmp_path / "model.json").read_bytes()
    known = linrank.load_model(tmp_path / "model.json").training
    assert known.get("method", "") in ("", name)
    given = {{"random_state": "seed"}.get(key, key): value for key, value in QUICK[name].items()}
    made_of = {"n_rows": len(Y), "n_queries": 12, "n_pairs": DATA.queries.n_pairs, **given}
    assert {key: known[key] for key in made_of} == made_of
    told = ("objective", "gap", "lower_bound", "hinge_objective", "n_iter", "converged", "stopped")
    for key in told:
        if known.get(key) is not None:
            attribute = {"gap": "duality_gap_"}.get(key, f"{key}_")
            assert known[key] == getattr(ranker, attribute, known[key])
    for key in {"method", "alpha", "C"} & known.keys():
        assert known[key] is None or f"{key}={known[key]!r}" in repr(ranker.model_)


@pytest.mark.parametrize("name", OWN)
def test_what_did_not_converge_is_doubted(name):
    few = {"n_steps": 100, "tol": 1e-9, "record": "sampled"} if name == "sgd" else {"max_iter": 1}
    given = {**QUICK[name], **few}
    with pytest.warns(ConvergenceWarning, match=rf"^{NAMED[name].__name__} did not ") as said:
        NAMED[name](**given).fit(X, Y, qid=QID)
    assert said[0].filename == __file__
    p = METHODS[name].parameters(**given)
    trained = METHODS[name].train(Task(DATA, p))
    assert not trained.is_done
    assert "converged" not in dict(METHODS[name].describe(trained, p).lines)


@pytest.mark.filterwarnings("ignore:(the best|every)", "ignore:.* models on the folds")
@pytest.mark.parametrize("kind", [estimator_of, searcher_of])
@pytest.mark.parametrize("name", [name for name in OWN if name != "kernel"])
def test_missing_values_are_filled_in_or_refused(name, kind):
    method, holes = METHODS[name], np.where(np.arange(X.size).reshape(X.shape) % 7, X, np.nan)
    holes[:, -1] = X[:, -1]
    declared_by = method.parameters if kind is estimator_of else method.search
    if declared_by is None:
        pytest.skip("it has no grid")
    own = {k: v for k, v in QUICK[name].items() if k in options_of(declared_by)}
    filling, refusing = (kind(method)(**own, **given) for given in ({"missing": "indicator"}, {}))
    assert [r.__sklearn_tags__().input_tags.allow_nan for r in (filling, refusing)] == [1, 0]
    filling.fit(holes, Y, qid=QID)
    assert filling.n_features_in_ == X.shape[1] == filling.coef_.size
    assert np.isfinite(filling.predict(holes, qid=QID)).all()
    assert filling.model_.missing.weights[-1] == 0.0  # never missing: no indicator
    told = r"NaN at row \d+, column \d+.*'zero', 'mean'"
    with pytest.raises(ValueError, match=told):
        refusing.fit(holes, Y, qid=QID)
    refusing.fit(X, Y, qid=QID)
    for use in (refusing.predict, refusing.model_.explain):
        with pytest.raises(ValueError, match=told):
            use(holes)


# Values that are none of a parameter, by its kind; each is told with the name of the parameter.
ODD = (float("nan"), "some", True)
WRONG = {
    **dict.fromkeys(("positive", "weight", "width"), (0.0, -1.0, float("inf"), *ODD)),
    **dict.fromkeys(("count", "steps"), (0, -1, 1.5, *ODD)),
    **dict.fromkeys(("choice", "weighting", "average"), ("nonsense", 1.5)),
    "grid": ("some",),
    "nonnegative": (-1.0, float("inf"), *ODD),
    "finite": (float("inf"), *ODD),
    "share": (0.0, 1.5, *ODD),
    "size_in_bytes": (0, -1, float("inf"), *ODD),
}
# What must be said for a parameter to be looked at.
NEEDED = {"n_knots": {"curves": "spline"}, "n_components": {"approximation": "nystroem"}}


@pytest.mark.parametrize("name", OWN)
def test_what_a_parameter_cannot_be_is_told(name):
    method = METHODS[name]
    for kind, declared_by in ((estimator_of, method.parameters), (searcher_of, method.search)):
        known = {} if declared_by is None else options_of(declared_by)
        for parameter, option in known.items():
            own = {**QUICK[name], **NEEDED.get(parameter, {})}
            for value in WRONG.get(option.kind, ()):
                ranker = kind(method)(**{k: v for k, v in own.items() if k in known})
                with pytest.raises((TypeError, ValueError)) as told:
                    ranker.set_params(**{parameter: value}).fit(X, Y, qid=QID)
                assert parameter in str(told.value)
                assert str(value) in str(told.value)


# ---- the recipe of a method ----------------------------------------------------------------------


@dataclass(eq=False, repr=False)
class CentroidParameters(declared.Filled):
    """Parameters of the toy method."""

    shrinkage: float = declared.declare(0.5, "towards 0", "share", metavar="S")


def train_centroid(task: Task) -> Trained:
    """The mean of the rows of the higher labels, less that of the others."""
    data, p = task.data, task.parameters
    is_high = data.labels > data.labels.mean()
    mean = np.where(is_high, 1 / is_high.sum(), -1 / (~is_high).sum())
    coef = (1 - p.shrinkage) * (data.rows.to_user().T @ mean)
    model = LinearModel(coef, training={"n_queries": data.queries.n_queries})
    return Trained(model, None, {"shrinkage": p.shrinkage})


def describe_centroid(trained: Trained, parameters: Any) -> Description:
    """In a line."""
    return Description((("trained", "centroids"),), {"shrinkage": parameters.shrinkage})


def register_centroid(parameters: type = CentroidParameters) -> Method:
    """Put it into the registry."""
    grid, functions = {"shrinkage": (0.9, 0.5, 0.1)}, (train_centroid, describe_centroid)
    return register(
        Method("centroid", "towards the better rows", parameters, *functions, grid=grid)
    )


@dataclass(eq=False, repr=False)
class More(CentroidParameters):
    """One parameter more."""

    power: int = declared.declare(2, "a parameter more", "count")


@pytest.fixture
def centroid():
    yield register_centroid()
    del METHODS["centroid"]


@pytest.mark.parametrize("storage", STORAGES)
def test_a_toy_method_has_an_estimator(centroid, storage, tmp_path):
    rows = STORAGES[storage](X)
    toy = estimator_of(method_named("centroid"))
    assert (toy.__name__, toy().get_params()) == ("CentroidRanker", defaults_of(CentroidParameters))
    ranker = clone(toy(shrinkage=0.25)).fit(rows, Y, qid=QID)
    is_high = Y.mean() < Y
    expected = 0.75 * (X[is_high].mean(axis=0) - X[~is_high].mean(axis=0))
    np.testing.assert_allclose(ranker.coef_, expected, rtol=1e-5)
    assert (ranker.shrinkage_, ranker.n_features_in_, ranker.needs_qid_) == (0.25, X.shape[1], True)
    assert ranker.score(rows, Y, qid=QID) > 0.6
    ranker.save(tmp_path / "model.json")
    found = linrank.load_model(tmp_path / "model.json")
    np.testing.assert_array_equal(found.predict(rows), ranker.predict(rows))
    with pytest.raises(TypeError, match="CentroidRanker takes no validation data"):
        ranker.fit(rows, Y, qid=QID, X_val=rows, y_val=Y, qid_val=QID)


@pytest.mark.filterwarnings("ignore:every shrinkage")  # of one direction, all rank alike
def test_a_toy_method_has_a_search(centroid):
    search = searcher_of(centroid)
    assert search.__name__ == "CentroidRankerCV"
    ranker = clone(search(shrinkages=(0.75, 0.25), cv=3)).fit(X, Y, qid=QID)
    assert ranker.scores_.shape == (3, 2)
    assert ranker.best_params_ == {"shrinkage": 0.75}
    by_hand = estimator_of(centroid)(shrinkage=0.75).fit(X, Y, qid=QID)
    np.testing.assert_array_equal(ranker.coef_, by_hand.coef_)
    accuracy = []
    for train, test in linrank.QueryKFold(3).split(X, Y, QID):
        by_hand.fit(X[train], Y[train], qid=QID[train])
        accuracy.append(by_hand.score(X[test], Y[test], qid=QID[test]))
    found = search(cv=3, scoring="pairwise_accuracy").fit(X, Y, qid=QID).scores_[:, 0]
    np.testing.assert_allclose(found, accuracy)


def test_a_toy_method_has_commands(centroid, tmp_path, cli):
    file = write_svmlight(tmp_path / "data.txt", DATA)
    model, tuned = tmp_path / "model.json", tmp_path / "tuned.json"
    told = cli(f"train {file} {model} --method centroid --shrinkage 0.25 --json").json
    assert told["training"] == {"method": "centroid", "shrinkage": 0.25}
    grid = "--method centroid --shrinkages 0.75,0.25 --folds 3"
    found = cli(f"tune {file} -o {tuned} {grid} --json").json
    assert (found["shrinkage"], found["grid"]["shrinkages"]) == (0.75, [0.75, 0.25])
    coefs = [linrank.load_model(path).coef for path in (model, tuned)]
    np.testing.assert_allclose(coefs[0] * 0.25, coefs[1] * 0.75)


def test_a_toy_method_takes_part_in_a_comparison(centroid):
    """Its process imports this module by name; nobody registers the method there."""
    data = linrank.make_ranking(n_queries=60, n_features=4, noise=0.3, random_state=0)
    parts = [data.select(data.qid % 3 == k) for k in range(3)]
    contest = linrank.compare_methods(*parts, methods=["centroid"], baseline="centroid")
    (outcome,) = contest["centroid"].outcomes
    assert (outcome.status, outcome.n_candidates) == ("done", 4)
    assert outcome.parameters == {}  # all give the same order: the defaults come first
    assert contest["centroid"].evaluation["pairwise_accuracy"] > 0.6
    assert "centroid" in [one.name for one in chosen_methods("all")]


def test_a_parameter_added_to_a_method_appears_in_all_its_faces(centroid, cli):
    more = register_centroid(More)
    one, many = estimator_of(more), searcher_of(more)
    assert one().get_params() == {**estimator_of(centroid)().get_params(), "power": 2}
    assert many().get_params() == {**searcher_of(centroid)().get_params(), "power": 2}
    assert one(power=3).power == many(power=3).power == 3
    assert options_of(METHODS["centroid"].parameters)["power"].kind == "count"
    for command in ("train", "tune"):
        assert "--power" in cli(f"{command} --method centroid --help").out
    (entry,) = (one for one in own_contestants() if one.name == "centroid")
    data = linrank.make_ranking(n_queries=9, n_features=2, random_state=0)
    trial = Trial(data, data, "map", fair_convention("linrank"))
    changed = replace(entry, settings={**entry.settings, "power": 3})
    assert len([changed.model(trial, point) for point in changed.points(trial)]) == 4
    with pytest.raises(TypeError, match="strength"):
        replace(entry, settings={**entry.settings, "strength": 3}).model(trial, {})


def test_the_recipe_of_a_method_is_short():
    parts = (CentroidParameters, train_centroid, describe_centroid, register_centroid)
    assert sum(len(inspect.getsource(part).strip().splitlines()) for part in parts) < 30
