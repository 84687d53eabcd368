"""The result of an evaluation: means by measure, values by query."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linrank.metrics.conventions import Convention
from linrank.metrics.counted import PairCounts, RowCounts
from linrank.metrics.parsing import parse

__all__ = ["Evaluation"]

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Evaluation(Mapping[str, float]):
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

    def __getitem__(self, name: str) -> float:
        if name in self.means:
            return self.means[name]
        try:
            return self.means[str(parse(name))]
        except (KeyError, ValueError, TypeError):
            known = ", ".join(self.means)
            raise KeyError(f"{name!r} was not evaluated; there are {known}") from None

    def __iter__(self) -> Iterator[str]:
        return iter(self.means)

    def __len__(self) -> int:
        return len(self.means)

    @property
    def n_queries(self) -> int:
        """Number of queries, those left out of a mean included."""
        return len(next(iter(self.per_query.values())))

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

    def to_text(self) -> str:
        """Return a table: measure, mean, queries in the mean; below it the convention."""
        width = max([len(name) for name in self.means] + [len("metric")])
        lines = [f"{'metric':<{width}}  {'mean':>8}  {'queries':>8}"]
        for name, mean in self.means.items():
            n = int(np.count_nonzero(~np.isnan(self.per_query[name])))
            lines.append(f"{name:<{width}}  {mean:>8.4f}  {n:>8d}")
        return "\n".join([*lines, f"convention {self.convention.describe()}"])

    def __str__(self) -> str:
        return self.to_text()

    def __repr__(self) -> str:
        """The means; what is behind them is in the attributes and in ``print(result)``."""
        means = ", ".join(f"{name!r}: {mean:.6g}" for name, mean in self.means.items())
        return f"<Evaluation {{{means}}}, {self.n_queries} queries, {self.convention.name}>"


def _plain(value: float) -> float | None:
    return None if value != value else float(value)
