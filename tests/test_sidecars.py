"""Files beside a text: queries, weights, positions."""

from __future__ import annotations

import logging

import numpy as np
import pytest

import linrank
import papers
from linrank.errors import DataFormatError

ROWS = "2 1:1 2:3\n0 1:2 2:1\n1 1:0 2:2\n0 1:4 2:4\n3 1:1 2:1\n"
CSV = "label,a,b\n2,1,3\n0,2,1\n1,0,2\n0,4,4\n3,1,1\n"


@pytest.fixture(params=["data.txt", "data.csv"])
def path(request, tmp_path):
    path = tmp_path / request.param
    path.write_text(CSV if request.param.endswith("csv") else ROWS)
    return path


def beside(path, ending, *numbers):
    path.with_name(path.name + ending).write_text("".join(f"{n}\n" for n in numbers))


@pytest.mark.parametrize("ending", [".query", ".group"])
def test_queries(path, ending, caplog):
    beside(path, ending, 2, 3)
    with caplog.at_level(logging.INFO, "linrank"):
        data = linrank.load(path)
    assert data.queries.offsets.tolist() == [0, 2, 5]
    assert f"{path.name}{ending}" in caplog.text
    assert linrank.load(path, sidecars=False).qid is None


def test_weights_of_rows_and_positions(path):
    beside(path, ".weight", 1, 2, 0, 0.5, 1)
    beside(path, ".position", 1, 2, 3, 1, 2)
    data = linrank.load(path)
    assert data.weight.tolist() == [1, 2, 0, 0.5, 1]
    assert data.position.tolist() == [1, 2, 3, 1, 2]


def test_the_weight_of_a_query_is_that_of_its_pairs(path):
    beside(path, ".group", 2, 3)
    beside(path, ".weight", 4, 9)
    data = linrank.load(path)
    assert data.weight.tolist() == [2, 2, 3, 3, 3]
    by_query = papers.RankSVM(tol=1e-8).fit(
        data.X, data.y, qid=data.qid, query_weight=np.array([4, 4, 9, 9, 9])
    )
    by_row = papers.RankSVM(tol=1e-8).fit(data.X, data.y, qid=data.qid, sample_weight=data.weight)
    np.testing.assert_allclose(by_row.coef_, by_query.coef_, rtol=1e-6)


def test_beside_compressed_text(tmp_path):
    import gzip

    path = tmp_path / "data.txt.gz"
    path.write_bytes(gzip.compress(ROWS.encode()))
    beside(tmp_path / "data.txt", ".query", 1, 4)
    assert linrank.load(path).queries.offsets.tolist() == [0, 1, 5]


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({".query": [2, 2]}, "its 2 queries have 4 rows together, .* has 5"),
        ({".query": [2, 3], ".group": [2, 3]}, "query and .*group both tell the queries"),
        ({".query": [5, 0]}, r"\.query:2: 0 is no number of rows"),
        ({".query": [2.5, 2.5]}, r"\.query:1: 2.5 is no number of rows"),
        ({".query": [2, "x"]}, r"\.query:2: expected one number, got 'x'"),
        ({".weight": [1, 1]}, "2 weights for the 5 rows and 1 queries"),
        ({".weight": [1, 1, 1, -1, 1]}, r"\.weight:4: the weight -1 is below 0"),
        ({".weight": [1, 1, 1, "nan", 1]}, r"\.weight:4: expected one number"),
        ({".position": [1, 1]}, "2 positions for the 5 rows"),
    ],
)
def test_faults(path, files, message):
    for ending, numbers in files.items():
        beside(path, ending, *numbers)
    with pytest.raises(DataFormatError, match=message):
        linrank.load(path)


def test_what_the_data_say_themselves_is_not_said_beside(tmp_path):
    text = tmp_path / "t.csv"
    text.write_text("label,qid,sample_weight,position,a\n1,1,1,1,2\n0,1,1,2,3\n")
    for ending, numbers in ((".query", [2]), (".weight", [1, 1]), (".position", [1, 2])):
        beside(text, ending, *numbers)
        with pytest.raises(DataFormatError, match="sidecars=False"):
            linrank.load(text)
        text.with_name(text.name + ending).unlink()
    assert linrank.load(text).n_rows == 2


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("sizes", ["1e300\n", "9223372036854775807\n9223372036854775807\n6\n"])
def test_sizes_that_no_integer_holds(path, sizes):
    path.with_name(f"{path.name}.query").write_text(sizes)
    with pytest.raises(DataFormatError, match=r"query:1: .* is no number of rows of a query"):
        linrank.load(path)
