"""ONNX: what the export alone has to say, and pipelines that skl2onnx converts."""

import builtins

import numpy as np
import onnxruntime
import pytest
from serving import scores_in
from skl2onnx import to_onnx
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

import linrank
import linrank.onnx
from linrank import LinearModel, RankSVM
from linrank.errors import ExportWarning


class MyRanker(RankSVM):
    """A class that linrank does not know."""


ESTIMATORS = [
    *(RankSVM(), MyRanker(), linrank.FactorizedRankSVM(), linrank.RegularizedRankSVM()),
    *(linrank.SGDRanker(random_state=0), linrank.DominationRanker()),
    *(linrank.RankSVMCV([0.1, 1.0], cv=2), linrank.DominationRankerCV(cv=2)),
    linrank.FactorizedRankSVMCV([0.1, 1.0], cv=2, random_state=0),
    linrank.SGDRankerCV([0.1, 1.0], cv=2, random_state=0),
]
RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 4)) * [1, 10, 0.1, 1] + [0, 5, 0, 100]
Y = (X[:, 0] + RNG.normal(size=60) > 0).astype(int)
QID = np.repeat(np.arange(6), 10)
GAPS = np.where(RNG.random(X.shape) < 0.2, np.nan, X)


@pytest.fixture(scope="module", autouse=True)
def registered():
    return linrank.onnx.register()


def assert_converted(estimator, rows, unit):
    """A fitted ranker, or pipeline with one, scores in onnxruntime as in scikit-learn."""
    estimator = clone(estimator)
    name = type(estimator[-1]).__name__.lower() if hasattr(estimator, "steps") else ""
    estimator.fit(rows, Y, **{f"{name}__qid" if name else "qid": QID})
    session = onnxruntime.InferenceSession(to_onnx(estimator, rows[:1]).SerializeToString())
    (scores,) = session.run(None, {"X": rows})
    assert scores.shape == (len(X), 1)
    assert scores.dtype == (np.float64 if rows.dtype == np.float64 else np.float32)
    expected = estimator.decision_function(rows)
    size = np.abs(expected).max() + 10
    np.testing.assert_allclose(scores[:, 0], expected, rtol=0, atol=unit * size)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("ranker", ESTIMATORS, ids=lambda ranker: type(ranker).__name__)
def test_every_linear_estimator_is_converted(ranker, registered):
    assert type(ranker) in registered
    for dtype, unit in ((np.float32, 2.0**-16), (np.float64, 2.0**-45)):
        assert_converted(make_pipeline(StandardScaler(), ranker), X.astype(dtype), unit)


@pytest.mark.parametrize("missing", ["error", "zero", "mean", "indicator"])
@pytest.mark.parametrize("curves", [None, "quantile", "spline", "step"])
def test_missing_values_and_curves_are_in_the_graph(curves, missing):
    rows = X if missing == "error" else GAPS
    ranker = RankSVM(C=0.1, curves=curves, missing=missing)
    assert_converted(make_pipeline(StandardScaler(), ranker), rows, 1e-9)
    assert_converted(linrank.DominationRanker(curves=curves, missing=missing), rows, 1e-9)


def test_longer_pipelines_and_integers():
    chain = make_pipeline(SimpleImputer(), MinMaxScaler(), RankSVM(missing="mean"))
    assert_converted(chain, GAPS.astype(np.float32), 1e-5)
    assert_converted(RankSVM(), np.round(X * 10).astype(np.int64), 1e-5)


def test_every_class_is_registered_once(registered):
    assert len(set(registered)) == len(registered)
    assert set(linrank.onnx.register()) == set(registered)


def test_what_a_graph_cannot_express_is_said():
    ranker = RankSVM(curves="step", interactions=5, random_state=0).fit(X, Y, qid=QID)
    with pytest.raises(ValueError, match=r"interactions .* no operators .* interactions=0"):
        to_onnx(ranker, X[:1])
    with pytest.warns(ExportWarning, match="scale='query'"):
        to_onnx(RankSVM(scale="query").fit(X, Y, qid=QID), X[:1])
    with pytest.raises(NotFittedError):
        to_onnx(RankSVM(), X[:1])


def test_a_row_that_the_model_refuses_scores_nan():
    rows = np.array([[1.0, 2.0], [np.nan, 1.0], [0.0, 0.0]])
    scores = scores_in("onnx", LinearModel([1.0, 3.0], ["a", "b"]), rows)
    assert np.isnan(scores).tolist() == [False, True, False]


@pytest.mark.parametrize(
    ("package", "export"),
    [
        ("onnx", lambda: LinearModel([1.0], ["a"]).export("onnx")),
        ("skl2onnx", linrank.onnx.register),
    ],
)
def test_without_the_package_its_name_is_said(package, export, monkeypatch):
    real = builtins.__import__

    def refuse(name, *args, **kwargs):
        if name.partition(".")[0] == package:
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(ImportError, match=rf"pip install {package}"):
        export()
