"""convert: every format into every other, in any order and any memory, whole or not at all."""

from __future__ import annotations

import gzip
import io
import os
import tempfile
import threading
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

import linrank
from cli_files import run_code
from hypothesis_profiles import examples
from linrank import Dataset, convert, load
from linrank.data.rows import CsrRows
from linrank.data.words import Comments, Words
from linrank.errors import DataFormatError
from linrank.io import table_files as parquet
from linrank.io import table_reader as parts
from linrank.io.store import grouping
from linrank.io.store.grouping import LEAST_LIMIT, Background, Budget, SortedRuns, convert_text
from linrank.io.svmlight import ReadingOptions
from stored_data import assert_rows, assert_same
from svmlight_reference import parse, texts


def tiny(block=64, batch=400, run=1500, merged=700, **other):
    """A budget with which a few rows are blocks, batches, chunks, runs and merges of their own."""
    sizes = {"limit": 1 << 26, "chunk": 800, "query": 1 << 20, "table": 1 << 20, **other}
    return Budget(block=block, batch=batch, run=run, merged=merged, **sizes)


def convert_within(budget, text, path, dtype="float32", storage="auto", n_threads=1, **others):
    """The store of a text, which may be a pipe."""
    source = io.BytesIO(text) if isinstance(text, bytes) else text
    reading = ReadingOptions.of(dtype, storage, None, "auto")
    return convert_text(source, path, reading, replace(budget, n_threads=n_threads), **others)


def check_equal(store, text, **reading):
    """The store holds the rows of the text, query by query in the order of first appearance."""
    data, found = load(io.BytesIO(text), **reading), store.dataset()
    assert_same(found, data)
    assert (found.n_features, found.index_base) == (data.n_features, data.index_base)


@examples(100)
@given(
    text=texts(12, (4, 12)),
    storage=st.sampled_from(["auto", "dense", "csr"]),
    dtype=st.sampled_from(["float32", "float64"]),
    n_threads=st.sampled_from([1, 2]),
    block=st.sampled_from([1, 40, 10_000]),
)
def test_a_store_equals_what_load_reads(tmp_path_factory, text, storage, dtype, n_threads, block):
    """Also where every other line proves the shape of the first ones wrong, and with many runs."""
    assume(any(parse(text.removeprefix(b"\xef\xbb\xbf")).entries))
    path = tmp_path_factory.mktemp("convert") / "store"
    store = convert_within(tiny(block, run=700), text, path, dtype, storage, n_threads)
    check_equal(store, text, storage=store.storage, dtype=dtype)
    assert os.listdir(path.parent) == ["store"]


def lines_of(n_rows, n_queries, n_features=5, seed=0, shuffled=True, first=1):
    rng = np.random.default_rng(seed)
    queries = np.sort(rng.integers(0, n_queries, n_rows))
    if shuffled:
        rng.shuffle(queries)
    x, labels = rng.integers(0, 100, (n_rows, n_features)), rng.integers(0, 3, n_rows)
    return [
        f"{y} qid:{q} " + " ".join(f"{j}:{v}" for j, v in enumerate(row, first))
        for y, q, row in zip(labels.tolist(), queries.tolist(), x.tolist(), strict=True)
    ]


def text_of(*args, **kwargs):
    return ("\n".join(lines_of(*args, **kwargs)) + "\n").encode()


