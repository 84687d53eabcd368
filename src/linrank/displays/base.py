"""What all displays share: text and axes, drawn where it is asked for or as SVG for a page."""

from __future__ import annotations

import io
import re
import textwrap
import unicodedata
import warnings
from abc import ABC, abstractmethod
from bisect import bisect_right
from hashlib import sha256
from importlib import import_module
from itertools import accumulate, chain
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

from linrank.system.tables import text_width

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from xml.etree.ElementTree import Element

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from typing_extensions import Self


# From the palette of Okabe and Ito: told apart by every kind of color vision, and in print.
BLUE, ORANGE, GRAY = "#0072B2", "#D55E00", "#666666"
GRID = "#808080"


class Display(ABC):
    """A picture and its data, drawn as often as is asked for.

    Attributes
    ----------
    title : str
        What the picture is, in a few words.
    description : str
        What it shows, in words: the alternative for those who cannot see it.
    n_panels : int
        How many axes it is drawn on.
    ax_ : matplotlib Axes
        Where it was drawn last; of several panels, the first.
    axes_ : list of matplotlib Axes
        All panels.
    figure_ : matplotlib Figure
    """

    title: str
    description: str
    n_panels: int = 1
    ax_: Axes
    axes_: list[Axes]
    figure_: Figure
    _one_axis: bool = False  # whether the panels share the horizontal axis
    _height: float = 3.6  # inches of a figure of its own

    @abstractmethod
    def _draw(self, axes: Sequence[Any], style: dict[str, Any]) -> None:
        """Draw on as many axes as there are panels."""

    def plot(self, ax: Any = None, **style: Any) -> Self:
        """Draw the picture.

        Parameters
        ----------
        ax : matplotlib Axes or sequence of them, optional
            Where to draw, one for each panel. A new figure of ``matplotlib.pyplot`` when absent.
        **style
            Of the bars, lines or points, as Matplotlib takes it: ``color``, ``alpha``, ...

        Returns
        -------
        self
            With the attributes ``ax_``, ``axes_`` and ``figure_``.
        """
        if ax is None:
            figure = _matplotlib("pyplot").figure(figsize=(6.5, self._height), layout="constrained")
            axes = self._draw_on(figure, style)
        else:
            axes = self._check_axes(ax)
            self._draw(axes, style)
        self.ax_, self.axes_ = axes[0], axes
        self.figure_ = axes[0].figure  # type: ignore[assignment]
        return self

    def to_figure(self, *, width: float = 6.5, **style: Any) -> Figure:
        """Return a figure of its own, ``width`` inches wide, to be saved.

        Nothing of ``matplotlib.pyplot`` is touched; ``style`` is that of :meth:`plot`.
        """
        figure: Figure = _matplotlib("figure").Figure(
            figsize=(width, self._height), layout="constrained"
        )
        # Letters of another font may be a little wider than those that were measured.
        layout: Any = figure.get_layout_engine()
        layout.set(w_pad=0.09, h_pad=0.06)
        self._draw_on(figure, style)
        return figure

    def to_svg(
        self,
        *,
        width: float = 4.5,
        id_prefix: str | None = None,
        show_title: bool = True,
        **style: Any,
    ) -> str:
        """Return the picture as an ``<svg>`` element for a page, light or dark.

        Nothing of ``matplotlib.pyplot`` is touched, and settings of Matplotlib do not change it.

        Parameters
        ----------
        width : float, default=4.5
            Inches: 96 pixels each on a screen, where letters are 13 pixels high. On a phone, 340
            pixels wide, the whole picture shrinks, and they are 10.
        id_prefix : str, optional
            As in :func:`linrank.displays.themed_svg`.
        show_title : bool, default=True
            Whether to draw titles; a page with a caption needs none. :attr:`title` and
            :attr:`description` remain in the element for screen readers.
        **style
            As in :meth:`plot`.
        """
        with _matplotlib("style").context("default"):
            figure = self.to_figure(width=width, **style)
            if not show_title:
                figure.suptitle("").set_in_layout(False)  # nor the room that it takes
                for ax in figure.axes:
                    ax.set_title("")
            return themed_svg(figure, self.title, self.description, id_prefix=id_prefix)

    def _draw_on(self, figure: Figure, style: dict[str, Any]) -> list[Axes]:
        """The panels of a figure of our own, drawn."""
        axes = list(figure.subplots(self.n_panels, 1, sharex=self._one_axis, squeeze=False)[:, 0])
        self._draw(axes, style)
        if len(axes) == 1:
            _lift_title(axes[0])
        return axes

    def _check_axes(self, ax: Any) -> list[Axes]:
        axes = list(ax.flat) if hasattr(ax, "flat") else ax
        axes = list(axes) if isinstance(axes, (list, tuple)) else [axes]
        if len(axes) != self.n_panels:
            raise ValueError(f"ax has {len(axes)} axes for {self.n_panels} panels")
        return axes


