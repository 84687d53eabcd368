"""Stand-in."""

from __future__ import annotations

from typing import Any

from linrank.store.store import Store

__all__ = ["is_limited"]


def is_limited(X: Any, y: Any, memory_limit: Any, **others: Any) -> bool:
    if not isinstance(X, Store):
        if memory_limit is not None:
            raise ValueError(
                f"memory_limit={memory_limit!r} is for a store, got {type(X).__name__}: what is in "
                "memory cannot be kept out of it; write it with linrank.Store.write, or leave "
                "memory_limit out"
            )
        return False
    for name, value in {"y": y, **others}.items():
        if value is not None:
            raise ValueError(f"{name} is part of the store {X.path}; call fit(store) without it")
    return memory_limit is not None
