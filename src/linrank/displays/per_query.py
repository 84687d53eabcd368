"""Displays of queries: a measure by query, of one model, two or many; labels and sizes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from linrank.displays.base import (
    BLUE,
    GRAY,
    ORANGE,
    Display,
    check_has,
    finish,
    name_rows,
    readable,
)
from linrank.metrics import parse
from linrank.system.resources import count

_MOST_POINTS = 1500  # drawn one by one; more are gathered into cells
_CELLS = 50  # of the gathered points, along each axis
_MOST_LABELS = 12  # that get a bar each


@dataclass(eq=False, repr=False)
class QueryScatterDisplay(Display):
    """A measure of two models, a point for each query, beside the line where they are equal.

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
        The name of the measure.
    query_ids : array (n_queries,), optional
        Of the queries, for `extremes`.
    """

    values: ArrayLike
    against: ArrayLike
    names: tuple[str, str] = ("model", "other model")
    metric: str = "ndcg@10"
    query_ids: ArrayLike | None = None
    _height = 4.7

    def __post_init__(self) -> None:
        y, x = (np.ravel(np.asarray(a, dtype=np.float64)) for a in (self.values, self.against))
        if len(x) != len(y):
            raise ValueError(
                f"values has {len(y)} queries, against {len(x)}; both models must be measured on "
                "the same queries, in the same order"
            )
        self._points, self._known = (x, y), np.flatnonzero(~np.isnan(x + y))  # known of both
        if not len(self._known):
            raise ValueError(
                f"{self.metric} is undefined for all {len(x)} queries of one model or the other"
            )
        x, y = x[self._known], y[self._known]
        first, second = (readable(name, 40) for name in self.names)
        self.title = f"{readable(self.metric, 40)} by query: {first} and {second}"
        self._higher = int(np.count_nonzero(y > x)), int(np.count_nonzero(y < x))
        far = [f"{readable(q)} ({a:.3f} and {b:.3f})" for q, a, b in self.extremes()]
        self.description = (
            f"Of {count(len(x), 'query', 'queries')}, {first} has the higher value on "
            f"{self._higher[0]:,}, {second} on {self._higher[1]:,}. They differ most on query "
            f"{', '.join(far)}."
        )

    @classmethod
    def from_evaluations(
        cls,
        evaluation: Any,
        against: Any,
        metric: str | None = None,
        *,
        names: tuple[str, str] = ("model", "other model"),
    ) -> QueryScatterDisplay:
        """Display of two results of :func:`linrank.evaluate` on the same queries.

        ``metric`` is one that both have; the first one when absent.
        """
        ids, other = evaluation.query_ids, against.query_ids
        if (ids is None) != (other is None) or (ids is not None and not np.array_equal(ids, other)):
            raise ValueError("the two evaluations are of different queries, or in another order")
        name, values = metric_values(evaluation, metric)
        return cls(values, metric_values(against, name)[1], names, name, ids)

    def extremes(self, n: int = 3) -> list[tuple[Any, float, float]]:
        """The queries furthest from the diagonal: (id, value of the first, of the second)."""
        (x, y), known = self._points, self._known
        order = known[np.argsort(-np.abs(y[known] - x[known]), kind="stable")][:n]
        ids = np.arange(len(x)) if self.query_ids is None else np.ravel(np.asarray(self.query_ids))
        ids = ids.tolist()  # ids of text may be an array of objects
        return [(ids[q], float(y[q]), float(x[q])) for q in order.tolist()]

    def _draw(self, axes: Sequence[Any], style: dict[str, Any]) -> None:
        (ax,), known = axes, self._known
        x, y = (values[known] for values in self._points)
        low, high = _range(np.concatenate((x, y)))
        ax.plot([low, high], [low, high], color=GRAY, linewidth=1, linestyle="--", zorder=3)
        px, py, areas = _circles(x, y, low, high)
        look = {"color": BLUE, "alpha": 0.65, "linewidths": 0, "clip_on": False, **style}
        for area in np.unique(areas):  # one after the other: a file then holds each circle once
            here = areas == area
            ax.scatter(px[here], py[here], s=area, **look)
        margin = 0.03 * (high - low)
        ends = (low - margin, high + margin)
        ax.set(xlim=ends, ylim=ends, aspect="equal")
        metric, (first, second) = readable(self.metric, 40), (readable(n, 22) for n in self.names)
        up, down = self._higher
        said = (
            f"{count(len(x), 'query', 'queries')}: {first} higher on {up:,}, {second} on "
            f"{down:,}, equal on {len(x) - up - down:,}{_left_out(self.values, known)}"
        )
        finish(ax, said, x=f"{metric} of {second}", y=f"{metric} of {first}")


@dataclass(eq=False, repr=False)
class QueryHistogramDisplay(Display):
    """How a measure is spread over queries, with its mean and median.

    Parameters
    ----------
    values : array (n_queries,)
        ``evaluation.per_query[metric]``; NaN marks queries that the measure leaves out.
    metric : str, default="ndcg@10"
        Its name.
    bins : int, default=20
        Number of bars between 0 and 1; between -1 and 1 if there are negative values, and over
        the range of the values if that is wider.
    is_flat : bool array (n_queries,), optional
        Queries with a single label, which no ranking can order: their part of a bar is gray.
    """

    values: ArrayLike
    metric: str = "ndcg@10"
    bins: int = 20
    is_flat: ArrayLike | None = None
    _height = 3.4

    def __post_init__(self) -> None:
        values = np.ravel(np.asarray(self.values, dtype=np.float64))
        is_known = ~np.isnan(values)
        self._known = known = values[is_known]
        if not len(known):
            raise ValueError(f"{self.metric} is undefined for all {len(values)} queries")
        self._flat = values[:0]  # the values of queries that no ranking can order
        if self.is_flat is not None:
            self._flat = values[np.ravel(np.asarray(self.is_flat, dtype=bool)) & is_known]
        self.title = f"{readable(self.metric, 40)} by query"
        low, median, high = np.quantile(known, (0.25, 0.5, 0.75))
        left_out = len(values) - len(known)
        also = f" {count(left_out, 'query', 'queries')} left out." if left_out else ""
        self.description = (
            f"{count(len(known), 'query', 'queries')}: mean {known.mean():.4f}, median "
            f"{median:.4f}, half of them between {low:.4f} and {high:.4f}.{also}"
        )

    @classmethod
    def from_evaluation(
        cls, evaluation: Any, metric: str | None = None, *, bins: int = 20
    ) -> QueryHistogramDisplay:
        """Display of a result of :func:`linrank.evaluate`; of its first measure by default."""
        name, values = metric_values(evaluation, metric)
        return cls(values, name, bins)

    def _draw(self, axes: Sequence[Any], style: dict[str, Any]) -> None:
        (ax,), known, metric = axes, self._known, readable(self.metric, 40)
        low, high = _range(known)
        look = {"color": BLUE, "rwidth": 0.92, **style}
        ax.hist(known, bins=self.bins, range=(low, high), **look)
        if len(self._flat):  # at the foot of the bars of all
            gray = {**look, "color": GRAY, "label": "of one label"}
            ax.hist(self._flat, bins=self.bins, range=(low, high), **gray)
        mean, median = known.mean(), np.median(known)
        ax.axvline(mean, color=ORANGE, linewidth=2, label=f"mean {mean:.3f}")
        ax.axvline(median, color=GRAY, linestyle="--", label=f"median {median:.3f}")
        ax.set(xlim=(low, high))
        ax.locator_params(axis="x", nbins=6)
        ax.locator_params(axis="y", integer=True)
        # Between title and axes, where no data can be below it.
        ax.legend(frameon=False, loc="lower right", bbox_to_anchor=(1, 1), ncols=3, borderpad=0)
        queries = count(len(known), "query", "queries")
        said = f"{metric} of {queries}{_left_out(self.values, known)}"
        finish(ax, said, x=metric, y="queries", pad=24)


@dataclass(eq=False, repr=False)
class LabelsDisplay(Display):
    """How many rows have each label, and how many rows the queries have.

    Parameters
    ----------
    values, counts : arrays (n_labels,)
        The distinct labels, ascending, and how many rows have each. More than twelve are drawn as
        a histogram.
    sizes : array (n_queries,)
        Rows of each query.
    """

    values: ArrayLike
    counts: ArrayLike
    sizes: ArrayLike
    title = "Labels and sizes of queries"
    n_panels = 2
    _height = 5.2

    def __post_init__(self) -> None:
        self._parts = [np.ravel(np.asarray(a)) for a in (self.values, self.counts, self.sizes)]
        values, counts, sizes = self._parts
        if len(values) != len(counts):
            raise ValueError(f"{len(counts)} counts for {len(values)} labels")
        if not len(values) or not len(sizes):
            numbers = f"{len(values)} labels and {len(sizes)} queries"
            raise ValueError(f"{numbers}: there is nothing to draw")
        self.description = (
            f"{count(int(counts.sum()), 'row')} with {count(len(values), 'label')} from "
            f"{values.min():g} to {values.max():g}, in {count(len(sizes), 'query', 'queries')} "
            f"of {sizes.min():,} to {sizes.max():,} rows, median {np.median(sizes):g}."
        )

    @classmethod
    def from_dataset(cls, data: Any) -> LabelsDisplay:
        """Display of a :class:`linrank.Dataset`."""
        values, counts = np.unique(data.labels, return_counts=True)
        return cls(values, counts, np.diff(data.queries.offsets))

    def _draw(self, axes: Sequence[Any], style: dict[str, Any]) -> None:
        values, counts, sizes = self._parts
        look, (ax, below), total = {"color": BLUE, **style}, axes, int(counts.sum())
        if len(values) <= _MOST_LABELS:
            bars = ax.bar(np.arange(len(values)), counts, **{"width": 0.8, **look})
            ax.set_xticks(np.arange(len(values)), [f"{value:g}" for value in values])
            shares = [_share(int(n), total) for n in counts]
            ax.bar_label(bars, labels=shares, padding=2, fontsize="small")
            ax.margins(y=0.15)
        else:
            ax.hist(values, weights=counts, bins=30, **{"rwidth": 0.92, **look})
        said = f"{count(len(values), 'label')} of {count(total, 'row')}"
        finish(ax, said, x="label", y="rows", grid="y")
        low, high = int(sizes.min()), int(sizes.max())
        step = max(1, -(-(high - low + 1) // 30))  # whole rows: no bar has more sizes than another
        edges = np.arange(low, high + step + 1, step) - 0.5
        below.hist(sizes, bins=edges.tolist(), **{"rwidth": 0.92, **look})
        if high - low < 4:
            below.set_xlim(low - 2.5, high + 2.5)  # else ticks would be fractions of a row
        below.locator_params(integer=True)
        told = f"{low:,} to {high:,} rows, median {np.median(sizes):g}"
        told = told if low < high else count(low, "row")
        said = f"{count(len(sizes), 'query', 'queries')} of {told}"
        finish(below, said, x="rows of a query", y="queries", grid="y")


@dataclass(eq=False, repr=False)
class ComparisonDisplay(Display):
    """The difference of each method from the baseline with its interval, the best at the top.

    A filled mark is a difference whose corrected p is below 1 - confidence.

    Parameters
    ----------
    comparison : Comparison
        What :func:`linrank.compare` returns.
    metric : str, optional
        Which measure; the first one when absent.
    """

    comparison: Any
    metric: str | None = None

    def __post_init__(self) -> None:
        told = "a ComparisonDisplay draws what linrank.compare returns"
        check_has(self.comparison, "cells", told)
        known = list(self.comparison.metrics)
        self.metric = known[0] if self.metric is None else self.metric
        if self.metric not in known:
            raise ValueError(f"{self.metric!r} was not compared; there are {', '.join(known)}")
        found, baseline = self.comparison, self.comparison.baseline
        self.title = f"{readable(self.metric, 40)}: difference from {readable(baseline, 40)}"
        self._is_higher_better = bool(found.higher_is_better(self.metric))
        # Methods and their cells, the best first, without the baseline and what has no value.
        rows = [(str(m), found.cells[m, self.metric]) for m in found.methods if m != baseline]
        rows = [row for row in rows if row[1].difference == row[1].difference]
        if not rows:
            raise ValueError(f"no method has a {self.metric} to compare with that of {baseline!r}")
        sign = -1.0 if self._is_higher_better else 1.0
        self._differences = sorted(rows, key=lambda row: sign * row[1].difference)
        self._height = 1.5 + 0.34 * max(2, len(rows))
        each = []
        for name, cell in self._differences:
            ends = f"({cell.difference_low:+.4f} to {cell.difference_high:+.4f})"
            each.append(f"{readable(name)} {cell.difference:+.4f} {ends}")
        self.description = f"{'; '.join(each)}."

    @classmethod
    def from_comparison(cls, comparison: Any, metric: str | None = None) -> ComparisonDisplay:
        """Display of one measure of a comparison."""
        return cls(comparison, metric)

    def _draw(self, axes: Sequence[Any], style: dict[str, Any]) -> None:
        (ax,), rows = axes, self._differences
        level = round(1.0 - self.comparison.confidence, 12)
        look = {"color": BLUE, "fmt": "o", "capsize": 3, "markersize": 6, **style}
        places = name_rows(ax, [name for name, _ in rows])
        for place, (_, cell) in zip(places, rows, strict=True):
            low, high = cell.difference_low, cell.difference_high
            ends = [[cell.difference - low], [high - cell.difference]]
            known = bool(np.isfinite(ends).all())
            drawn = ax.errorbar(cell.difference, place, xerr=ends if known else None, **look)
            if not cell.p_corrected < level:
                drawn[0].set_markerfacecolor("white")
        side = "right" if self._is_higher_better else "left"
        told = f"{readable(self.metric, 40)} less that of {readable(self.comparison.baseline, 22)}"
        said = f"Bars: {100 * (1 - level):g}% intervals. Filled marks: p below {level:.3g}"
        finish(ax, said, x=f"{told} ({side} is better)", grid="x")


def metric_values(evaluation: Any, metric: str | None) -> tuple[str, NDArray[Any]]:
    """The name of a measure and its values by query; any spelling that the evaluation knows."""
    per_query = evaluation.per_query
    name = next(iter(per_query)) if metric is None else metric
    name = name if name in per_query else str(parse(name))
    if name not in per_query:
        raise ValueError(f"{name!r} was not evaluated; there are {', '.join(per_query)}")
    return name, per_query[name]


def _circles(
    x: NDArray[Any], y: NDArray[Any], low: float, high: float
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Places and areas: of the distinct points or, where there are too many, of the cells.

    The area of a hundred queries is ten times that of one, up to a circle that would cover its
    neighbors: 22 points across, or a cell.
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
    if low >= -1 and high <= 1:
        return (0.0 if low >= 0 else -1.0), 1.0
    return min(low, 0.0), max(high, 0.0)


def _left_out(values: ArrayLike, known: NDArray[Any]) -> str:
    n_left = np.size(values) - len(known)
    return f", {n_left:,} left out" if n_left else ""


def _share(n: int, total: int) -> str:
    percent = 100.0 * n / total
    return f"{percent:.0f}%" if percent >= 0.95 or not n else f"{percent:.2g}%"
