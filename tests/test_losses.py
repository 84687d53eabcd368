"""The laws of a pair loss, checked for every loss and storage, and for queries of all lengths."""

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy import sparse

import linrank
import reference
from hypothesis_profiles import examples
from linrank import Dataset, Preferences, _core
from linrank.data.queries import Queries
from linrank.data.rows import as_rows
from linrank.losses.base import Huber, PreferenceSquaredHinge, SquaredHinge, loss_of_pairs
from linrank.losses.swaps import LONGEST, Swaps, SwapSquaredHinge, swap_measure
from linrank.pairs import Pairs
from linrank.published import COUNTINGS, Counted, ExplicitPairs, TreeHinge
from linrank.ranksvm.train import train
from strategies import scored_queries

EPSILON = 0.3
# Pairs of labels, of rankings and of lists, and the published ways to count all pairs of labels.
KINDS = ("squared_hinge", "hinge", "huber")
NAMES = [f"{family} {kind}" for family in ("swept", "ranked", "listed") for kind in KINDS]
NAMES += [f"published {way}" for way in (*COUNTINGS, "explicit", "red-black hinge")]


def kind_of(name):
    kind = name.split()[-1]
    return kind if kind in KINDS else "squared_hinge"


def of_kind(kind, pairs, **how):
    smooth = {"epsilon": EPSILON} if kind == "huber" else {}
    return loss_of_pairs("hinge" if smooth else kind, pairs, 2, **smooth, **how)


def swept(rng, case, family="swept", way=None):
    """Pairs of labels, with weights, gains and neighbors only, or without; and their list."""
    queries, is_swept = case.queries, family == "swept"
    u = c = None
    if rng.random() < 0.5:
        u = rng.integers(0, 4, len(case.labels)) / 2
        c = rng.uniform(0.1, 2.0, queries.n_queries)
    gain = queries.gather(case.labels) - 1.5 if is_swept and rng.random() < 0.5 else None
    pairs = Pairs(queries, u, c, gain, bool(is_swept and rng.random() < 0.5))
    found = [(i, j, omega) for i, j, omega in listed_of(pairs)]
    if is_swept:
        return of_kind(way, pairs), found
    if way == "explicit":
        return ExplicitPairs(pairs), found
    return (TreeHinge if "hinge" in way else Counted)(pairs, way.split()[0]), found


def listed_of(pairs):
    """(i, j, ω) of every pair of positions, by the definition."""
    queries = pairs.queries
    for q, i, j in reference.pairs(queries.offsets, queries.levels, pairs.adjacent):
        weight = 1.0 if pairs.query_weight is None else pairs.query_weight[q]
        if pairs.row_weight is not None:
            weight *= pairs.row_weight[i] * pairs.row_weight[j]
        if pairs.gain is not None:
            weight *= pairs.gain[i] - pairs.gain[j]
        yield i, j, weight


def ranked(rng, case, kind):
    """Pairs of a ranking that a measure weighs."""
    labels = np.abs(case.labels)
    queries, weights = Queries.of(labels, case.qid), {}
    if rng.random() < 0.5:
        u, c = rng.random(len(labels)), rng.random(queries.n_queries)
        weights = {"row_weight": u, "query_weight": c}
    measure = swap_measure(str(rng.choice(["ndcg@3", "map", "err@4"])))
    swaps = Swaps.of(queries, labels, rng.integers(0, 6, len(labels)) / 2.0, measure, **weights)
    return of_kind(kind, swaps), list(ranked_pairs(swaps))


def listed(rng, case, kind):
    """Preferences, duplicates and reverses among them, weighted or not."""
    n = len(case.labels)
    pairs = rng.integers(0, n, (int(rng.integers(1, 40)), 2))
    pairs[:, 1] = np.where(pairs[:, 0] == pairs[:, 1], (pairs[:, 1] + 1) % n, pairs[:, 1])
    weight = rng.choice([0.0, 0.5, 1.0, 3.0], len(pairs)) + (np.arange(len(pairs)) == 0)
    found = Preferences.of(pairs, weight if rng.random() < 0.5 else None)
    loss = of_kind(kind, found, n_rows=n)
    at = np.arange(n)
    at[np.arange(n) if loss.order is None else loss.order] = np.arange(loss.n_positions)
    weight = np.ones(len(found)) if found.weight is None else found.weight
    return loss, list(zip(at[found.winners], at[found.losers], weight, strict=True))


