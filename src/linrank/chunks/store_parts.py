"""The chunks of a store as parts, read within a limit on memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, ClassVar

from numpy.typing import NDArray

from linrank.chunks.choices import check_query_weight, check_rank
from linrank.chunks.parts import Opened, consecutive
from linrank.chunks.passes import Passes, sample_capacity
from linrank.chunks.recipes import RankRecipe
from linrank.chunks.stores import passes_over
from linrank.data.dataset import Dataset
from linrank.store.store import Store

__all__ = ["StoreParts", "recipe_of"]

Array = NDArray[Any]


_LOSSES = ("loss", "pairs", "pair_weighting", "query_normalization")


def recipe_of(query_weight: Any, **given: Any) -> RankRecipe:
    """The recipe of the losses of a RankSVM; what passes over a store cannot serve is refused.

    ``given`` are its parameters that decide on them, and its solver and counting.
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
