"""What all displays share: drawn on axes that are given, on a new figure, or as SVG for a page."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from linrank.displays.axes import lift_title
from linrank.displays.svg import themed_svg

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from typing_extensions import Self


class Display(ABC):
    """A picture and its data, drawn as often as is asked for.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Where it was drawn last; of several panels, the first.
    axes_ : list of matplotlib Axes
        All panels.
    figure_ : matplotlib Figure
    """

    ax_: Axes
    axes_: list[Axes]
    figure_: Figure

    @property
    @abstractmethod
    def title(self) -> str:
        """What the picture is, in a few words."""

    @property
    @abstractmethod
    def description(self) -> str:
        """What it shows, in words: the alternative for those who cannot see it."""

    @property
    def n_panels(self) -> int:
        """How many axes it is drawn on."""
        return 1

    @property
    def _one_axis(self) -> bool:
        """Whether the panels share the horizontal axis."""
        return False

    @property
    def _height(self) -> float:
        """Inches of a figure of its own."""
        return 3.6

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

    def to_svg(self, *, width: float = 4.5, id_prefix: str | None = None, **style: Any) -> str:
        """Return the picture as an ``<svg>`` element for a page, light or dark.

        Nothing of ``matplotlib.pyplot`` is touched, and settings of Matplotlib do not change it.

        Parameters
        ----------
        width : float, default=4.5
            Inches: 96 pixels each on a screen, where letters are 13 pixels high. On a phone, 340
            pixels wide, the whole picture shrinks, and they are 10.
        id_prefix : str, optional
            As in :func:`linrank.displays.themed_svg`.
        **style
            As in :meth:`plot`.
        """
        with _matplotlib("style").context("default"):
            figure = self.to_figure(width=width, **style)
            return themed_svg(figure, self.title, self.description, id_prefix=id_prefix)

    def _drawn_on(self, figure: Figure, style: dict[str, Any]) -> list[Axes]:
        """The panels of a figure of our own, drawn."""
        axes = list(figure.subplots(self.n_panels, 1, sharex=self._one_axis, squeeze=False)[:, 0])
        self._draw(axes, style)
        if len(axes) == 1:
            lift_title(axes[0])
        return axes

    def _given(self, ax: Any) -> list[Axes]:
        axes = list(ax.flat) if hasattr(ax, "flat") else ax
        axes = list(axes) if isinstance(axes, (list, tuple)) else [axes]
        if len(axes) != self.n_panels:
            raise ValueError(f"ax has {len(axes)} axes for {self.n_panels} panels")
        return axes


def _matplotlib(module: str) -> Any:
    """A module of Matplotlib, which is imported when a picture is asked for."""
    from importlib import import_module

    try:
        import_module("matplotlib")
    except ImportError:
        raise ImportError("displays need Matplotlib: pip install linrank[plot]") from None
    return import_module(f"matplotlib.{module}")
