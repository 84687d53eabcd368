"""Chunks of whole queries, how they are made of data sets, and what they add to the objective.

A chunk is made the same way on every machine, by a recipe. A recipe travels with the tasks: it is
small, and says all that the parameters of an estimator say about the loss.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from linrank.choices import SELECTED_PAIRS
from linrank.data import Dataset, Scaling, join_optional, join_rows, keep_queries
from linrank.data.queries import Queries, part_query_weights
from linrank.data.rows import Array, Rows, join_offsets, without_offsets
from linrank.domination import Layering, check_parameters, choose_solver, margin_form
from linrank.domination.problem import SAMPLE_SEED, DominationProblem
from linrank.errors import NoPairsError, check_natural
from linrank.losses.base import ScoreLoss, loss_of_pairs
from linrank.losses.swaps import Swaps
from linrank.models.design import Design
from linrank.pairs import Pairs, check_total, select_pairs
from linrank.ranksvm import train as problem
from linrank.ranksvm.train import Plannable, draw_rows
from linrank.system.resources import useful_threads

# Parameters of a RankSVM that decide on its recipe.
RANK_KINDS = ("loss", "pairs", "pair_weighting", "query_normalization", "n_rounds", "solver")
Piece = tuple[Rows, Any]  # some rows of a chunk, and their terms


@dataclass(frozen=True, eq=False)
class Sizes:
    """What the whole has to know of a chunk.

    Attributes
    ----------
    n_features, n_rows, n_pairs : int
    n_bytes : int
        Of the rows.
    is_sparse : bool
    weight : float
        What the chunk's losses weigh in all: of pairs ``Σ ω_ij``, of the domination loss its value
        at ``w = 0``.
    lengths : int64 array (n_queries,)
        Rows of each query.
    n_levels : int32 array (n_queries,)
        Different labels, or layers, of each query.
    """

    n_features: int
    n_rows: int
    n_pairs: int
    n_bytes: int
    is_sparse: bool
    weight: float
    lengths: Array
    n_levels: Array

    @property
    def n_queries(self) -> int:
        return len(self.lengths)


@dataclass(frozen=True, eq=False)
class Terms:
    """The terms that a chunk adds to the objective.

    Attributes
    ----------
    compared : Pairs, Swaps or Layering
        Pairs of labels, of a ranking of the rows, or layers.
    kind : str
        Of the loss.
    """

    compared: Any
    kind: str

    def loss(self, epsilon: float, n_threads: int = 1) -> ScoreLoss:
        """The loss of the chunk's scores, smoothed within ``epsilon`` where it has a kink."""
        return loss_of_pairs(self.kind, self.compared, n_threads, epsilon=epsilon)

    def weight(self) -> float:
        """What the losses weigh in all, as `Sizes` says."""
        if not isinstance(self.compared, Layering):
            return self.compared.total_weight()
        return float(self.loss(1.0).at(np.zeros(self.compared.queries.n_rows)).value)


@dataclass(frozen=True, eq=False)
class State:
    """The loss at the scores of one ``w``: what a Hessian product there starts from."""

    w: Array
    epsilon: float
    loss: ScoreLoss
    point: Any


@dataclass(eq=False)
class Chunk:
    """What a task works on.

    The state is no part of the chunk's value: a chunk that comes from elsewhere has none, and what
    needs it computes it again, to the same bits.

    Attributes
    ----------
    rows : DenseRows or CsrRows
    terms : Terms or None
        None where the chunk has no pair: it adds zeros.
    sizes : Sizes
    state : State or None
        That of the last ``w``.
    """

    rows: Rows
    terms: Terms | None
    sizes: Sizes
    state: State | None = field(default=None, repr=False)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "state": None}

    def at(self, w: Array, epsilon: float, n_threads: int) -> State:
        """The state at ``w``: the last one where that is of this ``w``, else a sweep."""
        last = self.state
        if last is not None and last.epsilon == epsilon and np.array_equal(last.w, w):
            return last
        assert self.terms is not None  # tasks return zeros before they come here
        loss = self.terms.loss(epsilon, n_threads)
        has_scores = w.any()  # of w = 0 they are known
        z = self.rows.scores(w, loss.order, n_threads) if has_scores else np.zeros(loss.n_positions)
        self.state = State(np.array(w), epsilon, loss, loss.at(z))
        return self.state


class SharedChunk(Chunk):
    """A chunk whose rows are those of a data set that is kept beside it: they count once."""


