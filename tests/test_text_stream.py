"""Text read block by block: the rows of the whole, in any blocks, batches and short reads."""

import gzip
import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

import linrank
from hypothesis_profiles import examples
from linrank import DataFormatError, LinearModel, load
from linrank.data.rows import CsrRows, DenseRows
from linrank.io.svmlight import MOST_DENSE, TextStream, whole_queries
from linrank.stochastic.descent import Learner
from linrank.stochastic.stream_passes import BLOCK_SIZE, Stream
from linrank.stochastic.streaming import StreamTrainer, number_of_token, numbers_of_ids


class Drops:
    """A stream that gives a few bytes at a time, as a pipe may."""

    def __init__(self, text, sizes):
        self.text, self.sizes, self.n_reads = io.BytesIO(text), sizes, 0

    def read(self, size=-1):
        step = self.sizes[self.n_reads % len(self.sizes)]
        self.n_reads += 1
        return self.text.read(step if size < 0 else min(step, size))


def lines_of(queries):
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
    text = lines_of(queries)
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
    text = lines_of(queries)
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


class Recorder(StreamTrainer):
    """Takes down what it is fed with, and learns nothing."""

    def __init__(self):
        super().__init__([Learner()])
        self.fed = []

    def feed_checked(self, rows, labels, ids):
        self.fed.append((rows, labels, ids))
        return 0

    def check_pairs(self, name="the stream"):
        """Nobody minds."""


def learn(stream):
    """The stream, read to its end."""
    for text, _ in stream:
        stream.learn(text)
    return stream


def read(source, **options):
    return learn(Stream(source, Recorder(), **options))


def as_arrays(stream):
    """(x, labels, ids) of all rows, and the rows of each batch."""
    parts = stream.trainer.fed
    x = np.zeros((sum(len(labels) for _, labels, _ in parts), stream.n_columns), np.float32)
    begin = 0
    for rows, _, _ in parts:
        values = rows.to_user()
        values = values if isinstance(values, np.ndarray) else values.toarray()
        x[begin : begin + len(values), : values.shape[1]] = values
        begin += len(values)
    labels = np.concatenate([labels for _, labels, _ in parts])
    ids = np.concatenate([ids for _, _, ids in parts])
    return x, labels, ids, [(len(y), type(rows), rows.shape[1]) for rows, y, _ in parts]


def text_of(n_rows=60, n_features=5, density=1.0, seed=0, first=1):
    rng = np.random.default_rng(seed)
    lines = []
    for i in range(n_rows):
        features = [j for j in range(first, first + n_features) if rng.random() < density]
        entries = " ".join(f"{j}:{rng.integers(-9, 9) / 8}" for j in features)
        lines.append(f"{rng.integers(3)} qid:{i // 7} {entries} # d{i}\n")
    return "".join(lines).encode()


@examples(60)
@given(
    st.integers(1, 3000),
    st.integers(1, 400),
    st.sampled_from([0.05, 0.4, 1.0]),
    st.integers(0, 1),
    st.integers(0, 5),
)
def test_rows_are_those_of_load(batch_bytes, block_size, density, first, seed):
    """Whatever the blocks, the batches and the short reads of a pipe; and storage and width of
    each batch depend on its rows alone."""
    text = text_of(density=density, first=first, seed=seed) + b"1 qid:99 1:1 5:2\n"
    data = linrank.load(io.BytesIO(text), zero_based=True)
    sizes = np.random.default_rng(seed).integers(1, 50, 97).tolist()
    ways = [(io.BytesIO(text), block_size), (Drops(text, sizes), 1 << 20)]
    shapes = []
    for source, size in ways:
        stream = read(source, batch_bytes=batch_bytes, block_size=size)
        x, labels, ids, shape = as_arrays(stream)
        expected = data.X if isinstance(data.X, np.ndarray) else data.X.toarray()
        assert np.array_equal(x, expected)
        assert np.array_equal(labels, data.y)
        assert np.array_equal(ids, data.qid)
        assert stream.first_feature == int(b" 0:" not in text)
        shapes.append(shape)
    assert shapes[0] == shapes[1]
    # A batch is the lines that begin in so many bytes.
    ends = np.cumsum([len(line) for line in text.splitlines(keepends=True)])
    sizes, begin = [], 0
    while begin < ends[-1]:
        end = ends[min(np.searchsorted(ends, begin + batch_bytes), len(ends) - 1)]
        sizes.append(int(((ends > begin) & (ends <= end)).sum()))
        begin = end
    assert [n for n, _, _ in shapes[0]] == sizes


