"""PerQueryRanker: each topic as if it were fitted alone, over one matrix, on any threads."""

from __future__ import annotations

import math
import pickle
import threading
import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from hypothesis_profiles import examples
from linrank import ConvergenceWarning, NoPairsError, PerQueryRanker, _core, evaluate, load_model
from linrank.data.queries import Queries
from linrank.data.rows import as_rows
from linrank.estimators.model_selection import QueryKFold
from linrank.estimators.topics import Progress, TopicLabels, Trainer, map_threads, top_rows
from linrank.stochastic.samplers import pair_sampler
from linrank.system.seeds import seed_of_part
from papers import DominationRanker, RankSVM, SGDRanker
from peaks import peak_of
from plain_descent import PlainDescent
from test_samplers import check_interrupt

N_ROWS, N_FEATURES, N_TOPICS = 120, 6, 5
FIT = 1  # the use of a topic's seed by its estimator


X = np.random.default_rng(0).standard_normal((N_ROWS, N_FEATURES))


def noisy_grades():
    """Grades 0, 1, 2 by a noisy score of each topic: mostly 0."""
    rng = np.random.default_rng(1)
    scores = X @ rng.standard_normal((N_FEATURES, N_TOPICS)) + rng.standard_normal((N_ROWS, 1))
    return (scores > 1.5).astype(np.int8) + (scores > 3.0)


Y = noisy_grades()


class Witness(RankSVM):
    """Keeps what its fits were given."""

    seen: list[tuple] = []  # noqa: RUF012  (of all copies: they are made inside)

    def fit(self, X, y, *, sample_weight=None):
        Witness.seen.append((X, y, sample_weight))
        return super().fit(X, y, sample_weight=sample_weight)


@pytest.fixture
def seen():
    Witness.seen = []
    return Witness.seen


# ---- a topic is a fit of its own -----------------------------------------------------------------


@pytest.mark.parametrize(
    "one",
    [
        *(RankSVM(0.1, **options) for options in ({}, {"loss": "hinge"})),
        DominationRanker(alpha=2.0, margin=0.5),
        DominationRanker("l2", alpha=2.0),
        DominationRanker(alpha=2.0, feature_induction=2),
        SGDRanker("hybrid", n_steps=3000, average=True),
    ],
    ids=repr,
)
def test_each_model_is_that_of_a_fit_alone(one):
    ranker = PerQueryRanker(one, n_jobs=2, random_state=7).fit(X, Y)
    for t in range(N_TOPICS):
        alone = clone(one).set_params(random_state=seed_of_part(7, t, FIT)).fit(X, Y[:, t])
        assert_array_equal(ranker.models_[t].coef, alone.coef_)
        assert ranker.n_nonzero_[t] == np.count_nonzero(alone.coef_)
        assert ranker.models_[t].training["objective"] == alone.model_.training["objective"]
        assert_array_equal(ranker.decision_function(X)[:, t], alone.decision_function(X))
    assert ranker.converged_.all()
    assert_array_equal(ranker.topics_, np.arange(N_TOPICS))
    assert not hasattr(ranker.estimator, "coef_")  # a copy was fitted
    with pytest.raises(NotFittedError):
        clone(ranker).predict(X)


def test_bounds_hold_for_raw_features_called_by_name():
    frame = pd.DataFrame(X * 10, columns=list("abcdef"))
    bounds = {"a": (-0.01, 0.01), "c": (0, None)}
    one = RankSVM(0.1, scale="standard", coef_bounds=bounds, tol=1e-8)
    coef = PerQueryRanker(one).fit(frame, Y).coef_.toarray()
    alone = [clone(one).fit(frame, Y[:, t]).coef_ for t in range(N_TOPICS)]
    assert_allclose(coef, alone, rtol=1e-4, atol=1e-9)
    assert (np.abs(coef[:, 0]) == 0.01).any()  # they bind


