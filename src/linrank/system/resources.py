"""Threads and memory of this machine, and amounts of things in words."""

from __future__ import annotations

import dataclasses
import functools
import math
import os
import re
import sys
from collections.abc import Callable
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from linrank.errors import check_positive

MOST = 10_000  # threads: more is a slip of the pen
_GROUP = "/sys/fs/cgroup"


def resolve(n_jobs: int | None) -> int:
    """Return the number of threads that ``n_jobs`` asks for.

    Parameters
    ----------
    n_jobs : int or None
        An integer >= 1 means that many. ``None`` and -1 mean `all_threads`, -2 all but one, and so
        on, at least one, as in joblib.

    Examples
    --------
    >>> resolve(3)
    3
    >>> resolve(-1) == resolve(None) >= 1
    True
    """
    if n_jobs is None:
        return all_threads()
    if isinstance(n_jobs, bool) or not hasattr(n_jobs, "__index__"):
        raise TypeError(f"n_jobs must be an integer or None, got {n_jobs!r}")
    if n_jobs < 0:
        return max(1, all_threads() + 1 + int(n_jobs))
    if n_jobs == 0:
        raise ValueError("n_jobs must be >= 1, or -1 or None for all cores, -2 for one less, got 0")
    if n_jobs > MOST:
        raise ValueError(f"n_jobs must be at most {MOST:,}, or -1 for all cores, got {n_jobs}")
    return int(n_jobs)


def all_threads() -> int:
    """Return the threads that this process may have where no number is given.

    The environment decides: ``LINRANK_NUM_THREADS``, else ``OMP_NUM_THREADS``, by which joblib and
    others tell their workers. Without either it is the cores of its affinity mask, or fewer where
    a control group, as of a container, grants less time.
    """
    own = os.environ.get("LINRANK_NUM_THREADS", "").strip()
    if own:
        if not own.isdecimal() or not 1 <= int(own) <= MOST:
            raise ValueError(
                f"LINRANK_NUM_THREADS must be an integer from 1 to {MOST:,}, got {own!r}; unset it "
                "for all cores"
            )
        return int(own)
    first = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0].strip()  # by level of nesting
    if first.isdecimal() and 1 <= int(first) <= MOST:
        return int(first)
    if hasattr(os, "sched_getaffinity"):
        n_cores = len(os.sched_getaffinity(0))
    else:
        n_cores = os.cpu_count() or 1
    quota = cpu_quota(_GROUP, "/proc/self/cgroup")
    return n_cores if quota is None else max(1, min(n_cores, math.ceil(quota)))


@functools.cache
def cpu_quota(root: str, membership: str) -> float | None:
    """Return the cores whose time the control groups of this process grant it; None if unlimited.

    Parameters
    ----------
    root : str
        Where control groups are mounted. Version 2 has all there, version 1 a folder ``cpu``.
    membership : str
        The file that lists the groups of the process, ``number:controllers:path`` each. In a
        container the path may be that on the host, which is not there: the root is the group then.
    """
    paths = {"": "", "cpu": ""}  # by folder of the controller
    for line in _lines(membership):
        controllers, _, path = line.partition(":")[2].partition(":")
        if not controllers or "cpu" in controllers.split(","):
            paths["cpu" if controllers else ""] = path.strip("/")
    limits = []
    for folder, path in paths.items():
        limits.append(_cpu_limit(os.path.join(root, folder)))
        while path:  # every group from its own up to the root may limit it
            limits.append(_cpu_limit(os.path.join(root, folder, path)))
            path = os.path.dirname(path)
    return min((limit for limit in limits if limit is not None), default=None)


def _cpu_limit(group: str) -> float | None:
    """Time over period of one control group, of either version."""
    names = ("cpu.max", "cpu.cfs_quota_us", "cpu.cfs_period_us")
    words = " ".join(line for name in names for line in _lines(os.path.join(group, name))).split()
    # "max" and -1 are no limit.
    if len(words) != 2 or not all(word.isdecimal() for word in words):
        return None
    quota, period = map(int, words)
    return quota / period if quota and period else None


