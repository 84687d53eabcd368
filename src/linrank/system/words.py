"""Numbers in words, as messages have them."""

from __future__ import annotations


def count(number: int, thing: str, plural: str | None = None) -> str:
    """``count(1234, "row")`` is ``1,234 rows``."""
    return f"{number:,} {thing if number == 1 else plural or thing + 's'}"


def bytes_text(size: int) -> str:
    """A size in the unit that keeps it below a thousand."""
    value, units = float(size), ["B", "kB", "MB", "GB", "TB"]
    while value >= 999.5 and len(units) > 1:
        value /= 1000
        units.pop(0)
    return f"{value:.3g} {units[0]}"


def seconds(duration: float) -> str:
    """A duration with three digits: ``12.3 ms``, ``4.56 s``."""
    return f"{1000 * duration:.3g} ms" if duration < 1 else f"{duration:.3g} s"
