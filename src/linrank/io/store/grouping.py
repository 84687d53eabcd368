"""Rows in any order into a store within a memory limit: as they come, or by way of sorted runs."""

from __future__ import annotations

import mmap
import os
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, ExitStack, closing
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from typing import IO, Any

import numpy as np

from linrank import _core
from linrank.data.dataset import Dataset, as_dense, join_datasets
from linrank.data.queries import query_runs
from linrank.data.rows import Array, CsrRows, DenseRows, Rows
from linrank.data.words import Comments
from linrank.errors import DataFormatError
from linrank.io.blocks import LongLineError, Part, Progress, name_of, open_blocks
from linrank.io.store.store import Store
from linrank.io.store.writer import (
    CHUNK_BYTES,
    StoreWriter,
    check_target,
    query_offsets,
    row_bytes,
    with_stored_comments,
)
from linrank.io.svmlight import (
    ReadingOptions,
    Shape,
    Survey,
    complete_queries,
    read_pieces,
    survey_pieces,
)
from linrank.system.durable import REMOVED, nameless_file, naming
from linrank.system.resources import describe_bytes, parse_bytes

DEFAULT_LIMIT = 1 << 30
LEAST_LIMIT = 64 << 20
_BLOCK, _BATCH = 1 << 20, 8 << 20  # beyond these, more memory is no faster
_ALIGNED = 64  # bytes of a cache line, at which arrays begin in the file of the runs


