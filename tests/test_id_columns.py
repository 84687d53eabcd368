"""A table that still holds query ids: a leak in training, a wrong feature in scoring."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from linrank import (
    Dataset,
    DominationRanker,
    KernelRankSVM,
    LinearModel,
    RankSVM,
    RankSVMCV,
    SGDRanker,
)

Y = [0, 1, 0, 1]
IDS = [1, 1, 2, 2]
X = [1.0, 2.0, 5.0, 7.0]
MAKERS = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.table}


@pytest.mark.parametrize("name", ["qid", "QID", "query_id", "QueryId", "group_id", "groupid"])
@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_training_refuses_ids_that_nobody_named(name, make):
    frame = make({"x": X, name: IDS})
    message = rf"column named '{name}' but qid is None; pass it as qid=X\['{name}'\]"
    with pytest.raises(ValueError, match=message):
        Dataset.of(frame, Y)
    with pytest.raises(ValueError, match=message):
        RankSVM().fit(frame, Y)


@pytest.mark.parametrize(
    "learn",
    [
        lambda X, Y: RankSVM().fit_pairs(X, [[1, 0]]),
        lambda X, Y: RankSVMCV(cv=2).fit(X, Y),
        lambda X, Y: DominationRanker().fit(X, Y),
        lambda X, Y: KernelRankSVM().fit(X, Y),
        lambda X, Y: SGDRanker().fit(X, Y),
        lambda X, Y: SGDRanker().partial_fit(X, Y),
        lambda X, Y: RankSVM().fit([[1.0, 2.0], [2.0, 1.0]], [0, 1], X_val=X, y_val=Y),
    ],
)
def test_however_it_learns(learn):
    with pytest.raises(ValueError, match="column named 'query_id' but qid is None"):
        learn(pd.DataFrame({"x": X, "query_id": IDS}), Y)


def test_names_of_other_types_beside_it_do_not_hide_it():
    frame = pd.DataFrame(np.ones((4, 2))).assign(qid=IDS)
    with pytest.raises(ValueError, match="column named 'qid' but qid is None"):
        Dataset.of(frame, Y)


@pytest.mark.parametrize("name", ["group", "query", "qid_length", "n_query_id"])
def test_other_names_are_features(name):
    assert Dataset.of(pd.DataFrame({"x": X, name: IDS}), Y).feature_names == ("x", name)


def test_with_qid_the_column_is_constant_within_queries_and_kept():
    frame = pd.DataFrame({"x": X, "qid": IDS})
    ranker = RankSVM().fit(frame, Y, qid=frame["qid"])
    assert abs(ranker.coef_[1]) < 1e-12
    assert ranker.predict(frame).shape == (4,)  # it was there in training
    assert ranker.model_.predict(frame).shape == (4,)


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
@pytest.mark.parametrize("named", [True, False])
def test_scoring_refuses_ids_that_were_no_feature(make, named):
    """Without names in training, a column of ids in the place of a feature would be scored."""
    columns = {"x": X, "z": X}
    rows = pd.DataFrame(columns) if named else np.column_stack([X, X])
    ranker = RankSVM().fit(rows, Y, qid=IDS)
    frame = make({"qid": IDS, "x": X})
    for score in (ranker.predict, ranker.explain, ranker.model_.predict, ranker.model_.explain):
        with pytest.raises(ValueError, match="column named 'qid', which the model was not trained"):
            score(frame)
    with pytest.raises(ValueError, match="column named 'qid', which the model was not trained"):
        ranker.rank(frame, qid=IDS)
    kernel = KernelRankSVM().fit(rows, Y, qid=IDS).model_
    with pytest.raises(ValueError, match="column named 'qid', which the model was not trained"):
        kernel.predict(frame)
    model = LinearModel([1.0, 2.0], feature_names=["qid", "x"])
    assert model.predict(frame).tolist() == [a + 2 * b for a, b in zip(IDS, X, strict=True)]
