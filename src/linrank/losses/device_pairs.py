"""Pair losses on a device: their points keep all that has a number for each row there."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from linrank.data.device_queries import SHORT, TILE, DeviceQueries, ShortQueries
from linrank.data.device_rows import DeviceDenseRows
from linrank.data.rows import UNIT, Array
from linrank.losses.base import HingeKind, HuberKind, ScoreLoss, SquaredHingeKind
from linrank.pairs import Pairs
from linrank.system.device import Device, DeviceArray
from linrank.system.resources import cached_property

_THREADS = 256
_BLOCKS = 64  # that add up what queries tell
_KINDS = {"squared_hinge": 0, "hinge": 1, "huber": 2}
# What the kernels tell of a point: see enum Told of core/cuda/pairs.cuh.
_TOLD = (
    "value",
    "sum_of_slacks",
    "inner_slacks",
    "n_violations",
    "total_curvature",
    "value_error",
    "slacks_error",
    "dual_error",
    "slope_errors",
    "slopes",
)
_MOMENTS = 28  # of a query, for it
_BATCH = 1 << 28  # bytes of vectors that a Hessian multiplies at a time


class DevicePairs:
    """`Pairs` on a device."""

    def __init__(self, pairs: Pairs, device: Device) -> None:
        self.device = device
        self.queries = DeviceQueries.of(pairs.queries, device)
        weights = (pairs.row_weight, pairs.query_weight, pairs.gain)
        self._weights = tuple(None if one is None else device.put(one) for one in weights)
        self.adjacent = pairs.adjacent
        self.has_gain = pairs.gain is not None
        self.n_vectors = 2 if self.has_gain else 1

    @classmethod
    def of(cls, pairs: Pairs, device: Device) -> DevicePairs:
        """Those of a device, made once."""
        return device.once(pairs, lambda: cls(pairs, device))

    @property
    def given(self) -> tuple[Any, ...]:
        """What every kernel begins with."""
        queries = self.queries
        arrays = queries.offsets, queries.levels, queries.n_levels
        return (*arrays, *self._weights, int(self.adjacent))


class DeviceLoss(ScoreLoss):
    """``L(z) = Σ ω_ij l(1 - z_i + z_j)`` over the pairs of queries, its scores on a device.

    Parameters
    ----------
    pairs : Pairs
        Which rows are compared, and the weights ω.
    device : Device
        Where the scores lie; so do the rows of its products.
    """

    name: str

    def __init__(self, pairs: Pairs, device: Device) -> None:
        super().__init__(pairs.queries.order, pairs.queries.n_rows)
        self.pairs = pairs
        self.device = device
        self.here = DevicePairs.of(pairs, device)

    @property
    def kind(self) -> tuple[int, float]:
        """The loss of a pair, as kernels take it."""
        return _KINDS[self.name], float(self.epsilon)

    @property
    def mean_weight(self) -> float:
        return self.total_weight / max(1, self.pairs.n_pairs)

    @cached_property
    def total_weight(self) -> float:
        return self.pairs.total_weight()

    def at(self, z: DeviceArray, near: Any = None) -> DevicePoint:
        return DevicePoint(self, self.device.put(z))

    def curvature(self, point: DevicePoint, v: Any) -> Any:
        """``∇²L(z) v``, where v is."""
        found = point.multiply(self.device.put(v))
        return found if isinstance(v, self.device.xp.ndarray) else self.device.get(found)

    def zeros(self) -> DeviceArray:
        return self.device.zeros(self.n_positions)

    def scores(self, rows: Any, w: Array) -> DeviceArray:
        return rows.score(w, self.here.queries.order)

    def by_column(self, rows: Any, r: DeviceArray) -> Array:
        return rows.add(r, self.here.queries.order)

    def dot(self, a: DeviceArray, b: DeviceArray) -> float:
        sums = self.device.empty(self.device.n_blocks)
        self.device.launch("points", "dot", len(sums), _THREADS, len(a), a, b, sums)
        return float(self.device.get(sums).sum())

    def add_scaled(self, z: DeviceArray, t: float, d: DeviceArray) -> DeviceArray:
        out = self.device.empty(len(z))
        grid = -(-len(z) // _THREADS)
        self.device.launch("points", "add_scaled", grid, _THREADS, len(z), z, float(t), d, out)
        return out

    def slope_norm(self, point: DevicePoint) -> float:
        return point.slope_norm

    def hessian_product(self, rows: Any, point: DevicePoint, v: Array) -> tuple[Array, DeviceArray]:
        if isinstance(rows, DeviceDenseRows) and self.here.queries.long is None:
            fused = point.multiply_rows(rows, v)
            if fused is not None:
                return fused
        return super().hessian_product(rows, point, v)

    def hessian_matrix(self, rows: Any, point: DevicePoint) -> Array:
        """``Xᵀ∇²L(z)X`` in full: the curvature times some columns after the other."""
        n_columns, n = rows.shape[1], self.n_positions
        step = max(1, min(n_columns, _BATCH // (8 * self.here.n_vectors * max(1, n))))
        work = 8 * n * (n_columns + 4 * step * self.here.n_vectors)
        self.device.check_fits(work, f"a Hessian of {n_columns} features and {n:,} rows")
        order = self.here.queries.order
        columns = rows.turn(order, n, 0, n_columns)
        parts = []
        with self.device.current():
            for begin in range(0, n_columns, step):
                curved = point.multiply(columns[begin : begin + step])
                parts.append(self.device.get(curved @ columns.T))
        matrix = np.concatenate(parts)
        return 0.5 * (matrix + matrix.T)

    def hessian_diagonal(self, rows: Any, point: DevicePoint) -> Array:
        """An estimate of the diagonal of ``Xᵀ∇²L(z)X``."""
        return rows.diagonal(self.here.queries, point.degree, point.curvature)


class DeviceSquaredHinge(SquaredHingeKind, DeviceLoss):
    """``l(ξ) = max(0, ξ)²``."""


class DeviceHinge(HingeKind, DeviceLoss):
    """``l(ξ) = max(0, ξ)``."""


class DeviceHuber(HuberKind, DeviceLoss):
    """The hinge, smoothed within ε of its kink."""


def loss_on_device(
    kind: str, pairs: Pairs, device: Device, epsilon: float | None = None, n_threads: int = 1
) -> DeviceLoss:
    """The loss of this kind, the hinge smoothed within ``epsilon`` of its kink if that is given.

    Threads are for vectors of weights, which stay on the host.
    """
    if kind == "squared_hinge":
        loss: DeviceLoss = DeviceSquaredHinge(pairs, device)
    elif epsilon is None:
        loss = DeviceHinge(pairs, device)
    else:
        loss = DeviceHuber(pairs, device, epsilon=epsilon)
    loss.n_threads = n_threads
    return loss


@dataclass(frozen=True)
class Layer:
    """One order of the rows of long queries: see ``core/cuda/long_queries.cu``."""

    source: DeviceArray | None  # where each row was in the layer before
    pivot: DeviceArray
    outer: DeviceArray  # (n_margins, n_slots)

    def ends(self, margin: int | None) -> tuple[DeviceArray, DeviceArray]:
        """Ends of the ranges of a margin, or, if None, of what is curved."""
        if margin is None:
            return (self.outer[1] if len(self.outer) > 1 else self.pivot), self.outer[0]
        return self.pivot, self.outer[margin]


class DevicePoint:
    """A pair loss at given scores; attributes as those of the core's points.

    Attributes
    ----------
    gradient : device array
        ``∂L/∂z`` by position.
    degree : device array
        What the pairs of a row weigh where the loss is curved.
    """

    def __init__(self, loss: DeviceLoss, z: DeviceArray) -> None:
        self._loss, self._here, self._device = loss, loss.here, loss.device
        queries, empty, n = self._here.queries, self._device.empty, loss.n_positions
        self._n_margins = 2 if loss.name == "huber" else 1
        self._order = empty(n, np.int32)
        self._ends = empty((2 * self._n_margins, n), np.int32)
        self.degree, self.gradient = self._device.zeros(n), self._device.zeros(n)
        self._moments = empty((queries.n_queries, _MOMENTS))
        for part in self._device.beside(queries.short):
            self._sweep(part, z)
        self._layers = None if queries.long is None else _Layers(self, z)
        self._partial = empty((_BLOCKS, len(_TOLD)))
        depth = 64.0 + 40.0 * (0 if self._layers is None else len(self._layers.layers))
        given = queries.n_queries, SHORT, depth, *loss.kind, self._moments, self._partial
        self._launch("points", "summarize", _BLOCKS, *given)

    def _launch(self, file: str, name: str, grid: Any, *arguments: Any, **how: Any) -> None:
        block = how.pop("block", _THREADS)
        self._device.launch(file, name, grid, block, *self._here.given, *arguments, **how)

    def _sweep(self, part: ShortQueries, z: DeviceArray) -> None:
        n_vectors = 2 * self._here.n_vectors
        room, shared = part.room(n_vectors, 24 + 8 * n_vectors, self._device)
        found = self._order, self._ends, self.degree, self.gradient, self._moments
        given = part.numbers, *self._loss.kind, room, z, len(z), *found
        how = {"block": part.n_threads, "shared": shared}
        self._launch("short_queries", "sweep_queries", len(part.numbers), *given, **how)

    # ---- what it tells ---------------------------------------------------------------------------

    @cached_property
    def _told(self) -> dict[str, float]:
        told = dict(zip(_TOLD, self._device.get(self._partial).sum(axis=0).tolist(), strict=True))
        n_queries = self._here.queries.n_queries
        unit = UNIT * (n_queries / (_BLOCKS * _THREADS) + 2 * _BLOCKS)
        slacks = abs(told["sum_of_slacks"]) + abs(told["inner_slacks"]) + told["n_violations"]
        told["value_error"] += unit * abs(told["value"])
        told["slacks_error"] += unit * slacks
        told["dual_error"] += unit * slacks
        return told

    def __getattr__(self, name: str) -> Any:
        if name in _TOLD:
            return self._told[name]
        raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")

    @property
    def gradient_error(self) -> float:
        return math.sqrt(self.slope_errors)

    @property
    def slope_norm(self) -> float:
        """``‖gradient‖``."""
        return math.sqrt(self.slopes)

    @property
    def curvature(self) -> float:
        """``l''`` where it is not 0."""
        return {0: 2.0, 1: 0.0, 2: 1.0 / self._loss.epsilon}[self._loss.kind[0]]

    # ---- products --------------------------------------------------------------------------------

    def multiply(self, v: DeviceArray) -> DeviceArray:
        """``∇²L(z)·v`` of a vector, or of each row of a matrix."""
        out = self._device.zeros(v.shape)
        if self._loss.name == "hinge":
            return out
        n_vectors, n = (1 if v.ndim == 1 else len(v)), v.shape[-1]
        for part in self._device.beside(self._here.queries.short):
            room, shared = part.room(
                self._here.n_vectors, 8 * self._here.n_vectors + 8, self._device
            )
            grid = len(part.numbers), n_vectors
            given = (
                part.numbers,
                *self._loss.kind,
                room,
                n,
                self._order,
                self._ends,
                self.degree,
                v,
                out,
                n,
            )
            how = {"block": part.n_threads, "shared": shared}
            self._launch("short_queries", "multiply_queries", grid, *given, **how)
        if self._layers is not None:
            self._layers.multiply(v, n_vectors, out)
        return out

    def multiply_rows(self, rows: DeviceDenseRows, v: Array) -> tuple[Array, DeviceArray] | None:
        """``(Xᵀ∇²L(z)X v, X v)`` in one pass over the rows; None where they are too wide for it."""
        device, here, n_columns = self._device, self._here, rows.shape[1]
        if rows.packs > _THREADS or self._loss.name == "hinge":
            return None
        weights, image = device.put(v), device.zeros(self._loss.n_positions)
        grids = [min(len(part.numbers), 2 * device.n_blocks) for part in here.queries.short]
        parts, begin = device.empty((sum(grids), n_columns)), 0
        for part, grid in device.beside(zip(here.queries.short, grids, strict=True)):
            room, shared = part.room(
                here.n_vectors, 8 * here.n_vectors + 24, device, taken=8 * n_columns
            )
            shared = max(shared, 8 * n_columns + 16 * part.longest + 32 * _THREADS)
            found = self._order, self._ends, self.degree
            sizes = len(part.numbers), *self._loss.kind, room, len(image)
            given = *rows.given(here.queries.order), rows.is_wide, part.longest, weights, image
            name = f"multiply_rows_{rows.type}"
            arguments = part.numbers, *sizes, *found, *given, parts[begin : begin + grid]
            self._launch("short_queries", name, grid, *arguments, shared=shared)
            begin += grid
        return rows.sum_parts(parts), image


class _Layers:
    """The rows of long queries, sorted as their sums over pairs need it."""

    def __init__(self, point: DevicePoint, z: DeviceArray) -> None:
        assert point._here.queries.long is not None
        self._point, self._long = point, point._here.queries.long
        self._device, self._xp = point._device, point._device.xp
        n_slots, n_margins = self._long.n_slots, point._n_margins
        empty = self._device.empty
        self._home = self._sorted(z)
        self._s, grids = empty(n_slots), empty(self._long.n_tiles)
        level, place, first, end = (empty(n_slots, np.int32) for _ in range(4))
        found = self._home, self._s, grids, level, place, first, end
        self._slots("place_rows", *self._tiles, n_slots, point._loss.kind[0], z, *found)
        ends = empty((2 * n_margins, n_slots), np.int32)
        for m, margin in enumerate((1.0, 1.0 - point._loss.epsilon)[:n_margins]):
            given = point._here.queries.offsets, *self._tiles, n_slots, margin, self._s
            self._plain("find_ends", *given, ends[2 * m], ends[2 * m + 1])
        if point._here.adjacent:
            self.layers = self._neighbors(level, place, ends)
        else:
            self.layers = self._bits(level, place, first, end, ends)
        self._finish(grids)

    @property
    def _tiles(self) -> tuple[DeviceArray, DeviceArray]:
        return self._long.tile_query, self._long.tile_first

    def _slots(self, name: str, *arguments: Any, n_vectors: int = 1) -> None:
        """A kernel with a thread for each slot, which takes the pairs."""
        grid = self._long.n_slots // _THREADS, n_vectors
        self._point._launch("long_queries", name, grid, *arguments)

    def _plain(self, name: str, *arguments: Any, n_vectors: int = 1) -> None:
        """The same of one that does not."""
        grid = self._long.n_slots // _THREADS, n_vectors
        self._device.launch("long_queries", name, grid, _THREADS, *arguments)

    def _sorted(self, z: DeviceArray) -> DeviceArray:
        """The position of the row in each slot, rows by query and score; -1 where there is none."""
        long, xp = self._long, self._xp
        with self._device.current():
            order = xp.argsort(z[long.positions], kind="stable")
            if long.n > 1:
                order = order[xp.argsort(long.query_of_row[order], kind="stable")]
            home = xp.full(long.n_slots, -1, np.int32)
            home[long.slots] = long.positions[order].astype(np.int32)
        return home

    def _bits(self, level: Any, place: Any, first: Any, end: Any, ends: Any) -> list[Layer]:
        """A layer for each bit of the levels, the highest first; the last has the final order."""
        n_slots, n_margins = self._long.n_slots, self._point._n_margins
        layers, bits = [], self._device.empty(n_slots)
        state = [level, place, first, end, ends]
        for bit in reversed(range(self._long.n_bits)):
            self._plain("take_bits", n_slots, bit, state[0], bits)
            _, local, before = self._scan(bits, None, 1, move=False)
            new = [self._device.empty(one.shape, np.int32) for one in state]
            layer = Layer(
                *(
                    self._device.empty(shape, np.int32)
                    for shape in (n_slots, n_slots, (n_margins, n_slots))
                )
            )
            given = n_slots, n_margins, bit, local, before, *state, *new
            self._plain("split_groups", *given, layer.source, layer.pivot, layer.outer)
            state = new
            layers.append(layer)
        self._place = state[1]
        return layers

    def _neighbors(self, level: Any, place: Any, ends: Any) -> list[Layer]:
        """The layers of neighboring levels."""
        n_slots, n_margins = self._long.n_slots, self._point._n_margins
        xp, most = self._xp, 1 << self._long.n_bits
        with self._device.current():
            tile = xp.repeat(self._long.tile_query.astype(np.int64), TILE)
            key = tile * (most + 1) + xp.where(self._home < 0, most, level)
            source = xp.argsort(key, kind="stable").astype(np.int32)
            level, self._place = level[source], place[source]
        pivots = self._device.empty((2, n_slots), np.int32)
        outers = self._device.empty((2, n_margins, n_slots), np.int32)
        given = n_slots, n_margins, level, self._place, ends, pivots, outers
        self._plain("meet_neighbors", self._point._here.queries.offsets, *self._tiles, *given)
        return [Layer(source, pivots[0], outers[0]), Layer(None, pivots[1], outers[1])]

    def _scan(
        self, v: DeviceArray, source: DeviceArray | None, n_vectors: int, *, move: bool = True
    ) -> tuple[DeviceArray, DeviceArray, DeviceArray]:
        """Vectors in the order of a layer and their running sums, within tiles and before them."""
        n_slots, n_tiles = self._long.n_slots, self._long.n_tiles
        moved = self._device.empty((n_vectors, n_slots)) if move else None
        local, before = (
            self._device.empty((n_vectors, n_slots)),
            self._device.empty((n_vectors, n_tiles)),
        )
        launch = self._device.launch
        grid = n_tiles, n_vectors
        launch(
            "long_queries", "scan_tiles", grid, _THREADS, n_slots, source, v, moved, local, before
        )
        grid = self._long.n, n_vectors
        launch("long_queries", "scan_totals", grid, 1024, self._long.query_tiles, n_tiles, before)
        return moved, local, before

    def _sums(
        self,
        v: DeviceArray,
        n_vectors: int,
        margins: tuple[int | None, ...],
        sides: int,
        sign: float,
    ) -> list[DeviceArray]:
        """Sums over the pairs of each row, by margin; in the order of the last layer."""
        n_slots = self._long.n_slots
        sums: list[Any] = [None] * len(margins)
        for layer in self.layers:
            v, local, before = self._scan(v, layer.source, n_vectors)
            for m, margin in enumerate(margins):
                new = self._device.empty((n_vectors, sides, n_slots))
                given = n_slots, layer.source, *layer.ends(margin), local, before, sides, sign
                self._plain("add_ranges", *given, sums[m], new, n_vectors=n_vectors)
                sums[m] = new
        return sums

    def _finish(self, grids: DeviceArray) -> None:
        """Degrees, slopes and moments."""
        point, n_slots, n_vectors = self._point, self._long.n_slots, self._point._here.n_vectors
        v = self._device.empty((2 * n_vectors, n_slots))
        for power in (0, 1):
            part = v[power * n_vectors : (power + 1) * n_vectors]
            self._slots("weigh_rows", n_slots, self._home, self._s, power, None, 0, part)
        margins = tuple(range(point._n_margins))
        of_tiles = self._device.zeros((self._long.n_tiles, _MOMENTS))
        for m, sums in enumerate(self._sums(v, 2 * n_vectors, margins, 2, 1.0)):
            is_last = int(m == margins[-1])
            given = *self._tiles, n_slots, *point._loss.kind, m, is_last, self._place, self._home
            found = self._s, grids, sums, point.degree, point.gradient, of_tiles
            point._launch("long_queries", "finish_rows", self._long.n_tiles, *given, *found)
        tiles = self._long.numbers, self._long.query_tiles, of_tiles, point._moments
        self._device.launch("long_queries", "sum_tiles", self._long.n, 32 * _MOMENTS, *tiles)

    def multiply(self, v: DeviceArray, n_vectors: int, out: DeviceArray) -> None:
        """``out = ∇²L(z)·v`` at the positions of these rows."""
        point, n_slots, here = self._point, self._long.n_slots, self._point._here
        weighed = self._device.empty((n_vectors * here.n_vectors, n_slots))
        stride = v.shape[-1]
        given = n_slots, self._home, self._s, 0, v, stride, weighed
        self._slots("weigh_rows", *given, n_vectors=n_vectors)
        # With gains the sums below count negatively: |g_j - g_i| is g_i - g_j there.
        sign = -1.0 if here.has_gain else 1.0
        (sums,) = self._sums(weighed, n_vectors * here.n_vectors, (None,), 1, sign)
        taken = (
            *self._tiles,
            n_slots,
            *point._loss.kind,
            self._place,
            self._home,
            point.degree,
            sums,
            v,
            out,
            stride,
        )
        self._slots("combine_rows", *taken, n_vectors=n_vectors)
