"""descend_chunks: a stochastic fit on data in chunks, of which one or two are in memory.

The steps of a pass are shared out among the chunks by the mass of their pairs, and taken chunk by
chunk. Every pair is drawn as often, in expectation, as by the sampler of the whole; what differs is
the order, for the pairs of a visit are all of one chunk. Visits are short (`passes_for`), and their
order is drawn anew in each pass. The memory allowed decides what is read again and when, and never
what is computed.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from linrank import threads
from linrank.errors import NoPairsError
from linrank.stochastic.chunked_objectives import ChunkedObjective, drawn_from_chunks
from linrank.stochastic.drawn_pairs import PLANNED, RECORDED, DrawnPairs
from linrank.stochastic.loading import Loader
from linrank.stochastic.objectives import SampledObjective
from linrank.stochastic.residence import Residence, room_of_chunk
from linrank.stochastic.run import Course, Rule, needs_plan
from linrank.stochastic.samplers import pair_sampler
from linrank.stochastic.sources import chunk_sampler
from linrank.stochastic.training import check_descent, finished, regularisation
from linrank.stochastic.visits import check_passes, passes_for, visits
from linrank.stochastic.watch import Watch, milestones

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from linrank.data.dataset import Dataset
    from linrank.stochastic.drawn_pairs import Draw
    from linrank.stochastic.loading import Loaded
    from linrank.stochastic.sources import Source
    from linrank.stochastic.training import DescentResult
    from linrank.stochastic.visits import Visit
    from linrank.stochastic.watch import Callback, Objective

    Array = NDArray[Any]

__all__ = ["descend_chunks"]

_VECTORS = 8  # of the length of the weights, that the steps and the milestones work with


@dataclass(frozen=True, eq=False)
class _Census:
    """What is known of the chunks without their features."""

    masses: Array
    n_levels: Array
    n_pairs: int
    total_weight: float

    @classmethod
    def of(cls, source: Source, sampling: str, query_weight: Array | None) -> _Census:
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
    source: Source,
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
    source : Source
        The chunks: a `linrank.Store`, or `Parts`.
    algorithm, alpha, C, aggressiveness, n_steps, average, tol, seed, w0, n_jobs, callback
        As in :func:`linrank.stochastic.training.descend`.
    sampling : str
        The distribution of the pairs; not "roc", which compares rows of different chunks.
    record : {None, "sampled", "exact"}
        As there. An exact objective takes a pass over the chunks, a sampled one a pass before the
        first step.
    passes : int, optional
        How often each chunk is visited; see :func:`linrank.stochastic.visits.passes_for`.
    memory_limit : int, float or str, optional
        Bytes in all; see :func:`linrank.memory.allowed`. The result does not depend on it.
    taken : int
        Bytes of them that something else has.
    query_weight : array by query of the whole, optional
        Factors c of the pair weights.
    prepare : callable, optional
        What scales the rows of a chunk; the chunk itself otherwise.
    validation : Dataset, optional
        Held-out data that `tol` looks at, scaled.
    """
    check_descent(algorithm, n_steps, record, tol)
    check_passes(passes)
    _check_sampling(sampling)
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
    loader = Loader(source, sampling, query_weight, prepare or _unchanged, residence)
    alpha = regularisation(alpha, C, census.total_weight)
    drawn = drawn_from_chunks(loader, census.masses, draws, seed)
    objective = _objective(
        loader, census, drawn, alpha, record, algorithm == "logistic", threads.resolve(n_jobs)
    )
    watched = objective
    if validation is not None and tol is not None:
        watched = _held_out(validation, sampling, alpha, algorithm == "logistic", seed)
    watch = Watch(objective, watched, tol, callback)
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
        verdict = _walk(run, chunks, watch, milestones(n_steps) if is_watched else iter(()))
    return finished(run, watch, verdict, alpha, census.n_pairs)


def _walk(
    run: Course, chunks: Iterator[tuple[Visit, Loaded]], watch: Watch, stops: Iterator[int]
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


def _rooms(source: Source, census: _Census, *, is_scaled: bool) -> list[int]:
    """Bytes of each chunk at work."""
    lengths = [extent.rows.stop - extent.rows.start for extent in source.chunks]
    sizes = zip(source.chunks, lengths, census.n_levels, strict=True)
    return [room_of_chunk(e.nbytes, n, int(k), is_scaled=is_scaled) for e, n, k in sizes]


def _bytes_of_pairs(source: Source, draws: Sequence[Draw]) -> int:
    """Two rows a pair, gathered from the chunks and then joined."""
    bytes_a_row = sum(extent.nbytes for extent in source.chunks) / source.n_rows
    return int(sum(4 * draw.n_pairs * bytes_a_row for draw in draws))


def _objective(
    loader: Loader,
    census: _Census,
    drawn: Mapping[Draw, DrawnPairs],
    alpha: float,
    record: str | None,
    logistic: bool,
    n_threads: int,
) -> Objective | None:
    if record is None:
        return None
    if record == "exact":
        return ChunkedObjective(loader, census.masses, alpha, n_threads)
    return SampledObjective(drawn[RECORDED], alpha, logistic=logistic)


def _held_out(
    validation: Dataset, sampling: str, alpha: float, logistic: bool, seed: int
) -> Objective:
    sampler = pair_sampler(validation.queries, sampling, labels=validation.labels)
    drawn = DrawnPairs.of(validation.rows, sampler, RECORDED, seed)
    return SampledObjective(drawn, alpha, logistic=logistic)


def _check_sampling(sampling: str) -> None:
    if sampling == "roc":
        raise ValueError(
            "sampling='roc' compares rows of all queries, which are in different chunks of a "
            "store; use another sampling, or linrank.load(store) and its X and y"
        )


def _unchanged(data: Dataset) -> Dataset:
    return data