@dataclass(frozen=True, eq=False)
class Recipe(ABC):
    """What makes chunks, and problems of samples of them.

    Attributes
    ----------
    loss : str
        Its name.
    query_weight : mapping or None
        From query id to weight.
    by_query : bool
        Whether rows are divided by their ranges within the query, in a copy (``scale="query"``).
    design : Design or None
        What makes the columns of curves of raw rows, in a copy.
    seed : int
        Of the samples: that of training in memory, so that they are the same.
    """

    loss: str = ""
    query_weight: Mapping[Any, float] | None = field(default=None, kw_only=True)
    by_query: bool = field(default=False, kw_only=True)
    design: Design | None = field(default=None, kw_only=True)
    seed: ClassVar[int]
    parameter: ClassVar[str] = "C"  # of a path: the weight of the losses, or of the penalty

    @property
    def row_bytes(self) -> int:
        """What a row takes beyond what `linrank.parts.passes` counts for all, as measured."""
        return 16 if self.loss == "hinge" else 0

    @abstractmethod
    def compare(self, data: Dataset, query_weight: Array | None) -> Any:
        """What `Terms` compares; None, or a NoPairsError, where that is nothing."""

    @abstractmethod
    def join(self, queries: Queries, parts: list[Any]) -> Any:
        """What stands for ``parts``, compared by some queries each, one after the other."""

    @abstractmethod
    def make_problem(self, rows: Rows, compared: Any, C: float, whole: Any) -> Plannable:
        """The problem of these rows, else like the ``whole``."""

    def prepare(self, data: Dataset, n_threads: int = 1) -> Dataset:
        """The data with its rows as the loss is to see them: scaled, and without offsets."""
        if self.by_query:
            data = Scaling("query").transformed(data, n_jobs=n_threads)
        if self.design is not None:
            data = self.design.dataset(data, n_threads)
        rows = without_offsets(data.rows)
        return data if rows is data.rows else replace(data, rows=rows)

    def chunk(self, data: Dataset, n_threads: int = 1, kept: Array | None = None) -> Chunk:
        """The chunk of the queries of a data set where the mask ``kept`` is true; all if None.

        Rows of other queries are neither copied nor swept: the queries left are a selection of
        positions. So a chunk has the samples, and the sums, of a data set of these queries alone.
        """
        data = _with_queries(self.prepare(data, n_threads), kept)
        try:
            compared = self.compare(data, part_query_weights(self.query_weight, data.queries))
        except NoPairsError:
            compared = None
        terms = None if compared is None else Terms(compared, self.loss)
        rows, n_rows = data.rows, data.queries.n_rows
        queries = data.queries if terms is None else terms.compared.queries
        sizes = Sizes(
            rows.shape[1],
            n_rows,
            0 if terms is None else terms.compared.n_pairs,
            rows.nbytes * n_rows // max(1, rows.shape[0]),
            rows.is_sparse,
            0.0 if terms is None else terms.weight(),
            np.diff(queries.offsets),
            queries.n_levels,
        )
        return Chunk(rows, terms, sizes)

    def sample(
        self, chunk: Chunk, queries: Array, first: int, limit: int, seed: int, n_threads: int = 1
    ) -> Piece:
        """A task: rows of some queries in the order of their positions, and their terms.

        They are those that `linrank.ranksvm.train.draw_rows` draws.
        """
        assert chunk.terms is not None  # queries with pairs are drawn
        whole = chunk.terms.compared
        n_first = whole.depth if isinstance(whole, Swaps) else None
        sample, positions, weight = draw_rows(whole.queries, queries, limit, seed, first, n_first)
        alone = Queries(sample.offsets, None, sample.levels, sample.n_levels)
        return chunk.rows.take(np.asarray(sample.order)), whole.on(alone, positions, weight)

    def problem(self, pieces: Sequence[Piece], whole: Any) -> Plannable:
        """The problem of the pieces, its losses scaled up to those of the ``whole``.

        That is a `linrank.parts.risk.ChunkedProblem`.
        """
        parts = [part for _, part in pieces]
        queries = Queries(
            join_offsets([part.queries.offsets for part in parts]),
            None,
            np.concatenate([part.queries.levels for part in parts]),
            np.concatenate([part.queries.n_levels for part in parts]),
        )
        terms = Terms(self.join(queries, parts), self.loss)
        own = terms.weight()
        C = whole.C * whole.weight / own if own > 0.0 else whole.C
        return self.make_problem(join_rows([rows for rows, _ in pieces]), terms.compared, C, whole)


@dataclass(frozen=True, eq=False)
class RankRecipe(Recipe):
    """Chunks of a RankSVM; the fields are parameters of `linrank.RankSVM`."""

    loss: str = "squared_hinge"
    pairs: str = "all"
    pair_weighting: str = "uniform"
    query_normalization: str | None = None
    n_rounds: int = 1
    seed: ClassVar[int] = problem.SAMPLE_SEED

    def compare(self, data: Dataset, query_weight: Array | None) -> Pairs | None:
        pairs, _ = select_pairs(
            data,
            pairs=self.pairs,
            pair_weighting=self.pair_weighting,
            query_weight=query_weight,
            query_normalization=self.query_normalization,
        )
        return pairs

    def join(self, queries: Queries, parts: list[Any]) -> Any:
        own = _join_fields(parts, "row_weight", "query_weight", "gain")
        return Pairs(queries, **own, adjacent=parts[0].adjacent)

    def make_problem(self, rows: Rows, pairs: Any, C: float, whole: Any) -> problem.Problem:
        n_threads = useful_threads(rows.nbytes, whole.n_threads)
        return problem.Problem(rows, pairs, C, whole.scale, n_threads, self.loss, box=whole.box)


