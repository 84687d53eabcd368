"""Pictures of fits against time or steps: a panel for each problem, a line for each method."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

# From the palette of Okabe and Ito, with line styles for more than seven.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#666666")
STYLES = ("-", "--", ":")

mpl.rcParams["svg.fonttype"] = "none"  # text as text: a quarter of the size

Line = Sequence[tuple[float, float]]  # (seconds or steps, value)


def draw(
    panels: Mapping[str, Mapping[str, Line]],
    *,
    n_columns: int,
    label: str,
    is_gap: bool,
    against: str = "seconds",
) -> Figure:
    """Lines by the name of their method, in panels by their title; gaps on a logarithmic scale."""
    n_lines = math.ceil(len(panels) / n_columns)
    figure = Figure(figsize=(3.6 * n_columns, 2.6 * n_lines + 0.4), layout="constrained")
    axes = figure.subplots(n_lines, n_columns, squeeze=False).ravel()
    names = list(dict.fromkeys(name for lines in panels.values() for name in lines))
    for ax, (title, lines) in zip(axes, panels.items(), strict=False):
        for name, line in lines.items():
            _draw_line(ax, line, names.index(name), name)
        ax.set(title=title, xlabel=against, ylabel=label, xscale="log")
        if is_gap:
            ax.set(yscale="log")
        ax.tick_params(labelsize=7)
    for ax in axes[len(panels) :]:
        ax.set_axis_off()
    handles = {h.get_label(): h for ax in axes for h in ax.get_legend_handles_labels()[0]}
    figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=6, fontsize=8)
    return figure


def _draw_line(ax: Any, line: Line, i: int, name: str) -> None:
    seconds, values = zip(*line, strict=True)
    style = STYLES[i // len(COLORS) % len(STYLES)]
    color = COLORS[i % len(COLORS)]
    ax.plot(seconds, values, style, color=color, marker=".", markersize=3, lw=1, label=name)


def thin(states: Sequence[Any], n_most: int = 40) -> list[Any]:
    """At most ``n_most`` states, denser at the beginning, with the first and the last."""
    n = len(states)
    if n <= n_most:
        return list(states)
    chosen = {round(math.expm1(t / (n_most - 1) * math.log(n))) for t in range(n_most)}
    return [states[i] for i in sorted(chosen)]
