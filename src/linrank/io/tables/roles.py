"""Which column of a table is what: by convention, or as told."""

from __future__ import annotations

import fnmatch
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from linrank.io.tables.columns import Column, listed, nearest

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


# Names, in lower case, that a column of each role goes by.
CONVENTIONS: dict[str, tuple[str, ...]] = {
    "label": ("label", "y", "relevance", "rel", "grade", "target"),
    "qid": ("qid", "query_id", "group", "group_id", "query", "query_column", "group_column"),
    "docid": ("docid", "docno", "doc_id"),
    "weight": ("weight", "sample_weight"),
    "position": ("position", "rank"),
}
_LOOSE = {"query"}  # also what the text of a query is called
_INDEXES = ("__index_level_", "Unnamed: ")  # names that pandas gives to an index


class _IfPresent:
    """A column by convention where there is one."""

    def __repr__(self) -> str:
        return "IF_PRESENT"


IF_PRESENT = _IfPresent()
Choice = str | Literal[False] | _IfPresent | None


@dataclass(frozen=True)
class TableOptions:
    """What the caller says about the columns of a table.

    Attributes
    ----------
    label, qid, docid, weight, position : str, False or None
        The name of the column, False where there is none, None to go by convention.
    features : str, sequence of str or None
        Names and patterns of the features; None for all other numbers.
    known : sequence of str or None
        Features that a model knows: exactly these are taken, where the table has a column for
        each feature and ``features`` does not say otherwise.
    """

    label: Choice = None
    qid: Choice = None
    docid: Choice = None
    weight: Choice = None
    position: Choice = None
    features: str | Sequence[str] | None = None
    known: Sequence[str] | None = None

    def given(self) -> list[str]:
        """The options that say anything."""
        names = (*CONVENTIONS, "features")
        return [name for name in names if getattr(self, name) not in (None, IF_PRESENT)]


@dataclass(frozen=True)
class Roles:
    """The columns of each role.

    Attributes
    ----------
    label, qid, docid, weight, position : str or None
        The name of the column, None where there is none.
    features : tuple of str
        The names of the features, in order; of one column, if it holds whole rows.
    layout : {"columns", "list", "vector"}
        A number, a list of numbers, or a vector of Spark ML in each feature column.
    notes : tuple of str
        What the user should know, such as columns that were left out.
    """

    label: str | None
    qid: str | None
    docid: str | None
    weight: str | None
    position: str | None
    features: tuple[str, ...]
    layout: Literal["columns", "list", "vector"]
    notes: tuple[str, ...] = ()

    @property
    def fields(self) -> dict[str, str]:
        """Role to column, of the roles that have one."""
        found = {role: getattr(self, role) for role in CONVENTIONS}
        return {role: name for role, name in found.items() if name is not None}

    @property
    def used(self) -> list[str]:
        """All columns that are read, each once."""
        return list(dict.fromkeys([*self.fields.values(), *self.features]))


def assign(columns: Sequence[Column], options: TableOptions, source: str) -> Roles:
    """Give every column its role, or say why that cannot be.

    Examples
    --------
    >>> names = ["rel", "qid", "bm25", "url"]
    >>> kinds = ["number", "number", "number", "text"]
    >>> table = [Column(*column) for column in zip(names, kinds)]
    >>> roles = assign(table, TableOptions(), "t.parquet")
    >>> roles.fields, roles.features, roles.notes
    ({'label': 'rel', 'qid': 'qid'}, ('bm25',), ("left out, not numeric: 'url'",))
    """
    found: dict[str, Any] = {role: _find(role, columns, options, source) for role in CONVENTIONS}
    taken = {name: role for role, name in reversed(found.items()) if name is not None}
    if len(taken) < sum(name is not None for name in found.values()):
        raise ValueError(f"{source}: one column cannot have two roles: {_pairs(found)}")
    rest = [c for c in columns if c.name not in taken and not c.name.startswith(_INDEXES)]
    if options.features is not None:
        features, layout = select(columns, options.features, taken, source)
        return Roles(**found, features=features, layout=layout)
    whole = _whole_rows(rest)
    if whole is not None:
        layout = "list" if whole.kind == "list" else "vector"
        unused = [c for c in rest if c is not whole and c.kind == "number"]
        notes = _left_out(unused, f"the features are in {whole.name!r}") + _one_query(
            found, options
        )
        return Roles(**found, features=(whole.name,), layout=layout, notes=notes)
    if options.known is not None:
        return _known(columns, options.known, taken, found, source)
    _check_leaks(rest, found, options, source)
    numbers = tuple(c.name for c in rest if c.kind == "number")
    if not numbers:
        raise ValueError(
            f"{source}: no features: beside {_pairs(found)} no column is numeric; "
            f"it has {listed(columns)}"
        )
    used = {*taken, *numbers}
    others = [c for c in columns if c.name not in used]
    notes = _left_out(others, "not numeric") + _one_query(found, options)
    return Roles(**found, features=numbers, layout="columns", notes=notes)


