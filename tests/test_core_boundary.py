"""What the core cannot trust is refused where it enters: no array or number ends the process."""

import gc
import sys
from functools import partial

import numpy as np
import pytest

from cli_files import run_code
from linrank import _core
from test_descent import check_refuses_threads

EMPTY = np.empty(0)
TEXT = np.frombuffer(b"1 qid:1 1:2 2:3\n2 qid:1 1:3 2:1\n", dtype=np.uint8)


def i32(*values):
    return np.array(values, np.int32)


def i64(*values):
    return np.array(values, np.int64)


def problem(levels, n_levels):
    return _core.pair_problem(i64(0, len(levels)), levels, n_levels, None, None, None, False)


def two(gain=None, adjacent=False):
    """One pair of two rows."""
    return _core.pair_problem(i64(0, 2), i32(0, 1), i32(2), None, None, gain, adjacent)


def hinge(z=(0.0, 0.0), near=None, pairs=None):
    """A point of the hinge of it."""
    return _core.pair_point(pairs or two(), "hinge", 1.0, np.array(z), near, 1)


def no_rows(n_columns):
    return _core.csr_rows(EMPTY, i32(), i64(0), n_columns)


def points_of_nothing():
    pairs = _core.pair_problem(i64(0), i32(), i32(), None, None, None, False)
    preferences = _core.preference_list(i64(), i64(), None, 0)
    return (
        _core.pair_point(pairs, "huber", 0.5, EMPTY, None, 1),
        _core.preference_point(preferences, "huber", 0.5, EMPTY, 1),
    )


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


def test_a_reader_that_is_read_from_again():
    """What was taken leaves nothing behind: no slot that points into the old table, no line."""
    reader = _core.TrecReader(False)
    for first in (0, 1):
        text = "".join(f"{7 * q + first} 0 d 1\n" for q in range(2000)).encode()
        assert reader.read(np.frombuffer(text, np.uint8)) is None
        query, (_, id_offsets), _, _, line, _ = reader.take()
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


def test_factors_of_queries_without_pairs():
    flat = {"levels": i32(0, 0, 0, 0), "n_levels": i32(1, 1)}
    none = {"levels": i32(), "n_levels": i32(), "offsets": i64(0), "bound": EMPTY}
    for nothing in (flat, {**none, "rows": no_rows(3), "factors": EMPTY}):
        factors = descent(**nothing)
        assert factors.linear_decrease(2**31 - 1) == factors.epoch(0.5, -1) == 0.0
    assert published(V=np.ones((2, 0))) == published(V=np.ones((2, 0)), work="by_row") == 0.0


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
        own = {"levels": i32(0, 1, 0, 1), "bound": np.ones(4), "offsets": i64(0, 2, 4)}
        made = descent(rows=_core.dense_rows(np.arange(12.0).reshape(4, 3) % 5), **own)
        for array, value in zip(own.values(), (2**30, np.nan, 2**40), strict=True):
            array[:] = value
        return made

    made, expected = make(), descent()
    gc.collect()
    assert made.epoch(0.0, 1) == expected.epoch(0.0, 1)


def test_a_descent_in_two_threads():
    n, values = 100_000, []
    factors = descent(
        rows=_core.dense_rows(np.random.default_rng(0).random((n, 20))),
        **{"offsets": i64(0, n), "levels": np.arange(n, dtype=np.int32) % 5, "n_levels": i32(5)},
        **{"bound": np.ones(n), "factors": np.full(2 * n, 0.1), "scale": None},
    )

    def work():
        values.extend(factors.epoch(0.0, 1) for _ in range(10))

    check_refuses_threads("FactorDescent", work, factors.value)
    assert np.isfinite(values).all()


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


def test_the_layout_of_rectangles_is_seen_but_not_changed():
    upper = rectangles().upper  # of rectangles that nobody else holds
    gc.collect()
    assert upper.tolist() == [1, 3, 4]
    assert not upper.flags.writeable


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


# ---- one call, refused --------------------------------------------------------------------------


