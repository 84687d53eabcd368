"""RankSVM: what fit learns, what it records, and what it refuses."""

from __future__ import annotations

import logging
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize
from sklearn.base import clone

from hypothesis_profiles import examples
from linrank import ConvergenceWarning, NoPairsError, evaluate, load_model, make_ranking
from linrank.data.scaling import Scaling
from linrank.metrics.evaluate import weighted_pairwise_accuracy
from papers import RankSVM
from strategies import datasets, scored_queries


@pytest.fixture(scope="module")
def problem():
    return make_ranking(n_queries=42, n_features=8, n_levels=4, dtype="float64", random_state=3)


@pytest.fixture(scope="module")
def data(problem):
    return problem.select(problem.qid < 30)


@pytest.fixture(scope="module")
def held_out(problem):
    return replace(problem.select(problem.qid >= 30), qid=problem.qid[problem.qid >= 30] - 30)


def pairs_of(data, weight=None, query_weight=None):
    """Differences and weights of all pairs: the definition."""
    u = np.ones(data.n_rows) if weight is None else weight
    c = np.ones(data.n_rows) if query_weight is None else query_weight
    above = (data.qid[:, None] == data.qid) & (data.y[:, None] > data.y)
    i, j = np.nonzero(above)
    return i, j, c[i] * u[i] * u[j]


def optimum(data, C=1.0, factors=1.0, **weights):
    """The objective of the class docstring, minimized by another solver."""
    i, j, omega = pairs_of(data, **weights)
    D = (np.asarray(data.X, dtype=np.float64)[i] - np.asarray(data.X)[j]) * factors

    def objective(w):
        loss = np.maximum(0.0, 1.0 - D @ w)
        return 0.5 * w @ w + C * omega @ loss**2, w - 2 * C * D.T @ (omega * loss)

    options = {"maxiter": 5000, "maxfun": 10**5, "ftol": 1e-15, "gtol": 1e-9}
    found = minimize(objective, np.zeros(D.shape[1]), jac=True, method="L-BFGS-B", options=options)
    return found.fun, factors * found.x


@pytest.mark.parametrize("solver", ["newton", "tron"])
@pytest.mark.parametrize("scale", ["none", "standard", "minmax"])
def test_the_objective_is_that_of_the_docstring(data, solver, scale):
    ranker = RankSVM(C=0.5, solver=solver, scale=scale, tol=1e-8).fit(data.X, data.y, qid=data.qid)
    factors = Scaling.fit(scale, data.rows).factors
    value, _ = optimum(data, C=0.5, factors=1.0 if factors is None else factors)
    assert_allclose(ranker.objective_, value, rtol=1e-6)
    assert 0 <= ranker.duality_gap_ <= 1e-4 * value
    assert_allclose(ranker.decision_function(data.X), data.X @ ranker.coef_, rtol=1e-9)


def test_row_and_query_weights_enter_as_documented(data):
    rng = np.random.default_rng(0)
    u = rng.integers(0, 4, data.n_rows) / 2
    c = dict(zip(np.unique(data.qid).tolist(), rng.uniform(0.5, 2, 30), strict=True))
    by_row = np.array([c[q] for q in data.qid.tolist()])
    value, _ = optimum(data, weight=u, query_weight=by_row)
    settings = {"qid": data.qid, "sample_weight": u}
    mapped = RankSVM(tol=1e-9).fit(data.X, data.y, query_weight={**c, "other": 1.0}, **settings)
    listed = RankSVM(tol=1e-9).fit(data.X, data.y, query_weight=by_row, **settings)
    assert_allclose(mapped.objective_, value, rtol=1e-6)
    assert_array_equal(mapped.coef_, listed.coef_)


def test_query_weights_by_query_by_row_and_by_id_are_the_same(data):
    ids, rows = np.unique(data.qid, return_inverse=True)
    weight = np.random.default_rng(0).uniform(0.5, 2.0, len(ids))
    first = [int(np.flatnonzero(ids == id_)[0]) for id_ in data.queries.ids]
    spellings = (weight[first], weight[rows], dict(zip(ids.tolist(), weight, strict=True)))
    fits = [RankSVM().fit(data.X, data.y, qid=data.qid, query_weight=w).coef_ for w in spellings]
    assert_array_equal(fits[0], fits[1])
    assert_array_equal(fits[0], fits[2])


