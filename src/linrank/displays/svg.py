"""Figures as SVG for a page: colors of the page, text as text, names that no other picture has."""

from __future__ import annotations

import io
import re
import warnings
from hashlib import sha256
from itertools import groupby
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

if TYPE_CHECKING:
    from collections.abc import Iterator
    from xml.etree.ElementTree import Element

    from matplotlib.figure import Figure

_SVG = "http://www.w3.org/2000/svg"
_HREF = "{http://www.w3.org/1999/xlink}href"

# From the palette of Okabe and Ito: told apart by every kind of color vision, and in print.
BLUE, ORANGE, GRAY = "#0072B2", "#D55E00", "#666666"
GRID = "#808080"

# What the drawing code paints with, and what a page makes of it. The defaults are told apart from
# white and from black by a contrast of 3 at least, so that a page need not define a variable.
_PAINTS = {
    "#000000": "currentColor",
    GRID.lower(): "var(--linrank-grid, #808080)",  # gray on both, and faint
    "#ffffff": "var(--linrank-paper, Canvas)",
    BLUE.lower(): f"var(--linrank-blue, {BLUE.lower()})",
    ORANGE.lower(): f"var(--linrank-orange, {ORANGE.lower()})",
    GRAY.lower(): "var(--linrank-gray, #767676)",
}

#: Rules for a page that shows these pictures: softer data colors where it is dark.
THEME_CSS = """\
:root { --linrank-blue: #0072b2; --linrank-orange: #d55e00; --linrank-gray: #666666; }
@media (prefers-color-scheme: dark) {
  :root { --linrank-blue: #56b4e9; --linrank-orange: #f0883e; --linrank-gray: #a0a0a0; }
}
"""


def themed_svg(
    figure: Figure, title: str, description: str, *, id_prefix: str | None = None
) -> str:
    """Return a figure as an ``<svg>`` element to be put into an HTML page.

    Text stays text in the font and the color of the page, and black lines take that color too,
    so that the picture can be read on light and on dark. Data colors are CSS variables:
    ``--linrank-blue``, ``--linrank-orange``, ``--linrank-gray``, and ``--linrank-paper`` behind
    hollow marks; ``linrank.displays.THEME_CSS`` has values for both. Without any they keep the
    colors of the figure. The element is as wide as the figure, or as the page if that is narrower.

    Parameters
    ----------
    figure : matplotlib Figure
        Not changed. Its background is left out.
    title, description : str
        What the picture is, and what it shows, for those who cannot see it.
    id_prefix : str, optional
        Begins every id in the picture; derived from its content when absent. Needed only to show
        the same picture twice on one page.

    Returns
    -------
    str
        Well-formed XML without header and without references to anything outside; equal figures
        give equal strings.
    """
    root = ElementTree.fromstring(_drawn(figure))
    for element in root.iter():
        _clean(element)
    digest = sha256((title + "\0" + description + "\0").encode("utf-8", "replace"))
    digest.update(ElementTree.tostring(root))
    prefix = id_prefix or f"lr{digest.hexdigest()[:10]}"
    if not re.fullmatch(r"[A-Za-z][\w-]*", prefix):
        raise ValueError(
            f"id_prefix must be a letter, then letters, digits, - or _; got {prefix!r}"
        )
    _rename(root, prefix)
    _flatten(root)
    _gather(root)
    _dress(root, title, description, prefix)
    return ElementTree.tostring(root, encoding="unicode")


def _drawn(figure: Figure) -> str:
    """The SVG of Matplotlib, with text as text."""
    import matplotlib

    buffer = io.StringIO()
    settings: Any = {"svg.fonttype": "none", "svg.hashsalt": "linrank"}
    with matplotlib.rc_context(settings), warnings.catch_warnings():
        # The browser has its own fonts: what Matplotlib's lacks may well be in them.
        warnings.filterwarnings("ignore", message="Glyph .* missing from", category=UserWarning)
        figure.savefig(buffer, format="svg", metadata={"Date": None}, transparent=True)
    return buffer.getvalue()


