"""The frame of a page and its pieces. All text of strangers goes through `text`."""

from __future__ import annotations

import importlib.util
import math
import re
from collections.abc import Sequence
from html import escape
from pathlib import Path
from string import Template
from typing import Any

from linrank.displays import Display
from linrank.judging.inspect import Finding
from linrank.system.tables import Markup, Table

# Nothing is loaded, run or sent: styles and pictures are in the page itself.
PAGE = Template(Path(__file__).with_name("page.html").read_text("utf-8"))
STYLE = Path(__file__).with_name("page.css").read_text("utf-8")

# Characters that no HTML may have, wherever they came from, and halves of surrogate pairs.
_FORBIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")


# Names that strangers give may be as long as a page; no word of a language is.
_WORD = re.compile(r"(\S{80})\S{40,}(\S{30})")
LONGEST = 2000


def clear(value: Any) -> str:
    """A value as plain text: control characters, which no browser shows, become visible, and the
    middle of very long words and texts is left out."""
    plain = str(value)
    if len(plain) > LONGEST:
        plain = f"{plain[: LONGEST // 2]}…{plain[-LONGEST // 4 :]}"
    shown = "".join(c if c.isprintable() or c in "\n\t " else f"\\x{ord(c):02x}" for c in plain)
    return _WORD.sub(r"\1…\2", shown)


def text(value: Any) -> str:
    """A value as text of HTML, attributes included, made `clear`."""
    return escape(clear(value))


def document(
    title: str, head: str, sections: Sequence[tuple[str, str, str, Sequence[str]]], foot: str
) -> str:
    """The page: ``sections`` are (id, entry of the contents, heading, a sentence and the rest)."""
    links = (f'<li><a href="#{name}">{text(label)}</a></li>' for name, label, _, _ in sections)
    body = "\n".join(_section(name, heading, *parts) for name, _, heading, parts in sections)
    named = {"title": text(title), "style": STYLE, "links": "".join(links)}
    page = PAGE.substitute(named, head=head, body=body, foot=foot)
    return _FORBIDDEN.sub("\ufffd", page)


def _section(name: str, heading: str, lede: str, *body: str) -> str:
    """A section with a heading and a sentence (HTML) that says what is seen."""
    return (
        f'<section id="{name}" aria-labelledby="{name}-heading">\n'
        f'<h2 id="{name}-heading">{text(heading)}</h2>\n<p class="lede">{lede}</p>\n'
        + "\n".join(part for part in body if part)
        + "\n</section>"
    )


def paragraph(markup: str, kind: str = "") -> str:
    """A paragraph of HTML."""
    return f'<p class="{kind}">{markup}</p>' if kind else f"<p>{markup}</p>"


def notices(caveats: Sequence[Finding]) -> str:
    """Caveats, the grave ones marked by a word as well as by color."""
    if not caveats:
        return ""
    begins = {True: '<li class="grave"><strong>Warning.</strong> ', False: "<li>"}
    items = (
        f"{begins[one.grave]}{text(one.message)} <code>[{text(one.code)}]</code></li>"
        for one in caveats
    )
    return f'<ul class="notices">{"".join(items)}</ul>'


def table(content: Table) -> str:
    """A table that scrolls in its own box; its notes stay outside."""
    markup, _, notes = content.to_html().partition("</table>")
    # What the keyboard can scroll has a name for those who hear the page.
    scroll = '<div class="scroll" tabindex="0" role="group" aria-label="table">'
    return f"{scroll}{markup}</table></div>{notes}"


def wide(name: Any) -> Markup:
    """A name in a cell, in several lines where it is long."""
    return Markup(f'<div class="wide">{text(name)}</div>')


def bar(value: float, largest: float) -> Markup:
    """A bar to the right of the middle for a positive value, to the left for a negative one."""
    width = 100.0 * min(1.0, abs(value) / largest) if largest > 0 else 0.0
    piece = f'<i class="{"for" if value > 0 else "against"}" style="width:{width:.1f}%"></i>'
    left, right = ("", piece) if value > 0 else (piece, "")
    spans = f"<span>{left}</span><span>{right}</span>"
    return Markup(f'<div class="bar" aria-hidden="true">{spans}</div>')


MISSING = paragraph(
    "No picture: they need Matplotlib, <code>pip install matplotlib</code>.", "absent"
)


def figure(display: Display | None, caption: str, width: float = 5.0) -> str:
    """A picture with a caption (HTML); nothing where there is none, or no Matplotlib."""
    if display is None or importlib.util.find_spec("matplotlib") is None:
        return ""
    picture = display.to_svg(width=width, show_title=False)  # the caption says it
    return f"<figure>{picture}<figcaption>{caption}</figcaption></figure>"


def columns(*markup: str) -> str:
    """Pieces side by side where there is room."""
    shown = "".join(f"<div>{one}</div>" for one in markup if one)
    return f'<div class="figures">{shown}</div>' if shown else ""


def beside(first: str, second: str) -> str:
    """A narrow piece and a wide one, side by side on a wide screen."""
    return f'<div class="beside"><div>{first}</div><div>{second}</div></div>'


def details(summary: str, body: str, *, is_open: bool = False) -> str:
    """A part that folds; ``summary`` is HTML."""
    return f"<details{' open' if is_open else ''}><summary>{summary}</summary>\n{body}\n</details>"


# ---- numbers as the page writes them ------------------------------------------------------------

ROUNDING = 1e-15  # shares below it are the rounding of the sums they come from


def value(number: float, sign: str = "") -> str:
    """A measure, or with ``sign="+"`` a difference: three digits, or a dash where undefined."""
    return "–" if math.isnan(number) else f"{number:{sign}.3f}".replace("-", "−")


def interval(low: float, high: float, sign: str = "") -> str:
    """``[0.692, 0.763]``; nothing where there is none, as of a single query."""
    if math.isnan(low) or math.isnan(high):
        return ""
    return f"[{value(low, sign)}, {value(high, sign)}]"


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
    return f"{share:.1f}%" if share < 10 else f"{share:.0f}%"


def typeset(rules: str) -> str:
    """The gain in the words of a convention, as mathematics has it."""
    return rules.replace("2^y - 1", "2ʸ − 1")


def short(number: float) -> str:
    """A value of a feature or a score: up to four digits that count."""
    shown = f"{number:,.0f}" if 1e4 <= abs(number) < 1e9 else f"{number:.4g}"
    return shown.replace("-", "−")


def push(number: float, largest: float | None = None) -> str:
    """A part of a difference of scores, with its sign.

    Three digits that count, or as many decimals as give them to the largest of the column; an
    exponent where no such number is readable.
    """
    size = abs(number) if largest is None else largest
    exponent = math.floor(math.log10(size)) if size > 0 else 0
    is_readable, n_decimals = -6 <= exponent < 9, max(0, 2 - exponent)
    shown = f"{number:+,.{n_decimals}f}" if is_readable else f"{number:+.2e}"
    return shown.replace("-", "−")
