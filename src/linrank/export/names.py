"""Names of features in an engine: a map of them, and the names that engines take."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NoReturn

from linrank.errors import did_you_mean
from linrank.system import count, naming

FeatureMap = Mapping[Any, Any] | str | os.PathLike[str]


def engine_names(
    names: Sequence[str] | None, n_features: int, base: int, feature_map: FeatureMap | None
) -> list[str]:
    """The name of every feature: that of the map, else its own, else ``f<number>``.

    Parameters
    ----------
    names : sequence of str or None
        The model's names.
    n_features : int
        How many features there are.
    base : int
        The number of the first feature in the training file.
    feature_map : mapping, path or None
        Names in the engine by names in the model, or by numbers as in the training file; or a
        file of them, see :func:`read_feature_map`.
    """
    if isinstance(feature_map, str | os.PathLike):
        feature_map = read_feature_map(feature_map)
    if not isinstance(feature_map, Mapping | None):
        raise TypeError(
            "feature_map must be a mapping from names in the model to names in the engine, or a "
            f"file of them, got {type(feature_map).__name__}"
        )
    found = list(names) if names is not None else [f"f{base + j}" for j in range(n_features)]
    places = {name: j for j, name in enumerate(found)}
    mapped: dict[int, str] = {}
    for feature, name in (feature_map or {}).items():
        j = _place(feature, places, n_features, base)
        if j in mapped:
            raise ValueError(f"the feature map has the feature {found[j]!r} twice")
        mapped[j] = _engine_name(feature, name)
    for j, name in mapped.items():
        found[j] = name
    _check_distinct(found, mapped, names)
    return found


def read_feature_map(path: str | os.PathLike[str]) -> dict[str, str]:
    """The map of a file: a JSON object, or lines of two columns, the model's name first.

    Columns are separated by a tab, or by blanks where no name has any. Empty lines and lines that
    start with ``#`` are skipped.
    """
    source = os.fspath(path)
    try:
        # A mark at the start is no part of a name.
        with naming(source), open(source, encoding="utf-8-sig") as file:
            content = file.read()
        if content.lstrip().startswith("{"):
            return json.loads(content, object_pairs_hook=_distinct)
        return _distinct(_columns(content))
    except json.JSONDecodeError as error:
        raise ValueError(
            f"{source}:{error.lineno}:{error.colno}: begins like JSON and is none ({error.msg}); "
            'write an object such as {"model name": "engine name"}'
        ) from None
    except (ValueError, RecursionError) as error:  # bad UTF-8 too
        raise ValueError(f"{source}: {error}") from None


def _columns(content: str) -> Iterable[tuple[str, str]]:
    for number, line in enumerate(content.split("\n"), start=1):
        if not line.strip() or line.startswith("#"):
            continue
        parts = line.split("\t") if "\t" in line else line.split()
        if len(parts) != 2:
            raise ValueError(
                f"line {number} has {count(len(parts), 'column')}; write the model's name and the "
                "engine's, separated by a tab where names have blanks"
            )
        yield parts[0].strip(), parts[1].strip()


def _distinct(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for feature, name in pairs:
        if feature in found:
            raise ValueError(f"the feature map has the feature {feature!r} twice")
        found[feature] = name
    return found


def _place(feature: Any, places: Mapping[str, int], n_features: int, base: int) -> int:
    """The column of a feature, from its name or its number."""
    if isinstance(feature, str) and feature in places:
        return places[feature]
    is_number = isinstance(feature, str) and feature.isdecimal() and feature.isascii()
    if is_number or (hasattr(feature, "__index__") and not isinstance(feature, bool)):
        j = int(feature) - base
        if 0 <= j < n_features:
            return j
        raise ValueError(
            f"the feature map has the feature {feature}; those of the model are {base} to "
            f"{base + n_features - 1}"
        )
    hint = did_you_mean(feature, places)
    raise ValueError(f"the feature map has {feature!r}, which the model does not know{hint}")


def _engine_name(feature: Any, name: Any) -> str:
    if isinstance(name, int) and not isinstance(name, bool):
        return str(name)
    if not isinstance(name, str) or not name:
        raise ValueError(f"the feature map gives {feature!r} the name {name!r}; names are texts")
    return name


def _check_distinct(
    found: Sequence[str], mapped: Mapping[int, str], own: Sequence[str] | None
) -> None:
    first: dict[str, int] = {}
    for j, name in enumerate(found):
        i = first.setdefault(name, j)
        if i == j:
            continue
        both = [repr(own[k]) if own is not None else f"column {k}" for k in (i, j)]
        if i not in mapped and j not in mapped:
            raise ValueError(
                f"columns {i} and {j} of the model are both called {name!r}; tell them apart by a "
                "feature map with their numbers"
            )
        raise ValueError(
            f"the feature map leaves {both[0]} and {both[1]} with one name, {name!r}; an engine "
            "needs a name of its own for each"
        )


# ---- names that an engine refuses --------------------------------------------------------------

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


def join_names(names: Sequence[str]) -> str:
    """Names for a person, the first of very many."""
    shown = ", ".join(map(_printable, names[:_LISTED]))
    return shown if len(names) <= _LISTED else f"{shown} and {len(names) - _LISTED} more"


def _printable(name: str) -> str:
    """A name on one line: what cannot be seen, line ends above all, is written as an escape."""
    return name if name.isprintable() else repr(name)
