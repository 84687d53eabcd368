"""The frame of a page and its pieces. All text of strangers goes through `text`."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from linrank.displays import Display
    from linrank.reports.caveats import Caveat
    from linrank.system.tables import Table

STYLE = Path(__file__).with_name("page.css").read_text("utf-8")

# Nothing is loaded, run or sent: styles and pictures are in the page itself.
POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; "
    "form-action 'none'"
)


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
    entries = "".join(
        f'<li><a href="#{name}">{text(label)}</a></li>' for name, label, _, _ in sections
    )
    body = "\n".join(_section(name, heading, *parts) for name, _, heading, parts in sections)
    page = f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{POLICY}">
<meta name="referrer" content="no-referrer">
<meta name="color-scheme" content="light dark">
<link rel="icon" href="data:,">
<title>{text(title)}</title>
<style>{STYLE}</style>
</head>
<body>
<header>
{head}
<nav aria-label="Contents"><ul>{entries}</ul></nav>
</header>
<main>
{body}
</main>
<footer>{foot}</footer>
</body>
</html>
"""
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


def absent(markup: str) -> str:
    """What is not here, and how to get it."""
    return f'<p class="absent">{markup}</p>'


def tiles(entries: Iterable[tuple[str, str, str]]) -> str:
    """Key figures: (what, value, detail), all HTML."""
    cards = "".join(
        f'<div class="tile"><dt>{what}</dt><dd class="value num">{value}</dd>'
        f'<dd class="detail">{detail}</dd></div>\n'
        for what, value, detail in entries
    )
    return f'<dl class="tiles">\n{cards}</dl>'


def notices(caveats: Sequence[Caveat]) -> str:
    """Caveats, the grave ones marked by a word as well as by colour."""
    if not caveats:
        return ""
    items = "".join(
        f'<li class="grave"><strong>Warning.</strong> {text(caveat.message)} '
        f"<code>[{text(caveat.code)}]</code></li>"
        if caveat.grave
        else f"<li>{text(caveat.message)} <code>[{text(caveat.code)}]</code></li>"
        for caveat in caveats
    )
    return f'<ul class="notices">{items}</ul>'


# What the keyboard can scroll has a name for those who hear the page.
_SCROLL = '<div class="scroll" tabindex="0" role="group" aria-label="table">'


def table(content: Table) -> str:
    """A table that scrolls in its own box; its notes stay outside."""
    markup, _, notes = content.to_html().partition("</table>")
    return f"{_SCROLL}{markup}</table></div>{notes}"


def rows_table(headings: Sequence[tuple[str, str]], rows: Iterable[str], caption: str = "") -> str:
    """A table of rows that `row` made; ``headings`` are (class, text)."""
    head = "".join(
        f'<th scope="col" class="{kind}">{text(label)}</th>' if label else "<td></td>"
        for kind, label in headings
    )
    title = f"<caption>{text(caption)}</caption>" if caption else ""
    return (
        f"{_SCROLL}<table>{title}<thead><tr>{head}</tr></thead>\n"
        f"<tbody>{''.join(rows)}</tbody></table></div>"
    )


def row(*cells: tuple[str, str]) -> str:
    """A row of a table: (class, HTML) of each cell."""
    shown = (
        f'<td class="{kind}">{markup}</td>' if kind else f"<td>{markup}</td>"
        for kind, markup in cells
    )
    return f"<tr>{''.join(shown)}</tr>"


def bar(value: float, largest: float) -> str:
    """A bar to the right of the middle for a positive value, to the left for a negative one."""
    width = 100.0 * min(1.0, abs(value) / largest) if largest > 0 else 0.0
    piece = f'<i class="{"for" if value > 0 else "against"}" style="width:{width:.1f}%"></i>'
    left, right = ("", piece) if value > 0 else (piece, "")
    return f'<div class="bar" aria-hidden="true"><span>{left}</span><span>{right}</span></div>'


MISSING = absent("No picture: they need Matplotlib, <code>pip install linrank[plot]</code>.")


def figure(display: Display | None, caption: str, width: float = 5.0) -> str:
    """A picture with a caption (HTML); nothing where there is none, or no Matplotlib."""
    if display is None or importlib.util.find_spec("matplotlib") is None:
        return ""
    return f"<figure>{display.to_svg(width=width)}<figcaption>{caption}</figcaption></figure>"


def columns(*markup: str) -> str:
    """Pieces side by side where there is room."""
    shown = "".join(f"<div>{one}</div>" for one in markup if one)
    return f'<div class="figures">{shown}</div>' if shown else ""


def details(summary: str, body: str, *, is_open: bool = False) -> str:
    """A part that folds; ``summary`` is HTML."""
    return f"<details{' open' if is_open else ''}><summary>{summary}</summary>\n{body}\n</details>"
