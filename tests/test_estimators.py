"""RankSVM: what fit learns, what it records, and what it refuses."""

from __future__ import annotations

import logging
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from linrank import ConvergenceWarning, NoPairsError, evaluate, load_model, make_ranking
from linrank.metrics.evaluate import weighted_pairwise_accuracy
from papers import RankSVM
from strategies import scored_queries


@pytest.fixture(scope="module")
def problem():
    return make_ranking(n_queries=42, n_features=8, n_levels=4, dtype="float64", random_state=3)


@pytest.fixture(scope="module")
def data(problem):
    return problem.select(problem.qid < 30)


@pytest.fixture(scope="module")
def held_out(problem):
    return replace(problem.select(problem.qid >= 30), qid=problem.qid[problem.qid >= 30] - 30)


def test_query_weights_by_query_by_row_and_by_id_are_the_same(data):
    ids, rows = np.unique(data.qid, return_inverse=True)
    weight = np.random.default_rng(0).uniform(0.5, 2.0, len(ids))
    first = [int(np.flatnonzero(ids == id_)[0]) for id_ in data.queries.ids]
    spellings = (weight[first], weight[rows], dict(zip(ids.tolist(), weight, strict=True)))
    fits = [RankSVM().fit(data.X, data.y, qid=data.qid, query_weight=w).coef_ for w in spellings]
    assert_array_equal(fits[0], fits[1])
    assert_array_equal(fits[0], fits[2])


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_frames_keep_their_names(data, library):
    module = pytest.importorskip(library)
    if library == "polars":  # older scikit-learn reads no names from current polars
        pytest.importorskip("sklearn", minversion="1.9")
    columns = {f"f{j}": data.X[:, j].astype(np.float32) for j in range(8)}
    frame = {"pandas": "DataFrame", "polars": "DataFrame", "pyarrow": "table"}[library]
    X = getattr(module, frame)(columns)
    ranker = RankSVM().fit(X, data.y, qid=data.qid)
    assert ranker.feature_names_in_.tolist() == list(columns)
    assert ranker.model_.feature_names == list(columns)
    assert_allclose(ranker.predict(X), data.X @ ranker.coef_, rtol=1e-3, atol=1e-4)
    names = list(columns)[::-1]
    turned = X.select(names) if library != "pandas" else X[names]
    with pytest.raises(ValueError, match="names"):
        ranker.predict(turned)


# ---- scores -------------------------------------------------------------------------------------


def test_ranks_beyond_k_are_0_and_one_query_needs_no_ids(data):
    ranker = RankSVM().fit(data.X, data.y, qid=data.qid)
    ranks = ranker.rank(data.X, qid=data.qid)
    assert_array_equal(ranker.rank(data.X, data.qid, k=3), np.where(ranks <= 3, ranks, 0))
    with pytest.raises(ValueError, match="k must be >= 1, got 0"):
        ranker.rank(data.X, qid=data.qid, k=0)
    one_query = RankSVM().fit(data.X, data.y)
    i, j = np.nonzero(data.y[:, None] > data.y)
    scores = one_query.predict(data.X)
    assert_allclose(one_query.score(data.X, data.y), np.mean(scores[i] > scores[j]))


@given(scored_queries(), st.data())
def test_weighted_accuracy_equals_definition(case, draw):
    n = len(case.labels)
    u = np.array(draw.draw(st.lists(st.integers(0, 3), min_size=n, max_size=n)), dtype=np.float64)
    u[0] = 1.0
    weight = right = 0.0
    for i, j in case.pairs():
        weight += u[i] * u[j]
        right += u[i] * u[j] * (case.scores[i] > case.scores[j])
    value = weighted_pairwise_accuracy(case.labels, case.scores, u, case.qid)
    assert_allclose(value, right / weight if weight else np.nan)


def test_a_nan_score_is_refused_not_looped_over():
    with pytest.raises(ValueError, match="nan at row 1"):
        weighted_pairwise_accuracy([2, 1, 0], [3.0, np.nan, 2.0], np.ones(3))


def test_scaling_by_query_takes_rows_without_ids_for_one_query(data, tmp_path):
    one_query = RankSVM(scale="query").fit(data.X, data.y)
    scores = one_query.predict(data.X)
    assert_array_equal(scores, one_query.predict(data.X, np.zeros(data.n_rows)))
    one_query.save(tmp_path / "m.json")
    assert_array_equal(load_model(tmp_path / "m.json").predict(replace(data, qid=None)), scores)


# ---- validation data ----------------------------------------------------------------------------


def fit_with_validation(data, held_out, **params):
    return RankSVM(**params).fit(
        data.X, data.y, qid=data.qid, X_val=held_out.X, y_val=held_out.y, qid_val=held_out.qid
    )


def test_the_start_at_zero_is_not_the_best_because_the_rows_were_sorted(data, held_out):
    data, held_out = (part.select(np.lexsort((-part.y, part.qid))) for part in (data, held_out))
    ranker = fit_with_validation(data, held_out, early_stopping=True)
    assert ranker.best_iteration_ > 0
    assert ranker.coef_.any()


def test_among_equal_iterates_the_first_is_the_best(data):
    """One row per query: every iterate has the same NDCG."""
    ranker = RankSVM(solver="tron", early_stopping=True, n_iter_no_change=1).fit(
        data.X, data.y, qid=data.qid, X_val=data.X, y_val=data.y, qid_val=np.arange(data.n_rows)
    )
    assert len(set(ranker.history_["val_ndcg@10"])) == 1
    assert ranker.best_iteration_ == 0
    assert not ranker.coef_.any()