@st.composite
def cases(draw, name, ties=True, max_rows=30):
    """A loss, scores by position, and all its pairs (i, j, ω) of positions."""
    case = draw(scored_queries(max_rows, ties, min_rows=2))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    family, _, kind = name.partition(" ")
    if family in ("swept", "published"):
        loss, pairs = swept(rng, case, family, kind)
    else:
        loss, pairs = (ranked if family == "ranked" else listed)(rng, case, kind)
    return loss, case.scores if loss.order is None else case.scores[loss.order], pairs


def definition(name, z, pairs):
    return reference.listed_loss(z, pairs, loss=kind_of(name), epsilon=EPSILON)


@pytest.mark.parametrize("name", NAMES)
@examples(40)
@given(data=st.data())
def test_value_sums_and_gradient_are_the_definition(name, data):
    """The gradient even at kinks of the slope, but for the hinge, which has no gradient there."""
    loss, z, pairs = data.draw(cases(name))
    assert_allclose(loss.total_weight, sum(omega for _, _, omega in pairs), atol=1e-11)
    point, truth = loss.at(z), definition(name, z, pairs)
    for key in ("value", "sum_of_slacks", *(("gradient",) if "hinge" not in name[-6:] else ())):
        assert_allclose(getattr(point, key), truth[key], rtol=1e-12, atol=1e-10)


@pytest.mark.parametrize("name", NAMES)
@examples(40)
@given(data=st.data())
def test_curvature_is_the_definition(name, data):
    loss, z, pairs = data.draw(cases(name, ties=False))
    point, truth = loss.at(z), definition(name, z, pairs)
    v = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1))).normal(size=len(z))
    for key in ("n_violations", "gradient", "total_curvature"):
        if hasattr(point, key):
            assert_allclose(getattr(point, key), truth[key], atol=1e-10)
    assert_allclose(loss.curvature(point, v), truth["hessian"] @ v, atol=1e-9)


@given(data=st.data(), epsilon=st.sampled_from([0.01, 0.25, 1.0]))
def test_the_dual_point_of_huber_is_that_of_its_slopes(data, epsilon):
    """``a = clip(ξ/ε, 0, 1)``: its sum, and ``Σ ω [max(0, ξ) - aξ]``."""
    known, z, pairs = data.draw(cases("swept huber"))
    loss = Huber(known.pairs, epsilon=epsilon)
    point = loss.at(z)
    dual, one = loss.dual(point, loss.errors(point, z)), known.pairs
    linear = slack = hinge = 0.0
    for i, j, weight in pairs:
        xi = (1.0 - z[i]) + z[j]
        a = min(max(xi / epsilon, 0.0), 1.0)
        linear += weight * a
        slack += weight * (max(0.0, xi) - a * xi)
        hinge += weight * max(0.0, xi)
    rounding = 1e-14 * (1.0 + one.total_weight()) / epsilon
    assert_allclose(dual.linear, linear, atol=100 * rounding)
    assert slack - rounding <= dual.slack <= slack + 100 * rounding
    assert_allclose(loss.primal(point), hinge, rtol=1e-12, atol=1e-11)
    assert dual.largest == 1.0
    assert -1e-10 <= hinge - point.value <= epsilon / 2 * one.total_weight() + 1e-10


@pytest.mark.parametrize("n_levels", [2, 3, 8, 9, 40, 300])
@pytest.mark.parametrize("n", [2, 17, 300, 5000, 33_000])
def test_every_way_of_counting_agrees_with_the_selection_tree(n_levels, n):
    """Tables, ranked sums and trees over levels are chosen by length and number of levels."""
    rng = np.random.default_rng(n * n_levels)
    queries = Queries.of(rng.integers(0, n_levels, 3 * n), np.repeat([0, 1, 2], n))
    z = rng.normal(size=3 * n) * 2
    fast, slow = SquaredHinge(Pairs(queries)), Counted(Pairs(queries))
    a, b = fast.at(z), slow.at(z)
    assert a.n_violations == b.n_violations
    assert_allclose(a.value, b.value, rtol=1e-12)
    assert_allclose(a.gradient, b.gradient, rtol=1e-11, atol=1e-9 * n)
    v = rng.normal(size=3 * n)
    assert_allclose(fast.curvature(a, v), slow.curvature(b, v), rtol=1e-11, atol=1e-9 * n)


