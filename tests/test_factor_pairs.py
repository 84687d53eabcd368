"""Factorized RankSVM by pairs, as published, against a twin in NumPy over a list of the pairs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from explicit_pairs import ExplicitPairs
from hypothesis_profiles import examples
from linrank import _core
from linrank.data.dataset import Dataset
from linrank.pairs import Pairs
from linrank.published import PAIR_WORK, factorize_by_pairs
from plain_factorized import PlainFactors
from small_data import small
from strategies import datasets


def listed(data: Dataset) -> PlainFactors:
    return PlainFactors(ExplicitPairs.of(data))


def one_epoch(data: Dataset, V: np.ndarray, rate: float, largest: np.ndarray) -> np.ndarray:
    """V after a step of every query, in the order of their first rows, at the gradient of all."""
    V, plain = V.copy(), listed(data)
    qid = np.zeros(data.n_rows) if data.qid is None else np.asarray(data.qid)
    for query in dict.fromkeys(qid.tolist()):
        rows = qid == query
        step = rate * plain.gradient(V)[rows]
        V[rows] = np.clip(V[rows] - step, 0.0, largest[rows, np.newaxis])
    return V


def has_pairs(data: Dataset) -> bool:
    return data.queries.n_pairs > 0


@pytest.mark.parametrize("work", PAIR_WORK)
@examples(60)
@given(
    data=datasets(weights=True).filter(has_pairs),
    K=st.integers(1, 4),
    C=st.sampled_from([0.1, 1.0, 7.0]),
    rate=st.sampled_from([1e-3, 0.05, 1.0]),
    seed=st.integers(0, 2**32 - 1),
)
def test_an_epoch_is_that_of_the_listed_pairs(work, data, K, C, rate, seed):
    """Any storage, queries interleaved; steps that end inside the box and on its faces."""
    u = np.ones(data.n_rows) if data.weight is None else data.weight
    largest = u * np.sqrt(C / K)
    V0 = np.random.default_rng(seed).uniform(0, 1, (data.n_rows, K)) * largest[:, np.newaxis]
    fit = factorize_by_pairs(
        data, learning_rate=rate, n_components=K, C=C, work=work, max_iter=1, V0=V0
    )
    expected, plain = one_epoch(data, V0, rate, largest), listed(data)
    size = 1.0 + np.abs(plain.gradient(V0)).max()
    assert_allclose(fit.factors, expected, rtol=1e-9, atol=1e-12 * size)
    for V, found in ((V0, fit.history["objective"][0]), (fit.factors, fit.value)):
        assert_allclose(found, plain.value(V), rtol=1e-9, atol=1e-9)
    assert_allclose(fit.w, plain.weights(fit.factors), rtol=1e-9, atol=1e-10)
    assert (fit.factors >= 0).all()
    assert (fit.factors <= largest[:, np.newaxis]).all()


def test_the_callback_stops():
    seen = []
    fit = factorize_by_pairs(
        small(), learning_rate=1e-4, callback=lambda state: seen.append(state) or len(seen) == 3
    )
    assert [state["n_iter"] for state in seen] == [0, 1, 2]
    assert seen[-1]["objective"] == fit.value
    assert len(fit.history["seconds"]) == 3


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"learning_rate": np.inf}, "learning_rate must be a finite number > 0"),
        ({"C": -1.0}, "C must be a finite number > 0, got -1"),
        ({"n_components": 0}, "n_components must be an integer >= 1, got 0"),
        ({"work": "all"}, "work must be 'by_pair' or 'by_row', got 'all'"),
        ({"V0": np.zeros((2, 2))}, r"V0 must have the shape .* got \(2, 2\)"),
    ],
)
def test_bad_options_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        factorize_by_pairs(small(), **{"learning_rate": 0.1, **options})


def test_the_core_refuses_what_does_not_fit():
    data = small()
    pairs = Pairs(data.queries)
    largest, V = np.ones(data.n_rows), np.zeros((data.n_rows, 2))
    beta = np.zeros(data.n_features)
    with pytest.raises(ValueError, match="V has length 1"):
        _core.factor_start(data.rows.core, None, pairs.problem, largest, V[:1], beta)
    with pytest.raises(ValueError, match="beta has length 2"):
        _core.factor_start(data.rows.core, None, pairs.problem, largest, V, beta[:2])
    with pytest.raises(ValueError, match="there is no work 'x'"):
        _core.factor_epoch(data.rows.core, None, pairs.problem, largest, V, beta, "x", 1.0)
    gains = Pairs(data.queries, gain=np.asarray(data.queries.levels, dtype=np.float64))
    with pytest.raises(ValueError, match="without gains"):
        _core.factor_start(data.rows.core, None, gains.problem, largest, V, beta)
