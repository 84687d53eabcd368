"""Pictures of queries: a measure by query, of one model or two; their labels and sizes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from linrank.plots.axes import (
    BLUE,
    GREY,
    ORANGE,
    axes_or_new,
    counted,
    finish,
    label,
    new_panels,
    readable,
    titled,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from numpy.typing import ArrayLike, NDArray

_MOST_POINTS = 1500  # drawn one by one; more are gathered into cells
_CELLS = 50  # of the gathered points, along each axis
_MOST_LABELS = 12  # that get a bar each


def query_histogram(
    values: ArrayLike,
    *,
    metric: str = "ndcg@10",
    bins: int = 20,
    ax: Axes | None = None,
    **style: Any,
) -> Axes:
    """Draw how a metric is spread over queries.

    Parameters
    ----------
    values : array (n_queries,)
        ``evaluation.per_query[metric]``; NaN marks queries that the metric leaves out.
    metric : str, default="ndcg@10"
        The name on the axis.
    bins : int, default=20
        Number of bars between 0 and 1; between -1 and 1 if there are negative values, and over
        the range of the values if that is wider.
    ax : matplotlib Axes, optional
        Where to draw; a new figure when absent.
    **style
        Of the bars, as ``Axes.hist`` takes it.

    Returns
    -------
    matplotlib Axes
    """
    values = np.ravel(np.asarray(values, dtype=np.float64))
    known = values[~np.isnan(values)]
    metric = readable(metric, 40)
    if not len(known):
        raise ValueError(f"{metric} is undefined for all {len(values)} queries")
    ax = axes_or_new(ax)
    low, high = _range(known)
    edges = np.linspace(low, high, bins + 1).tolist()
    ax.hist(known, bins=edges, **{"color": BLUE, "rwidth": 0.92, **style})
    mean, median = known.mean(), np.median(known)
    ax.axvline(mean, color=ORANGE, linewidth=2, label=f"mean {mean:.4f}")
    ax.axvline(median, color=GREY, linestyle="--", label=f"median {median:.4f}")
    ax.set(xlim=(low, high))
    ax.locator_params(axis="x", nbins=6)
    _whole_numbers(ax.yaxis)
    label(ax, x=metric, y="queries")
    left_out = f", {len(values) - len(known):,} left out" if len(known) < len(values) else ""
    titled(ax, f"{metric} of {counted(len(known), 'query', 'queries')}{left_out}", pad=24)
    _legend_above(ax)
    return finish(ax)


def query_scatter(
    values: ArrayLike,
    against: ArrayLike,
    *,
    names: tuple[str, str] = ("model", "other model"),
    metric: str = "ndcg@10",
    ax: Axes | None = None,
    **style: Any,
) -> Axes:
    """Draw a metric of two models, a point for each query, beside the line where they are equal.

    Queries at the same place share a point whose area grows with their number. Where there are
    more than 1,500 places, those of a cell of 1/50 of each axis share one.

    Parameters
    ----------
    values, against : arrays (n_queries,)
        ``per_query[metric]`` of the two models, upwards and to the right; NaN in either leaves the
        query out.
    names : (str, str)
        Of the two models, that of ``values`` first.
    metric : str, default="ndcg@10"
        The name on the axes.
    ax : matplotlib Axes, optional
        Where to draw; a new figure when absent.
    **style
        Of the points, as ``Axes.scatter`` takes it.

    Returns
    -------
    matplotlib Axes
    """
    y, x = paired(values, against, metric)
    n_all = len(np.ravel(np.asarray(values)))
    metric, (first, second) = readable(metric, 40), (readable(name, 22) for name in names)
    ax = axes_or_new(ax, height=5.2)
    low, high = _range(np.concatenate((x, y)))
    px, py, areas = _circles(x, y, low, high)
    shown = {"color": BLUE, "alpha": 0.65, "linewidths": 0, "clip_on": False, **style}
    ax.plot([low, high], [low, high], color=GREY, linewidth=1, linestyle="--", zorder=3)
    for area in np.unique(areas):  # one after the other: a file then holds each circle once
        here = areas == area
        ax.scatter(px[here], py[here], s=area, **shown)
    margin = 0.03 * (high - low)
    ax.set(xlim=(low - margin, high + margin), ylim=(low - margin, high + margin), aspect="equal")
    label(ax, x=f"{metric} of {second}", y=f"{metric} of {first}")
    up, down = int(np.count_nonzero(y > x)), int(np.count_nonzero(y < x))
    left_out = f", {n_all - len(x):,} left out" if len(x) < n_all else ""
    titled(
        ax,
        f"{counted(len(x), 'query', 'queries')}: {first} higher on {up:,}, {second} on {down:,}, "
        f"equal on {len(x) - up - down:,}{left_out}",
    )
    return finish(ax)


def labels(
    values: ArrayLike,
    counts: ArrayLike,
    sizes: ArrayLike,
    *,
    axes: Sequence[Axes] | None = None,
    **style: Any,
) -> Sequence[Axes]:
    """Draw how many rows have each label, and how many rows the queries have.

    Parameters
    ----------
    values, counts : arrays (n_labels,)
        The distinct labels, ascending, and the rows with each. More than twelve are drawn as a
        histogram.
    sizes : array (n_queries,)
        Rows of each query.
    axes : two matplotlib Axes, optional
        Where to draw; a new figure when absent.
    **style
        Of the bars, as ``Axes.bar`` takes it.

    Returns
    -------
    sequence of matplotlib Axes
    """
    values, counts, sizes = (np.ravel(np.asarray(a)) for a in (values, counts, sizes))
    if len(values) != len(counts):
        raise ValueError(f"{len(counts)} counts for {len(values)} labels")
    if not len(values) or not len(sizes):
        raise ValueError(f"{len(values)} labels and {len(sizes)} queries: there is nothing to draw")
    axes = new_panels(2, share=False) if axes is None else axes
    if len(axes) != 2:
        raise ValueError(f"axes has {len(axes)} elements for 2 panels")
    look = {"color": BLUE, **style}
    _draw_labels(axes[0], values, counts, look)
    _draw_sizes(axes[1], sizes, look)
    return axes


def paired(
    values: ArrayLike, against: ArrayLike, metric: str
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Both arrays without the queries that are NaN in one of them."""
    y, x = (np.ravel(np.asarray(a, dtype=np.float64)) for a in (values, against))
    if len(x) != len(y):
        raise ValueError(
            f"values has {len(y)} queries, against {len(x)}; both models must be measured on the "
            "same queries, in the same order"
        )
    known = ~(np.isnan(x) | np.isnan(y))
    if not known.any():
        raise ValueError(
            f"{metric} is undefined for all {len(x)} queries of one model or the other"
        )
    return y[known], x[known]