@pytest.mark.parametrize("scale", ["standard", "minmax"])
@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array])
def test_rows_are_scaled_once_and_models_score_raw_ones(scale, layout):
    raw = layout(X * [1, 10, 100, 0.1, 1, 1])
    ranker = PerQueryRanker(RankSVM(0.1, scale=scale, tol=1e-8)).fit(raw, Y)
    for t in range(N_TOPICS):
        alone = RankSVM(0.1, scale=scale, tol=1e-8).fit(raw, Y[:, t])
        assert_allclose(ranker.models_[t].coef, alone.coef_, rtol=1e-5)
        assert ranker.models_[t].scaling.kind == scale
        assert_array_equal(ranker.models_[t].scaling.factors, alone.model_.scaling.factors)


@examples(25)
@given(
    hnp.arrays(
        np.int8, st.tuples(st.integers(3, 12), st.integers(1, 4)), elements=st.integers(-1, 2)
    ),
    st.sampled_from([sparse.csr_array, sparse.csc_matrix, sparse.coo_array, pd.DataFrame]),
)  # fmt: skip
def test_the_storage_of_labels_does_not_matter(labels, storage):
    """With graded, negative and constant columns."""
    X = np.random.default_rng(len(labels)).standard_normal((len(labels), 3))
    dense, other = PerQueryRanker(RankSVM()), PerQueryRanker(RankSVM())
    has_pairs = labels.min(axis=0) < labels.max(axis=0)
    if not has_pairs.any():
        with pytest.raises(NoPairsError, match=f"none of the {labels.shape[1]} topics"):
            dense.fit(X, labels)
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        dense.fit(X, labels)
        other.fit(X, storage(labels))
    assert_array_equal(dense.coef_.toarray(), other.coef_.toarray())
    assert [model is not None for model in dense.models_] == has_pairs.tolist()


def test_a_sparse_label_that_is_listed_twice_counts_as_the_sum():
    rows = [0, 0, 3]
    twice = sparse.coo_array((np.ones(3), (rows, [0, 0, 0])), shape=(N_ROWS, 1)).tocsc(copy=True)
    labels = TopicLabels.read(twice, N_ROWS).of(0)
    assert labels[[0, 1, 3]].tolist() == [2.0, 0.0, 1.0]
    assert labels.sum() == 3


@pytest.mark.parametrize("sampling", [None, 0.3])
@pytest.mark.parametrize(
    "estimator",
    [
        RankSVM(0.1),
        SGDRanker("pa", n_steps=500),
        SGDRanker(sampling="query-level", n_steps=500),
        DominationRanker(),
    ],
    ids=repr,
)
def test_threads_do_not_change_a_bit(estimator, sampling):
    twice, options = np.hstack([Y, Y]), {"negative_sampling": sampling, "random_state": 3}
    one, two, five = (
        PerQueryRanker(estimator, n_jobs=n, **options).fit(X, twice).coef_.toarray()
        for n in (1, 2, 5)
    )
    assert_array_equal(two, one)
    assert_array_equal(five, one)
    first, again = one[[0, N_TOPICS]]
    is_random = sampling is not None or isinstance(estimator, SGDRanker)
    assert (first != again).any() == is_random  # each topic has a seed of its own


# ---- PAMIR ---------------------------------------------------------------------------------------


def test_pamir_steps_on_a_random_positive_and_a_random_negative():
    """PA-I on positives × negatives, all pairs alike: the plain algorithm on the same pairs."""
    binary = (Y > 0).astype(float)
    pamir = SGDRanker("pa", n_steps=400, aggressiveness=0.1)
    ranker = PerQueryRanker(pamir, random_state=11).fit(X, binary)
    for t in range(N_TOPICS):
        sampler = pair_sampler(Queries.of(binary[:, t]))
        winners, losers = sampler.core.draw(_core.Random(seed_of_part(11, t, FIT)), 400)
        assert binary[winners, t].all()
        assert not binary[losers, t].any()
        plain = PlainDescent(N_FEATURES, "pa", strength=0.1)
        for i, j in zip(winners, losers, strict=True):
            plain.step(X[i] - X[j])
        assert_allclose(ranker.models_[t].coef, plain.w, rtol=1e-9)