def test_several_files_are_one_text(tmp_path):
    """A query may go on in the next file; lines are counted in each."""
    text, calls = text_of(400, 30), []
    middle = text.index(b"\n", len(text) // 2) + 1
    (tmp_path / "a.txt").write_bytes(text[:middle])
    (tmp_path / "b.gz").write_bytes(gzip.compress(text[middle:]))
    sources = [tmp_path / "a.txt", str(tmp_path / "b.gz")]
    size = sum(map(os.path.getsize, sources))
    store = convert(sources, tmp_path / "store", progress=lambda *done: calls.append(done))
    check_equal(store, text)
    assert calls[-1] == (size, size)
    for more, message in ((b"1 qid:1 1:1\n1 qid:1 1:x\n", ":2:11: "), (b"1 1:1\n", ":1:3: .*quer")):
        (tmp_path / "c.txt").write_bytes(more)
        with pytest.raises(DataFormatError, match=rf"c\.txt{message}"):
            convert([*sources, tmp_path / "c.txt"], tmp_path / "other")
    assert not (tmp_path / "other").exists()


@pytest.mark.parametrize(
    "late",
    ["9:1", "0:3", "# docid = x", "weight"],
    ids=["a larger index", "an index 0", "a comment", "a weight"],
)
def test_a_late_line_that_proves_the_first_ones_wrong(tmp_path, late):
    """The text is read again; nothing of the first try is left."""
    lines = lines_of(500, 20)
    head, label = lines[-1].split(" ", 2)[:2], lines[-1]
    lines[-1] = f"{head[0]} {head[1]} {late}" if ":" in late else f"{label} {late}"
    if late == "weight":
        lines[-1] = label.replace(" ", ":2.5 ", 1)
    text = ("\n".join(lines) + "\n").encode()
    budget = tiny(batch=2000)
    check_equal(convert_within(budget, text, tmp_path / "s"), text)
    check_equal(convert_within(budget, _pipe(text), tmp_path / "p"), text)
    assert sorted(os.listdir(tmp_path)) == ["p", "s"]


def _pipe(data):
    """The end of a pipe that is read once."""
    out, into = os.pipe()

    def feed():
        with os.fdopen(into, "wb") as file:
            file.write(data)

    threading.Thread(target=feed, daemon=True).start()
    return os.fdopen(out, "rb")


def test_pipes_are_kept_until_they_need_not_be_read_again(tmp_path):
    text = text_of(3000, 50)
    store = convert_within(tiny(1000, 4000, 8000, 8000), _pipe(text), tmp_path / "s")
    check_equal(store, text)
    assert store.n_chunks > 20
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    threading.Thread(target=lambda: fifo.write_bytes(gzip.compress(text)), daemon=True).start()
    check_equal(convert(fifo, tmp_path / "t"), text)
    file = io.BytesIO(b"1 qid:9 77:1\n" + text)  # is read from where it is
    file.readline()
    check_equal(convert(file, tmp_path / "u"), text)


def test_sparse_columns_grow_without_a_second_pass(tmp_path):
    lines = [f"{i % 2} qid:{i // 5} {10 * i + 1}:1" for i in range(500)]
    text, seen = ("\n".join(lines) + "\n").encode(), []
    note = lambda done, total: seen.append(done)  # noqa: E731
    store = convert_within(tiny(batch=500), text, tmp_path / "s", progress=note)
    check_equal(store, text)
    assert (store.storage, store.n_features) == ("csr", 4991)
    assert seen == sorted(seen)
    assert_array_equal(store.statistics.low, 0.0)
    assert_array_equal(store.statistics.n_nonzero, (np.arange(4991) % 10 == 0).astype(int))


def test_short_lines_of_a_dense_store_are_cut_into_batches(tmp_path):
    """A line of two bytes may be a row of hundreds."""
    wide = " ".join(f"{j}:1" for j in range(1, 101))
    text = f"1 {wide}\n".encode() * 20 + b"0\n" * 1000
    budget = tiny(block=4000, batch=8000, query=1 << 24)
    check_equal(convert_within(budget, text, tmp_path / "s", storage="dense"), text)


# ---- limits and faults --------------------------------------------------------------------------


@pytest.mark.parametrize("shuffled", [False, True])
def test_a_query_beyond_the_memory_is_refused(tmp_path, shuffled):
    text = text_of(60, 20, shuffled=shuffled) + b"1 qid:big 1:1\n0 qid:big 1:2\n" * 200
    with pytest.raises(MemoryError, match=r"query big has .* may take 4\.0 kB, a sixth: give"):
        convert_within(tiny(query=4000), text, tmp_path / "s")
    assert os.listdir(tmp_path) == []


def test_too_many_ids_are_refused(tmp_path):
    text = b"".join(b"1 qid:%d 1:1\n" % i for i in range(3000))
    with pytest.raises(MemoryError, match=r"ids of [0-9,]+ queries .* qid is not a row id"):
        convert_within(tiny(table=70_000), text, tmp_path / "s")


ONE, WIDE = b"1 qid:1 1:1\n", b"1 qid:1 1:1\n0 qid:1 1000000:1\n"
REFUSED = [
    (b"# nothing\n\n", {}, "no line with data"),
    (b"1 qid:1\n0 qid:1\n", {}, "none of the 2 rows has a feature"),
    (ONE + b"0 qid:1 1:y\n", {}, "<stream>:2:11: "),
    (ONE + b"0 2:1\n", {}, "<stream>:2:3: "),
    (ONE[:-1] + b" " * 3_000_000, {}, "a line has more than 1,048,576 bytes, the most"),
    (b"\x1f\x8b" + b"x" * 50, {}, "gzip"),
    ([], {}, "nothing to convert"),
    (["-", "-"], {}, "given twice"),
    (ONE, {"memory_limit": "10MB"}, r"memory_limit must be at least 67\.1 MB .*, got 10\.0 MB"),
    (ONE, {"chunk_bytes": "1GB"}, r"give a memory_limit of 4\.0 GB"),
    (ONE, {"storage": "coo"}, "storage must be"),
    (WIDE, {"storage": "dense"}, r"a dense row of 1,000,000 .* use storage='csr'"),
    (WIDE, {"memory_limit": "512MB"}, r"columns take 198\.0 MB, .* give 792\.0 MB"),
]


@pytest.mark.parametrize(("source", "options", "message"), REFUSED, ids=range(len(REFUSED)))
def test_what_becomes_no_store_leaves_nothing(tmp_path, source, options, message):
    options = {"memory_limit": LEAST_LIMIT, **options}
    source = io.BytesIO(source) if isinstance(source, bytes) else source
    with pytest.raises((ValueError, MemoryError), match=message):
        convert(source, tmp_path / "s", **options)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("shuffled", [False, True])
def test_a_full_disk_leaves_nothing(tmp_path, shuffled):
    """A limit on the size of files stands for it: the write fails where the file would grow."""
    (tmp_path / "data.txt").write_bytes(text_of(40_000, 400, 20, shuffled=shuffled))
    code = f"""
import resource, signal
from linrank import convert
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, 1_000_000))
try:
    convert({str(tmp_path / "data.txt")!r}, {str(tmp_path / "s")!r}, memory_limit=1 << 26)
except OSError as error:
    print("refused:", error)
"""
    told = run_code(code)
    assert "File too large while the store was written; what was written is removed" in told
    assert told.rstrip().endswith(repr(str(tmp_path / "s")))
    assert os.listdir(tmp_path) == ["data.txt"]


MEASURED = """
import sys, threading
from linrank import convert
import numpy.random

def anonymous():
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) for line in lines if line.startswith("RssAnon")) * 1024

peak, done = [0], threading.Event()
def sample():
    while not done.wait(0.001):
        peak[0] = max(peak[0], anonymous())

before = anonymous()
thread = threading.Thread(target=sample)
thread.start()
store = convert(sys.argv[1], sys.argv[2], memory_limit=int(sys.argv[3]), n_jobs=2)
done.set()
thread.join()
print(peak[0] - before, store.nbytes)
"""


@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="needs /proc")
@pytest.mark.parametrize("shuffled", [pytest.param(False, marks=pytest.mark.slow), True])
def test_the_memory_limit_holds(tmp_path, shuffled):
    """A store more than twice the limit: peak of the anonymous memory of a process."""
    lines = lines_of(2000, 2000, 300, shuffled=False)
    order = np.random.default_rng(0).permutation(2000 * 60)
    if not shuffled:
        order.sort()
    with open(tmp_path / "data.txt", "w") as file:
        for i in order.tolist():
            label, _, rest = lines[i % 2000].split(" ", 2)
            file.write(f"{label} qid:{i // 50} {rest}\n")
    told = run_code(MEASURED, tmp_path / "data.txt", tmp_path / "s", LEAST_LIMIT)
    peak, size = map(int, told.split())
    assert size > 2 * LEAST_LIMIT
    assert peak < LEAST_LIMIT


