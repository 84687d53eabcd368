"""PyTerrier's learning-to-rank pipelines with our estimators in the place of LightGBM's."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import linrank
from linrank import evaluate, make_ranking

pd = pytest.importorskip("pandas")
pt = pytest.importorskip("pyterrier")

pytestmark = pytest.mark.filterwarnings("ignore:The inplace keyword")  # PyTerrier's own

RANKERS = [
    linrank.RankSVM(C=0.1, early_stopping=True),
    linrank.SGDRanker(random_state=0, n_steps=3000),
    linrank.DominationRanker(),
    linrank.FactorizedRankSVM(random_state=0, max_iter=5),
    linrank.RegularizedRankSVM(max_iter=5),
    linrank.RankSVMCV(),
    linrank.KernelRankSVMCV(Cs=[0.1, 1.0], gammas=[0.1], random_state=0),
]


DATA = make_ranking(n_queries=24, n_features=5, n_levels=3, random_state=5)


@pytest.fixture(scope="module")
def frames():
    """Retrieved documents with features, rows in any order, of training and validation; qrels."""
    ids = pd.DataFrame({"qid": [f"q{q}" for q in DATA.qid], "docno": np.arange(DATA.n_rows)})
    ids["docno"] = "d" + ids["docno"].astype(str)
    results = ids.assign(query="words", score=0.0, rank=0, features=list(np.asarray(DATA.X)))
    qrels = ids.assign(label=DATA.y.astype(int))
    qrels = qrels[qrels["label"] > 0]  # what is not judged has label 0
    is_training = DATA.qid < 16
    shuffled = results[is_training].sample(frac=1.0, random_state=0)
    return shuffled, results[~is_training], qrels


@pytest.mark.parametrize("ranker", RANKERS, ids=str)
@pytest.mark.filterwarnings("ignore")
def test_form_ltr(frames, ranker):
    training, validation, qrels = frames
    pipeline = pt.ltr.apply_learned_model(ranker, form="ltr")
    pipeline.fit(training, qrels, validation, qrels)
    assert ranker.needs_qid_
    assert ranker.n_queries_ == 16
    out = pipeline.transform(validation)
    held_out = DATA.select(DATA.qid >= 16)
    assert_allclose(out["score"], ranker.predict(held_out.X))
    for _, ranked in out.groupby("qid"):
        assert_array_equal(ranked["rank"], (-ranked["score"]).rank(method="first") - 1)
    learnt = evaluate(held_out.y, out["score"], qid=held_out.qid, metrics="pairwise_accuracy")
    assert learnt["pairwise_accuracy"] > 0.6


def test_scaling_by_query_needs_what_pyterrier_does_not_pass(frames):
    training, validation, qrels = frames
    pipeline = pt.ltr.apply_learned_model(linrank.RankSVM(scale="query"), form="ltr")
    pipeline.fit(training, qrels, validation, qrels)
    with pytest.raises(ValueError, match=r"scale='query'\), so scoring needs qid"):
        pipeline.transform(validation)


# ---- the same arguments by hand -----------------------------------------------------------------


def test_folds_and_validation_data_are_too_much():
    with pytest.raises(ValueError, match="eval_set is there to choose by, and cv=3 too"):
        linrank.RankSVMCV(cv=3).fit([[1.0], [2.0]], [0, 1], eval_set=[([[1.0], [2.0]], [0, 1])])