def test_storage_is_that_of_the_first_batch_until_columns_make_it_absurd():
    def shapes(text, **options):
        found = as_arrays(read(io.BytesIO(text), batch_bytes=500, **options))[3]
        return list(dict.fromkeys((kind, width) for _, kind, width in found))

    dense_text = text_of(64, n_features=4)
    assert shapes(dense_text) == [(DenseRows, 5)]
    # One column more stays dense; an index of a million makes it sparse, for good.
    grown = dense_text + b"1 qid:1 1:1 5:1\n" * 32 + b"1 qid:1 1:1 100000:1\n" + dense_text
    for block_size in (64, 1000, 1 << 20):
        found = shapes(grown, block_size=block_size)
        assert found == [(DenseRows, 5), (DenseRows, 6), (CsrRows, 100_001)]
    sparse_first = b"1 qid:1 1:1 1000:1\n" * 50 + dense_text
    assert {kind for kind, _ in shapes(sparse_first)} == {CsrRows}


def test_a_second_pass_knows_the_columns_of_the_first(tmp_path):
    path = tmp_path / "data"
    path.write_bytes(text_of(40) + b"1 qid:9 9:1\n")
    shapes = as_arrays(read(path, passes=2, batch_bytes=500))[3]
    n = len(shapes) // 2
    assert [width for _, _, width in shapes[:n]] == [6] * (n - 1) + [10]
    assert [width for _, _, width in shapes[n:]] == [10] * n


def test_query_ids_are_numbers_or_hashes_of_their_text():
    text = b"1 qid:7 1:1\n1 qid:a 1:1\n1 qid:7 1:1\n1 qid:-3 1:1\n1 qid:007 1:1\n"
    ids = as_arrays(read(io.BytesIO(text), batch_bytes=14))[2]
    whole = as_arrays(read(io.BytesIO(text)))[2]
    assert np.array_equal(ids, whole)
    assert (ids[0], ids[2], ids[3]) == (7, 7, -3)
    assert len(set(ids.tolist())) == 4
    assert number_of_token(b"a") == ids[1] != number_of_token(b"9223372036854775808")
    assert as_arrays(read(io.BytesIO(b"1 1:1\n0 1:2\n")))[2].tolist() == [0, 0]


def test_ids_of_arrays():
    assert numbers_of_ids(None, 2).tolist() == [0, 0]
    assert numbers_of_ids(np.array([3, -1], np.int32), 2).tolist() == [3, -1]
    assert numbers_of_ids([1.0, 2.0], 2).tolist() == [1, 2]
    strings = numbers_of_ids(["b", "a", "b"], 3)
    assert strings[0] == strings[2] != strings[1]
    assert strings.tolist() == numbers_of_ids(np.array(["b", "a", "b"], object), 3).tolist()
    mixed = numbers_of_ids([("x", 1), "1", 1, b"1"], 4)
    assert len(set(mixed.tolist())) == 4
    for missing in (None, float("nan")):
        with pytest.raises(ValueError, match="qid of row 1 is missing"):
            numbers_of_ids(["a", missing], 2)


# ---- bad text -----------------------------------------------------------------------------------


def fail(text, match, block_size=BLOCK_SIZE, **options):
    with pytest.raises(DataFormatError, match=match):
        read(io.BytesIO(text), block_size=block_size, **options)


@pytest.mark.parametrize("block_size", [1, 50, 1 << 20])
def test_faults_name_their_line(block_size):
    good = b"1 qid:1 1:0.5 2:1\n# a comment\n\n" * 20  # 60 lines
    options = {"block_size": block_size, "batch_bytes": 60}
    fail(good + b"1 qid:1 1:x\n", r"<stream>:61:\d+: ", **options)
    fail(good + b"1 1:2\n", r"<stream>:61:3: no query id", **options)
    fail(good + b"1 qid:1 1:nan\n", r"<stream>:61:\d+: ", **options)
    fail(good + b"1 qid:1 0:1\n", r"<stream>:61:\d+: .*0", index_base="1", **options)
    fail(
        good + b"1 qid:1 1:1 2000000000:1\n",
        r"<stream>:61:13: feature index 2,000,000,000 asks for more weights than the 1,000 .*more",
        most_columns=1000,
        remedy="give more",
        **options,
    )
    fail(good + b"1:2 qid:1 1:1\n", r"has a weight, 'label:weight'; a stream takes none", **options)
    fail(b"", "empty")
    fail(b"# nothing\n", "no line with data")


def test_a_line_without_end_is_refused_in_bounded_memory():
    text = b"1 qid:1 1:1\n" * 5 + b"1 qid:1" + b" " * 100_000
    fail(
        text,
        r"<stream>:6: a line has more than 5,000 bytes; give more",
        longest_line=5000,
        block_size=1000,
        remedy="give more",
    )


def test_damaged_data_come_behind_the_rows_before():
    text = gzip.compress(text_of(2000))[:-3000]
    stream = Stream(io.BytesIO(text), Recorder(), batch_bytes=300, block_size=500)
    with pytest.raises(DataFormatError, match="gzip data end too early; the file is truncated"):
        learn(stream)
    assert len(as_arrays(stream)[1]) > 100
