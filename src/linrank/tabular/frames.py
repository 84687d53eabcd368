"""Frames of pandas and polars, and tables of pyarrow, as tables."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from linrank.data.frames import sparse_part
from linrank.errors import DataFormatError
from linrank.tabular.columns import arrow
from linrank.tabular.roles import Roles

__all__ = ["FrameTable"]

_BATCH_ROWS = 65_536


class FrameTable:
    """A frame in memory; its columns are looked at where they are, if their types allow."""

    is_text = False

    def __init__(self, frame: Any) -> None:
        self.name = f"<{type(frame).__name__}>"
        self._table = _to_arrow(frame, self.name)
        self.schema = self._table.schema
        self.n_rows: int | None = self._table.num_rows
        self.size: int | None = None

    def batches(self, roles: Roles) -> Iterator[tuple[Any, int, int]]:
        """The batches of the table, long ones in parts."""
        n_rows = 0
        for batch in self._table.select(roles.used).to_batches(max_chunksize=_BATCH_ROWS):
            yield batch, n_rows, 0
            n_rows += batch.num_rows


def _to_arrow(frame: Any, name: str) -> Any:
    pa = arrow()
    library = type(frame).__module__.partition(".")[0]
    if library == "pyarrow":
        return pa.Table.from_batches([frame]) if isinstance(frame, pa.RecordBatch) else frame
    if library == "polars":
        return frame.to_arrow()
    if sparse_part(frame) is not None:
        raise TypeError(
            f"{name} has sparse columns, which Arrow has not; give the features to Dataset.of"
        )
    try:
        return pa.Table.from_pandas(frame, preserve_index=False)
    except (pa.ArrowException, TypeError, ValueError) as error:
        if not frame.columns.is_unique:
            repeated = frame.columns[frame.columns.duplicated()][0]
            raise DataFormatError(
                f"{name}: several columns are named {str(repeated)!r}; rename all but one"
            ) from None
        text = " ".join(str(error).split())
        raise DataFormatError(f"{name}: a column is not of one type: {text}") from None
