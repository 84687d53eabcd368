"""A place of data: whole queries as data sets, wherever they lie, and what passes find there.

All that is asked of data before a training (their statistics, their scaling, the columns of curves)
is asked of a place, in the same way in memory, of a store and of a cluster.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from linrank.data import Dataset, Queries, join_rows
from linrank.data.rows import Array, ColumnStatistics, DenseRows, Priced, StreamedRows
from linrank.data.scaling import BY_COLUMN, Scaling
from linrank.ranksvm.train import Balance

if TYPE_CHECKING:
    from linrank.models.design import Design, Shape
    from linrank.parts.recipes import Recipe


# Found on the sets of docs/guide/training.md, "Settings that the data decide".
QUERIES = 40  # that make for C Σω = 1
SPARSE_BALANCE = 500.0  # C Σω of sparse rows of variance 1
SPARSE = 0.1  # share of values other than 0 up to which features are left as they are
MANY_QUERIES = 40  # with pairs, from which on pairs are weighted by a measure
MOST_GRADES = 10  # different labels of a query, on average
HIGHEST_GRADE = 30  # gains are 2^label

# ---- passes -------------------------------------------------------------------------------------

Task = Callable[..., Any]  # task(chunk, *args, n_threads=...)
OfEach = Sequence[tuple[Any, ...] | None] | None  # arguments of each chunk, or of none


class Gathering:
    """Chunks here, on disk or on a cluster, and what a solver may have done with them.

    This process works on them one after the other, with ``n_threads`` for every task, unless a
    subclass has others do so.
    """

    n_chunks: int
    n_threads: int

    def walk(self, numbers: Sequence[int]) -> Iterator[Any]:
        """The chunks of these numbers, ascending, each until the next one is asked for."""
        raise NotImplementedError("chunks that this process works on are walked over")

    def total(self, task: Task, *args: Any) -> Any:
        """``Σ task(chunk, *args)`` over the chunks, by `tree_sum`."""
        chunks = self.walk(range(self.n_chunks))
        return tree_sum(task(chunk, *args, n_threads=self.n_threads) for chunk in chunks)

    def each(self, task: Task, *args: Any, per_chunk: OfEach = None) -> list[Any]:
        """``task(chunk, *own, *args)`` of each chunk, in order; ``per_chunk`` are its own.

        A chunk whose ``own`` is None is left out: its result is None.
        """
        own = [()] * self.n_chunks if per_chunk is None else list(per_chunk)
        asked = [i for i, mine in enumerate(own) if mine is not None]
        found: list[Any] = [None] * self.n_chunks
        for i, chunk in zip(asked, self.walk(asked), strict=True):
            found[i] = task(chunk, *(own[i] or ()), *args, n_threads=self.n_threads)
        return found


class MemoryChunks(Gathering):
    """Chunks, or data sets, in memory; at least one."""

    def __init__(self, chunks: Sequence[Any], n_threads: int = 1) -> None:
        self.chunks, self.n_chunks, self.n_threads = chunks, len(chunks), n_threads

    def walk(self, numbers: Sequence[int]) -> Iterator[Any]:
        return (self.chunks[i] for i in numbers)


# ---- sums ---------------------------------------------------------------------------------------
# Pieces of the balanced binary tree that all sums are added by, each summed where its parts are.
# The tree of n parts has a node for every aligned run [k·2^m, (k+1)·2^m) of them. Whoever has all
# parts of such a run adds them alone; joined in order, the pieces give the bits of one place.

GROUP = 8  # parts that a cluster adds in one task; a power of two
Piece = tuple[int, int, Any]  # first part, number of parts (a power of two), their sum


def tree_sum(parts: Iterable[Any]) -> Any:
    """The sum of the parts by a balanced binary tree, one part at a time.

    Of the parts seen so far only the complete subtrees are kept, at most log₂ n of them. A sum of
    sums over consecutive groups of `GROUP` parts has the same tree, hence the same bits.

    Examples
    --------
    >>> tree_sum("abcdefg")
    'abcdefg'
    """
    return joined(pieces(enumerate(parts)))


def pieces(numbered: Iterable[tuple[int, Any]]) -> list[Piece]:
    """The largest nodes of the tree whose parts are all among these, which ascend by number.

    Values are taken one at a time and added as soon as a node is whole, so that few are kept.

    Examples
    --------
    >>> pieces(zip([1, 2, 3, 4, 5, 6], "bcdefg"))
    [(1, 1, 'b'), (2, 2, 'cd'), (4, 2, 'ef'), (6, 1, 'g')]
    """
    stack: list[Piece] = []
    for start, value in numbered:
        _push(stack, (start, 1, value))
    return stack


def joined(found: Iterable[Piece]) -> Any:
    """The sum over all parts, of pieces that cover them.

    Examples
    --------
    >>> joined([(2, 1, "c"), (0, 2, "ab")])
    'abc'
    """
    stack: list[Piece] = []
    end = 0
    for piece in sorted(found, key=lambda piece: piece[0]):
        if piece[0] != end:
            raise ValueError(f"part {end} is missing or doubled in a sum")
        end += piece[1]
        _push(stack, piece)
    if not stack:
        raise ValueError("a sum over no part; there must be at least one")
    total = stack.pop()[2]
    while stack:
        total = stack.pop()[2] + total
    return total


def _push(stack: list[Piece], piece: Piece) -> None:
    """Put a piece on top, and join neighbors as long as they make a node of the tree."""
    start, size, total = piece
    while stack and stack[-1][1] == size and stack[-1][0] == start - size:
        if stack[-1][0] % (2 * size):
            break  # neighbors, but children of two nodes
        start, _, left = stack.pop()
        total = left + total
        size *= 2
    stack.append((start, size, total))


# ---- what decides on settings -------------------------------------------------------------------


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


# ---- places -------------------------------------------------------------------------------------


class Parts(ABC):
    """Data sets of whole queries that have the same columns.

    Parameters
    ----------
    columns : Dataset
        Their columns: all rows where they are in memory, else without a row.
    n_rows, n_queries : int
        Of all parts.
    n_threads : int
        For the work that is done here.

    Attributes
    ----------
    dataset : Dataset or None
        All rows, where they are in memory.
    kept : sequence of arrays of bool, or None
        The queries that count, part by part; None for all.
    """

    where: ClassVar[str]  # what the data are, for messages: "a store", "a cluster"
    dataset: Any = None
    kept: Sequence[Array] | None = None
    capacity: int = 1 << 62  # rows that a sample may have
    index_base: int | None = None  # the number of the first feature in the file
    statistics: ColumnStatistics | None = None  # of all columns, where they are known already

    def __init__(self, columns: Dataset, n_rows: int, n_queries: int, n_threads: int = 1) -> None:
        self.columns, self.n_threads = columns, n_threads
        self.n_rows, self.n_queries = n_rows, n_queries
        self.row_bytes: float = max(1, columns.n_features * columns.rows.dtype.itemsize)

    def growth(self, recipe: Recipe | None) -> float:
        """Bytes of the columns of curves, and of the dense rows they are of, per byte of rows."""
        if recipe is None or recipe.design is None:
            return 0.0
        n_values = self.columns.n_features + recipe.design.n_columns
        return n_values * self.columns.rows.dtype.itemsize / self.row_bytes

    def sample_rows(self, recipe: Recipe) -> int:
        """Rows that a sample may have."""
        return max(1, int(self.capacity / max(1.0, self.growth(recipe))))

    def check_room(self, recipe: Recipe) -> None:
        """Raise MemoryError, before any pass, where a limit is too small for chunks by a recipe."""
        return  # there is none

    @property
    @abstractmethod
    def lengths(self) -> Sequence[Array]:
        """The rows of each query, part by part."""

    @property
    def query_numbers(self) -> Sequence[Array]:
        """The number of each query in order of first appearance in the input, part by part."""
        ends = np.cumsum([len(part) for part in self.lengths])[:-1]
        return np.split(np.arange(self.n_queries), ends)

    @abstractmethod
    def opened(
        self, recipe: Recipe | None, is_last: bool = False
    ) -> AbstractContextManager[Gathering]:
        """Chunks by ``recipe``, of the queries that count, or the whole data sets, for a while.

        ``is_last`` promises that a training opens nothing after this, so that what only makes
        chunks may be forgotten.
        """

    def select(self, part: Any, n_threads: int = 1) -> Parts:
        """The training part of a fold, masks by query and part; all if None."""
        if part is None:
            return self
        some = copy.copy(self)
        some.kept, some.statistics = part, None
        return some

    def each(self, task: Task, *args: Any) -> list[Any]:
        """``task(data, kept, *args)`` of each part, in one pass.

        ``kept`` are the numbers of its queries that count, None for all.
        """
        with self.opened(None) as data:
            own: list[tuple[Any, ...]] = [(None,)] * data.n_chunks
            if self.kept is not None:
                own = [(np.flatnonzero(mask),) for mask in self.kept]
            return data.each(task, *args, per_chunk=own)

    def scaling(self, kind: str) -> Scaling:
        """The scaling for the rows: one pass at most."""
        return Scaling.of_statistics(kind, self._known) if kind in BY_COLUMN else Scaling(kind)

    @property
    def _known(self) -> ColumnStatistics:
        found = self.statistics
        return tree_sum(self.each(statistics_of_queries)) if found is None else found

    def facts(self, by_query: bool = False) -> Facts:
        """What settings depend on, in one pass; ``by_query`` of rows scaled within queries."""
        known = None if by_query else self.statistics
        empty = None if known is None else ColumnStatistics.empty(known.n_columns)
        found: Facts = tree_sum(self.each(facts_of_part, empty, by_query))
        return found if known is None else replace(found, statistics=known)

    def balance(
        self, scaling: Scaling, design: Design | None = None, facts: Facts | None = None
    ) -> Balance:
        """C Σω where C is "auto"."""
        facts = facts or self.facts()
        if design is not None:
            return facts.balance(design.spread)
        seen = self.facts(by_query=True) if scaling.needs_queries else facts
        return facts.balance(seen.spread(scaling))

    def mapped(self, shape: Shape) -> tuple[Design, Dataset]:
        """The columns of curves for the rows, and `columns` with these in place of their own.

        Knots are those of a sample, which is that of the same rows in memory where these have the
        same order and no weight is 0; landmarks of interactions are drawn from it. One pass or two.
        """
        from linrank.data.curves import SAMPLE  # few need it

        lengths = self.lengths
        kept = self.kept or [np.ones(len(part), dtype=bool) for part in lengths]
        ends = np.cumsum([int(part[own].sum()) for part, own in zip(lengths, kept, strict=True)])
        n_rows = int(ends[-1])
        index = np.arange(min(SAMPLE, n_rows)) * n_rows // max(1, min(SAMPLE, n_rows))
        local = np.split(index, np.searchsorted(index, ends[:-1]))
        per_part = [
            (np.flatnonzero(own), rows - begin) if len(rows) else None
            for rows, begin, own in zip(local, [0, *ends[:-1].tolist()], kept, strict=True)
        ]
        with self.opened(None) as data:
            drawn = data.each(rows_of_queries, per_chunk=per_part)
        self.statistics = self._known
        rows = join_rows([part for part in drawn if part is not None])
        sample = replace(self.columns, rows=rows, labels=np.zeros(rows.shape[0]), qid=None)
        # A chunk's columns are stored: their Hessian is wanted as well.
        shape = replace(shape, by_products=False)
        design = shape.fit(sample, self.n_threads, self.statistics)
        return design, design.dataset(self.columns)


class MemoryParts(Parts):
    """A data set in memory, the place of one part."""

    where: ClassVar[str] = "memory"

    def __init__(self, data: Dataset, n_threads: int) -> None:
        super().__init__(data, data.n_rows, data.queries.n_queries, n_threads)
        self.dataset, self.index_base = data, data.index_base

    @property
    def lengths(self) -> Sequence[Array]:
        return [np.diff(self.dataset.queries.offsets)]

    @contextmanager
    def opened(self, recipe: Recipe | None, is_last: bool = False) -> Iterator[Gathering]:
        whole = self.dataset if recipe is None else recipe.chunk(self.dataset, self.n_threads)
        yield MemoryChunks([whole], self.n_threads)

    def select(self, part: Array | None, n_threads: int = 1) -> MemoryParts:
        """The rows of these numbers, copied; all if None."""
        return MemoryParts(self.dataset if part is None else self.dataset.select(part), n_threads)

    def mapped(self, shape: Shape) -> tuple[Design, Dataset]:
        return shape.fit_columns(self.dataset, self.n_threads)


@dataclass(frozen=True)
class Extent(Priced):
    """Shape and storage of rows that are elsewhere."""

    shape: tuple[int, int]
    nbytes: int = 0
    is_sparse: bool = False
    dtype: Any = np.float64


# ---- tasks --------------------------------------------------------------------------------------


def only_queries(data: Dataset, kept: Array | None) -> Dataset:
    """The rows of the queries ``kept``, ascending, in order of position: a copy; all if None."""
    if kept is None or len(kept) == data.queries.n_queries:
        return data
    queries = data.queries.select(kept)
    part = data.select(queries.order)
    part.__dict__["queries"] = replace(queries, order=None)
    return part


def statistics_of_queries(
    data: Dataset, kept: Array | None, *, n_threads: int = 1
) -> ColumnStatistics:
    """The moments of the columns over the rows of the queries ``kept``, all if None."""
    data = only_queries(data, kept)
    if isinstance(data.rows, StreamedRows):
        return data.rows.statistics(data.weight)
    return data.rows.scan(data.weight, n_threads).statistics


def rows_of_queries(data: Dataset, kept: Array, index: Array, *, n_threads: int = 1) -> DenseRows:
    """Some rows of the queries ``kept``, by their number among them, in a copy."""
    from linrank.models.design import with_dense_rows  # few need it

    if len(kept) < data.queries.n_queries:
        index = np.sort(np.asarray(data.queries.select(kept).order))[index]
    if data.weight is not None:
        index = index[data.weight[index] > 0.0]
    found = with_dense_rows(data.select(index)).rows
    return DenseRows(np.array(found.to_user()))


def facts_of_part(
    data: Dataset,
    kept: Array | None,
    known: ColumnStatistics | None,
    by_query: bool,
    *,
    n_threads: int = 1,
) -> Facts:
    """The facts of one part, ``by_query`` of rows that are scaled within their queries.

    Its statistics are not computed where they are ``known``.
    """
    data = only_queries(data, kept)
    if by_query:
        data = Scaling("query").transformed(data, n_jobs=n_threads)
    labels, queries = data.labels, data.queries
    if data.weight is not None and not data.weight.all():  # a row of weight 0 is none
        counts = data.weight > 0.0
        labels = labels[counts]
        queries = Queries.of(labels, None if data.qid is None else data.qid[counts])
    n_levels = queries.n_levels[queries.n_levels > 1]
    known = statistics_of_queries(data, None, n_threads=n_threads) if known is None else known
    ends = float(labels.min(initial=np.inf)), float(labels.max(initial=-np.inf))
    return Facts(known, len(n_levels), int(n_levels.sum()), *ends)
