"""Callbacks of scikit-learn: what they are told of a fit, and how they end it."""

from __future__ import annotations

import importlib.util
import io
import pickle
import sys
import warnings
from contextlib import redirect_stdout

import numpy as np
import pytest
import sklearn
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from linrank import (
    ConvergenceWarning,
    Dataset,
    DominationRanker,
    FactorizedRankSVM,
    KernelRankSVM,
    QueryKFold,
    RankSVM,
    RegularizedRankSVM,
    SGDRanker,
    convert,
    evaluate,
    make_ranking,
    ranking_scorer,
)
from linrank.estimators import base as sklearn_callbacks

callback = pytest.importorskip("sklearn.callback", reason="scikit-learn >= 1.9 has callbacks")

LINEAR = [
    RankSVM(C=0.1),
    RankSVM(C=0.1, loss="hinge"),
    RankSVM(C=0.1, solver="bundle"),
    RankSVM(C=0.1, scale="standard"),
    RankSVM(C=0.1, scale="query"),
    SGDRanker(random_state=0, n_steps=2000, record="exact"),
    DominationRanker(),
    DominationRanker(penalty="l2"),
    FactorizedRankSVM(random_state=0, max_iter=5),
    RegularizedRankSVM(max_iter=3),
]


class Recorder:
    """Remembers what it was told; stops after ``stop_after`` iterations, fails after ``fail``."""

    def __init__(self, stop_after=None, fail_after=None):
        self.stop_after, self.fail_after = stop_after, fail_after
        self.calls, self.models, self.metadata = [], [], []

    def setup(self, estimator, context):
        self.calls.append("setup")

    def teardown(self, estimator, context):
        self.calls.append("teardown")

    def on_fit_task_begin(self, estimator, context):
        self.calls.append(("begin", context.task_name, context.task_id))

    def on_fit_task_end(
        self, estimator, context, *, X=None, y=None, metadata=None, fitted_estimator=None
    ):
        self.calls.append(("end", context.task_name, context.task_id))
        if context.task_name == "fit":
            return False
        if fitted_estimator is not None:
            self.models.append(fitted_estimator)
            self.metadata.append((X, y, metadata))
        if context.task_id + 1 == self.fail_after:
            raise RuntimeError("as asked")
        return context.task_id + 1 == self.stop_after

    def n_ended(self):
        return sum(call[:2] == ("end", "iteration") for call in self.calls)


@pytest.fixture(scope="module")
def data():
    return make_ranking(n_queries=15, n_features=4, n_levels=3, random_state=2)


def fit(ranker, data, *callbacks):
    ranker = clone(ranker).set_callbacks(*callbacks)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return ranker.fit(data.X, data.y, qid=data.qid)


@pytest.mark.parametrize("ranker", LINEAR, ids=str)
def test_every_iterate_comes_as_a_fitted_estimator(data, ranker):
    recorder = Recorder()
    fitted = fit(ranker, data, recorder)
    assert_array_equal(fitted.coef_, fit(ranker, data).coef_)
    # With one task that begins after the last iterate, and ends empty.
    n = recorder.n_ended() - 1
    assert (
        n
        == len(recorder.models)
        == len(fitted.history_["objective"]) - (0 if isinstance(ranker, SGDRanker) else 1)
    )
    steps = [call for k in range(n + 1) for call in (("begin", k), ("end", k))]
    told = [(what, k) for what, name, k in recorder.calls[2:-2] if name == "iteration"]
    assert told == steps
    assert recorder.calls[:2] == ["setup", ("begin", "fit", 0)]
    assert recorder.calls[-2:] == [("end", "fit", 0), "teardown"]
    last = recorder.models[-1]
    assert last is not fitted
    if not isinstance(ranker, FactorizedRankSVM):  # which keeps the best iterate, not the last
        scores = last.predict(data.X, qid=data.qid)
        assert_allclose(scores, fitted.predict(data.X, qid=data.qid), rtol=1e-12)
    X, y, metadata = recorder.metadata[0]
    assert X is data.X
    assert y is data.y
    assert_array_equal(metadata["qid"], data.qid)
    assert not [name for name in vars(fitted) if "watch" in name or "context" in name]