@dataclass(frozen=True, eq=False)
class SwapRecipe(RankRecipe):
    """Chunks of a RankSVM whose pairs a measure weighs: those of the ranking by a model.

    Attributes
    ----------
    measure : Measure
        Of which nothing depends on other chunks.
    ranking : float64 array (n_features,)
        Weights of the columns: the model.
    share : float
        The scale of all weights, as in `linrank.losses.swaps.Swaps.of`.
    """

    measure: Any = field(kw_only=True)
    ranking: Array = field(kw_only=True)
    share: float = 1.0

    @property
    def row_bytes(self) -> int:
        return 136 + super().row_bytes

    def compare(self, data: Dataset, query_weight: Array | None) -> Any:
        if data.queries.n_pairs == 0:
            return None
        swaps = Swaps.of(
            data.queries,
            data.labels,
            data.rows.scores(self.ranking, None, 1),
            self.measure,
            row_weight=data.weight,
            query_weight=query_weight,
            query_normalization=self.query_normalization,
            share=self.share,
        )
        check_total(swaps.total_weight(), self.pair_weighting)
        return swaps

    def join(self, queries: Queries, parts: list[Any]) -> Swaps:
        names = ("depth", "gain", "first", "second", "factor", "row_weight")
        return Swaps(queries, **_join_fields(parts, *names))

    def totals(self, chunk: Chunk, n_threads: int = 1) -> Array:
        """A task: the weights of the queries that have pairs, and those of the pairs, summed."""
        if chunk.terms is None:
            return np.zeros(2)
        swaps = chunk.terms.compared
        by_query = swaps.weight_by_query
        given = part_query_weights(self.query_weight, swaps.queries)
        c = np.ones(len(by_query)) if given is None else given
        return np.array([c[by_query > 0].sum(), by_query.sum()])


@dataclass(frozen=True, eq=False)
class DominationRecipe(Recipe):
    """Chunks for the domination loss; the fields are parameters of `linrank.DominationRanker`.

    ``margin`` is a number, a name or a tuple: whatever needs no other chunk than the one at hand.
    """

    layers: str | Callable[[Array], Any] = "labels"
    margin: Any = None
    loss: str = field(default="domination", init=False)
    seed: ClassVar[int] = SAMPLE_SEED
    parameter: ClassVar[str] = "alpha"

    @property
    def row_bytes(self) -> int:
        return 24

    def compare(self, data: Dataset, query_weight: Array | None) -> Layering:
        how = {"layers": self.layers, "margin": self.margin, "query_weight": query_weight}
        return Layering.of(data, **how)

    def join(self, queries: Queries, parts: list[Any]) -> Layering:
        return Layering(queries, **_join_fields(parts, "shift", "row_weight", "query_weight"))

    def make_problem(self, rows: Rows, layering: Any, C: float, whole: Any) -> DominationProblem:
        alpha = 1.0 / (2.0 * C)
        return DominationProblem(rows, layering, "l2", alpha, whole.scale, whole.n_threads)


def _join_fields(parts: list[Any], *names: str) -> dict[str, Any]:
    return {name: join_optional([getattr(part, name) for part in parts]) for name in names}


def _with_queries(data: Dataset, mask: Array | None) -> Dataset:
    """The same rows, of which only those of the queries of a mask, all if None, have a position."""
    if mask is None or mask.all():
        return data
    return keep_queries(data, data.queries.select(np.flatnonzero(mask)))


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
    check_natural("n_rounds", recipe.n_rounds)
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


def domination_recipe(parameters: Any, where: str, query_weight: Any = None) -> DominationRecipe:
    """The same of the parameters of a DominationRanker, or of its search."""
    p, induction = parameters, getattr(parameters, "feature_induction", None)
    own = ("penalty", "solver", "negative_sampling", "alpha", "tol", "max_iter")
    given = {name: getattr(p, name) for name in own if hasattr(p, name)}
    check_parameters(feature_induction=induction, **given)
    if choose_solver(p.solver, p.penalty, induction) != "newton":
        raise ValueError(
            f"penalty={p.penalty!r} with solver={p.solver!r} reads features one by one, which "
            f"{where} cannot give; use penalty='l2' and solver='newton'"
        )
    if p.negative_sampling not in (None, 1.0):
        raise ValueError(
            f"negative_sampling={p.negative_sampling!r} cannot be had from {where}; leave it out"
        )
    if p.pooled:
        raise ValueError(
            f"pooled=True makes one query of all rows, and {where} is cut by queries; use "
            "pooled=False"
        )
    if margin_form(p.margin) in ("rows", "table"):
        raise ValueError(
            f"a margin by table or by row speaks of all rows together and cannot be had from "
            f"{where}; give a number, 'linear', 'log' or a function of the labels"
        )
    return DominationRecipe(p.layers, p.margin, query_weight=_by_id(query_weight))


def _by_id(weight: Any) -> Mapping[Any, float] | None:
    """Query weights by query id: the only form that needs no order of queries."""
    if weight is None or isinstance(weight, Mapping):
        return weight
    raise ValueError(
        f"query_weight must be a mapping from query id to weight here, got "
        f"{type(weight).__name__}; write {{id: weight, ...}}"
    )
