"""write: a data set, part by part, into one file; whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from itertools import chain
from typing import IO, Any

from linrank.data.dataset import Dataset
from linrank.io.blocks import Progress, StandardOutput, import_zstd
from linrank.io.formats import TABLES, TEXTS
from linrank.io.sidecars import ENDINGS
from linrank.io.sinks import SINKS, Outline, table_writer
from linrank.io.tables.columns import arrow
from linrank.io.tables.roles import is_misleading
from linrank.system.durable import check_place, one_at_a_time, replacing, settle
from linrank.system.resources import resolve

_BLOCK_BYTES, _BLOCK_ROWS = 32 << 20, 1 << 20


@contextmanager
def open_output(name: str, is_text: bool = True) -> Iterator[IO[bytes]]:
    """A file that appears whole or not at all, text compressed as its name says; - is standard
    output."""
    if name == "-":
        standard: Any = StandardOutput()
        yield standard
        standard.flush()
        return
    with (
        replacing(name) as whole,
        compressed(whole, name) if is_text else nullcontext(whole) as file,
    ):
        yield file


@contextmanager
def _open_beside(name: str) -> Iterator[tuple[IO[bytes], IO[bytes]]]:
    """A text, and the file of positions beside it."""
    with one_at_a_time(name), replacing(f"{name}.position") as beside, replacing(name) as whole:
        with compressed(whole, name) as file:
            yield file, beside
        # Both are on the disk before one gets its name, and between the two there are no
        # positions rather than those of other rows.
        settle(whole, beside)
        with suppress(FileNotFoundError):
            os.unlink(os.path.realpath(f"{name}.position"))


def compressed(file: IO[bytes], name: str) -> Any:
    """A stream into a file, compressed as the last extension of its name says."""
    extension = os.path.splitext(name.lower())[1]
    if extension == ".gz":
        import gzip

        return gzip.GzipFile("", "wb", 6, file, mtime=0)  # the same data give the same bytes
    if extension == ".bz2":
        import bz2

        return bz2.BZ2File(file, "wb")
    if extension == ".xz":
        import lzma

        return lzma.LZMAFile(file, "wb", preset=1)
    if extension == ".zst":
        zstd = import_zstd("writing")
        if hasattr(zstd, "ZstdFile"):
            return zstd.ZstdFile(file, "w")
        return zstd.ZstdCompressor().stream_writer(file, closefd=False)
    return nullcontext(file)


@dataclass(frozen=True)
class Written:
    """A file that was written.

    Attributes
    ----------
    path, format : str
    n_rows, n_features : int
    storage : {"dense", "csr"}
    dtype : str
        Of the values.
    nbytes : int or None
        Size of the file; None for a pipe.
    left_out : tuple of str
        What the rows had and the format has no place for.
    misleading : tuple of str
        Features of a table that are named as labels, ids, weights or positions are: whoever reads
        it must say that they are features.
    """

    path: str
    format: str
    n_rows: int
    n_features: int
    storage: str
    dtype: str
    nbytes: int | None
    left_out: tuple[str, ...]
    misleading: tuple[str, ...] = ()


def write(
    parts: Dataset | Iterable[Dataset],
    path: str | os.PathLike[str],
    format: str,
    *,
    storage: str = "auto",
    overwrite: bool = False,
    n_jobs: int | None = None,
    n_rows: int | None = None,
    progress: Progress | None = None,
) -> Written:
    """Write a data set as one file, a block of rows at a time.

    Parameters
    ----------
    parts : Dataset or iterable of them
        Parts of one data set in order, alike but for their rows.
    path : path
        The file, or ``"-"`` for standard output. Text is compressed where the name ends in .gz,
        .bz2 or .xz.
    format : {"svmlight", "parquet", "arrow", "csv", "tsv", "qrels"}
    storage : {"auto", "dense", "csr"}
        Whether all values are written, or the entries that are given; "auto": as they are stored.
        CSV and TSV always hold all.
    overwrite : bool
        Whether to replace a file that is there.
    n_jobs : int, optional
        Threads; None uses all cores.
    n_rows : int, optional
        Rows of all parts, for `progress`.
    progress : callable, optional
        Called as ``progress(rows_done, n_rows or None)`` after each block.

    Returns
    -------
    Written

    Examples
    --------
    >>> import tempfile
    >>> data = Dataset.of([[0.5], [1.0]], [0, 1], qid=["a", "a"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = write(data, folder + "/data.txt", "svmlight")
    ...     print(open(folder + "/data.txt").read(), end="")
    0 qid:a 1:0.5
    1 qid:a 1:1
    """
    every = iter([parts] if isinstance(parts, Dataset) else parts)
    first = next(every, None)
    if first is None or first.n_rows == 0:
        raise ValueError("there are no rows to write")
    if format in ("csv", "tsv") and storage == "auto":
        storage = "dense"
    outline, name = Outline.of(first, storage), os.fspath(path)
    has_positions = format == "svmlight" and outline.position_type is not None
    _check_place(name, format, has_positions, overwrite)
    total = first.n_rows if isinstance(parts, Dataset) else n_rows
    every = chain([first], every)
    del first
    done = 0
    with ExitStack() as stack:
        file: IO[bytes]
        beside: IO[bytes] | None = None
        if has_positions and name != "-":  # lines of SVMlight text have no place for them
            file, beside = stack.enter_context(_open_beside(name))
        else:
            file = stack.enter_context(open_output(name, format in TEXTS))
        sink = SINKS[format](file, outline, resolve(n_jobs), _is_stream(name))
        with _closing(sink):
            for block in _blocks(every, outline):
                sink.add(block)
                if beside is not None and block.position is not None:
                    beside.write("".join(map(_position_line, block.position.tolist())).encode())
                done += block.n_rows
                del block
                if progress is not None:
                    progress(done, total)
    left_out = ["the features"] if format == "qrels" else []
    if outline.names is not None and (format == "svmlight" or outline.is_sparse) and not left_out:
        left_out.append("the names of the features")
    if name == "-" and has_positions:
        left_out.append("the positions")
    are_columns = format in TABLES and not outline.is_sparse
    return Written(
        name,
        format,
        done,
        outline.n_features,
        "csr" if outline.is_sparse else "dense",
        outline.dtype.name,
        os.path.getsize(name) if os.path.isfile(name) else None,
        tuple(left_out),
        tuple(filter(is_misleading, outline.names or ())) if are_columns else (),
    )


def write_columns(columns: Mapping[str, Any], name: str, format: str) -> None:
    """Write a table of whole columns, as `write` writes data sets; a file there is replaced."""
    batch = arrow(f"writing {name}").RecordBatch.from_pydict(dict(columns))
    with open_output(name, format in TEXTS) as file:
        writer = table_writer(format, file, batch.schema, _is_stream(name))
        with _closing(writer):
            writer.write(batch)


def _check_place(name: str, format: str, has_positions: bool, overwrite: bool) -> None:
    """Raise an OSError before anything is written, rather than after an hour."""
    if name == "-":
        return
    check_place(name)
    if os.path.isfile(name) and not overwrite:
        raise FileExistsError(
            f"{name} is there already; name another, or overwrite it (overwrite=True)"
        )
    if format not in TEXTS or format == "qrels":
        return
    own = (".position",) if has_positions and overwrite else ()
    for suffix in ENDINGS:
        if os.path.exists(name + suffix) and suffix not in own:
            raise FileExistsError(
                f"{name}{suffix} is there and would be read along with the new {name}; remove it, "
                "or name another file"
            )


def _is_stream(name: str) -> bool:
    """Whether Arrow data are a stream of batches, without the table at the end of a file."""
    return name == "-" or name.lower().endswith(".arrows")


def _blocks(parts: Iterator[Dataset], outline: Outline) -> Iterator[Dataset]:
    """The rows of all parts, some at a time."""
    for part in parts:
        outline.check(part)
        row_bytes = part.rows.nbytes // max(1, part.n_rows)
        if not outline.is_sparse:
            row_bytes = max(row_bytes, outline.n_features * outline.dtype.itemsize)
        step = max(1, min(_BLOCK_ROWS, _BLOCK_BYTES // max(1, row_bytes)))
        for begin in range(0, part.n_rows, step):
            yield part if step >= part.n_rows else part.select(slice(begin, begin + step))
        del part  # not held while the next is read


@contextmanager
def _closing(sink: Any) -> Iterator[None]:
    """Complete the file; after a fault let go of it, whatever that says."""
    try:
        yield
    except BaseException:
        with suppress(Exception):  # the fault that is under way says more
            sink.close()
        raise
    sink.close()


def _position_line(position: float) -> str:
    return f"{int(position) if float(position).is_integer() else position!r}\n"
