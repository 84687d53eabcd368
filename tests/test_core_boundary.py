"""What the core cannot trust is refused where it enters: no array or number ends the process."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading

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


# ---- duals of low rank ---------------------------------------------------------------------------


def descent(**changed):
    """Two queries of two rows, with two factors each."""
    arguments = {
        "rows": _core.dense_rows(np.arange(12.0).reshape(4, 3) % 5),
        "order": None,
        "offsets": i64(0, 2, 4),
        "levels": i32(0, 1, 0, 1),
        "n_levels": i32(2, 2),
        "scale": None,
        "bound": np.ones(4),
        "constraint": "box",
        "n_factors": 2,
        "factors": np.full(8, 0.3),
        "seed": 0,
    }
    return _core.factor_descent(**(arguments | changed))


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"offsets": i64(0, 2, 5)}, "query offsets"),
        ({"offsets": i64(0, 3, 2, 4), "n_levels": i32(2, 2, 2)}, "offsets decrease"),
        ({"levels": i32(0, 1, 0, 2)}, "level is out of range"),
        ({"levels": i32(0, 1, 0)}, "levels has length 3, expected 4"),
        ({"n_levels": i32(2)}, "n_levels has length 1, expected 2"),
        ({"order": i64(0, 1, 2, 4)}, "row that does not exist"),
        ({"order": i64(0, 1, 2, -1)}, "row that does not exist"),
        ({"order": i64(0, 1, 2, 0)}, "order names row 0 twice"),
        ({"scale": np.ones(2)}, "scale has length 2, expected 3"),
        ({"scale": np.array([1.0, np.nan, 1.0])}, "a scale is NaN or infinite"),
        ({"bound": np.ones(3)}, "bound has length 3, expected 4"),
        ({"bound": -np.ones(4)}, "a bound is negative"),
        ({"bound": np.full(4, np.inf)}, "a bound is NaN or infinite"),
        ({"constraint": "cube"}, "no constraint 'cube'"),
        ({"n_factors": 0, "factors": EMPTY}, "n_factors must lie in"),
        ({"n_factors": -2}, "n_factors must lie in"),
        ({"n_factors": 2**62}, "n_factors must lie in"),
        ({"n_factors": 3}, "factors has length 8, expected 12"),
        ({"factors": np.full(8, np.inf)}, "a factor is NaN or infinite"),
        ({"factors": np.full(8, np.nan)}, "a factor is NaN or infinite"),
    ],
)
def test_factors_that_do_not_fit(changed, message):
    with pytest.raises(ValueError, match=message):
        descent(**changed)


def test_a_row_of_two_queries_has_no_number_of_its_own_in_each():
    # Columns are counted anew in each query: row 0 would be read with the numbers of the wider one.
    columns = np.concatenate(([1000, 1001], np.arange(1000))).astype(np.int32)
    rows = _core.csr_rows(np.ones(1002), columns, i64(0, 1, 2, 1002), 1002)
    with pytest.raises(ValueError, match="order names row 0 twice"):
        descent(rows=rows, order=i64(0, 1, 2, 0))


def test_columns_beyond_all_memory():
    rows = _core.csr_rows(EMPTY, i32(), i64(0, 0, 0, 0, 0), 2**46)
    with pytest.raises(MemoryError):
        descent(rows=rows)


def test_only_an_epoch_can_be_accepted_and_once():
    factors = descent()
    with pytest.raises(ValueError, match="no epoch to accept"):
        factors.accept()
    start = factors.value()
    factors.epoch(0.0, 1)
    factors.reject()
    with pytest.raises(ValueError, match="no epoch to accept"):
        factors.accept()
    assert factors.value() == start
    reached = factors.epoch(0.0, 1)
    factors.accept()
    with pytest.raises(ValueError, match="no epoch to accept"):
        factors.accept()
    assert factors.value() == reached < start
    assert len(factors.weights()) == 3


@pytest.mark.parametrize("momentum", [np.nan, np.inf])
def test_momentum_without_a_value(momentum):
    with pytest.raises(ValueError, match="momentum is NaN or infinite"):
        descent().epoch(momentum, 1)


def test_factors_of_queries_without_pairs():
    factors = descent(levels=i32(0, 0, 0, 0), n_levels=i32(1, 1))
    assert factors.linear_decrease(2**31 - 1) == factors.epoch(0.5, -1) == 0.0
    nothing = descent(
        rows=no_rows(3), offsets=i64(0), levels=i32(), n_levels=i32(), bound=EMPTY, factors=EMPTY
    )
    assert nothing.linear_decrease(1) == nothing.epoch(0.0, 1) == 0.0


@pytest.mark.parametrize("constraint", ["box", "ball"])
@pytest.mark.parametrize("size", [0.0, 5e-324, 1e-310, 1e-160, 1e300])
def test_factors_of_extreme_size(constraint, size):
    start = np.zeros(8)
    start[::2] = size
    factors = descent(constraint=constraint, factors=start, bound=np.array([1.0, 0.0, 1.0, 2.0]))
    for _ in range(3):
        assert np.isfinite(factors.epoch(0.0, 1))
        factors.accept()
    assert np.isfinite(factors.factors()).all()
    assert np.isfinite(factors.linear_decrease(1))


def test_factors_outlive_the_names_of_their_arrays():
    def make():
        x = np.arange(12.0).reshape(4, 3) % 5
        levels, bound, offsets = i32(0, 1, 0, 1), np.ones(4), i64(0, 2, 4)
        made = descent(rows=_core.dense_rows(x), levels=levels, bound=bound, offsets=offsets)
        levels[:], bound[:], offsets[:] = 2**30, np.nan, 2**40
        return made

    made, expected = make(), descent()
    gc.collect()
    assert made.epoch(0.0, 1) == expected.epoch(0.0, 1)


def test_a_descent_in_two_threads():
    n = 100_000
    factors = descent(
        rows=_core.dense_rows(np.random.default_rng(0).random((n, 20))),
        offsets=i64(0, n),
        levels=np.arange(n, dtype=np.int32) % 5,
        n_levels=i32(5),
        bound=np.ones(n),
        factors=np.full(2 * n, 0.1),
        scale=None,
    )
    refused, values = [], []

    def work():
        for _ in range(10):
            try:
                values.append(factors.epoch(0.0, 1))
            except RuntimeError as error:
                refused.append(str(error))

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(values) + len(refused) == 30
    assert values
    assert np.isfinite(values).all()
    assert all("in use by another thread" in message for message in refused)


def rectangles(**changed):
    """Two queries: 1 x 1 and 2 x 2."""
    arguments = {
        "offsets": i64(0, 2, 5),
        "levels": i32(0, 1, 0, 1, 2),
        "n_levels": i32(2, 3),
        "chosen": i64(0, 1),
        "row_weight": None,
        "query_weight": None,
        "C": 1.0,
    }
    return _core.rectangles(**(arguments | changed))


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"offsets": i64(0, 2, 6)}, "query offsets"),
        ({"levels": i32(0, 1, 0, 1, 3)}, "level is out of range"),
        ({"n_levels": i32(2, 4)}, "more levels than rows"),
        ({"chosen": i64(0, 2)}, "chosen must increase"),
        ({"chosen": i64(-1)}, "chosen must increase"),
        ({"chosen": i64(1, 0)}, "chosen must increase"),
        ({"chosen": i64(0, 0)}, "chosen must increase"),
        ({"levels": i32(0, 0, 0, 1, 2), "n_levels": i32(1, 3)}, "has no pairs"),
        ({"row_weight": np.ones(4)}, "row_weight has length 4, expected 5"),
        ({"row_weight": np.array([1, 1, np.inf, 1, 1])}, "row_weight must be finite"),
        ({"query_weight": np.array([1, np.nan])}, "query_weight must be finite"),
        ({"query_weight": np.array([1.0, -1.0])}, "query_weight must be finite"),
        ({"C": 0.0}, "C must be finite"),
        ({"C": np.inf}, "C must be finite"),
    ],
)
def test_rectangles_that_do_not_fit(changed, message):
    with pytest.raises(ValueError, match=message):
        rectangles(**changed)


def test_buffers_of_rectangles_have_their_lengths():
    at, z, y, rho = rectangles(), np.zeros(5), np.zeros(5), np.ones(2)
    short, bad = np.zeros(4), np.array([1.0, np.nan])
    calls = [
        (at.loss, ([z, short], [y, short], [rho, rho[:1], bad, np.array([1.0, np.inf])], [1])),
        (at.curvature, ([z, short], [y, short], [rho, bad], [z, short], [1])),
        (at.point, ([z, short], [y, short], [rho, bad], [y, short], [1])),
        (at.coefficients, ([y, short], [1])),
        (at.squared_norms, ([y, short], [1])),
        (at.relax, ([y, short], [y, short], [y.copy(), short], [1.0], [1])),
        (at.sums, ([z, short], [y, short], [y, short], [y, short], [rho, bad], [1])),
        (
            at.settle,
            ([0, -1, 2, 2**40], [np.zeros(1), short], *[[0.0]] * 4, [y, short], [y, short]),
        ),
    ]
    for call, choices in calls:
        right = [options[0] for options in choices]
        call(*right)
        for place, options in enumerate(choices):
            for wrong in options[1:]:
                with pytest.raises(ValueError, match=r"has length|rho must be|no such rectangle"):
                    call(*right[:place], wrong, *right[place + 1 :])


def test_buffers_of_rectangles_that_cannot_be_written_to():
    at, fixed = rectangles(), np.zeros(5)
    fixed.flags.writeable = False
    with pytest.raises(TypeError):
        at.point(np.zeros(5), np.zeros(5), np.ones(2), fixed, 1)
    with pytest.raises(TypeError):
        at.relax(fixed, fixed, fixed, 1.0, 1)


def test_the_layout_of_rectangles_is_seen_but_not_changed():
    upper = rectangles().upper  # of rectangles that nobody else holds
    gc.collect()
    np.testing.assert_array_equal(upper, [1, 3, 4])
    with pytest.raises(ValueError, match="read-only"):
        upper[0] = 2**40


def test_rectangles_of_no_query_and_of_a_level_that_has_no_rows():
    none = rectangles(chosen=i64())
    assert none.loss(np.zeros(5), EMPTY, EMPTY, 4)[0] == 0.0
    flat = rectangles(levels=i32(0, 0, 0, 1, 2))  # two levels by count, one by rows
    np.testing.assert_array_equal(flat.offsets, [0, 0, 4])
    value, _, gradient = flat.loss(np.zeros(5), np.zeros(4), np.ones(2), 2)
    assert value == 1.5  # three pairs at their bound, 1 - 1/2 each
    np.testing.assert_array_equal(gradient, [0, 0, 2, 0, -2])


@pytest.mark.filterwarnings("ignore:nanobind")
def test_objects_without_a_value():
    for kind, method in [(_core.Rectangles, "coefficients"), (_core.FactorDescent, "epoch")]:
        with pytest.raises(TypeError):
            kind()
        empty = kind.__new__(kind)
        with pytest.raises((TypeError, RuntimeError)):
            getattr(empty, method)(*([0.0, 1] if method == "epoch" else [EMPTY, 1]))


@pytest.mark.parametrize("work", ["by_pair", "by_row"])
def test_published_factors_that_do_not_fit(work):
    pairs, rows = (
        _core.pair_problem(i64(0, 2), i32(0, 1), i32(2), None, None, None, False),
        _core.dense_rows(np.eye(2)),
    )
    right = [rows, None, pairs, np.ones(2), np.full((2, 3), 0.1), np.zeros(2), work, 0.1]
    wrong = [
        (1, i64(0, 2), "row that does not exist"),
        (0, _core.dense_rows(np.eye(3)), "rows has length 3, expected 2"),
        (3, np.ones(1), "largest has length 1, expected 2"),
        (3, np.array([1.0, -1.0]), "negative or NaN"),
        (3, np.array([1.0, np.nan]), "negative or NaN"),
        (4, np.ones((3, 3)), "V has length 3, expected 2"),
        (5, np.zeros(3), "beta has length 3, expected 2"),
        (6, "by_hand", "no work 'by_hand'"),
    ]
    for place, value, message in wrong:
        with pytest.raises(ValueError, match=message):
            _core.factor_epoch(*right[:place], value, *right[place + 1 :])
    right[4] = np.ones((2, 0))  # no factors, no duals
    assert _core.factor_epoch(*right) == 0.0


# ---- in processes of their own ------------------------------------------------------------------


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
