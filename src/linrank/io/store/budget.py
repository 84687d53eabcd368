"""Budget: what the memory of a conversion is for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from linrank import _core
from linrank.io.store.batch import Shape
from linrank.io.store.writer import CHUNK_BYTES
from linrank.system.resources import describe_bytes, parse_bytes

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

    def check(self, shape: Shape) -> None:
        """Raise MemoryError where the columns alone are too many."""
        limit = f"memory_limit={describe_bytes(self.limit)}"
        if shape.row_bytes() > self.batch:
            raise MemoryError(
                f"a dense row of {shape.n_columns:,} columns takes "
                f"{describe_bytes(shape.row_bytes())}, more than {limit} allows; use storage='csr'"
            )
        needed = _statistics_bytes(shape.n_columns)
        if needed > self.limit // 4:
            raise MemoryError(
                f"the statistics of {shape.n_columns:,} columns take {describe_bytes(needed)}, "
                f"more than a quarter of {limit}; give {describe_bytes(4 * needed)} or more, or "
                "renumber the features"
            )

    def check_ids(self, table: _core.QueryTable) -> None:
        """Raise MemoryError where the ids of the queries are too many."""
        if table.n_bytes > self.table:
            raise MemoryError(
                f"the ids of {len(table):,} queries take {describe_bytes(table.n_bytes)}, more "
                f"than a sixth of memory_limit={describe_bytes(self.limit)}; give a larger "
                "memory_limit, or check that qid is not a row id"
            )


def _statistics_bytes(n_columns: int) -> int:
    """Sums of up to 64 parts of a chunk, 48 bytes a column (see `core/scaling.cpp`); and what is
    known of the columns so far, of a chunk and of both, with what merging takes."""
    n_parts = min(64, max(1, (1 << 20) // n_columns))
    return (48 * n_parts + 150) * n_columns
