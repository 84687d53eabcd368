"""Corrections of p-values for several comparisons."""

from __future__ import annotations

from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["CORRECTIONS", "Correction", "corrected"]

Correction = Literal["holm", "bonferroni", "bh"]
CORRECTIONS = get_args(Correction)


def corrected(p: ArrayLike, correction: Correction | None = "holm") -> NDArray[Any]:
    """Return p-values corrected for being several.

    With m values in ascending order ``p_1 <= ... <= p_m``:

    - ``"bonferroni"``: ``min(1, m·p_i)``;
    - ``"holm"``: ``max_{j<=i} min(1, (m - j + 1)·p_j)``, never larger than Bonferroni's and valid
      under the same conditions (none): below α, the chance of even one false finding is below α;
    - ``"bh"`` (Benjamini and Hochberg): ``min_{j>=i} min(1, m·p_j/j)``: of what is below α, the
      expected share of false findings is below α, if the tests are independent or positively
      dependent.

    NaN (no test) stays, and is not counted in m.

    Examples
    --------
    >>> corrected([0.01, 0.04, 0.03]).tolist()
    [0.03, 0.06, 0.06]
    """
    values = np.asarray(p, dtype=np.float64)
    if correction is not None and correction not in CORRECTIONS:
        raise ValueError(
            f"correction must be one of {', '.join(CORRECTIONS)} or None, got {correction!r}"
        )
    result: NDArray[Any] = values.copy()
    tested = np.flatnonzero(~np.isnan(values))
    order = tested[np.argsort(values[tested], kind="stable")]
    ascending, m = values[order], len(order)
    rank = np.arange(1, m + 1)
    if correction == "bonferroni":
        result[order] = np.minimum(1.0, m * ascending)
    elif correction == "holm":
        result[order] = np.minimum(1.0, np.maximum.accumulate((m - rank + 1) * ascending))
    elif correction == "bh":
        result[order] = np.minimum(1.0, np.minimum.accumulate((m * ascending / rank)[::-1])[::-1])
    return result
