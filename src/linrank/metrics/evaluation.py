"""The result of an evaluation: means by measure, values by query, and the counts behind them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from linrank.data.frames import Array
from linrank.metrics.conventions import Convention
from linrank.metrics.measures import CountedMeasure, Measure, parse
from linrank.system.tables import Column, Table, Tabled, frame_of


class _Totals:
    """Counts by query, and their sums."""

    def totals(self) -> tuple[int, int, int]:
        """Return the counts over all queries, as exact integers."""
        first, second, third = map(_exact_sum, vars(self).values())
        return first, second, third


@dataclass(frozen=True, eq=False)
class PairCounts(_Totals):
    """Pairs of each query by the order of their scores; int64 arrays (n_queries,).

    Attributes
    ----------
    concordant, discordant, tied : int64 array (n_queries,)
        Pairs ``y_i > y_j`` with ``s_i > s_j``, ``s_i < s_j`` and ``s_i = s_j``.
    """

    concordant: Array
    discordant: Array
    tied: Array


@dataclass(frozen=True, eq=False)
class RowCounts(_Totals):
    """Rows of each query that have rows to stand above, or below; int64 arrays (n_queries,).

    Attributes
    ----------
    total : int64 array (n_queries,)
        The rows with a row of lower label in their query (dominating), or of higher (dominated).
    wrong : int64 array (n_queries,)
        Of these, the rows with one of those strictly on the wrong side of their score.
    tied : int64 array (n_queries,)
        The rows with none there, but one at the same score.
    """

    total: Array
    wrong: Array
    tied: Array


@dataclass(frozen=True, eq=False)
class Counts:
    """What was counted of each query, as far as a measure needs it."""

    pairs: PairCounts | None
    dominating: RowCounts | None
    dominated: RowCounts | None

    @classmethod
    def of(cls, pairs: Array, rows: Array) -> Counts:
        """From the flat arrays of the core; an empty one was not asked for."""
        by_query = rows.reshape(-1, 6).T
        sides = [RowCounts(*side) if rows.size else None for side in (by_query[:3], by_query[3:])]
        return cls(PairCounts(*pairs.reshape(-1, 3).T) if pairs.size else None, *sides)

    @classmethod
    def joined(cls, parts: Sequence[Counts]) -> Counts:
        """Those of several parts, one after the other; None unless all of them have some."""

        def join(*kinds: Any) -> Any:
            if any(kind is None for kind in kinds):
                return None
            columns = zip(*(vars(kind).values() for kind in kinds), strict=True)
            return type(kinds[0])(*map(np.concatenate, columns))

        return cls(*map(join, *(vars(part).values() for part in parts)))

    def take(self, places: Any) -> Counts:
        """Those of the queries at these places, in this order."""
        return Counts(
            *(
                None if kind is None else type(kind)(*(a[places] for a in vars(kind).values()))
                for kind in vars(self).values()
            )
        )

    def shares(self, measure: Measure, chosen: Convention) -> tuple[Array, Array] | None:
        """Twice the numerator of each query, and twice its denominator; None if not counted."""
        counts = getattr(self, measure.counts, None)
        if counts is None or not isinstance(measure, CountedMeasure):
            return None
        first, second, third = (2 * n for n in vars(counts).values())
        return measure.share(first, second, third, chosen.pair_ties)

    def measure(self, measure: Measure, chosen: Convention) -> tuple[float, Array] | None:
        """Mean and values by query, NaN where nothing is to be judged; None if not counted.

        The mean is pooled, or that of the queries' own shares.
        """
        shares = self.shares(measure, chosen)
        if shares is None:
            return None
        part, total = shares
        values = np.full(len(total), np.nan)
        np.divide(part, total, out=values, where=total > 0)
        if getattr(measure, "over", None) == "queries":
            judged = values[total > 0]
            return (float(np.sum(judged) / len(judged)) if len(judged) else float("nan")), values
        pooled = _exact_sum(total)
        return (_exact_sum(part) / pooled if pooled else float("nan")), values


def _exact_sum(counts: Array) -> int:
    """Exact, whatever the size."""
    return sum(counts.tolist())


@dataclass(frozen=True, eq=False)
class Evaluation(Tabled, Mapping[str, float]):
    """Means of measures over queries: a mapping from the measure's name to its mean.

    Any spelling of a measure finds it: ``result["nDCG@10"] == result["ndcg@10"]``.

    Attributes
    ----------
    means : dict of str to float
        NaN for a measure in which no query takes part.
    per_query : dict of str to float64 array (n_queries,)
        Values by query, in the order of ``query_ids``; NaN where the query is left out of the mean.
    query_ids : array (n_queries,) or None
        Ids by first appearance; None if the rows were one query.
    convention : Convention
        The choices behind the numbers.
    pairs : PairCounts or None
        Counts by query, if the pairwise accuracy or the all-pairs error was asked for.
    dominating, dominated : RowCounts or None
        Counts by query, if the domination or the dominated error was asked for.
    """

    means: dict[str, float]
    per_query: dict[str, Array]
    query_ids: Array | None
    convention: Convention
    pairs: PairCounts | None = field(default=None, repr=False)
    dominating: RowCounts | None = field(default=None, repr=False)
    dominated: RowCounts | None = field(default=None, repr=False)

    @property
    def counts(self) -> Counts:
        """All that was counted."""
        return Counts(self.pairs, self.dominating, self.dominated)

    def __getitem__(self, name: str) -> float:
        return self.means[self._find(name)]

    def _find(self, name: str) -> str:
        """The name under which a measure stands here, whatever its spelling."""
        if name in self.means:
            return name
        try:
            found = str(parse(name))
        except (ValueError, TypeError):
            found = ""
        if found in self.means:
            return found
        raise KeyError(f"{name!r} was not evaluated; there are {', '.join(self.means)}")

    def __iter__(self) -> Iterator[str]:
        return iter(self.means)

    def __len__(self) -> int:
        return len(self.means)

    @property
    def n_queries(self) -> int:
        """Number of queries, those left out of a mean included."""
        return len(next(iter(self.per_query.values())))

    def terms(self, name: str) -> tuple[Array, Array]:
        """Return numerators and denominators by query, whose sums' ratio is the mean of a measure.

        A plain mean over queries has denominators 1, and 0 (with numerator 0) where the query is
        left out. A pooled share, as the pairwise accuracy with its default ``over``, has the counts
        of the query: pairs in the right order, and pairs.

        Returns
        -------
        numerator, denominator : float64 array (n_queries,)
            ``numerator.sum() / denominator.sum()`` is ``self[name]``, up to rounding.

        Examples
        --------
        >>> from linrank import evaluate
        >>> result = evaluate([2, 1, 0, 1, 0], [3, 1, 2, 1, 2], qid=[1, 1, 1, 2, 2],
        ...                   metrics=["mrr", "pairwise_accuracy"])
        >>> result.terms("mrr")
        (array([1. , 0.5]), array([1., 1.]))
        >>> result.terms("pairwise_accuracy")
        (array([2., 0.]), array([3., 1.]))
        """
        known = self._find(name)
        values = self.per_query[known]
        try:
            measure = parse(known)
        except ValueError:  # the user's, of another process
            shares = None
        else:
            shares = self.counts.shares(measure, self.convention)
            shares = None if getattr(measure, "over", None) == "queries" else shares
        if shares is None:
            judged = ~np.isnan(values)
            return np.where(judged, values, 0.0), judged.astype(np.float64)
        return shares[0] / 2.0, shares[1] / 2.0

    def take_queries(self, places: list[int]) -> Evaluation:
        """Return the values of the queries at these places, in this order; means stay."""
        per_query = {name: values[places] for name, values in self.per_query.items()}
        ids = None if self.query_ids is None else self.query_ids[places]
        return replace(self, per_query=per_query, query_ids=ids, **vars(self.counts.take(places)))

    @classmethod
    def joined(cls, parts: Sequence[Evaluation]) -> Evaluation:
        """Return one evaluation of the queries of all parts, as of the test sets of folds.

        Means are over all queries (all pairs, where a measure pools them), so that a fold with more
        queries weighs more; the mean of the folds' means is another number. Ids that occur in
        several parts become ``"<part>:<id>"``, parts counted from 1; a part that is one query
        without an id is ``"<part>"``.

        ERR without ``y_max`` takes the highest label of each part: name it where parts differ.

        Parameters
        ----------
        parts : sequence of Evaluation
            Of the same measures under the same convention.
        """
        parts = list(parts)
        _check_alike(parts)
        names = list(parts[0])
        per_query = {name: np.concatenate([p.per_query[name] for p in parts]) for name in names}
        counts = Counts.joined([part.counts for part in parts])
        undefined = dict.fromkeys(names, float("nan"))
        whole = cls(undefined, per_query, _joined_ids(parts), parts[0].convention, **vars(counts))
        for name in names:
            numerator, denominator = whole.terms(name)
            if (total := float(denominator.sum())) > 0.0:
                whole.means[name] = float(numerator.sum()) / total
        return whole

    def to_dict(self) -> dict[str, Any]:
        """Return plain Python values, ready for JSON; None where a query is left out."""
        ids = None if self.query_ids is None else self.query_ids.tolist()
        return {
            "convention": self.convention.describe(),
            "n_queries": self.n_queries,
            "means": {name: _plain(mean) for name, mean in self.means.items()},
            "query_ids": ids,
            "per_query": {n: [_plain(v) for v in a.tolist()] for n, a in self.per_query.items()},
        }

    def to_frame(self) -> Any:
        """Return a pandas DataFrame of the values: a row for each query, a column for each measure.

        Its index are the query ids, its mean is that of a measure which pools nothing.
        """
        ids = np.arange(self.n_queries) if self.query_ids is None else self.query_ids
        return frame_of({"query": ids, **self.per_query}).set_index("query")

    def tables(self) -> list[Table]:
        """Return a table: measure, mean, queries in the mean; below it the convention."""
        rows = [
            [name, f"{mean:.4f}", str(np.count_nonzero(~np.isnan(self.per_query[name])))]
            for name, mean in self.means.items()
        ]
        columns = [Column("metric", "left"), Column("mean"), Column("queries")]
        return [Table(columns, rows, "", [f"convention {self.convention.describe()}"])]

    def __repr__(self) -> str:
        """The means; what is behind them is in the attributes and in ``print(result)``."""
        means = ", ".join(f"{name!r}: {mean:.6g}" for name, mean in self.means.items())
        return f"<Evaluation {{{means}}}, {self.n_queries} queries, {self.convention.name}>"


def _plain(value: float) -> float | None:
    return None if value != value else float(value)


def _check_alike(parts: Sequence[Evaluation]) -> None:
    if not parts:
        raise ValueError("there are no evaluations to join; give at least one")
    first = parts[0]
    for k, part in enumerate(parts[1:], start=2):
        if list(part) != list(first):
            raise ValueError(
                f"part {k} has the measures {', '.join(part)} but part 1 has {', '.join(first)}; "
                "evaluate all parts with the same metrics"
            )
        if part.convention != first.convention:
            raise ValueError(
                f"part {k} follows the convention {part.convention.name!r} but part 1 "
                f"{first.convention.name!r}; evaluate all parts under one"
            )


def _joined_ids(parts: Sequence[Evaluation]) -> Array | None:
    """Ids one after the other, the number of the part before them unless they are unique."""
    if len(parts) == 1:
        return parts[0].query_ids
    given = [p.query_ids for p in parts if p.query_ids is not None]
    plain = {str(i) for ids in given for i in ids}
    if len(plain) == sum(p.n_queries for p in parts):
        return np.concatenate(given)
    unique = []
    for k, part in enumerate(parts, start=1):
        unique += [f"{k}"] if part.query_ids is None else [f"{k}:{i}" for i in part.query_ids]
    return np.array(unique)
