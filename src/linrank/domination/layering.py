"""Layering: which rows of a query are to dominate which others, by how much and how heavily."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from linrank import _core
from linrank.choices import LAYERS
from linrank.data import Array, Dataset, Queries, as_array, first_true
from linrank.errors import NoPairsError
from linrank.pairs import Pairs, layer_numbers, no_pairs_message
from linrank.ranksvm.train import sample_queries
from linrank.system.resources import PickledFields, cached_property

_LARGEST = 1e250
FUNCTIONS = ("log", "linear")  # of the label, k1·log(y) + k2 and k1·y + k2
_FORMS = (
    "None, a number, 'log' or 'linear', ('log', k1, k2), ('linear', k1, k2), a function of the "
    "labels, one number for each row, or a square table over the layers"
)


def margin_form(margin: Any) -> str | None:
    """What a margin is: "named", "function", "number", "table" over layers, "rows" or None."""
    if margin is None or callable(margin):
        return None if margin is None else "function"
    head = margin[0] if isinstance(margin, tuple | list) and margin else margin
    return "named" if isinstance(head, str) else ("number", "rows", "table")[_as_array(margin).ndim]


def margin_shift(margin: Any, labels: Array, queries: Queries) -> Array | None:
    """The separable margins s of the rows, by position; None if they are all zero.

    Parameters
    ----------
    margin : None, float, str, tuple, callable or array
        As in `linrank.domination.layering.Layering.of`, a table excepted.
    labels : float64 array
        By row.
    queries : Queries
        Its levels are the layers.
    """
    form = margin_form(margin)
    if form is None:
        return None
    if form == "named":
        shift = _of_labels(*_parse_named(margin), labels, queries)
    elif form == "number":
        if not np.isfinite(margin):
            raise ValueError(f"margin must be finite, got {float(margin)}")
        with np.errstate(over="ignore"):
            shift = float(margin) * queries.levels
    elif form == "function":
        shift = queries.gather(_per_row(margin(labels.copy()), labels, "margin(labels)"))
    else:
        shift = queries.gather(_per_row(_as_array(margin), labels, "margin"))
    _check_size(shift)
    return np.ascontiguousarray(shift, dtype=np.float64) if shift.any() else None


def margin_table(margin: Any, layers: Array) -> Array:
    """``Δ[a, b]`` below the diagonal, zeros elsewhere: no layer is above itself or a higher one.

    Parameters
    ----------
    margin : array (K, K)
        What layer a must have over layer b.
    layers : float64 array (K,)
        The layers of all queries, ascending.
    """
    table, n = _as_array(margin), len(layers)
    if table.shape != (n, n):
        shown = ", ".join(f"{layer:g}" for layer in layers[:10]) + (", ..." if n > 10 else "")
        raise ValueError(
            f"margin is a table of shape {table.shape}, but the data have {n} layers ({shown}); "
            f"give one row and one column for each layer, ascending: shape ({n}, {n})"
        )
    below: Array = np.tril(table, -1)
    wrong = np.argwhere(~np.isfinite(below))
    if wrong.size:
        a, b = wrong[0]
        raise ValueError(
            f"margin[{a}, {b}], of layer {layers[a]:g} over layer {layers[b]:g}, is "
            f"{below[a, b]:g}; margins must be finite"
        )
    _check_size(below)
    return np.ascontiguousarray(below)


def describe_margin(margin: Any) -> str | None:
    """A margin in a word, for the summary of a model: ``1``, ``log:1,2.7``, ``table``, ..."""
    form = margin_form(margin)
    if form == "named":
        name, k1, k2 = _parse_named(margin)
        return name if (k1, k2) == (1.0, 0.0) else f"{name}:{k1:g},{k2:g}"
    return f"{float(margin):g}" if form == "number" else form


# ---- the forms ----------------------------------------------------------------------------------


def _parse_named(margin: Any) -> tuple[str, float, float]:
    """(function, k1, k2) of ``"log"``, ``("log", k1)`` or ``("log", k1, k2)``."""
    name, *constants = [margin] if isinstance(margin, str) else list(margin)
    if name not in FUNCTIONS or len(constants) > 2:
        raise ValueError(f"margin must be {_FORMS}, got {margin!r}")
    k1, k2 = constants + [1.0, 0.0][len(constants) :]
    for place, k in (("k1", k1), ("k2", k2)):
        if isinstance(k, bool) or not isinstance(k, int | float | np.number) or not np.isfinite(k):
            raise ValueError(f"{place} of margin {margin!r} must be a finite number, got {k!r}")
    return name, float(k1), float(k2)


def _of_labels(name: str, k1: float, k2: float, labels: Array, queries: Queries) -> Array:
    """``k1·log(y) + k2`` or ``k1·y + k2`` above the lowest layer of each query, 0 in it."""
    y, above = queries.gather(labels), queries.levels > 0
    r = y[above]
    if name == "log":
        if (t := first_true(above & (y <= 0))) is not None:
            row = t if queries.order is None else int(queries.order[t])
            raise ValueError(
                f"margin 'log' is of labels > 0, but row {row}, above the lowest layer of its "
                f"query, has label {y[t]:g}; use 'linear', a function of the labels, or other "
                "labels"
            )
        r = np.log(r)
    shift = np.zeros(queries.n_rows)
    with np.errstate(over="ignore"):
        shift[above] = k1 * r + k2
    if not np.isfinite(shift).all():
        raise ValueError(f"margin ({name!r}, {k1:g}, {k2:g}) of the labels is not finite")
    return shift


def _check_size(margins: Array) -> None:
    """Sums of margins over the rows must not overflow."""
    largest = float(np.abs(margins).max(initial=0.0))
    if largest > _LARGEST:
        raise ValueError(
            f"a margin is {largest:g} in size, and sums of margins would overflow; give margins "
            f"of at most {_LARGEST:g}"
        )


def _per_row(given: Any, labels: Array, name: str, what: str = "margins") -> Array:
    """One finite number for each row, from an array or from what a function of the labels gave."""
    found, n_rows = as_array(given, name), len(labels)
    if found.shape != (n_rows,) or found.dtype.kind not in "biuf":
        raise ValueError(
            f"{name} must be one number for each of {n_rows} rows, got an array of shape "
            f"{found.shape} and dtype {found.dtype}"
        )
    if (i := first_true(~np.isfinite(found))) is not None:
        raise ValueError(
            f"{name} is {found[i]:g} at row {i}, which has label {labels[i]:g}; {what} must be "
            "finite"
        )
    return np.ascontiguousarray(found, dtype=np.float64)


def _as_array(margin: Any) -> Array:
    try:
        given = as_array(margin, "margin")
    except ValueError:  # lists of different lengths
        given = np.empty(0, dtype=object)
    if given.ndim > 2 or given.dtype.kind not in "iuf":
        raise ValueError(f"margin must be {_FORMS}, got {margin!r}")
    return given.astype(np.float64, copy=False)


@dataclass(frozen=True, eq=False)
class Layering(PickledFields):
    """Layers of every query, with margins and weights.

    With ``m = z - s``, ``D(i)`` the rows of lower layers in i's query and ``k(i)`` the layer of i,
    the domination loss of scores z is
    ``Σ_q c_q Σ_i u_i log(1 + Σ_(j in D(i)) u_j exp(m_j - m_i + Δ(k(i), k(j))))``.

    Attributes
    ----------
    queries : Queries
        Its levels are the layers.
    shift : float64 array (n_rows,) or None
        The separable margins s, by position: ``Δ(i, j) = s(i) - s(j)``.
    row_weight : float64 array (n_rows,) or None
        u, by position; a weight of 2 equals repeating the row.
    query_weight : float64 array (n_queries,) or None
        c.
    table : float64 array (n_grades, n_grades) or None
        Margins ``Δ[a, b]`` of layer a over layer b, layers counted over all queries.
    grades : int32 array or None
        Row and column in `table` of each layer of each query, query by query; needed with `table`.
    """

    queries: Queries
    shift: Array | None = None
    row_weight: Array | None = None
    query_weight: Array | None = None
    table: Array | None = None
    grades: Array | None = None

    def total_weight(self) -> float:
        """``Σ c_q u_i`` over all rows."""
        by_query = np.diff(self.queries.offsets).astype(np.float64)
        if self.row_weight is not None:
            ends = np.concatenate([[0.0], np.cumsum(self.row_weight)])[self.queries.offsets]
            by_query = np.diff(ends)
        return float(by_query.sum() if self.query_weight is None else by_query @ self.query_weight)

    @cached_property
    def core(self) -> _core.Layering:
        """The same for the core, which copies the arrays."""
        weights = self.shift, self.row_weight, self.query_weight
        flat, size = (None, 0) if self.table is None else (self.table.reshape(-1), len(self.table))
        return _core.layering(*self.queries.ranked, *weights, flat, size, self.grades)

    def on(self, sample: Queries, positions: Array, row_weight: Array) -> Layering:
        """The layers of a sample of the rows, as `linrank.ranksvm.train.draw_rows` returns it."""
        whole = self.queries
        if self.row_weight is not None:
            row_weight = row_weight * self.row_weight[positions]
        grades = None
        if self.grades is not None:
            grades = _grades(sample, self.grades[layer_numbers(whole)[positions]])
        c = self.query_weight
        if c is not None:
            query = np.searchsorted(whole.offsets, positions, side="right") - 1
            c = c[query[sample.offsets[:-1]]]
        shift = None if self.shift is None else self.shift[positions]
        return Layering(sample, shift, row_weight, c, self.table, grades)

    def sample(self, n_rows: int, seed: int) -> Layering:
        """The layering on about ``n_rows`` rows: whole queries, and some rows of long ones.

        Weights make up for the rows left out of a query, inside the sums over lower layers as
        outside.
        """
        return self.on(*sample_queries(self.queries, n_rows, seed))

    @property
    def n_pairs(self) -> int:
        """Pairs of a row and one that it is to dominate, rows of weight 0 left out."""
        return self.queries.n_pairs

    @classmethod
    def of(
        cls,
        data: Dataset,
        *,
        layers: str | Callable[[Array], Any] = "labels",
        margin: Any = None,
        pooled: bool = False,
        query_weight: Array | None = None,
    ) -> Layering:
        """Layers and margins of labeled rows; `NoPairsError` if there is nothing to dominate.

        Parameters
        ----------
        data : Dataset
            Its labels make the layers, its weights are u.
        layers : {"labels", "binary"} or callable
            ``"labels"``: every label of a query is a layer. ``"binary"``: rows with a label > 0
            are relevant and above the rest, as in ``sampling="roc"``; of labels 0, 1, 2, ... and
            of labels -1, +1 these are the relevant rows of the measures (label >= 1) too. A
            function takes the labels of all rows and returns the layer of each, a finite number;
            only their order within a query matters.
        margin : None, float, str, tuple, callable or array
            With ``y_i`` the label of row i and s = 0 in the lowest layer of each query:

            - a number k: ``s(i) = k·k(i)``, where ``k(i) = 0, 1, ...`` is the layer of i in its
              query: k between neighboring layers, 2k across one layer, and so on;
            - ``("linear", k1, k2)``: ``s(i) = k1·y_i + k2``; ``"linear"`` for ``k1 = 1, k2 = 0``;
            - ``("log", k1, k2)``: ``s(i) = k1·log(y_i) + k2``; ``"log"`` for ``k1 = 1, k2 = 0``;

            and without that rule for the lowest layer:

            - a function that takes the labels of all rows and returns s;
            - an array of one s for each row;
            - a square array ``Δ`` over the layers of all queries, ascending: ``Δ[a, b]`` is what
              layer a must have over layer b; entries with a <= b are not looked at.
        pooled : bool
            Take all rows for one query, whatever their query ids.
        query_weight : array (n_queries,), optional
            c, in the order of ``data.queries``; not with `pooled`.

        Examples
        --------
        >>> data = Dataset.of([[0.0], [1.0], [2.0], [3.0]], [0, 2, 1, 5], qid=[1, 1, 2, 2])
        >>> Layering.of(data, margin=("linear", 10)).shift
        array([ 0., 20.,  0., 50.])
        """
        queries = Queries.of(data.labels) if pooled else data.queries
        layer = _layer_values(layers, data.labels)
        if queries is not data.queries or layer is not data.labels:
            queries = _rank_layers(queries, layer)
        if queries.n_pairs == 0:
            raise NoPairsError(_nothing_message(queries, layers))
        if data.weight is not None and not data.weight.all():
            layer = _without_weightless(layer, data.weight, queries)
            queries = _rank_layers(queries, layer)
        weight = data.weight
        row_weight = None if weight is None else np.ascontiguousarray(queries.gather(weight))
        c = _query_weight(query_weight, queries, pooled)
        if Pairs(queries, row_weight, c).total_weight() <= 0:
            raise NoPairsError(
                "every row that has others to dominate, or all those others, have weight zero; "
                "check sample_weight and query_weight"
            )
        if margin_form(margin) == "table":
            distinct, grade = np.unique(layer, return_inverse=True)
            table = margin_table(margin, distinct)
            grades = _grades(queries, queries.gather(grade.reshape(-1)))
            return cls(queries, None, row_weight, c, table, grades)
        return cls(queries, margin_shift(margin, data.labels, queries), row_weight, c)


def margin_of_part(margin: Any, layers: Any, data: Dataset, rows: Array) -> Any:
    """The margin for a part, the ``rows``, of ``data``.

    Margins by row are those of the rows; of a table the layers are kept that the part has. All
    other forms know nothing of other rows.
    """
    form = margin_form(margin)
    if form == "rows":
        return np.asarray(margin)[rows]
    if form != "table":
        return margin
    counts = np.ones(data.n_rows, dtype=bool) if data.weight is None else data.weight > 0
    layer, rows = _layer_values(layers, data.labels), rows[counts[rows]]
    distinct = np.unique(layer[counts])
    is_kept = np.isin(distinct, layer[rows])
    return margin_table(margin, distinct)[np.ix_(is_kept, is_kept)]


def _layer_values(layers: str | Callable[[Array], Any], labels: Array) -> Array:
    """A number for each row, larger in higher layers."""
    if callable(layers):
        return _per_row(layers(labels.copy()), labels, "layers(labels)", "layers")
    if not isinstance(layers, str) or layers not in LAYERS:
        expected = ", ".join(map(repr, LAYERS))
        raise ValueError(f"layers must be {expected} or a function of the labels, got {layers!r}")
    return labels if layers == "labels" else (labels > 0).astype(np.float64)


def _rank_layers(queries: Queries, layer: Array) -> Queries:
    """The same queries with ranked layers in place of ranked labels."""
    levels, n_levels = _core.rank_levels(layer, queries.offsets, queries.order, 1)
    return replace(queries, levels=levels, n_levels=n_levels)


def _without_weightless(layer: Array, weight: Array, queries: Queries) -> Array:
    """Put rows of weight 0 into the top layer of the others of their query.

    A weight of 0 equals leaving the row out, so that it must not make a layer of its own, which
    margins by layer would count; in the top layer no other row asks for its features.
    """
    by_position = np.where(queries.gather(weight) > 0, queries.gather(layer), -np.inf)
    top = np.maximum.reduceat(by_position, queries.offsets[:-1])
    top[np.isinf(top)] = layer[0]  # nobody left in the query: one layer, whichever
    of_query = queries.scatter(np.repeat(top, np.diff(queries.offsets)))
    return np.where(weight > 0, layer, of_query)


def _query_weight(weight: Array | None, queries: Queries, pooled: bool) -> Array | None:
    if weight is None:
        return None
    if pooled:
        raise ValueError(
            "query_weight has no meaning with pooled=True, which takes all rows for one query; "
            "use sample_weight"
        )
    c = np.ascontiguousarray(weight, dtype=np.float64)
    if c.shape != (queries.n_queries,):
        raise ValueError(
            f"query_weight has shape {c.shape}, but there are {queries.n_queries} queries"
        )
    return c


def _grades(queries: Queries, grade: Array) -> Array:
    """The layer, counted over all queries, of each layer of each query, from those of positions."""
    grades = np.empty(int(queries.n_levels.sum(dtype=np.int64)), dtype=np.int32)
    grades[layer_numbers(queries)] = grade
    return grades


def _nothing_message(queries: Queries, layers: Any) -> str:
    if layers == "labels":
        return no_pairs_message(queries)
    name = repr(layers) if isinstance(layers, str) else "layers(labels)"
    rule = "; layers='binary' puts labels > 0 above the rest" if layers == "binary" else ""
    if queries.n_queries == 1:
        return f"all {queries.n_rows} rows are in the same layer by {name}; check the labels{rule}"
    return (
        f"none of the {queries.n_queries} queries has two layers by {name}; check the labels{rule}"
    )
