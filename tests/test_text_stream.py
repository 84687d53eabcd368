"""Text read block by block: the rows of the whole, queries cut where they end, in any blocks."""

from __future__ import annotations

import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from hypothesis_profiles import examples
from linrank import DataFormatError, LinearModel, load
from linrank.io.svmlight import MOST_DENSE, TextStream, whole_queries


class Drops:
    """A stream that gives a few bytes at a time, as a pipe may."""

    def __init__(self, text, sizes):
        self.text, self.sizes, self.n_reads = io.BytesIO(text), sizes, 0

    def read(self, size=-1):
        step = self.sizes[self.n_reads % len(self.sizes)]
        self.n_reads += 1
        return self.text.read(step if size < 0 else min(step, size))


def text_of(queries):
    """Lines of queries of (label, {feature: value}, comment) rows; ids are neither sorted nor
    numbers only."""
    lines = []
    for k, rows in enumerate(queries):
        for label, values, comment in rows:
            pairs = " ".join(f"{j}:{v!r}" for j, v in sorted(values.items()))
            lines.append(f"{label} qid:{'x' * (k % 2)}{9 - k} {pairs}{comment}\n")
    return "".join(lines).encode()


value = st.floats(-100, 100, width=32)
row = st.tuples(
    st.integers(0, 4),
    st.dictionaries(st.integers(1, 12), value, min_size=1, max_size=8),
    st.sampled_from(["", " # docid = d7", " # other"]),
)
problems = st.lists(st.lists(row, min_size=1, max_size=4), min_size=1, max_size=8)
drops = st.lists(st.integers(1, 60), min_size=1, max_size=5)


@pytest.mark.parametrize("n_features", [12, 7, MOST_DENSE + 1])
@examples(25)
@given(problems, drops)
def test_the_rows_are_those_of_the_whole_text(n_features, queries, sizes):
    text = text_of(queries)
    whole = load(io.BytesIO(text), zero_based=False, n_features=400, storage="dense")
    stream = TextStream(Drops(text, sizes), n_features, zero_based=False)
    parts = list(stream)
    is_dense = n_features <= MOST_DENSE
    assert all(part.rows.is_sparse != is_dense for part in parts)
    found = [part.X if is_dense else part.X.toarray() for part in parts]
    assert_array_equal(np.concatenate(found), whole.X[:, :n_features])
    assert_array_equal(np.concatenate([part.labels for part in parts]), whole.labels)
    ids = [stream.id_of(q) for part in parts for q in part.qid.tolist()]
    assert ids == list(map(str, whole.qid))
    highest = max(j for rows in queries for _, values, _ in rows for j in values)
    assert (stream.beyond is not None) == (highest > n_features)
    assert stream.n_rows == whole.n_rows


@examples(25)
@given(problems, drops, st.sampled_from([12, MOST_DENSE + 1]))
def test_queries_come_whole_and_score_alike_in_any_blocks(queries, sizes, n_features):
    text = text_of(queries)
    model = LinearModel(np.linspace(-1, 1, n_features) / 3)
    parts = list(whole_queries(TextStream(Drops(text, sizes), n_features, zero_based=False)))
    seen = [query for part in parts for query in np.unique(part.qid).tolist()]
    assert seen == list(range(len(queries)))
    at_once = list(TextStream(io.BytesIO(text), n_features, zero_based=False))
    assert len(at_once) == 1
    scores = np.concatenate([model.predict(part) for part in parts])
    assert_array_equal(scores, model.predict(at_once[0]))
    docids = [docid for part in parts for docid in part.docids or [None] * part.n_rows]
    assert docids == (at_once[0].docids or [None] * at_once[0].n_rows)


def test_a_line_is_there_before_the_next_one_is_written():
    class Asked:
        def __init__(self):
            self.lines = [b"1 1:2\n", b"0 1:3\n"]

        def read(self, size=-1):
            asked.append(len(self.lines))
            return self.lines.pop(0) if self.lines else b""

    asked = []
    first = next(iter(TextStream(Asked(), 1)))
    assert (first.X.tolist(), asked) == ([[2.0]], [2])


def test_a_query_that_comes_back_is_an_error_not_two_queries():
    text = b"1 qid:a 1:1\n1 qid:b 1:1\n1 qid:a 1:1\n"
    for sizes in ([1000], [12]):
        stream = TextStream(Drops(text, sizes), 1)
        with pytest.raises(DataFormatError, match=r"query a comes back .* line 3, .*--no-stream"):
            list(whole_queries(stream))


def test_faults_name_the_line_of_the_stream():
    late = b"1 1:5 2:6\n", b"1 0:4 1:5\n"
    assert next(iter(TextStream(io.BytesIO(late[1] + late[0]), 2))).X.tolist()[0] == [4.0, 5.0]
    for text, message in (
        (b"".join(late), r"feature 0 behind line 1, .*--index-base 0"),  # 1 was taken for the first
        (b"1 1:2    \n0 1:1\n1 x\n", "<stream>:3:3: "),
        (b"", "empty file"),
    ):
        with pytest.raises(DataFormatError, match=message):
            list(TextStream(Drops(text, [10]), 2))
    parts = list(whole_queries(TextStream(Drops(b"1 1:2\n0 1:1\n", [6]), 1)))
    assert [part.n_rows for part in parts] == [2]  # without ids, all rows are one query