def test_query_normalization_counts_every_query_once(data):
    i, _, _ = pairs_of(data)
    n_pairs = np.bincount(data.qid[i], minlength=30)
    c = np.divide(1.0, n_pairs, out=np.zeros(30), where=n_pairs > 0)
    value, _ = optimum(data, query_weight=c[data.qid])
    ranker = RankSVM(query_normalization="pairs", tol=1e-9).fit(data.X, data.y, qid=data.qid)
    assert_allclose(ranker.objective_, value, rtol=1e-6)


@examples(30)
@given(datasets(weights=False), st.data())
def test_a_weight_equals_repetition(case, draw):
    if case.queries.n_pairs == 0:
        return
    u = np.array(draw.draw(st.lists(st.integers(1, 3), min_size=case.n_rows, max_size=case.n_rows)))
    index = np.repeat(np.arange(case.n_rows), u)
    for scale in ("none", "standard"):
        # Tighter than the default: the two may get there by different steps.
        ranker = RankSVM(scale=scale, tol=1e-9)
        weighted = clone(ranker).fit(case.X, case.y, qid=case.qid, sample_weight=u)
        repeated = clone(ranker).fit(case.X[index], case.y[index], qid=case.qid[index])
        assert_allclose(weighted.coef_, repeated.coef_, rtol=1e-4, atol=1e-5)


def test_group_equals_qid_and_the_order_of_rows_does_not_matter(data):
    sizes = np.bincount(data.qid)
    by_qid = RankSVM().fit(data.X, data.y, qid=data.qid)
    by_group = RankSVM().fit(data.X, data.y, group=sizes)
    assert_array_equal(by_qid.coef_, by_group.coef_)
    order = np.random.default_rng(0).permutation(data.n_rows)
    names = np.array([f"q{q}" for q in data.qid])
    shuffled = RankSVM(tol=1e-10).fit(data.X[order], data.y[order], qid=names[order])
    tight = RankSVM(tol=1e-10).fit(data.X, data.y, qid=data.qid)
    assert_allclose(shuffled.coef_, tight.coef_, rtol=1e-4, atol=1e-6)


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


def test_a_frame_with_a_column_qid_is_a_trap(data):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"f": data.X[:, 0], "qid": data.qid})
    with pytest.raises(ValueError, match="column named 'qid'"):
        RankSVM().fit(frame, data.y)


# ---- scores -------------------------------------------------------------------------------------


def test_score_is_pairwise_accuracy_and_needs_the_queries(data):
    ranker = RankSVM().fit(data.X, data.y, qid=data.qid)
    scores = ranker.predict(data.X)
    i, j, _ = pairs_of(data)
    assert_allclose(ranker.score(data.X, data.y, qid=data.qid), np.mean(scores[i] > scores[j]))
    with pytest.raises(ValueError, match=r"score\(\) needs qid.*enable_metadata_routing=True"):
        ranker.score(data.X, data.y)
    with pytest.raises(ValueError, match=r"rank\(\) needs qid"):
        ranker.rank(data.X)
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


def test_weighted_score_equals_repetition(data):
    ranker = RankSVM().fit(data.X, data.y, qid=data.qid)
    u = np.random.default_rng(0).integers(0, 3, data.n_rows)
    index = np.repeat(np.arange(data.n_rows), u)
    assert_allclose(
        ranker.score(data.X, data.y, qid=data.qid, sample_weight=u),
        ranker.score(data.X[index], data.y[index], qid=data.qid[index]),
    )


def test_scaling_by_query_is_part_of_the_model(data, tmp_path):
    ranker = RankSVM(scale="query", tol=1e-10).fit(data.X, data.y, qid=data.qid)
    scaled = Scaling("query").transform(data.rows, data.queries).values
    by_hand = RankSVM(tol=1e-10).fit(scaled, data.y, qid=data.qid)
    assert_allclose(ranker.coef_, by_hand.coef_, rtol=1e-5)
    assert_allclose(ranker.predict(data.X, qid=data.qid), by_hand.predict(scaled), rtol=1e-5)
    with pytest.raises(ValueError, match="scoring needs qid"):
        ranker.predict(data.X)
    ranker.save(tmp_path / "m.json")
    loaded = load_model(tmp_path / "m.json")
    assert_array_equal(loaded.predict(data), ranker.predict(data.X, qid=data.qid))
    one_query = RankSVM(scale="query").fit(data.X, data.y)
    assert_array_equal(one_query.predict(data.X), one_query.predict(data.X, np.zeros(data.n_rows)))


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


