"""descend_chunks: a stochastic fit on data in chunks, of which one or two are in memory.

The steps of a pass are shared out among the chunks by the mass of their pairs, and taken chunk by
chunk. Every pair is drawn as often, in expectation, as by the sampler of the whole; what differs is
the order, for the pairs of a visit are all of one chunk. Visits are short (`passes_for`), and their
order is drawn anew in each pass. The memory allowed decides what is read again and when, and never
what is computed.
"""

from __future__ import annotations

import math
import numbers
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from linrank import _core
from linrank.data.dataset import join_rows
from linrank.errors import NoPairsError
from linrank.losses.base import Dual, Huber
from linrank.objective import Ridge, Risk, RiskPoint, SumPoint
from linrank.solvers.result import duality_gap
from linrank.stochastic import train
from linrank.stochastic.resident import Loader, Residence, chunk_sampler, room_of_chunk
from linrank.stochastic.run import Course, Rule, needs_plan
from linrank.stochastic.samplers import PLANNED, RECORDED, DrawnPairs
from linrank.system.resources import resident, resolve

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from linrank.data.dataset import Dataset
    from linrank.data.rows import Rows
    from linrank.data.scaling import Scaling
    from linrank.io.store.store import Store
    from linrank.stochastic.resident import Loaded
    from linrank.stochastic.samplers import Draw
    from linrank.stochastic.train import Callback, DescentResult

    Array = NDArray[Any]

_STEPS_PER_ROW = 0.25  # of one visit: more, and the weights follow the chunk at hand


class Visit(NamedTuple):
    """Steps to be taken on pairs of one chunk, one after the other."""

    chunk: int
    n_steps: int


def check_passes(passes: Any) -> None:
    """Refuse a number of passes that is none."""
    is_integer = isinstance(passes, numbers.Integral) and not isinstance(passes, bool)
    if passes is not None and not (is_integer and passes >= 1):
        raise ValueError(f"passes must be None or an integer >= 1, got {passes!r}")


def passes_for(n_steps: int, n_rows: int) -> int:
    """Passes that make a visit a quarter of a step for each row, at least 1.

    Within a visit all pairs are of one chunk. With a few steps for each row they would be learnt by
    heart before the next chunk comes; with much fewer, reading takes longer than stepping.

    Examples
    --------
    >>> passes_for(100_000, 1_000_000), passes_for(1_000_000, 1_000_000)
    (1, 4)
    """
    return max(1, math.ceil(n_steps / (_STEPS_PER_ROW * n_rows)))


def shared_out(n: int, weights: Array, shift: float) -> Array:
    """n things by weight: each share rounded up or down, and right on average over the shift.

    Share k is the number of integers in ``(n W_{k-1} + u, n W_k + u]``, with the running sums W of
    the weights, scaled to end at 1, and the shift u: its mean over u in [0, 1) is ``n w_k``. All
    shares sum to n, and a weight of 0 gets nothing.

    Examples
    --------
    >>> shared_out(10, np.array([1.0, 0.0, 2.0]), 0.4)
    array([3, 0, 7])
    """
    sums = np.cumsum(weights, dtype=np.float64)
    ends = np.floor(n * (sums / sums[-1]) + shift).astype(np.int64)
    # sums/sums[-1] ends at 1 exactly; n + u may still be rounded up, to one thing too many.
    counts: Array = np.diff(np.minimum(ends, n), prepend=0)
    return counts


def visits(n_steps: int, masses: Array, passes: int, seed: int) -> Iterator[Visit]:
    """All visits of a run: in every pass each chunk once, in an order drawn anew.

    Parameters
    ----------
    n_steps : int
        Steps of the whole run; each pass has its equal part of them.
    masses : array by chunk
        What the pairs of each chunk weigh. A chunk gets its share of the steps, and no visit where
        that is rounded to 0.
    passes : int
        How often the chunks are gone through.
    seed : int
        Of the orders and the rounding. They come from the raw numbers of a generator, which are
        the same in all versions of NumPy.
    """
    for number in range(passes):
        n = n_steps * (number + 1) // passes - n_steps * number // passes
        stream = np.random.PCG64(np.random.SeedSequence([seed, number]))
        raw = stream.random_raw(len(masses) + 1)
        order = np.argsort(raw[1:], kind="stable")
        shift = float(raw[0] >> np.uint64(11)) * 2.0**-53
        for chunk, count in zip(order, shared_out(n, masses[order], shift), strict=True):
            if count:
                yield Visit(int(chunk), int(count))


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
            loss = Huber(loaded.sampler.pairs, train.BAND, self._n_threads)
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


