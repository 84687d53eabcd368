"""linrank.onnx: pipelines that end in a linear ranker, converted by skl2onnx."""

import builtins

import numpy as np
import onnxruntime
import pytest
from skl2onnx import to_onnx
from sklearn.exceptions import NotFittedError
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

import linrank
import linrank.onnx
from linrank.errors import ExportWarning

ESTIMATORS = {
    "ranksvm": linrank.RankSVM(),
    "ranksvmcv": linrank.RankSVMCV([0.1, 1.0], cv=2),
    "factorizedranksvm": linrank.FactorizedRankSVM(),
    "factorizedranksvmcv": linrank.FactorizedRankSVMCV([0.1, 1.0], cv=2, random_state=0),
    "regularizedranksvm": linrank.RegularizedRankSVM(),
    "sgdranker": linrank.SGDRanker(random_state=0),
    "sgdrankercv": linrank.SGDRankerCV([0.1, 1.0], cv=2, random_state=0),
    "dominationranker": linrank.DominationRanker(),
    "dominationrankercv": linrank.DominationRankerCV(cv=2),
}


@pytest.fixture(scope="module", autouse=True)
def registered():
    return linrank.onnx.register()


@pytest.fixture(scope="module")
def judged():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4)) * [1, 10, 0.1, 1] + [0, 5, 0, 100]
    y = (X[:, 0] + rng.normal(size=60) > 0).astype(int)
    return X, y, np.repeat(np.arange(6), 10)


def run(converted, X):
    session = onnxruntime.InferenceSession(converted.SerializeToString())
    (scores,) = session.run(None, {"X": X})
    assert scores.shape == (len(X), 1)
    return scores[:, 0]


@pytest.mark.parametrize("missing", ["error", "mean", "indicator"])
@pytest.mark.parametrize("kind", ["quantile", "spline", "step"])
def test_curves_score_in_onnxruntime_as_in_scikit_learn(kind, missing, judged):
    X, y, qid = judged
    X = X.copy()
    if missing != "error":
        X[::7, 1] = np.nan
    ranker = linrank.RankSVM(C=0.1, curves=kind, n_knots=6, missing=missing)
    pipeline = make_pipeline(StandardScaler(), ranker).fit(X, y, ranksvm__qid=qid)
    found = run(to_onnx(pipeline, X[:1]), X)
    np.testing.assert_allclose(found, pipeline.predict(X), rtol=1e-9, atol=1e-9)
    alone = linrank.DominationRanker(curves=kind, missing=missing).fit(X, y, qid=qid)
    np.testing.assert_allclose(run(to_onnx(alone, X[:1]), X), alone.predict(X), atol=1e-9)


def test_interactions_are_refused(judged):
    X, y, qid = judged
    ranker = linrank.RankSVM(curves="step", interactions=5, random_state=0).fit(X, y, qid=qid)
    with pytest.raises(ValueError, match=r"interactions .* no operators .* interactions=0"):
        to_onnx(ranker, X[:1])


def test_every_linear_estimator_is_registered_once(registered):
    assert len(set(registered)) == len(registered)
    assert {type(estimator) for estimator in ESTIMATORS.values()} <= set(registered)
    assert set(linrank.onnx.register()) == set(registered)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", ESTIMATORS)
def test_a_pipeline_scores_in_onnxruntime_as_in_scikit_learn(name, judged):
    X, y, qid = judged
    pipeline = make_pipeline(StandardScaler(), ESTIMATORS[name])
    pipeline.fit(X, y, **{f"{name}__qid": qid})
    expected = pipeline.decision_function(X)
    size = np.abs(expected).max() + np.abs(pipeline[-1].coef_).sum() * 10
    for dtype, unit in (("float32", 2.0**-20), ("float64", 2.0**-49)):
        scores = run(to_onnx(pipeline, X[:1].astype(dtype)), X.astype(dtype))
        assert scores.dtype == dtype
        np.testing.assert_allclose(scores, expected, rtol=0, atol=unit * size)


@pytest.mark.parametrize("kind", ["zero", "mean", "indicator"])
def test_missing_values_are_filled_in_by_the_graph(kind, judged):
    X, y, qid = judged
    X = np.where(np.random.default_rng(1).random(X.shape) < 0.2, np.nan, X)
    pipeline = make_pipeline(StandardScaler(), linrank.RankSVM(missing=kind))
    pipeline.fit(X, y, ranksvm__qid=qid)
    scores = run(to_onnx(pipeline, X[:1]), X)
    np.testing.assert_allclose(scores, pipeline.decision_function(X), rtol=1e-9, atol=1e-12)


def test_a_longer_pipeline(judged):
    X, y, qid = judged
    X = np.where(np.random.default_rng(1).random(X.shape) < 0.2, np.nan, X).astype(np.float32)
    chain = make_pipeline(SimpleImputer(), MinMaxScaler(), linrank.RankSVM(missing="mean"))
    chain.fit(X, y, ranksvm__qid=qid)
    scores = run(to_onnx(chain, X[:1]), X)
    np.testing.assert_allclose(scores, chain.decision_function(X), rtol=1e-5, atol=1e-4)


def test_integers_are_cast(judged):
    X, y, qid = judged
    whole = np.round(X * 10).astype(np.int64)
    ranker = linrank.RankSVM().fit(whole, y, qid=qid)
    scores = run(to_onnx(ranker, whole[:1]), whole)
    np.testing.assert_allclose(scores, ranker.predict(whole), rtol=1e-5, atol=1e-4)


def test_a_class_derived_from_a_ranker_is_known_after_another_call(judged):
    class MyRanker(linrank.RankSVM):
        pass

    assert MyRanker in linrank.onnx.register()
    X, y, qid = judged
    ranker = MyRanker().fit(X, y, qid=qid)
    np.testing.assert_allclose(run(to_onnx(ranker, X[:1]), X), ranker.predict(X), rtol=1e-9)


def test_what_a_graph_cannot_express_is_warned_about(judged):
    X, y, qid = judged
    ranker = linrank.RankSVM(scale="query").fit(X, y, qid=qid)
    with pytest.warns(ExportWarning, match="scale='query'"):
        to_onnx(ranker, X[:1])


def test_a_ranker_that_is_not_fitted(judged):
    with pytest.raises(NotFittedError):
        to_onnx(linrank.RankSVM(), judged[0][:1])


def test_without_the_package_its_name_is_said(monkeypatch):
    real = builtins.__import__

    def refuse(name, *args, **kwargs):
        if name.startswith("skl2onnx"):
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(ImportError, match=r"pip install skl2onnx"):
        linrank.onnx.register()
