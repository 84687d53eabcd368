"""Rows in any order into a store within a memory limit: as they come, or by way of sorted runs."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linrank import _core
from linrank.data.dataset import Dataset, as_dense, join_datasets
from linrank.data.rows import CsrRows, DenseRows, Rows
from linrank.data.words import Comments
from linrank.errors import DataFormatError
from linrank.io.blocks import LongLineError, Part, Progress, name_of, open_blocks
from linrank.io.store.files import check_target
from linrank.io.store.store import Store
from linrank.io.store.writer import (
    CHUNK_BYTES,
    StoreWriter,
    query_offsets,
    row_bytes,
    with_stored_comments,
)
from linrank.io.svmlight import (
    ReadingOptions,
    Shape,
    Survey,
    complete_queries,
    parse_blocks,
    read_pieces,
)
from linrank.system.durable import FULL_DISK, REMOVED, Scratch, naming
from linrank.system.resources import describe_bytes, parse_bytes

Array = NDArray[Any]
DEFAULT_LIMIT = 1 << 30
LEAST_LIMIT = 64 << 20
_BLOCK, _BATCH = 1 << 20, 8 << 20  # beyond these, more memory is no faster


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
    """

    limit: int
    block: int
    batch: int
    chunk: int
    query: int
    run: int
    merged: int
    table: int

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
        chunk = min(CHUNK_BYTES, limit // 4)
        if chunk_bytes is not None:
            chunk = parse_bytes(chunk_bytes, "chunk_bytes", ", or None")
            if chunk > limit // 4:
                raise ValueError(
                    f"chunk_bytes is {describe_bytes(chunk)}, but memory_limit="
                    f"{describe_bytes(limit)} allows {describe_bytes(limit // 4)}; give a "
                    f"memory_limit of {describe_bytes(4 * chunk)} or smaller chunks"
                )
        block = min(_BLOCK, max(1 << 15, limit // (100 * (n_threads + 2))))
        return cls(
            limit,
            block,
            min(_BATCH, limit // 32),
            chunk,
            limit // 6,
            limit // 12,
            limit // 20,
            limit // 6,
        )

    def check_columns(self, n_columns: int, row_bytes: int) -> None:
        """Raise MemoryError where the columns alone are too many; `row_bytes` of a dense row."""
        limit = f"memory_limit={describe_bytes(self.limit)}"
        if row_bytes > self.batch:
            raise MemoryError(
                f"a dense row of {n_columns:,} columns takes {describe_bytes(row_bytes)}, more "
                f"than {limit} allows; use storage='csr'"
            )
        # Sums of up to 64 parts of a chunk, 48 bytes a column (see `core/scaling.cpp`); and what is
        # known of the columns so far, of a chunk and of both, with what merging takes.
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


class TemporaryFiles:
    """Names in a hidden folder beside a store, which is made when the first is asked for.

    A full disk inside the ``with`` block is told by the name of the store.
    """

    def __init__(self, target: str) -> None:
        self.target, self._n_files = target, 0
        self._scratch: Scratch | None = None

    def new_file(self) -> str:
        """The path of a new file; longer names that begin with it are free too."""
        if self._scratch is None:
            self._scratch = Scratch(os.path.dirname(self.target))
        self._n_files += 1
        return os.path.join(self._scratch.path, f"{self._n_files}.tmp")

    def __enter__(self) -> TemporaryFiles:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if self._scratch is not None:
            self._scratch.remove()
        if isinstance(error, OSError) and error.errno in FULL_DISK:
            with naming(self.target, over=True, what="store", removed=REMOVED):
                raise error


class ReadAgain(Exception):
    """A later row has shown that the rows so far are stored in the wrong way."""


class _Apart(Exception):
    """Rows of a query are not together."""


Reading = Callable[[_core.QueryTable], Generator[Dataset, None, None]]


def write_store(
    read: Reading, files: TemporaryFiles, budget: Budget, n_threads: int, overwrite: bool
) -> Store:
    """Write a store of rows that are read some at a time.

    Where the rows of every query come together they are written as they come; else all are read
    again and sorted by way of temporary files.

    Parameters
    ----------
    read : callable
        Gives the rows from the beginning each time that it is called with a new table of ids: data
        sets that are alike, of about a batch, whose ``qid`` are numbers of the table. `ReadAgain`
        asks for another call.
    files : TemporaryFiles
        With the place of the store.
    budget : Budget
        What the memory is for; what ``read`` takes comes on top.
    n_threads : int
    overwrite : bool
        Whether to replace a store that is there.
    """
    is_together = True
    while True:
        table = _core.QueryTable()
        try:
            with closing(read(table)) as parts:
                writer = StoreWriter(
                    files.target, chunk_bytes=budget.chunk, overwrite=overwrite, n_jobs=n_threads
                )
                with writer, Background() as thread:  # which ends before the writer that it calls
                    rows = map(writer.check_alike, parts)
                    whole = (
                        _whole(rows, table, budget)
                        if is_together
                        else _sorted(rows, table, budget, thread, files)
                    )
                    for queries in whole:
                        # Ids are found here: the table grows while others are written.
                        thread.submit(writer.append, queries, _ids(table, queries))
                        del queries
                    thread.wait()
                    return writer.finish()
        except _Apart:
            is_together = False
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
    files: TemporaryFiles,
    budget: Budget,
    n_threads: int = 1,
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

    return write_store(read, files, budget, n_threads, overwrite)


def _numbers(rows: Dataset, table: _core.QueryTable) -> Array | None:
    """The number of each row's query, by first appearance in all parts."""
    if rows.qid is None:
        return None
    offsets = query_offsets(rows)
    ids = rows.qid[offsets[:-1]].tolist()
    found = [table.number(str(q).encode("utf-8", "surrogateescape")) for q in ids]
    return np.repeat(np.array(found, np.int64), np.diff(offsets))


# ---- rows that come together, and those that do not ---------------------------------------------


def _whole(parts: Iterable[Dataset], table: _core.QueryTable, budget: Budget) -> Iterator[Dataset]:
    """Whole queries as they come; `_Apart` where their rows do not come together."""

    def check(held: list[Dataset]) -> None:
        n_rows = sum(part.n_rows for part in held)
        number = 0 if held[0].qid is None else int(held[0].qid[0])
        n_bytes = sum(int(_bytes_in_runs(part).sum()) for part in held)
        budget.check_query(table, number, n_bytes, f"{n_rows:,} rows or more")

    return complete_queries(parts, lambda number: _Apart(), check)


def _sorted(
    parts: Iterable[Dataset],
    table: _core.QueryTable,
    budget: Budget,
    background: Background,
    files: TemporaryFiles,
) -> Iterator[Dataset]:
    """Whole queries in the order of their numbers, by way of sorted runs."""
    runs: list[Run] = []
    held: list[Dataset] = []
    query_bytes, n_held = np.zeros(0, np.int64), 0
    for part in chain(parts, [None]):
        if part is not None:
            held.append(part)
            if len(table) > len(query_bytes):
                more = np.zeros(max(len(table), 2 * len(query_bytes)) - len(query_bytes), np.int64)
                query_bytes = np.concatenate([query_bytes, more])
            sizes, numbers = _bytes_in_runs(part), np.asarray(part.qid)
            np.add.at(query_bytes, numbers, sizes)
            n_held += int(sizes.sum())
        if held and (part is None or n_held >= budget.run):
            background.submit(
                lambda rows, path: runs.append(Run(rows, path)), held, files.new_file()
            )
            held, n_held = [], 0
        del part
    query_bytes = query_bytes[: len(table)]
    largest = int(np.argmax(query_bytes))
    size = int(query_bytes[largest])
    budget.check_query(table, largest, size, describe_bytes(size))
    background.wait()  # for the last run
    return merge(runs, query_bytes, budget.merged)


def _bytes_in_runs(part: Dataset) -> Array:
    """Bytes of each row: features and comment, number, label and weight."""
    features, comments = row_bytes(part)
    return features + comments + (16 if part.weight is None else 24)


_GATHER = 4 << 20  # bytes that are sorted into the files at a time
_AHEAD = 1 << 13  # numbers of queries that are looked at in one go


class Run:
    """Rows sorted by query in files, one for each array, and taken once from first to last.

    Parameters
    ----------
    held : list of Dataset
        The rows, in order; the list is empty afterwards.
    path : str
        What the names of the files begin with.
    """

    def __init__(self, held: list[Dataset], path: str) -> None:
        data = join_datasets(held)
        held.clear()
        assert data.qid is not None
        self._path, self._n_rows, self._n_taken = path, data.n_rows, 0
        self._n_elements = {"entries": 0, "letters": 0}  # of the rows that were taken
        self._none = data.select(np.empty(0, np.int64))
        order = np.argsort(data.qid, kind="stable")
        n_parts = max(1, min(data.n_rows, int(_bytes_in_runs(data).sum()) // _GATHER))
        for rows in np.array_split(order, n_parts):
            for name, array in _arrays(data.select(rows)).items():
                with open(f"{path}.{name}", "ab") as file:
                    file.write(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)

    def take_until(self, number: int) -> Dataset | None:
        """The rows not yet taken whose query is below ``number``; None if there are none."""
        begin = end = self._n_taken
        while end < self._n_rows:
            some = self._read("qid", end, min(end + _AHEAD, self._n_rows))
            n_before = int(np.searchsorted(some, number))
            end += n_before
            if n_before < len(some):
                break
        self._n_taken = end
        return None if end == begin else self._take(begin, end)

    def _take(self, begin: int, end: int) -> Dataset:
        none, rows = self._none, self._none.rows
        values: Rows = DenseRows(np.empty((0, 0)))
        if isinstance(rows, DenseRows):
            width = rows.shape[1]
            found = self._read("values", begin * width, end * width)
            values = DenseRows(found.reshape(end - begin, width))
        else:
            offsets, entries = self._spans("entries", begin, end)
            columns = self._read("columns", *entries)
            values = CsrRows(self._read("values", *entries), columns, offsets, rows.n_columns)
        comments = None
        if none.comments is not None:
            offsets, letters = self._spans("letters", begin, end)
            comments = Comments(self._read("text", *letters), offsets)
        return replace(
            none,
            rows=values,
            labels=self._read("labels", begin, end),
            qid=self._read("qid", begin, end),
            weight=None if none.weight is None else self._read("weight", begin, end),
            comments=comments,
        )

    def _spans(self, name: str, begin: int, end: int) -> tuple[Array, tuple[int, int]]:
        """Offsets of rows, and where their elements lie in the file."""
        offsets = np.concatenate([[0], np.cumsum(self._read(name, begin, end))])
        first = self._n_elements[name]
        self._n_elements[name] = last = first + int(offsets[-1])
        return offsets, (first, last)

    def _read(self, name: str, begin: int, end: int) -> Array:
        dtype = _arrays(self._none)[name].dtype
        place = begin * dtype.itemsize
        found = np.fromfile(f"{self._path}.{name}", dtype, end - begin, offset=place)
        if len(found) < end - begin:
            raise OSError("a temporary file of the conversion was truncated; convert again")
        return found


def _arrays(data: Dataset) -> dict[str, Array]:
    """The arrays of rows; of sparse ones and of comments, how many elements each row has too."""
    assert data.qid is not None
    found = {"qid": data.qid, "labels": data.labels, "values": data.rows.values}
    if isinstance(data.rows, CsrRows):
        found |= {"columns": data.rows.columns, "entries": np.diff(data.rows.offsets)}
    if data.weight is not None:
        found["weight"] = data.weight
    if isinstance(data.comments, Comments):
        found |= {"text": data.comments.text, "letters": np.diff(data.comments.offsets)}
    return found


def merge(runs: list[Run], query_bytes: Array, most: int) -> Iterator[Dataset]:
    """Whole queries in the order of their numbers, at a time at most ``most`` bytes or one query;
    rows of a query are in the order of the runs.

    Parameters
    ----------
    runs : list of Run
        In the order in which their rows came.
    query_bytes : int64 array (n_queries,)
        Bytes of the rows of each query.
    most : int
        Bytes.
    """
    ends = np.cumsum(query_bytes)
    first, n_queries = 0, len(ends)
    while first < n_queries:
        before = int(ends[first - 1]) if first else 0
        first = max(first + 1, int(np.searchsorted(ends, before + most, side="right")))
        taken = (run.take_until(first) for run in runs)
        whole = join_datasets([part for part in taken if part is not None])
        assert whole.qid is not None
        order = np.argsort(whole.qid, kind="stable")
        in_order = whole.select(order)
        del whole
        yield in_order
        del in_order


class Background:
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

    def __enter__(self) -> Background:
        return self

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


# ---- SVMlight/LETOR text of any size -------------------------------------------------------------


_HEAD_ROWS, _HEAD_BYTES = 1000, 4 << 20  # that storage and columns are decided on, at least


def convert_text(
    source: Any,
    path: str | os.PathLike[str],
    options: ReadingOptions,
    budget: Budget,
    n_threads: int = 1,
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
    n_threads : int
    overwrite : bool
        Whether to replace a store that is there.
    progress : callable, optional
        Called as ``progress(bytes_done, bytes_total or None)`` after each block of text.
    """
    with TemporaryFiles(check_target(path, overwrite)) as files:
        items = source if isinstance(source, list) else [source]
        spooled = [
            _Spooled(one, files.new_file()) if hasattr(one, "read") else one for one in items
        ]
        try:
            text = _Text(spooled, options, budget, n_threads, progress)
            return write_store(text.read, files, budget, n_threads, overwrite)
        finally:
            for one in spooled:
                if isinstance(one, _Spooled):
                    one.close()


@dataclass
class _Text:
    """Texts that are read, in order and as one, until all decisions hold: three times at most, with
    `write_store`.

    ``shape`` is what an earlier pass has found.
    """

    sources: list[Any]  # paths, and streams that can be rewound
    options: ReadingOptions
    budget: Budget
    n_threads: int
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
        with closing(self._pieces(survey)) as pieces:
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
                    yield from self._cut(piece, numbers, shape)
                    numbers = []
                    continue
                held.append(piece)
                n_held += max(piece.n_rows * row_bytes, piece.n_bytes)

    def _rows(self, pieces: list[Any], numbers: list[Array], shape: Shape) -> Dataset:
        qid = np.concatenate(numbers) if numbers else None
        return read_pieces(pieces, shape, qid, self.name, self.n_threads)

    def _cut(self, piece: Any, numbers: list[Array], shape: Shape) -> Iterator[Dataset]:
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

    def _pieces(self, survey: Survey) -> Generator[Any, None, None]:
        """The pieces of the text, each added to the survey when it is asked for."""
        blocks = parse_blocks(self.options.parser(), self._blocks(), self.n_threads)
        for piece, (name, done) in blocks:
            if name != survey.name:
                survey.begin(name)
            survey.add(piece)
            yield piece
            if self.progress is not None:
                self.progress(done, self.size)

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

    def __init__(self, raw: Any, path: str) -> None:
        self.name, self._raw = name_of(raw), raw
        self._kept, self._is_back = open(path, "w+b"), False  # noqa: SIM115  (until close)

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

    def close(self) -> None:
        self._kept.close()