def rows(n_rows=3, n_columns=2):
    return _core.dense_rows(np.ones((n_rows, n_columns)))


def fixed(n=5):
    """A vector that cannot be written to."""
    made = np.zeros(n)
    made.flags.writeable = False
    return made


def wide_rows():
    """Three rows of one entry, and one of a thousand: columns are counted anew in each query."""
    columns = np.concatenate(([1000, 1001], np.arange(1000))).astype(np.int32)
    return _core.csr_rows(np.ones(1002), columns, i64(0, 1, 2, 1002), 1002)


def interleave(columns, valid):
    return _core.interleave_columns(columns, valid, np.zeros(1, np.int64), np.empty((2, 1)), 1)


def gather(width, offsets, order):
    to = np.empty(2, np.uint8)
    _core.gather_spans(np.arange(8, dtype=np.uint8), width, offsets, order, to)
    return to.tolist()


def published(**changed):
    """An epoch of the published factorization, over one pair and two rows."""
    arguments = {
        "rows": _core.dense_rows(np.eye(2)),
        "order": None,
        "pairs": problem(i32(0, 1), i32(2)),
        "largest": np.ones(2),
        "V": np.full((2, 3), 0.1),
        "beta": np.zeros(2),
        "work": "by_pair",
    }
    return _core.factor_epoch(*(arguments | changed).values(), 0.1)


