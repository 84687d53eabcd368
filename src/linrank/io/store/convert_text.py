"""convert: SVMlight/LETOR text of any size becomes a store, within a memory limit."""

from __future__ import annotations

import errno
import os
import sys
from collections import deque
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from stat import S_ISDIR, S_ISREG
from typing import Any, Literal

import numpy as np
from numpy.typing import DTypeLike, NDArray

from linrank import _core
from linrank.errors import DataFormatError
from linrank.io.blocks import LongLineError, Part, TextBlocks, name_of, open_blocks, standard_input
from linrank.io.store.batch import Batch, Shape, TextSurvey, batch_of
from linrank.io.store.budget import Budget
from linrank.io.store.layout import check_target
from linrank.io.store.spill import Apart, Background, Grouped, Output, Sink, Together
from linrank.io.store.store import Store
from linrank.io.store.writer import StoreWriter
from linrank.io.svmlight import ReadingOptions, parse_blocks
from linrank.system.durable import FULL_DISK, REMOVED, Scratch, naming
from linrank.system.resources import resolve

Array = NDArray[Any]


@dataclass(frozen=True)
class Place:
    """Where a block ends: the name of its file, and the bytes of all files up to there."""

    name: str
    done: int


class Sources:
    """One or several texts: paths, ``"-"`` or binary file objects.

    What cannot be opened twice is rewound, or, if it is a pipe, kept in a temporary file as it is
    read: compressed, if it is.

    Parameters
    ----------
    source : path, "-", binary file object, or a sequence of them
        Read in this order, as if they were one file.
    spool : callable
        Returns the path of a new temporary file.
    block_size, longest_line : int
        Bytes.
    """

    def __init__(
        self, source: Any, spool: Callable[[], str], block_size: int, longest_line: int
    ) -> None:
        self._sources = list(source) if isinstance(source, (list, tuple)) else [source]
        if not self._sources:
            raise ValueError("source is empty; give at least one file to convert")
        if sum(isinstance(one, str) and one == "-" for one in self._sources) > 1:
            raise ValueError("'-', standard input, is given twice; it can be read only once")
        self._spool, self._block_size, self._longest = spool, block_size, longest_line
        self._streams: dict[int, _Rewound | _Spooled] = {}
        sizes = [_size(one) for one in self._sources]
        self.size = None if None in sizes else sum(size for size in sizes if size is not None)

    @property
    def first_name(self) -> str:
        """The first text in messages."""
        source = self._sources[0]
        if not hasattr(source, "read"):
            return "<stdin>" if source == "-" else os.fsdecode(source)
        return _name(source)

    def blocks(self) -> Iterator[tuple[Part, Place]]:
        """All blocks, from the beginning, every time that it is called."""
        before = 0
        for i in range(len(self._sources)):
            text, done = self._open(i), 0
            for block, done in text.parts:
                yield self._told(block, text.name), Place(text.name, before + done)
            before += done

    def _open(self, i: int) -> TextBlocks:
        source: Any = self._sources[i]
        if _size(source) is None:
            if i in self._streams:
                self._streams[i].rewind()
            else:
                self._streams[i] = self._stream(source)
            source = self._streams[i]
        return open_blocks(source, self._block_size, longest_line=self._longest)

    def _stream(self, source: Any) -> _Rewound | _Spooled:
        if not hasattr(source, "read"):
            source = standard_input() if source == "-" else open(source, "rb", buffering=0)  # noqa: SIM115
        if hasattr(source, "seekable") and source.seekable():
            return _Rewound(source)
        return _Spooled(source, self._spool())

    def _told(self, block: Part, name: str) -> Part:
        if not isinstance(block, LongLineError):
            return block
        return DataFormatError(
            f"{name}: {block.what}, the most that memory_limit allows; give a larger one, or check "
            "that the file is text with line ends"
        )

    def close(self) -> None:
        """Close what was opened here."""
        for stream in self._streams.values():
            stream.close()