_VECTORS = 8  # of the length of the weights, that the steps and the milestones work with


@dataclass(frozen=True, eq=False)
class _Census:
    """What is known of the chunks without their features."""

    masses: Array
    n_levels: Array
    n_pairs: int
    total_weight: float

    @classmethod
    def of(cls, source: Store, sampling: str, query_weight: Array | None) -> _Census:
        masses, n_levels = np.zeros(source.n_chunks), np.zeros(source.n_chunks, np.int64)
        n_pairs = 0
        for i, extent in enumerate(source.chunks):
            queries, weight = source.read_queries(i), source.read_weight(i)
            c = None if query_weight is None else query_weight[extent.queries]
            n_levels[i] = queries.n_levels.sum(dtype=np.int64)
            if (sampler := chunk_sampler(queries, weight, sampling, c)) is not None:
                masses[i], n_pairs = sampler.mass, n_pairs + sampler.n_pairs
        if not masses.any():
            raise NoPairsError(
                f"none of the {source.n_chunks} chunks ({source.n_rows} rows) has a pair of "
                "positive weight; check labels, qid and weights"
            )
        # The weights of "query-level" sum to 1, whatever the number of queries.
        total = 1.0 if sampling == "query-level" else float(masses.sum())
        return cls(masses, n_levels, n_pairs, total)


def descend_chunks(
    source: Store,
    *,
    algorithm: str = "pegasos",
    alpha: float | None = None,
    C: float | None = None,
    aggressiveness: float = 1.0,
    n_steps: int = 100_000,
    sampling: str = "pairs",
    average: str | None = None,
    tol: float | None = None,
    record: str | None = None,
    passes: int | None = None,
    memory_limit: Any = None,
    taken: int = 0,
    seed: int = 0,
    w0: Array | None = None,
    query_weight: Array | None = None,
    prepare: Callable[[Dataset], Dataset] | None = None,
    validation: Dataset | None = None,
    n_jobs: int | None = None,
    callback: Callback | None = None,
) -> DescentResult:
    """Learn weights from `n_steps` pairs, sampled chunk by chunk.

    Parameters
    ----------
    source : Store
        The chunks: a `linrank.Store`, or `Parts`.
    algorithm, alpha, C, aggressiveness, n_steps, average, tol, seed, w0, n_jobs, callback
        As in :func:`linrank.stochastic.train.descend`.
    sampling : str
        The distribution of the pairs; not "roc", which compares rows of different chunks.
    record : {None, "sampled", "exact"}
        As there. An exact objective takes a pass over the chunks, a sampled one a pass before the
        first step.
    passes : int, optional
        How often each chunk is visited; see :func:`linrank.stochastic.chunked.passes_for`.
    memory_limit : int, float or str, optional
        Bytes in all; see :func:`linrank.system.resources.allowed`. The result does not
        depend on it.
    taken : int
        Bytes of them that something else has.
    query_weight : array by query of the whole, optional
        Factors c of the pair weights.
    prepare : callable, optional
        What scales the rows of a chunk; the chunk itself otherwise.
    validation : Dataset, optional
        Held-out data that `tol` looks at, scaled.
    """
    train.check_descent(algorithm, n_steps, record, tol)
    check_passes(passes)
    if sampling == "roc":
        raise ValueError(
            "sampling='roc' compares rows of all queries, which are in different chunks of a "
            "store; use another sampling, or linrank.load(store) and its X and y"
        )
    record = "sampled" if record is None and tol is not None else record
    draws = _draws(algorithm, w0, record)
    census = _Census.of(source, sampling, query_weight)
    beside = taken + _bytes_of_pairs(source, draws) + 8 * _VECTORS * source.n_features
    residence = Residence.of(
        memory_limit,
        _rooms(source, census, is_scaled=prepare is not None),
        beside=beside,
        n_readers=2 if record == "exact" else 1,
    )
    loader = Loader(source, sampling, query_weight, prepare or (lambda data: data), residence)
    alpha = train.regularisation(alpha, C, census.total_weight)
    drawn = drawn_from_chunks(loader, census.masses, draws, seed)
    objective: train.Objective | None = None
    if record == "exact":
        objective = ChunkedObjective(loader, census.masses, alpha, resolve(n_jobs))
    elif record is not None:
        objective = train.SampledObjective(drawn[RECORDED], alpha, logistic=algorithm == "logistic")
    watched = objective
    if validation is not None and tol is not None:
        watched = train.held_out(validation, sampling, alpha, algorithm, seed)
    watch = train.Watch(objective, watched, tol, callback)
    run = Course(
        source.n_features,
        [Rule(algorithm, alpha, aggressiveness)],
        n_steps,
        average=average,
        seed=seed,
        w0=w0,
        planned=drawn.get(PLANNED),
    )
    n_passes = passes_for(n_steps, source.n_rows) if passes is None else int(passes)
    is_watched = objective is not None or callback is not None
    with closing(loader.visit(visits(n_steps, census.masses, n_passes, seed))) as chunks:
        verdict = _walk(run, chunks, watch, train.milestones(n_steps) if is_watched else iter(()))
    return train.finished(run, watch, verdict, alpha, census.n_pairs)