@dataclass(frozen=True)
class Budget:
    """Bytes for each purpose; together with what they imply they stay below the limit.

    Attributes
    ----------
    limit : int
        All of it.
    block : int
        Text that is parsed at a time, by each thread. Parsing reserves 23 bytes for each (a row
        may take two bytes of text) and touches a quarter of them; two blocks wait beside.
    batch : int
        Rows that are handed on at a time: three are under way, and their pieces.
    chunk : int
        Features of a chunk of the store, which is put together in memory.
    query : int
        The largest query; there are four of them at once.
    run : int
        Rows that are sorted before they go to a temporary file; there are four of them at once.
    merged : int
        Rows that are read back at a time; there are four of them at once, beside a chunk.
    table : int
        Ids of queries.
    n_threads : int
        Threads that these are for.
    """

    limit: int
    block: int
    batch: int
    chunk: int
    query: int
    run: int
    merged: int
    table: int
    n_threads: int = 1

    @classmethod
    def of(cls, memory_limit: Any, chunk_bytes: Any, n_threads: int) -> Budget:
        """The budget of a limit; ValueError for one that is too small."""
        limit = DEFAULT_LIMIT
        if memory_limit is not None:
            limit = parse_bytes(memory_limit, "memory_limit", ", or None")
        if limit < LEAST_LIMIT:
            raise ValueError(
                f"memory_limit must be at least {describe_bytes(LEAST_LIMIT)} for a conversion, "
                f"got {describe_bytes(limit)}"
            )
        chunk = min(CHUNK_BYTES, limit // 5)  # joined from its parts: there are two for a moment
        if chunk_bytes is not None:
            chunk = parse_bytes(chunk_bytes, "chunk_bytes", ", or None")
            if chunk > limit // 4:
                raise ValueError(
                    f"chunk_bytes is {describe_bytes(chunk)}, but memory_limit="
                    f"{describe_bytes(limit)} allows {describe_bytes(limit // 4)}; give a "
                    f"memory_limit of {describe_bytes(4 * chunk)} or smaller chunks"
                )
        block = min(_BLOCK, max(1 << 15, limit // (100 * (n_threads + 2))))
        shares = {"query": 6, "run": 12, "merged": 20, "table": 6}
        others = {name: limit // share for name, share in shares.items()}
        return cls(limit, block, min(_BATCH, limit // 32), chunk, **others, n_threads=n_threads)

    def check_columns(self, n_columns: int, row_bytes: int) -> None:
        """Raise MemoryError where the columns alone are too many; `row_bytes` of a dense row."""
        limit = f"memory_limit={describe_bytes(self.limit)}"
        if row_bytes > self.batch:
            raise MemoryError(
                f"a dense row of {n_columns:,} columns takes {describe_bytes(row_bytes)}, more "
                f"than {limit} allows; use storage='csr'"
            )
        # Sums of up to 64 parts of a chunk, 48 bytes a column (see `core/column_scan.cpp`); and
        # what is known of the columns so far, of a chunk and of both, with what merging takes.
        needed = (48 * min(64, max(1, (1 << 20) // n_columns)) + 150) * n_columns
        if needed > self.limit // 4:
            raise MemoryError(
                f"the statistics of {n_columns:,} columns take {describe_bytes(needed)}, more than "
                f"a quarter of {limit}; give {describe_bytes(4 * needed)} or more, or renumber the "
                "features"
            )

    def check_ids(self, table: _core.QueryTable) -> None:
        """Raise MemoryError where the ids of the queries are too many."""
        if table.n_bytes > self.table:
            raise MemoryError(
                f"the ids of {len(table):,} queries take {describe_bytes(table.n_bytes)}, more "
                f"than a sixth of memory_limit={describe_bytes(self.limit)}; give a larger "
                "memory_limit, or check that qid is not a row id"
            )

    def check_query(self, table: _core.QueryTable, number: int, n_bytes: int, what: str) -> None:
        """Raise MemoryError where a query, of which ``what`` is known, takes too many bytes."""
        if n_bytes > self.query:
            name = table.tokens(number, number + 1)[0] if len(table) else b""
            which = (
                f"query {name.decode('utf-8', 'backslashreplace')}" if name else "the only query"
            )
            raise MemoryError(
                f"{which} has {what}; with memory_limit={describe_bytes(self.limit)} a query may "
                f"take {describe_bytes(self.query)}, a sixth: give a larger memory_limit"
            )


class ReadAgain(Exception):
    """A later row has shown that the rows so far are stored in the wrong way."""


class _Apart(Exception):
    """Rows of a query are not together."""


Reading = Callable[[_core.QueryTable], Generator[Dataset, None, None]]


def write_store(read: Reading, target: str, budget: Budget, overwrite: bool) -> Store:
    """Write a store of rows that are read some at a time.

    Where the rows of every query come together they are written as they come; else all are read
    again and sorted by way of temporary files.

    Parameters
    ----------
    read : callable
        Gives the rows from the beginning each time that it is called with a new table of ids: data
        sets that are alike, of about a batch, whose ``qid`` are numbers of the table. `ReadAgain`
        asks for another call.
    target : str
        The folder of the store.
    budget : Budget
        What the memory is for; what ``read`` takes comes on top.
    overwrite : bool
        Whether to replace a store that is there.
    """
    order = _take_queries
    while True:
        table = _core.QueryTable()
        try:
            with (
                naming(target, what="store", removed=REMOVED),
                closing(read(table)) as parts,
                StoreWriter(
                    target, chunk_bytes=budget.chunk, overwrite=overwrite, n_jobs=budget.n_threads
                ) as writer,
                Background() as thread,  # which ends before the writer that it calls
            ):
                rows = map(writer.check_alike, parts)
                for queries in order(rows, table, budget, thread, os.path.dirname(target)):
                    # Ids are found here: the table grows while others are written.
                    thread.submit(writer.append, queries, _ids(table, queries))
                    del queries
                thread.wait()
                return writer.finish()
        except _Apart:
            order = _sort_queries
        except ReadAgain:
            continue


def _ids(table: _core.QueryTable, queries: Dataset) -> Any:
    """The ids of whole queries, whose numbers follow one another, as `linrank.load` gives them."""
    if queries.qid is None:
        return None
    first, last = int(queries.qid[0]), int(queries.qid[-1]) + 1
    if table.all_integers:
        return table.integers(first, last)
    return [token.decode("utf-8", "backslashreplace") for token in table.tokens(first, last)]


def collect(
    parts: Callable[[], Iterable[Dataset]],
    path: str | os.PathLike[str],
    budget: Budget,
    overwrite: bool = False,
) -> Store:
    """Write a store of parts that are read one at a time, as `write_store` does.

    ``parts`` gives them anew, in the same order, each time that it is called. They are alike: in
    storage, type, features, and in having ids, weights and documents.
    """

    def read(table: _core.QueryTable) -> Generator[Dataset, None, None]:
        n_rows = 0
        for part in parts():
            is_dense = isinstance(part.rows, DenseRows)
            row_size = part.n_features * part.rows.dtype.itemsize if is_dense else 0
            budget.check_columns(part.n_features, row_size)
            step = max(1, budget.batch * part.n_rows // max(1, part.rows.nbytes))
            for begin in range(0, part.n_rows, step):
                rows = part.select(slice(begin, begin + step))
                rows = replace(rows, qid=_numbers(rows, table))
                budget.check_ids(table)
                yield with_stored_comments(rows, n_rows + begin)
            n_rows += part.n_rows
        if n_rows == 0:
            raise ValueError("there are no rows to write")

    return write_store(read, check_target(path, overwrite), budget, overwrite)


def _numbers(rows: Dataset, table: _core.QueryTable) -> Array | None:
    """The number of each row's query, by first appearance in all parts."""
    if rows.qid is None:
        return None
    offsets = query_offsets(rows)
    ids = rows.qid[offsets[:-1]].tolist()
    found = [table.number(str(q).encode("utf-8", "surrogateescape")) for q in ids]
    return np.repeat(np.array(found, np.int64), np.diff(offsets))


# ---- rows that come together, and those that do not ---------------------------------------------


def _take_queries(
    parts: Iterable[Dataset], table: _core.QueryTable, budget: Budget, *_: Any
) -> Iterator[Dataset]:
    """Whole queries as they come; `_Apart` where their rows do not come together."""

    def check(held: list[Dataset]) -> None:
        n_rows = sum(part.n_rows for part in held)
        number = 0 if held[0].qid is None else int(held[0].qid[0])
        n_bytes = sum(int(_bytes_in_runs(part).sum()) for part in held)
        budget.check_query(table, number, n_bytes, f"{n_rows:,} rows or more")

    return complete_queries(parts, lambda number: _Apart(), check)


def _sort_queries(
    parts: Iterable[Dataset],
    table: _core.QueryTable,
    budget: Budget,
    background: Background,
    folder: str,
) -> Iterator[Dataset]:
    """Whole queries in the order of their numbers, by way of sorted runs in a temporary file."""
    held: list[Dataset] = []
    query_bytes, n_held = np.zeros(0, np.int64), 0
    with nameless_file(folder) as file:
        runs = SortedRuns(file)
        for part in chain(parts, [None]):
            if part is not None:
                held.append(part)
                if len(table) > len(query_bytes):
                    query_bytes = np.pad(query_bytes, (0, 2 * len(table) - len(query_bytes)))
                sizes = _bytes_in_runs(part)
                np.add.at(query_bytes, np.asarray(part.qid), sizes)
                n_held += int(sizes.sum())
            if held and (part is None or n_held >= budget.run):
                background.submit(runs.add, held)
                held, n_held = [], 0
            del part
        query_bytes = query_bytes[: len(table)]
        largest = int(np.argmax(query_bytes))
        size = int(query_bytes[largest])
        budget.check_query(table, largest, size, describe_bytes(size))
        background.wait()  # for the last run
        yield from runs.merge(query_bytes, budget.merged)


def _bytes_in_runs(part: Dataset) -> Array:
    """Bytes of each row: features and comment, number, label and weight."""
    features, comments = row_bytes(part)
    return features + comments + (16 if part.weight is None else 24)


class SortedRuns:
    """Rows that are sorted by query a run at a time, wait in a file, and are merged.

    A run is a data set whose arrays lie in the file. Merging maps the file: it is read from first
    to last in each run, and what was read is no longer memory of the process.
    """

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        # Of each run: a data set without rows, and where the arrays lie.
        self._runs: list[tuple[Dataset, dict[str, Any]]] = []

    def add(self, held: list[Dataset]) -> None:
        """Sort rows by query and append them; the list is empty afterwards."""
        data = join_datasets(held)
        held.clear()
        assert data.qid is not None
        data = data.select(np.argsort(data.qid, kind="stable"))
        arrays: dict[str, Array | None] = {"labels": data.labels, "qid": data.qid}
        arrays |= {"values": data.rows.values, "weight": data.weight}
        if isinstance(data.rows, CsrRows):
            arrays |= {"columns": data.rows.columns, "offsets": data.rows.offsets}
        if data.comments is not None:
            arrays |= {"text": data.comments.text, "ends": data.comments.offsets}
        places = {name: self._write(a) for name, a in arrays.items() if a is not None}
        none = np.empty(0, np.int64)  # a slice would keep all rows in memory
        self._runs.append((data.select(none), places))

    def _write(self, array: Array) -> dict[str, Any]:
        begin = self._file.seek(-(-self._file.tell() // _ALIGNED) * _ALIGNED)
        self._file.write(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
        return {"shape": array.shape, "dtype": array.dtype, "offset": begin}

    def merge(self, query_bytes: Array, most: int) -> Iterator[Dataset]:
        """Whole queries in the order of their numbers, at a time at most ``most`` bytes or one
        query, of which ``query_bytes`` are known; rows of a query are in the order of the runs."""
        self._file.flush()
        mapped = mmap.mmap(self._file.fileno(), 0, access=mmap.ACCESS_READ)
        runs = [_map_run(like, places, mapped) for like, places in self._runs]
        n_taken = [0] * len(runs)
        for _, end in query_runs(np.concatenate([[0], np.cumsum(query_bytes)]), most):
            taken = []
            for k, run in enumerate(runs):
                begin, qid = n_taken[k], np.asarray(run.qid)
                n_taken[k] = begin + int(np.searchsorted(qid[begin:], end))
                if n_taken[k] > begin:
                    taken.append(run.select(slice(begin, n_taken[k])))
            whole = join_datasets(taken)
            in_order = whole.select(np.argsort(np.asarray(whole.qid), kind="stable"))
            del taken, whole
            if hasattr(mmap, "MADV_DONTNEED"):
                mapped.madvise(mmap.MADV_DONTNEED)
            yield in_order
            del in_order


def _map_run(like: Dataset, places: dict[str, Any], mapped: mmap.mmap) -> Dataset:
    """A data set whose arrays lie in a mapped file; all else is that of one without rows."""
    found: Any = {name: np.ndarray(buffer=mapped, **place) for name, place in places.items()}
    rows: Rows = DenseRows(found["values"])
    if "columns" in found:
        columns, offsets = found["columns"], found["offsets"]
        rows = CsrRows(found["values"], columns, offsets, like.n_features)
    return replace(
        like,
        rows=rows,
        labels=found["labels"],
        qid=found["qid"],
        weight=found.get("weight"),
        comments=Comments(found["text"], found["ends"]) if "text" in found else None,
        position=None,
    )


class Background(AbstractContextManager["Background"]):
    """A thread that calls what it is given, in order; one call waits while another runs.

    Leaving the ``with`` block waits until nothing is under way, whatever is raised meanwhile, as by
    Ctrl-C: the caller then closes the files that the thread writes to.
    """

    def __init__(self) -> None:
        self._pool, self._calls = ThreadPoolExecutor(1, "linrank-convert"), deque[Future[Any]]()

    def submit(self, work: Callable[..., object], *arguments: Any) -> None:
        """Have ``work`` done; waits while two calls are under way, raises what one has raised."""
        self._finish(1)
        self._calls.append(self._pool.submit(work, *arguments))

    def wait(self) -> None:
        """Return when all calls have returned; raises what one has raised."""
        self._finish(0)

    def _finish(self, n_left: int) -> None:
        while len(self._calls) > n_left:
            self._calls[0].result()
            self._calls.popleft()  # only now: an interrupt may come while it is waited for

    def __exit__(self, *_: object) -> None:
        interrupt = None
        while True:
            try:
                for call in self._calls:
                    call.cancel()
                wait(self._calls)
                self._pool.shutdown(wait=False)
                break
            except KeyboardInterrupt as error:
                interrupt = error
        if interrupt is not None:
            raise interrupt


# ---- SVMlight/LETOR text of any size ------------------------------------------------------------


_HEAD_ROWS, _HEAD_BYTES = 1000, 4 << 20  # that storage and columns are decided on, at least


def convert_text(
    source: Any,
    path: str | os.PathLike[str],
    options: ReadingOptions,
    budget: Budget,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> Store:
    """Convert text to a store, without having all of it in memory.

    The store holds what `linrank.load` would return for the text, its rows grouped by query:
    queries in the order of their first rows, rows of a query in the order of the text. A text
    whose queries come together is read once. Rows in any other order are sorted by way of
    temporary files beside the store, which take as much room as the store and are always removed.
    So is everything else after a fault, Ctrl-C or on a full disk: there is a whole store or none.

    Parameters
    ----------
    source : path, binary file object, or a list of them
        As `linrank.load` reads it, compressed or not; several are read as if they were one file. A
        stream is kept in a temporary file, as it may have to be read again.
    path : path
        Folder of the store.
    options : ReadingOptions
        ``storage="auto"`` takes the smaller of the two for the first lines of the text. Where a
        later line has a larger index than these, or a feature 0, a dense store is begun again.
    budget : Budget
        What the memory is for.
    overwrite : bool
        Whether to replace a store that is there.
    progress : callable, optional
        Called as ``progress(bytes_done, bytes_total or None)`` after each block of text.
    """
    target = check_target(path, overwrite)
    with ExitStack() as files:
        items = source if isinstance(source, list) else [source]
        sources = [
            _Spooled(one, files.enter_context(nameless_file(os.path.dirname(target))))
            if hasattr(one, "read")
            else one
            for one in items
        ]
        text = _Text(sources, options, budget, progress)
        return write_store(text.read, target, budget, overwrite)


@dataclass
class _Text:
    """Texts that are read, in order and as one, until all decisions hold: three times at most, with
    `write_store`.

    ``shape`` is what an earlier pass has found.
    """

    sources: list[Any]  # paths, and streams that can be rewound
    options: ReadingOptions
    budget: Budget
    progress: Progress | None
    shape: Shape | None = None

    @cached_property
    def name(self) -> str:
        """The first text in messages."""
        first = self.sources[0]
        return str(first.name) if isinstance(first, _Spooled) else os.fsdecode(first)

    @cached_property
    def size(self) -> int | None:
        """Bytes of all texts, where they are known."""
        if any(isinstance(one, _Spooled) for one in self.sources):
            return None
        return sum(map(os.path.getsize, self.sources))

    def read(self, table: _core.QueryTable) -> Generator[Dataset, None, None]:
        """Batches of rows, whose queries are numbered by the table.

        A pass that finds columns beyond those of its first lines goes on without rows, so that the
        next knows all of them.
        """
        survey = Survey(self.name, self.options)
        held: list[Any] = []
        numbers: list[Array] = []
        n_held = 0
        pieces = survey_pieces(
            self._blocks(), survey, self.budget.n_threads, self.progress, self.size
        )
        with closing(pieces):
            head = self._head(survey, pieces)
            survey.check_rows()
            shape = self.shape or survey.shape()
            for piece in chain(head, pieces, [None]):
                if not shape.admits(survey):
                    deque(pieces, maxlen=0)  # the rest of the text, to know all columns
                    self.shape = survey.shape()
                    raise ReadAgain
                if not shape.is_dense:
                    shape = replace(shape, n_columns=survey.columns()[1])
                row_bytes = shape.row_bytes()
                self.budget.check_columns(shape.n_columns, row_bytes)
                is_large = piece is not None and piece.n_rows * row_bytes > 4 * self.budget.batch
                if held and (piece is None or is_large or n_held >= self.budget.batch):
                    yield self._rows(held, numbers, shape)
                    held, numbers, n_held = [], [], 0
                if piece is None or piece.n_rows == 0:
                    continue
                if piece.has_query:
                    numbers.append(np.repeat(*table.runs(piece)))
                    self.budget.check_ids(table)
                if is_large:
                    yield from self._cut_rows(piece, numbers, shape)
                    numbers = []
                    continue
                held.append(piece)
                n_held += max(piece.n_rows * row_bytes, piece.n_bytes)

    def _rows(self, pieces: list[Any], numbers: list[Array], shape: Shape) -> Dataset:
        qid = np.concatenate(numbers) if numbers else None
        return read_pieces(pieces, shape, qid, self.name, self.budget.n_threads)

    def _cut_rows(self, piece: Any, numbers: list[Array], shape: Shape) -> Iterator[Dataset]:
        """Dense rows of a piece whose lines are short: far larger than the text, part by part."""
        sparse = self._rows([piece], numbers, replace(shape, is_dense=False))
        step = max(1, self.budget.batch // shape.row_bytes())
        for begin in range(0, sparse.n_rows, step):
            part = sparse.select(slice(begin, begin + step))
            yield replace(part, rows=as_dense(part.rows))

    def _head(self, survey: Survey, pieces: Iterator[Any]) -> list[Any]:
        """The first pieces, enough to decide on the shape."""
        head: list[Any] = []
        for piece in pieces:
            head.append(piece)
            n_bytes = sum(piece.n_bytes for piece in head)
            enough = n_bytes >= min(_HEAD_BYTES, self.budget.batch)
            if enough and survey.n_rows >= _HEAD_ROWS and survey.n_entries > 0:
                break
        return head

    def _blocks(self) -> Iterator[tuple[Part, tuple[str, int]]]:
        """All blocks from the beginning, each with the name of its text, and the bytes of all texts
        up to its end."""
        before, longest = 0, max(1 << 20, self.budget.limit // 64)
        for source in self.sources:
            if isinstance(source, _Spooled):
                source.rewind()
            text, done = open_blocks(source, self.budget.block, longest_line=longest), 0
            for block, done in text.parts:
                if isinstance(block, LongLineError):
                    block = DataFormatError(
                        f"{text.name}: {block.what}, the most that memory_limit allows; give a "
                        "larger one, or check that the file is text with line ends"
                    )
                yield block, (text.name, before + done)
            before += done


class _Spooled:
    """A stream of which all that was read is kept in a file."""

    def __init__(self, raw: Any, kept: IO[bytes]) -> None:
        self.name, self._raw, self._kept, self._is_back = name_of(raw), raw, kept, False

    def read(self, size: int) -> bytes:
        if self._is_back:
            if kept := self._kept.read(size):
                return kept
            self._is_back = False
        data: bytes = self._raw.read(size)
        if isinstance(data, bytes):  # else refused by who asked
            self._kept.write(data)
        return data

    def rewind(self) -> None:
        self._kept.seek(0)
        self._is_back = True
