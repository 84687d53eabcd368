"""Data sets in memory as the chunks of a store: what a descent over chunks reads."""

from __future__ import annotations

from types import SimpleNamespace


class Parts:
    """Datasets of whole queries as the chunks of one, in memory.

    A query must not be in two of them.
    """

    def __init__(self, parts):
        self.parts = list(parts)
        row, query, chunks = 0, 0, []
        for part in self.parts:
            ends = row + part.n_rows, query + part.queries.n_queries
            rows, queries = slice(row, ends[0]), slice(query, ends[1])
            chunks.append(SimpleNamespace(rows=rows, queries=queries, nbytes=part.rows.nbytes))
            row, query = ends
        self.chunks = chunks
        self.n_rows, self.n_chunks = row, len(chunks)
        self.n_features = self.parts[0].n_features

    def buffer(self):
        """Nothing is read."""

    def read(self, i, *, into=None):
        return self.parts[i]

    def read_queries(self, i):
        return self.parts[i].queries

    def read_weight(self, i):
        return self.parts[i].weight