def _walk(
    run: Course, chunks: Iterator[tuple[Visit, Loaded]], watch: train.Watch, stops: Iterator[int]
) -> tuple[str, str]:
    """Take the steps of all visits, with a look at every milestone; say why it ended."""
    taken, stop = 0, next(stops, None)
    for visit, loaded in chunks:
        run.move(loaded.rows, loaded.sampler)
        taken += visit.n_steps
        while stop is not None and stop <= taken:
            run.until(stop)
            if (ended := watch(run)) is not None:
                return ended
            stop = next(stops, None)
        run.until(taken)
    return "n_steps", f"took all {taken:,} steps"


def _draws(algorithm: str, w0: Array | None, record: str | None) -> list[Draw]:
    """The pairs that are drawn once, before the first step."""
    planned = [PLANNED] if needs_plan([algorithm], w0) else []
    return planned + ([RECORDED] if record == "sampled" else [])


def _rooms(source: Store, census: _Census, *, is_scaled: bool) -> list[int]:
    """Bytes of each chunk at work."""
    lengths = [extent.rows.stop - extent.rows.start for extent in source.chunks]
    sizes = zip(source.chunks, lengths, census.n_levels, strict=True)
    return [room_of_chunk(e.nbytes, n, int(k), is_scaled=is_scaled) for e, n, k in sizes]


def _bytes_of_pairs(source: Store, draws: Sequence[Draw]) -> int:
    """Two rows a pair, gathered from the chunks and then joined."""
    bytes_a_row = sum(extent.nbytes for extent in source.chunks) / source.n_rows
    return int(sum(4 * draw.n_pairs * bytes_a_row for draw in draws))


_SPARE = 32 << 20  # stacks of threads, and what the allocator does not give back


def descend_store(
    store: Store, scaling: Scaling, *, n_jobs: int | None = None, **options: Any
) -> DescentResult:
    """Learn weights from pairs of a store, its chunks scaled as they are read.

    Parameters
    ----------
    store : Store
        The data.
    scaling : Scaling
        Of its features, as from ``store.statistics``.
    n_jobs : int, optional
        Threads of the exact objective.
    **options
        Those of :func:`linrank.stochastic.chunked.descend_chunks`.
    """
    # One thread scales: another one is at work on the steps.
    prepare = None if scaling.kind == "none" else partial(scaling.applied, n_jobs=1)
    return descend_chunks(
        store,
        prepare=prepare,
        taken=resident() + _SPARE,
        n_jobs=n_jobs,
        **options,
    )
