"""What the core cannot trust is refused where it enters: no array or number ends the process."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from linrank import _core

EMPTY = np.empty(0)
TEXT = np.frombuffer(b"1 qid:1 1:2 2:3\n2 qid:1 1:3 2:1\n", dtype=np.uint8)


def i32(*values):
    return np.array(values, np.int32)


def i64(*values):
    return np.array(values, np.int64)


def problem(levels, n_levels):
    return _core.pair_problem(i64(0, len(levels)), levels, n_levels, None, None, None, False)


def no_rows(n_columns):
    return _core.csr_rows(EMPTY, i32(), i64(0), n_columns)


def points_of_nothing():
    pairs = _core.pair_problem(i64(0), i32(), i32(), None, None, None, False)
    preferences = _core.preference_list(i64(), i64(), None, 0)
    return (
        _core.pair_point(pairs, "huber", 0.5, EMPTY, None, 1),
        _core.preference_point(preferences, "huber", 0.5, EMPTY, 1),
    )


@pytest.mark.parametrize("n", [-1, 2**32, 2**62])
def test_side_of_a_square_whose_size_overflows(n):
    with pytest.raises(ValueError, match="n must lie in"):
        _core.cholesky_factor(EMPTY, n)
    with pytest.raises(ValueError, match="n must lie in"):
        _core.cholesky_solve(EMPTY, n, EMPTY)


@pytest.mark.parametrize("n_columns", [2**32, 2**40])
def test_full_hessian_of_too_many_columns(n_columns):
    pair, preference = points_of_nothing()
    with pytest.raises(MemoryError):
        _core.hessian_matrix(no_rows(n_columns), None, pair, 1)
    with pytest.raises(MemoryError):
        _core.preference_hessian_matrix(no_rows(n_columns), None, preference, 1)


@pytest.mark.parametrize("n_columns", [-1, 2**61])
def test_number_of_columns_without_a_size(n_columns):
    with pytest.raises(ValueError, match="n_columns must lie in"):
        no_rows(n_columns)


def test_levels_written_after_the_check():
    levels = i32(0, 1, 0, 1)
    pairs = problem(levels, i32(2))
    levels[:] = 2**30
    with pytest.raises(ValueError, match="level is out of range"):
        _core.pair_point(pairs, "hinge", 1.0, np.zeros(4), None, 1)
    with pytest.raises(ValueError, match="level is out of range"):
        _core.published_point(pairs, np.zeros(4), "direct")


def test_offsets_and_counts_written_after_the_check_do_nothing():
    offsets, n_levels, z = i64(0, 4), i32(2), np.array([0.5, 0.0, 2.0, 1.0])
    pairs = _core.pair_problem(offsets, i32(0, 1, 0, 1), n_levels, None, None, None, False)
    before = _core.pair_point(pairs, "hinge", 1.0, z, None, 1).value
    offsets[:] = 2**40
    n_levels[:] = 2**30
    assert _core.pair_point(pairs, "hinge", 1.0, z, None, 1).value == before > 0


@pytest.mark.parametrize(
    ("n_levels", "message"), [(3, "more levels than rows"), (-5, "levels is negative")]
)
def test_numbers_of_levels(n_levels, message):
    with pytest.raises(ValueError, match=message):
        problem(i32(0, 0)[: 2 if n_levels > 0 else 0], i32(n_levels))
    with pytest.raises(ValueError, match=message):
        _core.count_pairs(i32(), i64(0, 0), i32(n_levels))


@pytest.mark.parametrize("epsilon", [0.0, 1e-20, 1.5, np.nan])
def test_epsilon_whose_band_is_rounding(epsilon):
    with pytest.raises(ValueError, match="epsilon must lie in"):
        _core.pair_point(problem(i32(0, 1), i32(2)), "huber", epsilon, np.zeros(2), None, 1)


def test_labels_without_an_order():
    labels = np.where(np.arange(100) % 3 == 0, np.nan, np.arange(100.0))
    with pytest.raises(ValueError, match="a label is NaN"):
        _core.rank_levels(labels, i64(0, 100), None, 1)


def test_more_threads_than_there_are():
    labels = np.arange(70_000.0) % 997
    many, _ = _core.rank_levels(labels, i64(0, len(labels)), None, 2**31 - 1)
    np.testing.assert_array_equal(many, labels)


def test_pieces_that_are_none_twice_or_out_of_range():
    parser = _core.TextParser64(0, _core.MAX_FEATURE)
    piece, x = parser.parse(TEXT), np.empty((2, 2))
    with pytest.raises(ValueError, match="piece is None"):
        _core.fill_labels([None], EMPTY)
    with pytest.raises(ValueError, match="listed twice"):
        _core.fill_dense([piece, piece], np.empty((4, 2)), 1, 2)
    with pytest.raises(ValueError, match="base must be"):
        _core.fill_dense([piece], x, -(2**63), 1)
    _core.fill_dense([piece], x, 1, 1)
    np.testing.assert_array_equal(x, [[2, 3], [3, 1]])
    _core.fill_dense([piece], x, 1, 1)  # its entries are gone
    np.testing.assert_array_equal(x, np.zeros((2, 2)))


def test_an_order_of_no_rows_is_not_the_identity():
    """None says that positions are rows; an order that names none has no positions."""
    values = np.arange(6.0).reshape(3, 2)
    csr = _core.csr_rows(values.ravel(), i32(0, 1, 0, 1, 0, 1), i64(0, 2, 4, 6), 2)
    for rows in (_core.dense_rows(values), csr):
        assert _core.scores(rows, np.ones(2), i64(), 1).tolist() == []
        assert _core.scores(rows, np.ones(2), None, 1).tolist() == [1.0, 5.0, 9.0]
        assert _core.gradient(rows, EMPTY, i64(), 1).tolist() == [0.0, 0.0]
        with pytest.raises(ValueError, match="r has length 3, expected 0"):
            _core.gradient(rows, np.ones(3), i64(), 1)
        assert _core.columns(rows, i64(), 1).n_rows == 0
        for point in points_of_nothing()[:1]:
            product, image = _core.hessian_product(rows, i64(), point, np.ones(2), 1)
            assert product.tolist() == [0.0, 0.0]
            assert image.tolist() == []
            assert not _core.hessian_matrix(rows, i64(), point, 1).any()


@pytest.mark.parametrize("first_bit", [2**63 - 1, 2**63 - 8, 7])
def test_bits_of_a_bitmap_that_do_not_exist(first_bit):
    column, bits, out = np.ones(2, np.float32), np.full(1, 255, np.uint8), np.empty((2, 1))
    with pytest.raises(ValueError, match="a validity bitmap is too short"):
        _core.interleave_columns([column], [bits], i64(first_bit), out)
    assert _core.interleave_columns([column], [bits], i64(6), out) == (False, False)


@pytest.mark.parametrize("gamma", [-1e-3, float("nan")])
def test_gamma_that_makes_no_kernel(gamma):
    with pytest.raises(ValueError, match="gamma must be >= 0, got"):
        _core.kernel_function("rbf", gamma, 3, 0.0)


def test_a_reader_that_is_read_from_again():
    """What was taken leaves nothing behind: no slot that points into the old table, no line."""
    reader = _core.TrecReader(False)
    for first in (0, 1):
        text = "".join(f"{7 * q + first} 0 d 1\n" for q in range(2000)).encode()
        assert reader.read(np.frombuffer(text, np.uint8)) is None
        query, _, id_offsets, _, _, _, line, _ = reader.take()
        assert query.tolist() == list(range(2000))
        assert len(id_offsets) == 2001
        assert line.tolist() == list(range(1, 2001))


def run_apart(code: str, *, seconds: int = 120) -> str:
    """What a process of its own prints: it may be one that does not survive."""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=seconds, check=False
    )
    assert done.returncode == 0, (done.returncode, done.stderr[-2000:])
    return done.stdout


@pytest.mark.skipif(sys.platform != "linux", reason="others refuse such a size themselves")
def test_more_memory_than_the_machine_can_have():
    """The scores of 2**42 rows without columns: pages would be given until the system ends us."""
    code = """
