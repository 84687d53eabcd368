"""Which names an engine takes, and what to say of one that it does not."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from linrank.export.artefact import Artefact
from linrank.export.linear_form import LinearForm

_LISTED = 50  # names in a text for a person
# What would end or change the meaning of a URL or of a request's parameters around a name.
# Square brackets are a range of URLs to curl, a star is all models, a semicolon ends a path.
_UNSAFE = re.compile(r"""[\s"'`{}$&/\\?#%<>[\]*;]|^\.+$""")


def check_feature_names(
    target: str, names: Iterable[str], *, most_bytes: int | None = None
) -> None:
    """Refuse feature names that no request carries unharmed, or that are too long.

    Parameters
    ----------
    target : str
        The engine.
    names : iterable of str
        Names of features.
    most_bytes : int or None
        How long a name may be in UTF-8.
    """
    for name in names:
        check_printable(target, "feature", name)
        size = len(name.encode())
        if most_bytes is not None and size > most_bytes:
            reason = f"it has {size} bytes, at most {most_bytes} are stored"
            refuse(target, "feature", name, reason)


def check_plain_name(target: str, what: str, name: str) -> None:
    """Refuse a name of a model or store that cannot stand in a URL and a request as it is."""
    check_printable(target, what, name)
    found = _UNSAFE.search(name)
    if found:
        reason = f"{found[0]!r} at place {found.start()} has a meaning in URLs and requests"
        refuse(target, what, name, reason)


def check_printable(target: str, what: str, name: str) -> None:
    """Refuse an empty name, one with blanks at its ends, and control characters."""
    if not name or name != name.strip():
        refuse(target, what, name, "it is empty" if not name else "it has blanks at an end")
    for at, character in enumerate(name):
        if not character.isprintable() and character != " ":
            reason = f"{character!r} at place {at} is a character that cannot be seen"
            refuse(target, what, name, reason)


def refuse(target: str, what: str, name: str, reason: str) -> NoReturn:
    """Raise the error about a name."""
    remedy = "give another by a feature map" if what == "feature" else "choose another"
    raise ValueError(f"{target} cannot take the {what} name {name!r}: {reason}; {remedy}")


def listed(names: Sequence[str]) -> str:
    """Names for a person, the first of very many."""
    shown = ", ".join(map(_seen, names[:_LISTED]))
    return shown if len(names) <= _LISTED else f"{shown} and {len(names) - _LISTED} more"


def _seen(name: str) -> str:
    """A name on one line: what cannot be seen, line ends above all, is written as an escape."""
    return name if name.isprintable() else repr(name)


_MOST = 2**31 - 1  # a Java or C int
_DIGITS = 10  # of that; Python refuses to read thousands


def feature_numbers(form: LinearForm) -> NDArray[np.int64]:
    """The number of each feature, from 1: its name if all names are numbers, else its column.

    So a feature map can give other numbers: those of an engine's feature set.
    """
    are_numbers = [name.isdecimal() and name.isascii() for name in form.names]
    if not any(are_numbers):
        return form.columns + 1
    for name, is_number in zip(form.names, are_numbers, strict=True):
        if not is_number or len(name) > _DIGITS or not 1 <= int(name) <= _MOST:
            raise ValueError(
                f"{form.target} knows features by numbers from 1, and {name!r} is none, while "
                "others are; give the numbers of all features by a feature map"
            )
    numbers = np.array([int(name) for name in form.names], dtype=np.int64)
    found, counts = np.unique(numbers, return_counts=True)
    if len(found) < len(numbers):  # 1 and 01 are two names
        number = found[counts.argmax()]
        same = " and ".join(
            repr(name) for name, k in zip(form.names, numbers, strict=True) if k == number
        )
        raise ValueError(
            f"{form.target} knows features by numbers, and {same} are one; give each a number of "
            "its own by a feature map"
        )
    return numbers


def numbered_artefact(
    form: LinearForm, numbers: NDArray[np.int64], content: str, instructions: str
) -> Artefact:
    """The file of a program that knows features by numbers and takes 0 for a missing value.

    ``instructions`` have a place for the number of ``{features}`` and one for their ``{names}``.
    """
    warnings = []
    if form.base == 0 and not any(name.isdecimal() for name in form.names):
        warnings.append(
            f"the features of the training file are numbered from 0, those of {form.target} from "
            "1: feature 0 of the file is feature 1 here"
        )
    n = int(np.count_nonzero(form.contributions * form.absent))
    if n:
        warnings.append(
            f"the model fills in missing values (missing={form.missing!r}) where {form.target} "
            f"takes 0: fill in those of {n} of the features before"
        )
    names = listed([f"{k} {name}" for k, name in zip(numbers, form.names, strict=True)])
    told = instructions.format(features=len(form.names), names=names)
    return Artefact(form.target, {"model.txt": content.encode()}, told, tuple(warnings))
