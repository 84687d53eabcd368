"""Factorized RankSVM by loops over the pairs: Algorithm 1 of Xu et al. (2019)."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linrank import _core
from linrank.data.dataset import Dataset
from linrank.pairs import Pairs, choose_pairs

Array = NDArray[Any]

PAIR_WORK = ("by_pair", "by_row")


@dataclass(frozen=True, eq=False)
class FactorizedByPairs:
    """What the epochs led to.

    Attributes
    ----------
    w : float64 array (n_features,)
        ``β(V)``.
    factors : float64 array (n_rows, n_components)
        V, by row of the data.
    value : float
        ``f(V)``.
    history : dict of lists
        "objective" (f) and "seconds" (on the wall, since the start), the starting point first.
    """

    w: Array
    factors: Array
    value: float
    history: dict[str, list[float]]


def factorize_by_pairs(
    data: Dataset,
    *,
    learning_rate: float,
    n_components: int = 5,
    C: float = 1.0,
    work: str = "by_pair",
    max_iter: int = 100,
    V0: Array | None = None,
    seed: int = 0,
    callback: Callable[[dict[str, Any]], bool | None] | None = None,
) -> FactorizedByPairs:
    """Minimise ``f(V) = ½‖β‖² - Σ_P ⟨v_i, v_j⟩`` over ``0 <= v_ik <= √(C/K)`` as published.

    ``β = Σ_P ⟨v_i, v_j⟩ (x_i - x_j)``. Query after query, every ``v_i`` takes a projected step of a
    given length down its gradient, all at one point, and β follows. The misprints of the paper are
    put right: the sign of the sum and of the step, ``-1`` for ``-C``, the old ``β_q`` kept until
    the new one is there. One thread, double precision; nothing guarantees that f falls.

    Parameters
    ----------
    data : Dataset
        Rows, labels, queries; with row weights u the bound is ``u_i √(C/K)``.
    learning_rate : float
        η, the length of a step.
    n_components : int
        K, the length of ``v_i``.
    C : float
        Bound of ``α_ij = ⟨v_i, v_j⟩``.
    work : {"by_pair", "by_row"}
        ``"by_pair"``: ``⟨β, x_i - x_j⟩`` and ``β_q += α_ij (x_i - x_j)`` for every pair, as
        printed, ``O(p(K + n))`` an epoch. ``"by_row"``: the scores ``Xβ`` of a query once and
        ``β_q = Σ c_i x_i``, ``O(pK + ln)``. Both give the same up to rounding.
    max_iter : int
        Epochs: passes over all queries.
    V0 : float64 array (n_rows, n_components), optional
        Where to start, by row; None draws uniformly from the box, as printed.
    seed : int
        Of that draw.
    callback : callable, optional
        Called with "objective", "seconds" and "n_iter" after every epoch; True stops.

    Examples
    --------
    One pair at distance 2: ``f = 2α² - α`` is lowest at ``α = 1/4``.

    >>> data = Dataset.of([[1.0], [-1.0]], [1, 0])
    >>> fit = factorize_by_pairs(data, learning_rate=0.1, n_components=1, max_iter=200)
    >>> round(fit.value, 6), round(float(fit.w[0]), 6)
    (-0.125, 0.5)
    """
    _check(learning_rate, n_components, C, work, max_iter)
    pairs = choose_pairs(data)
    # u_i √(C/K) by position: then α_ij <= C u_i u_j.
    u = np.ones(pairs.queries.n_rows) if pairs.row_weight is None else pairs.row_weight
    largest = u * np.sqrt(C / n_components)
    V = _start(pairs, largest, n_components, V0, seed)
    beta = np.zeros(data.n_features)
    shared = (data.rows.core, pairs.queries.order, pairs.problem, largest, V, beta)
    started = time.perf_counter()
    history: dict[str, list[float]] = {"objective": [], "seconds": []}

    def record(total: float) -> dict[str, Any]:
        entry = {
            "objective": float(0.5 * (beta @ beta) - total),
            "seconds": time.perf_counter() - started,
        }
        for key, value in entry.items():
            history[key].append(value)
        return entry

    record(_core.factor_start(*shared))
    for n_iter in range(1, max_iter + 1):
        entry = record(_core.factor_epoch(*shared, work, learning_rate))
        if callback is not None and callback({**entry, "n_iter": n_iter}):
            break
    return FactorizedByPairs(beta, pairs.queries.scatter(V), history["objective"][-1], history)


def _check(rate: float, n_components: int, C: float, work: str, max_iter: int) -> None:
    for name, value in (("learning_rate", rate), ("C", C)):
        if not 0 < value < np.inf:
            raise ValueError(f"{name} must be positive and finite, got {value}")
    if n_components < 1:
        raise ValueError(f"n_components must be >= 1, got {n_components}")
    if work not in PAIR_WORK:
        raise ValueError(f"work must be one of {', '.join(PAIR_WORK)}, got {work!r}")
    if max_iter < 1:
        raise ValueError(f"max_iter must be >= 1, got {max_iter}")


def _start(pairs: Pairs, largest: Array, n_components: int, V0: Array | None, seed: int) -> Array:
    """V by position, a copy, inside the box."""
    shape = (len(largest), n_components)
    if V0 is None:
        return np.random.default_rng(seed).random(shape) * largest[:, np.newaxis]
    if np.shape(V0) != shape:
        raise ValueError(f"V0 must have the shape {shape}, got {np.shape(V0)}")
    V = np.array(pairs.queries.gather(np.asarray(V0, dtype=np.float64)), order="C")
    return np.clip(V, 0.0, largest[:, np.newaxis], out=V)
