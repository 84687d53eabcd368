"""A seed from what scikit-learn calls a random state."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np

_END = 2**63  # seeds are below it, so that they fit a signed integer of a file


def seed_of(random_state: Any) -> int:
    """The number that a run starts its random numbers from.

    Parameters
    ----------
    random_state : None, int, RandomState or Generator
        An integer is the seed itself. A generator gives one and moves on, so that two calls
        differ; None takes one from the operating system.

    Examples
    --------
    >>> seed_of(7)
    7
    >>> seed_of(np.random.RandomState(0)) == seed_of(np.random.RandomState(0))
    True
    """
    if isinstance(random_state, numbers.Integral) and not isinstance(random_state, bool):
        seed = int(random_state)
        if not 0 <= seed < _END:
            raise ValueError(f"random_state must be an integer from 0 to 2^63 - 1, got {seed}")
        return seed
    if random_state is None:
        return int(np.random.default_rng().integers(_END, dtype=np.int64))
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(_END, dtype=np.int64))
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(_END, dtype=np.int64))
    raise TypeError(
        "random_state must be an integer, None, a numpy Generator or RandomState, got "
        f"{random_state!r}"
    )


def seed_of_part(seed: int, part: int, use: int = 0) -> int:
    """The seed of one of many parts of a run, for one of its uses.

    Seeds of different parts and uses are independent, and one depends neither on how many parts
    there are nor on who comes first.

    Examples
    --------
    >>> seed_of_part(7, 0) == seed_of_part(7, 0), seed_of_part(7, 0) == seed_of_part(7, 1)
    (True, False)
    """
    state = np.random.SeedSequence([seed, part, use]).generate_state(1, np.uint64)
    return int(state[0]) % _END
