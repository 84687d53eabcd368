"""Defaults of features, for engines that know no other rule for missing values."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from linrank.export.numbers import singles

if TYPE_CHECKING:
    from linrank.export.linear_form import LinearForm

__all__ = ["about_inexpressible", "default_values"]


def default_values(form: LinearForm) -> tuple[dict[str, float], list[str]]:
    """The value that a missing feature must take, where it is not 0, and who cannot have one.

    A missing value adds ``w fill + extra``, as does the value ``fill + extra / w``. There is none
    where w is 0, or so small that the quotient is beyond float32.
    """
    with np.errstate(over="ignore"):
        values = form.defaults.astype(np.float32)
    found = {
        name: single
        for name, value, single in zip(form.names, values, singles(values), strict=True)
        if np.isfinite(value) and value != 0.0
    }
    return found, [form.names[j] for j in np.flatnonzero(~np.isfinite(values))]


def about_inexpressible(target: str, names: list[str]) -> list[str]:
    """The warning about features whose absence no value can stand for."""
    if not names:
        return []
    more = f" (and {len(names) - 1} more)" if len(names) > 1 else ""
    return [
        f"the feature {names[0]!r}{more} has next to no weight but an effect when it is missing, "
        f"which no value in {target} can have: rows without it are ordered differently"
    ]
