"""Training from a store within a limit on memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

from numpy.typing import NDArray

from linrank.data.dataset import Dataset
from linrank.data.scaling import Scaling
from linrank.io.store.store import Store
from linrank.parts.choices import check_domination, check_query_weight, check_rank
from linrank.parts.parts import Opened, consecutive
from linrank.parts.passes import Budget, Passes, sample_capacity
from linrank.parts.recipes import DominationRecipe, RankRecipe
from linrank.parts.risk import LARGEST_MATRIX
from linrank.parts.train import train_domination_chunks, train_rank_chunks
from linrank.ranksvm.train import MOST_FACTORED
from linrank.system.resources import allowed, describe_bytes, resident, resolve

if TYPE_CHECKING:
    from collections.abc import Mapping

    from linrank.parts.recipes import Recipe
    from linrank.solvers.result import Callback, Result

Array = NDArray[Any]
WHERE = "a store within memory_limit"

# What the process may take beside all that is counted: stacks of threads, arrays of the solver.
_SPARE = 64 << 20


def passes_over(
    store: Store, recipe: Recipe, memory_limit: Any, n_threads: int, factors: Any = None
) -> Passes:
    """Passes over a store within ``memory_limit`` bytes of memory of this process in all.

    What the process has in memory already counts, so that a limit on the process, or on its
    container, can be given as it is.
    """
    limit = allowed(memory_limit)
    assert limit is not None  # a limit that was given
    matrices = _matrix_bytes(store.n_features, store.n_chunks)
    used, copies = resident(), 2 if recipe.by_query else 1
    free, least = limit - used - _SPARE - matrices, Budget.least(store, copies)
    if free < least:
        raise MemoryError(
            f"memory_limit={memory_limit!r} is too small for {store.path}: the process has "
            f"{describe_bytes(used)} in memory already, and passes over chunks of "
            f"{describe_bytes(max(chunk.nbytes for chunk in store.chunks))} take "
            f"{describe_bytes(limit - free - used + least)} more; allow "
            f"{describe_bytes(limit - free + least)}, or write the store with smaller chunks "
            "(--chunk-size, chunk_bytes=)"
        )
    return Passes(store, recipe, Budget.of(store, free, copies), n_threads, factors)


def _matrix_bytes(n_features: int, n_chunks: int) -> int:
    """Bytes of what has the size of a Hessian, and of the products that are remembered.

    Two Hessians, that of a sample, their factor and a copy of each that is being made; those of the
    chunks that wait for their turn in the sum, one a level of its tree; and the parts that a kernel
    adds up, 64 MB of them or two (see `PaddedSquare` in `core/products.hpp`).
    """
    remembered = 64 * 8 * n_features
    if n_features > MOST_FACTORED:
        return remembered
    square = 8 * n_features**2
    n_levels = n_chunks.bit_length() + 1 if n_features <= LARGEST_MATRIX else 0
    parts = min(64 * square, max(64 << 20, 2 * square))
    return remembered + (6 + n_levels) * square + parts


def train_rank_store(
    store: Store,
    scaling: Scaling,
    *,
    memory_limit: Any,
    options: Mapping[str, Any],
    query_weight: Any = None,
    bounds: tuple[Array, Array] | None = None,
    w0: Array | None = None,
    n_jobs: int | None = None,
    callback: Callback | None = None,
) -> tuple[Result, int]:
    """Minimise the objective of `ranksvm.train` over a store; the result, and the pairs.

    ``options`` are C and ``linrank.options.TRAINING``; what passes cannot do is refused.
    """
    kinds = ("loss", "pairs", "pair_weighting", "query_normalization")
    check_rank(WHERE, **{name: options[name] for name in (*kinds, "solver")})
    recipe = RankRecipe(
        **{name: options[name] for name in kinds},
        query_weight=check_query_weight(query_weight),
        by_query=scaling.needs_queries,
    )
    n_threads = resolve(n_jobs)
    with passes_over(store, recipe, memory_limit, n_threads) as passes:
        result, problem = train_rank_chunks(
            passes,
            recipe,
            C=options["C"],
            tol=options["tol"],
            max_iter=options["max_iter"],
            scale=scaling.factors,
            bounds=bounds,
            w0=w0,
            capacity=sample_capacity(store),
            n_threads=n_threads,
            callback=callback,
        )
    return result, problem.n_pairs


def train_domination_store(
    store: Store,
    scaling: Scaling,
    *,
    memory_limit: Any,
    options: Mapping[str, Any],
    query_weight: Any = None,
    w0: Array | None = None,
    n_jobs: int | None = None,
    callback: Callback | None = None,
) -> tuple[Result, int]:
    """The same for the domination loss; ``options`` are alpha and `linrank.options.DOMINATION`."""
    check_domination(WHERE, **options)
    recipe = DominationRecipe(
        options["layers"],
        options["margin"],
        check_query_weight(query_weight),
        by_query=scaling.needs_queries,
    )
    n_threads = resolve(n_jobs)
    with passes_over(store, recipe, memory_limit, n_threads) as passes:
        result, problem = train_domination_chunks(
            passes,
            recipe,
            alpha=options["alpha"],
            tol=options["tol"],
            max_iter=options["max_iter"],
            scale=scaling.factors,
            w0=w0,
            capacity=sample_capacity(store),
            n_threads=n_threads,
            callback=callback,
        )
    return result, problem.n_pairs


_LOSSES = ("loss", "pairs", "pair_weighting", "query_normalization")


def recipe_of(query_weight: Any, **given: Any) -> RankRecipe:
    """The recipe of the losses of a RankSVM; what passes over a store cannot serve is refused.

    ``given`` are its parameters that decide on them, and its solver.
    """
    check_rank("a store within memory_limit", **given)
    losses = {name: given[name] for name in _LOSSES}
    return RankRecipe(**losses, query_weight=check_query_weight(query_weight))


class StoreParts:
    """The chunks of a store, read within a limit on memory."""

    where: ClassVar[str] = "a store"
    n_at_a_time: ClassVar[int] = 1  # the disk is what they would wait for

    def __init__(self, store: Store, memory_limit: Any, n_threads: int = 1) -> None:
        self.store, self.memory_limit, self.n_threads = store, memory_limit, n_threads
        self.n_features = store.n_features
        self.feature_names = store.feature_names
        self.statistics = store.statistics
        self.has_ids = store.has_ids
        self.lengths = [store.query_lengths(i) for i in range(store.n_chunks)]
        self.query_numbers = consecutive(self.lengths)

    @contextmanager
    def opened(
        self, recipe: RankRecipe | None, factors: Sequence[Array] | None = None
    ) -> Iterator[Opened]:
        made_by: Any = _Themselves() if recipe is None else recipe
        with self._passes(made_by, factors) as passes:
            yield Opened(passes, sample_capacity(self.store), self.n_threads)

    def _passes(self, recipe: Any, factors: Sequence[Array] | None) -> Passes:
        passes = passes_over(self.store, recipe, self.memory_limit, self.n_threads, factors)
        if isinstance(recipe, _Themselves):  # they are read once
            passes.budget = replace(passes.budget, n_states=0, n_kept=0)
        return passes


class _Themselves:
    """The recipe of data sets as they are."""

    by_query: ClassVar[bool] = False

    def prepared(self, data: Dataset, n_threads: int = 1) -> Dataset:
        return data

    def chunk(self, data: Dataset, n_threads: int = 1, factor: Any = None) -> Dataset:
        return data
