"""Learning from a stream: steps, reasons for having nothing to learn, stopping and going on."""

import gzip
import io
import pickle

import numpy as np
import pytest
from scipy import sparse

import linrank
from linrank.errors import CheckpointError, DataFormatError, NoPairsError
from linrank.stochastic import checkpoint, streaming
from linrank.stochastic.descent import Learner
from linrank.stochastic.stream_passes import Stream
from linrank.stochastic.streaming import StreamTrainer


def trainer(**options):
    options = {"memory": 200_000, "seed": 3, **options}
    return StreamTrainer([Learner("pegasos", 1e-3)], **options)


def ranking(n_queries=40, seed=0):
    return linrank.make_ranking(n_queries=n_queries, n_features=6, random_state=seed)


# ---- feeding ------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 3, 50, 10_000])
def test_steps_are_those_of_the_rows(size):
    data, model = ranking(10), trainer(steps_per_row=0.7)
    for begin in range(0, data.n_rows, size):
        part = slice(begin, begin + size)
        model.feed(data.X[part], data.y[part], data.qid[part])
    counts = model.counts
    assert (counts.rows, counts.pairs) == (data.n_rows, data.queries.n_pairs)
    # None for a batch without a pair, as are the first rows of queries that come one by one.
    most = 0.7 * (data.n_rows - (10 if size == 1 else 0))
    assert model.n_steps <= most
    assert model.n_steps == int(most) or size < data.n_rows
    assert counts.idle_batches >= 10 or size > 1


def test_large_batches_are_cut(monkeypatch):
    monkeypatch.setattr(streaming, "_BATCH_ROWS", 50)
    data = ranking(30)
    parts = [slice(begin, begin + 50) for begin in range(0, data.n_rows, 50)]
    whole, cut = trainer(), trainer()
    whole.feed(data.X, data.y, data.qid)
    for part in parts:
        cut.feed(data.X[part], data.y[part], data.qid[part])
    assert np.array_equal(whole.weights(), cut.weights())
    assert whole.counts == cut.counts


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array, sparse.csc_matrix])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_anything_that_is_a_matrix_is_food(kind, dtype):
    data = ranking()
    model, expected = trainer(memory=10**6), trainer(memory=10**6)
    model.feed(kind(data.X.astype(dtype)), data.y, [f"q{q}" for q in data.qid])
    expected.feed(data.X, data.y, data.qid)
    np.testing.assert_allclose(model.weights(), expected.weights(), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("n", range(5))
def test_a_pickled_trainer_goes_on(n):
    data, one = ranking(), trainer(memory=30_000, average="uniform")
    for k in range(n):
        one.feed(data.X, data.y, data.qid + 100 * k)
    other = pickle.loads(pickle.dumps(one))
    for model in (one, other):
        model.feed(data.X, data.y, data.qid)
    assert np.array_equal(one.weights(), other.weights())
    assert one.counts == other.counts


@pytest.mark.parametrize(
    ("fed", "message"),
    [
        (([[np.nan, 1.0]], [1], [1]), "contains NaN at row 0, column 0"),
        (([[1.0]], [np.nan], [1]), "y contains NaN at row 0"),
        (([[1e300]], [1], [1]), r"value of 1e\+300; a stream is kept as float32"),
        (([[1.0]], [1], [1, 2]), "qid has 2 elements but there are"),
    ],
)
def test_what_is_no_food(fed, message):
    with pytest.raises(ValueError, match=message):
        trainer().feed(*fed)
    with pytest.raises(ValueError, match="steps_per_row must be"):
        trainer(steps_per_row=np.inf)


# ---- nothing to learn from ----------------------------------------------------------------------


HUNDRED, ZEROS, TENS = np.arange(100), np.zeros(100, int), np.repeat(np.arange(10), 10)


@pytest.mark.parametrize(
    ("options", "fed", "reason"),
    [
        ({}, [], "data.txt: no two rows could be compared: it has no rows"),
        ({}, [ZEROS + 3, ZEROS], "all 100 labels are 3"),
        ({}, [HUNDRED, HUNDRED], "no query id comes twice in 100 rows; check that qid"),
        ({"memory": 5000}, [HUNDRED, HUNDRED], "hardly ever comes again within .* more memory"),
        ({}, [TENS, TENS], "rows of one query have one label each, in 10 queries"),
        ({"sampling": "roc"}, [HUNDRED + 1], "labels are from 1 to 100, all on one side of 0"),
        ({"steps_per_row": 0.001}, [HUNDRED], r"100 rows make no step at steps_per_row=0\.001"),
    ],
)
def test_the_reason_is_given_when_nothing_can_be_compared(options, fed, reason):
    model = trainer(**options)
    if fed:
        model.feed(np.ones((100, 1)), *fed)
    with pytest.raises(NoPairsError, match=reason):
        model.check_pairs("data.txt")
    assert model.n_steps == 0


def test_doubt_when_most_batches_are_idle():
    model = trainer()
    model.feed([[1.0], [2.0]], [0, 1], [1, 1])
    for k in range(20):
        assert (model.doubt() is None) == (k < 15)
        model.feed([[1.0]], [k], [10 + k])
    assert "20 of 21 batches made no pair" in model.doubt()
    model.check_pairs()


# ---- passes, stopping and going on --------------------------------------------------------------


def text_of(n_rows=300, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n_rows, 4))
    labels = (x[:, 0] - x[:, 1] > 0).astype(int) + (x[:, 0] > 1)
    lines = [
        f"{y} qid:{i // 11} " + " ".join(f"{j}:{v:.4f}" for j, v in enumerate(row, 1)) + "\n"
        for i, (row, y) in enumerate(zip(x, labels, strict=True))
    ]
    return "".join(lines).encode()