def data_of_rows(rows):
    """Rows (number, label, entries) as a data set; entries are a list of small integers."""
    numbers, labels, entries = zip(*rows, strict=True)
    flat = np.array([e for one in entries for e in one], np.int32)
    offsets = np.concatenate([[0], np.cumsum([len(one) for one in entries])])
    sparse = CsrRows(2.0 * flat, flat, offsets, 100)
    comments = Comments.of("c" * len(one) for one in entries)
    return Dataset(sparse, np.array(labels), np.array(numbers, np.int64), None, None, comments)


def rows_of(data):
    sparse = data.rows
    assert sparse.values.tolist() == [2.0 * e for e in sparse.columns.tolist()]
    parts = [part.tolist() for part in np.split(sparse.columns, sparse.offsets[1:-1])]
    assert data.comments.tolist() == ["c" * len(part) for part in parts]
    return list(zip(data.qid.tolist(), data.labels.tolist(), parts, strict=True))


ROWS = st.lists(
    st.tuples(st.integers(0, 6), st.floats(-9, 9), st.lists(st.integers(0, 99), max_size=4)),
    min_size=1,
    max_size=30,
)


@given(rows=ROWS, n_runs=st.integers(1, 5), most=st.integers(1, 400))
def test_a_merge_is_a_stable_sort(rows, n_runs, most):
    """Whatever the runs and the memory; whole queries come together."""
    known = sorted({row[0] for row in rows})  # numbers without a gap, as a table gives them
    rows = [(known.index(number), value, entries) for number, value, entries in rows]
    cuts = np.array_split(np.arange(len(rows)), n_runs)
    parts = [[rows[i] for i in cut] for cut in cuts if len(cut)]
    sizes = np.bincount([row[0] for row in rows], minlength=len(known)) * 100
    with tempfile.TemporaryFile() as file:
        runs = SortedRuns(file)
        for part in parts:
            runs.add([data_of_rows(part)])
        found = list(runs.merge(sizes, most))
    assert [row for data in found for row in rows_of(data)] == sorted(rows, key=lambda row: row[0])
    queries = [set(data.qid.tolist()) for data in found]
    assert sum(map(len, queries)) == len(known)
    for data, which in zip(found, queries, strict=True):
        assert 100 * data.n_rows <= most or len(which) == 1


