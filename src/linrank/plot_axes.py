"""What all pictures share: their colours, and the axes that they are drawn on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes

__all__ = ["BLUE", "GREY", "GRID", "ORANGE", "axes_or_new", "finish", "new_panels"]

# From the palette of Okabe and Ito: told apart by every kind of colour vision, and in print.
BLUE, ORANGE, GREY = "#0072B2", "#D55E00", "#666666"
GRID = "#808080"


def axes_or_new(ax: Axes | None, height: float = 4.0) -> Axes:
    """The axes given, or those of a new figure."""
    if ax is not None:
        return ax
    try:
        from matplotlib import pyplot
    except ImportError:
        raise ImportError("plots need Matplotlib: pip install linrank[plot]") from None
    return pyplot.subplots(figsize=(6.5, height), layout="constrained")[1]


def new_panels(n_panels: int, *, share: bool = True) -> Sequence[Axes]:
    """Axes above each other, in a new figure, that share the horizontal one, or do not."""
    figure = axes_or_new(None, height=2.0 + 1.7 * n_panels).figure
    figure.clear()
    panels: Sequence[Axes] = list(figure.subplots(n_panels, 1, sharex=share))
    return panels


def finish(ax: Any, grid: str = "both") -> Axes:
    """Take away what says nothing, and add a faint grid."""
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(axis=grid, color=GRID, alpha=0.25)
    ax.set_axisbelow(True)
    result: Axes = ax
    return result
