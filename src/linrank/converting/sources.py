"""What is converted: its kind, and its rows part by part."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from linrank.data.dataset import Dataset
from linrank.data.frames import is_frame
from linrank.data.fusion import is_run
from linrank.data.survey import ReadingOptions
from linrank.loading import is_folder, load
from linrank.store.store import Store
from linrank.tabular.arrow_tables import Form
from linrank.tabular.formats import format_of, open_source
from linrank.tabular.parts import table_parts
from linrank.tabular.roles import TableOptions
from linrank.tabular.sidecars import files_beside
from linrank.tabular.storing import as_csr, as_dense
from linrank.tabular.tables import open_table
from linrank.threads import resolve

__all__ = ["MixedIds", "Source", "with_like_ids"]

Note = Callable[[str], object]
_ROLES = ("label", "qid", "docid", "weight", "position", "features")
_BY_PART = (None, "error", "keep")  # what can be done about missing values without seeing all


class MixedIds(Exception):
    """Query ids of a later part are of another type: text behind numbers."""


def with_like_ids(parts: Iterable[Dataset]) -> Iterator[Dataset]:
    """The parts, as long as their ids are of one type; `MixedIds` where they are not."""
    kinds = set()
    for part in parts:
        kinds.add(None if part.qid is None else part.qid.dtype.kind)
        if len(kinds) > 1:
            raise MixedIds
        yield part
        del part  # not held while the next is read


@dataclass(frozen=True)
class Source:
    """One or several files, a frame, a store or a dataset.

    Attributes
    ----------
    items : tuple
        What was given.
    kind : {"dataset", "store", "svmlight", "run", "table"}
        What all of them are.
    how : mapping
        Options of `linrank.load` about the rows: dtype, storage, n_features, zero_based, n_jobs,
        progress.
    reading : mapping
        Its other options, as far as they were given.
    note : callable
        Is told what the user should know, such as columns that are left out.
    """

    items: tuple[Any, ...]
    kind: str
    how: dict[str, Any]
    reading: dict[str, Any]
    note: Note

    @classmethod
    def of(cls, source: Any, how: dict[str, Any], reading: dict[str, Any], note: Note) -> Source:
        """Find out what it is."""
        items = tuple(source) if isinstance(source, (list, tuple)) else (source,)
        if not items:
            raise ValueError("there is nothing to convert; give a file, or several")
        found = [_kind(item, reading.get("format")) for item in items]
        kinds = {kind for kind, _ in found}
        if len(kinds) > 1:
            raise ValueError(
                f"sources are of different kinds ({', '.join(sorted(kinds))}); convert them to one "
                "format first"
            )
        (kind,) = kinds
        if len(items) > 1 and kind in ("store", "dataset"):
            raise ValueError(f"one {kind} is converted at a time, got {len(items)}")
        return cls(tuple(item for _, item in found), kind, how, reading, note)

    @property
    def is_plain_text(self) -> bool:
        """Whether it is text, and its rows are what its lines say and no more."""
        asked = set(self.reading) - {"format", "missing", "sidecars"}
        return self.kind == "svmlight" and not asked and not self._has_files_beside

    @property
    def _has_files_beside(self) -> bool:
        """Whether files beside a text say more of its rows."""
        paths = [item for item in self.items if isinstance(item, (str, os.PathLike))]
        return self.reading.get("sidecars", True) and any(map(files_beside, paths))

    def store(self) -> Store:
        """The store that it is."""
        (item,) = self.items
        self._refuse("a store")
        return item if isinstance(item, Store) else Store(item)

    def loaded(self) -> Dataset:
        """All rows in memory."""
        if self.kind == "run":
            return load(list(self.items), **self.how, **self.reading)
        (item,) = self.items
        if self.kind in ("dataset", "store"):
            self._refuse(f"a {self.kind}")
            data = (
                item if self.kind == "dataset" else self.store().dataset(n_jobs=self.how["n_jobs"])
            )
            return _stored(data, self.how["storage"])
        return load(item, **self.how, **self.reading)

    @property
    def is_read_by_part(self) -> bool:
        """Whether its parts are read one by one, perhaps again: no decision needs all of the rows,
        and each has a path or is in memory."""
        asks_for_all = "qrels" in self.reading or self.reading.get("missing") not in _BY_PART
        is_pipe = any(hasattr(item, "read") for item in self.items)
        if self.kind != "table" or asks_for_all or is_pipe:
            return False
        return not self._has_files_beside

    def parts(self) -> Iterator[Dataset]:
        """The rows, part by part, in order."""
        if self.kind == "run" or (len(self.items) == 1 and not self.is_read_by_part):
            yield self.loaded()
            return
        for item in self.items:
            if self.is_read_by_part:
                yield from self._table_parts(item)
            else:
                yield load(item, **self.how, **self.reading)

    def _table_parts(self, item: Any) -> Iterator[Dataset]:
        how = self.how
        checked = ReadingOptions.of(how["dtype"], how["storage"], how["n_features"], "auto")
        if is_frame(item):
            opened, name, head, format = item, "", b"", "frame"
        else:
            opened, name, head = open_source(item)
            format = format_of(name, head, self.reading.get("format"))
        by_column = how["dtype"] is None and format not in ("csv", "tsv")
        form = Form(
            None if by_column else checked.dtype,
            how["storage"],
            how["n_features"],
            self.reading.get("missing", "error") != "error",
        )
        n_threads = resolve(how["n_jobs"])
        table = open_table(opened, name, head, format, n_threads)
        roles = {name: self.reading[name] for name in _ROLES if name in self.reading}
        options = TableOptions(**roles)
        return table_parts(table, options, form, n_threads, how["progress"], self.note)

    def _refuse(self, what: str) -> None:
        """Fail on options that only reading text and tables has."""
        free = {"storage", "n_jobs", "progress", "zero_based"}
        given = [name for name, v in self.how.items() if v is not None and name not in free]
        if self.how["zero_based"] != "auto":
            given.append("zero_based")
        given += [name for name in self.reading if name != "missing"]
        if given:
            raise ValueError(
                f"{given[0]}= says how to read text or tables, and the source is {what}; leave it "
                "out"
            )


def _stored(data: Dataset, storage: str) -> Dataset:
    """The data with its rows stored as wanted."""
    if storage == "auto":
        return data
    return replace(data, rows=as_csr(data.rows) if storage == "csr" else as_dense(data.rows))


def _kind(item: Any, format: str | None) -> tuple[str, Any]:
    """What a source is, and the source itself, of which no byte was lost."""
    if isinstance(item, Dataset):
        return "dataset", item
    if isinstance(item, Store) or is_folder(item):
        return "store", item
    if is_frame(item):
        return "table", item
    if is_run(item, format):
        return "run", item
    opened, name, head = open_source(item)
    found = format_of(name, head, format)
    return ("svmlight" if found == "svmlight" else "table"), opened
