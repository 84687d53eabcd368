"""Parts of a data set, their queries in any order, into a store within a memory limit."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linrank import _core
from linrank.data.dataset import Dataset
from linrank.data.rows import DenseRows
from linrank.io.comments import Comments, naming_documents
from linrank.io.store.batch import Batch, Shape, Span
from linrank.io.store.budget import Budget
from linrank.io.store.convert_text import TemporaryFiles, writer_of
from linrank.io.store.layout import check_target
from linrank.io.store.spill import Apart, Background, Grouped, Output, Sink, Together
from linrank.io.store.store import Store

Array = NDArray[Any]
Parts = Callable[[], Iterable[Dataset]]


def collect(
    parts: Parts,
    path: str | os.PathLike[str],
    budget: Budget,
    n_threads: int = 1,
    overwrite: bool = False,
) -> Store:
    """Write a store of parts that are read one at a time.

    As `convert_text` does with text: where the rows of every query come together they are
    written as they come; else all parts are read again and sorted by way of temporary files.

    Parameters
    ----------
    parts : callable
        Gives the parts anew, in the same order, each time that it is called. They are alike: in
        storage, type, features, and in having ids, weights and documents.
    path : path
        Folder of the store.
    budget : Budget
        What the memory is for; a part, which the caller reads, comes on top.
    n_threads : int
    overwrite : bool
        Whether to replace a store that is there.
    """
    target = check_target(path, overwrite)
    with TemporaryFiles(target) as files:
        try:
            return _write(parts, target, budget, n_threads, overwrite, Together)
        except Apart:
            return _write(parts, target, budget, n_threads, overwrite, _grouped(files))


def _grouped(files: TemporaryFiles) -> Callable[[Output, Budget], Sink]:
    return lambda output, budget: Grouped(output, budget, files.new_file)


def _write(
    parts: Parts,
    target: str,
    budget: Budget,
    n_threads: int,
    overwrite: bool,
    sink_of: Callable[[Output, Budget], Sink],
) -> Store:
    every = iter(parts())
    part = next(every, None)
    if part is None:
        raise ValueError("there are no rows to write")
    shape = _shape(part)
    budget.check(shape)
    with writer_of(
        shape,
        target,
        feature_names=part.feature_names,
        index_base=part.index_base,
        chunk_bytes=budget.chunk,
        overwrite=overwrite,
        n_jobs=n_threads,
    ) as writer:
        table, n_rows = _core.QueryTable(), 0
        with Background() as background:
            sink = sink_of(Output(writer, table, background), budget)
            while part is not None:
                for batch in _batches(part, table, shape, budget, n_rows):
                    sink.add(batch, shape)
                n_rows += part.n_rows
                part = next(every, None)
            sink.finish(shape)
        return writer.finish()


def _shape(part: Dataset) -> Shape:
    return Shape(
        isinstance(part.rows, DenseRows),
        part.rows.dtype,
        0 if part.index_base is None else part.index_base,
        part.n_features,
        part.qid is not None,
        part.weight is not None,
        part.comments is not None,
    )


def _batches(
    part: Dataset, table: _core.QueryTable, shape: Shape, budget: Budget, first_row: int
) -> Iterator[Batch]:
    """The rows of a part, some at a time, their queries numbered."""
    if (found := _shape(part)) != shape:
        raise ValueError(
            f"{part.source}: rows are {found}, those of the parts before {shape}; all must be alike"
        )
    step = max(1, budget.batch * part.n_rows // max(1, part.rows.nbytes))
    for begin in range(0, part.n_rows, step):
        rows = part if step >= part.n_rows else part.select(slice(begin, begin + step))
        numbers = _numbers(rows, table)
        budget.check_ids(table)
        yield _batch(rows, numbers, first_row + begin)


def _numbers(rows: Dataset, table: _core.QueryTable) -> Array:
    """The number of each row's query, by first appearance in all parts."""
    if rows.qid is None:
        return np.full(rows.n_rows, table.number(b""), np.int64)
    ids = rows.qid
    starts = np.flatnonzero(np.concatenate([[True], np.asarray(ids[1:] != ids[:-1], bool)]))
    found = [table.number(str(q).encode("utf-8", "surrogateescape")) for q in ids[starts].tolist()]
    return np.repeat(np.array(found, np.int64), np.diff(np.append(starts, len(ids))))


def _batch(rows: Dataset, numbers: Array, first_row: int) -> Batch:
    fixed: dict[str, Array] = {"number": numbers, "label": rows.labels}
    spans: dict[str, Span] = {}
    if rows.weight is not None:
        fixed["weight"] = rows.weight
    if rows.comments is not None:
        comments = _comments(rows, first_row)
        spans["comments"] = Span(comments.offsets, (comments.text,))
    if isinstance(rows.rows, DenseRows):
        fixed["values"] = np.ascontiguousarray(rows.rows.values)
    else:
        columns = rows.rows.columns.astype(np.int32, copy=False)
        spans["entries"] = Span(rows.rows.offsets, (rows.rows.values, columns))
    return Batch(fixed, spans)


def _comments(rows: Dataset, first_row: int) -> Comments:
    """Comments as a store has them: documents of a table as LETOR files name them."""
    if isinstance(rows.comments, Comments):
        return rows.comments
    return naming_documents(rows.docids or (), first_row, "a store")
