"""Pair losses on a device are those of the core: values, slopes, products, bounds of rounding."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from linrank.data import device_queries
from linrank.data.device_rows import on_device
from linrank.data.queries import Queries
from linrank.data.rows import as_rows
from linrank.losses import device_pairs as losses
from linrank.losses.base import loss_of_pairs
from linrank.losses.device_pairs import loss_on_device
from linrank.pairs import Pairs

KINDS = (("squared_hinge", None), ("hinge", None), ("hinge", 1.0), ("hinge", 0.25))
TOLD = ("value", "sum_of_slacks", "inner_slacks", "n_violations", "total_curvature")
ERRORS = ("value_error", "slacks_error", "dual_error", "gradient_error")


@pytest.fixture(params=["short", "long"])
def path(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Queries by block, or nearly all of them by tile."""
    if request.param == "long":
        for module in (device_queries, losses):
            monkeypatch.setattr(module, "SHORT", 8)
        monkeypatch.setattr(device_queries, "_SIZES", (8,))
        monkeypatch.setattr(device_queries, "_THREADS", {8: 32})
    return str(request.param)


def problem(seed: int, sizes: tuple[int, ...], n_levels: int, *traits: str) -> tuple[Pairs, Any]:
    """Pairs of these traits, and rows that compare them; scores have ties."""
    rng, n = np.random.default_rng(seed), sum(sizes)
    qid, y = np.repeat(np.arange(len(sizes)), sizes), rng.integers(0, n_levels, n).astype(float)
    if "distinct" in traits:
        y = rng.permutation(n).astype(float)
    if "shuffled" in traits:
        order = rng.permutation(n)
        qid, y = qid[order], y[order]
    queries = Queries.of(y, qid)
    is_weighted = "weighted" in traits
    labels = queries.gather(y)
    lowest = np.repeat(np.minimum.reduceat(labels, queries.offsets[:-1]), np.diff(queries.offsets))
    pairs = Pairs(
        queries,
        rng.uniform(0, 2, n) * (rng.random(n) < 0.9) if is_weighted else None,
        rng.uniform(0.1, 1, queries.n_queries) if is_weighted else None,
        labels - lowest if "gains" in traits else None,
        "adjacent" in traits,
    )
    X = np.round(rng.normal(size=(n, 5)), 1)
    return pairs, as_rows(X.astype(np.float32) if "narrow" in traits else X)


def close(found: Any, expected: Any, share: float = 1e-11) -> None:
    expected = np.asarray(expected)
    size = max(float(np.abs(expected).max(initial=0.0)), 1e-300)
    np.testing.assert_allclose(np.asarray(found), expected, rtol=0, atol=share * size)


def check(pairs: Pairs, rows: Any, device: Any, kind: str, epsilon: float | None) -> None:
    there = on_device(rows, device)
    ours, core = (
        loss_on_device(kind, pairs, device, epsilon),
        loss_of_pairs(kind, pairs, epsilon=epsilon),
    )
    rng = np.random.default_rng(0)
    w, v = rng.normal(size=(2, rows.shape[1]))
    expected = core.at(core.scores(rows, w))
    found = ours.at(ours.scores(there, w))
    for name in TOLD:
        close(getattr(found, name), getattr(expected, name))
    close(device.get(found.gradient), expected.gradient)
    close(found.slope_norm, core.slope_norm(expected))
    close(ours.by_column(there, found.gradient), core.by_column(rows, expected.gradient))
    errors = np.array([[getattr(point, name) for name in ERRORS] for point in (found, expected)])
    # Sums of another order, bounded as those of the core are, but by no more than their number.
    assert (errors[0] >= 0).all()
    assert (errors[0] <= 20 * errors[1] + 1e-300).all()
    if found.curvature == 0.0:
        return
    product, image = ours.hessian_product(there, found, v)
    close(product, core.hessian_product(rows, expected, v)[0], 1e-6)  # the core's sums are float32
    has_pairs = np.repeat(pairs.queries.n_levels > 1, np.diff(pairs.queries.offsets))
    close(device.get(image)[has_pairs], core.scores(rows, v)[has_pairs])
    close(
        device.get(found.multiply(ours.scores(there, v))), expected.multiply(core.scores(rows, v))
    )
    close(ours.hessian_matrix(there, found), core.hessian_matrix(rows, expected), 1e-6)
    close(ours.hessian_diagonal(there, found), core.hessian_diagonal(rows, expected))


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize(
    "traits",
    [
        (),
        ("weighted", "narrow"),
        ("weighted", "gains", "shuffled"),
        ("adjacent",),
        ("adjacent", "weighted", "gains"),
        ("distinct", "gains", "narrow"),
        ("distinct", "adjacent", "shuffled"),
    ],
    ids="-".join,
)
def test_a_point_is_that_of_the_core(device, path, traits, kind):
    check(*problem(1, (7, 1, 40, 2, 130, 60), 4, *traits), device, *kind)


@settings(max_examples=15)
@given(
    st.integers(0, 10**6),
    st.lists(st.integers(1, 30), min_size=1, max_size=5),
    st.integers(1, 12),
    st.sets(st.sampled_from(["weighted", "gains", "adjacent", "distinct", "shuffled", "narrow"])),
    st.sampled_from(KINDS),
)
def test_points_of_any_queries(device, seed, sizes, n_levels, traits, kind):
    check(*problem(seed, tuple(sizes), n_levels, *traits), device, *kind)


def test_tiles_end_where_queries_do(device, path):
    """A query of whole tiles has a slot left over, where its running sums end."""
    check(*problem(2, (1023, 5, 1024), 3, "weighted"), device, "squared_hinge", None)


def test_the_longest_queries_of_a_block(device):
    """A block of so many threads has few registers for each."""
    check(*problem(3, (2048, 1025), 4, "gains"), device, "hinge", 0.5)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_scores_that_are_no_numbers_stay_within_bounds(device, path, value):
    pairs, _ = problem(3, (20, 50), 3)
    z = np.random.default_rng(0).normal(size=70)
    z[[4, 30]] = value
    point = loss_on_device("squared_hinge", pairs, device).at(device.put(z))
    assert not np.isfinite(point.value)


def test_the_order_of_threads_does_not_matter(device, path, monkeypatch, is_real):
    """A missing barrier would show as other bits."""
    if is_real:
        pytest.skip("a device has an order of its own")
    pairs, rows = problem(4, (30, 45, 9), 3, "weighted")
    there, found = on_device(rows, device), []
    for seed in ("", "1", "2"):
        monkeypatch.setitem(os.environ, "LINRANK_EMULATOR_SEED", seed)
        loss = loss_on_device("hinge", pairs, device, 0.5)
        point = loss.at(loss.scores(there, np.ones(5)))
        product, image = loss.hessian_product(there, point, np.arange(5.0))
        numbers = [getattr(point, name) for name in TOLD + ERRORS]
        found.append((*numbers, *product, *device.get(image), *device.get(point.gradient)))
    assert found[0] == found[1] == found[2]


def test_the_same_bits_again(device, path):
    pairs, rows = problem(5, (300, 45, 9), 3)
    there, found = on_device(rows, device), []
    for _ in range(2):
        loss = loss_on_device("squared_hinge", pairs, device)
        point = loss.at(loss.scores(there, np.ones(5)))
        found.append((point.value, *loss.hessian_product(there, point, np.ones(5))[0]))
    assert found[0] == found[1]
