"""descend_store: a stochastic fit on a store that need not fit into memory."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from linrank.memory import resident
from linrank.stochastic.chunked import descend_chunks

if TYPE_CHECKING:
    from linrank.scaling import Scaling
    from linrank.stochastic.training import DescentResult
    from linrank.store.store import Store

__all__ = ["descend_store"]

_SPARE = 32 << 20  # stacks of threads, and what the allocator does not give back


def descend_store(
    store: Store, scaling: Scaling, *, n_jobs: int | None = None, **options: Any
) -> DescentResult:
    """Learn weights from pairs of a store, its chunks scaled as they are read.

    Parameters
    ----------
    store : Store
        The data.
    scaling : Scaling
        Of its features, as from ``store.statistics``.
    n_jobs : int, optional
        Threads of the exact objective.
    **options
        Those of :func:`linrank.stochastic.chunked.descend_chunks`.
    """
    # One thread scales: another one is at work on the steps.
    prepare = None if scaling.kind == "none" else partial(scaling.applied, n_jobs=1)
    return descend_chunks(
        store,
        prepare=prepare,
        taken=resident() + _SPARE,
        n_jobs=n_jobs,
        **options,
    )
