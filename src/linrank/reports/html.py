"""The frame of a page and its pieces. All text of strangers goes through `text`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from linrank.reports.caveats import Caveat
    from linrank.system.tables import Table

_COLOURS_LIGHT = """
  --paper: #fbfbfa; --card: #ffffff; --ink: #1d2126; --soft: #59626c; --line: #e2e4e7;
  --shade: #f3f4f5; --accent: #005a94; --for: #0072b2; --against: #c65300;
  --grave: #a12d12; --grave-shade: #fdf1ec; --note-shade: #f1f5f9;
  --shadow: #0000001f;
"""

_COLOURS_DARK = """
  --paper: #14171a; --card: #1b1f24; --ink: #e3e6ea; --soft: #9ba5b0; --line: #30363d;
  --shade: #22272d; --accent: #6cb4ea; --for: #56b4e9; --against: #f0883e;
  --grave: #ff9a7b; --grave-shade: #2d1d18; --note-shade: #1c232b;
  --shadow: #ffffff2b;
"""

# The colours of the pictures, by the names that displays give them.
_PICTURES = """
  --linrank-blue: var(--for); --linrank-orange: var(--against); --linrank-grey: var(--soft);
  --linrank-paper: var(--card); --under: var(--paper);
"""

_PAGE = """
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; text-size-adjust: 100%; scroll-behavior: smooth; }
body {
  margin: 0; background: var(--paper); color: var(--ink);
  font: 16px/1.6 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif;
  overflow-wrap: break-word;
}
main, header, footer { max-width: 66rem; margin: 0 auto; padding: 0 1.5rem; }
header { padding-top: 3rem; }
footer { padding-top: 1rem; padding-bottom: 3rem; color: var(--soft); font-size: .85rem; }
h1, h2, h3, h4 { line-height: 1.25; font-weight: 650; letter-spacing: -.01em; }
h1 { font-size: 2rem; margin: .1rem 0 .4rem; }
h2 { font-size: 1.4rem; margin: 0 0 .35rem; }
h3 { font-size: 1.05rem; margin: 1.75rem 0 .4rem; }
h4 { font-size: .95rem; margin: 1.25rem 0 .35rem; }
p { margin: .4rem 0 .8rem; max-width: 46rem; }
a { color: var(--accent); text-underline-offset: .15em; }
code, .mono { font: .92em ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; }
section { margin-top: 3.25rem; padding-top: 1.5rem; border-top: 1px solid var(--line); }
.kicker { color: var(--soft); font-size: .85rem; letter-spacing: .04em; margin: 0; }
.lede { color: var(--soft); margin-bottom: 1.1rem; }
.verdict { font-size: 1.15rem; line-height: 1.55; max-width: 52rem; margin: 1.2rem 0; }
.small { font-size: .87rem; color: var(--soft); }
sup { line-height: 0; }
strong, em, td, th { unicode-bidi: isolate; } /* names may be written from right to left */
.num { font-variant-numeric: tabular-nums; white-space: nowrap; }
nav { margin: 1.75rem 0 0; font-size: .92rem; }
nav ul {
  display: flex; flex-wrap: wrap; gap: .3rem 1.25rem; list-style: none; margin: 0; padding: 0;
}
nav a { text-decoration: none; }
nav a:hover, nav a:focus { text-decoration: underline; }
"""

_CARDS = """
.tiles {
  display: grid; grid-template-columns: repeat(auto-fit, minmax(13rem, 1fr)); gap: 1rem;
  margin: 1.25rem 0; padding: 0;
}
.tile {
  background: var(--card); border: 1px solid var(--line); border-radius: .6rem;
  padding: .9rem 1.1rem 1rem;
}
.tile dt { color: var(--soft); font-size: .85rem; }
.tile dd { margin: 0; }
.tile .value { font-size: 1.6rem; font-weight: 650; line-height: 1.35; letter-spacing: -.01em; }
.tile .detail { color: var(--soft); font-size: .85rem; line-height: 1.45; }
.notices { list-style: none; margin: 1.25rem 0; padding: 0; }
.notices li {
  background: var(--note-shade); border-left: 3px solid var(--accent); border-radius: .25rem;
  padding: .6rem .9rem; margin: .5rem 0; font-size: .94rem; line-height: 1.5;
}
.notices li.grave { background: var(--grave-shade); border-color: var(--grave); }
.notices li.grave strong { color: var(--grave); }
.notices code { color: var(--soft); }
.absent {
  border: 1px dashed var(--line); border-radius: .6rem; padding: .8rem 1.1rem; color: var(--soft);
  max-width: 52rem;
}
"""

_TABLES = """
/* A shadow at the side on which there is more to scroll to. */
.scroll {
  overflow-x: auto; margin: .9rem 0;
  background:
    linear-gradient(90deg, var(--under) 40%, transparent) left,
    linear-gradient(270deg, var(--under) 40%, transparent) right,
    linear-gradient(90deg, var(--shadow), transparent) left,
    linear-gradient(270deg, var(--shadow), transparent) right;
  background-size: 2.5rem 100%, 2.5rem 100%, .8rem 100%, .8rem 100%;
  background-repeat: no-repeat; background-attachment: local, local, scroll, scroll;
}
table { border-collapse: collapse; font-size: .92rem; font-variant-numeric: tabular-nums; }
caption { text-align: left; color: var(--soft); padding-bottom: .4rem; font-size: .87rem; }
th, td {
  padding: .38rem .9rem .38rem 0; border-bottom: 1px solid var(--line); vertical-align: top;
  text-align: left;
}
th { color: var(--soft); font-weight: 550; font-size: .85rem; vertical-align: bottom; }
td { white-space: nowrap; }
td.wide { white-space: normal; min-width: 9rem; }
.right { text-align: right; }
#data td { white-space: normal; overflow-wrap: anywhere; min-width: 6.5rem; }
thead td { border-bottom: 1px solid var(--line); }
tbody tr:last-child td { border-bottom: 0; }
tr.strong td { font-weight: 600; }
tr.gap td { color: var(--soft); text-align: center; font-size: .85rem; }
ul.notes {
  color: var(--soft); font-size: .85rem; padding-left: 1.1rem; margin: .3rem 0 1rem;
  max-width: 52rem;
}
.grade {
  display: inline-block; min-width: 1.7em; padding: 0 .4em; border-radius: .3em;
  text-align: center; background: var(--shade);
}
.grade.high { background: var(--for); color: var(--card); }
.bar {
  display: grid; grid-template-columns: 1fr 1fr; width: 11rem; height: .95em; margin-top: .32em;
}
.bar span { display: flex; height: 100%; }
.bar span:first-child { justify-content: flex-end; border-right: 1px solid var(--soft); }
.bar i { display: block; height: 100%; min-width: 1px; }
.bar .for { background: var(--for); border-radius: 0 .15rem .15rem 0; }
.bar .against { background: var(--against); border-radius: .15rem 0 0 .15rem; }
.key::before {
  content: ""; display: inline-block; width: .75em; height: .75em; border-radius: .15em;
  margin-right: .35em;
}
.key.for::before { background: var(--for); }
.key.against::before { background: var(--against); }
details {
  --under: var(--card); background: var(--card); border: 1px solid var(--line);
  border-radius: .6rem; margin: .7rem 0; padding: 0 1.1rem;
}
summary { cursor: pointer; padding: .75rem 0; font-weight: 550; }
summary .small { font-weight: 400; margin-left: .4rem; white-space: normal; }
details[open] > summary { border-bottom: 1px solid var(--line); margin-bottom: .6rem; }
"""

_FIGURES = """
.figures {
  display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 27rem), 1fr));
  gap: 1.25rem; align-items: start;
}
figure {
  margin: .9rem 0; background: var(--card); border: 1px solid var(--line); border-radius: .6rem;
  padding: .9rem 1rem; min-width: 0;
}
.figures > div { min-width: 0; }
.figures figure { margin: 0; }
figure svg { display: block; height: auto; max-width: 100%; margin: 0 auto; }
figure + p { margin-top: 1rem; font-size: .94rem; }
figcaption { color: var(--soft); font-size: .87rem; line-height: 1.45; margin-top: .6rem; }
"""

_NARROW = """
@media (max-width: 40rem) {
  body { font-size: 15.5px; }
  main, header, footer { padding-left: 1rem; padding-right: 1rem; }
  header { padding-top: 1.5rem; }
  h1 { font-size: 1.6rem; }
  h2 { font-size: 1.25rem; }
  section { margin-top: 2.25rem; }
  .verdict { font-size: 1.05rem; }
  .tiles { grid-template-columns: 1fr 1fr; gap: .6rem; }
  .tile { padding: .6rem .75rem .7rem; }
  .tile .value { font-size: 1.25rem; }
  details { padding: 0 .8rem; }
  figure { padding: .5rem; }
  .bar { width: 4rem; }
  th, td { padding-right: .6rem; }
  td.wide { min-width: 5.5rem; max-width: 9rem; overflow-wrap: anywhere; }
}
@media (prefers-reduced-motion: reduce) { html { scroll-behavior: auto; } }
"""

_PAPER = """
@media print {
  body { background: none; font-size: 10.5pt; }
  header { padding-top: 0; }
  nav { display: none; }
  section { margin-top: 1.5rem; }
  figure, .tile, tr { break-inside: avoid; }
  h2, h3, summary { break-after: avoid; }
  .scroll { overflow: visible; }
  td { white-space: normal; }
}
"""

STYLE = (
    ":root { color-scheme: light dark;"
    + _COLOURS_LIGHT
    + _PICTURES
    + "}\n@media screen and (prefers-color-scheme: dark) { :root {"
    + _COLOURS_DARK
    + "} }"
    + _PAGE
    + _CARDS
    + _TABLES
    + _FIGURES
    + _NARROW
    + _PAPER
)


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


def document(title: str, head: str, sections: Sequence[tuple[str, str, str]], foot: str) -> str:
    """The page: ``sections`` are (id, heading, HTML)."""
    entries = "".join(
        f'<li><a href="#{name}">{text(label)}</a></li>' for name, label, _ in sections
    )
    body = "\n".join(markup for _, _, markup in sections)
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


def section(name: str, heading: str, lede: str, *body: str) -> str:
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
    """A table of rows that are HTML already; ``headings`` are (text, class)."""
    head = "".join(
        f'<th scope="col" class="{kind}">{text(label)}</th>' if label else "<td></td>"
        for label, kind in headings
    )
    title = f"<caption>{text(caption)}</caption>" if caption else ""
    return (
        f"{_SCROLL}<table>{title}<thead><tr>{head}</tr></thead>\n"
        f"<tbody>{''.join(rows)}</tbody></table></div>"
    )


def bar(value: float, largest: float) -> str:
    """A bar to the right of the middle for a positive value, to the left for a negative one."""
    width = 100.0 * min(1.0, abs(value) / largest) if largest > 0 else 0.0
    piece = f'<i class="{"for" if value > 0 else "against"}" style="width:{width:.1f}%"></i>'
    left, right = ("", piece) if value > 0 else (piece, "")
    return f'<div class="bar" aria-hidden="true"><span>{left}</span><span>{right}</span></div>'


def figure(svg: str, caption: str) -> str:
    """A picture with a caption (HTML)."""
    return f"<figure>{svg}<figcaption>{caption}</figcaption></figure>"


def columns(*markup: str) -> str:
    """Pieces side by side where there is room."""
    shown = "".join(f"<div>{one}</div>" for one in markup if one)
    return f'<div class="figures">{shown}</div>' if shown else ""


def details(summary: str, body: str, *, is_open: bool = False) -> str:
    """A part that folds; ``summary`` is HTML."""
    return f"<details{' open' if is_open else ''}><summary>{summary}</summary>\n{body}\n</details>"
