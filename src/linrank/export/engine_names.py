"""Which names an engine takes, and what to say of one that it does not."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NoReturn

__all__ = ["check_feature_names", "check_plain_name", "check_printable", "listed", "refuse"]

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
