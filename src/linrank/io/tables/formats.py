"""What a source is: told by its first bytes, then by its name."""

from __future__ import annotations

import fnmatch
import os
import stat
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from linrank.data.dataset import Dataset
from linrank.data.frames import as_weights
from linrank.data.queries import as_sizes
from linrank.errors import DataFormatError, did_you_mean
from linrank.io.blocks import Replay, name_of, standard_input
from linrank.io.tables.columns import Column, listed, nearest
from linrank.system.durable import naming

FORMATS = ("svmlight", "parquet", "arrow", "csv", "tsv")

_MAGIC = {b"PAR1": "parquet", b"ARROW1": "arrow"}
_STREAM = b"\xff\xff\xff\xff"  # in front of each message of an Arrow stream
_BINARY = {".parquet": "Parquet", ".arrow": "Arrow", ".feather": "Arrow"}
_EXTENSIONS = {".csv": "csv", ".tsv": "tsv", ".tab": "tsv"}
_COMPRESSIONS = (".gz", ".bz2", ".xz", ".zst")
_HEAD = 8


def open_source(source: Any) -> tuple[Any, str, bytes]:
    """(what to read, its name in messages, its first bytes) of a path, "-" or file object.

    What can be opened again stays a path; of anything else no byte is lost.
    """
    if hasattr(source, "read"):
        opened = Replay(source, name_of(source), _HEAD)
    elif source == "-":
        opened = Replay(standard_input(), "<stdin>", _HEAD)
    else:
        name = os.fsdecode(os.fspath(source))
        if os.path.isdir(source):
            return source, name, b"PAR1"
        if stat.S_ISREG(os.stat(source).st_mode):
            with naming(name), open(source, "rb") as file:
                return source, name, file.read(_HEAD)
        opened = Replay(open(source, "rb", buffering=0), name, _HEAD)  # noqa: SIM115  (a pipe)
    return opened, opened.name, opened.head


def parquet_parts(path: Any) -> list[str]:
    """The Parquet files of a folder, as Spark writes a table, by name; none if it is a store."""
    names = sorted(os.listdir(os.fsdecode(path)))
    if "manifest.json" in names:
        return []
    parts = [name for name in names if name.endswith(".parquet") and name[0] not in "._"]
    return [os.path.join(os.fsdecode(path), name) for name in parts]


def format_of(name: str, head: bytes, wanted: str | None) -> str:
    """The format: as wanted, by the first bytes, by the name, else SVMlight text.

    Examples
    --------
    >>> format_of("a", b"PAR1....", None), format_of("b.csv.gz", b"", None)
    ('parquet', 'csv')
    """
    by_bytes = next((kind for magic, kind in _MAGIC.items() if head.startswith(magic)), None)
    if by_bytes is None and is_arrow_stream(head):
        by_bytes = "arrow"
    if wanted is None:
        _check_name(name, head, by_bytes)
        return by_bytes or _by_name(name)
    if wanted not in FORMATS:
        hint = did_you_mean(wanted, FORMATS, 0.5)
        raise ValueError(f"format must be one of {', '.join(FORMATS)}, run, got {wanted!r}{hint}")
    return wanted


def is_arrow_stream(head: bytes) -> bool:
    """Whether these are the first bytes of an Arrow stream: a mark and a length below 2³⁰."""
    return head.startswith(_STREAM) and len(head) >= _HEAD and head[7] < 0x40


def _check_name(name: str, head: bytes, by_bytes: str | None) -> None:
    """Fail on a file that is called Parquet or Arrow and does not begin like either."""
    extension = os.path.splitext(name.lower())[1]
    if by_bytes is None and extension in _BINARY:
        raise DataFormatError(
            f"{name}: its name says {_BINARY[extension]}, but it begins with {head[:8]!r}: it is "
            "damaged or something else; say with format= what it is"
        )


def _by_name(name: str) -> str:
    stem, extension = os.path.splitext(name.lower())
    if extension in _COMPRESSIONS:
        extension = os.path.splitext(stem)[1]
    return _EXTENSIONS.get(extension, "svmlight")


Array = NDArray[Any]
_LARGEST = 2.0**40  # rows of a query: more fit nowhere, and their sum stays an integer
_IGNORE = "remove one, or ignore the files beside the data with sidecars=False"