import numpy as np, resource
from linrank import _core
resource.setrlimit(resource.RLIMIT_CPU, (3, 3))  # where it is not refused, the end comes soon
rows = _core.dense_rows(np.empty((2**42, 0)))
try:
    _core.scores(rows, np.empty(0), None, 1)
except MemoryError:
    print("refused")
"""
    assert run_apart(code) == "refused\n"


@pytest.mark.skipif(sys.platform != "linux", reason="the peak is in bytes elsewhere")
def test_the_hessian_of_distinct_labels_takes_no_more_than_the_rows():
    """Trees with a cell a level would be three times the rows, 61 MB here."""
    code = """
import numpy as np, resource
from linrank import _core
def hessian(n):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, 128), dtype=np.float32)
    levels = rng.permutation(n).astype(np.int32)
    problem = _core.pair_problem(
        np.array([0, n]), levels, np.array([n], np.int32), None, None, None, False
    )
    point = _core.pair_point(problem, "squared_hinge", 1.0, rng.normal(size=n), None, 1)
    rows = _core.dense_rows(X)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    _core.hessian_matrix(rows, None, point, 1)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
hessian(500)
print(hessian(40_000))
"""
    assert int(run_apart(code)) < 25_000  # kB; the rows take 20,000


def test_indices_that_a_callback_or_the_user_writes_to():
    """They were checked once and then read in place: the process ended."""
    code = """
