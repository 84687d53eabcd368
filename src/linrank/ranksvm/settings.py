"""What "auto" stands for: settings that the data decide, the same wherever they lie."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

import numpy as np

from linrank.data.dataset import Dataset
from linrank.data.queries import Queries
from linrank.data.rows import ColumnStatistics, Rows, StreamedRows
from linrank.data.scaling import Scaling
from linrank.options import AUTO, PAIR_WEIGHTINGS, PAIRS, PUBLISHED
from linrank.ranksvm.train import Balance, Problem
from linrank.system.resources import resolve

# Found on the sets of docs/guide/training.md, "Settings that the data decide".
QUERIES = 40  # that make for C Σω = 1
SPARSE_BALANCE = 500.0  # C Σω of sparse rows of variance 1
SPARSE = 0.1  # share of values other than 0 up to which features are left as they are
MANY_QUERIES = 40  # with pairs, from which on pairs are weighted by a measure
MOST_GRADES = 10  # different labels of a query, on average
HIGHEST_GRADE = 30  # gains are 2^label
WEIGHTING = "ndcg@20"

SETTINGS = ("C", "scale", "pair_weighting", "query_normalization")


@dataclass(frozen=True, eq=False)
class Facts:
    """What the settings depend on; facts of parts add up to those of the whole.

    Attributes
    ----------
    statistics : ColumnStatistics
        Of all rows.
    n_queries, n_levels : int
        Queries that have pairs, and different labels of all of these.
    low, high : float
        Least and largest label.
    """

    statistics: ColumnStatistics
    n_queries: int
    n_levels: int
    low: float
    high: float

    @classmethod
    def of(cls, data: Dataset, known: ColumnStatistics | None = None, n_threads: int = 1) -> Facts:
        """The facts of a data set; its statistics are not computed where they are ``known``."""
        rows, labels, queries = data.rows, data.labels, data.queries
        if data.weight is not None and not data.weight.all():  # a row of weight 0 is none
            counts = data.weight > 0.0
            labels = labels[counts]
            queries = Queries.of(labels, None if data.qid is None else data.qid[counts])
        n_levels = queries.n_levels
        if known is None and isinstance(rows, StreamedRows):
            known = rows.statistics(data.weight)
        elif known is None:
            known = rows.scan(data.weight, n_threads).statistics
        return cls(
            known,
            int(np.count_nonzero(n_levels > 1)),
            int(n_levels[n_levels > 1].sum()),
            float(labels.min(initial=np.inf)),
            float(labels.max(initial=-np.inf)),
        )

    def __add__(self, other: Facts) -> Facts:
        return Facts(
            self.statistics + other.statistics,
            self.n_queries + other.n_queries,
            self.n_levels + other.n_levels,
            min(self.low, other.low),
            max(self.high, other.high),
        )

    @property
    def is_sparse(self) -> bool:
        """Whether few values are other than 0, and no feature outweighs all others.

        To divide such features by their deviation would magnify the rare ones.
        """
        s = self.statistics
        n_values = s.n_rows * s.n_columns
        is_thin = int(s.n_nonzero.sum()) <= SPARSE * n_values
        return is_thin and 2 * s.variance.max(initial=0.0) <= s.variance.sum()

    @property
    def scale(self) -> str:
        """The kind of scaling."""
        return "none" if self.is_sparse else "standard"

    @property
    def is_graded(self) -> bool:
        """Whether labels are few grades in each of several queries, not a value for each row."""
        return self.n_queries > 1 and self.n_levels <= MOST_GRADES * self.n_queries

    @property
    def has_gains(self) -> bool:
        """Whether labels are gains of many queries, so that a measure can weigh their pairs."""
        is_gain = self.low >= 0 and 1 <= self.high <= HIGHEST_GRADE
        return is_gain and self.is_graded and self.n_queries >= MANY_QUERIES

    def spread(self, scaling: Scaling) -> float:
        """The variance of all features together, as a scaling by columns makes them."""
        if scaling.factors is None:
            return float(self.statistics.variance.sum())
        if scaling.kind == "standard":
            return float(np.count_nonzero(scaling.factors))
        return float(np.sum(scaling.factors**2 * self.statistics.variance))

    def balance(self, spread: float) -> Balance:
        """C Σω where C is "auto"; ``spread`` is the variance of all columns that are trained on.

        Grades: one for every 40 queries, for what rows of a query tell is much the same. Values of
        rows, as in a regression: the number of rows. It is divided by the variance of a feature,
        so that the unit of the features does not matter. Of sparse rows the variance of all
        features together counts, 1 at most for rows of unit length.
        """
        if spread <= 0.0:
            return Balance(1.0)
        if self.is_sparse:
            return Balance(SPARSE_BALANCE / spread)
        n = self.n_queries / QUERIES if self.is_graded else self.statistics.weight
        return Balance(n * self.statistics.n_columns / spread)


def is_open(parameters: Any) -> bool:
    """Whether the data are to decide on a setting, or on a grid of C."""
    return any(is_auto(getattr(parameters, name, None)) for name in (*SETTINGS, "Cs"))


def settled_scale(scale: str, rows: Rows, n_jobs: int | None = None) -> str:
    """The kind of scaling of rows without labels."""
    if not is_auto(scale):
        return scale
    facts = Facts(rows.scan(None, resolve(n_jobs)).statistics, 0, 0, 0.0, 0.0)
    return facts.scale


def is_auto(value: Any) -> bool:
    """Whether the data are to decide."""
    return isinstance(value, str) and value == AUTO


def settled(parameters: Any, facts: Facts, *, is_listed: bool = False) -> Any:
    """A copy of the parameters with a value in place of every "auto" but that of C.

    Parameters
    ----------
    parameters : object
        Those of a method or an estimator; what it lacks is left out.
    facts : Facts
        Of the training data.
    is_listed : bool
        Whether preferences are among the pairs.
    """
    p = copy.copy(parameters)
    if is_auto(getattr(p, "scale", None)):
        p.scale = "none" if getattr(p, "kernel", None) == "precomputed" else facts.scale
    if is_auto(getattr(p, "pair_weighting", None)):
        can_weigh = hasattr(p, "n_rounds") and p.pairs == PAIRS[0] and p.solver not in PUBLISHED
        by_measure = can_weigh and not is_listed and facts.has_gains and not facts.is_sparse
        p.pair_weighting = WEIGHTING if by_measure else PAIR_WEIGHTINGS[0]
    if is_auto(getattr(p, "query_normalization", None)):
        is_equal = p.pair_weighting in PAIR_WEIGHTINGS and facts.n_queries > 1
        p.query_normalization = "pairs" if is_equal else None
    return p


def unit_in_memory(
    data: Dataset,
    facts: Facts | None = None,
    spread: float | None = None,
    *,
    scale: str,
    n_jobs: int | None = None,
    **options: Any,
) -> float:
    """The C that "auto" is, and grids are multiples of; ``options`` are those of `train`.

    ``spread`` is the variance of the columns that are trained on, where they are not the features.
    """
    facts = facts or Facts.of(data, n_threads=resolve(n_jobs))
    if spread is not None:
        return weight_in_memory(data, facts.balance(spread), options)
    balance = balance_in_memory(data, Scaling.of_statistics(scale, facts.statistics), facts, n_jobs)
    return weight_in_memory(data, balance, options)


def weight_in_memory(data: Dataset, balance: Balance, options: dict[str, Any]) -> float:
    """The C of a balance; ``options`` are those of `train`."""
    names = ("pairs", "n_closest", "n_random", "seed", "query_weight", "preferences")
    given = {name: options[name] for name in names if name in options}
    return Problem.of(data, balance, n_jobs=1, **given, **weighing(options)).C


def balance_in_memory(
    data: Dataset, scaling: Scaling, facts: Facts | None = None, n_jobs: int | None = None
) -> Balance:
    """C Σω where C is "auto"; ``facts`` are those of ``data``, where they are known."""
    facts = facts or Facts.of(data, n_threads=resolve(n_jobs))
    if scaling.needs_queries:
        scaled = scaling.transformed(data, n_jobs=n_jobs)
        return facts.balance(Facts.of(scaled, n_threads=resolve(n_jobs)).spread(scaling))
    return facts.balance(facts.spread(scaling))


def weighing(options: dict[str, Any]) -> dict[str, Any]:
    """How pairs are weighted, in a way whose weights have the same sum without a ranking."""
    weighting = options["pair_weighting"]
    if weighting in PAIR_WEIGHTINGS:
        return {name: options[name] for name in ("pair_weighting", "query_normalization")}
    return {"pair_weighting": PAIR_WEIGHTINGS[0], "query_normalization": "pairs"}