# ---- memory, and negative sampling ---------------------------------------------------------------


@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array])
def test_every_fit_reads_the_matrix_of_the_user(layout, seen):
    matrix = layout(X)
    PerQueryRanker(Witness(0.1), n_jobs=2).fit(matrix, Y)
    assert len(seen) == N_TOPICS
    values = getattr(matrix, "data", None) if sparse.issparse(matrix) else matrix
    for rows, labels, weight in seen:
        assert rows is seen[0][0]
        assert rows.values.__array_interface__["data"] == values.__array_interface__["data"]
        assert weight is None
        assert len(labels) == N_ROWS


@pytest.mark.parametrize("estimator", [RankSVM(1e-3, tol=0.1), SGDRanker("pa", n_steps=100)])
def test_fits_allocate_far_less_than_a_matrix(estimator):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((4000, 250))
    Y = sparse.csr_array(rng.random((4000, 6)) < 0.05)
    ranker = PerQueryRanker(estimator, random_state=0, n_jobs=2)
    ranker.fit(X, Y)
    assert peak_of(lambda: ranker.fit(X, Y)) < 0.3 * X.nbytes


@pytest.mark.parametrize(
    ("estimator", "share", "is_shared"),
    [
        (DominationRanker(), None, True),
        (DominationRanker("l2", solver="coordinate"), None, True),
        (DominationRanker("l2"), None, False),  # by Newton's method
        (DominationRanker(), 0.5, False),  # every topic has rows of its own
        (DominationRanker(negative_sampling=0.5), None, False),  # likewise
        (DominationRanker(negative_sampling=1.0), None, True),  # which leaves no row out
    ],
)
def test_columns_are_made_once_before_the_threads_start(estimator, share, is_shared):
    labels = TopicLabels.read(Y, N_ROWS)
    trainer = Trainer(clone(estimator), as_rows(X), None, labels, share, 0, 1)
    assert ("by_column" in vars(trainer.rows)) == is_shared
    trainer(0)
    assert ("by_column" in vars(trainer.rows)) == is_shared


@examples(30)
@given(st.floats(0.01, 1.0), st.integers(0, 2**40))
def test_a_sampled_fit_sees_all_positives_and_a_share_of_the_others(share, seed):
    X = np.random.default_rng(0).standard_normal((40, 2))
    Y = np.zeros((40, 3), dtype=int)
    Y[[3, 5, 8], 0], Y[[3, 20], 1], Y[:30, 2] = [1, 2, 1], -1, 1
    Witness.seen = []
    PerQueryRanker(Witness(0.1), negative_sampling=share, random_state=seed, n_jobs=1).fit(X, Y)
    for t, (rows, labels, weight) in enumerate(Witness.seen):
        y = Y[:, t]
        is_low = y == y.min()
        n_low, n_kept = is_low.sum(), math.ceil(share * is_low.sum())
        assert rows.shape[0] == len(labels) == 40 - n_low + n_kept
        assert sorted(labels[labels > y.min()]) == sorted(y[~is_low])
        assert_array_equal(weight, np.where(labels > y.min(), 1, n_low / n_kept))
        place = [int(np.flatnonzero((row == X).all(axis=1))[0]) for row in rows.values]
        assert_array_equal(labels, y[place])
        assert place == sorted(set(place))  # each once, in the order of the matrix


def test_margins_of_rows_go_with_the_rows_that_are_kept():
    margin = np.random.default_rng(1).uniform(0.0, 3.0, N_ROWS)
    labels, estimator = TopicLabels.read(Y, N_ROWS), DominationRanker(alpha=0.1, tol=1e-8)
    trainer = Trainer(
        clone(estimator).set_params(margin=margin.tolist()), as_rows(X), None, labels, 0.5, 7, 1
    )
    learnt = trainer(0)
    kept = trainer._sample(0, labels.of(0) > labels.of(0).min())
    n_low = (labels.of(0) == labels.of(0).min()).sum()
    weight = np.where(labels.of(0)[kept] > labels.of(0).min(), 1.0, n_low / math.ceil(n_low / 2))
    by_hand = estimator.set_params(margin=margin[kept])
    by_hand.fit(as_rows(X).take(kept), labels.of(0)[kept], sample_weight=weight)
    assert_array_equal(learnt.columns, np.flatnonzero(by_hand.coef_))
    assert_allclose(learnt.values, by_hand.coef_[learnt.columns], rtol=1e-9)


