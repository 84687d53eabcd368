"""Tasks on partitions, not yet run."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

import dask


def delayed(task: Callable[..., Any], number: int, *args: Any) -> Any:
    """Return ``task(number, *args)`` on a partition, delayed, under a key that no other has."""
    key = f"linrank-{task.__name__.lstrip('_')}-{uuid.uuid4().hex}-{number}"
    return dask.delayed(task, pure=False)(number, *args, dask_key_name=key)
