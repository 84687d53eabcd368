"""The features that a caller names: columns, patterns, exceptions."""

from __future__ import annotations

import fnmatch
from collections.abc import Mapping, Sequence
from typing import Literal

from linrank.tabular.columns import Column, nearest

__all__ = ["Layout", "select"]

Layout = Literal["columns", "list", "vector"]


def select(
    columns: Sequence[Column], features: str | Sequence[str], taken: Mapping[str, str], source: str
) -> tuple[tuple[str, ...], Layout]:
    """The names of the features in the order given, and how they are laid out.

    ``features`` is a list, or one string with commas. A name that is a column stands for itself;
    otherwise ``*``, ``?`` and ``[...]`` stand for all numeric columns that match and have no role,
    in the order of the table, and ``!`` in front takes away what matches.

    Examples
    --------
    >>> table = [Column(name, "number") for name in ("y", "f1", "f2", "g")]
    >>> select(table, "g,f*", {"y": "label"}, "t.csv")
    (('g', 'f1', 'f2'), 'columns')
    >>> select(table, "*,!g", {"y": "label"}, "t.csv")
    (('f1', 'f2'), 'columns')
    """
    by_name = {column.name: column for column in columns}
    chosen: dict[str, None] = {}
    for item in _items(features, by_name):
        if item in by_name:
            _check_new(item, chosen, taken, source)
            chosen[item] = None
        elif item.startswith("!"):
            for name in _matching(item[1:], list(chosen), columns, source):
                del chosen[name]
        else:
            free = [c.name for c in columns if c.kind == "number" and c.name not in taken]
            chosen.update(dict.fromkeys(_matching(item, free, columns, source)))
    if not chosen:
        raise ValueError(f"{source}: features={features!r} leaves none")
    return tuple(chosen), _layout([by_name[name] for name in chosen], source)


def _items(features: str | Sequence[str], by_name: Mapping[str, Column]) -> list[str]:
    if isinstance(features, str):
        return [features] if features in by_name else [p.strip() for p in features.split(",")]
    items = list(features)
    for item in items:
        if not isinstance(item, str):
            raise TypeError(f"features must be names of columns, got {item!r}")
    return items


def _check_new(
    name: str, chosen: Mapping[str, None], taken: Mapping[str, str], source: str
) -> None:
    if name in taken:
        raise ValueError(
            f"{source}: the column {name!r} is the {taken[name]} and cannot be a feature too; "
            f"leave it out, or give another {taken[name]}="
        )
    if name in chosen:
        raise ValueError(f"{source}: features= names the column {name!r} twice")


def _matching(
    pattern: str, names: Sequence[str], columns: Sequence[Column], source: str
) -> list[str]:
    """The names that match, at least one."""
    found = [name for name in names if name == pattern or fnmatch.fnmatchcase(name, pattern)]
    if not found:
        raise ValueError(
            f"{source}: features= names {pattern!r}, which no numeric column without another role "
            f"matches{nearest(pattern, columns)}"
        )
    return found


def _layout(chosen: Sequence[Column], source: str) -> Layout:
    first = chosen[0]
    if len(chosen) == 1 and first.kind in ("list", "vector"):
        return "list" if first.kind == "list" else "vector"
    for column in chosen:
        if column.kind in ("list", "vector"):
            raise ValueError(
                f"{source}: the column {column.name!r} holds whole rows ({column.type}); it must "
                f"be the only feature, and {len(chosen)} are named"
            )
        if column.kind != "number":
            raise ValueError(
                f"{source}: the feature {column.name!r} is not numeric ({column.type}); convert it "
                "to numbers, or leave it out"
            )
    return "columns"
