"""RankSVM: what fit learns, what it records, and what it refuses."""

from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from linrank import ConvergenceWarning, evaluate, load_model, make_ranking
from linrank.metrics.evaluate import weighted_pairwise_accuracy
from papers import RankSVM
from strategies import scored_queries

WHOLE = make_ranking(n_queries=42, n_features=8, n_levels=4, dtype="float64", random_state=3)


DATA, HELD_OUT = WHOLE.select(WHOLE.qid < 30), WHOLE.select(WHOLE.qid >= 30)


HELD_OUT = replace(HELD_OUT, qid=HELD_OUT.qid - 30)


def test_query_weights_by_query_by_row_and_by_id_are_the_same():
    ids, rows = np.unique(DATA.qid, return_inverse=True)
    weight = np.random.default_rng(0).uniform(0.5, 2.0, len(ids))
    first = [int(np.flatnonzero(ids == id_)[0]) for id_ in DATA.queries.ids]
    spellings = (weight[first], weight[rows], dict(zip(ids.tolist(), weight, strict=True)))
    fits = [RankSVM().fit(DATA.X, DATA.y, qid=DATA.qid, query_weight=w).coef_ for w in spellings]
    assert_array_equal(fits[0], fits[1])
    assert_array_equal(fits[0], fits[2])


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table])
def test_frames_keep_their_names(make):
    if make is pl.DataFrame:  # older scikit-learn reads no names from current polars
        pytest.importorskip("sklearn", minversion="1.9")
    names = [f"f{j}" for j in range(8)]
    X = make({name: DATA.X[:, j].astype(np.float32) for j, name in enumerate(names)})
    ranker = RankSVM().fit(X, DATA.y, qid=DATA.qid)
    assert ranker.feature_names_in_.tolist() == ranker.model_.feature_names == names
    assert_allclose(ranker.predict(X), DATA.X @ ranker.coef_, rtol=1e-3, atol=1e-4)
    turned = X[names[::-1]] if make is not pa.table else X.select(names[::-1])
    with pytest.raises(ValueError, match="names"):
        ranker.predict(turned)


# ---- scores -------------------------------------------------------------------------------------


def test_ranks_beyond_k_are_0_and_one_query_needs_no_ids():
    ranker = RankSVM().fit(DATA.X, DATA.y, qid=DATA.qid)
    ranks = ranker.rank(DATA.X, qid=DATA.qid)
    assert_array_equal(ranker.rank(DATA.X, DATA.qid, k=3), np.where(ranks <= 3, ranks, 0))
    with pytest.raises(ValueError, match="k must be >= 1, got 0"):
        ranker.rank(DATA.X, qid=DATA.qid, k=0)
    one_query = RankSVM().fit(DATA.X, DATA.y)
    i, j = np.nonzero(DATA.y[:, None] > DATA.y)
    scores = one_query.predict(DATA.X)
    assert_allclose(one_query.score(DATA.X, DATA.y), np.mean(scores[i] > scores[j]))


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


def test_scaling_by_query_takes_rows_without_ids_for_one_query(tmp_path):
    one_query = RankSVM(scale="query").fit(DATA.X, DATA.y)
    scores = one_query.predict(DATA.X)
    assert_array_equal(scores, one_query.predict(DATA.X, np.zeros(DATA.n_rows)))
    one_query.save(tmp_path / "m.json")
    assert_array_equal(load_model(tmp_path / "m.json").predict(replace(DATA, qid=None)), scores)


# ---- validation data ----------------------------------------------------------------------------


def fit_with_validation(data, held_out, **params):
    return RankSVM(**params).fit(
        data.X, data.y, qid=data.qid, X_val=held_out.X, y_val=held_out.y, qid_val=held_out.qid
    )


def test_the_start_at_zero_is_not_the_best_because_the_rows_were_sorted():
    parts = (part.select(np.lexsort((-part.y, part.qid))) for part in (DATA, HELD_OUT))
    ranker = fit_with_validation(*parts, early_stopping=True)
    assert ranker.best_iteration_ > 0
    assert ranker.coef_.any()


def test_among_equal_iterates_the_first_is_the_best():
    """One row per query: every iterate has the same NDCG."""
    ranker = RankSVM(solver="tron", early_stopping=True, n_iter_no_change=1).fit(
        DATA.X, DATA.y, qid=DATA.qid, X_val=DATA.X, y_val=DATA.y, qid_val=np.arange(DATA.n_rows)
    )
    assert len(set(ranker.history_["val_ndcg@10"])) == 1
    assert ranker.best_iteration_ == 0
    assert not ranker.coef_.any()


SIZES, PART = np.bincount(HELD_OUT.qid), (HELD_OUT.X, HELD_OUT.y)


@pytest.mark.parametrize(
    "arguments",
    [
        {"eval_set": [PART], "eval_qid": [HELD_OUT.qid]},
        {"eval_set": [PART], "eval_group": [SIZES]},
        {"eval_set": PART, "eval_qid": [HELD_OUT.qid]},
        {"eval_set": [PART], "eval_qid": HELD_OUT.qid},
        {"eval_set": [PART], "eval_group": SIZES.tolist()},
    ],
    ids=["qid", "group", "pair", "bare qid", "bare group"],
)
def test_validation_data_as_other_libraries_pass_it(arguments):
    ranker = RankSVM().fit(DATA.X, DATA.y, group=np.bincount(DATA.qid), **arguments)
    expected = fit_with_validation(DATA, HELD_OUT).history_["val_ndcg@10"]
    assert_allclose(ranker.history_["val_ndcg@10"], expected)


def test_the_last_of_several_validation_sets_steers():
    sets = {"eval_set": [(DATA.X, DATA.y), PART], "eval_qid": [DATA.qid, HELD_OUT.qid]}
    ranker = RankSVM().fit(DATA.X, DATA.y, qid=DATA.qid, **sets)
    assert ranker.best_iteration_ == int(np.argmax(ranker.history_["val1_ndcg@10"]))
    scores = ranker.predict(DATA.X)
    expected = evaluate(DATA.y, scores, qid=DATA.qid)["ndcg@10"]
    assert_allclose(ranker.history_["val0_ndcg@10"][-1], expected)


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
        ({"qid": [0, 1, 2]}, "each of the 3 query ids occurs once"),
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


def test_a_dataset_is_given_alone():
    plain = RankSVM().fit(DATA.X, DATA.y, qid=DATA.qid)
    assert_array_equal(RankSVM().fit(DATA).coef_, plain.coef_)
    with pytest.raises(ValueError, match="y is part of the data set, which is given alone"):
        RankSVM().fit(DATA, DATA.y, qid=DATA.qid)


def test_a_fit_that_rounding_ends_is_told_at_the_default_tolerance():
    """Features of twelve orders of magnitude: the planes cannot close the gap in doubles."""
    data = make_ranking(20, 10, 5, 3, noise=1.0, dtype="float64", random_state=1)
    X = np.asarray(data.X) * 10.0 ** np.array([-6, -3, 0, 3, 6])
    ranker = RankSVM(C=1e6, loss="hinge", solver="bundle")
    with pytest.warns(ConvergenceWarning, match=r"raise (max_iter or )?tol"):
        ranker.fit(X, data.y, qid=data.qid)
    assert not ranker.converged_