def test_a_fit_that_does_not_converge_warns_with_the_remedy(data):
    with pytest.warns(ConvergenceWarning, match=r"did not converge.*raise max_iter"):
        ranker = RankSVM(max_iter=1, tol=1e-12).fit(data.X, data.y, qid=data.qid)
    assert not ranker.converged_
    assert ranker.n_iter_ == 1


# ---- refusals -----------------------------------------------------------------------------------

X3, Y3 = np.arange(6.0).reshape(3, 2), [0, 1, 2]


@pytest.mark.parametrize(
    ("params", "arguments", "error", "message"),
    [
        ({"C": -1.0}, {}, ValueError, "C must be a finite number > 0, got -1.0"),
        ({"C": np.nan}, {}, ValueError, "C must be"),
        ({"C": "1"}, {}, ValueError, "C must be a finite number > 0, got '1'"),
        ({"max_iter": 1.5}, {}, ValueError, "max_iter must be an integer >= 1, got 1.5"),
        ({"scoring": "ndgc"}, {}, ValueError, "unknown metric 'ndgc'"),
        ({"solver": "sgd"}, {}, ValueError, "solver must be 'newton', .* or .*, got 'sgd'"),
        ({"tol": 0.0}, {}, ValueError, "tol must be"),
        ({"max_iter": 0}, {}, ValueError, "max_iter must be an integer >= 1"),
        ({"scale": "robust"}, {}, ValueError, "scale must be 'none', .* got 'robust'"),
        ({"query_normalization": "rows"}, {}, ValueError, "query_normalization must be"),
        ({"n_jobs": 0}, {}, ValueError, "n_jobs must be >= 1"),
        ({"early_stopping": True}, {}, ValueError, "needs validation data: pass X_val"),
        ({"n_iter_no_change": 0}, {}, ValueError, "n_iter_no_change must be >= 1, got 0"),
        ({"scoring": "ndgc"}, {"X_val": X3, "y_val": Y3}, ValueError, "ndgc"),
        ({}, {"X_val": X3}, ValueError, "belong together"),
        ({}, {"y_val": Y3}, ValueError, "belong together"),
        ({}, {"qid_val": Y3}, ValueError, "belong together"),
        ({}, {"eval_group": [[3]]}, ValueError, "eval_group is given without eval_set"),
        ({}, {"eval_set": [(X3, Y3)], "X_val": X3, "y_val": Y3}, ValueError, "not both"),
        ({}, {"eval_set": [(X3, Y3)] * 2, "eval_qid": [Y3]}, ValueError, "1 entries for 2 pairs"),
        ({}, {"X_val": X3, "y_val": Y3, "qid_val": Y3}, ValueError, "training data has no query"),
        ({}, {"qid": [0, 0, 0], "X_val": X3, "y_val": Y3}, ValueError, "has no .* pass qid_val"),
        ({}, {"X_val": X3[:, :1], "y_val": Y3}, ValueError, "1 features, the training rows 2"),
        ({}, {"qid": [0, 0, 0], "group": [3]}, ValueError, "not both"),
        ({}, {"qid": [0, 1, 2]}, NoPairsError, "none of the 3 queries has two different labels"),
        ({}, {"sample_weight": [1, -1, 1]}, ValueError, "sample_weight must be >= 0"),
        ({}, {"query_weight": [1, 2, 2]}, ValueError, "1 and 2 within query 0; .*sample_weight"),
        ({}, {"query_weight": [1, 2]}, ValueError, "2 elements; .* each of 1 queries .* 3 rows"),
        ({}, {"query_weight": [-1]}, ValueError, "query_weight must be >= 0, got -1"),
        ({}, {"query_weight": [1, np.nan, 1]}, ValueError, "query_weight contains NaN"),
        ({}, {"query_weight": {0: 1}}, ValueError, "there is no qid"),
        (
            {},
            {"qid": ["a", "a", "b"], "query_weight": {"a": 1.0}},
            ValueError,
            "no weight for 1 of 2 queries, for instance 'b'",
        ),
        (
            {},
            {"qid": ["a", "b", "a"], "query_weight": [1.0, 1.0, 3.0]},
            ValueError,
            "1 and 3 within query 'a'",
        ),
    ],
)
def test_what_fit_refuses(params, arguments, error, message):
    with pytest.raises(error, match=message):
        RankSVM(**params).fit(X3, Y3, **arguments)


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