def test_work_in_the_background_is_in_order_and_its_faults_are_raised():
    seen = []
    with Background() as background:
        for i in range(20):
            background.submit(lambda i=i: seen.append(i))
        background.wait()
        assert seen == list(range(20))

    def work(fault):
        with Background() as background:
            background.submit(lambda: (_ for _ in ()).throw(OSError("no room")))
            if fault:
                raise fault
            background.wait()

    with pytest.raises(OSError, match="no room"):
        work(None)
    with pytest.raises(KeyboardInterrupt):  # not what went wrong behind it
        work(KeyboardInterrupt())


def test_an_impatient_interrupt_still_waits_for_the_thread(monkeypatch):
    """Who leaves closes the files; the thread must not write into others of the same number."""
    done, wait = [], grouping.wait
    begun, go = threading.Event(), threading.Event()
    interrupts = iter([KeyboardInterrupt, KeyboardInterrupt])

    def impatient(calls):
        if (interrupt := next(interrupts, None)) is not None:
            raise interrupt
        go.set()
        return wait(calls)

    def slow():
        begun.set()
        go.wait(10.0)
        done.append(1)

    monkeypatch.setattr(grouping, "wait", impatient)
    background = Background()
    background.submit(slow)
    begun.wait(10.0)
    with pytest.raises(KeyboardInterrupt):
        background.__exit__(KeyboardInterrupt, KeyboardInterrupt(), None)
    assert done == [1]


pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
FILES = ("a.txt", "a.parquet", "a.arrow", "a.csv", "a.tsv.gz", "a.store")
TABLES = ("b.parquet", "b.arrow", "b.csv", "b.tsv.xz")
WORDS = st.text(st.sampled_from("ab7 ,\"'\t\n;ü#|"), min_size=1, max_size=4).map(lambda t: f"i{t}i")
EXTREMES = st.sampled_from([0.0, -0.0, 1e-45, 3.4028235e38, -1.1754944e-38, 0.1, 1 / 3, 16777216.0])


def with_docids(data: Dataset, docids: list[str]) -> Dataset:
    words = Words.of(f"docid = {docid}" for docid in docids)
    return replace(data, comments=Comments(words.text, words.offsets))


@st.composite
def rich_datasets(draw, words=WORDS, dtype="float32"):
    """Queries together, so that stores keep the order; weights, documents and extremes."""
    sizes = draw(st.lists(st.integers(1, 3), min_size=1, max_size=4))
    n_rows, n_features = sum(sizes), draw(st.integers(1, 3))
    ids = draw(st.lists(words, min_size=len(sizes), max_size=len(sizes), unique=True))
    row = st.lists(EXTREMES | st.floats(-2, 2, width=32), min_size=n_features, max_size=n_features)
    X = np.array(draw(st.lists(row, min_size=n_rows, max_size=n_rows)), dtype)
    labels = draw(st.lists(st.sampled_from([0, 1, 2.5, -1e300]), min_size=n_rows, max_size=n_rows))
    weight = draw(st.none() | st.just(np.arange(1, n_rows + 1) / 4))
    names = [f"n{j}" for j in range(n_features)] if draw(st.booleans()) else None
    qid = np.repeat(np.array(ids, dtype=object), sizes)
    return Dataset.of(X, labels, qid=qid, sample_weight=weight, feature_names=names)


