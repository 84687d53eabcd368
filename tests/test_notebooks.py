"""What is met in a notebook: frames, tables, short forms, names, splits, errors, progress."""

import inspect
import logging
import pickle
import subprocess
import sys
import warnings
from functools import partial
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

import linrank
from linrank import RankSVM, RankSVMCV, WeightsDisplay, evaluate, train_test_split
from linrank.data.frames import feature_name

DATA = linrank.make_ranking(n_queries=24, n_features=4, noise=1.0, random_state=2)


FRAME = pd.DataFrame(DATA.X, columns=["bm25", "age", "clicks", "length"])


# ---- tables and short forms ----------------------------------------------------------------------


def test_an_evaluation_is_a_frame_and_a_table():
    found = evaluate(DATA.y, DATA.X[:, 0], qid=DATA.qid, metrics=["ndcg@10", "mrr"])
    frame = found.to_frame()
    assert (list(frame.columns), frame.index.name) == (["ndcg@10", "mrr"], "query")
    assert_array_equal(frame.index, found.query_ids)
    assert frame["mrr"].mean() == pytest.approx(found["mrr"])
    page = found._repr_html_()
    assert page.startswith('<div class="linrank-sheet')
    assert f"{found['mrr']:.4f}" in page
    assert "gain 2^y - 1" in page
    assert evaluate([1, 0], [2, 1], metrics="mrr").to_frame().index.tolist() == [0]


def test_long_things_have_short_forms():
    path = linrank.ranksvm_path(DATA.X, DATA.y, qid=DATA.qid, Cs=[0.01, 0.1, 1.0])
    assert repr(path) == "<PathResult: 3 models, C 0.01 to 1, 4 features, 3 certified>"
    assert repr(linrank.Preferences.of([[2, 0], [1, 0]])) == "<Preferences: 2 pairs of 3 rows>"
    weighted = linrank.Preferences.of([[2, 0], [1, 0]], [1.0, 0.5])
    assert repr(weighted) == "<Preferences: 2 pairs of 3 rows, weight 1.5 in all>"


# ---- names of features ---------------------------------------------------------------------------


def test_the_names_of_a_model_select_the_columns_of_a_frame(tmp_path):
    for ranker in (RankSVM(C=0.01), RankSVM(C=0.01, curves="quantile"), linrank.KernelRankSVM()):
        ranker.fit(FRAME, DATA.y, qid=DATA.qid)
        path = tmp_path / "model.json"
        ranker.save(path)
        for model in (ranker.model_, linrank.load_model(path)):
            assert isinstance(model.feature_names, list)
            wider = FRAME.assign(more=1.0)[["more", *FRAME.columns[::-1]]]
            assert_array_equal(model.predict(wider[model.feature_names]), model.predict(FRAME))
            with pytest.raises(ValueError, match=r"in the order of model\.feature_names"):
                model.predict(FRAME[FRAME.columns[::-1]])


def test_a_column_that_is_no_number_is_named():
    dated = FRAME.assign(judged_at=np.datetime64("2026-01-01", "s"))
    with pytest.raises(ValueError, match=r"'judged_at' of X .* not numeric; leave it out, or conv"):
        RankSVM().fit(dated, DATA.y, qid=DATA.qid)


def test_features_without_names_are_called_alike_everywhere(tmp_path, cli):
    """By the number that the file has; of a matrix, by the column."""
    assert feature_name(["a"], 0) == "a"
    assert [feature_name(None, 2), feature_name(None, 2, 1)] == ["feature 2", "feature 3"]
    assert feature_name(None, 2, 1, alone=False) == "3"
    linrank.convert(DATA, tmp_path / "train.txt")
    read = linrank.load(tmp_path / "train.txt")
    ranker = RankSVM(C=0.01).fit(read)
    largest = int(np.argmax(np.abs(ranker.coef_)))
    called = feature_name(None, largest, read.index_base)
    assert f"weights: {called} " in WeightsDisplay.from_estimator(ranker).description
    assert called in linrank.report(read, model=ranker).to_html()
    ranker.save(tmp_path / "model.json")
    listed = cli(f"inspect {tmp_path / 'model.json'}").out.splitlines()
    assert any(line.split()[-1:] == [called.split()[1]] for line in listed)


