"""Numbers in words and digits, the same everywhere on a page."""

from __future__ import annotations

import math

__all__ = ["count", "interval", "p_value", "percent", "short", "signed", "value"]


def value(number: float) -> str:
    """A measure: four digits, or a dash for what is undefined."""
    return "–" if math.isnan(number) else f"{number:.4f}"


def signed(number: float) -> str:
    """A difference, with its sign."""
    return "–" if math.isnan(number) else f"{number:+.4f}".replace("-", "−")


def interval(low: float, high: float, *, difference: bool = False) -> str:
    """Both ends."""
    show = signed if difference else value
    return f"{show(low)} to {show(high)}"


def p_value(p: float) -> str:
    """``p = 0.013``, with two digits; nothing below 0.0001 is told apart."""
    if math.isnan(p):
        return "p undefined"
    if p < 1e-4:
        return "p < 0.0001"
    return f"p = {p:.2g}" if p < 0.0995 else f"p = {p:.2f}"


def count(number: int, thing: str, plural: str | None = None) -> str:
    """``count(1234, "row")`` is ``1,234 rows``."""
    return f"{number:,} {thing if number == 1 else plural or thing + 's'}"


def percent(part: float, whole: float) -> str:
    """A share, without decimals unless it is small."""
    if not whole:
        return "–"
    share = 100.0 * part / whole
    return f"{share:.1f} %" if share < 10 else f"{share:.0f} %"


def short(number: float) -> str:
    """A value of a feature or a score: up to four digits that count."""
    return f"{number:.4g}".replace("-", "−")
