"""Training from a store within a limit on memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from linrank.chunks.choices import check_domination, check_query_weight, check_rank
from linrank.chunks.passes import Budget, Passes, sample_capacity
from linrank.chunks.problem import LARGEST_MATRIX
from linrank.chunks.recipes import DominationRecipe, RankRecipe
from linrank.chunks.training import train_domination_chunks, train_rank_chunks
from linrank.memory import allowed, describe_bytes, resident
from linrank.planning import MOST_FACTORED
from linrank.threads import resolve

if TYPE_CHECKING:
    from collections.abc import Mapping

    from linrank.chunks.recipes import Recipe
    from linrank.scaling import Scaling
    from linrank.solvers.result import Callback, Result
    from linrank.store.store import Store

__all__ = ["passes_over", "train_domination_store", "train_rank_store"]

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
            f"{describe_bytes(limit - free + least)}, or write the store with smaller chunks"
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
    """Minimise the objective of `linrank.ranksvm.train` over a store; the result, and the pairs.

    ``options`` are C and ``linrank.options.TRAINING``; what passes cannot do is refused.
    """
    kinds = ("loss", "pairs", "pair_weighting", "query_normalization")
    check_rank(WHERE, **{name: options[name] for name in (*kinds, "solver", "counting")})
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
