"""SGDRanker and its search: what fits and streams record, equal to fits by hand, and refusals."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import NotFittedError

from linrank import ConvergenceWarning, Dataset, NoPairsError, evaluate, make_ranking
from linrank.data.rows import DenseRows
from linrank.data.scaling import Scaling
from linrank.methods import sgd as sgd_tuning
from linrank.methods.base import Task
from linrank.methods.parameters import SGDSearch
from linrank.methods.sgd import tune_sgd
from linrank.parts.parts import MemoryParts
from linrank.search.folds import deal
from linrank.search.tuning import Judging
from linrank.stochastic.descent import Learner, course_over
from linrank.stochastic.samplers import pair_sampler
from papers import RankSVM, SGDRanker, SGDRankerCV

STEPS = 20_000


# Features of about unit spread, so that a few thousand steps go a long way.
DATA = make_ranking(n_queries=30, n_features=6, n_levels=4, dtype="float64", random_state=3)
DATA = Scaling.fit("standard", DATA.rows).applied(DATA)


def fit(**params):
    params = {"n_steps": STEPS, "random_state": 0, "alpha": 1e-2, **params}
    return SGDRanker(**params).fit(DATA.X, DATA.y, qid=DATA.qid)


def objective(coef, alpha):
    """By the definition, over all pairs."""
    i, j = np.nonzero((DATA.qid[:, None] == DATA.qid) & (DATA.y[:, None] > DATA.y))
    return 0.5 * alpha * coef @ coef + np.maximum(0.0, 1.0 - (DATA.X[i] - DATA.X[j]) @ coef).mean()


# ---- what a fit records -------------------------------------------------------------------------


def test_a_copy_that_does_not_fit_the_memory_is_refused(monkeypatch):
    monkeypatch.setattr("linrank.system.resources.available", lambda: 100)
    with pytest.raises(MemoryError, match=r"rows scaled by scale='standard' .* scale='none'"):
        fit(scale="standard")


def test_tol_stops_early_and_says_if_it_did_not():
    ranker = fit(tol=0.05, n_steps=10_000_000, average=True)
    assert ranker.stopped_ == "tolerance"
    assert ranker.n_steps_ < 10_000_000
    with pytest.warns(ConvergenceWarning, match=r"tol=1e-12: took all 300 steps; raise n_steps"):
        fit(tol=1e-12, n_steps=300)


# ---- streams ------------------------------------------------------------------------------------


def stream(data, order, n_parts=20, **params):
    params = {"alpha": 1e-2, "random_state": 0, "average": True, **params}
    ranker = SGDRanker(**params)
    for part in np.array_split(order, n_parts):
        ranker.partial_fit(data.X[part], data.y[part], qid=data.qid[part])
    return ranker


def test_partial_fit_learns_what_fit_learns():
    """Rows of queries in pieces and in any order, all of them remembered."""
    order = np.random.default_rng(0).permutation(DATA.n_rows)
    ranker = stream(DATA, order, steps_per_row=200.0)
    C = 1.0 / (1e-2 * DATA.queries.n_pairs)
    best = RankSVM(C, loss="hinge").fit(DATA.X, DATA.y, qid=DATA.qid).objective_ * 1e-2
    assert objective(ranker.coef_, 1e-2) < 1.1 * best
    assert ranker.n_pairs_ == DATA.queries.n_pairs
    assert ranker.n_queries_ == 30
    assert ranker.n_steps_ <= 200 * DATA.n_rows
    assert ranker.stopped_ == "stream"
    assert ranker.needs_qid_
    assert_allclose(ranker.predict(DATA.X), DATA.X @ ranker.coef_, rtol=1e-9)
    assert 0 <= ranker.score(DATA.X, DATA.y, qid=DATA.qid) <= 1


def test_partial_fit_goes_on_from_fit_and_fit_begins_anew():
    ranker = fit(n_steps=50_000)
    first = ranker.coef_
    ranker.partial_fit(DATA.X[:20], DATA.y[:20], qid=DATA.qid[:20])
    assert 50_000 < ranker.n_steps_ <= 50_080
    assert 0 < np.abs(ranker.coef_ - first).max() < 0.1 * np.abs(first).max()
    assert_array_equal(ranker.fit(DATA.X, DATA.y, qid=DATA.qid).coef_, first)
    assert ranker.n_steps_ == 50_000


@pytest.mark.parametrize("fault", [KeyboardInterrupt, ValueError])
def test_a_first_batch_that_is_not_learnt_leaves_no_trace(monkeypatch, fault):
    def fail(*_):
        raise fault

    ranker = SGDRanker(random_state=0, buffer_mb=np.int64(3))
    with monkeypatch.context() as patch:
        patch.setattr("linrank.stochastic.streaming.StreamTrainer.feed", fail)
        with pytest.raises(fault):
            ranker.partial_fit(DATA.X[:, :2], DATA.y, qid=DATA.qid)
    ranker.partial_fit(DATA.X, DATA.y, qid=DATA.qid)
    assert ranker.n_features_in_ == DATA.n_features


def test_partial_fit_does_not_go_on_from_rows_scaled_by_query():
    ranker = fit(scale="query").set_params(scale="none")
    with pytest.raises(ValueError, match="cannot go on from a fit with scale='query'"):
        ranker.partial_fit(DATA.X, DATA.y, qid=DATA.qid)


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
def test_what_a_stream_cannot_do_is_told(params, message):
    with pytest.raises(ValueError, match=message):
        SGDRanker(**params).partial_fit(DATA.X, DATA.y, qid=DATA.qid)


def test_what_changes_within_a_stream_is_told():
    ranker = SGDRanker(alpha=0.1).partial_fit(DATA.X, DATA.y, qid=DATA.qid)
    with pytest.raises(ValueError, match="5 features"):
        ranker.partial_fit(DATA.X[:, :5], DATA.y, qid=DATA.qid)
    with pytest.raises(ValueError, match="rows came with qid before and now without"):
        ranker.partial_fit(DATA.X, DATA.y)
    told = "alpha was 0.1 when the stream began and is 0.2 now"
    with pytest.raises(ValueError, match=told):
        ranker.set_params(alpha=0.2).partial_fit(DATA.X, DATA.y, qid=DATA.qid)


def test_a_batch_without_names_does_not_take_them_from_the_model():
    names = [f"f{j}" for j in range(DATA.X.shape[1])]
    frame = pytest.importorskip("pandas").DataFrame(DATA.X, columns=names)
    ranker = SGDRanker(random_state=0).partial_fit(frame, DATA.y, qid=DATA.qid)
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        ranker.partial_fit(DATA.X, DATA.y, qid=DATA.qid)
    assert list(ranker.model_.feature_names) == names


def test_before_the_first_pair_there_is_nothing_to_predict_with(tmp_path):
    ranker = SGDRanker().partial_fit(DATA.X[:3], np.zeros(3), qid=[1, 1, 1])
    with pytest.raises(NotFittedError):
        ranker.save(tmp_path / "m.json")
    with pytest.raises(NoPairsError, match=r"partial_fit so far: .* all 3 labels are 0"):
        ranker.predict(DATA.X)
    ranker.partial_fit(DATA.X[3:5], [1, 0], qid=[1, 1])
    assert ranker.predict(DATA.X).any()


def test_qid_reaches_partial_fit_by_routing():
    assert SGDRanker().get_metadata_routing().partial_fit.requests["qid"] is True


# ---- errors -------------------------------------------------------------------------------------


def test_one_of_two_strengths_is_given():
    with pytest.raises(ValueError, match=r"give alpha or C, not both: got alpha=0\.01 and C=1\.0"):
        fit(C=1.0)


# ---- the search ---------------------------------------------------------------------------------

pytestmark = pytest.mark.filterwarnings("ignore:the best alpha", "ignore:every alpha")

ALPHAS = [1e-1, 1e-2, 1e-3]
FEW = 3000


SHUFFLED = make_ranking(n_queries=24, n_features=6, n_levels=3, dtype="float64", random_state=3)
SHUFFLED = Scaling.fit("standard", SHUFFLED.rows).applied(SHUFFLED)
SHUFFLED = SHUFFLED.select(np.random.default_rng(0).permutation(SHUFFLED.n_rows))


def search(shuffled, **params):
    params = {"alphas": ALPHAS, "n_steps": FEW, "random_state": 0, "cv": 3, **params}
    return SGDRankerCV(**params).fit(shuffled.X, shuffled.y, qid=shuffled.qid)


# ---- equal to the same by hand ------------------------------------------------------------------


def test_folds_of_queries_equal_the_same_by_hand():
    """The training part of a fold is drawn by a mask over queries."""
    found = search(SHUFFLED)
    for k, fold in enumerate(deal(SHUFFLED, 3)):
        keep = np.ones(24, dtype=bool)
        keep[np.isin(SHUFFLED.queries.ids, SHUFFLED.qid[fold.valid])] = False
        sampler = pair_sampler(SHUFFLED.queries, keep=keep)
        valid = SHUFFLED.select(fold.valid)
        for j, alpha in enumerate(ALPHAS):
            run = course_over(SHUFFLED.rows, sampler, [Learner("pegasos", alpha)], FEW, seed=0)
            run.until(FEW)
            scores = valid.X @ run.weights()[0]
            measure = evaluate(valid.y, scores, qid=valid.qid)["ndcg@10"]
            assert_allclose(found.scores_[k, 0, j], measure, rtol=1e-12)


def test_training_on_part_of_a_query_is_allowed_and_copies():
    """A list of row numbers may leave out rows of training queries."""
    fold = deal(SHUFFLED, 3)[0]
    some = fold.train[::2]
    found = search(SHUFFLED, cv=[(some, fold.valid)])
    part, valid = SHUFFLED.select(some), SHUFFLED.select(fold.valid)
    one = SGDRanker(alpha=1e-2, n_steps=FEW, random_state=0).fit(part.X, part.y, qid=part.qid)
    measure = evaluate(valid.y, one.predict(valid.X), qid=valid.qid)["ndcg@10"]
    assert_allclose(found.scores_[0, 0, 1], measure, rtol=1e-12)


def test_whole_queries_are_trained_on_without_a_copy(monkeypatch):
    """No part is taken out, not even to be scored; each row is scored once."""
    all_vary = lambda rows, *_: np.ones(rows.shape[1], dtype=bool)  # noqa: E731
    monkeypatch.setattr("linrank.methods.ground.varying_columns", all_vary)  # looks at rows too
    taken, take = [], DenseRows.take
    monkeypatch.setattr(Dataset, "select", lambda self, rows: pytest.fail("rows were copied"))
    monkeypatch.setattr(
        DenseRows, "take", lambda self, rows: taken.append(rows) or take(self, rows)
    )
    search(SHUFFLED)
    scored = np.concatenate([rows for rows in taken if not isinstance(rows, slice)])
    assert_array_equal(np.sort(scored), np.arange(SHUFFLED.n_rows))


def test_weights_reach_the_folds():
    weight = np.where(np.arange(24) < 12, 0.0, 1.0)
    by_row = SHUFFLED.queries.scatter(np.repeat(weight, np.diff(SHUFFLED.queries.offsets)))
    kept = SHUFFLED.select(by_row > 0)
    options = {"n_steps": FEW, "random_state": 0}
    found = SGDRankerCV(ALPHAS, cv=(SHUFFLED.X, SHUFFLED.y, SHUFFLED.qid), **options)
    found.fit(SHUFFLED.X, SHUFFLED.y, qid=SHUFFLED.qid, query_weight=by_row)
    assert found.n_pairs_ == kept.queries.n_pairs
    plain = SGDRankerCV(ALPHAS, cv=(SHUFFLED.X, SHUFFLED.y, SHUFFLED.qid), **options)
    plain.fit(SHUFFLED.X, SHUFFLED.y, qid=SHUFFLED.qid)
    assert not np.array_equal(plain.scores_, found.scores_)


# ---- errors -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"algorithms": "adam"}, "algorithms must be some of .*, got 'adam'"),
        ({"algorithms": ()}, "at least one"),
        ({"algorithms": ("pa", "pa")}, "must be different"),
    ],
)
def test_wrong_grids_are_told(params, message):
    with pytest.raises(ValueError, match=message):
        search(SHUFFLED, **params)


def test_a_fault_in_one_fold_ends_the_others(monkeypatch):
    """Without the call-off the first fold would go on for 10^12 steps."""
    folds, whole_queries = deal(SHUFFLED, 2), sgd_tuning._whole_queries

    def faulty(data, train):
        if train is folds[1].train:
            raise KeyboardInterrupt
        return whole_queries(data, train)

    monkeypatch.setattr(sgd_tuning, "_whole_queries", faulty)
    parameters = SGDSearch(alphas=[0.1], n_steps=10**12, scale="none", n_jobs=2)
    task = Task(MemoryParts(SHUFFLED, 2), parameters)
    with pytest.raises(KeyboardInterrupt):
        tune_sgd(task, None, folds, Judging(), seed=0)
