"""Queries on a device, as kernels take them: short ones by block, long ones by tile."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from linrank.data.queries import Queries
from linrank.data.rows import Array
from linrank.system.device import Device, DeviceArray
from linrank.system.resources import cached_property

SHORT = 2048  # rows of a query that one block sweeps
TILE = 1024  # slots that one block takes of a longer one
_SIZES = (128, 256, 512, 1024, SHORT)  # classes of short queries
_THREADS = {128: 128, 256: 128, 512: 256, 1024: 512}
_MOST_THREADS = 1024
_TABLE_LEVELS = 8  # up to which running sums by level are made


@dataclass(frozen=True, eq=False)
class ShortQueries:
    """Queries of about the same size.

    Attributes
    ----------
    numbers : int32 array
        Which they are.
    longest, n_levels : int
        Rows of the longest, and levels of that with the most.
    n_threads : int
        Of a block.
    """

    numbers: DeviceArray
    longest: int
    n_levels: int
    n_threads: int

    @classmethod
    def by_size(
        cls, queries: Queries, is_taken: Array, device: Device, classes: tuple[int, ...]
    ) -> list[ShortQueries]:
        """The queries taken, by the most rows of each class; longer ones are left out."""
        sizes, found, least = np.diff(queries.offsets), [], 0
        for size in classes:
            numbers = np.flatnonzero(is_taken & (sizes > least) & (sizes <= size))
            least = size
            if numbers.size:
                longest = int(sizes[numbers].max())
                # The longest first: what is left for the end is short.
                numbers = numbers[np.argsort(-sizes[numbers], kind="stable")]
                most = int(queries.n_levels[numbers].max())
                n_threads = _THREADS.get(size, _MOST_THREADS)
                found.append(cls(device.put(numbers, np.int32), longest, most, n_threads))
        return found

    def room(self, n_vectors: int, per_row: int, device: Device, taken: int = 0) -> tuple[int, int]:
        """Numbers that tables of sums may take, and the bytes of shared memory with them.

        The block takes ``per_row`` bytes for each row beside them, and ``taken`` more.
        """
        taken += self.longest * per_row + 64
        wanted = 2 * n_vectors * (min(self.n_levels, _TABLE_LEVELS) - 1) * (self.longest + 1)
        room = max(0, min(wanted, (device.shared_bytes - 2048 - taken) // 8))
        return room, taken + 8 * room


class DeviceQueries:
    """The queries of a training on a device.

    Attributes
    ----------
    offsets, levels, n_levels : int32 arrays
        As those of `Queries`.
    order : int32 array or None
        The row of each position.
    short : list of ShortQueries
        Those with pairs that one block sweeps, by size.
    long : LongQueries or None
        The others with pairs.
    """

    def __init__(self, queries: Queries, device: Device) -> None:
        self.device = device
        self.host = queries
        self.n_rows, self.n_queries = queries.n_rows, queries.n_queries
        self.offsets = device.put(queries.offsets, np.int32)
        self.levels = device.put(queries.levels)
        self.n_levels = device.put(queries.n_levels)
        self.order = None if queries.order is None else device.put(queries.order, np.int32)
        has_pairs = queries.n_levels > 1
        self.short = ShortQueries.by_size(queries, has_pairs, device, _SIZES)
        long = np.flatnonzero(has_pairs & (np.diff(queries.offsets) > SHORT))
        self.long = LongQueries(queries, long, device) if long.size else None

    @classmethod
    def of(cls, queries: Queries, device: Device) -> DeviceQueries:
        """Those of a device, made once: nobody may write to the arrays of `Queries`."""
        return device.once(queries, lambda: cls(queries, device))

    @cached_property
    def query(self) -> DeviceArray:
        """The query of each position."""
        sizes = np.diff(self.host.offsets)
        return self.device.put(np.repeat(np.arange(self.n_queries, dtype=np.int32), sizes))

    def chunks(self, n_chunks: int) -> DeviceArray:
        """Bounds of runs of whole queries of about as many rows each."""
        goals = np.arange(1, n_chunks) * (self.n_rows / n_chunks)
        cuts = np.searchsorted(self.host.offsets, goals)
        return self.device.put(np.unique(np.concatenate([[0], cuts, [self.n_queries]])), np.int32)

    def sums(self, by_position: DeviceArray) -> DeviceArray:
        """Sums of numbers >= 0 over the positions of each query."""
        found = self.device.empty(self.n_queries)
        self.device.launch(
            "points", "sum_queries", self.n_queries, 128, self.offsets, by_position, found
        )
        return found


class LongQueries:
    """Queries in tiles of slots: see ``core/cuda/long_queries.cu``.

    Attributes
    ----------
    numbers : int32 array
        Which they are.
    n_slots : int
        Slots in all.
    tile_query, tile_first : int32 arrays
        The query of each tile, and the slot where it begins.
    query_tiles : int32 array
        The first tile of each query, and the end.
    positions : int64 array
        Of all rows, query by query.
    slots : int64 array
        The slot of each of these, in the order of any of its query's rows.
    n_bits : int
        Of the highest level.
    """

    def __init__(self, queries: Queries, which: Array, device: Device) -> None:
        sizes = np.diff(queries.offsets)[which]
        n_tiles = sizes // TILE + 1  # a slot at least is left over: where running sums end
        first_tile = np.concatenate([[0], np.cumsum(n_tiles)])
        tile_of = np.repeat(np.arange(len(which)), n_tiles)
        within = np.arange(int(sizes.sum())) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        self.n = len(which)
        self.n_tiles = int(first_tile[-1])
        self.n_slots = TILE * self.n_tiles
        if self.n_slots >= 2**31:
            raise MemoryError(f"long queries of {len(within):,} rows are too many for a device")
        self.numbers = device.put(which, np.int32)
        self.tile_query = device.put(which[tile_of], np.int32)
        self.tile_first = device.put(TILE * first_tile[:-1][tile_of], np.int32)
        self.query_tiles = device.put(first_tile, np.int32)
        self.positions = device.put(np.repeat(queries.offsets[:-1][which], sizes) + within)
        self.slots = device.put(np.repeat(TILE * first_tile[:-1], sizes) + within)
        self.query_of_row = device.put(np.repeat(np.arange(len(which)), sizes), np.int32)
        self.n_bits = max(1, int(queries.n_levels[which].max() - 1).bit_length())
