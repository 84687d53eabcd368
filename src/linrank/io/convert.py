"""convert: a data set of any format that is read into any that is written."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from typing import Any, Literal

from numpy.typing import DTypeLike

from linrank.choices import COLUMN_NAMES
from linrank.data import Dataset, Filling, as_stored
from linrank.io.blocks import Progress
from linrank.io.formats import TABLES, open_rows, target_format
from linrank.io.load import is_folder, load, log_note
from linrank.io.roles import TableOptions
from linrank.io.sidecars import files_beside
from linrank.io.store.grouping import Budget, collect, convert_text
from linrank.io.store.store import Store
from linrank.io.svmlight import ReadingOptions
from linrank.io.table_files import open_table
from linrank.io.table_reader import TableReader
from linrank.io.write import MixedIds, Written, write
from linrank.system import Scratch, resolve

Note = Callable[[str], object]
_OF_ROWS = ("dtype", "storage", "n_features", "zero_based")
_AS_THEY_ARE = (None, "error", "keep")  # what is done about missing values without filling them


@dataclass(frozen=True)
class Source:
    """One or several files, a frame, a store or a dataset.

    Attributes
    ----------
    items : tuple
        What was given.
    kind : {"dataset", "store", "svmlight", "table"}
        What all of them are.
    how : mapping
        Options of `linrank.load` about the rows: dtype, storage, n_features, zero_based, n_jobs,
        progress.
    reading : mapping
        Its other options, as far as they were given.
    note : callable
        Called with what the user should know, such as columns that are left out.
    """

    items: tuple[Any, ...]
    kind: str
    how: dict[str, Any]
    reading: dict[str, Any]
    note: Note
    _told: set[int] = field(default_factory=set)  # items of earlier passes, noted then

    @classmethod
    def of(cls, source: Any, how: dict[str, Any], reading: dict[str, Any], note: Note) -> Source:
        """Find out what it is."""
        items = tuple(source) if isinstance(source, (list, tuple)) else (source,)
        if not items:
            raise ValueError("there is nothing to convert; give a file, or several")
        if sum(isinstance(item, str) and item == "-" for item in items) > 1:
            raise ValueError("'-', standard input, is given twice; it can be read only once")
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
    def form(self) -> ReadingOptions:
        """How rows are read."""
        return ReadingOptions.of(*(self.how[name] for name in _OF_ROWS))

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

    def load_all(self) -> Dataset:
        """All rows in memory."""
        (item,) = self.items
        if self.kind in ("dataset", "store"):
            self._refuse(f"a {self.kind}")
            is_store, storage = self.kind == "store", self.how["storage"]
            data: Dataset = self.store().dataset(n_jobs=self.how["n_jobs"]) if is_store else item
            rows = as_stored(data.rows, storage)
            return data if rows is data.rows else replace(data, rows=rows)
        return load(item, **self.how, **self.reading)

    @property
    def is_read_by_part(self) -> bool:
        """Whether its parts are read one by one, perhaps again: no decision needs all of the rows,
        and each has a path or is in memory."""
        is_pipe = any(hasattr(item, "read") for item in self.items)
        if self.kind != "table" or "qrels" in self.reading or is_pipe:
            return False
        return not self._has_files_beside

    def parts(self) -> Iterator[Dataset]:
        """The rows, part by part, in order; missing values filled in from all of them."""
        if len(self.items) == 1 and not self.is_read_by_part:
            yield self.load_all()
            return
        filling = self._filling
        for part in self._raw_parts():
            yield part if filling is None else filling.dataset(part)
            del part  # not held while the next is read

    @cached_property
    def _filling(self) -> Filling | None:
        """How missing values are filled in, found in a separate pass; None where they are not."""
        missing = self.reading.get("missing")
        if missing in _AS_THEY_ARE:
            return None
        return Filling.fit_parts(missing, ((p.rows, p.weight) for p in self._raw_parts()))

    def _raw_parts(self) -> Iterable[Dataset]:
        """The parts, values missing where they are to be filled in."""
        if self.is_read_by_part:
            return chain.from_iterable(map(self._table_parts, self.items))
        if self.reading.get("missing") in _AS_THEY_ARE:
            return (load(item, **self.how, **self.reading) for item in self.items)
        return self._held

    @cached_property
    def _held(self) -> list[Dataset]:
        """What is gone through twice and may be a pipe."""
        reading = {**self.reading, "missing": "keep"}
        return [load(item, **self.how, **reading) for item in self.items]

    def _table_parts(self, item: Any) -> Iterator[Dataset]:
        how, note = self.how, None if id(item) in self._told else self.note
        self._told.add(id(item))
        opened, format = open_rows(item, self.reading.get("format"))
        missing, n_threads = self.reading.get("missing", "error"), resolve(how["n_jobs"])
        table = open_table(*opened, format, n_threads)
        names = (*COLUMN_NAMES, "features")
        options = TableOptions(**{name: self.reading.get(name) for name in names})
        reader = TableReader(table, options, self.form, missing, n_threads, how["progress"], note)
        return reader.parts()

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


def _kind(item: Any, format: str | None) -> tuple[str, Any]:
    """What a source is, and the source itself, of which no byte was lost."""
    if isinstance(item, Dataset):
        return "dataset", item
    if isinstance(item, Store) or is_folder(item):
        return "store", item
    opened, found = open_rows(item, format)
    return ("svmlight" if found == "svmlight" else "table"), opened[0]


def convert(
    source: Any,
    path: str | os.PathLike[str],
    *,
    to: str | None = None,
    memory_limit: int | float | str | None = None,
    storage: Literal["auto", "dense", "csr"] = "auto",
    dtype: DTypeLike | None = None,
    n_features: int | None = None,
    zero_based: Literal["auto"] | bool = "auto",
    chunk_bytes: int | float | str | None = None,
    n_jobs: int | None = None,
    progress: Progress | None = None,
    rows_progress: Progress | None = None,
    note: Callable[[str], object] | None = None,
    overwrite: bool = False,
    **reading: Any,
) -> Store | Written:
    """Convert a data set to another format, or to a store.

    Sources are all that `linrank.load` reads: SVMlight/LETOR text, Parquet, Arrow, CSV, TSV,
    stores, frames; and a Dataset. Targets are

    - a store (a folder): what training out of core reads, its rows grouped by query;
    - ``svmlight``, ``parquet``, ``arrow``, ``csv`` or ``tsv``: the rows in the order of the source;
    - ``qrels``: the labels alone, as judgments.

    All numbers read back to the same bits. Text and tables become stores, tables become other
    files, and stores become files in bounded memory; the rest is read as a whole first. A fault,
    Ctrl-C or a full disk leave nothing behind.

    Parameters
    ----------
    source : path, "-", file object, frame, Dataset, Store, or a sequence of paths
        Several texts are read as if they were one file, several tables one after the other.
    path : path or "-"
        What to write; ``"-"`` is standard output.
    to : {"svmlight", "parquet", "arrow", "csv", "tsv", "store", "qrels"}, optional
        By default given by the extension of `path`: .txt .svm .dat .letor, .parquet .pq, .arrow
        .feather .ipc, .csv, .tsv .tab, .qrels. A store ends in a slash or in .store, or has no
        extension; other extensions are refused. Text is compressed if .gz, .bz2, .xz or .zst
        follows.
    memory_limit : int, float, str or None, default=None
        Bytes, or a size such as ``"512MiB"``, that a conversion to a store, or from text, may take
        beyond what the process holds already; None for 1 GiB, and for text that becomes a file as
        much as there is. With a limit, text goes by way of a temporary store: its rows are grouped
        by query then.
    storage : {"auto", "dense", "csr"}, default="auto"
        A full matrix, or the entries that are given: for text the smaller of the two, else as the
        source has it. CSR rows are written to Parquet and Arrow as one column of Spark's vectors;
        CSV and TSV hold all values in any case.
    dtype : {"float32", "float64"}, optional
        Type of the feature values; by default as `linrank.load` has them.
    n_features, zero_based
        Of text, as for `linrank.load`.
    chunk_bytes : int, float, str or None, default=None
        Bytes of the features of a chunk of a store, at most a quarter of the memory; None for
        64 MiB, or less where the limit asks for it.
    n_jobs : int, optional
        Threads; None uses all cores.
    progress : callable, optional
        Called as ``progress(bytes_done, bytes_total or None)`` after each block that is read.
    rows_progress : callable, optional
        Called as ``rows_progress(rows_done, rows_total or None)`` after each block of a file that
        is written.
    note : callable, optional
        Called with what the user should know, such as columns that are left out; by default that
        is logged (INFO).
    overwrite : bool, default=False
        Whether to replace a file or a store that is there.
    **reading
        What else `linrank.load` takes, such as ``qrels``, ``missing`` or ``label``. Missing values
        of tables stay missing in tables, and are errors elsewhere, unless ``missing`` says more.

    Returns
    -------
    Store or Written
        The store, opened; or what was written, with ``left_out``: what the format has no place for.

    Raises
    ------
    DataFormatError
        The source is not as described.
    MemoryError
        Something does not fit; it is not allocated then.
    OSError
        The target cannot be written, or the disk is full.

    Examples
    --------
    >>> import io, tempfile
    >>> text = b"1 qid:7 1:0.5\\n2 qid:9 2:1\\n0 qid:7 1:2 2:4\\n0 qid:9 1:3\\n"
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = convert(io.BytesIO(text), folder + "/store", storage="dense")
    ...     print(store.n_queries, store.read(0).qid, store.read(0).labels)
    ...     convert(store, folder + "/data.txt").n_rows
    2 [7 7 9 9] [1. 0. 2. 0.]
    4
    """
    form = target_format(path, to)
    given = {name: value for name, value in reading.items() if value is not None}
    if form in TABLES or form == "qrels":
        given.setdefault("missing", "keep")
    how: dict[str, Any] = {"dtype": dtype, "storage": storage, "n_features": n_features}
    how |= {"zero_based": zero_based, "n_jobs": n_jobs, "progress": progress}
    found = Source.of(source, how, given, note or log_note)
    _check_apart(path, found)
    if form == "store":
        return _to_store(found, path, memory_limit, chunk_bytes, overwrite)
    options: dict[str, Any] = {"storage": storage, "overwrite": overwrite, "n_jobs": n_jobs}
    options["progress"] = rows_progress
    with _parts(found, path, memory_limit) as (parts, n_rows):
        try:
            return write(parts, path, form, n_rows=n_rows, **options)
        except MixedIds:
            if len(found.items) > 1:
                raise
            return write(found.load_all(), path, form, **options)


def _to_store(
    source: Source, path: Any, memory_limit: Any, chunk_bytes: Any, overwrite: bool
) -> Store:
    n_jobs, progress = source.how["n_jobs"], source.how["progress"]
    budget = Budget.of(memory_limit, chunk_bytes, resolve(n_jobs))
    if source.is_plain_text:
        return convert_text(list(source.items), path, source.form, budget, overwrite, progress)
    if source.is_read_by_part or len(source.items) > 1:
        held = None if source.is_read_by_part else list(_note_positions(source))
        return collect(lambda: held or _note_positions(source), path, budget, overwrite)
    data = next(_note_positions(source))
    return Store.of(path, data, chunk_bytes=budget.chunk, overwrite=overwrite, n_jobs=n_jobs)


def _note_positions(source: Source) -> Iterator[Dataset]:
    """The parts of a source; that a store has no place for positions is noted."""
    is_told = False
    for part in source.parts():
        if part.position is not None and not is_told:
            source.note("a store has no place for positions, which are left out")
            is_told = True
        yield part


@contextmanager
def _parts(
    source: Source, path: str | os.PathLike[str], memory_limit: Any
) -> Iterator[tuple[Any, int | None]]:
    """The rows to write, and their number where it is known."""
    if source.kind == "store":
        yield _chunks(source.store())
        return
    is_bounded = memory_limit is not None or len(source.items) > 1
    if not (source.is_plain_text and is_bounded):
        yield source.parts(), None
        return
    folder = None if os.fspath(path) == "-" else os.path.dirname(os.path.abspath(os.fspath(path)))
    with Scratch(folder) as scratch:
        store = _to_store(source, os.path.join(scratch.path, "store"), memory_limit, None, False)
        try:
            yield _chunks(store)
        finally:
            store.close()


def _chunks(store: Store) -> tuple[Iterator[Dataset], int]:
    """The chunks of a store; each is gone when the next is asked for."""
    buffer = store.buffer()
    return (store.read(i, into=buffer) for i in range(store.n_chunks)), store.n_rows


def _check_apart(path: str | os.PathLike[str], source: Source) -> None:
    """Raise ValueError if what is read would be overwritten."""
    for item in source.items:
        found = item.path if isinstance(item, Store) else item
        if not isinstance(found, (str, os.PathLike)) or "-" in (found, path):
            continue
        if os.path.exists(path) and os.path.exists(found) and os.path.samefile(found, path):
            raise ValueError(f"{os.fspath(path)}: is read and would be overwritten; name another")
