"""Which column of a table is what: label, query, document, weight, position, or a feature."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from linrank.choices import COLUMN_NAMES, UNCLEAR_NAMES
from linrank.errors import DataWarning, warn
from linrank.io.columns import LISTED, Column, name_columns, nearest
from linrank.system.resources import count

Layout = Literal["columns", "list", "vector"]


def select(
    columns: Sequence[Column],
    features: str | Sequence[str],
    taken: Mapping[str, str],
    source: str,
    doubtful: Collection[str] = (),
) -> tuple[tuple[str, ...], Layout]:
    """The names of the features in the order given, and how they are laid out.

    ``features`` is a list, or one string with commas. A name that is a column stands for itself;
    otherwise ``*``, ``?`` and ``[...]`` stand for all numeric columns that match, have no role and
    are not ``doubtful``, in the order of the table, and ``!`` in front takes away what matches.

    Examples
    --------
    >>> table = [Column(name, "number") for name in ("y", "f1", "f2", "g")]
    >>> select(table, "g,f*", {"y": "label"}, "t.csv")
    (('g', 'f1', 'f2'), 'columns')
    >>> select(table, "*,!g", {"y": "label"}, "t.csv")
    (('f1', 'f2'), 'columns')
    """
    by_name = {column.name: column for column in columns}
    others = (c.name for c in columns if c.kind == "number" and c.name not in taken)
    free = [name for name in others if name not in doubtful]
    chosen: dict[str, None] = {}
    for item in _items(features, by_name):
        if item in by_name:
            if item in taken:
                raise ValueError(
                    f"{source}: the column {item!r} is the {taken[item]} and cannot be a feature "
                    f"too; leave it out, or give another {taken[item]}="
                )
            if item in chosen:
                raise ValueError(f"{source}: features= names the column {item!r} twice")
            chosen[item] = None
        elif item.startswith("!"):
            for name in _matching(item[1:], [*chosen, *doubtful], columns, source):
                chosen.pop(name, None)
        else:
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


def _matching(
    pattern: str, names: Sequence[str], columns: Sequence[Column], source: str
) -> list[str]:
    """The names that match, at least one."""
    found = [name for name in names if name == pattern or fnmatch.fnmatchcase(name, pattern)]
    if not found:
        raise ValueError(
            f"{source}: features= names {pattern!r}, which no column matches that holds numbers "
            f"and has no other role{nearest(pattern, columns)}"
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


_LOOSE = {"query"}  # also what the text of a query is called
# Numbers that tell rows apart and rank none of them, by how they are named.
_DOUBTS = {
    "an index of pandas": re.compile(r"Unnamed: \d+|__index_level_\d+__"),
    "an index": re.compile(r"(?i:index)"),
    "an id": re.compile(r"(?i:(.*[_ -])?(id|uuid|guid)|doc|document)|.*[a-z](Id|ID)"),
    "a time": re.compile(r"(?i:(.*[_ -])?(timestamp|datetime|date))"),
}
_UNSAID = ("an index", "an id", "a time")  # left out with a warning: they might be meant


def is_misleading(name: str) -> bool:
    """Whether a reader of a table would not take a column of this name for a feature."""
    known = (_normalize(name) in names for names in COLUMN_NAMES.values())
    return any(known) or _doubt(name, TableOptions()) is not None


def _doubt(name: str, options: TableOptions) -> str | None:
    """What a column of numbers may be that no model should learn from; None for a feature.

    Examples
    --------
    >>> names = ("user_id", "userId", "Unnamed: 0", "timestamp", "rank", "valid")
    >>> [_doubt(name, TableOptions(position=False)) for name in names]
    ['an id', 'an id', 'an index of pandas', 'a time', None, None]
    """
    if _normalize(name) in COLUMN_NAMES["docid"]:
        return "a document id"
    role = UNCLEAR_NAMES.get(_normalize(name))
    if role is not None and getattr(options, role) is not False:
        return f"{role}, or a feature"
    return next((what for what, form in _DOUBTS.items() if form.fullmatch(name.strip())), None)


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

    def given_names(self) -> list[str]:
        """The options that say anything."""
        names = (*COLUMN_NAMES, "features")
        return [name for name in names if getattr(self, name) not in (None, IF_PRESENT)]


@dataclass(frozen=True)
class Roles:
    """The columns of each role.

    Attributes
    ----------
    fields : mapping
        Role (label, qid, docid, weight, position) to column, of the roles that have one.
    features : tuple of str
        The names of the features, in order; of one column, if it holds whole rows.
    layout : {"columns", "list", "vector"}
        A number, a list of numbers, or a vector of Spark ML in each feature column.
    left_out : mapping
        The other columns, and why each of them is not read.
    unsaid : str
        Which of them are left out for their names alone, and how to have them; empty for none.
    """

    fields: Mapping[str, str]
    features: tuple[str, ...]
    layout: Literal["columns", "list", "vector"]
    left_out: Mapping[str, str]
    unsaid: str = ""

    def __str__(self) -> str:
        """Every column in one line, or the first of those that were left out."""
        words = {"qid": "query", "docid": "document"}
        fields = {role: repr(name) for role, name in self.fields.items()}
        told = [f"{words.get(role, role)} {fields.get(role, '-')}" for role in COLUMN_NAMES]
        if self.layout == "columns":
            told.append(count(len(self.features), "feature"))
        else:
            told.append(f"features in {self.features[0]!r}")
        out = [f"{name} ({why})" for name, why in self.left_out.items()]
        more = [f"{len(out) - LISTED} more"] if len(out) > LISTED else []
        return ", ".join(told) + (f"; left out: {', '.join(out[:LISTED] + more)}" if out else "")

    @property
    def used(self) -> list[str]:
        """All columns that are read, each once."""
        return list(dict.fromkeys([*self.fields.values(), *self.features]))


def assign(columns: Sequence[Column], options: TableOptions, source: str) -> Roles:
    """Give every column its role, or say why that cannot be.

    Examples
    --------
    >>> names = ["rel", "qid", "bm25", "title"]
    >>> kinds = ["number", "number", "number", "text"]
    >>> table = [Column(*column) for column in zip(names, kinds)]
    >>> print(assign(table, TableOptions(), "t.parquet"))
    label 'rel', query 'qid', document -, weight -, position -, 1 feature; left out: title (text)
    """
    features: tuple[str, ...]
    layout: Layout
    named = {role: _find(role, columns, options, source) for role in COLUMN_NAMES}
    found = {role: name for role, name in named.items() if name is not None}
    taken = {name: role for role, name in reversed(found.items())}
    if len(taken) < len(found):
        raise ValueError(f"{source}: one column cannot have two roles: {_pairs(found)}")
    rest = [c for c in columns if c.name not in taken]
    numbers = [c for c in rest if c.kind == "number"]
    doubts = {c.name: what for c in numbers if (what := _doubt(c.name, options)) is not None}
    whole, layout, unsaid = _whole_rows(rest), "columns", ""
    if options.features is not None:
        features, layout = select(columns, options.features, taken, source, doubts)
        reasons = {c.name: "not chosen" for c in rest} | doubts
    elif whole is not None:
        features, layout = (whole.name,), "list" if whole.kind == "list" else "vector"
        reasons = {c.name: f"the features are in {whole.name!r}" for c in rest}
    elif options.known is not None:
        features, layout = _select_known(columns, options.known, taken, source)
        reasons = {c.name: "the model does not know it" for c in rest}
    else:
        _check_leaks(numbers, found, options, source)
        features = tuple(c.name for c in numbers if c.name not in doubts)
        reasons, unsaid = doubts, _unsaid(doubts, source)
        if not features:
            raise ValueError(
                f"{source}: no features: beside {_pairs(found)} no column is numeric"
                f"{f', or it is named like {_spelt(doubts)}' if doubts else ''}; "
                f"it has {name_columns(columns)}"
            )
    reasons |= {c.name: "text" if c.kind == "text" else c.type for c in rest if c not in numbers}
    left_out = {c.name: reasons[c.name] for c in rest if c.name not in features}
    return Roles(found, features, layout, left_out, unsaid)


def note_roles(roles: Roles, options: TableOptions, note: Callable[[str], object]) -> None:
    """Note which column is what, and that there are no queries, unless the user said so.

    Warn of what is left out for its name alone.
    """
    note(f"columns: {roles}")
    asked = (options.qid, options.features, options.known)
    if "qid" not in roles.fields and asked == (None, None, None):
        names = [name for name in COLUMN_NAMES["qid"] if "_column" not in name]
        note(f"no column holds query ids (by name {', '.join(names)}): all rows are one query")
    if roles.unsaid:
        warn(roles.unsaid, DataWarning)


def _unsaid(doubts: Mapping[str, str], source: str) -> str:
    """How to have, or to lose without a word, what is left out for its name alone."""
    names = [name for name, what in doubts.items() if what in _UNSAID]
    if not names:
        return ""
    told, are = _spelt({name: doubts[name] for name in names}), "is" if len(names) == 1 else "are"
    return (
        f"{source}: {told} {are} left out: such numbers tell rows apart and do not rank them; to "
        f"learn from them all the same, name them in features= ('*,{','.join(names)}'), and to "
        f"leave them out without this warning too ('*,{','.join('!' + n for n in names)}')"
    )


def _spelt(doubts: Mapping[str, str]) -> str:
    return ", ".join(f"{name!r} ({what})" for name, what in doubts.items())


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
    names = COLUMN_NAMES[role]
    found = [c for c in columns if _normalize(c.name) in names]
    if role == "docid":  # any one will do; and a document may have an address beside its id
        found = sorted(found, key=lambda c: names.index(_normalize(c.name)))[:1]
    if len(found) > 1:  # the text of the query beside its id
        found = [c for c in found if _normalize(c.name) not in _LOOSE or c.kind != "text"] or found
    if len(found) > 1:
        several = " and ".join(repr(c.name) for c in found)
        raise ValueError(
            f"{source}: the columns {several} could each be the {role}; choose with {role}=, as in "
            f"{role}={found[0].name!r}"
        )
    if not found and role == "label" and choice is None:
        raise ValueError(
            f"{source}: no column is the label (by name {', '.join(names)}); "
            f"choose with label=, or label=False if there is none; it has {name_columns(columns)}"
        )
    return found[0].name if found else None


def _normalize(name: str) -> str:
    """A name as conventions have it; headers such as "label, qid" leave blanks around names."""
    return name.strip().lower()


def _whole_rows(columns: Sequence[Column]) -> Column | None:
    """The column that holds all features of a row, where there is one by convention."""
    lists = [c for c in columns if c.kind in ("list", "vector")]
    named = [c for c in lists if c.name.lower() == "features"]
    if named or len(lists) != 1:
        return named[0] if named else None
    return None if any(c.kind == "number" for c in columns) else lists[0]


def _select_known(
    columns: Sequence[Column], known: Sequence[str], taken: dict[str, str], source: str
) -> tuple[tuple[str, ...], Layout]:
    """The features of a model, by name, in its order."""
    names = {c.name for c in columns}
    lacking = [name for name in known if name not in names]
    if lacking:
        more = f" and {len(lacking) - 1} others" if len(lacking) > 1 else ""
        raise ValueError(
            f"{source}: no column {lacking[0]!r}{more}, a feature that the model knows"
            f"{nearest(lacking[0], columns)}"
        )
    return select(columns, known, taken, source)


def _check_leaks(
    numbers: Sequence[Column], found: Mapping[str, str], options: TableOptions, source: str
) -> None:
    """Fail on a column that would be learnt from and may be something else, by its name."""
    for column in numbers:
        name = column.name
        unclear = UNCLEAR_NAMES.get(_normalize(name))
        if unclear is not None and getattr(options, unclear) is not False:
            raise ValueError(
                f"{source}: the column {name!r} may hold the {unclear} of each row, or a feature; "
                f"say {unclear}={name!r}, or {unclear}=False if it is a feature, or leave it out "
                f"with features= ('*,!{name}' is all others)"
            )
        for role, names in COLUMN_NAMES.items():
            if _normalize(name) not in names or (role == "docid" and role in found):
                continue  # a document may have several ids
            if role in ("weight", "position") and getattr(options, role) is False:
                continue  # told that the column of that name is an ordinary one
            why = f" is {found[role]!r}" if role in found else "=False says there is none"
            raise ValueError(
                f"{source}: the column {name!r} would be a feature, while it is named "
                f"like a {role} and {role}{why}: a leak; give {role}={name!r}, drop the "
                f"column, or choose the features with features= ('*,!{name}' is all others)"
            )


def _pairs(found: Mapping[str, str]) -> str:
    return ", ".join(f"{role}={name!r}" for role, name in found.items()) or "nothing"