def _matplotlib(module: str) -> Any:
    """A module of Matplotlib, which is imported when a picture is asked for."""
    try:
        import_module("matplotlib")
    except ImportError:
        raise ImportError("displays need Matplotlib: pip install matplotlib") from None
    return import_module(f"matplotlib.{module}")


def check_has(thing: Any, name: str, told: str) -> None:
    """Raise TypeError, saying what is needed, unless ``thing`` has the attribute."""
    if not hasattr(thing, name):
        raise TypeError(f"{told}, got {type(thing).__name__}")


# ---- text and axes ------------------------------------------------------------------------------


def finish(
    ax: Any,
    title: str = "",
    *,
    x: str | None = None,
    y: str | None = None,
    grid: str = "both",
    pad: float | None = None,
) -> None:
    """Name the axes and the picture, take away what says nothing, and add a faint grid.

    All names are literal, in lines that fit; those of ticks must be there before. ``pad`` are the
    points between the title and the axes.
    """
    width, height = ax.figure.get_size_inches()
    place = ax.get_position()
    if x is not None:
        # What the vertical axis takes beside the others: its ticks, its name, some air.
        ticks = [_ems(tick.get_text()) * tick.get_fontsize() for tick in ax.get_yticklabels()]
        _write(ax.set_xlabel(""), x, width - (max([45.0, *ticks]) + 25.0) / 72.0)
    if y is not None:
        _write(ax.set_ylabel(""), y, place.height * height)
    if title:
        _write(ax.set_title("", fontsize="medium", pad=pad), title, place.width * width)
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(axis=grid, color=GRID, alpha=0.25)
    ax.set_axisbelow(True)


_TURNS = frozenset("\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_RAISED = str.maketrans("0123456789-\u2212", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁻")
_LETTER = 0.62  # width of most lower-case letters and digits
_NARROW, _BROAD = frozenset("ijlI.,:;'|!()[] "), frozenset("mwMW@%…—")


def readable(name: object, most: int = 26) -> str:
    """A name as one line, as wide as ``most`` letters: the middle of a longer one is left out.

    Line breaks become spaces; what cannot be shown, or is no character of XML, becomes U+FFFD;
    marks that turn the direction of writing are dropped, for they would turn what follows too.
    """
    shown = "".join(_displayable(c) for c in str(name))
    flat = " ".join(shown.split()) or "(no name)"
    room = most * _LETTER
    if _ems(flat) <= room:
        return flat
    half = (room - _ems("…")) / 2
    return _prefix(flat, half).rstrip() + "…" + _prefix(flat[::-1], half)[::-1].lstrip()


def _displayable(c: str) -> str:
    if c.isspace():
        return " "
    if c in _TURNS:
        return ""
    return "\ufffd" if unicodedata.category(c) in ("Cc", "Cs", "Co", "Cn") else c


def _ems(text: str) -> float:
    """About how wide a text is, in its size; few fonts are wider than DejaVu Sans, Matplotlib's."""
    return sum(map(_em, text))


def _em(c: str) -> float:
    if c in _NARROW:
        return 0.4
    if c in _BROAD or text_width(c) == 2:
        return 1.0
    return 0.0 if unicodedata.combining(c) else 0.72 if c.isupper() else _LETTER


def _prefix(text: str, room: float) -> str:
    """The longest beginning of at most so many ems."""
    return text[: bisect_right(list(accumulate(map(_em, text))), room)]


def _lift_title(ax: Any) -> None:
    """Give the title of axes to their figure, which is wider: names of ticks narrow the axes."""
    title, figure = ax.title, ax.figure
    shown = figure.suptitle("", fontsize=title.get_fontsize())
    _write(shown, " ".join(title.get_text().split()), 0.97 * figure.get_figwidth())
    title.set_text("")