def _clean(element: Element) -> None:
    """Names without namespaces, short numbers, colors of the page."""
    element.tag = element.tag.removeprefix(f"{{{_SVG}}}")
    element.text, element.tail = (_trimmed(element.text), _trimmed(element.tail))
    attributes = element.attrib
    if _HREF in attributes:
        attributes["href"] = attributes.pop(_HREF)
    for name in ("d", "x", "y", "transform", "width", "height"):
        if name in attributes:
            attributes[name] = _short(attributes[name])
    for name in ("style", "fill", "stroke"):
        if name in attributes:
            attributes[name] = _painted(attributes[name])
    if not attributes.get("style", "-"):
        del attributes["style"]


def _trimmed(text: str | None) -> str | None:
    return text if text and text.strip() else None


def _short(numbers: str) -> str:
    """A hundredth of a point is finer than any screen."""
    numbers = re.sub(
        r"-?\d+\.\d{3,}", lambda m: f"{float(m[0]):.2f}".rstrip("0").rstrip("."), numbers
    )
    return " ".join(numbers.split())


def _painted(style: str) -> str:
    """Colors of the palette as those of the page; its font in place of Matplotlib's."""
    style = re.sub(r"#[0-9a-f]{6}\b", lambda m: _PAINTS.get(m[0], m[0]), style)
    kept = [part.strip() for part in style.split(";")]
    return "; ".join(part for part in kept if part and not part.startswith("font-family"))


def _references(element: Element) -> Iterator[tuple[str, str]]:
    """(attribute, id) of what an element refers to inside the picture."""
    for name, value in element.attrib.items():
        found = re.fullmatch(r"#(.+)" if name == "href" else r"url\(#(.+)\)", value)
        if found:
            yield name, found[1]


def _rename(root: Element, prefix: str) -> None:
    """Number the ids that something refers to, in order; drop the others."""
    used = {target for element in root.iter() for _, target in _references(element)}
    new: dict[str, str] = {}
    for element in root.iter():
        old = element.attrib.pop("id", None)
        if old in used:
            element.set("id", new.setdefault(old, f"{prefix}-{len(new) + 1}"))
    for element in root.iter():
        for name, target in list(_references(element)):
            element.set(name, element.attrib[name].replace(f"#{target}", f"#{new[target]}"))


def _flatten(root: Element) -> None:
    """Put the children of groups that say nothing in their place, from the inside out.

    The style of Matplotlib, which would be that of the whole page, is left out.
    """
    for parent in reversed(list(root.iter())):
        parent[:] = [
            one
            for child in parent
            if child.tag not in ("metadata", "style")
            for one in (child if child.tag == "g" and not child.attrib else (child,))
        ]


def _gather(root: Element) -> None:
    """Say the style of neighboring marks once, for their group: thousands of points have one."""
    for parent in list(root.iter()):
        children: list[Element] = []
        for style, marks in groupby(parent, lambda e: e.get("style") if e.tag == "use" else None):
            run = list(marks)
            if style is not None and len(run) >= 3:
                group = ElementTree.Element("g", {"style": style})
                for mark in run:
                    del mark.attrib["style"]
                group.extend(run)
                run = [group]
            children += run
        parent[:] = children


def _dress(root: Element, title: str, description: str, prefix: str) -> None:
    """The attributes of the element itself, and what it is called."""
    _, _, width, height = (float(x) for x in root.attrib["viewBox"].split())
    box = root.attrib["viewBox"]
    root.attrib.clear()
    for name, value in {
        "xmlns": _SVG,
        "class": "linrank-picture",
        "role": "img",
        "aria-labelledby": f"{prefix}-title {prefix}-desc",
        "viewBox": box,
        "width": f"{width * 4 / 3:.0f}",  # points in pixels of CSS
        "height": f"{height * 4 / 3:.0f}",
        "style": "max-width: 100%; height: auto",
        "font-family": "system-ui, sans-serif",
        "fill": "currentColor",
        "stroke-linejoin": "round",
    }.items():
        root.set(name, value)
    for place, (tag, text) in enumerate((("title", title), ("desc", description))):
        element = ElementTree.Element(tag, {"id": f"{prefix}-{tag}"})
        element.text = "".join(c if c.isprintable() else " " for c in text)
        root.insert(place, element)
