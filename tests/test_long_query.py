"""One query over all rows: explicit pairs, the same bits on any number of threads, its memory."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from linrank import _core
from linrank.data.dataset import Dataset
from linrank.data.queries import Queries
from linrank.losses.base import Hinge, Huber, SquaredHinge
from linrank.pairs import Pairs
from linrank.ranksvm.train import train

N = _core.LONG_QUERY + 1000
LOSSES = {
    "squared_hinge": SquaredHinge,
    "hinge": Hinge,
    "huber": lambda pairs, n_threads: Huber(pairs, n_threads, epsilon=0.4),
}
KINDS = {
    "all": {},
    "weights": {"row_weight": True},
    "gains": {"gain": True, "row_weight": True},
    "adjacent": {"adjacent": True},
    "adjacent gains": {"adjacent": True, "gain": True},
}


def few_above_many(rng, n=N):
    """Labels 1 .. 4 for sixteen rows, 0 for all others: few enough pairs to list."""
    labels = np.zeros(n)
    labels[rng.choice(n, 16, replace=False)] = 1 + np.arange(16) % 4
    return labels


def make_pairs(labels, rng, row_weight=False, gain=False, adjacent=False):
    u = rng.uniform(0.5, 2.0, len(labels)) if row_weight else None
    g = labels**2 / 4.0 if gain else None
    return Pairs(Queries.of(labels), u, None, g, adjacent)


def explicit(pairs, labels, z, name):
    """Value, gradient and ``Σ ω l''`` from the list of all pairs."""
    u = np.ones(len(z)) if pairs.row_weight is None else pairs.row_weight
    value, curvature, gradient = 0.0, 0.0, np.zeros_like(z)
    for i in np.flatnonzero(labels > 0):
        below = labels == labels[i] - 1 if pairs.adjacent else labels < labels[i]
        gap = 1.0 if pairs.gain is None else pairs.gain[i] - pairs.gain
        slack = 1.0 - z[i] + z
        omega = u[i] * u * gap * (below & (slack > 0))
        if name == "squared_hinge":
            loss, slope, curve = slack**2, 2.0 * slack, np.full_like(z, 2.0)
        elif name == "hinge":
            loss, slope, curve = slack, np.ones_like(z), np.zeros_like(z)
        else:
            slope = np.clip(slack / 0.4, 0.0, 1.0)
            loss, curve = slope * (slack - 0.2 * slope), (slack < 0.4) / 0.4
        value += omega @ loss
        curvature += omega @ curve
        gradient += omega * slope
        gradient[i] -= omega @ slope
    return value, gradient, curvature


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", LOSSES)
def test_a_long_query_is_the_sum_over_its_pairs(name, kind):
    rng = np.random.default_rng(4)
    labels = few_above_many(rng)
    pairs = make_pairs(labels, rng, **KINDS[kind])
    z = rng.normal(size=N)
    value, gradient, curvature = explicit(pairs, labels, z, name)
    points = [LOSSES[name](pairs, n_threads).at(z) for n_threads in (1, 3)]
    assert points[0].value == points[1].value
    assert (points[0].gradient == points[1].gradient).all()
    assert_allclose(points[0].value, value, rtol=1e-10)
    assert_allclose(points[0].gradient, gradient, rtol=1e-8, atol=1e-9 * np.abs(gradient).max())
    assert_allclose(points[0].total_curvature, curvature, rtol=1e-10)


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