# ---- what scikit-learn and SHAP look for ---------------------------------------------------------


def test_weights_have_an_intercept_and_importances():
    ranker = RankSVM(C=0.01).fit(DATA)
    assert ranker.intercept_ == 0.0
    assert_allclose(ranker.predict(DATA.X), DATA.X @ ranker.coef_ + ranker.intercept_)
    expected = np.abs(ranker.coef_) * DATA.X.std(axis=0, dtype=np.float64)
    assert_allclose(ranker.feature_importances_, expected / expected.sum(), rtol=1e-10)
    assert_allclose(ranker.model_.importances, expected, rtol=1e-10)
    assert linrank.LinearModel([1.0, -2.0]).importances is None
    curved = RankSVM(C=0.01, curves="quantile").fit(DATA)
    assert not hasattr(curved, "feature_importances_")
    assert not hasattr(curved, "intercept_")
    assert not hasattr(RankSVM(), "feature_importances_")
    assert RankSVMCV(Cs=[0.01], cv=2).fit(DATA).intercept_ == 0.0
    stepped = linrank.SGDRanker(random_state=0).partial_fit(DATA.X, DATA.y, qid=DATA.qid)
    assert stepped.intercept_ == 0.0


def test_permutation_importance_by_a_scorer_with_the_queries():
    from sklearn.inspection import permutation_importance

    ranker = RankSVM(C=0.01).fit(DATA)
    with pytest.raises(ValueError, match=r"functools\.partial\(ranking_scorer\('ndcg@10'\), qid="):
        permutation_importance(ranker, DATA.X, DATA.y)
    scorer = partial(linrank.ranking_scorer("pairwise_accuracy"), qid=DATA.qid)
    found = permutation_importance(ranker, DATA.X, DATA.y, scoring=scorer, random_state=0)
    shuffled = DATA.X.copy()
    shuffled[:, 0] = np.random.default_rng(0).permutation(shuffled[:, 0])
    drop = ranker.score(DATA.X, DATA.y, qid=DATA.qid) - ranker.score(shuffled, DATA.y, qid=DATA.qid)
    assert found.importances_mean[0] == pytest.approx(drop, rel=0.5)
    assert drop > 0.05


# ---- training and test queries -------------------------------------------------------------------


def test_splits_keep_queries_whole():
    order = np.random.default_rng(0).permutation(DATA.n_rows)
    X, y, qid = DATA.X[order], DATA.y[order], DATA.qid[order]
    X_train, X_test, y_train, y_test, train, test = train_test_split(X, y, qid=qid, random_state=0)
    assert len(np.unique(test)) == 6
    assert not set(train) & set(test)
    assert_array_equal(X_train, X[np.isin(qid, train)])  # rows keep their order
    assert_array_equal(y_test, y[np.isin(qid, test)])
    assert len(X_train) + len(X_test) == len(y_train) + len(y_test) == len(X)
    again, other = (train_test_split(X, y, qid=qid, random_state=seed)[5] for seed in (0, 1))
    assert_array_equal(again, test)
    assert set(other) != set(test)
    assert len(np.unique(train_test_split(X, qid=qid, test_size=5)[3])) == 5
    assert len(np.unique(train_test_split(X, qid=qid, train_size=0.5)[2])) == 12


def test_splits_of_anything():
    train, test = train_test_split(DATA, random_state=0)
    assert isinstance(train, linrank.Dataset)
    assert train.n_rows + test.n_rows == DATA.n_rows
    assert not set(train.qid) & set(test.qid)
    whole = FRAME.assign(query=[f"q{q}" for q in DATA.qid], grade=DATA.y)
    left, right = train_test_split(whole, qid="query", random_state=0)
    assert sorted(left.index.union(right.index)) == list(range(len(whole)))
    assert not set(left["query"]) & set(right["query"])
    arrays = sp.csr_array(DATA.X), list(DATA.y)
    sparse, _, labels, _, ids, _ = train_test_split(
        *arrays, qid=list(whole["query"]), random_state=0
    )
    assert sp.issparse(sparse)
    assert sparse.shape[0] == len(labels) == len(ids) == len(left)
    assert labels == left["grade"].tolist()