@pytest.mark.parametrize("n_levels", [2, 3, 8, 9, 40, 300])
@pytest.mark.parametrize("n", [2, 300, 5000, 33_000])
@pytest.mark.parametrize("adjacent", [False, True])
def test_a_band_is_the_difference_of_two_margins(n_levels, n, adjacent):
    """``h_ε = [S₂(1) - S₂(1-ε)]/2ε``, and the other margin is a scale of the scores."""
    rng = np.random.default_rng(n * n_levels)
    labels = rng.integers(0, n_levels, 3 * n)
    queries = Queries.of(labels, np.repeat([0, 1, 2], n))
    z, v, epsilon = rng.normal(size=3 * n) * 2, rng.normal(size=3 * n), 0.25
    pairs = Pairs(queries, gain=labels - 3.5, adjacent=adjacent)
    outer, huber = SquaredHinge(pairs), Huber(pairs, epsilon=epsilon)
    a, b, h = outer.at(z), outer.at(z / (1 - epsilon)), huber.at(z)
    shrink = (1 - epsilon) ** 2
    assert_allclose(h.value, (a.value - shrink * b.value) / (2 * epsilon), rtol=1e-11)
    in_band = a.n_violations - b.n_violations
    assert_allclose(h.total_curvature, in_band / epsilon, rtol=1e-11, atol=1e-5)
    product = (outer.curvature(a, v) - outer.curvature(b, v)) / (2 * epsilon)
    assert_allclose(huber.curvature(h, v), product, rtol=1e-9, atol=1e-8 * n * n_levels)


@given(scored_queries(), st.floats(-1e6, 1e6))
def test_a_shift_of_the_scores_of_a_query_changes_nothing(case, shift):
    queries, z = case.queries, case.z
    moved = z + shift * (1 + np.arange(queries.n_queries)).repeat(np.diff(queries.offsets))
    a, b = SquaredHinge(Pairs(queries)).at(z), SquaredHinge(Pairs(queries)).at(moved)
    assert_allclose(a.value, b.value, rtol=1e-7, atol=1e-7)


@given(scored_queries(ties=True), st.integers(0, 2**32 - 1))
def test_a_point_does_not_depend_on_the_point_it_starts_from(case, seed):
    queries, z = case.queries, case.z
    loss = SquaredHinge(Pairs(queries))
    near = loss.at(np.random.default_rng(seed).normal(size=len(z)))
    a, b = loss.at(z), loss.at(z, near)
    assert a.value == b.value
    assert (a.gradient == b.gradient).all()


STORAGES = {
    "dense float32": lambda X: X.astype(np.float32),
    "dense float64": lambda X: X.astype(np.float64),
    "wide stride": lambda X: np.hstack([X, X])[:, : X.shape[1]],
    "csr float32": lambda X: sparse.csr_array(X.astype(np.float32)),
    "csr int64": lambda X: _with_int64(sparse.csr_array(X)),
}


def _with_int64(X):
    return sparse.csr_array((X.data, X.indices.astype(np.int64), X.indptr), shape=X.shape)


@pytest.mark.parametrize("name", [name for name in NAMES[:9] if "_hinge" in name or "hub" in name])
@pytest.mark.parametrize("storage", STORAGES)
@examples(25)
@given(data=st.data(), n=st.integers(1, 40), seed=st.integers(0, 2**32 - 1))
def test_products_with_the_rows_are_the_definition(storage, name, data, n, seed):
    """Fused products, explicit Hessian, scores and gradient, for rows in any order and storage."""
    loss, z, pairs = data.draw(cases(name, ties=False))
    rng = np.random.default_rng(seed)
    n_rows = len(z) if loss.order is None else max(len(z), loss.order.max() + 1)
    X = rng.integers(-16, 17, (n_rows, n)) / 8
    X[rng.random(X.shape) < 0.4] = 0
    rows = as_rows(STORAGES[storage](X))
    by_position = X if loss.order is None else X[loss.order]
    point, H = loss.at(z), definition(name, z, pairs)["hessian"]
    truth = by_position.T @ H @ by_position
    size = 1 + np.abs(truth).max()
    v = rng.normal(size=n)
    product, image = loss.hessian_product(rows, point, v)
    assert_allclose(product, truth @ v, atol=2e-5 * size * n)
    is_seen = np.ones(len(z), dtype=bool)
    if name.startswith("swept"):
        is_seen = np.repeat(loss.queries.n_levels > 1, np.diff(loss.queries.offsets))
    assert_allclose(image, np.where(is_seen, by_position @ v, 0), atol=1e-12)
    assert_allclose(loss.hessian_matrix(rows, point), truth, atol=2e-6 * size)
    assert_allclose(rows.scores(v, loss.order, 2), by_position @ v, atol=1e-12)
    r = rng.normal(size=len(z))
    assert_allclose(rows.gradient(r, loss.order, 2), by_position.T @ r, atol=1e-11)
    diagonal = loss.hessian_diagonal(rows, point)
    assert (diagonal >= 0).all()
    assert (diagonal <= 2 * np.einsum("ij,ij->j", by_position**2, np.diag(H)[:, None]) + 1e-9).all()
    if name.startswith("listed"):
        assert_allclose(diagonal, np.diagonal(truth), atol=1e-9 * size)