@examples(4)
@given(rich_datasets(words=st.sampled_from(["a", "7", "b-ü", "07"])))
def test_every_format_into_every_other(tmp_path_factory, data):
    """Ids without blanks: text and stores take part."""
    folder = tmp_path_factory.mktemp("pairs")
    data = with_docids(data, [f"d{i}" for i in range(data.n_rows)])
    qid = data.qid
    if all(q == "7" for q in qid):
        data = replace(data, qid=np.array([7] * len(qid)))  # as text reads it
    for name in FILES:
        convert(data, folder / name)
    for first, second in product(FILES, FILES):
        target = folder / f"from-{first.replace('.', '-')}-{second}"
        dtype = None if first.endswith("store") else "float32"
        convert(folder / first, target, dtype=dtype)
        assert_rows(load(target), data)


@examples(6)
@given(rich_datasets(), st.data())
def test_tables_hold_any_ids(tmp_path_factory, data, draw):
    """Commas, quotes, tabs, line ends and letters of any kind in ids of queries and documents."""
    folder = tmp_path_factory.mktemp("tables")
    ids = draw.draw(st.lists(WORDS, min_size=data.n_rows, max_size=data.n_rows))
    table = pa.table(
        {"label": data.labels, "qid": data.qid, "docid": ids, "f": data.X[:, 0], "g": data.X[:, -1]}
    )
    source = load(table)
    assert source.docids == ids
    for first, second in product(TABLES, TABLES[::-1]):
        convert(table, folder / first, overwrite=True)
        convert(folder / first, folder / f"to-{second}", overwrite=True)
        found = load(folder / f"to-{second}")
        assert_rows(found, source)
        assert found.feature_names == ("f", "g")
    for target in ("x.txt", "x.store"):
        if any(q.split() != [q] or "#" in q for q in [*data.qid, *ids]):
            continue
        convert(table, folder / target)
        assert_rows(load(folder / target, dtype="float32"), source)


def table_of(n_queries: int, order=None, **columns):
    qid = np.repeat(np.arange(n_queries), 3)
    rng = np.random.default_rng(0)
    table = {
        "qid": qid,
        "label": rng.integers(0, 3, len(qid)),
        "docid": [f"d{i}" for i in range(len(qid))],
        "sample_weight": rng.integers(1, 4, len(qid)) / 2,
        "f": rng.standard_normal(len(qid)).astype(np.float32),
        "g": rng.standard_normal(len(qid)).astype(np.float32),
        **columns,
    }
    order = np.arange(len(qid)) if order is None else order
    return pa.table({name: pa.array(np.asarray(v)[order]) for name, v in table.items()})


def small_parts(monkeypatch):
    """Parts of 1024 rows."""
    monkeypatch.setattr(parquet, "_BATCH_ROWS", 1024)
    monkeypatch.setattr(parts, "PART_BYTES", 1)


@pytest.mark.parametrize("apart", [False, True])
@pytest.mark.parametrize("ids", ["integers", "strings", None])
def test_a_table_of_many_batches_becomes_the_store_of_the_whole(tmp_path, monkeypatch, apart, ids):
    small_parts(monkeypatch)
    table = table_of(1500, np.random.default_rng(1).permutation(4500) if apart else None)
    if ids == "strings":
        table = table.set_column(0, "qid", [[f"q{q}" for q in table["qid"].to_pylist()]])
    elif ids is None:
        table = table.drop_columns(["qid"])
    pq.write_table(table, tmp_path / "t.parquet", row_group_size=2000)
    seen: list[int] = []
    options = {"chunk_bytes": 4000, "progress": lambda done, total: seen.append(done)}
    store = convert(tmp_path / "t.parquet", tmp_path / "store", **options)
    assert len(seen) >= 4
    assert store.feature_names == ("f", "g")
    assert_same(store.dataset(), load(table))
    assert sorted(os.listdir(tmp_path)) == ["store", "t.parquet"]