def test_the_iterates_are_those_of_the_callback_parameter(data):
    states, recorder = [], Recorder()
    ranker = RankSVM(C=0.1, scale="minmax", callback=lambda state: states.append(state["w"]))
    fitted = fit(ranker, data, recorder)
    for w, model in zip(states[1:], recorder.models, strict=True):
        assert_array_equal(model.coef_, fitted.model_.scaling.fold(w))


@pytest.mark.parametrize("ranker", [*LINEAR, KernelRankSVM(random_state=0)], ids=str)
def test_a_callback_stops_the_fit(data, ranker):
    recorder = Recorder(stop_after=1)
    fitted = fit(ranker, data, recorder)
    assert recorder.n_ended() == 2
    if isinstance(ranker, SGDRanker):
        assert fitted.stopped_ == "callback"
    else:
        assert fitted.n_iter_ == 1
        assert not fitted.converged_


def test_missing_values_are_known_to_the_iterates(data):
    X = np.array(data.X)
    X[::3, 0] = np.nan
    for missing in ("zero", "mean", "indicator"):
        recorder = Recorder()
        ranker = RankSVM(C=0.1, missing=missing, scale="standard").set_callbacks(recorder)
        ranker.fit(X, data.y, qid=data.qid)
        assert_allclose(recorder.models[-1].predict(X), ranker.predict(X), rtol=1e-12)


def test_a_kernel_has_no_iterates_to_show(data):
    recorder = Recorder()
    fit(KernelRankSVM(random_state=0), data, recorder)
    assert recorder.n_ended() > 1
    assert recorder.models == []


def test_group_sizes_become_ids(data):
    recorder = Recorder()
    sizes = np.diff(data.queries.offsets)
    ranker = RankSVM(C=0.1).set_callbacks(recorder).fit(data.X, data.y, group=sizes)
    assert_array_equal(recorder.metadata[0][2]["qid"], np.repeat(np.arange(15), sizes))
    assert recorder.models[-1].needs_qid_
    assert ranker.needs_qid_


def test_preferences_and_stores_are_watched_too(data, tmp_path):
    recorder = Recorder()
    RankSVM().set_callbacks(recorder).fit_pairs(data.X, [[0, 1], [3, 2]])
    assert recorder.n_ended() > 1
    assert recorder.metadata[0][1:] == (None, None)
    text = tmp_path / "data.txt"
    text.write_text(
        "".join(
            f"{y:g} qid:{q} " + " ".join(f"{j + 1}:{v!r}" for j, v in enumerate(x.tolist())) + "\n"
            for x, y, q in zip(data.X, data.y, data.qid, strict=True)
        )
    )
    store = convert(text, tmp_path / "store")
    for limit in (None, "8GB"):
        recorder = Recorder()
        RankSVM(C=0.1, memory_limit=limit).set_callbacks(recorder).fit(store)
        assert recorder.n_ended() > 1
        assert recorder.metadata[-1] == (None, None, None)
        assert recorder.models[-1].needs_qid_
        assert recorder.models[-1].predict(data.X).shape == (data.n_rows,)


def test_what_a_callback_raises_ends_the_fit_and_tears_down(data):
    recorder = Recorder(fail_after=2)
    ranker = RankSVM(C=0.1).set_callbacks(recorder)
    with pytest.raises(RuntimeError, match="as asked"):
        ranker.fit(data.X, data.y, qid=data.qid)
    assert recorder.calls[-1] == "teardown"
    assert "_fit_watch" not in vars(ranker)
    bad = Recorder()
    with pytest.raises(ValueError, match="C must be"):
        RankSVM(C=-1.0).set_callbacks(bad).fit(data.X, data.y, qid=data.qid)
    assert bad.calls[-1] == "teardown"


def test_a_scoring_monitor_follows_the_measure(data):
    scorer = ranking_scorer("ndcg@10")
    monitor = callback.ScoringMonitor(scoring={"ndcg@10": scorer})
    recorder = Recorder()
    fitted = fit(RankSVM(C=0.1), data, monitor, recorder)
    rows = [row for row in monitor.get_logs().data if row["task_name"] == "iteration"]
    expected = [scorer(model, data.X, data.y, qid=data.qid) for model in recorder.models]
    assert_allclose([row["ndcg@10"] for row in rows], expected)
    (whole,) = (row for row in monitor.get_logs().data if row["task_name"] == "fit")
    assert whole["ndcg@10"] == scorer(fitted, data.X, data.y, qid=data.qid)


