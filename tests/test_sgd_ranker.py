"""SGDRanker: the laws of its objective, what a fit records, and what it refuses."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.exceptions import NotFittedError

from linrank import ConvergenceWarning, NoPairsError, make_ranking
from linrank.data.scaling import Scaling
from papers import RankSVM, SGDRanker

STEPS = 20_000


@pytest.fixture(scope="module")
def data():
    """Features of about unit spread, so that a few thousand steps go a long way."""
    data = make_ranking(n_queries=30, n_features=6, n_levels=4, dtype="float64", random_state=3)
    return Scaling.fit("standard", data.rows).applied(data)


def fit(data, **params):
    params = {"n_steps": STEPS, "random_state": 0, "alpha": 1e-2, **params}
    return SGDRanker(**params).fit(data.X, data.y, qid=data.qid)


def pairs_of(X, y, qid):
    """Differences of all pairs: the definition."""
    i, j = np.nonzero((qid[:, None] == qid) & (y[:, None] > y))
    return X[i] - X[j]


def objective(coef, data, alpha, loss=lambda z: np.maximum(0.0, 1.0 - z)):
    D = pairs_of(np.asarray(data.X), data.y, data.qid)
    return 0.5 * alpha * coef @ coef + loss(D @ coef).mean()


# ---- the objective ------------------------------------------------------------------------------


# ---- what a fit records -------------------------------------------------------------------------


def test_the_model_knows_how_it_was_made(data):
    ranker = fit(data, record="exact", scale="standard")
    known = {
        **{"algorithm": "pegasos", "alpha": 1e-2, "n_steps": STEPS, "sampling": "pairs"},
        **{"average": None, "seed": 0, "objective": ranker.objective_},
        **{"n_pairs": ranker.n_pairs_, "n_queries": 30},
    }
    assert {key: ranker.model_.training[key] for key in known} == known
    assert "pegasos" in repr(ranker.model_)
    assert fit(data).model_.training["objective"] is None


@pytest.mark.parametrize("scale", ["standard", "minmax", "query"])
@pytest.mark.parametrize("store", [np.asarray, sparse.csr_array])
def test_scaling_equals_scaled_rows(data, scale, store):
    X = np.asarray(data.X) * np.logspace(-3, 3, 6)
    params = {"n_steps": 2000, "alpha": 1e-2, "random_state": 0}
    ranker = SGDRanker(scale=scale, **params).fit(store(X), data.y, qid=data.qid)
    scaling = Scaling.fit(scale, type(data.rows)(X))
    by_hand = scaling.transform(type(data.rows)(X), data.queries).values
    by_hand = by_hand * (1.0 if scaling.factors is None else scaling.factors)
    direct = SGDRanker(**params).fit(by_hand, data.y, qid=data.qid)
    assert_allclose(scaling.unfold(ranker.coef_), direct.coef_, rtol=1e-6, atol=1e-9)
    assert_allclose(ranker.predict(X, qid=data.qid), direct.predict(by_hand), rtol=1e-6, atol=1e-9)


def test_a_copy_that_does_not_fit_the_memory_is_refused(data, monkeypatch):
    monkeypatch.setattr("linrank.system.resources.available", lambda: 100)
    with pytest.raises(MemoryError, match=r"rows scaled by scale='standard' .* scale='none'"):
        fit(data, scale="standard")


def test_tol_stops_early_and_says_if_it_did_not(data):
    ranker = fit(data, tol=0.05, n_steps=10_000_000, average=True)
    assert ranker.stopped_ == "tolerance"
    assert ranker.n_steps_ < 10_000_000
    with pytest.warns(ConvergenceWarning, match=r"tol=1e-12: took all 300 steps; raise n_steps"):
        fit(data, tol=1e-12, n_steps=300)


# ---- streams ------------------------------------------------------------------------------------


def stream(data, order, n_parts=20, **params):
    params = {"alpha": 1e-2, "random_state": 0, "average": True, **params}
    ranker = SGDRanker(**params)
    for part in np.array_split(order, n_parts):
        ranker.partial_fit(data.X[part], data.y[part], qid=data.qid[part])
    return ranker


def test_partial_fit_learns_what_fit_learns(data):
    """Rows of queries in pieces and in any order, all of them remembered."""
    order = np.random.default_rng(0).permutation(data.n_rows)
    ranker = stream(data, order, steps_per_row=200.0)
    C = 1.0 / (1e-2 * data.queries.n_pairs)
    best = RankSVM(C, loss="hinge").fit(data.X, data.y, qid=data.qid).objective_ * 1e-2
    assert objective(ranker.coef_, data, 1e-2) < 1.1 * best
    assert ranker.n_pairs_ == data.queries.n_pairs
    assert ranker.n_queries_ == 30
    assert ranker.n_steps_ <= 200 * data.n_rows
    assert ranker.stopped_ == "stream"
    assert ranker.needs_qid_
    assert_allclose(ranker.predict(data.X), data.X @ ranker.coef_, rtol=1e-9)
    assert 0 <= ranker.score(data.X, data.y, qid=data.qid) <= 1


def test_partial_fit_goes_on_from_fit_and_fit_begins_anew(data):
    ranker = fit(data, n_steps=50_000)
    first = ranker.coef_
    ranker.partial_fit(data.X[:20], data.y[:20], qid=data.qid[:20])
    assert 50_000 < ranker.n_steps_ <= 50_080
    assert 0 < np.abs(ranker.coef_ - first).max() < 0.1 * np.abs(first).max()
    assert_array_equal(ranker.fit(data.X, data.y, qid=data.qid).coef_, first)
    assert ranker.n_steps_ == 50_000


@pytest.mark.parametrize("fault", [KeyboardInterrupt, ValueError])
def test_a_first_batch_that_is_not_learnt_leaves_no_trace(data, monkeypatch, fault):
    def fail(*_):
        raise fault

    ranker = SGDRanker(random_state=0, buffer_mb=np.int64(3))
    with monkeypatch.context() as patch:
        patch.setattr("linrank.stochastic.streaming.StreamTrainer.feed", fail)
        with pytest.raises(fault):
            ranker.partial_fit(data.X[:, :2], data.y, qid=data.qid)
    ranker.partial_fit(data.X, data.y, qid=data.qid)
    assert ranker.n_features_in_ == data.n_features


def test_partial_fit_does_not_go_on_from_rows_scaled_by_query(data):
    ranker = fit(data, scale="query").set_params(scale="none")
    with pytest.raises(ValueError, match="cannot go on from a fit with scale='query'"):
        ranker.partial_fit(data.X, data.y, qid=data.qid)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"C": 1.0, "alpha": None}, r"partial_fit cannot use C=1.0: .* set alpha"),
        ({"scale": "standard"}, "partial_fit cannot use scale='standard'"),
        ({"algorithm": "hybrid"}, "partial_fit cannot use algorithm='hybrid'"),
        ({"alpha": -1.0}, "alpha must be a finite number > 0, got -1.0"),
        ({"sampling": "all"}, "sampling"),
        ({"buffer_mb": np.inf}, "buffer_mb must be a finite number > 0, got inf"),
        ({"steps_per_row": "4"}, "steps_per_row must be a finite number > 0, got '4'"),
    ],
)
def test_what_a_stream_cannot_do_is_told(data, params, message):
    with pytest.raises(ValueError, match=message):
        SGDRanker(**params).partial_fit(data.X, data.y, qid=data.qid)


def test_what_changes_within_a_stream_is_told(data):
    ranker = SGDRanker(alpha=0.1).partial_fit(data.X, data.y, qid=data.qid)
    with pytest.raises(ValueError, match="5 features"):
        ranker.partial_fit(data.X[:, :5], data.y, qid=data.qid)
    with pytest.raises(ValueError, match="rows came with qid before and now without"):
        ranker.partial_fit(data.X, data.y)
    for name, value in {"alpha": 0.2, "steps_per_row": 8.0, "buffer_mb": 1}.items():
        before = ranker.get_params()[name]
        ranker.set_params(**{name: value})
        told = rf"{name} was {before} when the stream began and is {value} now"
        with pytest.raises(ValueError, match=told):
            ranker.partial_fit(data.X, data.y, qid=data.qid)
        ranker.set_params(**{name: before})


def test_a_batch_without_names_does_not_take_them_from_the_model(data):
    names = [f"f{j}" for j in range(data.X.shape[1])]
    frame = pytest.importorskip("pandas").DataFrame(data.X, columns=names)
    ranker = SGDRanker(random_state=0).partial_fit(frame, data.y, qid=data.qid)
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        ranker.partial_fit(data.X, data.y, qid=data.qid)
    assert list(ranker.model_.feature_names) == names


def test_before_the_first_pair_there_is_nothing_to_predict_with(data, tmp_path):
    ranker = SGDRanker().partial_fit(data.X[:3], np.zeros(3), qid=[1, 1, 1])
    with pytest.raises(NotFittedError):
        ranker.save(tmp_path / "m.json")
    with pytest.raises(NoPairsError, match=r"partial_fit so far: .* all 3 labels are 0"):
        ranker.predict(data.X)
    ranker.partial_fit(data.X[3:5], [1, 0], qid=[1, 1])
    assert ranker.predict(data.X).any()


def test_qid_reaches_partial_fit_by_routing():
    assert SGDRanker().get_metadata_routing().partial_fit.requests["qid"] is True


# ---- errors -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"alpha": "small"}, "alpha must be a finite number > 0, got 'small'"),
        ({"C": 1.0}, "give alpha or C, not both: got alpha=0.01 and C=1.0"),
        ({"average": "median"}, "average must be False, True or one of .*, got 'median'"),
    ],
)
def test_wrong_parameters_are_told(data, params, message):
    with pytest.raises(ValueError, match=message):
        fit(data, **params)
