"""A table batch by batch, each a dataset: for what need not be in memory as a whole."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from linrank.data.dataset import Dataset
from linrank.errors import DataFormatError
from linrank.tabular.arrow_tables import Form, Table, read_table
from linrank.tabular.columns import columns_of
from linrank.tabular.prefetch import ahead
from linrank.tabular.roles import Roles, TableOptions, assign

__all__ = ["table_parts"]

Note = Callable[[str], object]
Progress = Callable[[int, "int | None"], object]


def table_parts(
    table: Table,
    options: TableOptions,
    form: Form,
    n_threads: int,
    progress: Progress | None,
    note: Note,
) -> Iterator[Dataset]:
    """The rows of a table, some at a time and in order, as datasets that are alike.

    As `linrank.tabular.arrow_tables.read_table`, but for vectors of Spark, which stay sparse unless
    ``form.storage`` says otherwise: which storage is smaller is known at the end only. Query ids
    of a text may be integers in one and strings in the next, where only a later one shows it.
    """
    roles = assign(columns_of(table.schema, table.name), options, table.name)
    for text in roles.notes:
        note(text)
    if roles.layout == "vector" and form.storage == "auto":
        form = replace(form, storage="csr")
    n_rows = 0
    for batch, done in ahead(table.batches(roles)):
        if batch.num_rows > 0:
            one = _Batch(table.name, table.schema, int(batch.num_rows), None, table.is_text, batch)
            try:
                part = read_table(one, options, form, n_threads, None, lambda _: None)
            except DataFormatError as error:
                where = f"; rows are counted from row {n_rows} of the table" if n_rows else ""
                raise DataFormatError(f"{error}{where}") from None
            yield part
        n_rows += batch.num_rows
        if progress is not None:
            progress(done, table.size)
    if n_rows == 0:
        raise DataFormatError(f"{table.name}: no rows")


@dataclass
class _Batch:
    """One batch of a table, as a table."""

    name: str
    schema: Any
    n_rows: int | None
    size: int | None
    is_text: bool
    batch: Any

    def batches(self, roles: Roles) -> Iterator[tuple[Any, int]]:
        yield self.batch, 0
