"""Laws of all rankers: what a fit records, models, validation data, callbacks, refusals."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import papers
from linrank import NoPairsError, evaluate, load_model, make_ranking
from linrank.data.scaling import Scaling

# Features of about unit spread, so that a few thousand steps go a long way.
WHOLE = make_ranking(
    n_queries=32, rows_per_query=(4, 9), n_features=6, n_levels=3, dtype="float64", random_state=3
)
WHOLE = Scaling.fit("standard", WHOLE.rows).applied(WHOLE)
DATA, HELD_OUT = (WHOLE.select(part) for part in (WHOLE.qid < 20, WHOLE.qid >= 20))
RANKERS = {
    "RankSVM": papers.RankSVM(0.5, tol=1e-10),
    "TRON": papers.RankSVM(0.5, tol=1e-10, solver="tron"),
    "SGDRanker": papers.SGDRanker(n_steps=20_000, alpha=1e-2, random_state=0),
    "DominationRanker": papers.DominationRanker("l1", 0.1, tol=1e-9),
    "FactorizedRankSVM": papers.FactorizedRankSVM(3, 0.1, random_state=0),
    "RegularizedRankSVM": papers.RegularizedRankSVM(0.5, 10.0, 0.1, tol=1e-7),
    "KernelRankSVM": papers.KernelRankSVM(gamma=0.3, tol=1e-10, random_state=0),
}
# Fits are ended by callbacks, or their tolerance is too small.
pytestmark = pytest.mark.filterwarnings("ignore::linrank.ConvergenceWarning")
LINEAR = [name for name in RANKERS if name != "KernelRankSVM"]
every_ranker = pytest.mark.parametrize("name", RANKERS)
# A kernel model takes no validation data.
every_validated = pytest.mark.parametrize("name", LINEAR)
VALID = {"X_val": HELD_OUT.X, "y_val": HELD_OUT.y, "qid_val": HELD_OUT.qid}


def fit(name, X=DATA.X, y=DATA.y, given=None, **params):
    ranker = clone(RANKERS[name]).set_params(**params)
    return ranker.fit(X, y, **{"qid": DATA.qid, **(given or {})})


def on_held_out(ranker, metric):
    scores = ranker.predict(HELD_OUT.X, qid=HELD_OUT.qid)
    return evaluate(HELD_OUT.y, scores, qid=HELD_OUT.qid, metrics=metric)[metric]


# ---- what a fit records, and the model ----------------------------------------------------------


@every_ranker
def test_what_a_fit_records(name):
    ranker = fit(name, **({"record": "exact"} if name == "SGDRanker" else {}))
    history = ranker.history_
    assert len({len(values) for values in history.values()}) == 1
    assert ranker.objective_ == pytest.approx(history["objective"][-1], rel=1e-6)
    if name != "SGDRanker":
        assert len(history["objective"]) == ranker.n_iter_ + 1
    assert (ranker.n_queries_, ranker.n_pairs_) == (20, DATA.queries.n_pairs)
    assert ranker.n_features_in_ == 6
    assert ranker.needs_qid_
    assert not hasattr(ranker, "best_iteration_")
    assert not hasattr(ranker, "feature_names_in_")


@every_ranker
def test_rows_in_any_storage_and_order_give_the_same_model(name, tmp_path):
    order = np.arange(DATA.n_rows)
    if name not in ("SGDRanker", "FactorizedRankSVM"):  # they draw rows, or a start for each
        order = np.random.default_rng(0).permutation(order)
    ids = np.array([f"q{q:02}" for q in DATA.qid])
    other = fit(name, sparse.csr_array(DATA.X[order]), DATA.y[order], {"qid": ids[order]})
    scores = fit(name).predict(DATA.X)
    assert_allclose(other.predict(DATA.X), scores, atol=1e-3 * np.abs(scores).max())
    assert_allclose(other.predict(sparse.csc_matrix(DATA.X)), other.predict(DATA.X), rtol=1e-9)
    other.save(tmp_path / "m.json")  # a kernel model has rows, sparse ones here
    assert_array_equal(load_model(tmp_path / "m.json").predict(DATA.X), other.predict(DATA.X))


@every_ranker
def test_group_stands_for_qid(name):
    by_group = fit(name, given={"qid": None, "group": np.bincount(DATA.qid)})
    assert_array_equal(by_group.model_.coef, fit(name).model_.coef)


@every_ranker
def test_scores_and_ranks(name):
    ranker = fit(name)
    scores, ranks = ranker.predict(DATA.X), ranker.rank(DATA.X, qid=DATA.qid)
    above = (DATA.qid[:, None] == DATA.qid) & (DATA.y[:, None] > DATA.y)
    right = (scores[:, None] > scores)[above].mean()
    assert_allclose(ranker.score(DATA.X, DATA.y, qid=DATA.qid), right)
    for q in np.unique(DATA.qid):
        mine = DATA.qid == q
        best_first = np.argsort(ranks[mine])
        assert_array_equal(ranks[mine][best_first], np.arange(1, mine.sum() + 1))
        assert (np.diff(scores[mine][best_first]) <= 0).all()
    with pytest.raises(ValueError, match=r"score\(\) needs qid"):
        ranker.score(DATA.X, DATA.y)
    with pytest.raises(ValueError, match=r"rank\(\) needs qid"):
        ranker.rank(DATA.X)


@pytest.mark.parametrize("scale", ["standard", "minmax", "query"])
@every_ranker
def test_rows_are_scaled_as_by_hand(name, scale):
    scaling, ranker = Scaling.fit(scale, DATA.rows), fit(name, scale=scale)
    by_hand = fit(name, scaling.applied(DATA).X).predict(scaling.applied(HELD_OUT).X)
    found = ranker.predict(HELD_OUT.X, qid=HELD_OUT.qid)
    assert_allclose(found, by_hand, atol=1e-5 * np.abs(by_hand).max())
    if scale == "query":
        with pytest.raises(ValueError, match="scoring needs qid"):
            ranker.predict(HELD_OUT.X)


@pytest.mark.parametrize("scale", ["none", "standard"])
@every_ranker
def test_saved_loaded_and_pickled_models_score_alike(name, scale, tmp_path):
    ranker = fit(name, scale=scale)
    ranker.save(tmp_path / "m.json")
    model, scores = load_model(tmp_path / "m.json"), ranker.predict(DATA.X)
    assert_array_equal(model.predict(DATA.X), scores)
    np.testing.assert_equal(dict(model.training), dict(ranker.model_.training))
    assert_array_equal(pickle.loads(pickle.dumps(ranker)).predict(DATA.X), scores)
    if name not in LINEAR:
        return
    assert_allclose(scores, DATA.X @ ranker.coef_, rtol=1e-9, atol=1e-12)
    for explain in (ranker.explain, model.explain):
        assert_allclose(explain(DATA.X).sum(axis=1), scores, rtol=1e-9, atol=1e-12)
        why = explain(DATA.X, pair=(4, 1))
        assert_allclose(why, ranker.coef_ * (DATA.X[4] - DATA.X[1]), atol=1e-12)


@every_ranker
def test_the_same_bits_by_a_clone(name):
    ranker = fit(name)
    copy = clone(ranker)
    assert copy.get_params() == ranker.get_params()
    for use in (copy.predict, copy.decision_function, copy.rank, copy.save):
        with pytest.raises(NotFittedError):
            use(DATA.X)
    with pytest.raises(NotFittedError):
        copy.score(DATA.X, DATA.y)
    copy.fit(DATA.X, DATA.y, qid=DATA.qid)
    assert_array_equal(copy.model_.coef, ranker.model_.coef)


@pytest.mark.parametrize("name", [n for n in LINEAR if hasattr(RANKERS[n], "warm_start")])
def test_a_warm_start_begins_where_the_last_fit_ended(name):
    ranker = fit(name, warm_start=True, scale="standard", **VARIED.get(name, {}))
    first = ranker.objective_
    if name == "SGDRanker":
        ranker.set_params(n_steps=100, random_state=9)
    ranker.fit(DATA.X, DATA.y, qid=DATA.qid)
    began = ranker.history_["objective"][0]
    cold = fit(name, scale="standard", **VARIED.get(name, {})).history_["objective"][0]
    assert abs(began - first) < 0.2 * abs(cold - first)
    with pytest.raises(ValueError, match="3 features and the previous fit had 6"):
        ranker.fit(DATA.X[:, :3], DATA.y, qid=DATA.qid)


VARIED = {"SGDRanker": {"record": "exact", "n_steps": 100_000}}


# ---- validation data ----------------------------------------------------------------------------


@pytest.mark.parametrize("scale", ["none", "query"])
@every_validated
def test_the_validation_measure_is_recorded_and_changes_nothing(name, scale):
    if scale == "query" and name == "TRON":
        pytest.skip("as by the other solver")
    ranker = fit(name, given=VALID, scale=scale, scoring="map")
    values = ranker.history_["val_map"]
    assert {len(other) for other in ranker.history_.values()} == {len(values)}
    assert_allclose(values[-1], on_held_out(ranker, "map"))
    assert ranker.best_iteration_ == int(np.argmax(values))
    assert_array_equal(fit(name, scale=scale).coef_, ranker.coef_)
    ranker.fit(DATA.X, DATA.y, qid=DATA.qid)
    assert not hasattr(ranker, "best_iteration_")


@every_validated
def test_early_stopping_keeps_the_best_iterate(name):
    seen = []
    options = {"early_stopping": True, "n_iter_no_change": 2, "scoring": "p@3", "tol": 1e-12}
    if name == "SGDRanker":
        options |= {"tol": None, "record": "exact"}
    spelled = {"eval_set": [(HELD_OUT.X, HELD_OUT.y)], "eval_qid": [HELD_OUT.qid]}
    ranker = fit(name, given=spelled, callback=lambda s: seen.append(s["w"].copy()), **options)
    values, best = ranker.history_["val_p@3"], ranker.best_iteration_
    assert best == int(np.argmax(values))
    assert len(values) <= best + 3  # the patience
    assert_array_equal(ranker.coef_, seen[best])
    assert ranker.objective_ == pytest.approx(ranker.history_["objective"][best], rel=1e-9)
    assert_allclose(on_held_out(ranker, "p@3"), max(values))
    assert_array_equal(ranker.coef_, fit(name, given=VALID, **options).coef_)


# ---- progress -----------------------------------------------------------------------------------


@every_ranker
def test_a_callback_sees_every_iterate_and_stops(name):
    seen = []
    valid = VALID if name in LINEAR else {}
    ranker = fit(name, given=valid, callback=lambda s: seen.append(dict(s)) or len(seen) == 2)
    assert len(seen) == 2
    for key in {"objective", "val_ndcg@10"} & ranker.history_.keys():
        assert [state[key] for state in seen] == ranker.history_[key]
    if name in LINEAR:  # of a kernel model, rows without a weight are left out
        assert_array_equal(seen[-1]["w"], ranker.coef_)
    assert ranker.stopped_ == "callback" if name == "SGDRanker" else not ranker.converged_


@every_ranker
def test_an_interrupt_passes_through_a_callback(name):
    def interrupt(state):
        raise KeyboardInterrupt

    ranker = clone(RANKERS[name]).set_params(callback=interrupt)
    with pytest.raises(KeyboardInterrupt):
        ranker.fit(DATA.X, DATA.y, qid=DATA.qid)
    assert not hasattr(ranker, "model_")


@every_ranker
def test_verbose_is_a_line_of_every_iterate(name, capsys):
    n_seen = []
    fit(name, callback=lambda state: n_seen.append(1) and None)
    assert capsys.readouterr() == ("", "")
    fit(name, verbose=1)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == len(n_seen)
    assert lines[0].startswith("linrank: step" if name == "SGDRanker" else "linrank: iteration 0")


# ---- refusals -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"scoring": "ndgc"}, "ndgc"),
        ({"n_iter_no_change": 0}, "n_iter_no_change must be >= 1"),
        ({"early_stopping": True}, "early_stopping=True needs validation data"),
        ({"n_jobs": 0}, "n_jobs must be >= 1"),
    ],
    ids=str,
)
@every_ranker
def test_wrong_parameters_are_told(name, params, message):
    if not params.keys() <= RANKERS[name].get_params().keys():
        pytest.skip("no parameter of it")
    with pytest.raises(ValueError, match=message):
        fit(name, **params)


@every_ranker
def test_data_without_pairs_and_without_numbers_are_told(name):
    with pytest.raises(NoPairsError, match=r"labels are constant|has two different labels"):
        fit(name, y=np.ones(DATA.n_rows))
    with pytest.raises(NoPairsError, match="check that qid is not a row id"):
        fit(name, given={"qid": np.arange(DATA.n_rows)})
    X = np.array(DATA.X)
    X[3, 2] = np.nan
    with pytest.raises(ValueError, match="row 3"):
        fit(name, X)
