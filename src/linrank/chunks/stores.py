"""Training from a store within a limit on memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from linrank.chunks.passes import Budget, Passes
from linrank.memory import allowed, describe_bytes, resident

if TYPE_CHECKING:
    from linrank.chunks.recipes import Recipe
    from linrank.store.store import Store

__all__ = ["passes_over"]

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
    # Beside chunks, state and samples: Hessians and their factor, products that are remembered.
    matrices = 40 * min(store.n_features, 1024) ** 2 + 64 * 8 * store.n_features
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