def _size(source: Any) -> int | None:
    """Bytes of a regular file; None for anything that is not opened by a path, or is a pipe."""
    if hasattr(source, "read") or source == "-":
        return None
    status = os.stat(source)
    if S_ISDIR(status.st_mode):
        raise IsADirectoryError(
            errno.EISDIR,
            "is a folder, not text; give its files one by one (a store is trained from as it is)",
            os.fsdecode(source),
        )
    return status.st_size if S_ISREG(status.st_mode) else None


class _Rewound:
    """A file object that goes back to where it was."""

    def __init__(self, raw: Any) -> None:
        self.name, self._raw, self._start = _name(raw), raw, raw.tell()

    def read(self, size: int) -> bytes:
        data: bytes = self._raw.read(size)
        return data

    def rewind(self) -> None:
        self._raw.seek(self._start)

    def close(self) -> None:
        """It is the caller's."""


class _Spooled:
    """A pipe of which all that was read is kept in a file."""

    def __init__(self, raw: Any, path: str) -> None:
        self.name, self._raw = _name(raw), raw
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


def _name(raw: Any) -> str:
    if raw is getattr(sys.stdin, "buffer", None):
        return "<stdin>"
    return name_of(raw)


class Assembler:
    """Collects pieces until their rows fill a batch, and hands that to a sink."""

    def __init__(self, sink: Sink, table: _core.QueryTable, budget: Budget, n_threads: int) -> None:
        self._sink, self._table, self._budget = sink, table, budget
        self._n_threads = n_threads
        self._pieces: list[Any] = []
        self._numbers: list[Array] = []
        self._nbytes = 0

    def add(self, piece: Any, shape: Shape) -> None:
        """Add the next piece, which has rows."""
        numbers, sizes = self._table.runs(piece)
        self._budget.check_ids(self._table)
        n_bytes = piece.n_rows * shape.row_bytes()
        if n_bytes > 4 * self._budget.batch:
            self.flush(shape)
            for batch in self._cut(piece, np.repeat(numbers, sizes), shape):
                self._sink.add(batch, shape)
            return
        self._pieces.append(piece)
        self._numbers.append(np.repeat(numbers, sizes))
        self._nbytes += max(n_bytes, piece.n_bytes)
        if self._nbytes >= self._budget.batch:
            self.flush(shape)

    def flush(self, shape: Shape) -> None:
        """Hand on what has been collected."""
        if self._pieces:
            numbers = np.concatenate(self._numbers)
            batch = batch_of(self._pieces, numbers, shape, self._n_threads)
            self._pieces, self._numbers, self._nbytes = [], [], 0
            self._sink.add(batch, shape)

    def _cut(self, piece: Any, numbers: Array, shape: Shape) -> Iterator[Batch]:
        """Dense rows of a piece whose lines are short: far larger than the text, part by part."""
        sparse = batch_of([piece], numbers, replace(shape, is_dense=False), self._n_threads)
        step = max(1, self._budget.batch // shape.row_bytes())
        for begin in range(0, sparse.n_rows, step):
            part = sparse.cut(begin, min(begin + step, sparse.n_rows))
            spans = dict(part.spans)
            entries = spans.pop("entries")
            x = np.zeros((part.n_rows, shape.n_columns), shape.dtype)
            values, columns = entries.arrays
            x[np.repeat(np.arange(part.n_rows), np.diff(entries.offsets)), columns] = values
            yield Batch({**part.fixed, "values": x}, spans)


Progress = Callable[[int, "int | None"], object]
_HEAD_ROWS, _HEAD_BYTES = 1000, 4 << 20  # that storage and columns are decided on, at least


def convert(
    source: Any,
    path: str | os.PathLike[str],
    *,
    memory_limit: int | float | str | None = None,
    storage: Literal["auto", "dense", "csr"] = "auto",
    dtype: DTypeLike | None = "float32",
    n_features: int | None = None,
    zero_based: Literal["auto"] | bool = "auto",
    chunk_bytes: int | float | str | None = None,
    n_jobs: int | None = None,
    progress: Progress | None = None,
    overwrite: bool = False,
) -> Store:
    """Convert SVMlight/LETOR text to a store, without having all of it in memory.

    The store holds what `linrank.load` would return for the text, its rows grouped by query:
    queries in the order of their first rows, rows of a query in the order of the text. A text
    whose queries come together is read once. Rows in any other order are sorted by way of
    temporary files beside the store, which take as much room as the store and are always removed.
    So is everything else after a fault, Ctrl-C or on a full disk: there is a whole store or none.

    Parameters
    ----------
    source : path, "-", binary file object, or a sequence of them
        As `linrank.load` reads it, compressed or not; several are read as if they were one file. A
        pipe is kept in a temporary file, as it may have to be read again.
    path : path
        Folder of the store.
    memory_limit : int, float, str or None, default=None
        Bytes, or a size such as ``"512MiB"``, that the conversion may take beyond what the process
        holds already, at least 64 MiB; None for 1 GiB. A query may take a sixth of it.
    storage : {"auto", "dense", "csr"}, default="auto"
        ``"auto"`` takes the smaller of the two for the first lines of the text.
    dtype : {"float32", "float64"}, default="float32"
        Type of the feature values; labels and weights are float64.
    n_features : int, optional
        Number of columns; by default as many as the largest index asks for. Where a later line has
        a larger one than the first lines, a dense store is begun again.
    zero_based : {"auto", True, False}, default="auto"
        Whether feature 0 is the first column, or feature 1. ``"auto"``: 0 if the text has it; where
        only a later line has it, the store is begun again.
    chunk_bytes : int, float, str or None, default=None
        Bytes of the features of a chunk, at most a quarter of the memory; None for 64 MiB, or less
        where the limit asks for it.
    n_jobs : int, optional
        Threads; None uses all cores.
    progress : callable, optional
        Called as ``progress(bytes_done, bytes_total or None)`` after each block of text.
    overwrite : bool, default=False
        Whether to replace a store that is there.

    Returns
    -------
    Store

    Raises
    ------
    DataFormatError
        The text is not as described; the message names file, line and column of the first fault.
    MemoryError
        A query, or the ids of all queries, are larger than the limit allows.
    OSError
        The folder cannot be written, or the disk is full.

    Examples
    --------
    >>> import io, tempfile
    >>> text = io.BytesIO(b"1 qid:7 1:0.5\\n2 qid:9 2:1\\n0 qid:7 1:2 2:4\\n0 qid:9 1:3\\n")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = convert(text, folder + "/store", storage="dense")
    ...     print(store.n_queries, store.read(0).qid, store.read(0).labels)
    2 [7 7 9 9] [1. 0. 2. 0.]
    """
    options = ReadingOptions.of(dtype, storage, n_features, zero_based)
    n_threads = resolve(n_jobs)
    budget = Budget.of(memory_limit, chunk_bytes, n_threads)
    return convert_within(budget, source, path, options, n_threads, overwrite, progress)


def convert_within(
    budget: Budget,
    source: Any,
    path: str | os.PathLike[str],
    options: ReadingOptions,
    n_threads: int = 1,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> Store:
    """Convert with a budget of one's own."""
    target = check_target(path, overwrite)
    with TemporaryFiles(target) as files:
        longest = max(1 << 20, budget.limit // 64)
        sources = Sources(source, files.new_file, budget.block, longest)
        try:
            job = _Job(sources, target, options, budget, n_threads, overwrite, files, progress)
            return job.run()
        finally:
            sources.close()


class TemporaryFiles:
    """Names in a hidden folder beside a store, which is made when the first is asked for.

    A full disk inside the ``with`` block is told by the name of the store.
    """

    def __init__(self, target: str) -> None:
        self._target, self._n_files = target, 0
        self._scratch: Scratch | None = None

    def new_file(self) -> str:
        if self._scratch is None:
            self._scratch = Scratch(os.path.dirname(self._target))
        self._n_files += 1
        return os.path.join(self._scratch.path, f"{self._n_files}.tmp")

    def __enter__(self) -> TemporaryFiles:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if self._scratch is not None:
            self._scratch.remove()
        if isinstance(error, OSError) and error.errno in FULL_DISK:
            with naming(self._target, over=True, what="store", removed=REMOVED):
                raise error


class _Again(Exception):
    """A later line proved a decision wrong."""


@dataclass
class _Job:
    """One conversion; ``shape`` and ``is_together`` are what earlier passes have found."""

    sources: Sources
    target: str
    options: ReadingOptions
    budget: Budget
    n_threads: int
    overwrite: bool
    files: TemporaryFiles
    progress: Progress | None
    shape: Shape | None = None
    is_together: bool = True

    def run(self) -> Store:
        """Pass over the text until all decisions hold: three times at most.

        A pass that finds rows of a query apart is given up at once. One that finds columns beyond
        those of its first lines goes on without writing, so that the next knows all of them.
        """
        while True:
            try:
                return self._pass()
            except Apart:
                self.is_together = False
            except _Again:
                continue

    def _pass(self) -> Store:
        survey = TextSurvey(self.sources.first_name, self.options)
        with closing(self._surveyed(survey)) as pieces:
            head = self._head(survey, pieces)
            survey.check_rows()
            shape = self.shape or Shape.of(survey)
            self.budget.check(shape)
            with self._writer(shape) as writer:
                if self._fill(writer, shape, survey, head, pieces):
                    return writer.finish()
            deque(pieces, maxlen=0)  # the rest of the text, to know all columns
        self.shape = Shape.of(survey)
        raise _Again

    def _head(self, survey: TextSurvey, pieces: Iterator[Any]) -> list[Any]:
        """The first pieces, enough to decide on the shape."""
        head: list[Any] = []
        while (piece := next(pieces, None)) is not None:
            head.append(piece)
            n_bytes = sum(piece.n_bytes for piece in head)
            enough = n_bytes >= min(_HEAD_BYTES, self.budget.batch)
            if enough and survey.n_rows >= _HEAD_ROWS and survey.n_entries > 0:
                break
        return head

    def _fill(
        self,
        writer: StoreWriter,
        shape: Shape,
        survey: TextSurvey,
        head: list[Any],
        pieces: Iterator[Any],
    ) -> bool:
        """Write all rows; False, with some of them written, where the shape does not hold."""
        table = _core.QueryTable()
        with Background() as background:
            sink = self._sink(Output(writer, table, background))
            assembler = Assembler(sink, table, self.budget, self.n_threads)
            head.reverse()
            while (piece := head.pop() if head else next(pieces, None)) is not None:
                if not shape.admits(survey):
                    return False
                if not shape.is_dense:
                    shape = replace(shape, n_columns=survey.columns()[1])
                    self.budget.check(shape)
                if piece.n_rows > 0:
                    assembler.add(piece, shape)
            assembler.flush(shape)
            sink.finish(shape)
        return True

    def _surveyed(self, survey: TextSurvey) -> Generator[Any, None, None]:
        """The pieces of the text, each added to the survey when it is asked for."""
        place: Place
        for piece, place in parse_blocks(
            self.options.parser(), self.sources.blocks(), self.n_threads
        ):
            if place.name != survey.name:
                survey.begin(place.name)
            survey.add(piece)
            yield piece
            if self.progress is not None:
                self.progress(place.done, self.sources.size)

    def _sink(self, output: Output) -> Sink:
        if self.is_together:
            return Together(output, self.budget)
        return Grouped(output, self.budget, self.files.new_file)

    def _writer(self, shape: Shape) -> StoreWriter:
        return writer_of(
            shape,
            self.target,
            index_base=shape.base,
            chunk_bytes=self.budget.chunk,
            overwrite=self.overwrite,
            n_jobs=self.n_threads,
        )


def writer_of(shape: Shape, target: str, **options: Any) -> StoreWriter:
    """The writer of a store of this shape; ``options`` are the other ones of `StoreWriter`."""
    return StoreWriter(
        target,
        storage="dense" if shape.is_dense else "csr",
        dtype=shape.dtype,
        n_features=shape.n_columns,
        has_ids=shape.has_ids,
        has_weights=shape.has_weights,
        has_comments=shape.has_comments,
        **options,
    )
