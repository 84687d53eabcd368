"""Rows that lie elsewhere, block by block: products travel, the rows do not.

For a query whose rows do not lie together the loss is no sum over blocks. But it sees scores only:
``z = X w`` is gathered, 8 bytes a row, the sweep of all pairs is done here on all threads, and the
slopes r of the rows go back to their blocks, where ``Xᵀ r`` is a sum again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

import numpy as np

from linrank.data.dataset import Dataset, join_ids, join_optional, join_rows
from linrank.data.rows import Array, ColumnStatistics, Extents, Rows, StreamedRows
from linrank.parts.parts import Extent, Gathering, tree_sum
from linrank.system.resources import allowed, cached_property


def block_facts(block: Dataset, *, n_threads: int = 1) -> Dataset:
    """All of a block that the client needs to know, 8 to 24 bytes a row: its rows stay there."""
    rows = block.rows
    extent: Any = Extent(rows.shape, rows.nbytes, rows.is_sparse, rows.dtype)
    return replace(block, rows=extent)


def block_slopes(block: Dataset, r: Array, *, n_threads: int = 1) -> Array:
    """``Xᵀ r`` of the block, r by row of the block."""
    return block.rows.gradient(r, None, n_threads)


def block_extents(block: Dataset, *, n_threads: int = 1) -> Extents:
    """How large the columns of the block are."""
    return block.rows.extents(n_threads)


def block_rows(block: Dataset, index: Array, *, n_threads: int = 1) -> Rows:
    """Some rows of the block, copied."""
    return block.rows.take(index)


def block_score_matrix(block: Dataset, coefs: Array, *, n_threads: int = 1) -> Array:
    """``(n_models, n_rows)``: scores, 8 bytes a row to travel, the block read from memory once."""
    return np.array([block.rows.scores(coef, None, n_threads) for coef in coefs])


def block_statistics(
    block: Dataset, kept: Array | None = None, *, n_threads: int = 1
) -> ColumnStatistics:
    """The moments of the columns over the rows ``kept``, all if None."""
    if kept is None:
        return ColumnStatistics.of(block.rows, block.weight, n_threads)
    weight = None if block.weight is None else block.weight[kept]
    return ColumnStatistics.of(block.rows.take(kept), weight, n_threads)


_SAMPLE_BYTES = 1 << 30  # of the rows that a preconditioner may fetch, where no limit is known
_MATRIX_BYTES = 256 << 20  # of the scores of several models at a time
_MOST_FEATURES = 4000  # beyond, a Cholesky factor of their Hessian is out of proportion


@dataclass(eq=False)
class GatheredRows(StreamedRows):
    """The rows of all blocks, one block after the other, or some of them.

    Parameters
    ----------
    gathering : Gathering
        Runs the tasks of `linrank.parts.gathered_rows` on the blocks.
    facts : sequence of Dataset
        The blocks without their rows, in order; they have the same columns.
    capacity : int
        Rows that may be fetched at a time.
    index : int64 array, optional
        The rows that count, by their number among all; None for all.
    """

    gathering: Gathering
    facts: Sequence[Dataset]
    capacity: int = 0
    index: Array | None = None
    _extents: Extents | None = field(default=None, init=False)

    @cached_property
    def _ends(self) -> Array:
        return np.cumsum([one.rows.shape[0] for one in self.facts])

    @property
    def shape(self) -> tuple[int, int]:
        n_rows = int(self._ends[-1]) if self.index is None else len(self.index)
        return (n_rows, self.facts[0].rows.shape[1])

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.result_type(*(one.rows.dtype for one in self.facts))

    @property
    def nbytes(self) -> int:
        whole = sum(one.rows.nbytes for one in self.facts)
        return whole * self.shape[0] // max(1, int(self._ends[-1]))

    @property
    def has_matrix(self) -> bool:
        return self.shape[1] <= _MOST_FEATURES

    def scores(self, w: Array, order: Array | None, n_threads: int) -> Array:
        (z,) = np.concatenate(self.gathering.each(block_score_matrix, w[np.newaxis]), axis=1)
        rows = self._rows(order)
        return z if rows is None else z[rows]

    def gradient(self, r: Array, order: Array | None, n_threads: int) -> Array:
        rows = self._rows(order)
        if rows is not None:
            by_row = np.zeros(int(self._ends[-1]))
            by_row[rows] = r
            r = by_row
        parts = np.split(r, self._ends[:-1])
        found = self.gathering.each(block_slopes, per_chunk=[(part,) for part in parts])
        return tree_sum(found)

    def extents(self, n_threads: int = 1) -> Extents:
        if self._extents is None:
            self._extents = tree_sum(self.gathering.each(block_extents))
        return self._extents

    def score_matrix(self, coefs: Array, n_threads: int) -> Array:
        """``(n_models, n_rows)``: as many models a pass as the gathered scores leave room for."""
        step = max(1, _MATRIX_BYTES // (8 * max(1, int(self._ends[-1]))))
        scores = np.empty((len(coefs), self.shape[0]))
        for k in range(0, len(coefs), step):
            parts = self.gathering.each(block_score_matrix, coefs[k : k + step])
            some = np.concatenate(parts, axis=1)
            scores[k : k + step] = some if self.index is None else some[:, self.index]
        return scores

    def statistics(self, weight: Array | None) -> ColumnStatistics:
        """The moments of the columns; the weights are those that the blocks have themselves."""
        kept = None if self.index is None else self._local(np.sort(self.index))
        return tree_sum(self.gathering.each(block_statistics, per_chunk=kept))

    def stored(self, index: Array | slice, n_threads: int) -> Rows:
        wanted = np.arange(int(self._ends[-1])) if self.index is None else self.index
        wanted = wanted[index]
        ascending = np.argsort(wanted, kind="stable")
        parts = self.gathering.each(block_rows, per_chunk=self._local(wanted[ascending]))
        place = np.empty_like(ascending)
        place[ascending] = np.arange(len(wanted))
        rows = join_rows(parts)
        return rows if np.array_equal(place, np.arange(len(place))) else rows.take(place)

    def take(self, index: Array | slice) -> GatheredRows:
        """Some of the rows, where they are."""
        known = np.arange(int(self._ends[-1])) if self.index is None else self.index
        some = GatheredRows(self.gathering, self.facts, self.capacity, known[index])
        some._extents = self._extents  # of all rows: not below those of some
        return some

    def describe(self) -> str:
        n_rows, n_columns = self.shape
        return f"in {len(self.facts)} blocks elsewhere, {self.dtype}, {n_rows} × {n_columns}"

    def _rows(self, order: Array | None) -> Array | None:
        """The numbers among all rows of the positions of ``order``; None where all are meant."""
        if self.index is None:
            return order
        return self.index if order is None else self.index[order]

    def _local(self, ascending: Array) -> list[tuple[Array]]:
        """Numbers among all rows as numbers within each block, its own argument of a task."""
        parts = np.split(ascending, np.searchsorted(ascending, self._ends[:-1]))
        starts = np.concatenate([[0], self._ends[:-1]])
        return [(part - start,) for part, start in zip(parts, starts, strict=True)]


def gather_rows(gathering: Gathering, *, memory_limit: int | None = None) -> Dataset:
    """The data set of all blocks, its rows left where they are.

    Whatever asks no more of rows than products can be trained on it: `linrank.ranksvm.train.train`,
    paths and folds. Labels, ids and weights come here; with the scores and what the sweep of a
    long query keeps, training takes about 150 bytes a row here, of the hinge 220.

    Parameters
    ----------
    gathering : Gathering
        Over blocks that are data sets of the same columns, all or none with ids, and with weights.
    memory_limit : int, optional
        Bytes that the rows of a sample, for preconditioning, may take here; at most 1 GiB if None.
    """
    facts = gathering.each(block_facts)
    _check_alike(facts)
    limit = allowed(memory_limit)
    n_bytes = _SAMPLE_BYTES if limit is None else min(limit // 2, _SAMPLE_BYTES)
    n_rows = sum(one.rows.shape[0] for one in facts)
    row_bytes = max(1, sum(one.rows.nbytes for one in facts) // max(1, n_rows))
    rows = GatheredRows(gathering, facts, min(n_rows, max(1, n_bytes // row_bytes)))
    return Dataset(
        cast(Any, rows),  # training asks no more of them
        np.concatenate([one.labels for one in facts]),
        None if facts[0].qid is None else join_ids([one.qid for one in facts]),
        join_optional([one.weight for one in facts]),
        facts[0].feature_names,
    )


def _check_alike(facts: Sequence[Dataset]) -> None:
    for k, one in enumerate(facts):
        if one.rows.is_sparse != facts[0].rows.is_sparse:
            kinds = ["sparse" if which.rows.is_sparse else "dense" for which in (one, facts[0])]
            raise ValueError(
                f"block {k} has {kinds[0]} rows but block 0 has {kinds[1]} ones; convert them to "
                "one kind"
            )