def _lines(path: str) -> list[str]:
    """The lines of a file of the system; none where it cannot be read."""
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            return file.read().splitlines()
    except OSError:
        return []


def useful_threads(n_bytes: float, n_threads: int) -> int:
    """As many threads as have 1 MB each of what a product reads, in a tenth of a millisecond.

    For less, waking another one takes as long as it helps.
    """
    return int(max(1, min(n_threads, n_bytes // 1_000_000)))


def map_threads(
    n_items: int,
    work: Callable[[int], Any],
    n_threads: int = 1,
    progress: Callable[[int], None] | None = None,
) -> list[Any]:
    """The results of ``work(i)`` for every i below `n_items`, on `n_threads` threads.

    The error of the lowest item is raised, the same one on any number of threads. After an error
    or Ctrl-C no other item is begun, and those on their way are finished.

    Parameters
    ----------
    n_items : int
        How many there are.
    work : callable
        It may run in several threads at once.
    n_threads : int
        1 works in the calling thread.
    progress : callable, optional
        Called in the calling thread with the number of items that are done.
    """
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(max(1, n_threads)) as pool:
        # On one thread the work is done here, where Ctrl-C ends an item in its midst.
        calls = [
            functools.partial(work, i) if n_threads <= 1 else pool.submit(work, i).result
            for i in range(n_items)
        ]
        found = []
        try:
            for n_done, call in enumerate(calls, start=1):
                found.append(call())
                if progress is not None:
                    progress(n_done)
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
    return found


if TYPE_CHECKING or sys.version_info >= (3, 12):
    from functools import cached_property as cached_property
else:

    class cached_property(functools.cached_property):
        """That of Python 3.12 for the versions before it.

        Theirs holds a lock while it computes, one for all objects of a class: fits that run side
        by side would wait for each other at every value and gradient.
        """

        def __init__(self, func: Any) -> None:
            super().__init__(func)
            self.lock = nullcontext()


class PickledFields:
    """A dataclass whose cached properties stay out of pickles: they are made again."""

    def __getstate__(self) -> dict[str, Any]:
        names = (one.name for one in dataclasses.fields(self))  # type: ignore[arg-type]
        return {name: getattr(self, name) for name in names}


_UNITS = "kMGTPE"
_SIZE = re.compile(
    rf"([0-9]{{0,20}})(?:\.([0-9]{{0,20}}))? ?(?:([{_UNITS}])(i)?)?B?", re.IGNORECASE
)
_FORM = "a number of bytes, or a size such as '512MiB' or '1.5GB'"


def available() -> int | None:
    """Return the bytes that this process can still take, None where that is not known."""
    limits = (_free(), _group_free())
    return min((limit for limit in limits if limit is not None), default=None)


def allowed(memory_limit: int | float | str | None) -> int | None:
    """Return the bytes of a ``memory_limit``, checked; None for half of what is free, if known.

    The other half is for what the size at hand does not count, and for others on the machine. A
    limit is a number of bytes, or a size in words that `parse_bytes` reads: what a fit, or a
    command, may take beyond what the process holds when it begins.
    """
    if memory_limit is None:
        free = available()
        return None if free is None else free // 2
    return parse_bytes(memory_limit, "memory_limit", ", or None")


def too_small(
    memory_limit: int | float | str | None, what: str, needed: int, remedy: str
) -> MemoryError:
    """The error of a limit, or of half of the free memory, in which ``what`` does not fit."""
    limit, least = allowed(memory_limit), _round_up(needed)
    given = "half of the free memory" if memory_limit is None else f"memory_limit={memory_limit!r}"
    room = "" if limit is None else f", {describe_bytes(limit)},"
    return MemoryError(
        f"{given}{room} is too small: {what} takes {describe_bytes(needed)} beyond what the "
        f"process holds already; allow {least}, or {remedy}"
    )


def _round_up(n_bytes: int) -> str:
    """A size that `parse_bytes` reads, of three digits and not below ``n_bytes``."""
    unit = 10 ** max(0, len(str(n_bytes)) - 3)
    power = min(5, (len(str(n_bytes)) - 1) // 3)
    rounded = -(-n_bytes // unit) * unit
    return f"{rounded / 1000**power:.12g}{' kMGTP'[power].strip()}B"


def parse_bytes(size: int | float | str, name: str = "size", otherwise: str = "") -> int:
    """Return the bytes of a size that a user gives, 1 at least, rounded down.

    Parameters
    ----------
    size : int, float or str
        A finite number of bytes > 0, or a string: a decimal number and one of the units B, kB, MB,
        GB, TB, PB and EB (powers of 1000) or KiB, MiB, ... EiB (powers of 1024). Case does not
        matter, B may be left out.
    name : str
        What is called so in the message.
    otherwise : str
        What else it may be, for the message.

    Examples
    --------
    >>> parse_bytes("1.5GB"), parse_bytes("512 MiB"), parse_bytes(1e6)
    (1500000000, 536870912, 1000000)
    """
    if not isinstance(size, str):
        check_positive(name, size, f"; it is {_FORM}{otherwise}")
        return max(1, int(size))
    match = _SIZE.fullmatch(size.strip())
    digits = (match[1] + (match[2] or "")) if match else ""
    if match is None or not digits.strip("0"):
        raise ValueError(f"{name} must be {_FORM}{otherwise}, and > 0; got {size!r}")
    power = 1 + _UNITS.lower().index(match[3].lower()) if match[3] else 0
    unit: int = (1024 if match[4] else 1000) ** power
    shift: int = 10 ** len(match[2] or "")
    return max(1, int(digits) * unit // shift)  # in integers: 0.1 is no float


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
    size, unit = _in_unit(n_bytes)
    return f"{size:.3g} {unit}" if unit == "B" else f"{size:.1f} {unit}"


def _free() -> int | None:
    """Free memory and what the system can drop from its caches."""
    for line in _lines("/proc/meminfo"):
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return None


def _group_free() -> int | None:
    """What is left of the limit of a container (control groups, version 2)."""
    limit, used = (
        "".join(_lines(os.path.join(_GROUP, name))) for name in ("memory.max", "memory.current")
    )
    if not limit.isdecimal() or not used.isdecimal():  # "max" without a limit
        return None
    # Files in the cache give way to what is needed.
    kinds = ("inactive_file ", "active_file ")
    stat = [line for line in _lines(os.path.join(_GROUP, "memory.stat")) if line.startswith(kinds)]
    cached = sum(int(line.split()[1]) for line in stat)
    return max(0, int(limit) - max(0, int(used) - cached))


def count(number: int, thing: str, plural: str | None = None) -> str:
    """``count(1234, "row")`` is ``1,234 rows``."""
    return f"{number:,} {thing if number == 1 else plural or thing + 's'}"


def bytes_text(size: int) -> str:
    """A size in the unit that keeps it below a thousand."""
    value, unit = _in_unit(size)
    return f"{value:.3g} {unit}"


def _in_unit(n_bytes: int) -> tuple[float, str]:
    size, units = float(n_bytes), ["B", "kB", "MB", "GB", "TB", "PB", "EB"]
    while size >= 999.5 and len(units) > 1:
        size /= 1000
        units.pop(0)
    return size, units[0]


def short_text(value: Any) -> str:
    """A value of a parameter in words, a fraction with three digits."""
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def seconds(duration: float) -> str:
    """A duration with three digits: ``12.3 ms``, ``4.56 s``."""
    return f"{1000 * duration:.3g} ms" if duration < 1 else f"{duration:.3g} s"
