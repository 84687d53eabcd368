"""What all displays share: text and axes, drawn where it is asked for or as SVG for a page."""

from __future__ import annotations

import re
import unicodedata
from abc import ABC, abstractmethod
from bisect import bisect_right
from importlib import import_module
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from linrank.displays.svg import GRAY, GRID, themed_svg
from linrank.system.tables import text_width

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from typing_extensions import Self


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
            axes = self._drawn_on(figure, style)
        else:
            axes = self._given(ax)
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
        self._drawn_on(figure, style)
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

    def _drawn_on(self, figure: Figure, style: dict[str, Any]) -> list[Axes]:
        """The panels of a figure of our own, drawn."""
        axes = list(figure.subplots(self.n_panels, 1, sharex=self._one_axis, squeeze=False)[:, 0])
        self._draw(axes, style)
        if len(axes) == 1:
            _lift_title(axes[0])
        return axes

    def _given(self, ax: Any) -> list[Axes]:
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
    shown = "".join(_shown(c) for c in str(name))
    flat = " ".join(shown.split()) or "(no name)"
    room = most * _LETTER
    if _ems(flat) <= room:
        return flat
    half = (room - _ems("…")) / 2
    return _cut(flat, half).rstrip() + "…" + _cut(flat[::-1], half)[::-1].lstrip()


def _shown(c: str) -> str:
    if c.isspace():
        return " "
    if c in _TURNS:
        return ""
    return "\ufffd" if unicodedata.category(c) in ("Cc", "Cs", "Co", "Cn") else c


def _ems(text: str) -> float:
    """About how wide a text is, in its size; few fonts are wider than DejaVu Sans, Matplotlib's."""
    return sum(_em(c) for c in text)


def _em(c: str) -> float:
    if c in _NARROW:
        return 0.4
    if c in _BROAD or text_width(c) == 2:
        return 1.0
    return 0.0 if unicodedata.combining(c) else 0.72 if c.isupper() else _LETTER


def _cut(text: str, room: float) -> str:
    """The longest beginning of at most so many ems."""
    kept = list(accumulate(map(_em, text)))
    return text[: bisect_right(kept, room)]


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
    lines: list[str] = []
    for paragraph in text.splitlines():
        line = ""
        for word in paragraph.split():
            longer = f"{line} {word}" if line else word
            if _ems(longer) <= room:
                line = longer
                continue
            lines += [line] if line else []
            while _ems(word) > room:
                lines.append(_cut(word, room))
                word = word[len(lines[-1]) :]
            line = word
        lines += [line] if line else []
    shown.set_text("\n".join(lines))


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