def test_scores_that_differ_below_float32_are_sorted_in_double():
    n = 3000
    rng = np.random.default_rng(0)
    z = 1.0 + rng.permutation(n) * 1e-12
    queries = Queries.of(rng.integers(0, 50, n))
    a, b = (SquaredHinge(Pairs(queries)).at(z * 1e11), Counted(Pairs(queries)).at(z * 1e11))
    assert_allclose(a.value, b.value, rtol=1e-10)
    assert SquaredHinge(Pairs(queries)).at(z).n_violations == queries.n_pairs


# ---- long queries -------------------------------------------------------------------------------

N = _core.LONG_QUERY + 1000


@pytest.mark.parametrize(
    "options",
    [{}, {"loss": "hinge"}, {"pair_weighting": "grade_diff"}, {"pairs": "adjacent"}],
    ids=str,
)
def test_a_fit_of_one_long_query_does_not_depend_on_threads(options):
    data = one_query(N, 500)
    options = {"C": 1e4 / data.queries.n_pairs, **options}
    one, two = (train(data, n_jobs=n, **options) for n in (1, 3))
    assert one.converged
    assert (one.w == two.w).all()
    assert one.history["objective"] == two.history["objective"]
    tight = train(data, tol=1e-7, **options)
    assert tight.value <= one.value * (1 + 1e-12)
    assert one.value <= tight.value * (1 + 2e-3)


def one_query(n, n_levels, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 4), dtype=np.float32)
    signal = X @ np.float32([1, 0.5, -0.3, 0.1]) + rng.standard_normal(n, dtype=np.float32)
    return Dataset.of(X, np.floor(np.clip(signal + 4, 0, 7.99) * (n_levels / 8)))


# ---- pairs weighted by a measure ----------------------------------------------------------------


MEASURES = [
    *("ndcg", "ndcg@3", "ndcg(gain=linear, discount=letor)@5", "map", "map@4", "map(rel=2)@3"),
    *("mrr", "mrr@3", "mrr(rel=3)", "err", "err@4", "err(y_max=6)@2", "p@3", "p(rel=2)@5"),
    *("recall@4", "rbp@6", "rbp(p=0.5)"),
]


def ranking(seed: int, n_queries: int = 12, longest: int = 14) -> tuple:
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, longest, n_queries)
    qid = rng.permutation(np.repeat(np.arange(n_queries), lengths))
    labels = rng.integers(0, 5, len(qid)).astype(float)
    scores = rng.integers(0, 6, len(qid)) / 2.0  # with ties
    return Queries.of(labels, qid), labels, scores, qid


def ranked_pairs(swaps: Swaps) -> Iterator[tuple[int, int, float]]:
    """Winner, loser and weight of all pairs, by position, from the fields."""
    for q in range(swaps.queries.n_queries):
        begin, end = swaps.queries.offsets[q : q + 2]
        for t in range(begin, begin + swaps.depth[q]):
            for j in range(t + 1, end):
                u = 1.0 if swaps.row_weight is None else swaps.row_weight[t] * swaps.row_weight[j]
                difference = swaps.gain[t] - swaps.gain[j]
                weight = abs(difference) * swaps.factor[t] * u * (swaps.first[t] - swaps.second[j])
                if weight > 1e-15:
                    yield (t, j, weight) if difference > 0 else (j, t, weight)


