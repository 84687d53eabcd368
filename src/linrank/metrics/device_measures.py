"""Measures of ranked lists where the scores lie on a device: see ``core/cuda/measures.cu``."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from linrank.data.device_queries import DeviceQueries, ShortQueries
from linrank.data.queries import Queries
from linrank.data.rows import Array
from linrank.metrics.conventions import Convention
from linrank.metrics.evaluate import as_scores, check_gains, choices_of, evaluate_queries, mean_of
from linrank.metrics.evaluation import Evaluation
from linrank.metrics.measures import Measure
from linrank.pairs import layer_numbers
from linrank.system.device import Device, as_device_array, to_host

# Of each rule for ties: as the kernel numbers it. The number of a row stands for a document id.
_TIES = {"stable": 0, "average": 1, "docid": 2}
_SUM, _MEAN_RATIO, _PRECISION, _RECIPROCAL, _ERR, _SUCCESS = range(6)
_NUMBER, _IDEAL, _RELEVANT, _REACHED, _RELEVANT_REACHED = range(5)
# Of each kernel of the core: how the device goes down the ranks, by what it divides, the same where
# the most that can be reached is 1, and whether that is 0/0 without a relevant row.
_KINDS = {
    "ndcg": (_SUM, _IDEAL, _IDEAL, True),
    "mean_ndcg": (_MEAN_RATIO, _REACHED, _REACHED, True),
    "average_precision": (_PRECISION, _RELEVANT, _RELEVANT_REACHED, True),
    "recall": (_SUM, _RELEVANT, _RELEVANT, True),
    "precision": (_SUM, _NUMBER, _REACHED, False),
    "reciprocal_rank": (_RECIPROCAL, _NUMBER, _NUMBER, False),
    "err": (_ERR, _NUMBER, _NUMBER, False),
    "rbp": (_SUM, _NUMBER, _NUMBER, False),
    "success": (_SUCCESS, _NUMBER, _NUMBER, False),
}
_SIZES = (128, 256, 512, 1024, 2048, 4096, 8192)  # classes of queries by rows
_ROW_BYTES = 20  # of shared memory, for each row of a query
_TINY = 5e-324

Choices = dict[str, Any]  # what a measure of the core is made of


def evaluate_there(
    queries: Queries,
    labels: Array,
    scores: Any,
    measures: list[Measure],
    chosen: Convention,
    docid: Any,
    n_jobs: int | None,
) -> Evaluation | None:
    """`evaluate_queries` of scores on a device, which measures what it can; None if that is none.

    The rest is measured by a copy of the scores.
    """
    taken = [m for m in measures if m.kernel in _KINDS]
    has_ids = chosen.ties == "docid" and docid is not None
    if not taken or has_ids or chosen.ties not in _TIES:
        return None
    there = DeviceLabels.of(scores, queries, labels)
    if there is None:
        return None
    check_gains(measures, labels, chosen, there.extent)
    y_max = max(0.0, there.extent[1])
    values = there.measure(scores, [choices_of(m, chosen, y_max) for m in taken], chosen)
    if np.isinf(values).any():
        as_scores(scores, None, chosen)  # says where the NaN is
    own = dict(zip(taken, values, strict=True))
    found = Evaluation({}, {}, queries.ids, chosen)
    left = [m for m in measures if m not in own]
    if left:
        rules: Any = {"convention": chosen, "docid": docid, "n_jobs": n_jobs}
        found = evaluate_queries(queries, labels, to_host(scores), metrics=left, **rules)
    means = {str(m): mean_of(own[m]) if m in own else found.means[str(m)] for m in measures}
    per_query = {str(m): own[m] if m in own else found.per_query[str(m)] for m in measures}
    return replace(found, means=means, per_query=per_query)


class DeviceLabels:
    """Labels by query on a device, as measures take them.

    Attributes
    ----------
    extent : (float, float)
        The lowest and the highest label.
    """

    def __init__(self, queries: Queries, labels: Array, device: Device) -> None:
        self.device, self._here = device, DeviceQueries.of(queries, device)
        self.extent = float(labels.min()), float(labels.max())
        self._longest = int(np.diff(queries.offsets).max())
        self._short = ShortQueries.by_size(queries, queries.n_levels > 0, device, _SIZES)
        first, at = np.concatenate([[0], np.cumsum(queries.n_levels)]), layer_numbers(queries)
        self._label = np.empty(first[-1])  # of each level
        self._label[at] = queries.gather(labels)
        self._top = np.repeat(self._label[first[1:] - 1], queries.n_levels)
        self._first_level = device.put(first, np.int32)
        self._n_at = device.put(np.bincount(at), np.int32)
        self._plan: tuple[list[Choices], tuple[Any, ...]] | None = None

    @classmethod
    def of(cls, scores: Any, queries: Queries, labels: Array) -> DeviceLabels | None:
        """Those on the device of the scores, made once; None where the host is to measure.

        Nobody may write to labels that have been grouped.
        """
        device, array = as_device_array(scores)
        is_vector = array.shape == labels.shape and array.dtype.kind in "fiub"
        if not is_vector or int(np.diff(queries.offsets).max()) > _SIZES[-1]:
            return None
        known = queries.__dict__.setdefault("_labels_on_devices", {})
        if device not in known or known[device][0] is not labels:
            known[device] = labels, cls(queries, labels, device)
        found: DeviceLabels = known[device][1]
        return found

    def measure(self, scores: Any, choices: list[Choices], chosen: Convention) -> Array:
        """Values (n_measures, n_queries); infinite for a query with a score that is NaN.

        Of ``chosen`` only the rule for ties counts, and whether scores are rounded.
        """
        here, device = self._here, self.device
        if self._plan is None or self._plan[0] != choices:
            self._plan = choices, self._planned(choices)
        measures, worths, weights = self._plan[1]
        z = device.put(as_device_array(scores)[1], np.float64)
        is_open = chosen.ties == "average" and any(one["kind"] == "err" for one in choices)
        survive = device.empty((len(choices), here.n_rows)) if is_open else None
        values = device.empty((len(choices), here.n_queries))
        known = here.offsets, here.levels, here.order, self._first_level, self._n_at
        rules = int(chosen.single_precision), _TIES[chosen.ties]
        asked = z, *rules, len(choices), measures, worths
        room = weights.shape[1], weights, survive, here.n_queries, values
        for part in device.beside(self._short):
            arguments = *known, len(self._label), part.numbers, *asked, *room
            grid, shared = len(part.numbers), _ROW_BYTES * part.longest
            block = part.n_threads
            device.launch("measures", "measure_queries", grid, block, *arguments, shared=shared)
        return device.get(values)

    def _planned(self, choices: list[Choices]) -> tuple[Any, ...]:
        """The measures as struct Measure of the kernel, what levels are worth, weights of ranks."""
        measures = []
        for one in choices:
            kind, k, empty = one["kind"], one["k"], one["empty"]
            form, divisor, reachable, is_share = _KINDS[kind]
            measure = {
                "kind": form,
                "k": k,
                "divisor": reachable if one["reachable"] else divisor,
                "number": k if kind == "precision" else 1,
                "empty": empty if is_share or np.isnan(empty) else 0.0,
                "fewest": k if kind == "ndcg" and one["short_is_zero"] else 0,
                "has_steps": kind == "average_precision" and one["step_precision"],
            }
            measures.append(list(measure.values()))
        deepest = max(min(one["k"] or self._longest, self._longest) for one in choices)
        weights = [_weights(one, deepest) for one in choices]
        found = measures, [self._worths(one) for one in choices], weights
        return tuple(self.device.put(np.array(one, dtype=np.float64)) for one in found)

    def _worths(self, one: Choices) -> Array:
        """What a row of each level is worth: see struct RankedQuery of the kernel."""
        kind, label, top = one["kind"], self._label, self._top
        y = np.maximum(label, 0.0)
        if kind == "err":  # a grade above 0 is one, however far below the highest
            return np.where(label > 0.0, np.maximum(scaled_gain(y, one["y_max"]), _TINY), 0.0)
        if kind not in ("ndcg", "mean_ndcg"):
            return np.where(label >= one["relevant_from"], 1.0, 0.0)
        if one["gain"] == "exponential":
            return np.where(top > 0.0, scaled_gain(y, top), 0.0)
        # A power of two changes no digit, and sums do not overflow.
        return np.where(top > 0.0, np.ldexp(y, 1 - np.frexp(top)[1]), 0.0)


def scaled_gain(y: Array, y_max: Any) -> Array:
    """``2^(y - y_max) - 2^-y_max`` of ``0 <= y <= y_max``, as the core has it.

    Examples
    --------
    >>> scaled_gain(np.array([0.0, 1.0, 2.0, 2000.0]), np.array([2.0, 2.0, 2.0, 2000.0])).tolist()
    [0.0, 0.25, 0.75, 1.0]
    """
    is_exact = (y == np.floor(y)) & (y_max == np.floor(y_max)) & (y_max <= 52.0)
    exponents = (np.where(is_exact, e, 0.0).astype(np.int64) for e in (y - y_max, -y_max))
    power, unit = (np.ldexp(1.0, e) for e in exponents)
    with np.errstate(under="ignore"):
        rounded = -np.exp2(y - y_max) * np.expm1(-y * np.log(2.0))
    return np.where(is_exact, power - unit, rounded)


def _weights(one: Choices, n: int) -> Array:
    """The weights of n ranks, the highest first."""
    if one["kind"] == "rbp":
        p = one["persistence"]
        return (1.0 - p) * np.cumprod(np.append(1.0, np.full(n - 1, p)))
    if one["kind"] not in ("ndcg", "mean_ndcg"):
        return np.ones(n)
    rank = np.arange(1.0, n + 1.0)
    is_letor = one["discount"] == "letor"
    return 1.0 / np.log2(np.maximum(2.0, rank) if is_letor else rank + 1.0)
