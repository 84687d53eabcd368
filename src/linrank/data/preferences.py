"""Preferences: which row is preferred to which, pair by pair, checked once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from linrank.data.frames import Array, as_array, as_vector, first_true, read_only
from linrank.data.queries import Queries


@dataclass(frozen=True, eq=False, repr=False)
class Preferences:
    """Pairs (winner, loser) of rows, each with a weight. Build one with `Preferences.of`.

    A pair that occurs twice counts twice, as its weight doubled. A pair and its reverse may both
    occur: each pulls its way, and what is learned goes by their weights.

    Attributes
    ----------
    winners, losers : int64 arrays (n_pairs,)
        Rows, from 0.
    weight : float64 array (n_pairs,) or None
        ω >= 0 of each pair; None for ones.
    lines : int64 array (n_pairs,) or None
        Line of each pair in its file, from 1.
    source : str or None
        The file that the pairs came from, for messages.
    """

    winners: Array
    losers: Array
    weight: Array | None = None
    lines: Array | None = None
    source: str | None = None

    def __post_init__(self) -> None:
        # The core works by them while other threads run: nobody else may write to them.
        object.__setattr__(self, "winners", read_only(self.winners))
        object.__setattr__(self, "losers", read_only(self.losers))

    def __repr__(self) -> str:
        """How many there are, of how many rows, and what they weigh."""
        n_rows = len(np.union1d(self.winners, self.losers))
        weighted = "" if self.weight is None else f", weight {self.total_weight():.6g} in all"
        source = "" if self.source is None else f", {self.source}"
        return f"<Preferences: {len(self):,} pairs of {n_rows:,} rows{weighted}{source}>"

    def __len__(self) -> int:
        """The number of pairs."""
        return len(self.winners)

    @property
    def pairs(self) -> Array:
        """The pairs as an array (n_pairs, 2)."""
        return np.column_stack([self.winners, self.losers])

    def total_weight(self) -> float:
        """``Σ ω``."""
        return float(len(self) if self.weight is None else self.weight.sum())

    def joined(self, more: Preferences) -> Preferences:
        """These preferences and then ``more``, each with its weight.

        Examples
        --------
        >>> both = Preferences.of([[2, 0]]).joined(Preferences.of([[1, 0]], [0.5]))
        >>> both.pairs.tolist(), both.weight.tolist()
        ([[2, 0], [1, 0]], [1.0, 0.5])
        """
        parts = (self, more)
        weight = None
        if any(part.weight is not None for part in parts):
            weight = np.concatenate(
                [np.ones(len(part)) if part.weight is None else part.weight for part in parts]
            )
        winners = np.concatenate([part.winners for part in parts])
        return Preferences(winners, np.concatenate([part.losers for part in parts]), weight)

    def merged(self) -> Preferences:
        """The same preferences with every pair once, its weights added; by winner, then loser.

        Examples
        --------
        >>> once = Preferences.of([[2, 0], [1, 0], [2, 0]]).merged()
        >>> once.pairs.tolist(), once.weight.tolist()
        ([[1, 0], [2, 0]], [1.0, 2.0])
        """
        order = np.lexsort((self.losers, self.winners))
        winners, losers = self.winners[order], self.losers[order]
        is_first = np.ones(len(order), dtype=bool)
        is_first[1:] = (winners[1:] != winners[:-1]) | (losers[1:] != losers[:-1])
        weight = np.ones(len(order)) if self.weight is None else self.weight[order]
        total = np.bincount(np.cumsum(is_first) - 1, weights=weight)
        return Preferences(winners[is_first], losers[is_first], total)

    @classmethod
    def of(cls, pairs: Any, weight: Any = None, *, n_rows: int | None = None) -> Preferences:
        """Build preferences from arrays and check them.

        Parameters
        ----------
        pairs : integers (n_pairs, 2), or Preferences
            Row preferred, row it is preferred to; from 0.
        weight : array (n_pairs,), optional
            Weights ω >= 0, not all zero.
        n_rows : int, optional
            Rows of the matrix; rows beyond are an error.

        Examples
        --------
        >>> Preferences.of([[2, 0], [1, 0]], [1.0, 0.5]).total_weight()
        1.5
        """
        if isinstance(pairs, Preferences):
            if weight is not None:
                raise ValueError("the preferences have weights of their own; drop pair_weight")
            _check_rows(pairs.winners, pairs.losers, n_rows)
            if pairs.weight is not None:
                _weights(pairs.weight, pairs.winners, pairs.losers)
            return pairs
        winners, losers = _columns(pairs)
        _check_rows(winners, losers, n_rows)
        vector = None if weight is None else _weights(weight, winners, losers)
        return cls(winners, losers, vector)

    def crosses(self, queries: Queries) -> bool:
        """Whether a pair compares rows of two queries."""
        winners, losers = self.queries_of(queries)
        return bool((winners != losers).any())

    def queries_of(self, queries: Queries) -> tuple[Array, Array]:
        """The number of the query of each winner and of each loser."""
        query = queries.query_of_rows()
        return query[self.winners], query[self.losers]

    def check_queries(self, queries: Queries) -> None:
        """Raise if a pair compares rows of two queries."""
        winners, losers = self.queries_of(queries)
        is_odd = winners != losers
        if (t := first_true(is_odd)) is not None:
            ids = np.arange(queries.n_queries) if queries.ids is None else queries.ids
            a, b = ids[[winners[t], losers[t]]].tolist()
            where = f"pair {t}" if self.lines is None else f"{self.source}:{self.lines[t]}: it"
            raise ValueError(
                f"{where} prefers row {self.winners[t]} of query {a!r} to row {self.losers[t]} "
                f"of query {b!r}; {is_odd.sum()} of {len(self)} pairs compare two queries. If "
                "that is meant, allow it with across_queries=True, --across-queries on the "
                "command line"
            )


def _columns(pairs: Any) -> tuple[Array, Array]:
    a = as_array(pairs, "pairs")
    if a.size == 0:
        raise ValueError("pairs is empty; give at least one (winner, loser)")
    if a.ndim != 2 or a.shape[1] != 2:
        raise ValueError(
            f"pairs must have shape (n_pairs, 2), a winner and a loser each; got shape {a.shape}"
        )
    if a.dtype.kind not in "iu":
        hint = "; convert them with .astype(int)" if a.dtype.kind == "f" else ""
        raise TypeError(f"pairs must hold integer row numbers, got dtype {a.dtype}{hint}")
    if a.dtype == np.uint64 and int(a.max()) > np.iinfo(np.int64).max:
        raise ValueError(f"pairs names row {a.max()}, beyond any matrix")
    return np.array(a[:, 0], dtype=np.int64), np.array(a[:, 1], dtype=np.int64)


def _check_rows(winners: Array, losers: Array, n_rows: int | None) -> None:
    for name, rows in (("winner", winners), ("loser", losers)):
        is_bad = rows < 0 if n_rows is None else (rows < 0) | (rows >= n_rows)
        if (t := first_true(is_bad)) is not None:
            limit = "rows are counted from 0" if n_rows is None else f"X has rows 0 to {n_rows - 1}"
            raise ValueError(
                f"pair {t}, ({winners[t]}, {losers[t]}): there is no row {rows[t]} for its {name}; "
                f"{limit}"
            )
    if (t := first_true(winners == losers)) is not None:
        raise ValueError(f"pair {t} compares row {winners[t]} with itself")


def _weights(weight: Any, winners: Array, losers: Array) -> Array:
    vector = as_vector(weight, "pair_weight", len(winners), like="pairs")
    if (t := first_true(~(np.isfinite(vector) & (vector >= 0)))) is not None:
        raise ValueError(
            f"pair_weight of pair {t}, ({winners[t]}, {losers[t]}), is {vector[t]}; weights must "
            "be finite and >= 0"
        )
    if not vector.any():
        raise ValueError("pair_weight is zero everywhere; at least one weight must be > 0")
    return vector