@pytest.mark.parametrize(
    ("arrays", "options", "told"),
    [
        ((), {}, "nothing to split"),
        (([1.0, 2.0],), {}, r"needs qid, .*sklearn\.model_selection\.train_test_split"),
        (([1.0, 2.0],), {"qid": [7, 7]}, "all rows are of one query"),
        (([1.0, 2.0],), {"qid": [1, 2, 3]}, "inconsistent numbers of samples"),
        ((linrank.Dataset.of([[1.0], [2.0]], [0, 1], qid=[1, 2]), [0]), {}, "pass it alone"),
    ],
)
def test_splits_that_cannot_be_made(arrays, options, told):
    with pytest.raises(ValueError, match=told):
        train_test_split(*arrays, **options)


# ---- arguments of other libraries ----------------------------------------------------------------


def test_arguments_of_other_libraries_may_have_their_defaults():
    plain = RankSVM(C=0.01).fit(DATA.X, DATA.y, qid=DATA.qid)
    theirs = {"eval_metric": None, "verbose": False, "callbacks": None, "feature_name": "auto"}
    found = RankSVM(C=0.01).fit(DATA.X, DATA.y, qid=DATA.qid, **theirs)
    assert_array_equal(found.coef_, plain.coef_)
    RankSVMCV(Cs=[0.1], cv=2).fit(DATA.X, DATA.y, qid=DATA.qid, **theirs)


@pytest.mark.parametrize(
    ("ranker", "theirs"),
    [
        (RankSVM(C=0.01), {"eval_metric": "ndcg", "eval_at": [10], "verbose": 0}),
        (RankSVM(C=0.01, scoring="map", verbose=1), {"eval_metric": "map", "verbose": True}),
        (RankSVM(early_stopping=True, n_iter_no_change=7), {"early_stopping_rounds": 7}),
        (RankSVMCV(Cs=[0.1], cv=2), {"eval_metric": "ndcg@10"}),
    ],
)
def test_arguments_of_other_libraries_may_say_what_parameters_say(ranker, theirs):
    own = {"qid": DATA.qid}
    if getattr(ranker, "early_stopping", False):
        own |= {"eval_set": [(DATA.X, DATA.y)], "eval_qid": [DATA.qid]}
    ranker.fit(DATA.X, DATA.y, **own, **theirs)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"eval_at": [1, 3, 5]}, r"no eval_at; .*RankSVM\(scoring='ndcg@10'\)"),
        ({"eval_metric": "map"}, r"no eval_metric; .*RankSVM\(scoring='ndcg@10'\)"),
        ({"eval_metric": ["ndcg"]}, "no eval_metric; "),
        ({"eval_at": False}, "no eval_at; "),
        ({"early_stopping_rounds": 9}, r"early_stopping=True, n_iter_no_change=9\)"),
        ({"callbacks": [print]}, r"no callbacks; pass RankSVM\(callback=function\)"),
        ({"verbose": True}, r"no verbose; pass RankSVM\(verbose=True\)"),
        ({"init_score": [0.0]}, "no init_score; scores have no offset"),
        ({"base_margin": [0.0]}, "no base_margin; scores have no offset"),
        ({"sample_weight_eval_set": [[1.0]]}, "measures weigh no rows"),
        ({"eval_names": ["a"]}, "no eval_names; history_ calls the sets val0_"),
        ({"categorical_feature": [0]}, "OneHotEncoder"),
        ({"xgb_model": "m"}, "warm_start=True"),
        ({"sample_weigth": None}, "unexpected .*'sample_weigth'; did you mean 'sample_weight'"),
        ({"nonsense": 1}, r"RankSVM\.fit\(\) got an unexpected keyword argument 'nonsense'$"),
    ],
)
def test_arguments_of_other_libraries_are_refused_by_the_name_of_ours(given, told):
    with pytest.raises(TypeError, match=told):
        RankSVM().fit(DATA.X, DATA.y, qid=DATA.qid, **given)