def test_a_data_set_is_scored_as_a_whole(data):
    """With the names of its features, and with missing values as the model fills them in."""
    X = np.array(data.X)
    X[::3, 0] = np.nan
    names = [f"f{j}" for j in range(data.n_features)]
    whole = Dataset.of(X, data.y, qid=data.qid, feature_names=names, missing="keep")
    for given, scale in ((data, "query"), (whole, "standard"), (whole.filled("mean"), "none")):
        monitor = callback.ScoringMonitor(scoring={"ndcg@10": ranking_scorer("ndcg@10")})
        recorder = Recorder()
        ranker = RankSVM(C=0.1, scale=scale, missing="error" if given is data else "mean")
        ranker.set_callbacks(monitor, recorder)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            ranker.fit(given)
        rows = [row for row in monitor.get_logs().data if row["task_name"] == "iteration"]
        scores = ranker.model_.predict(data.X if given is data else X, qid=data.qid)
        expected = evaluate(data.y, scores, qid=data.qid, metrics="ndcg@10")["ndcg@10"]
        assert_allclose(rows[-1]["ndcg@10"], expected)
        assert recorder.models[-1].needs_qid_
        assert recorder.metadata[0][0] is given


def test_a_progress_bar(data):
    pytest.importorskip("rich")
    out = io.StringIO()
    with redirect_stdout(out):
        fit(RankSVM(C=0.1), data, callback.ProgressBar())
    assert "RankSVM - fit" in out.getvalue()
    assert "100%" in out.getvalue()


def test_they_come_through_pipelines_and_searches(data):
    class Everywhere(Recorder):
        max_propagation_depth = None

    recorder = Everywhere()
    with sklearn.config_context(enable_metadata_routing=True):
        pipeline = make_pipeline(StandardScaler(), RankSVM(C=0.1)).set_callbacks(recorder)
        pipeline.fit(data.X, data.y, qid=data.qid)
        assert recorder.n_ended() > 1
        own = Recorder()
        search = GridSearchCV(
            RankSVM().set_callbacks(own), {"C": [0.1, 1.0]}, cv=QueryKFold(2), scoring=None
        )
        search.fit(data.X, data.y, qid=data.qid)
    assert own.calls.count("setup") == own.calls.count("teardown")


def test_without_callbacks_nothing_changes(data):
    ranker = RankSVM(C=0.1).set_callbacks(Recorder()).set_callbacks()
    ranker.fit(data.X, data.y, qid=data.qid)
    assert_array_equal(pickle.loads(pickle.dumps(ranker)).coef_, ranker.coef_)
    with pytest.raises(TypeError, match="FitCallback"):
        ranker.set_callbacks(print)


@pytest.mark.parametrize("callbacks", [(), (Recorder(),)])
def test_a_warning_points_at_the_caller(data, callbacks):
    for ranker in (RankSVM(max_iter=1), DominationRanker(max_iter=1), KernelRankSVM(max_iter=1)):
        with pytest.warns(ConvergenceWarning) as caught:
            ranker.fit(data.X, data.y, qid=data.qid)
        assert caught[0].filename == __file__


def test_older_versions_have_none(monkeypatch):
    """Below scikit-learn 1.9 the estimators are what they are without callbacks."""
    monkeypatch.setitem(sys.modules, "sklearn.callback", None)
    spec = importlib.util.spec_from_file_location("without_callbacks", sklearn_callbacks.__file__)
    older = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(older)

    class Ranker(older.CallbackSupport):
        @older.with_callbacks
        def fit(self, X, y=None):
            return X, y, hasattr(self, "_fit_watch")

    assert Ranker().fit(1, y=2) == (1, 2, False)
    assert not hasattr(Ranker(), "set_callbacks")
    with pytest.raises(AttributeError, match=r"set_callbacks needs scikit-learn 1\.9 or newer"):
        _ = Ranker().set_callbacks
