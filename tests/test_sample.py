"""The sample is the same each time, has names, and is worth learning from."""

from __future__ import annotations

import json

import numpy as np
import pytest

import linrank
from linrank import RankSVM, evaluate, make_sample


@pytest.fixture(scope="module")
def sample():
    return make_sample()


def ndcg(data, scores):
    return evaluate(data.y, scores, qid=data.qid, metrics=["ndcg@10"])["ndcg@10"]


def test_it_looks_like_the_data_of_a_shop(sample):
    train = sample["train"]
    assert [data.queries.n_queries for data in sample.values()] == [160, 40, 100]
    assert set(np.unique(train.y)) == {0, 1, 2, 3, 4}
    assert all(" " in query for query in train.qid)
    assert len({docid for data in sample.values() for docid in data.docids}) == 4264
    gaps = np.isnan(train.X).mean(axis=0)
    assert [name for name, gap in zip(train.feature_names, gaps, strict=True) if gap] == ["rating"]
    assert 0.1 < gaps.max() < 0.5


def test_parts_share_no_query(sample):
    train, valid, test = ({*data.qid} for data in sample.values())
    assert not train & valid
    assert not test & (train | valid)


@pytest.mark.parametrize("seed", range(3))
def test_learning_beats_the_best_feature_and_curves_beat_lines(seed):
    sample = make_sample(random_state=seed)
    train, test = sample["train"], sample["test"]
    columns = np.nan_to_num(test.X).T
    single = max(ndcg(test, sign * column) for column in columns for sign in (-1, 1))
    linear = ndcg(test, RankSVM(missing="mean").fit(train).predict(test))
    curved = ndcg(test, RankSVM(missing="mean", curves="quantile").fit(train).predict(test))
    assert linear > single + 0.05
    assert curved > linear + 0.05


def test_a_seed_is_a_sample(sample):
    again, other = make_sample(random_state=0), make_sample(random_state=1)
    for name, data in sample.items():
        np.testing.assert_array_equal(data.X, again[name].X)
        np.testing.assert_array_equal(data.qid, again[name].qid)
        np.testing.assert_array_equal(data.y, again[name].y)
        assert data.docids == again[name].docids
    assert {*sample["train"].qid} != {*other["train"].qid}


def test_the_files_hold_the_sample(tmp_path, cli, sample):
    pytest.importorskip("pyarrow")
    said = cli("sample", tmp_path / "shop", "--json")
    assert json.loads(said.out)["files"] == [
        str(tmp_path / "shop" / f"{name}.csv") for name in sample
    ]
    assert "2,224 rows, 160 queries, 13 features" in said.err
    for name, data in sample.items():
        path = tmp_path / "shop" / f"{name}.csv"
        assert path.stat().st_size < 250_000
        read = linrank.load(path, missing="keep")
        np.testing.assert_array_equal(read.X, data.X)
        np.testing.assert_array_equal(read.y, data.y)
        np.testing.assert_array_equal(read.qid, data.qid)
        assert read.docids == data.docids
        assert read.feature_names == data.feature_names


def test_files_that_are_there_stay(tmp_path, cli):
    (tmp_path / "valid.csv").write_text("mine\n")
    err = cli("sample", tmp_path, status=1).err
    assert "valid.csv is there already; --force replaces it" in err
    assert [path.name for path in tmp_path.iterdir()] == ["valid.csv"]
    cli("sample", tmp_path, "--force", "-q")
    first = (tmp_path / "valid.csv").read_text().partition("\n")[0].replace('"', "")
    assert first.startswith("query,url,grade,bm25_title")