FACTORS = [
    ({"offsets": i64(0, 2, 5)}, "query offsets"),
    ({"offsets": i64(0, 3, 2, 4), "n_levels": i32(2, 2, 2)}, "offsets decrease"),
    ({"levels": i32(0, 1, 0, 2)}, "level is out of range"),
    ({"levels": i32(0, 1, 0)}, "levels has length 3, expected 4"),
    ({"n_levels": i32(2)}, "n_levels has length 1, expected 2"),
    ({"order": i64(0, 1, 2, 4)}, "row that does not exist"),
    ({"order": i64(0, 1, 2, -1)}, "row that does not exist"),
    ({"order": i64(0, 1, 2, 0)}, "order names row 0 twice"),
    ({"scale": np.ones(2)}, "scale has length 2, expected 3"),
    ({"scale": np.array([1.0, np.nan, 1.0])}, "a scale must be finite"),
    ({"bound": np.ones(3)}, "bound has length 3, expected 4"),
    *(
        ({"bound": bound}, "bound must be finite and")
        for bound in (-np.ones(4), np.full(4, np.inf))
    ),
    ({"constraint": "cube"}, "no constraint 'cube'"),
    *(({"n_factors": n}, "n_factors must lie in") for n in (0, -2, 2**62)),
    ({"n_factors": 3}, "factors has length 8, expected 12"),
    *(({"factors": np.full(8, f)}, "a factor must be finite") for f in (np.inf, np.nan)),
]
RECTANGLES = [
    ({"offsets": i64(0, 2, 6)}, "query offsets"),
    ({"levels": i32(0, 1, 0, 1, 3)}, "level is out of range"),
    ({"n_levels": i32(2, 4)}, "more levels than rows"),
    *(({"chosen": i64(*c)}, "chosen must increase") for c in ((0, 2), (-1,), (1, 0), (0, 0))),
    ({"levels": i32(0, 0, 0, 1, 2), "n_levels": i32(1, 3)}, "has no pairs"),
    ({"row_weight": np.ones(4)}, "row_weight has length 4, expected 5"),
    ({"row_weight": np.array([1, 1, np.inf, 1, 1])}, "row_weight must be finite"),
    *(({"query_weight": np.array([1, w])}, "query_weight must be fi") for w in (np.nan, -1.0)),
    *(({"C": C}, "C must be finite") for C in (0.0, np.inf)),
]
REFUSED = [
    *((message, partial(descent, **changed)) for changed, message in FACTORS),
    *((message, partial(rectangles, **changed)) for changed, message in RECTANGLES),
    # Numbers without a size, or of one that is beyond all memory.
    *(("n must lie in", lambda n=n: _core.cholesky_factor(EMPTY, n)) for n in (-1, 2**32, 2**62)),
    ("n must lie in", lambda: _core.cholesky_solve(EMPTY, 2**32, EMPTY)),
    *(("n_columns must lie in", lambda n=n: no_rows(n)) for n in (-1, 2**61)),
    *(
        (MemoryError, lambda n=n: _core.hessian_matrix(no_rows(n), None, points_of_nothing()[0], 1))
        for n in (2**32, 2**40)
    ),
    (
        MemoryError,
        lambda: _core.hessian_matrix(no_rows(2**32), None, points_of_nothing()[1], 1),
    ),
    (MemoryError, lambda: descent(rows=_core.csr_rows(EMPTY, i32(), i64(*[0] * 5), 2**46))),
    # Queries and levels.
    ("code is out of range", lambda: _core.group_rows(i64(0, 2), 2)),
    ("offsets do not match", lambda: _core.rank_levels(np.zeros(2), i64(0, 3), None)),
    ("offsets decrease", lambda: _core.rank_levels(np.zeros(2), i64(0, 3, 2), None)),
    ("differ in length", lambda: _core.rank_levels(np.zeros(2), i64(0, 2), i64(0))),
    ("row that does not exist", lambda: _core.rank_levels(np.zeros(2), i64(0, 2), i64(0, 2))),
    ("a label is NaN", lambda: _core.rank_levels(np.array([0, np.nan]), i64(0, 2), None)),
    (
        "a score is NaN",
        lambda: _core.ranks_within_queries(np.array([1.0, np.nan]), i64(0, 2), None),
    ),
    ("level is out of range", lambda: _core.count_pairs(i32(0, 1), i64(0, 2), i32(1))),
    ("more levels than rows", lambda: problem(i32(0, 0), i32(3))),
    ("levels is negative", lambda: problem(i32(), i32(-5))),
    ("more levels than rows", lambda: _core.count_pairs(i32(), i64(0, 0), i32(3))),
    ("do not match", lambda: _core.scale_queries(rows(), i64(0, 2), None, 1)),
    ("row that does not exist", lambda: _core.scale_queries(rows(), i64(0, 3), i64(0, 1, 3), 1)),
    # Numbers that make no loss, no kernel, no step.
    *(
        (
            "epsilon must lie in",
            lambda e=e: _core.pair_point(
                problem(i32(0, 1), i32(2)), "huber", e, np.zeros(2), None, 1
            ),
        )
        for e in (0.0, 1e-20, 1.5, np.nan)
    ),
    *(
        ("gamma must be >= 0", lambda g=g: _core.kernel_function("rbf", g, 3, 0.0))
        for g in (-1e-3, np.nan)
    ),
    *(("momentum is NaN or infinite", lambda m=m: descent().epoch(m, 1)) for m in (np.nan, np.inf)),
    # Columns of tables, and elements of rows.
    *(
        (why, lambda columns=columns, valid=valid: interleave(columns, valid))
        for columns, valid, why in (
            ([np.zeros(3)], [None], "a column has length 3, expected 2"),
            ([np.zeros(2, "c8")], [None], "no plain number"),
            ([], [], "columns has length 0"),
            ([np.zeros(2)], [np.zeros(0, np.uint8)], "bitmap is too short"),
        )
    ),
    *(
        ("offsets do not|does not exist|has length", lambda a=a: gather(*a))
        for a in (
            *((0, i64(0, 1, 4), i64(0)), (3, i64(0, 1, 4), i64(0)), (2, i64(4, 1, 0), i64(0))),
            *((2, i64(-1, 1), i64(0)), (2, i64(), i64(0))),
            *((2, i64(0, 1, 4), i64(i)) for i in (2, -1, 1, 2**62)),
        )
    ),
    # Lengths, and buffers that cannot be written to.
    ("weight has length 2, expected 3", lambda: _core.scan_columns(rows(), np.ones(2), 1)),
    ("floor has length 3", lambda: _core.find_strays(rows(), np.ones(3), np.ones(2), 1)),
    ("ceiling has length 1", lambda: _core.find_strays(rows(), np.ones(2), np.ones(1), 1)),
    ("order names row 0 twice", lambda: descent(rows=wide_rows(), order=i64(0, 1, 2, 0))),
    (TypeError, lambda: rectangles().point(np.zeros(5), np.zeros(5), np.ones(2), fixed(), 1)),
    (TypeError, lambda: rectangles().relax(fixed(), fixed(), fixed(), 1.0, 1)),
    ("row that does not exist", lambda: published(order=i64(0, 2))),
    ("rows has length 3, expected 2", lambda: published(rows=_core.dense_rows(np.eye(3)))),
    ("largest has length 1, expected 2", lambda: published(largest=np.ones(1))),
    ("negative or NaN", lambda: published(largest=np.array([1.0, -1.0]))),
    ("negative or NaN", lambda: published(largest=np.array([1.0, np.nan]))),
    ("V has length 3, expected 2", lambda: published(V=np.ones((3, 3)))),
    ("beta has length 3, expected 2", lambda: published(beta=np.zeros(3))),
    ("no work 'by_hand'", lambda: published(work="by_hand")),
    ("beta has length 3, expected 2", lambda: published(beta=np.zeros(3), work="by_row")),
    ("without gains", lambda: published(pairs=two(gain=np.arange(2.0)))),
    (
        "unknown way of counting 'abacus'",
        lambda: _core.published_point(two(), np.zeros(2), "abacus"),
    ),
    ("count all pairs, without gains", lambda: _core.explicit_pairs(two(adjacent=True))),
    ("z has length 3, expected 2", lambda: hinge(z=(0.0, 0.0, 0.0))),
    ("another problem", lambda: hinge(near=hinge())),
    ("row that does not exist", lambda: _core.scores(rows(), np.zeros(2), i64(0, 7), 1)),
    ("w has length 3, expected 2", lambda: _core.scores(rows(), np.zeros(3), None, 1)),
    ("not square", lambda: _core.symmetric_product(np.ones((2, 3)), np.ones(3), 1)),
    ("v has length 2", lambda: _core.symmetric_product(np.ones((3, 3)), np.ones(2), 1)),
    ("contiguous", lambda: _core.symmetric_product(np.ones((6, 6))[::2, ::2], np.ones(3), 1)),
]


