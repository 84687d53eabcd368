"""How a chunk is made of a dataset, the same on every machine, and what it adds to the objective.

A recipe travels with the tasks: it is small, and says all that the parameters of an estimator say
about the loss.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from linrank.data.bounds import Box
from linrank.data.dataset import Dataset, join_offsets, join_optional, join_rows
from linrank.data.queries import Queries, part_query_weights
from linrank.data.rows import Rows, without_offsets
from linrank.data.scaling import Scaling
from linrank.domination import newton
from linrank.domination.train import check_parameters, choose_solver
from linrank.errors import NoPairsError
from linrank.losses.base import Huber, ScoreLoss, SquaredHinge
from linrank.losses.domination import DominationLoss
from linrank.options import SELECTED_PAIRS
from linrank.pairs import Pairs, chosen
from linrank.pairs.layering import Layering, is_by_row, is_table
from linrank.parts.chunk import Chunk, Sizes, Terms
from linrank.ranksvm import train as problem
from linrank.ranksvm.train import Plannable, draw_rows
from linrank.system.resources import useful_threads

Array = NDArray[Any]
# Parameters of a RankSVM that decide on its recipe.
RANK_KINDS = ("loss", "pairs", "pair_weighting", "query_normalization", "solver")
Piece = tuple[Rows, Any]  # some rows of a chunk, and their terms


class Recipe(Protocol):
    """What makes chunks, and problems of samples of them."""

    @property
    def loss(self) -> str: ...
    @property
    def by_query(self) -> bool:
        """Whether rows are scaled within their query, in a copy."""

    @property
    def seed(self) -> int:
        """Of the samples: that of training in memory, so that they are the same."""

    def prepared(self, data: Dataset, n_threads: int = 1) -> Dataset:
        """The data with its rows as the loss is to see them."""

    def chunk(self, data: Dataset, n_threads: int = 1, kept: Array | None = None) -> Chunk:
        """The chunk of the queries of a data set where the mask ``kept`` is true; all if None.

        Rows of other queries are neither copied nor swept: the queries left are a selection of
        positions. So a chunk has the samples, and the sums, of a data set of these queries alone.
        """

    def sample(self, chunk: Chunk, queries: Array, limit: int, seed: int, first: int) -> Piece:
        """Rows of some queries, as `linrank.ranksvm.train.draw_rows` draws them."""

    def problem(
        self,
        pieces: Sequence[Piece],
        C: float,
        weight: float,
        scale: Array | None,
        box: Box | None,
        n_threads: int,
    ) -> Plannable:
        """The problem of the pieces, its losses scaled up to those of the whole, ``weight``."""


@dataclass(frozen=True, eq=False)
class PairTerms:
    """The pairs of the labels of a chunk."""

    pairs: Pairs
    kind: str

    def loss(self, epsilon: float, n_threads: int) -> ScoreLoss:
        if self.kind == "hinge":
            return Huber(self.pairs, epsilon, n_threads)
        return SquaredHinge(self.pairs, n_threads)


@dataclass(frozen=True, eq=False)
class RankRecipe:
    """Chunks of a RankSVM; the fields are parameters of `linrank.RankSVM`.

    ``query_weight`` is a mapping from query id to weight. ``by_query`` says whether rows are
    divided by their ranges within the query (``scale="query"``).
    """

    loss: str = "squared_hinge"
    pairs: str = "all"
    pair_weighting: str = "uniform"
    query_normalization: str | None = None
    query_weight: Mapping[Any, float] | None = None
    by_query: bool = False
    seed: ClassVar[int] = problem.SAMPLE_SEED

    def prepared(self, data: Dataset, n_threads: int = 1) -> Dataset:
        return _prepared(data, self.by_query, n_threads)

    def chunk(self, data: Dataset, n_threads: int = 1, kept: Array | None = None) -> Chunk:
        data = _with_queries(self.prepared(data, n_threads), kept)
        try:
            pairs, _ = chosen(
                data,
                pairs=self.pairs,
                pair_weighting=self.pair_weighting,
                query_weight=part_query_weights(self.query_weight, data.queries),
                query_normalization=self.query_normalization,
            )
        except NoPairsError:
            pairs = None
        if pairs is None:
            return _made(data, data.queries, None, 0, 0.0)
        terms = PairTerms(pairs, self.loss)
        return _made(data, data.queries, terms, pairs.n_pairs, pairs.total_weight())

    def sample(self, chunk: Chunk, queries: Array, limit: int, seed: int, first: int) -> Piece:
        assert isinstance(chunk.terms, PairTerms)  # queries with pairs are drawn
        return _drawn(chunk.rows, chunk.terms.pairs, queries, limit, seed, first)

    def problem(
        self,
        pieces: Sequence[Piece],
        C: float,
        weight: float,
        scale: Array | None,
        box: Box | None,
        n_threads: int,
    ) -> problem.Problem:
        rows = join_rows([rows for rows, _ in pieces])
        parts: list[Pairs] = [pairs for _, pairs in pieces]
        pairs = Pairs(
            _joined([part.queries for part in parts]),
            join_optional([part.row_weight for part in parts]),
            join_optional([part.query_weight for part in parts]),
            join_optional([part.gain for part in parts]),
            parts[0].adjacent,
        )
        own = pairs.total_weight()
        n_threads = useful_threads(rows.nbytes, n_threads)
        return problem.Problem(
            rows, pairs, C * weight / own if own > 0 else C, scale, n_threads, self.loss, box=box
        )


@dataclass(frozen=True, eq=False)
class LayerTerms:
    """The layers of a chunk."""

    layering: Layering

    def loss(self, epsilon: float, n_threads: int) -> ScoreLoss:
        return DominationLoss(self.layering, n_threads)

    def at_zero(self) -> float:
        """The loss where all scores are 0."""
        return _at_zero(self.layering)


@dataclass(frozen=True, eq=False)
class DominationRecipe:
    """Chunks for the domination loss; the fields are parameters of `linrank.DominationRanker`.

    ``margin`` is a number, a name or a tuple: whatever needs no other chunk than the one at hand.
    """

    layers: str | Callable[[Array], Any] = "labels"
    margin: Any = None
    query_weight: Mapping[Any, float] | None = None
    by_query: bool = False
    loss: ClassVar[str] = "domination"
    seed: ClassVar[int] = newton.SAMPLE_SEED

    def prepared(self, data: Dataset, n_threads: int = 1) -> Dataset:
        return _prepared(data, self.by_query, n_threads)

    def chunk(self, data: Dataset, n_threads: int = 1, kept: Array | None = None) -> Chunk:
        data = _with_queries(self.prepared(data, n_threads), kept)
        try:
            layering = Layering.of(
                data,
                layers=self.layers,
                margin=self.margin,
                query_weight=part_query_weights(self.query_weight, data.queries),
            )
        except NoPairsError:
            return _made(data, data.queries, None, 0, 0.0)
        terms = LayerTerms(layering)
        return _made(data, layering.queries, terms, layering.n_pairs, terms.at_zero())

    def sample(self, chunk: Chunk, queries: Array, limit: int, seed: int, first: int) -> Piece:
        assert isinstance(chunk.terms, LayerTerms)  # queries with pairs are drawn
        return _drawn(chunk.rows, chunk.terms.layering, queries, limit, seed, first)

    def problem(
        self,
        pieces: Sequence[Piece],
        C: float,
        weight: float,
        scale: Array | None,
        box: Box | None,
        n_threads: int,
    ) -> newton.RidgeProblem:
        rows = join_rows([rows for rows, _ in pieces])
        parts: list[Layering] = [layering for _, layering in pieces]
        layering = Layering(
            _joined([part.queries for part in parts]),
            join_optional([part.shift for part in parts]),
            join_optional([part.row_weight for part in parts]),
            join_optional([part.query_weight for part in parts]),
        )
        own = _at_zero(layering)
        factor = weight / own if own > 0.0 else 1.0
        return newton.RidgeProblem(rows, layering, factor * C, scale, n_threads)


def _prepared(data: Dataset, by_query: bool, n_threads: int) -> Dataset:
    """The data with its rows scaled within queries, or as they are, and without offsets."""
    if by_query:
        data = Scaling("query").transformed(data, n_jobs=n_threads)
    rows = without_offsets(data.rows)
    return data if rows is data.rows else replace(data, rows=rows)


def _made(
    data: Dataset, queries: Queries, terms: Terms | None, n_pairs: int, weight: float
) -> Chunk:
    rows, n_rows = data.rows, data.queries.n_rows
    sizes = Sizes(
        rows.shape[1],
        n_rows,
        n_pairs,
        rows.nbytes * n_rows // max(1, rows.shape[0]),
        rows.is_sparse,
        weight,
        np.diff(queries.offsets),
        queries.n_levels,
    )
    return Chunk(rows, terms, sizes)


def _drawn(
    rows: Rows, terms: Pairs | Layering, queries: Array, limit: int, seed: int, first: int
) -> Piece:
    """Rows of some queries in the order of their positions, and their terms."""
    sample, positions, weight = draw_rows(terms.queries, queries, limit, seed, first)
    order = sample.order
    own = terms.on(Queries(sample.offsets, None, sample.levels, sample.n_levels), positions, weight)
    return rows.take(np.asarray(order)), own


def _joined(parts: Sequence[Queries]) -> Queries:
    return Queries(
        join_offsets([part.offsets for part in parts]),
        None,
        np.concatenate([part.levels for part in parts]),
        np.concatenate([part.n_levels for part in parts]),
    )


def _at_zero(layering: Layering) -> float:
    zeros = np.zeros(layering.queries.n_rows)
    return float(DominationLoss(layering).at(zeros).value)


def _with_queries(data: Dataset, mask: Array | None) -> Dataset:
    """The same rows, of which only those of the queries of a mask, all if None, have a position."""
    if mask is None or mask.all():
        return data
    part = replace(data)
    part.__dict__["queries"] = data.queries.select(np.flatnonzero(mask))
    return part


def only_queries(data: Dataset, kept: Array) -> Dataset:
    """The rows of the queries ``kept``, ascending, in order of position: a copy."""
    queries = data.queries.select(kept)
    part = data.select(queries.order)
    part.__dict__["queries"] = replace(queries, order=None)
    return part


# ---- what chunks cannot serve -------------------------------------------------------------------


def rank_recipe(where: str, query_weight: Any = None, **given: Any) -> RankRecipe:
    """The recipe of a RankSVM; what chunks cannot serve is refused, with what to do instead.

    ``where`` says what the data are, for the message: "a store", "a cluster". ``given`` are the
    parameters of `linrank.RankSVM` that decide on the losses, and its solver.
    """
    solver = given.pop("solver", "newton")
    recipe = RankRecipe(**given, query_weight=_by_id(query_weight))
    problem.check_choices(
        recipe.loss, recipe.pairs, recipe.pair_weighting, solver, recipe.query_normalization
    )
    if solver != "newton":
        raise ValueError(
            f"solver={solver!r} reads rows that are all in memory, not {where}; use solver='newton'"
        )
    if recipe.pairs in SELECTED_PAIRS:
        raise ValueError(
            f"pairs={recipe.pairs!r} lists pairs of all queries together and cannot be had from "
            f"{where}; use pairs='all' or 'adjacent'"
        )
    return recipe


def domination_recipe(
    where: str,
    query_weight: Any = None,
    *,
    layers: Any,
    margin: Any,
    pooled: bool,
    penalty: str,
    solver: str,
    feature_induction: int | None,
    negative_sampling: float | None,
    **others: Any,
) -> DominationRecipe:
    """The same of a DominationRanker; ``others`` are the rest of its own parameters."""
    check_parameters(
        penalty=penalty,
        solver=solver,
        feature_induction=feature_induction,
        negative_sampling=negative_sampling,
        **{name: value for name, value in others.items() if name in ("alpha", "tol", "max_iter")},
    )
    if choose_solver(solver, penalty, feature_induction) != "newton":
        raise ValueError(
            f"penalty={penalty!r} with solver={solver!r} reads features one by one, which {where} "
            "cannot give; use penalty='l2' and solver='newton'"
        )
    if negative_sampling not in (None, 1.0):
        raise ValueError(
            f"negative_sampling={negative_sampling!r} cannot be had from {where}; leave it out"
        )
    if pooled:
        raise ValueError(
            f"pooled=True makes one query of all rows, and {where} is cut by queries; use "
            "pooled=False"
        )
    if is_table(margin) or is_by_row(margin):
        raise ValueError(
            f"a margin by table or by row speaks of all rows together and cannot be had from "
            f"{where}; give a number, 'linear', 'log' or a function of the labels"
        )
    return DominationRecipe(layers, margin, _by_id(query_weight))


def _by_id(weight: Any) -> Mapping[Any, float] | None:
    """Query weights by query id: the only form that needs no order of queries."""
    if weight is None or isinstance(weight, Mapping):
        return weight
    raise ValueError(
        f"query_weight must be a mapping from query id to weight here, got "
        f"{type(weight).__name__}; write {{id: weight, ...}}"
    )
