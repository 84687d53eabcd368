"""Displays of queries: a measure by query, of one model or two; labels and sizes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from linrank import plots
from linrank.displays.base import Display
from linrank.plots.axes import counted, readable
from linrank.plots.query_plots import paired

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from numpy.typing import ArrayLike, NDArray


@dataclass(eq=False, repr=False)
class QueryScatterDisplay(Display):
    """A measure of two models, a point for each query: :func:`linrank.plots.query_scatter`.

    Parameters
    ----------
    values, against : arrays (n_queries,)
        The measure by query of the two models; NaN in either leaves the query out.
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
        name, values = measured(evaluation, metric)
        return cls(values, measured(against, name)[1], names, name, ids)

    def extremes(self, n: int = 3) -> list[tuple[Any, float, float]]:
        """The queries furthest from the diagonal: (id, value of the first, of the second)."""
        y, x = (np.ravel(np.asarray(a, dtype=np.float64)) for a in (self.values, self.against))
        known = np.flatnonzero(~(np.isnan(x) | np.isnan(y)))
        order = known[np.argsort(-np.abs(y[known] - x[known]), kind="stable")][:n]
        ids = np.arange(len(x)) if self.query_ids is None else np.ravel(np.asarray(self.query_ids))
        ids = ids.tolist()  # ids of text may be an array of objects
        return [(ids[q], float(y[q]), float(x[q])) for q in order.tolist()]

    @property
    def title(self) -> str:
        """What the picture is."""
        first, second = (readable(name, 40) for name in self.names)
        return f"{readable(self.metric, 40)} by query: {first} and {second}"

    @property
    def description(self) -> str:
        """How many queries each serves better, and where they differ most."""
        y, x = paired(self.values, self.against, self.metric)
        first, second = (readable(name, 40) for name in self.names)
        up, down = np.count_nonzero(y > x), np.count_nonzero(y < x)
        far = [f"{readable(q)} ({a:.3f} and {b:.3f})" for q, a, b in self.extremes()]
        return (
            f"Of {counted(len(x), 'query', 'queries')}, {first} has the higher value on {up:,}, "
            f"{second} on {down:,}. They differ most on query {', '.join(far)}."
        )

    @property
    def _height(self) -> float:
        return 4.7

    def _draw(self, axes: Sequence[Axes], style: dict[str, Any]) -> None:
        plots.query_scatter(
            self.values, self.against, names=self.names, metric=self.metric, ax=axes[0], **style
        )


@dataclass(eq=False, repr=False)
class QueryHistogramDisplay(Display):
    """How a measure is spread over queries: :func:`linrank.plots.query_histogram`.

    Parameters
    ----------
    values : array (n_queries,)
        The measure by query; NaN marks those that it leaves out.
    metric : str, default="ndcg@10"
        Its name.
    bins : int, default=20
        Number of bars.
    """

    values: ArrayLike
    metric: str = "ndcg@10"
    bins: int = 20

    @classmethod
    def from_evaluation(
        cls, evaluation: Any, metric: str | None = None, *, bins: int = 20
    ) -> QueryHistogramDisplay:
        """Display of a result of :func:`linrank.evaluate`; of its first measure by default."""
        name, values = measured(evaluation, metric)
        return cls(values, name, bins)

    @property
    def title(self) -> str:
        """What the picture is."""
        return f"{readable(self.metric, 40)} by query"

    @property
    def description(self) -> str:
        """Mean, quartiles, and the queries left out."""
        values = np.ravel(np.asarray(self.values, dtype=np.float64))
        known = values[~np.isnan(values)]
        low, median, high = np.quantile(known, (0.25, 0.5, 0.75))
        left_out = len(values) - len(known)
        also = f" {counted(left_out, 'query', 'queries')} left out." if left_out else ""
        return (
            f"{counted(len(known), 'query', 'queries')}: mean {known.mean():.4f}, median "
            f"{median:.4f}, half of them between {low:.4f} and {high:.4f}.{also}"
        )

    @property
    def _height(self) -> float:
        return 3.4

    def _draw(self, axes: Sequence[Axes], style: dict[str, Any]) -> None:
        plots.query_histogram(self.values, metric=self.metric, bins=self.bins, ax=axes[0], **style)


@dataclass(eq=False, repr=False)
class LabelsDisplay(Display):
    """Labels of the rows and sizes of the queries: :func:`linrank.plots.labels`.

    Parameters
    ----------
    values, counts : arrays (n_labels,)
        The distinct labels, ascending, and how many rows have each.
    sizes : array (n_queries,)
        Rows of each query.
    """

    values: ArrayLike
    counts: ArrayLike
    sizes: ArrayLike

    @classmethod
    def from_dataset(cls, data: Any) -> LabelsDisplay:
        """Display of a :class:`linrank.Dataset`."""
        values, counts = np.unique(data.labels, return_counts=True)
        return cls(values, counts, np.diff(data.queries.offsets))

    @property
    def n_panels(self) -> int:
        """Labels, and sizes."""
        return 2

    @property
    def title(self) -> str:
        """What the picture is."""
        return "Labels and sizes of queries"

    @property
    def description(self) -> str:
        """The range of both."""
        values, counts, sizes = (np.ravel(np.asarray(a)) for a in self._parts)
        return (
            f"{counted(int(counts.sum()), 'row')} with {counted(len(values), 'label')} from "
            f"{values.min():g} to {values.max():g}, in {counted(len(sizes), 'query', 'queries')} "
            f"of {sizes.min():,} to {sizes.max():,} rows, median {np.median(sizes):g}."
        )

    @property
    def _parts(self) -> tuple[ArrayLike, ArrayLike, ArrayLike]:
        return self.values, self.counts, self.sizes

    @property
    def _height(self) -> float:
        return 5.2

    def _draw(self, axes: Sequence[Axes], style: dict[str, Any]) -> None:
        plots.labels(*self._parts, axes=axes, **style)


def measured(evaluation: Any, metric: str | None) -> tuple[str, NDArray[Any]]:
    """The name of a measure and its values by query; any spelling that the evaluation knows."""
    per_query = evaluation.per_query
    if metric is None:
        metric = next(iter(per_query))
    if metric not in per_query:
        from linrank.metrics import parse

        metric = str(parse(metric))
    if metric not in per_query:
        raise ValueError(f"{metric!r} was not evaluated; there are {', '.join(per_query)}")
    return metric, per_query[metric]
