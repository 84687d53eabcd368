"""How much memory there is, so that a size can be refused before it is taken."""

from __future__ import annotations

import os

from linrank.checks import check_positive

__all__ = ["allowed", "available", "check_fits", "describe_bytes"]


def available() -> int | None:
    """Return the bytes that this process can still take, None where that is not known."""
    limits = [_free(), _group_free()]
    known = [limit for limit in limits if limit is not None]
    return min(known) if known else None


def allowed(memory_limit: int | None) -> int | None:
    """Return the bytes that a user allows, checked; None for half of what is free, if known.

    The other half is for what the size at hand does not count, and for others on the machine.
    """
    if memory_limit is None:
        free = available()
        return None if free is None else free // 2
    check_positive("memory_limit", memory_limit, "; it is a number of bytes, or None")
    return int(memory_limit)


def check_fits(n_bytes: int, what: str, remedy: str) -> None:
    """Raise MemoryError, with ``what`` and ``remedy``, if ``n_bytes`` more do not fit."""
    limit = available()
    if limit is not None and n_bytes > limit:
        raise MemoryError(
            f"{what} would take {describe_bytes(n_bytes)} but {describe_bytes(limit)} "
            f"are available; {remedy}"
        )


def describe_bytes(n_bytes: int) -> str:
    """Return a size in words.

    Examples
    --------
    >>> describe_bytes(1234), describe_bytes(8_600_000_000)
    ('1.2 kB', '8.6 GB')
    """
    size, units = float(n_bytes), ["B", "kB", "MB", "GB", "TB", "PB", "EB"]
    while size >= 999.5 and len(units) > 1:
        size /= 1000
        units.pop(0)
    return f"{size:.3g} {units[0]}" if units[0] == "B" else f"{size:.1f} {units[0]}"


def _free() -> int | None:
    """Free memory and what the system can drop from its caches."""
    try:
        with open("/proc/meminfo", encoding="ascii") as lines:
            for line in lines:
                if line.startswith("MemAvailable:"):
                    return int(line.split()[1]) * 1024
    except (OSError, ValueError):
        pass
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return None


def _group_free() -> int | None:
    """What is left of the limit of a container (control groups, version 2)."""
    try:
        with open("/sys/fs/cgroup/memory.max", encoding="ascii") as file:
            limit = int(file.read())  # "max" without a limit
        with open("/sys/fs/cgroup/memory.current", encoding="ascii") as file:
            return max(0, limit - int(file.read()))
    except (OSError, ValueError):
        return None