def stream_run(path, *, passes=2, batch_bytes=1000, options=None, **more):
    # Little memory: rows are forgotten, and which ones must not depend on the checkpoint.
    own = trainer(memory=20_000, **more)
    return Stream(path, own, passes, options or {}, batch_bytes=batch_bytes)


def learn(stream, until=None):
    """Learn to the end, or until so many batches have been learnt; the stream."""
    for text, _ in stream:
        stream.learn(text)
        if stream.trainer.counts.batches == until:
            break
    return stream


def run_in_pieces(make, path, stops):
    """Run and stop behind each of these batches, saving; a new run goes on each time."""
    for stop in stops:
        run = make()
        if stop != stops[0]:
            run.resume(path)
        learn(run, stop).save(path)
    run = make()
    run.resume(path)
    return learn(run)


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
@pytest.mark.parametrize("average", [None, "weighted"])
def test_going_on_gives_the_same_bits(tmp_path, pack, average):
    """Stopped at every batch, once or all the time, in the first pass and in the second."""
    data, saved = tmp_path / "data", tmp_path / "c"
    data.write_bytes(pack(text_of()))

    def make():
        return stream_run(data, average=average)

    whole = learn(make())
    assert whole.trainer.buffer.n_forgotten > 300
    n = whole.trainer.counts.batches
    assert n == 28
    for stops in [[1], [13], [14], [15], [27], [28], range(1, n + 1), [3, 14, 15, 28]]:
        run = run_in_pieces(make, saved, list(stops))
        assert np.array_equal(run.weights(), whole.weights())
        assert run.trainer.counts == whole.trainer.counts
        assert run.trainer.buffer.n_forgotten == whole.trainer.buffer.n_forgotten


def test_columns_that_come_late_and_storage_that_changes(tmp_path):
    """Growing columns, and dense rows that become sparse, in between."""
    data, saved = tmp_path / "data", tmp_path / "c"
    late = b"2 qid:5 1:1 9:1\n1 qid:5 2:1 9:-1\n"
    very_late = b"2 qid:6 1:1 5000:1\n0 qid:6 2:1 4000:1\n" * 20
    data.write_bytes(text_of(100) + late + text_of(100) + very_late + text_of(100))
    whole = learn(stream_run(data))
    assert whole.storage == "csr"
    assert whole.weights().shape == (1, 5000)
    for stop in range(1, whole.trainer.counts.batches + 1):
        run = run_in_pieces(lambda: stream_run(data), saved, [stop])
        assert np.array_equal(run.weights(), whole.weights())