import numpy as np, scipy.sparse as sp
import linrank
rng = np.random.default_rng(0)
A = sp.random(2000, 200, 0.1, format="csr", random_state=0)
y, q = rng.integers(0, 3, 2000), np.repeat(np.arange(100), 20)
truth = linrank.RankSVM(C=1e-2).fit(A.copy(), y, qid=q)
data, scores = linrank.Dataset.of(A, y, qid=q), truth.predict(A)
seen = []
def write(state):
    seen.append(state["n_iter"])
    A.indices.fill(2**30)
    A.indptr[1:] = 2**30
found = linrank.RankSVM(C=1e-2, callback=write).fit(A, y, qid=q)
assert len(seen) > 1
assert np.array_equal(found.coef_, truth.coef_)
assert np.array_equal(truth.predict(data.rows), scores)
assert np.array_equal(truth.predict(data.X), scores)
"""
    run_apart(code)


def test_arrays_that_another_thread_writes_to():
    """Labels, scores and values may change at any moment: the result is wrong, or refused."""
    code = """
import threading, time, warnings
import numpy as np, scipy.sparse as sp
import linrank
warnings.simplefilter("ignore")
rng = np.random.default_rng(0)
A = sp.random(2000, 60, 0.1, format="csr", random_state=0)
y, q, s = rng.normal(size=2000), np.repeat(np.arange(20), 100), rng.normal(size=2000)
kept = [a.copy() for a in (A.indices, A.indptr, y, s, A.data)]
linrank.RankSVM(C=1e-3).fit(A, y, qid=q)  # imports take seconds on a busy machine
done = False
def write():
    while not done:
        A.indices[::3], A.indptr[1::2], A.data[::2] = 2**30, 2**30, 0
        y[::7], s[::5] = np.nan, np.nan
        time.sleep(0.0005)
        for a, b in zip((A.indices, A.indptr, y, s, A.data), kept):
            a[:] = b
        time.sleep(0.003)
writer = threading.Thread(target=write)
writer.start()
outcomes = set()
end = time.perf_counter() + 1
while time.perf_counter() < end:
    for call in (
        lambda: linrank.RankSVM(C=1e-3, n_jobs=2).fit(A, y, qid=q).predict(A),
        lambda: linrank.DominationRanker(max_iter=3).fit(A, y, qid=q),
        lambda: linrank.evaluate(kept[2], s, qid=q),
    ):
        try:
            call()
            outcomes.add("done")
        except ValueError:
            outcomes.add("refused")
done = True
writer.join()
print(sorted(outcomes))
"""
    assert "done" in run_apart(code)