def _write(shown: Any, text: str, inches: float) -> None:
    """Write a text as it is: a name with dollar signs is no formula.

    In lines that are about as long as there is room; a word that is longer is broken.
    """
    shown.set_parse_math(False)
    shown.set_usetex(False)
    room = max(7.0, 72.0 * inches / shown.get_fontsize())
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    letter = max([_LETTER, *(_ems(line) / len(line) for line in lines)])
    shown.set_text("\n".join(textwrap.fill(line, max(1, int(room / letter))) for line in lines))


def name_rows(ax: Any, names: Sequence[object]) -> list[int]:
    """Write names beside the vertical axis from top to bottom, zero marked; return their places."""
    places = list(range(len(names) - 1, -1, -1))
    ax.set_yticks(places, [readable(name) for name in names], parse_math=False, usetex=False)
    ax.set_ylim(-0.6, len(names) - 0.4)
    ax.tick_params(axis="y", length=0)
    ax.locator_params(axis="x", nbins=5)
    ax.axvline(0, color=GRAY, linewidth=0.8)
    return places


def plain_powers(axis: Any) -> None:
    """Write the ticks of a logarithmic axis as ``10⁻³``: text that any font can show."""
    from matplotlib.ticker import LogFormatterSciNotation

    class PlainPowers(LogFormatterSciNotation):
        """The ticks that Matplotlib would label, without its markup."""

        def __call__(self, x: float, pos: int | None = None) -> str:
            return _without_markup(super().__call__(x, pos))

    axis.set_major_formatter(PlainPowers())
    axis.set_minor_formatter(PlainPowers(labelOnlyBase=False, minor_thresholds=(1.0, 0.4)))


def _without_markup(text: str) -> str:
    r"""``$\mathdefault{2\times10^{-3}}$`` as ``2×10⁻³``."""
    text = re.sub(r"\^\{([^}]*)\}", lambda m: m[1].translate(_RAISED), text)
    text = text.replace(r"\times", "×").replace(r"\mathdefault", "")
    return re.sub(r"[${}]", "", text)


# ---- SVG for a page -----------------------------------------------------------------------------

_SVG = "http://www.w3.org/2000/svg"
_HREF = "{http://www.w3.org/1999/xlink}href"

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
    root = ElementTree.fromstring(_matplotlib_svg(figure))
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
    _dress(root, title, description, prefix)
    return ElementTree.tostring(root, encoding="unicode")


def _matplotlib_svg(figure: Figure) -> str:
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
    element.text, element.tail = (
        t if t and t.strip() else None for t in (element.text, element.tail)
    )
    attributes = element.attrib
    if _HREF in attributes:
        attributes["href"] = attributes.pop(_HREF)
    for name in ("d", "x", "y", "transform", "width", "height"):
        if name in attributes:
            attributes[name] = _short(attributes[name])
    for name in ("style", "fill", "stroke"):
        if name in attributes:
            attributes[name] = _themed_style(attributes[name])
    if not attributes.get("style", "-"):
        del attributes["style"]


def _short(numbers: str) -> str:
    """A hundredth of a point is finer than any screen."""
    numbers = re.sub(
        r"-?\d+\.\d{3,}", lambda m: f"{float(m[0]):.2f}".rstrip("0").rstrip("."), numbers
    )
    return " ".join(numbers.split())


def _themed_style(style: str) -> str:
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
        kept = [child for child in parent if child.tag not in ("metadata", "style")]
        is_empty = [child.tag == "g" and not child.attrib for child in kept]
        parent[:] = chain(*(c if empty else (c,) for c, empty in zip(kept, is_empty, strict=True)))


def _dress(root: Element, title: str, description: str, prefix: str) -> None:
    """The attributes of the element itself, and what it is called."""
    box = root.attrib["viewBox"]
    _, _, width, height = map(float, box.split())
    root.attrib = {
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
    }
    for place, (tag, text) in enumerate((("title", title), ("desc", description))):
        element = ElementTree.Element(tag, {"id": f"{prefix}-{tag}"})
        element.text = "".join(c if c.isprintable() else " " for c in text)
        root.insert(place, element)