@pytest.mark.parametrize("spelling", ["qid", "group", "pair", "bare qid", "bare group"])
def test_validation_data_as_other_libraries_pass_it(data, held_out, spelling):
    sizes = np.bincount(held_out.qid)
    eval_set = [(held_out.X, held_out.y)]
    arguments = {
        "qid": {"eval_set": eval_set, "eval_qid": [held_out.qid]},
        "group": {"eval_set": eval_set, "eval_group": [sizes]},
        "pair": {"eval_set": eval_set[0], "eval_qid": [held_out.qid]},
        "bare qid": {"eval_set": eval_set, "eval_qid": held_out.qid},
        "bare group": {"eval_set": eval_set, "eval_group": sizes.tolist()},
    }[spelling]
    ranker = RankSVM().fit(data.X, data.y, group=np.bincount(data.qid), **arguments)
    expected = fit_with_validation(data, held_out).history_["val_ndcg@10"]
    assert_allclose(ranker.history_["val_ndcg@10"], expected)


def test_the_last_of_several_validation_sets_steers(data, held_out):
    ranker = RankSVM().fit(
        data.X,
        data.y,
        qid=data.qid,
        eval_set=[(data.X, data.y), (held_out.X, held_out.y)],
        eval_qid=[data.qid, held_out.qid],
    )
    assert ranker.best_iteration_ == int(np.argmax(ranker.history_["val1_ndcg@10"]))
    scores = ranker.predict(data.X)
    expected = evaluate(data.y, scores, qid=data.qid)["ndcg@10"]
    assert_allclose(ranker.history_["val0_ndcg@10"][-1], expected)


# ---- progress -----------------------------------------------------------------------------------


def test_progress_goes_to_the_logger_or_to_standard_error(data, capsys, caplog):
    RankSVM().fit(data.X, data.y, qid=data.qid)
    assert capsys.readouterr() == ("", "")
    with caplog.at_level(logging.INFO, logger="linrank"):
        RankSVM(verbose=1).fit(data.X, data.y, qid=data.qid)
    assert capsys.readouterr() == ("", "")
    assert caplog.messages[0].startswith("iteration 0, objective ")
    with caplog.at_level(logging.WARNING, logger="linrank"):
        RankSVM(verbose=1).fit(data.X, data.y, qid=data.qid)
    out, err = capsys.readouterr()
    assert out == ""
    assert len(err.splitlines()) >= 2


# ---- refusals -----------------------------------------------------------------------------------

X3, Y3 = np.arange(6.0).reshape(3, 2), [0, 1, 2]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"X_val": X3}, "belong together"),
        ({"qid_val": Y3}, "belong together"),
        ({"eval_group": [[3]]}, "eval_group is given without eval_set"),
        ({"eval_set": [(X3, Y3)], "X_val": X3, "y_val": Y3}, "not both"),
        ({"eval_set": [(X3, Y3)] * 2, "eval_qid": [Y3]}, "1 entries for 2 pairs"),
        ({"X_val": X3, "y_val": Y3, "qid_val": Y3}, "training data has no query"),
        ({"qid": [0, 0, 0], "X_val": X3, "y_val": Y3}, "has no .* pass qid_val"),
        ({"X_val": X3[:, :1], "y_val": Y3}, "1 features, the training rows 2"),
        ({"qid": [0, 0, 0], "group": [3]}, "not both"),
        ({"sample_weight": [1, -1, 1]}, "sample_weight must be >= 0"),
        ({"query_weight": [1, 2, 2]}, "1 and 2 within query 0; .*sample_weight"),
        ({"query_weight": [1, 2]}, "2 elements; .* each of 1 queries .* 3 rows"),
        ({"query_weight": [-1]}, "query_weight must be >= 0, got -1"),
        ({"query_weight": [1, np.nan, 1]}, "query_weight contains NaN"),
        ({"query_weight": {0: 1}}, "there is no qid"),
        ({"qid": ["a", "a", "b"], "query_weight": {"a": 1.0}}, "weight for 1 of 2 .*instance 'b'"),
        ({"qid": ["a", "b", "a"], "query_weight": [1, 1, 3]}, "1 and 3 within query 'a'"),
    ],
)
def test_what_fit_refuses(given, message):
    with pytest.raises(ValueError, match=message):
        RankSVM().fit(X3, Y3, **given)


def test_a_dataset_is_given_alone(data):
    plain = RankSVM().fit(data.X, data.y, qid=data.qid)
    assert_array_equal(RankSVM().fit(data).coef_, plain.coef_)
    with pytest.raises(ValueError, match="y is part of the data set, which is given alone"):
        RankSVM().fit(data, data.y, qid=data.qid)


def test_a_fit_that_rounding_ends_is_told_at_the_default_tolerance():
    """Features of twelve orders of magnitude: the planes cannot close the gap in doubles."""
    data = make_ranking(20, 10, 5, 3, noise=1.0, dtype="float64", random_state=1)
    X = np.asarray(data.X) * 10.0 ** np.array([-6, -3, 0, 3, 6])
    ranker = RankSVM(C=1e6, loss="hinge", solver="bundle")
    with pytest.warns(ConvergenceWarning, match=r"raise (max_iter or )?tol"):
        ranker.fit(X, data.y, qid=data.qid)
    assert not ranker.converged_


def test_weights_that_underflow_are_told(data):
    with pytest.raises(NoPairsError, match="too small for pair_weighting='gain_diff'"):
        RankSVM(pair_weighting="gain_diff").fit(data.X, data.y - 2000.0, qid=data.qid)