def test_several_tables_and_texts_are_read_one_after_the_other(tmp_path):
    data = load(table_of(20))
    parts = [data.select(slice(0, 30)), data.select(slice(30, 60))]
    for ending in ("parquet", "csv", "txt"):
        names = [tmp_path / f"{i}.{ending}" for i in range(2)]
        for part, name in zip(parts, names, strict=True):
            convert(part, name)
        for target in (f"{ending}.arrow", f"{ending}.store"):
            convert(names, tmp_path / target)
            assert_rows(load(tmp_path / target), data)
    convert(tmp_path / "0.txt", tmp_path / "limited.csv", memory_limit="64MiB")  # by way of a store
    assert_rows(load(tmp_path / "limited.csv"), parts[0])
    assert not [name for name in os.listdir(tmp_path) if name.startswith(".")]
    for option, value in (("dtype", "float64"), ("label", "y"), ("zero_based", True)):
        with pytest.raises(ValueError, match=f"{option}= says how to read .* source is a store"):
            convert(tmp_path / "txt.store", tmp_path / "a.csv", **{option: value})
    (tmp_path / "text.csv").write_text("qid,label,docid,sample_weight,f,g\nq,1,d,1,0,0\n")
    with pytest.raises(ValueError, match="id_type is object, but int64 in the parts before"):
        convert([tmp_path / "0.csv", tmp_path / "text.csv"], tmp_path / "x.csv")
    with pytest.raises(ValueError, match="sources are of different kinds"):
        convert([tmp_path / "0.txt", tmp_path / "0.csv"], tmp_path / "x.csv")
    with pytest.raises(ValueError, match="one store is converted at a time, got 2"):
        convert([tmp_path / "txt.store"] * 2, tmp_path / "x.csv")


def test_ids_that_turn_out_to_be_text(tmp_path, monkeypatch):
    """Only the last batch shows that ids are strings: the file holds all of them as such."""
    monkeypatch.setattr(parquet, "_BLOCK", 1 << 12)
    monkeypatch.setattr(parts, "PART_BYTES", 1)
    lines = [f"{i // 3},{i % 2},{i}" for i in range(3000)] + ["last,1,7"]
    (tmp_path / "a.csv").write_text("qid,label,f\n" + "\n".join(lines) + "\n")
    convert(tmp_path / "a.csv", tmp_path / "a.parquet")
    assert load(tmp_path / "a.parquet").qid.tolist()[::1500] == ["0", "500", "last"]


def test_missing_values_stay_missing_in_tables(tmp_path):
    table = table_of(2, f=np.array([1, np.nan, 3, 4, 5, 6], np.float32), sample_weight=np.ones(6))
    convert(table, tmp_path / "a.csv")
    found = load(tmp_path / "a.csv", missing="keep").X[:, 0]
    assert_array_equal(found, np.array([1, np.nan, 3, 4, 5, 6], np.float32))
    for target in ("a.txt", "store"):
        with pytest.raises(ValueError, match=r"row 1, column 'f' is missing"):
            convert(tmp_path / "a.csv", tmp_path / target)
        convert(tmp_path / "a.csv", tmp_path / target, missing="zero")
        assert load(tmp_path / target).X[1, 0] == 0
        convert(tmp_path / "a.csv", tmp_path / target, missing="mean", overwrite=True)
        assert load(tmp_path / target).X[1, 0] == np.float32(3.8)


def test_positions_survive_where_there_is_a_place(tmp_path):
    table = table_of(2, position=np.array([3, 2, 1, 1, 2, 3]))
    for name in ("a.parquet", "a.csv"):
        assert convert(table, tmp_path / name).left_out == ()
        assert load(tmp_path / name).position.tolist() == [3, 2, 1, 1, 2, 3]
    left_out = convert(table, tmp_path / "a.txt").left_out
    assert left_out == ("the names of the features", "the positions")
    assert load(tmp_path / "a.txt").position is None
    notes: list[str] = []
    convert(tmp_path / "a.parquet", tmp_path / "store", note=notes.append)
    assert notes[0].startswith("columns: label 'label', query 'qid', ")
    assert notes[1:] == ["a store has no place for positions, which are left out"]
    (tmp_path / "a.txt.position").write_text("3\n2\n1\n1\n2\n3\n")
    convert(tmp_path / "a.txt", tmp_path / "b.parquet")
    assert load(tmp_path / "b.parquet").position.tolist() == [3, 2, 1, 1, 2, 3]