@pytest.mark.parametrize(("why", "call"), REFUSED)
def test_what_does_not_fit_is_refused(why, call):
    error, message = (ValueError, why) if isinstance(why, str) else (why, "")
    with pytest.raises(error, match=message):
        call()
    assert gather(2, i64(0, 1, 4), i64(0)) == [0, 1]


# ---- in processes of their own ------------------------------------------------------------------


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
    assert run_code(code) == "refused\n"


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
    assert int(run_code(code)) < 25_000  # kB; the rows take 20,000


def test_arrays_that_are_written_to_meanwhile():
    """By a callback, which changes nothing; by another thread: the result is wrong, or refused.

    Indices were checked once and then read in place: the process ended.
    """
    code = """
import threading, time, warnings
import numpy as np, scipy.sparse as sp
import linrank
warnings.simplefilter("ignore")
rng = np.random.default_rng(0)
A = sp.random(2000, 60, 0.1, format="csr", random_state=0)
y, q, s = rng.normal(size=2000), np.repeat(np.arange(20), 100), rng.normal(size=2000)
kept = [a.copy() for a in (A.indices, A.indptr, y, s, A.data)]
truth = linrank.RankSVM(C=1e-3).fit(A.copy(), y, qid=q)
def write(state):
    A.indices.fill(2**30)
    A.indptr[1:] = 2**30
found = linrank.RankSVM(C=1e-3, callback=write).fit(A, y, qid=q)
assert np.array_equal(found.coef_, truth.coef_)
A.indices[:], A.indptr[:] = kept[:2]
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
try:
    while time.perf_counter() < end or "done" not in outcomes:
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
finally:
    done = True
    writer.join()
print(sorted(outcomes))
"""
    assert "done" in run_code(code)
