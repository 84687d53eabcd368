"""Numbers as the page writes them."""

from __future__ import annotations

import math

ROUNDING = 1e-15  # shares below it are the rounding of the sums they come from


def value(number: float) -> str:
    """A measure: four digits, or a dash for what is undefined."""
    return "–" if math.isnan(number) else f"{number:.4f}"


def signed(number: float) -> str:
    """A difference, with its sign."""
    return "–" if math.isnan(number) else f"{number:+.4f}".replace("-", "−")


def interval(low: float, high: float, *, difference: bool = False) -> str:
    """Both ends; a dash where there is none, as of a single query."""
    if math.isnan(low) or math.isnan(high):
        return "–"
    show = signed if difference else value
    return f"{show(low)} to {show(high)}"


def p_value(p: float) -> str:
    """``p = 0.013``, with two digits; nothing below 0.0001 is told apart."""
    if math.isnan(p):
        return "p undefined"
    if p < 1e-4:
        return "p < 0.0001"
    return f"p = {p:.2g}" if p < 0.0995 else f"p = {p:.2f}"


def power(number: float) -> str:
    """A tiny share as HTML: ``2.1 × 10⁻⁷``; never less than rounding lets anyone know."""
    number = max(number, ROUNDING)
    exponent = math.floor(math.log10(number))
    mantissa = number / 10.0**exponent
    if round(mantissa, 1) >= 10.0:
        mantissa, exponent = 1.0, exponent + 1
    sign = "−" if exponent < 0 else ""
    return f'<span class="num">{mantissa:.1f} × 10<sup>{sign}{abs(exponent)}</sup></span>'


def percent(part: float, whole: float) -> str:
    """A share, without decimals unless it is small."""
    if not whole:
        return "–"
    share = 100.0 * part / whole
    return f"{share:.1f} %" if share < 10 else f"{share:.0f} %"


def short(number: float) -> str:
    """A value of a feature or a score: up to four digits that count."""
    shown = f"{number:,.0f}" if 1e4 <= abs(number) < 1e9 else f"{number:.4g}"
    return shown.replace("-", "−")


def decimals(largest: float) -> int | None:
    """Digits after the point that give the largest of a column three that count.

    None where no such number is readable: then each value has an exponent.
    """
    if not largest > 0:
        return 2
    exponent = math.floor(math.log10(largest))
    return max(0, 2 - exponent) if -6 <= exponent < 9 else None


def push(number: float, largest: float | None = None) -> str:
    """A part of a difference of scores, with its sign.

    Three digits that count, or as many decimals as the largest of the column has.
    """
    digits = decimals(abs(number) if largest is None else largest)
    shown = f"{number:+.2e}" if digits is None else f"{number:+,.{digits}f}"
    return shown.replace("-", "−")