# ---- scores, ranks, measures ---------------------------------------------------------------------


def test_scores_of_some_topics_are_columns_of_all():
    names = list("vwxyz")
    ranker = PerQueryRanker(RankSVM(0.1)).fit(X, Y, topics=names)
    scores = ranker.predict(X)
    assert scores.shape == (N_ROWS, N_TOPICS)
    assert_allclose(scores, X @ ranker.coef_.toarray().T, rtol=1e-12, atol=1e-12)
    assert_array_equal(ranker.decision_function(X, topics=["z", "v"]), scores[:, [4, 0]])
    assert_array_equal(ranker.decision_function(X, topics="w"), scores[:, [1]])
    with pytest.raises(ValueError, match="no topic 'q'; topics_ begins with 'v', 'w', 'x'"):
        ranker.decision_function(X, topics=["v", "q"])


@examples(50)
@given(st.lists(st.integers(-2, 2), min_size=1, max_size=20), st.integers(1, 25))
def test_the_highest_are_the_first_of_a_stable_order(scores, k):
    scores = np.array(scores, dtype=float)
    k = min(k, len(scores))
    assert_array_equal(top_rows(scores, k), np.argsort(-scores, kind="stable")[:k])


def test_rank_gives_the_first_rows_of_each_topic():
    ranker = PerQueryRanker(RankSVM(0.1)).fit(X, Y)
    order = np.argsort(-ranker.predict(X), axis=0, kind="stable").T
    assert_array_equal(ranker.rank(X), order[:, :10])
    assert_array_equal(ranker.rank(X, 3, topics=2), order[[2], :3])
    assert ranker.rank(X[:4], k=7).shape == (N_TOPICS, 4)
    for k in (0, -1, 2.5):
        with pytest.raises(ValueError, match="k must be an integer >= 1"):
            ranker.rank(X, k=k)


@pytest.mark.parametrize("storage", [np.asarray, sparse.csr_array])
def test_measures_are_those_of_the_topics_one_by_one(storage):
    metrics = ("map", "p@10", "ndcg@5", "pairwise_accuracy", "auc", "domination_error")
    ranker = PerQueryRanker(RankSVM(0.1), n_jobs=2).fit(X, Y)
    scores, empty = ranker.predict(X), Y.copy()
    empty[:, 3] = 0
    result = ranker.evaluate(X, storage(empty), metrics)
    assert list(result) == list(metrics)
    assert_array_equal(result.query_ids, ranker.topics_)
    for name in metrics:
        each = [evaluate(Y[:, t], scores[:, t], metrics=name)[name] for t in (0, 1, 2, 4)]
        assert_array_equal(np.delete(result.per_query[name], 3), each)
        assert np.isnan(result.per_query[name][3])
        assert_allclose(result[name], np.mean(each), rtol=1e-14)
    assert ranker.score(X, empty) == result["pairwise_accuracy"]


def test_named_labels_are_matched_by_name():
    frame = pd.DataFrame(Y, columns=list("vwxyz"))
    ranker = PerQueryRanker(RankSVM(0.1)).fit(X, frame)
    assert ranker.topics_.tolist() == list("vwxyz")
    whole = ranker.evaluate(X, frame)
    for labels, topics in ((frame[["z", "v"]], None), (Y[:, [4, 0]], ["z", "v"])):
        some = ranker.evaluate(X, labels, topics=topics)
        assert_array_equal(some.per_query["map"], whole.per_query["map"][[4, 0]])
    with pytest.raises(ValueError, match="Y has 2 columns but there are 5 topics"):
        ranker.evaluate(X, Y[:, :2])


