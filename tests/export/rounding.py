"""Whether an artefact orders rows as the model does, up to the rounding of the engine's arithmetic.

Let ``s_i = Σ_j p_ij`` be the exact scores, ``p_ij = coef_j x_ij`` or what a missing value adds. An
engine computes ``t_i = c (s_i + e_i) + const`` with some ``c > 0``. It rounds each number that it
reads, each product and each sum, at most d + k roundings on the way of any term to the result, so

    |e_i| <= b_i = γ_{d+k} Σ_j |p_ij|,    γ_m = m u / (1 - m u),

with the unit u = 2^-24 in single and 2^-53 in double precision. Hence

    s_i - b_i > s_k + b_k   implies   t_i > t_k:

a pair of which the bounds do not overlap must not be turned round, nor become a tie. All pairs are
looked at in one sort: along ascending t the largest ``s - b`` so far, ties included, must never
exceed the ``s + b`` of the row.
"""

from __future__ import annotations

import numpy as np

_UNIT = {"float32": 2.0**-24, "float64": 2.0**-53}
_SMALLEST = {"float32": 2.0**-149, "float64": 2.0**-1074}
_FURTHER = 8  # roundings of a term beside the sum: weight, value, product, default


def bounds(terms: np.ndarray, precision: str) -> np.ndarray:
    """``b_i`` of rows, given the ``p_ij``; both sides round."""
    m = terms.shape[1] + _FURTHER
    gamma = sum(m * u / (1 - m * u) for u in {_UNIT[precision], _UNIT["float64"]})
    return gamma * np.abs(terms).sum(axis=1)


def underflow(scores: np.ndarray, computed: np.ndarray, n_terms: int, precision: str) -> float:
    """What products below the smallest number of the engine can lose, in units of `scores`."""
    scale = np.abs(scores).max() / max(np.abs(computed).max(), _SMALLEST[precision])
    return 2 * n_terms * _SMALLEST[precision] * scale


def first_inversion(
    scores: np.ndarray, bound: np.ndarray, computed: np.ndarray
) -> tuple[int, int] | None:
    """Two rows, the first of which is surely the better one, but not by the engine; or None."""
    order = np.argsort(computed, kind="stable")
    ascending = computed[order]
    surely = (scores - bound)[order]
    so_far = np.maximum.accumulate(surely)
    last_tied = np.searchsorted(ascending, ascending, side="right") - 1
    wrong = np.flatnonzero(so_far[last_tied] > (scores + bound)[order])
    if not wrong.size:
        return None
    worse = wrong[0]
    better = np.argmax(surely[: last_tied[worse] + 1])
    return int(order[better]), int(order[worse])


def terms_of(model, rows: np.ndarray) -> np.ndarray:
    """The ``p_ij``: what every feature of every row adds, from the definition of a linear model."""
    added = model.missing.contributions(model.coef)
    return np.where(np.isnan(rows), added, model.coef * rows.astype(np.float64))


def assert_order(model, rows: np.ndarray, computed: np.ndarray, precision: str) -> None:
    """An engine orders rows as a linear model does, up to the bound of its arithmetic."""
    computed = np.asarray(computed, dtype=np.float64)
    assert np.isfinite(computed).all()
    terms = terms_of(model, rows)
    scores = terms.sum(axis=1)
    bound = bounds(terms, precision) + underflow(scores, computed, terms.shape[1], precision)
    inversion = first_inversion(scores, bound, computed)
    if inversion is not None:
        i, k = inversion
        raise AssertionError(
            f"row {i} ({scores[i]}±{bound[i]}) ranks above row {k} ({scores[k]}±{bound[k]}), "
            f"but the engine gives them {computed[i]} and {computed[k]}"
        )


def resolved(scores: np.ndarray, bound: np.ndarray) -> float:
    """Share of neighbors in the model's order that the bound tells apart: the teeth of a check."""
    order = np.argsort(scores)
    gaps = np.diff(scores[order])
    return float(np.mean(gaps > bound[order][1:] + bound[order][:-1]))
