"""Features by number, for programs that know no names."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from linrank.export.linear_form import LinearForm

__all__ = ["about_fills", "about_shift", "feature_numbers"]

_MOST = 2**31 - 1  # a Java or C int
_DIGITS = 10  # of that; Python refuses to read thousands


def feature_numbers(form: LinearForm, target: str) -> NDArray[np.int64]:
    """The number of each feature, from 1: its name if all names are numbers, else its column.

    So a feature map can give other numbers: those of an engine's feature set.
    """
    are_numbers = [name.isdecimal() and name.isascii() for name in form.names]
    if not any(are_numbers):
        return form.columns + 1
    for name, is_number in zip(form.names, are_numbers, strict=True):
        if not is_number or len(name) > _DIGITS or not 1 <= int(name) <= _MOST:
            raise ValueError(
                f"{target} knows features by numbers from 1, and {name!r} is none, while others "
                "are; give the numbers of all features by a feature map"
            )
    numbers = np.array([int(name) for name in form.names], dtype=np.int64)
    found, counts = np.unique(numbers, return_counts=True)
    if len(found) < len(numbers):  # 1 and 01 are two names
        number = found[counts.argmax()]
        same = " and ".join(
            repr(name) for name, k in zip(form.names, numbers, strict=True) if k == number
        )
        raise ValueError(
            f"{target} knows features by numbers, and {same} are one; give each a number of its "
            "own by a feature map"
        )
    return numbers


def about_shift(form: LinearForm, target: str) -> list[str]:
    """A training file whose features begin at 0 does not have the program's numbers."""
    if form.base != 0 or any(name.isdecimal() for name in form.names):
        return []
    return [
        f"the features of the training file are numbered from 0, those of {target} from 1: feature "
        "0 of the file is feature 1 here"
    ]


def about_fills(form: LinearForm, target: str) -> list[str]:
    """Missing values that the program takes for 0, and the model does not."""
    n = int(np.count_nonzero(form.contributions))
    if not n:
        return []
    return [
        f"the model fills in missing values (missing={form.missing!r}) where {target} takes 0: "
        f"fill in those of {n} of the features before"
    ]
