"""The concordance index of times to an event, some of them censored."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linrank import _core
from linrank.data.frames import as_array, as_labels, as_weights
from linrank.data.queries import Queries
from linrank.metrics.conventions import convention
from linrank.metrics.evaluate import as_scores, as_vector

Array = NDArray[Any]


@dataclass(frozen=True)
class ConcordanceResult:
    """Comparable pairs by the order of their scores.

    Attributes
    ----------
    concordant, discordant, tied : int
        Pairs in which the earlier event has the higher score, the lower one, or the same.
    tied_time : int
        Of all of these, the pairs of an event and a censored time that are equal.
    """

    concordant: int
    discordant: int
    tied: int
    tied_time: int

    @property
    def n_pairs(self) -> int:
        """Number of comparable pairs."""
        return self.concordant + self.discordant + self.tied

    @property
    def value(self) -> float:
        """``(concordant + tied/2) / n_pairs``; NaN without a comparable pair."""
        if self.n_pairs == 0:
            return float("nan")
        return (2 * self.concordant + self.tied) / (2 * self.n_pairs)

    def __float__(self) -> float:
        return self.value


def concordance_index(
    event: Any, time: Any, scores: Any, *, qid: Any = None, tied_tol: float = 1e-8
) -> ConcordanceResult:
    """Return how often the earlier of two events has the higher score (Harrell's C).

    The pair (i, j) is comparable if i had its event and j is known to have had none by then:
    ``time_j > time_i``, or ``time_j = time_i`` and j is censored. It is concordant if
    ``s_i > s_j``, and counts one half if ``|s_i - s_j| <= tied_tol``:

        ``C = (n_concordant + n_tied/2) / n_comparable``.

    The numbers are those of ``concordance_index_censored`` of scikit-survival, in O(n log n).
    Without censoring, ``concordance_index(True, y, -s)`` is the measure ``concordance_index`` of
    `evaluate`.

    Parameters
    ----------
    event : booleans (n_rows,)
        Whether the event was seen at ``time``; otherwise it came later (right censoring).
    time : array (n_rows,)
        Time of the event or of the last look, finite.
    scores : array (n_rows,)
        Risks, finite: higher means earlier. For predicted times pass their negatives.
    qid : array (n_rows,), optional
        Strata: only rows of the same one are compared, and the counts are summed.
    tied_tol : float, default=1e-8
        Scores that differ by no more are tied.

    Returns
    -------
    ConcordanceResult
        Counts, and their ratio as ``value``; also ``float(result)``.

    Examples
    --------
    >>> result = concordance_index([True, False, True], [1.0, 2.0, 3.0], [0.9, 0.1, 0.95])
    >>> result
    ConcordanceResult(concordant=1, discordant=1, tied=0, tied_time=0)
    >>> result.value
    0.5
    """
    times, risks = _numbers(time, "time"), _numbers(scores, "scores")
    # Booleans, or 0 and 1; anything else is likely to be the times.
    seen = as_array(event, "event")
    if seen.shape != (len(times),):
        raise ValueError(
            f"event must hold one boolean for each of the {len(times)} rows of time, got shape "
            f"{seen.shape}"
        )
    if seen.dtype != bool and not (seen.dtype.kind in "iuf" and np.isin(seen, (0, 1)).all()):
        raise ValueError("event must hold True (seen) or False (censored); it comes before time")
    if len(risks) != len(times):
        raise ValueError(
            f"time has {len(times)} rows but scores has {len(risks)}; give one score for each"
        )
    if not (isinstance(tied_tol, (int, float)) and 0.0 <= tied_tol < float("inf")):
        raise ValueError(f"tied_tol must be a finite number >= 0, got {tied_tol!r}")
    strata = Queries.of(times, qid=qid)
    counts = _core.censored_concordance(
        strata.offsets,
        strata.gather(np.ascontiguousarray(seen, dtype=bool)),
        strata.gather(times),
        strata.gather(risks),
        float(tied_tol),
    )
    return ConcordanceResult(*counts)


def _numbers(values: Any, name: str) -> Array:
    numbers = as_vector(values, name)
    if len(numbers) == 0:
        raise ValueError(f"{name} must hold one number per row, got shape {numbers.shape}")
    if not np.isfinite(numbers).all():
        row = int(np.argmin(np.isfinite(numbers)))
        raise ValueError(f"{name} has {numbers[row]} at row {row}; it must be finite")
    return numbers


def weighted_pairwise_accuracy(y: Any, scores: Any, sample_weight: Any, qid: Any = None) -> float:
    """Weight of the pairs in the right order over that of all pairs; NaN if there are none.

    The pair (i, j) weighs ``u_i·u_j``, so that a weight of 2 equals repeating the row; a pair of
    equal scores is an error.

    Examples
    --------
    >>> weighted_pairwise_accuracy([2, 1, 0], [3.0, 1.0, 2.0], [1.0, 1.0, 2.0])
    0.6
    """
    labels = as_labels(y)
    weight = as_weights(sample_weight, len(labels))
    queries = Queries.of(labels, qid=qid)
    values = as_scores(scores, len(labels), convention("linrank"))
    right, wrong, tied = _core.weighted_concordance(
        queries.offsets, queries.levels, queries.gather(values), queries.gather(weight)
    )
    total = right + wrong + tied
    return float(right / total) if total > 0.0 else float("nan")
