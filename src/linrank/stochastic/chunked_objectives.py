"""Objectives of data in chunks: over all pairs by a pass, or on pairs drawn in one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from linrank import _core
from linrank.data.joining import join_rows
from linrank.losses.base import Dual
from linrank.losses.hinge import Huber
from linrank.objective import Ridge, SumPoint
from linrank.risk import Risk, RiskPoint
from linrank.solvers.certificate import duality_gap
from linrank.stochastic.drawn_pairs import DrawnPairs
from linrank.stochastic.objectives import BAND
from linrank.stochastic.visits import Visit, shared_out

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from linrank.data.rows import Rows
    from linrank.stochastic.drawn_pairs import Draw
    from linrank.stochastic.loading import Loader

    Array = NDArray[Any]

__all__ = ["ChunkedObjective", "drawn_from_chunks"]


class _Parts:
    """The sum of the risks of chunks at one ``w``, as the gap asks for it."""

    def __init__(self) -> None:
        self.primal, self.dual, self._primal_error = 0.0, Dual(), 0.0
        self.gradient: Any = 0.0
        self.gradient_error: Any = 0.0

    def add(self, point: RiskPoint, size: Array) -> None:
        """Another chunk, of which nothing but sums is kept."""
        self.primal += point.primal
        self.dual = self.dual + point.dual
        self.gradient = self.gradient + point.gradient
        self.gradient_error = self.gradient_error + point.gradient_error
        self._primal_error += point.primal_error(size)

    def primal_error(self, size: Array) -> float:
        return self._primal_error


class ChunkedObjective:
    """``λ/2 ‖w‖² + Σ_b m_b/M · Σ ω max(0, 1 - w·x_ij) / Σ ω``, with the masses m of the chunks b.

    The inner sums are over the pairs of a chunk, so that this is the mean over all pairs. A call
    takes a pass over the chunks.
    """

    at_zero = 1.0

    def __init__(self, loader: Loader, masses: Array, alpha: float, n_threads: int) -> None:
        self._loader, self._alpha, self._n_threads = loader, alpha, n_threads
        self._shares = masses / masses.sum()

    def __call__(self, w: Array) -> tuple[float, float]:
        """(objective, certified bound on what it is above the minimum)."""
        size, parts = np.abs(w), _Parts()
        for visit, loaded in self._loader.visit(_once(self._shares)):
            share = self._shares[visit.chunk] / loaded.sampler.total_weight
            loss = Huber(loaded.sampler.pairs, BAND, self._n_threads)
            parts.add(Risk(loaded.rows, loss, float(share / self._alpha)).at(w), size)
        point = SumPoint(w, [Ridge().at(w), parts])
        return self._alpha * point.primal, self._alpha * duality_gap(point)


def drawn_from_chunks(
    loader: Loader, masses: Array, draws: Sequence[Draw], seed: int
) -> dict[Draw, DrawnPairs]:
    """The pairs of each draw, from all chunks by their masses, with copies of their rows.

    One stream of random numbers a draw goes on from chunk to chunk: of one chunk the pairs are
    those of `DrawnPairs.of`.
    """
    if not draws:
        return {}
    streams = [_core.Random(draw.seed(seed)) for draw in draws]
    # The half is as good as any shift: which chunk has one pair more than its share moves nothing.
    counts = [shared_out(draw.n_pairs, masses, 0.5) for draw in draws]
    found: list[list[tuple[Rows, Array]]] = [[] for _ in draws]
    for visit, loaded in loader.visit(_once(masses)):
        for parts, count, stream in zip(found, counts, streams, strict=True):
            if n := int(count[visit.chunk]):
                pairs = np.concatenate(loaded.sampler.core.draw(stream, n))
                rows, places = np.unique(pairs, return_inverse=True)
                parts.append((loaded.rows.take(rows), places.reshape(2, n)))
    return {draw: _joined(parts) for draw, parts in zip(draws, found, strict=True)}


def _joined(parts: list[tuple[Rows, Array]]) -> DrawnPairs:
    heads = np.cumsum([0, *(rows.shape[0] for rows, _ in parts)])
    places = [pairs + head for (_, pairs), head in zip(parts, heads[:-1], strict=True)]
    winners, losers = np.concatenate(places, axis=1)
    return DrawnPairs(join_rows([rows for rows, _ in parts]), winners, losers)


def _once(masses: Array) -> Iterator[Visit]:
    """Every chunk that has pairs, in order."""
    return (Visit(int(chunk), 0) for chunk in np.flatnonzero(masses))