def weights_of(swaps: Swaps) -> dict[tuple[int, int], float]:
    """The same by row."""
    order = swaps.queries.order.tolist()
    return {(order[i], order[j]): weight for i, j, weight in ranked_pairs(swaps)}


def listed_swaps(swaps: Swaps) -> Preferences:
    found = weights_of(swaps)
    pairs = np.array(list(found)).reshape(-1, 2)
    return Preferences(pairs[:, 0].copy(), pairs[:, 1].copy(), np.array(list(found.values())))


@pytest.mark.parametrize("name", MEASURES)
@pytest.mark.parametrize("seed", range(4))
def test_weights_are_what_a_swap_changes(name: str, seed: int) -> None:
    queries, labels, scores, qid = ranking(seed)
    swaps = Swaps.of(queries, labels, scores, swap_measure(name))
    found = weights_of(swaps)

    def value(ranks: np.ndarray, rows: np.ndarray) -> float:
        options = {"qid": np.zeros(len(rows)), "metrics": name}
        # The highest grade of ERR is that of all queries: a row of it in a query of its own.
        y = np.append(labels[rows], labels.max())
        scores, group = np.append(-ranks, 0.0), np.append(np.zeros(len(rows)), 1.0)
        options["qid"] = group
        return float(next(iter(linrank.evaluate(y, scores, **options).per_query.values()))[0])

    changes = {}
    for q in np.unique(qid):
        rows = np.flatnonzero(qid == q)
        ranks = np.argsort(np.argsort(-scores[rows], kind="stable")).astype(float)
        before = value(ranks, rows)
        for a in range(len(rows)):
            for b in range(len(rows)):
                if labels[rows[a]] > labels[rows[b]]:
                    swapped = ranks.copy()
                    swapped[[a, b]] = swapped[[b, a]]
                    change = abs(value(swapped, rows) - before)
                    if change > 1e-12:
                        changes[int(rows[a]), int(rows[b])] = change
    assert found.keys() == changes.keys()
    if changes:
        scale = sum(found.values()) / sum(changes.values())
        differences = [found[pair] - scale * changes[pair] for pair in changes]
        assert_allclose(differences, 0.0, atol=1e-12)
        # The scale: all weights sum to the number of queries that have any.
        n = len({qid[winner] for winner, _ in changes})
        assert_allclose(sum(found.values()), n, rtol=1e-12)
        assert_allclose(swaps.total_weight(), n, rtol=1e-12)
        assert swaps.n_pairs == len(changes)


def test_measures_that_weigh_no_swap() -> None:
    with pytest.raises(ValueError, match="ndcg, map"):
        swap_measure("auc")
    with pytest.raises(ValueError, match="labels >= 0"):
        Swaps.of(Queries.of([-1.0, 1.0]), np.array([-1.0, 1.0]), np.zeros(2), swap_measure("ndcg"))
    n = LONGEST + 1
    labels = np.arange(n) % 2 * 1.0
    with pytest.raises(ValueError, match="name a cut-off, as in 'map@100'"):
        Swaps.of(Queries.of(labels), labels, np.zeros(n), swap_measure("map"))


def test_swaps_of_long_queries_and_threads() -> None:
    """Pieces of a long query, and any number of threads, give the same numbers."""
    rng = np.random.default_rng(5)
    n = 5000
    labels = rng.integers(0, 4, n).astype(float)
    queries = Queries.of(labels, np.minimum(np.arange(n) // 4500, 1))
    swaps = Swaps.of(queries, labels, rng.random(n), swap_measure("ndcg@30"))
    z, v = rng.normal(size=n), rng.normal(size=n)
    points = [SwapSquaredHinge(swaps, threads).at(z) for threads in (1, 3)]
    twin = PreferenceSquaredHinge(listed_swaps(swaps), n)
    expected = np.zeros(n)
    rows = np.arange(n) if twin.order is None else twin.order
    by_row = np.zeros(n)
    by_row[swaps.queries.order] = z
    expected[rows] = twin.at(by_row[rows]).gradient
    assert_allclose(points[0].gradient, expected[swaps.queries.order], atol=1e-12)
    assert points[0].value == points[1].value
    assert np.array_equal(points[0].gradient, points[1].gradient)
    assert np.array_equal(points[0].multiply(v, 1), points[1].multiply(v, 3))