def test_what_lies_beside_a_text_goes_into_the_store(tmp_path):
    (tmp_path / "a.txt").write_text("1 1:1\n0 1:2\n2 1:3\n")
    (tmp_path / "a.txt.query").write_text("2\n1\n")
    store = convert(tmp_path / "a.txt", tmp_path / "store")
    assert store.query_lengths().tolist() == [2, 1]
    alone = convert(tmp_path / "a.txt", tmp_path / "alone", sidecars=False)
    assert alone.query_lengths().tolist() == [3]


def test_judgments_are_written_and_label_what_is_read(tmp_path):
    table = table_of(1, label=[0, 2, 1])
    convert(table, tmp_path / "a.txt")
    convert(table, tmp_path / "out.qrels")
    assert (tmp_path / "out.qrels").read_text() == "0 0 d0 0\n0 0 d1 2\n0 0 d2 1\n"
    relabeled = load(tmp_path / "a.txt", qrels={"0": {"d0": 3, "d2": 4}}, unjudged="drop")
    assert relabeled.labels.tolist() == [3, 4]
    unlabeled = table_of(2).drop_columns(["label"])
    convert(unlabeled, tmp_path / "a.parquet", qrels={"0": {"d1": 2}})
    assert load(tmp_path / "a.parquet").labels.tolist() == [0, 2, 0, 0, 0, 0]
    (tmp_path / "a.run").touch()
    for name, message in (("out.qrels", "holds judgments, not rows"), ("a.run", "holds a run")):
        with pytest.raises(ValueError, match=message):
            load(tmp_path / name)
    with pytest.raises(ValueError, match=r"one source; linrank\.convert joins several"):
        load([tmp_path / "a.txt", tmp_path / "a.txt"])


def test_sparse_rows(tmp_path):
    text = b"1 qid:1 3:0.5\n0 qid:1 900:2 1000:1\n"
    convert(io.BytesIO(text), tmp_path / "a.parquet")
    found = load(tmp_path / "a.parquet", dtype="float32")
    assert found.rows.describe().startswith("CSR float32, 2 × 1000")
    convert(tmp_path / "a.parquet", tmp_path / "a.txt", dtype="float32")
    assert (tmp_path / "a.txt").read_bytes() == b"1 qid:1 3:0.5 1000:0\n0 qid:1 900:2 1000:1\n"
    dense = convert(tmp_path / "a.txt", tmp_path / "a.csv")
    assert (dense.storage, dense.n_features) == ("dense", 1000)
    stored = convert(tmp_path / "a.parquet", tmp_path / "store", storage="dense")
    assert (stored.storage, stored.n_features) == ("dense", 1000)
    again = convert(stored, tmp_path / "again", storage="csr")
    assert (again.storage, again.n_features) == ("csr", 1000)


def test_the_source_is_not_overwritten(tmp_path):
    convert(table_of(2), tmp_path / "a.csv")
    convert(table_of(2), tmp_path / "store")
    for name in ("a.csv", "store"):
        with pytest.raises(ValueError, match="is read and would be overwritten"):
            convert(tmp_path / name, tmp_path / name, overwrite=True)
    assert linrank.load(tmp_path / "a.csv").n_rows == 6


def test_a_fault_in_a_later_batch_names_its_row_and_leaves_nothing(tmp_path, monkeypatch):
    small_parts(monkeypatch)
    labels = np.where(np.arange(4500) == 4000, np.nan, 0)
    pq.write_table(table_of(1500, label=labels), tmp_path / "t.parquet")
    for target in ("a.csv", "store", "a.txt.gz"):
        with pytest.raises(ValueError, match=r"row 928 .* counted from row 3072 of the table"):
            convert(tmp_path / "t.parquet", tmp_path / target)
    assert os.listdir(tmp_path) == ["t.parquet"]


def test_tables_whose_columns_stand_in_another_order_make_no_store(tmp_path):
    """The names of the first were once taken for all: values changed places."""
    for name, columns in (("one", "ab"), ("two", "ba")):
        lines = [f"qid,label,{','.join(columns)}", "1,0,1,2", "1,1,3,4"]
        (tmp_path / f"{name}.csv").write_text("\n".join(lines) + "\n")
    sources = [tmp_path / "one.csv", tmp_path / "two.csv"]
    with pytest.raises(ValueError, match=r"two\.csv: a column is named 'b' where 'a' stood before"):
        linrank.convert(sources, tmp_path / "store")
    assert sorted(os.listdir(tmp_path)) == ["one.csv", "two.csv"]
