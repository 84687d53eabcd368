"""Data sets in memory as the chunks of a store: what training in passes reads."""

from __future__ import annotations

import threading
from dataclasses import replace
from types import SimpleNamespace

import numpy as np

from linrank.parts.parts import only_queries


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
