"""Numbers as engines read them: the shortest decimals that read back as the same bits."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["positional", "singles", "text"]


def singles(values: Iterable[float]) -> list[float]:
    """Values rounded to float32, as floats that print with the fewest digits (at most 9).

    An engine that computes in float32 rounds what it reads. Rounding first leaves short numbers
    and changes nothing: 0.1f prints as 0.1, not as 0.10000000149011612.
    """
    with np.errstate(over="ignore"):
        return [float(str(np.float32(value))) for value in values]


def text(value: float) -> str:
    """A finite float as the shortest decimal that reads back the same, JSON and Java alike."""
    return repr(float(value))


def positional(value: float) -> str:
    """The same decimal without an exponent, for grammars that know none."""
    return np.format_float_positional(float(value), trim="0")
