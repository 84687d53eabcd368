"""Gatherings and parts in a few lines, in the memory of this process."""

from __future__ import annotations

import pickle
from contextlib import contextmanager

import numpy as np

from linrank.data.dataset import Dataset
from linrank.parts.parts import MemoryChunks, Parts, tree_sum


class PlainGathering:
    """Tasks on a list of blocks, one after the other; `asked` counts them by name.

    Every argument and answer travels through pickle, as to a worker.
    """

    def __init__(self, blocks):
        self.blocks = [_travelled(block) for block in blocks]
        self.asked: dict[str, int] = {}

    @property
    def n_chunks(self):
        return len(self.blocks)

    def each(self, task, *args, per_chunk=None):
        self.asked[task.__name__] = self.asked.get(task.__name__, 0) + 1
        own = [()] * len(self.blocks) if per_chunk is None else per_chunk
        return [
            None if mine is None else self._run(task, block, *mine, *args)
            for block, mine in zip(self.blocks, own, strict=True)
        ]

    def total(self, task, *args):
        return tree_sum(self.each(task, *args))

    @staticmethod
    def _run(task, block, *args):
        return _travelled(_travelled(task)(block, *_travelled(args), n_threads=1))


def _travelled(value):
    return pickle.loads(pickle.dumps(value))


def cut(data: Dataset, n_blocks: int) -> list[Dataset]:
    """The rows in consecutive blocks, queries cut wherever it comes; some blocks may be small."""
    return [data.select(rows) for rows in np.array_split(np.arange(data.n_rows), n_blocks)]


class MemoryParts(Parts):
    """Parts in memory."""

    where = "parts"
    lengths = query_numbers = None  # set below, and by tests

    def __init__(self, parts, n_threads=1):
        columns = parts[0].select(np.empty(0, np.int64))
        self.parts, self.lengths = parts, [np.diff(p.queries.offsets) for p in parts]
        n_queries = sum(map(len, self.lengths))
        super().__init__(columns, sum(part.n_rows for part in parts), n_queries, n_threads)
        self.query_numbers = Parts.query_numbers.fget(self)

    @contextmanager
    def opened(self, recipe, is_last=False):
        kept = [None] * len(self.parts) if self.kept is None else self.kept
        chunks = self.parts
        if recipe is not None:
            chunks = [
                recipe.chunk(part, self.n_threads, mask)
                for part, mask in zip(self.parts, kept, strict=True)
            ]
        yield MemoryChunks(chunks, self.n_threads)
