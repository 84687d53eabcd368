"""descend_chunks: a stochastic fit on data in chunks, of which one or two are in memory.

The steps of a pass are shared out among the chunks by the mass of their pairs, and taken chunk by
chunk. Every pair is drawn as often, in expectation, as by the sampler of the whole; what differs is
the order, for the pairs of a visit are all of one chunk. Visits are short (`passes_for`), and their
order is drawn anew in each pass. The memory allowed decides what is read again and when, and never
what is computed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import tee
from typing import Any, NamedTuple

import numpy as np

from linrank import _core
from linrank.data import Array, Queries, Rows, Scaling, join_rows
from linrank.errors import NoPairsError, check_natural
from linrank.io.store.store import Store
from linrank.stochastic import train
from linrank.stochastic.samplers import Draw, DrawnPairs, PairSampler, pair_sampler
from linrank.system import Plan, Reader, resolve

_STEPS_PER_ROW = 0.25  # of one visit: more, and the weights follow the chunk at hand


class Visit(NamedTuple):
    """Steps to be taken on pairs of one chunk, one after the other."""

    chunk: int
    n_steps: int


def passes_for(n_steps: int, n_rows: int) -> int:
    """Passes that make a visit a quarter of a step for each row, at least 1.

    Within a visit all pairs are of one chunk. With a few steps per row they would be learned by
    heart before the next chunk comes; with much fewer, reading takes longer than stepping.

    Examples
    --------
    >>> passes_for(100_000, 1_000_000), passes_for(1_000_000, 1_000_000)
    (1, 4)
    """
    return max(1, math.ceil(n_steps / (_STEPS_PER_ROW * n_rows)))


def share_out(n: int, weights: Array, shift: float) -> Array:
    """n things by weight: each share rounded up or down, and right on average over the shift.

    Share k is the number of integers in ``(n W_{k-1} + u, n W_k + u]``, with the running sums W of
    the weights, scaled to end at 1, and the shift u: its mean over u in [0, 1) is ``n w_k``. All
    shares sum to n, and a weight of 0 gets nothing.

    Examples
    --------
    >>> share_out(10, np.array([1.0, 0.0, 2.0]), 0.4)
    array([3, 0, 7])
    """
    sums = np.cumsum(weights, dtype=np.float64)
    ends = np.floor(n * (sums / sums[-1]) + shift).astype(np.int64)
    # sums/sums[-1] ends at 1 exactly; n + u may still be rounded up, to one thing too many.
    return np.diff(np.minimum(ends, n), prepend=0)


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
        for chunk, count in zip(order, share_out(n, masses[order], shift), strict=True):
            if count:
                yield Visit(int(chunk), int(count))


# ---- chunks and their pairs ---------------------------------------------------------------------


def walk_chunks(reader: Reader, chunks: Iterable[int]) -> Iterator[tuple[int, Rows, PairSampler]]:
    """Chunks with their samplers, each there until the next is asked for."""
    walk = reader.walk(chunks)
    try:
        for i, loaded in walk:
            if i < reader.plan.n_kept:
                reader.here[i] = loaded
            yield i, *loaded
    finally:
        walk.close()


def draw_from_chunks(
    reader: Reader, masses: Array, draws: Sequence[Draw], seed: int
) -> dict[Draw, DrawnPairs]:
    """The pairs of each draw, from all chunks by their masses, with copies of their rows.

    One stream of random numbers per draw goes on from chunk to chunk: of one chunk the pairs are
    those of `DrawnPairs.of`.
    """
    if not draws:
        return {}
    streams = [_core.Random(draw.seed(seed)) for draw in draws]
    # The half is as good as any shift: which chunk has one pair more than its share moves nothing.
    counts = [share_out(draw.n_pairs, masses, 0.5) for draw in draws]
    found: list[list[tuple[Rows, Array]]] = [[] for _ in draws]
    for i, rows, sampler in walk_chunks(reader, np.flatnonzero(masses).tolist()):
        for parts, count, stream in zip(found, counts, streams, strict=True):
            if n := int(count[i]):
                pairs = np.concatenate(sampler.core.draw(stream, n))
                drawn, places = np.unique(pairs, return_inverse=True)
                parts.append((rows.take(drawn), places.reshape(2, n)))
    return {draw: _join(parts) for draw, parts in zip(draws, found, strict=True)}


def _join(parts: list[tuple[Rows, Array]]) -> DrawnPairs:
    heads = np.cumsum([0, *(rows.shape[0] for rows, _ in parts)])
    places = [pairs + head for (_, pairs), head in zip(parts, heads[:-1], strict=True)]
    winners, losers = np.concatenate(places, axis=1)
    return DrawnPairs(join_rows([rows for rows, _ in parts]), winners, losers)


def _census(
    source: Store, sampler_of: Callable[[int, Queries, Array | None], PairSampler | None]
) -> tuple[Array, Array, int]:
    """The masses and numbers of levels of all chunks, and their pairs, without the features."""
    n_pairs = 0
    masses, n_levels = np.zeros(source.n_chunks), np.zeros(source.n_chunks, np.int64)
    for i in range(source.n_chunks):
        queries = source.read_queries(i)
        n_levels[i] = queries.n_levels.sum(dtype=np.int64)
        if (sampler := sampler_of(i, queries, source.read_weight(i))) is not None:
            masses[i], n_pairs = sampler.mass, n_pairs + sampler.n_pairs
    if not masses.any():
        raise NoPairsError(
            f"none of the {source.n_chunks} chunks ({source.n_rows} rows) has a pair of "
            "positive weight; check labels, qid and weights"
        )
    return masses, n_levels, n_pairs


def descend_chunks(
    source: Store,
    *,
    passes: int | None = None,
    memory_limit: Any = None,
    query_weight: Array | None = None,
    scaling: Scaling | None = None,
    **options: Any,
) -> train.DescentResult:
    """Learn weights from pairs that are sampled chunk by chunk.

    Parameters
    ----------
    source : Store
        The chunks.
    passes : int, optional
        How often each chunk is visited; see :func:`linrank.stochastic.chunked.passes_for`.
    memory_limit : int, float or str, optional
        Bytes that the descent may take beyond what the process holds already. The result does not
        depend on it.
    query_weight : array by query of the whole, optional
        Factors c of the pair weights.
    scaling : Scaling, optional
        Of the features, as from ``store.statistics``; chunks are scaled as they are read.
    **options
        As in :class:`linrank.stochastic.train.Order`; not the sampling "roc", which compares rows
        of different chunks. An exact objective takes a pass over the chunks, a sampled one a pass
        before the first step.
    """
    order = train.Order(**options)
    check_natural("passes", passes, " or None", optional=True)
    if order.sampling == "roc":
        raise ValueError(
            "sampling='roc' compares rows of all queries, which are in different chunks of a "
            "store; use another sampling, or linrank.load(store) and its X and y"
        )

    def sampler_of(i: int, queries: Queries, weight: Array | None) -> PairSampler | None:
        """The sampler of chunk i; None if it has no pair to draw."""
        c = None if query_weight is None else query_weight[source.chunks[i].queries]
        if any(factors is not None and not factors.any() for factors in (weight, c)):
            return None
        try:
            return pair_sampler(queries, order.sampling, row_weight=weight, query_weight=c)
        except NoPairsError:
            return None

    def read(i: int, buffer: Any) -> tuple[Rows, PairSampler]:
        """Chunk i, its rows in the buffer unless they are scaled."""
        data = source.read(i, into=buffer)
        if scaling is not None and is_scaled:  # by one thread: another is at work on the steps
            data = scaling.applied(data, n_jobs=1)
        if (sampler := sampler_of(i, data.queries, data.weight)) is None:
            raise NoPairsError(f"chunk {i} has no pairs any more: the data have changed")
        _ = sampler.core, data.rows.core  # made here, beside the steps on the chunk before
        return data.rows, sampler

    is_scaled = scaling is not None and scaling.kind != "none"
    masses, n_levels, n_pairs = _census(source, sampler_of)
    total = float(masses.sum())
    # The weights of "query-level" sum to 1, whatever the number of queries.
    weight = 1.0 if order.sampling == "query-level" else total
    alpha = train.regularization(order.alpha, order.C, weight)
    is_exact = order.record == "exact"
    plan = _plan(memory_limit, source, n_levels, order, is_scaled)
    with Reader(read, source.buffer, source.n_chunks, plan) as reader:

        def parts() -> Iterator[tuple[float, Rows, PairSampler]]:
            """In the mean over all pairs that of a chunk counts by its share of the mass."""
            for i, rows, sampler in walk_chunks(reader, np.flatnonzero(masses).tolist()):
                yield float(masses[i] / total / sampler.total_weight / alpha), rows, sampler

        drawn = draw_from_chunks(reader, masses, order.draws, order.seed)
        exact = train.ExactObjective(parts, alpha, resolve(order.n_jobs)) if is_exact else None
        n_passes = passes_for(order.n_steps, source.n_rows) if passes is None else int(passes)
        course, ahead = tee(visits(order.n_steps, masses, n_passes, order.seed))
        chunks = walk_chunks(reader, (visit.chunk for visit in ahead))
        walk = ((visit.n_steps, *one[1:]) for visit, one in zip(course, chunks, strict=True))
        return order.descend(source.n_features, walk, drawn, exact, alpha, n_pairs)


# Beside the features: label, level, weight and id of a row, and the tables of a sampler while they
# are built, where a weighted row is twice, with running sums, and a level of a query is a cell.
_BYTES_A_ROW = 120
_BYTES_A_LEVEL = 200
_VECTORS = 8  # of the length of the weights, that the steps and the milestones work with
_SPARE = 8 << 20  # what allocators do not give back, and stacks of threads


def _plan(
    memory_limit: Any, source: Store, n_levels: Array, order: train.Order, is_scaled: bool
) -> Plan:
    """Which chunks stay; an exact objective walks over them beside the steps."""
    n_readers = 1 + (order.record == "exact")  # each with a chunk of its own
    rooms = [
        extent.nbytes * (2 if is_scaled else 1)  # scaled rows are a copy
        + _BYTES_A_ROW * (extent.rows.stop - extent.rows.start)
        + _BYTES_A_LEVEL * int(n)
        for extent, n in zip(source.chunks, n_levels, strict=True)
    ]
    bytes_a_row = sum(extent.nbytes for extent in source.chunks) / source.n_rows
    # Two rows a pair that is drawn, gathered from the chunks and then joined; a fifth for indices.
    pairs = int(sum(5 * draw.n_pairs * bytes_a_row for draw in order.draws))
    return Plan.of(
        memory_limit,
        f"a descent over chunks of {max(rooms) / 1e6:.3g} MB (features, labels, tables of pairs)",
        beside=_SPARE + pairs + 8 * _VECTORS * source.n_features,
        n_buffers=1,
        buffer=n_readers * max(rooms),
        kept=rooms,
    )