@pytest.mark.parametrize("kind", [RankSVM, RankSVMCV, linrank.SGDRanker, linrank.KernelRankSVM])
def test_a_mistyped_parameter_is_named_with_the_class_of_the_user(kind):
    with pytest.raises(TypeError, match=f"^{kind.__name__} has no parameter 'sclae'; did you mean"):
        kind(sclae="none")
    with pytest.raises(TypeError, match=f"^{kind.__name__} has no parameter 'n_estimators'$"):
        kind(n_estimators=100)


def test_a_subclass_takes_the_same_parameters():
    class Ours(RankSVM):
        pass

    assert Ours(2.0, scale="none").get_params() == RankSVM(2.0, scale="none").get_params()
    with pytest.raises(TypeError, match=r"^Ours has no parameter 'Cs'; did you mean 'C'"):
        Ours(Cs=1.0)

    class Other(RankSVM):
        def __init__(self, strength=1.0):
            super().__init__(C=strength)

    assert Other(strength=3.0).C == 3.0
    assert list(inspect.signature(RankSVM).parameters)[:2] == ["C", "early_stopping"]


# ---- errors and warnings -------------------------------------------------------------------------


def test_our_errors_have_one_base_and_stay_what_they_were():
    ours = {name: value for name, value in vars(linrank.errors).items() if name.endswith("Error")}
    base = ours.pop("LinrankError")
    assert len(ours) == 7
    for kind in ours.values():
        assert issubclass(kind, base)
        assert issubclass(kind, (ValueError, RuntimeError))
    with pytest.raises(base):
        RankSVM().fit([[1.0], [2.0]], [0, 0])


def test_filters_of_scikit_learn_know_our_warning():
    from sklearn.exceptions import ConvergenceWarning

    assert issubclass(linrank.ConvergenceWarning, ConvergenceWarning)
    assert linrank.ConvergenceWarning is linrank.errors.ConvergenceWarning
    kept = pickle.loads(pickle.dumps(linrank.ConvergenceWarning("once")))
    assert type(kept) is linrank.ConvergenceWarning
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", category=ConvergenceWarning)
        RankSVM(C=10.0, max_iter=1, tol=1e-9).fit(DATA)
    with pytest.warns(ConvergenceWarning):
        RankSVM(C=10.0, max_iter=1, tol=1e-9).fit(DATA)
    with pytest.raises(AttributeError, match="has no attribute 'Nothing'"):
        linrank.errors.Nothing  # noqa: B018


def test_errors_load_no_scikit_learn_until_the_warning_is_asked_for():
    program = """
import sys
import linrank.errors, linrank.ranksvm.path, linrank.parts.parts
assert "sklearn" not in sys.modules
linrank.ConvergenceWarning
assert "sklearn" in sys.modules
"""
    subprocess.run([sys.executable, "-c", program], check=True)


# ---- progress ------------------------------------------------------------------------------------


def test_progress_goes_to_the_logger_to_a_notebook_or_to_standard_error(
    capsys, caplog, monkeypatch
):
    RankSVM(C=0.01).fit(DATA)
    with caplog.at_level(logging.INFO, logger="linrank"):
        RankSVM(C=0.01, verbose=1).fit(DATA)
        linrank.SGDRankerCV(alphas=[0.1], cv=2, random_state=0, verbose=1).fit(DATA)
    assert capsys.readouterr() == ("", "")
    assert caplog.messages[0].startswith("iteration 0, objective ")
    assert {record.name for record in caplog.records} == {"linrank"}
    assert not any("linrank" in message for message in caplog.messages)  # it is there once
    shell = SimpleNamespace(kernel=object())
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    RankSVM(C=0.01, verbose=1).fit(DATA)
    out, err = capsys.readouterr()
    assert (out.partition(",")[0], err) == ("linrank: iteration 0", "")
    del shell.kernel  # IPython in a terminal
    RankSVMCV(Cs=[0.01], cv=2, verbose=1).fit(DATA)
    out, err = capsys.readouterr()
    assert (out, err[:14]) == ("", "linrank: fold ")