def _circles(
    x: NDArray[Any], y: NDArray[Any], low: float, high: float
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Places and areas: of the distinct points or, where there are too many, of the cells.

    The area of a hundred queries is ten times that of one, up to a circle that would cover its
    neighbours: 22 points across, or a cell.
    """
    points = np.stack((x, y), axis=1)
    places, n = np.unique(points, axis=0, return_counts=True)
    areas, largest = 22.0 * np.sqrt(n), 500.0
    if len(places) > _MOST_POINTS:
        cell = np.minimum((points - low) / (high - low) * _CELLS, _CELLS - 1).astype(np.int64)
        cells, n = np.unique(cell, axis=0, return_counts=True)
        places = low + (cells + 0.5) * (high - low) / _CELLS
        areas, largest = 18.0 * np.sqrt(n / np.quantile(n, 0.95)), 18.0
    return places[:, 0], places[:, 1], np.round(np.clip(areas, 2.0, largest), 1)


def _range(known: NDArray[Any]) -> tuple[float, float]:
    """[0, 1] or [-1, 1] where it holds the values: pictures of one measure can be compared."""
    low, high = float(known.min()), float(known.max())
    if low >= 0 and high <= 1:
        return 0.0, 1.0
    if low >= -1 and high <= 1:
        return -1.0, 1.0
    return min(low, 0.0), max(high, 0.0)


def _draw_labels(ax: Any, values: NDArray[Any], counts: NDArray[Any], look: dict[str, Any]) -> None:
    total = int(counts.sum())
    if len(values) <= _MOST_LABELS:
        bars = ax.bar(np.arange(len(values)), counts, **{"width": 0.8, **look})
        ax.set_xticks(np.arange(len(values)), [f"{value:g}" for value in values])
        shares = [_share(int(count), total) for count in counts]
        ax.bar_label(bars, labels=shares, padding=2, fontsize="small")
        ax.margins(y=0.15)
    else:
        ax.hist(values, weights=counts, bins=30, **{"rwidth": 0.92, **look})
    label(ax, x="label", y="rows")
    titled(ax, f"{counted(len(values), 'label')} of {counted(total, 'row')}")
    finish(ax, grid="y")


def _draw_sizes(ax: Any, sizes: NDArray[Any], look: dict[str, Any]) -> None:
    low, high = int(sizes.min()), int(sizes.max())
    step = max(1, -(-(high - low + 1) // 30))  # whole rows: no bar has more sizes than another
    edges = np.arange(low, high + step + 1, step) - 0.5
    ax.hist(sizes, bins=edges.tolist(), **{"rwidth": 0.92, **look})
    if high - low < 4:
        ax.set_xlim(low - 2.5, high + 2.5)  # else ticks would be fractions of a row
    _whole_numbers(ax.xaxis)
    _whole_numbers(ax.yaxis)
    label(ax, x="rows of a query", y="queries")
    told = f"{low:,} to {high:,} rows, median {np.median(sizes):g}"
    told = told if low < high else counted(low, "row")
    titled(ax, f"{counted(len(sizes), 'query', 'queries')} of {told}")
    finish(ax, grid="y")


def _whole_numbers(axis: Any) -> None:
    axis.get_major_locator().set_params(integer=True)


def _share(count: int, total: int) -> str:
    percent = 100.0 * count / total
    return f"{percent:.0f} %" if percent >= 0.95 or not count else f"{percent:.2g} %"


def _legend_above(ax: Any) -> None:
    """Between title and axes, where no data can be below it."""
    ax.legend(frameon=False, loc="lower right", bbox_to_anchor=(1, 1), ncols=2, borderpad=0)