def attach(data: Dataset, path: Any, note: Callable[[str], object]) -> Dataset:
    """The data with what the files beside it say.

    They are named like the data (with or without the ending of a compression) and end in
    ``.query`` or ``.group`` (the number of rows of each query, in order), ``.weight`` (a number a
    row, or a query) and ``.position`` (a number a row); one number a line, as LightGBM and XGBoost
    have them.
    """
    found = files_beside(path)
    data = _with_queries(data, found)
    if ".weight" in found:
        data = _with_weights(data, found[".weight"])
    if ".position" in found:
        data = _with_positions(data, found[".position"])
    for name in found.values():
        note(f"read beside {os.fsdecode(path)}: {name}")
    return data


def files_beside(path: Any) -> dict[str, str]:
    """The files beside a text that `attach` would read, by their endings."""
    path = os.fsdecode(path)
    return {
        ending: name
        for ending in (".query", ".group", ".weight", ".position")
        if (name := _beside(path, ending)) is not None
    }


def _beside(path: str, ending: str) -> str | None:
    names = [path + ending]
    stem, last = os.path.splitext(path)
    if last.lower() in _COMPRESSIONS:
        names.append(stem + ending)
    return next((name for name in names if os.path.isfile(name)), None)


def _with_queries(data: Dataset, found: dict[str, str]) -> Dataset:
    names = [found[ending] for ending in (".query", ".group") if ending in found]
    if not names:
        return data
    if len(names) > 1:
        raise DataFormatError(f"{names[0]} and {names[1]} both tell the queries; {_IGNORE}")
    if data.qid is not None:
        raise DataFormatError(
            f"{names[0]} tells the queries, and {data.source} has query ids; {_IGNORE}"
        )
    numbers = _numbers(names[0])
    bad = (numbers != np.floor(numbers)) | (numbers < 1) | (numbers > _LARGEST)
    sizes = np.where(bad, 0, numbers).astype(np.int64)
    if bad.any():
        line = int(np.argmax(bad))
        raise DataFormatError(
            f"{names[0]}:{line + 1}: {numbers[line]:g} is no number of rows of a query"
        )
    if int(sizes.sum()) != data.n_rows:
        raise DataFormatError(
            f"{names[0]}: its {len(sizes):,} queries have {int(sizes.sum()):,} rows together, "
            f"{data.source} has {data.n_rows:,}"
        )
    qid = np.repeat(np.arange(len(sizes)), as_sizes(sizes, data.n_rows))
    return replace(data, qid=qid)


def _with_weights(data: Dataset, name: str) -> Dataset:
    """Weights u of rows, or c of queries: a pair weighs ``u_i u_j``, so u = √c in a query."""
    if data.weight is not None:
        raise DataFormatError(f"{name} tells weights, and {data.source} has some; {_IGNORE}")
    weights = _numbers(name)
    queries = data.queries
    if len(weights) not in (data.n_rows, queries.n_queries):
        raise DataFormatError(
            f"{name}: {len(weights):,} weights for the {data.n_rows:,} rows and "
            f"{queries.n_queries:,} queries of {data.source}"
        )
    if (weights < 0).any():
        line = int(np.argmax(weights < 0))
        raise DataFormatError(f"{name}:{line + 1}: the weight {weights[line]:g} is below 0")
    if len(weights) != data.n_rows:
        weights = queries.scatter(np.repeat(np.sqrt(weights), np.diff(queries.offsets)))
    weighted = replace(data, weight=as_weights(weights, data.n_rows, name))
    weighted.__dict__["queries"] = queries  # weights do not change them
    return weighted


def _with_positions(data: Dataset, name: str) -> Dataset:
    if data.position is not None:
        raise DataFormatError(f"{name} tells positions, and {data.source} has some; {_IGNORE}")
    positions = _numbers(name)
    if len(positions) != data.n_rows:
        raise DataFormatError(
            f"{name}: {len(positions):,} positions for the {data.n_rows:,} rows of {data.source}"
        )
    return replace(data, position=positions)


def _numbers(name: str) -> Array:
    """One finite number a line; an error names the line."""
    with naming(name), open(name, encoding="utf-8", errors="backslashreplace") as file:
        lines = file.read().split("\n")
    while lines and not lines[-1].strip():
        lines.pop()
    numbers = np.empty(len(lines))
    for i, line in enumerate(lines):
        try:
            numbers[i] = float(line)
        except ValueError:
            numbers[i] = np.nan
        if not np.isfinite(numbers[i]):
            raise DataFormatError(f"{name}:{i + 1}: expected one number, got {line[:60]!r}")
    return numbers


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
