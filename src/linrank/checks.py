"""Checks of single options: ValueError says which one, what it may be and what it was."""

from __future__ import annotations

import numbers
from typing import Any

__all__ = ["check_natural", "check_numbers", "check_one_of", "check_positive", "is_number"]


def check_positive(name: str, value: Any, otherwise: str = "") -> None:
    """Raise ValueError for what is no finite number > 0; the message ends with ``otherwise``."""
    if not (is_number(value) and 0.0 < float(value) < float("inf")):
        raise ValueError(f"{name} must be a finite number > 0, got {value!r}{otherwise}")


def check_natural(name: str, value: Any, otherwise: str = "") -> None:
    """Raise ValueError for what is no integer >= 1; ``otherwise`` says what else it may be."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or value < 1:
        raise ValueError(f"{name} must be an integer >= 1{otherwise}, got {value!r}")


def check_numbers(C: Any, tol: Any, max_iter: Any) -> None:
    """Raise ValueError for numbers that no training takes; the last two may be None."""
    check_positive("C", C)
    if tol is not None:
        check_positive("tol", tol)
    if max_iter is not None:
        check_natural("max_iter", max_iter)


def check_one_of(name: str, value: Any, known: tuple[str | None, ...]) -> None:
    """Raise ValueError for what is none of the ``known`` names, two at least."""
    if not (value is None or isinstance(value, str)) or value not in known:
        names = [repr(one) for one in known]
        raise ValueError(f"{name} must be {', '.join(names[:-1])} or {names[-1]}, got {value!r}")


def is_number(value: Any) -> bool:
    """Whether it is a real number; True and False are none."""
    return isinstance(value, numbers.Real) and not isinstance(value, bool)