def test_a_topic_of_equal_labels_has_no_model_and_scores_zero():
    labels = np.array(Y)
    labels[:, 1], labels[:, 3] = 0, 1
    with pytest.warns(UserWarning, match="2 of 5 topics have labels .* the first is 'w'") as told:
        ranker = PerQueryRanker(RankSVM(0.1)).fit(X, labels, topics=list("vwxyz"))
    assert len(told) == 1
    assert told[0].filename == __file__
    assert [model is None for model in ranker.models_] == [False, True, False, True, False]
    assert not ranker.predict(X)[:, [1, 3]].any()
    assert ranker.converged_.tolist() == [True, False, True, False, True]
    assert np.isnan(ranker.fit_seconds_).tolist() == [False, True, False, True, False]
    assert ranker.n_nonzero_.tolist() == [6, 0, 6, 0, 6]
    assert "2 without a model" in repr(ranker.models_)
    assert len(ranker.models_[1:4]) == 3
    with pytest.raises(IndexError):
        ranker.models_[N_TOPICS]
    # Relevant rows that come first in the input are no merit of scores that are all equal.
    first = np.zeros((N_ROWS, N_TOPICS))
    first[:12] = 1
    assert_allclose(ranker.evaluate(X, first, "p@10").per_query["p@10"][1], 0.1)


def test_models_are_saved_one_by_one(tmp_path):
    frame = pd.DataFrame(X, columns=list("abcdef"))
    ranker = PerQueryRanker(RankSVM(0.1)).fit(frame, Y, topics=list("vwxyz"))
    ranker.models_[2].save(tmp_path / "x.json")
    model = load_model(tmp_path / "x.json")
    assert model.training["topic"] == "x"
    assert model.feature_names == list("abcdef")
    assert_array_equal(model.predict(frame), ranker.decision_function(frame, topics="x")[:, 0])
    copy = pickle.loads(pickle.dumps(ranker))
    assert_array_equal(copy.predict(frame), ranker.predict(frame))


# ---- what is refused -----------------------------------------------------------------------------


def bad_value(value):
    Y = np.zeros((N_ROWS, 2))
    Y[:5] = 1
    Y[7, 1] = value
    return Y


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (np.ones((119, 2)), "X has 120 rows but Y has 119$"),
        (np.ones((2, 120)), "X has 120 rows but Y has 2; it looks transposed: pass Y.T"),
        (np.ones(120), r"2-D, rows × topics, got shape \(120,\); .* pass Y.reshape\(-1, 1\)"),
        (np.ones((120, 0)), "Y has no column; give at least one topic"),
        (None, "Y is None"),
        (np.full((120, 2), "a"), "arrays of bytes/strings"),
        (bad_value(np.nan), r"Y contains NaN at row 7, column 1 \(topic 1\); labels must be fi"),
        (pd.DataFrame(bad_value(np.nan), columns=["a", "b"]), r"column 1 \(topic 'b'\)"),
        (sparse.csr_array(bad_value(np.inf)), r"infinity \(inf\) at row 7, column 1"),
        (pd.DataFrame({"a": ["x"] * 120, "b": 1}), "column 'a' of Y is not numeric"),
    ],
)
def test_bad_labels_are_named(labels, message):
    with pytest.raises(ValueError, match=message):
        PerQueryRanker(RankSVM()).fit(X, labels)


SHARE, LINEAR = (
    "must be a share of .* > 0 and <= 1, or None",
    "estimator must be a linear ranker of linrank",
)


