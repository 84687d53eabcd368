"""PyTerrier's learning-to-rank pipelines with our estimators in the place of LightGBM's."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from linrank import (
    DominationRanker,
    DominationRankerCV,
    FactorizedRankSVM,
    KernelRankSVMCV,
    RankSVM,
    RankSVMCV,
    RegularizedRankSVM,
    SGDRanker,
    SGDRankerCV,
    evaluate,
    make_ranking,
)

pd = pytest.importorskip("pandas")
pt = pytest.importorskip("pyterrier")

pytestmark = pytest.mark.filterwarnings("ignore:The inplace keyword")  # PyTerrier's own

RANKERS = [
    RankSVM(C=0.1),
    RankSVM(C=0.1, early_stopping=True),
    RankSVM(C=0.1, scale="standard"),
    SGDRanker(random_state=0, n_steps=3000),
    DominationRanker(),
    FactorizedRankSVM(random_state=0, max_iter=5),
    RegularizedRankSVM(max_iter=5),
    RankSVMCV(),
    SGDRankerCV(random_state=0, n_steps=3000),
    DominationRankerCV(n_alphas=5),
    KernelRankSVMCV(Cs=[0.1, 1.0], gammas=[0.1], random_state=0),
]


@pytest.fixture(scope="module")
def data():
    return make_ranking(n_queries=24, n_features=5, n_levels=3, random_state=5)


@pytest.fixture(scope="module")
def frames(data):
    """Retrieved documents with features, rows in any order, of training and validation; qrels."""
    ids = pd.DataFrame({"qid": [f"q{q}" for q in data.qid], "docno": np.arange(data.n_rows)})
    ids["docno"] = "d" + ids["docno"].astype(str)
    results = ids.assign(query="words", score=0.0, rank=0, features=list(np.asarray(data.X)))
    qrels = ids.assign(label=data.y.astype(int))
    qrels = qrels[qrels["label"] > 0]  # what is not judged has label 0
    is_training = data.qid < 16
    shuffled = results[is_training].sample(frac=1.0, random_state=0)
    return shuffled, results[~is_training], qrels


@pytest.mark.parametrize("ranker", RANKERS, ids=str)
def test_form_ltr(data, frames, ranker):
    training, validation, qrels = frames
    pipeline = pt.ltr.apply_learned_model(ranker, form="ltr")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pipeline.fit(training, qrels, validation, qrels)
    assert ranker.needs_qid_
    assert ranker.n_queries_ == 16
    out = pipeline.transform(validation)
    held_out = data.select(data.qid >= 16)
    assert_allclose(out["score"], ranker.predict(held_out.X))
    for _, ranked in out.groupby("qid"):
        assert_array_equal(ranked["rank"], (-ranked["score"]).rank(method="first") - 1)
    learnt = evaluate(held_out.y, out["score"], qid=held_out.qid, metrics="pairwise_accuracy")
    assert learnt["pairwise_accuracy"] > 0.6


def test_scaling_by_query_needs_what_pyterrier_does_not_pass(frames):
    training, validation, qrels = frames
    pipeline = pt.ltr.apply_learned_model(RankSVM(scale="query"), form="ltr")
    pipeline.fit(training, qrels, validation, qrels)
    with pytest.raises(ValueError, match=r"scale='query'\), so scoring needs qid"):
        pipeline.transform(validation)


# ---- the same arguments by hand -----------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:the best C")
def test_validation_data_takes_the_place_of_folds(data):
    train, held_out = data.select(data.qid < 16), data.select(data.qid >= 16)
    sizes = [np.unique(part.qid, return_counts=True)[1] for part in (train, held_out)]
    grid = {"Cs": [1e-2, 1e-1, 1.0]}
    by_tuple = RankSVMCV(cv=(held_out.X, held_out.y, held_out.qid), **grid)
    scores = by_tuple.fit(train.X, train.y, qid=train.qid).scores_
    pair = (held_out.X, held_out.y)
    for given in (
        {"eval_set": [pair], "eval_group": [sizes[1]]},
        {"eval_set": pair, "eval_qid": held_out.qid},
        {"eval_set": [(train.X, train.y), pair], "eval_group": sizes},
    ):
        found = RankSVMCV(**grid).fit(train.X, train.y, group=sizes[0], **given)
        assert_array_equal(found.scores_, scores)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"eval_qid": [1, 2]}, "eval_qid is given without eval_set"),
        ({"eval_group": [2]}, "eval_group is given without eval_set"),
        ({"eval_set": []}, "eval_set is empty"),
        ({"eval_set": [([[1.0], [2.0]], [0, 1])], "eval_group": [[3]]}, "group"),
        ({"eval_set": [([[1.0]] * 2, [0, 1])], "eval_group": [[2]], "eval_qid": [[1, 1]]}, "both"),
        ({"eval_set": [([[1.0]], [0])] * 2, "eval_qid": [[1]]}, "1 entries for 2 pairs"),
    ],
)
def test_validation_data_that_does_not_fit_together(given, message):
    with pytest.raises(ValueError, match=message):
        RankSVMCV().fit([[1.0], [2.0]], [0, 1], qid=[1, 1], **given)


def test_folds_and_validation_data_are_too_much():
    with pytest.raises(ValueError, match="eval_set is there to choose by, and cv=3 too"):
        RankSVMCV(cv=3).fit([[1.0], [2.0]], [0, 1], eval_set=[([[1.0], [2.0]], [0, 1])])
