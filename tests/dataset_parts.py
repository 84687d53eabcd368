"""Data sets in memory as the chunks of a store, as parts, and as blocks on workers."""

from __future__ import annotations

import pickle
import threading
from contextlib import contextmanager
from dataclasses import replace
from types import SimpleNamespace

import numpy as np

from linrank.data.dataset import Dataset
from linrank.parts.parts import MemoryChunks, only_queries, tree_sum
from linrank.parts.parts import Parts as AnyParts


def in_parts(data, n_parts):
    """Consecutive whole queries in so many parts, or in those that begin with given queries.

    More parts than queries leave some of them out.
    """
    queries = np.array_split(np.arange(data.queries.n_queries), n_parts)
    return [only_queries(data, part) for part in queries if len(part)]


class Parts:
    """Datasets of whole queries as the chunks of one, in memory.

    A query must not be in two of them.
    """

    path = "parts"

    def __init__(self, parts):
        self.parts = list(parts)
        row, query, chunks = 0, 0, []
        for part in self.parts:
            ends = row + part.n_rows, query + part.queries.n_queries
            rows, queries = slice(row, ends[0]), slice(query, ends[1])
            chunks.append(SimpleNamespace(rows=rows, queries=queries, nbytes=part.rows.nbytes))
            row, query = ends
        self.chunks = chunks
        self.n_rows, self.n_queries, self.n_chunks = row, query, len(chunks)
        self.n_features = self.parts[0].n_features
        self.nbytes = sum(chunk.nbytes for chunk in chunks)

    def buffer(self):
        """Nothing is read."""

    def read(self, i, *, into=None):
        return self.parts[i]

    def read_queries(self, i):
        return self.parts[i].queries

    def read_weight(self, i):
        return self.parts[i].weight


class BufferedParts(Parts):
    """Parts that are read into buffers, which other chunks overwrite as those of a store are."""

    def __init__(self, parts):
        super().__init__(parts)
        self.n_read, self.buffers, self.threads = 0, [], set()

    def buffer(self):
        self.buffers.append(self._room())
        return self.buffers[-1]

    def _room(self):
        most = max(part.rows.values.size for part in self.parts)
        return np.full(most, np.nan, self.parts[0].rows.dtype)

    def read(self, i, *, into=None):
        self.n_read += 1
        self.threads.add(threading.current_thread().name)
        data, room = self.parts[i], self._room() if into is None else into
        values = data.rows.values
        room[:] = np.nan  # a step on the chunk before would now be seen
        room[: values.size] = values.reshape(-1)
        rows = replace(data.rows, values=room[: values.size].reshape(values.shape))
        read = replace(data, rows=rows)
        read.__dict__["queries"] = data.queries
        return read


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


class MemoryParts(AnyParts):
    """Parts in memory."""

    where = "parts"
    lengths = query_numbers = None  # set below, and by tests

    def __init__(self, parts, n_threads=1):
        columns = parts[0].select(np.empty(0, np.int64))
        self.parts, self.lengths = parts, [np.diff(p.queries.offsets) for p in parts]
        n_queries = sum(map(len, self.lengths))
        super().__init__(columns, sum(part.n_rows for part in parts), n_queries, n_threads)
        self.query_numbers = AnyParts.query_numbers.fget(self)

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