@pytest.mark.parametrize(
    ("estimator", "given", "message"),
    [
        (RankSVM(), {"topics": ["a", "b"]}, "Y has 5 columns but topics has 2 names"),
        (RankSVM(), {"topics": list("abcda")}, "the topic 'a' occurs twice"),
        (RankSVM(), {"topics": "abcde"}, "topics must be a sequence of names, got 'abcde'"),
        *((RankSVM(), {"share": share}, SHARE) for share in (0, -0.5, 1.5, np.nan, "half", True)),
        *((wrong, {}, LINEAR) for wrong in (RankSVM, QueryKFold(3), None, "RankSVM")),
        (RankSVM(early_stopping=True), {}, "early_stopping=True needs validation data"),
        (RankSVM(scale="query"), {}, "use scale='minmax'"),
        (SGDRanker(sampling="rejection"), {"share": 0.5}, "use sampling='pairs'"),
        (DominationRanker(negative_sampling=0.5), {"share": 0.5}, "would be sampled twice"),
        (RankSVM(-1), {}, r"topic 0: C must be a finite number > 0, got -1"),
    ],
    ids=str,
)
def test_what_does_not_go_with_topics_is_refused(estimator, given, message):
    share = given.pop("share", None)
    with pytest.raises((ValueError, TypeError), match=message):
        PerQueryRanker(estimator, negative_sampling=share).fit(X, Y, **given)


class Fragile(RankSVM):
    """Cannot learn from more than five positives."""

    def fit(self, X, y, *, sample_weight=None):
        if y.sum() > 5:
            raise ZeroDivisionError("too much")
        return super().fit(X, y)


@pytest.mark.parametrize("n_jobs", [1, 3])
def test_the_first_topic_that_fails_is_named(n_jobs):
    Y = np.zeros((N_ROWS, 6))
    Y[:3] = 1
    Y[:6, 2:4] = 1
    with pytest.raises(ZeroDivisionError, match=r"^topic 'c': too much$"):
        PerQueryRanker(Fragile(), n_jobs=n_jobs).fit(X, Y, topics=list("abcdef"))


def test_topics_that_do_not_converge_are_told_once():
    with pytest.warns(ConvergenceWarning, match="5 of 5 topics did not converge") as told:
        ranker = PerQueryRanker(RankSVM(1e3, max_iter=1, tol=1e-12)).fit(X, Y)
    assert len(told) == 1
    assert not ranker.converged_.any()


# ---- threads -------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_threads", [1, 2, 7])
def test_the_loop_does_every_item_once_and_tells(n_threads):
    done, told = [], []
    map_threads(50, done.append, n_threads, told.append)
    assert (sorted(done), told[-1]) == (list(range(50)), 50)


def test_the_loop_raises_the_error_of_the_lowest_item():
    """Item 1 fails first, while item 0 is on its way to fail; nothing is begun after."""
    has_failed, done = threading.Event(), []

    def work(i):
        if i == 0:
            has_failed.wait(5)
            raise ValueError("0")
        if i == 1:
            has_failed.set()
            raise ValueError("1")
        done.append(i)

    with pytest.raises(ValueError, match=r"^0$"):
        map_threads(1000, work, 2)
    assert len(done) < 1000


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_the_loop_passes_on_what_no_handler_of_errors_catches(error):
    def work(i):
        if i == 3:
            raise error

    n_before = threading.active_count()
    with pytest.raises(error):
        map_threads(10, work, 2)
    assert threading.active_count() == n_before


def test_progress_says_how_long_it_may_take(capsys):
    progress = Progress(10)
    progress._start -= 6
    progress(2)
    assert capsys.readouterr().err == ""  # not yet
    progress._last -= 2
    progress(2)
    progress(2)
    progress(10)
    lines = capsys.readouterr().err.splitlines()
    assert lines == [
        "linrank: 2 of 10 topics, 6.0 s, about 24 s left",
        "linrank: 10 of 10 topics, 6.0 s",
    ]


@pytest.mark.parametrize(("n_jobs", "n_steps"), [(1, 10**9), (2, 10**6)])
def test_an_interrupt_ends_all_threads(n_jobs, n_steps):
    """On one thread in the midst of a fit of minutes, on more after those at hand."""
    rng, n_before = np.random.default_rng(0), threading.active_count()
    X, Y = rng.standard_normal((1000, 20)), rng.random((1000, 400)) < 0.1
    ranker = PerQueryRanker(SGDRanker(n_steps=n_steps), n_jobs=n_jobs)
    check_interrupt(lambda: ranker.fit(X, Y))
    assert threading.active_count() == n_before
