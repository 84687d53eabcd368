"""Which chunk of a store comes when, and how many steps it gets."""

from __future__ import annotations

import math
import numbers
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    Array = NDArray[Any]

__all__ = ["Visit", "check_passes", "passes_for", "shared_out", "visits"]

_STEPS_PER_ROW = 0.25  # of one visit: more, and the weights follow the chunk at hand


class Visit(NamedTuple):
    """Steps to be taken on pairs of one chunk, one after the other."""

    chunk: int
    n_steps: int


def check_passes(passes: Any) -> None:
    """Refuse a number of passes that is none."""
    is_integer = isinstance(passes, numbers.Integral) and not isinstance(passes, bool)
    if passes is not None and not (is_integer and passes >= 1):
        raise ValueError(f"passes must be None or an integer >= 1, got {passes!r}")


def passes_for(n_steps: int, n_rows: int) -> int:
    """Passes that make a visit a quarter of a step for each row, at least 1.

    Within a visit all pairs are of one chunk. With a few steps for each row they would be learnt by
    heart before the next chunk comes; with much fewer, reading takes longer than stepping.

    Examples
    --------
    >>> passes_for(100_000, 1_000_000), passes_for(1_000_000, 1_000_000)
    (1, 4)
    """
    return max(1, math.ceil(n_steps / (_STEPS_PER_ROW * n_rows)))


def shared_out(n: int, weights: Array, shift: float) -> Array:
    """n things by weight: each share rounded up or down, and right on average over the shift.

    Share k is the number of integers in ``(n W_{k-1} + u, n W_k + u]``, with the running sums W of
    the weights, scaled to end at 1, and the shift u: its mean over u in [0, 1) is ``n w_k``. All
    shares sum to n, and a weight of 0 gets nothing.

    Examples
    --------
    >>> shared_out(10, np.array([1.0, 0.0, 2.0]), 0.4)
    array([3, 0, 7])
    """
    sums = np.cumsum(weights, dtype=np.float64)
    ends = np.floor(n * (sums / sums[-1]) + shift).astype(np.int64)
    # sums/sums[-1] ends at 1 exactly; n + u may still be rounded up, to one thing too many.
    counts: Array = np.diff(np.minimum(ends, n), prepend=0)
    return counts


def visits(n_steps: int, masses: Array, passes: int, seed: int) -> Iterator[Visit]:
    """All visits of a run: in every pass each chunk once, in an order drawn anew.

    Parameters
    ----------
    n_steps : int
        Steps of the whole run; each pass has its equal part of them.
    masses : array by chunk
        What the pairs of each chunk weigh. A chunk gets its share of the steps, and no visit where
        that is rounded to 0.
    passes : int
        How often the chunks are gone through.
    seed : int
        Of the orders and the rounding. They come from the raw numbers of a generator, which are
        the same in all versions of NumPy.
    """
    for number in range(passes):
        n = n_steps * (number + 1) // passes - n_steps * number // passes
        stream = np.random.PCG64(np.random.SeedSequence([seed, number]))
        raw = stream.random_raw(len(masses) + 1)
        order = np.argsort(raw[1:], kind="stable")
        shift = float(raw[0] >> np.uint64(11)) * 2.0**-53
        for chunk, count in zip(order, shared_out(n, masses[order], shift), strict=True):
            if count:
                yield Visit(int(chunk), int(count))