def test_a_finished_run_may_go_on_to_more_passes(tmp_path):
    data, saved = tmp_path / "data", str(tmp_path / "c")
    data.write_bytes(text_of())
    one = learn(stream_run(data, passes=1))
    one.save(saved)
    again = stream_run(data, passes=3)
    again.resume(saved)
    assert (one.is_finished, again.is_finished, again.pass_number) == (True, False, 2)
    three = learn(stream_run(data, passes=3)).weights()
    assert np.array_equal(learn(again).weights(), three)


def test_each_pass_makes_each_pair_once(tmp_path):
    data = tmp_path / "data"
    data.write_bytes(text_of())
    n_pairs = linrank.load(data).queries.n_pairs
    for passes in (1, 3):
        run = learn(Stream(data, trainer(), passes, batch_bytes=1000))
        assert run.trainer.counts.pairs == passes * n_pairs
        assert (run.trainer.buffer.n_rows, run.trainer.buffer.n_forgotten) == (300, 0)


def test_features_are_counted_from_the_first_that_occurs(tmp_path):
    data = tmp_path / "data"
    for text, base, n in ((b" 0:1", 0, 3), (b" 1:1", 1, 2)):
        data.write_bytes(b"1 qid:1%s 2:1\n0 qid:1 2:3\n" % text)
        run = learn(stream_run(data))
        assert (run.first_feature, run.weights().shape) == (base, (1, n))


def test_other_data_are_refused(tmp_path):
    data, other, saved = tmp_path / "data", tmp_path / "other", str(tmp_path / "c")
    data.write_bytes(text_of())
    learn(stream_run(data, options={"--y": 1}), until=17).save(saved)  # in the second pass
    with pytest.raises(CheckpointError, match="written with --x None, now it is 2"):
        stream_run(data, options={"--y": 1, "--x": 2}).resume(saved)
    # Other texts, and batches that do not end where the checkpoint was made.
    texts = (text_of(seed=1), text_of(50), text_of().split(b"\n", 3)[3])
    for text, n_bytes in (*((text, 1000) for text in texts), (text_of(), 1300)):
        other.write_bytes(text)
        run = stream_run(other, batch_bytes=n_bytes, options={"--y": 1})
        run.resume(saved)
        with pytest.raises(CheckpointError, match="is not the data that the checkpoint was made"):
            learn(run)


def test_data_that_change_between_passes(tmp_path, monkeypatch):
    data = tmp_path / "data"
    data.write_bytes(text_of())
    stream, end_pass = stream_run(data), Stream._end_pass

    def change(self):
        end_pass(self)
        data.write_bytes(text_of(301))

    monkeypatch.setattr(Stream, "_end_pass", change)
    with pytest.raises(DataFormatError, match="has changed between two passes: 14,015 bytes"):
        learn(stream)


def test_a_checkpoint_of_something_else(tmp_path):
    saved = str(tmp_path / "c")
    checkpoint.save(saved, {"kind": "cake"})
    with pytest.raises(CheckpointError, match="is a checkpoint, but not of a stream"):
        stream_run("-", passes=1).resume(saved)
    checkpoint.save(saved, {"kind": "stream", "options": {}})
    with pytest.raises(CheckpointError, match=r"c: .* there is no 'trainer' in it"):
        stream_run("-", passes=1).resume(saved)


def test_streams_have_one_pass():
    for source in ("-", io.BytesIO(b"")):
        with pytest.raises(ValueError, match="2 passes need a file that can be opened again"):
            stream_run(source)
    assert learn(stream_run(io.BytesIO(text_of()), passes=1)).trainer.counts.rows == 300


def test_an_endless_stream_without_pairs_does_not_spin(monkeypatch):
    monkeypatch.setattr("linrank.stochastic.stream_passes._PATIENCE", 5000)

    class Endless(io.RawIOBase):
        n = 0

        def read(self, size=-1):
            self.n += 1
            return b"%d qid:%d 1:1\n" % (self.n % 2, self.n)

    with pytest.raises(NoPairsError, match="hardly ever comes again"):
        learn(stream_run(Endless(), passes=1))
