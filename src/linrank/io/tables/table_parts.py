"""A table batch by batch, each a dataset: for what need not be in memory as a whole."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from linrank.data.dataset import Dataset
from linrank.errors import DataFormatError
from linrank.io.tables.arrow import Form, Table, ahead, read_table
from linrank.io.tables.columns import columns_of
from linrank.io.tables.formats import Roles, TableOptions, assign

Note = Callable[[str], object]
Progress = Callable[[int, "int | None"], object]
PART_BYTES = 16 << 20  # of batches that become one dataset; there are about six copies of it


def table_parts(
    table: Table,
    options: TableOptions,
    form: Form,
    n_threads: int,
    progress: Progress | None,
    note: Note,
) -> Iterator[Dataset]:
    """The rows of a table, some at a time and in order, as datasets that are alike.

    As `linrank.io.tables.arrow.read_table`, but for vectors of Spark, which stay sparse unless
    ``form.storage`` says otherwise: which storage is smaller is known at the end only. Query ids
    of a text may be integers in one and strings in the next, where only a later one shows it.
    """
    roles = assign(columns_of(table.schema, table.name), options, table.name)
    for text in roles.notes:
        note(text)
    if roles.layout == "vector" and form.storage == "auto":
        form = replace(form, storage="csr")
    n_rows = 0
    for batches, done in _gathered(table, roles):
        one = _Batches(table.name, table.schema, batches, table.is_text)
        try:
            part = read_table(one, options, form, n_threads, None, lambda _: None)
        except DataFormatError as error:
            where = f"; rows are counted from row {n_rows} of the table" if n_rows else ""
            raise DataFormatError(f"{error}{where}") from None
        n_rows += part.n_rows
        del one, batches  # what is held while the next part is read
        yield part
        del part
        if progress is not None:
            progress(done, table.size)
    if n_rows == 0:
        raise DataFormatError(f"{table.name}: no rows")


def _gathered(table: Table, roles: Roles) -> Iterator[tuple[list[Any], int]]:
    """Batches that together hold some ten megabytes, and the bytes gone through with them."""
    batches: list[Any] = []
    # Of Parquet, batches may hold some columns of many rows.
    source = getattr(table, "row_batches", table.batches)
    done = 0
    for batch, _, done in ahead(source(roles)):
        if batch.num_rows > 0:
            batches.append(batch)
        if sum(held.nbytes for held in batches) >= PART_BYTES:
            whole, batches = batches, []
            yield whole, done
            del whole
    if batches:
        yield batches, done


class _Batches:
    """Some batches of a table, as a table."""

    size: int | None = None

    def __init__(self, name: str, schema: Any, batches: list[Any], is_text: bool) -> None:
        self.name, self.schema, self.is_text = name, schema, is_text
        self._batches = batches
        self.n_rows: int | None = sum(batch.num_rows for batch in batches)

    def batches(self, roles: Roles) -> Iterator[tuple[Any, int, int]]:
        begin = 0
        for batch in self._batches:
            yield batch, begin, 0
            begin += batch.num_rows