def _find(role: str, columns: Sequence[Column], options: TableOptions, source: str) -> str | None:
    """The column of a role; None where there is none."""
    choice: Choice = getattr(options, role)
    if choice is False:
        return None
    if isinstance(choice, str):
        if choice not in {c.name for c in columns}:
            raise ValueError(
                f"{source}: {role}={choice!r} names no column{nearest(choice, columns)}"
            )
        return choice
    if choice is not None and choice is not IF_PRESENT:
        raise TypeError(f"{role} must be the name of a column, False or None, got {choice!r}")
    found = [c for c in columns if _plain(c) in CONVENTIONS[role]]
    if len(found) > 1:  # the text of the query beside its id
        found = [c for c in found if _plain(c) not in _LOOSE or c.kind != "text"] or found
    if len(found) > 1:
        names = " and ".join(repr(c.name) for c in found)
        raise ValueError(
            f"{source}: the columns {names} could each be the {role}; choose with {role}=, as in "
            f"{role}={found[0].name!r}"
        )
    if not found and role == "label" and choice is None:
        raise ValueError(
            f"{source}: no column is the label (by name {', '.join(CONVENTIONS['label'])}); "
            f"choose with label=, or label=False if there is none; it has {listed(columns)}"
        )
    return found[0].name if found else None


def _plain(column: Column) -> str:
    """A name as conventions have it; headers such as "label, qid" leave blanks around names."""
    return column.name.strip().lower()


def _whole_rows(columns: Sequence[Column]) -> Column | None:
    """The column that holds all features of a row, where there is one by convention."""
    lists = [c for c in columns if c.kind in ("list", "vector")]
    named = [c for c in lists if c.name.lower() == "features"]
    if named or len(lists) != 1:
        return named[0] if named else None
    return None if any(c.kind == "number" for c in columns) else lists[0]


def _known(
    columns: Sequence[Column],
    known: Sequence[str],
    taken: dict[str, str],
    found: dict[str, Any],
    source: str,
) -> Roles:
    """The features of a model, by name, in its order."""
    names = {c.name for c in columns}
    lacking = [name for name in known if name not in names]
    if lacking:
        more = f" and {len(lacking) - 1} others" if len(lacking) > 1 else ""
        raise ValueError(
            f"{source}: no column {lacking[0]!r}{more}, a feature that the model knows"
            f"{nearest(lacking[0], columns)}"
        )
    features, layout = select(columns, known, taken, source)
    used = {*taken, *known}
    extra = [c for c in columns if c.name not in used]
    notes = _left_out([c for c in extra if c.kind == "number"], "the model does not know them")
    return Roles(**found, features=features, layout=layout, notes=notes)


def _check_leaks(
    rest: Sequence[Column], found: dict[str, str | None], options: TableOptions, source: str
) -> None:
    """Fail on a column that is named like an id or a label and would be learnt from."""
    for role, names in CONVENTIONS.items():
        if role in ("weight", "position") and getattr(options, role) is False:
            continue  # told that the column of that name is an ordinary one
        for column in rest:
            if column.kind == "number" and _plain(column) in names:
                chosen = found[role]
                why = f"{role} is {chosen!r}" if chosen else f"{role}=False says there is none"
                raise ValueError(
                    f"{source}: the column {column.name!r} would be a feature, while it is named "
                    f"like a {role} and {why}: a leak; give {role}={column.name!r}, drop the "
                    f"column, or choose the features with features= ('*,!{column.name}' is all "
                    "others)"
                )


def _left_out(columns: Sequence[Column], why: str) -> tuple[str, ...]:
    return (f"left out, {why}: {listed(columns)}",) if columns else ()


def _one_query(found: dict[str, str | None], options: TableOptions) -> tuple[str, ...]:
    """That a table seems to have no queries, which nobody said."""
    if found["qid"] is not None or options.qid is False:
        return ()
    names = ", ".join(CONVENTIONS["qid"][:5])
    return (f"no column holds query ids (by name {names}): all rows are one query",)


def _pairs(found: dict[str, str | None]) -> str:
    told = [f"{role}={name!r}" for role, name in found.items() if name is not None]
    return ", ".join(told) or "nothing"
