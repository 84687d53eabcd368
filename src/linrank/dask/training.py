"""Training on the partitions of a cluster: the solver runs here, every pass over the rows there."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from linrank.dask import rounds
from linrank.dask.clients import release
from linrank.dask.gathering import DaskChunks
from linrank.dask.keeper import Keeper, digest
from linrank.dask.partitions import Partitions
from linrank.data.queries import query_weights
from linrank.data.rows import ColumnStatistics
from linrank.data.scaling import Scaling
from linrank.models.linear import LinearModel
from linrank.pairs.choice import chosen_sizes
from linrank.parts.gathered_rows import gathered
from linrank.parts.recipes import DominationRecipe, RankRecipe, Recipe
from linrank.parts.train import train_domination_chunks, train_rank_chunks
from linrank.ranksvm.train import train
from linrank.solvers.result import Callback, Result
from linrank.system import resources as threads

Array = NDArray[Any]

# Of the rows that come to the client to find a start from. Ten times as many save no round on
# MSLR's shape, and cost the client as much as three products of two workers.
_SAMPLE_BYTES = 32 << 20
_SAMPLE_ROWS = 50  # for each feature: as many as a preconditioner wants, whatever their bytes


@dataclass(frozen=True, eq=False)
class Options:
    """What every training on a cluster takes beside its losses.

    Attributes
    ----------
    tol, max_iter
        As in `linrank.ranksvm.train.train`.
    w0 : float64 array (n_features,), optional
        Start, in the scaled space.
    patience : float
        Seconds for which no worker may be there, or the scheduler silent.
    checkpoint, resume
        As in `linrank.dask.keeper.Keeper`.
    n_jobs : int, optional
        Threads of the work on a sample, which is done here.
    callback : callable, optional
        Called with the state of each iterate; stops the solver by returning True.
    """

    tol: float | None = None
    max_iter: int | None = None
    w0: Array | None = None
    patience: float = 60.0
    checkpoint: Any = None
    resume: bool = False
    n_jobs: int | None = None
    callback: Callback | None = None


@dataclass(frozen=True, eq=False)
class Outcome:
    """What a training on a cluster leaves behind.

    Attributes
    ----------
    result : Result
        Of the solver.
    n_pairs : int
        That were compared.
    n_rounds, n_repeated : int
        Rounds of tasks, and those of them that had to be repeated.
    n_before : int
        Iterations of the fits that this one went on from.
    """

    result: Result
    n_pairs: int
    n_rounds: int
    n_repeated: int
    n_before: int

    def model(self, data: Partitions, scaling: Scaling, **settings: Any) -> LinearModel:
        """The model, with what it is to know of its training."""
        training = {
            **settings,
            **self.result.summary,
            "n_rows": data.n_rows,
            "n_queries": data.n_queries,
            "n_pairs": self.n_pairs,
        }
        return LinearModel(scaling.fold(self.result.w), data.feature_names, scaling, training)


def scaling_of(kind: str, data: Partitions, patience: float = 60.0) -> Scaling:
    """The scaling of this kind for all rows, by one pass over the partitions where it needs one."""
    if Scaling.is_plain(kind):
        return Scaling(kind)
    with datasets_on(data, patience) as datasets:
        statistics: ColumnStatistics = datasets.total(rounds.column_statistics)
    return Scaling.of_statistics(kind, statistics)


@contextmanager
def chunks_on(
    data: Partitions, recipe: Recipe, patience: float = 60.0, keep: bool = False
) -> Iterator[DaskChunks]:
    """The chunks of the partitions on their workers, forgotten at the end, however it comes.

    A chunk shares the rows of its dataset, but Dask would count them twice and spill them to disk
    too early: unless ``keep``, the datasets are forgotten at once, and the partitions are used up.
    """
    name = f"linrank-chunk-{uuid.uuid4().hex}"
    keys = [f"{name}-{i}" for i in range(len(data.futures))]
    futures = data.client.map(rounds.make_chunk, data.futures, recipe=recipe, key=keys)
    numbers = [summary.number for summary in data.summaries]
    chunks = DaskChunks(data.client, futures, patience, numbers)
    if not keep:
        release(data.futures)
    try:
        yield chunks
    finally:
        chunks.release()


@contextmanager
def datasets_on(data: Partitions, patience: float = 60.0) -> Iterator[DaskChunks]:
    """The partitions themselves, to run tasks on; they stay, what is left of tasks goes."""
    numbers = [summary.number for summary in data.summaries]
    datasets = DaskChunks(data.client, data.futures, patience, numbers)
    try:
        yield datasets
    finally:
        datasets.forget()


def train_ranksvm(
    data: Partitions,
    recipe: RankRecipe,
    *,
    C: float,
    scaling: Scaling,
    options: Options,
    bounds: tuple[Array, Array] | None = None,
) -> Outcome:
    """Minimise the objective of `linrank.RankSVM` over all partitions."""
    fit = _fingerprint(data, scaling, recipe.query_weight) | {
        "method": "ranksvm",
        "C": float(C),
        "loss": recipe.loss,
        "pairs": recipe.pairs,
        "pair_weighting": recipe.pair_weighting,
        "query_normalization": recipe.query_normalization,
        "bounds": None if bounds is None else digest(*bounds),
    }
    keeper = Keeper(options.checkpoint, options.resume, fit, compares=recipe.loss != "hinge")
    if data.is_split:
        with keeper.advising(), datasets_on(data, options.patience) as blocks:
            return _train_split(blocks, recipe, C, scaling, options, bounds, keeper)
    with keeper.advising(), chunks_on(data, recipe, options.patience) as chunks:
        result, problem = train_rank_chunks(
            chunks,
            recipe,
            C=C,
            scale=scaling.factors,
            bounds=bounds,
            capacity=sample_capacity(data),
            **_common(options, keeper),
        )
    return _outcome(result, problem.n_pairs, chunks, keeper)


def _train_split(
    blocks: DaskChunks,
    recipe: RankRecipe,
    C: float,
    scaling: Scaling,
    options: Options,
    bounds: tuple[Array, Array] | None,
    keeper: Keeper,
) -> Outcome:
    """The same where queries lie in several partitions: scores are gathered and swept here."""
    lazy = scaling.transformed(gathered(blocks))
    common = _common(options, keeper)
    common["n_jobs"] = common.pop("n_threads")
    result = train(
        lazy,
        C=C,
        loss=recipe.loss,
        pairs=recipe.pairs,
        pair_weighting=recipe.pair_weighting,
        query_normalization=recipe.query_normalization,
        query_weight=query_weights(recipe.query_weight, lazy.queries),
        scale=scaling.factors,
        bounds=bounds,
        **common,
    )
    return _outcome(result, chosen_sizes(lazy.queries, recipe.pairs)["n_pairs"], blocks, keeper)


def train_domination(
    data: Partitions,
    recipe: DominationRecipe,
    *,
    alpha: float,
    scaling: Scaling,
    options: Options,
) -> Outcome:
    """Minimise the objective of `linrank.DominationRanker` with its l2 penalty."""
    fit = _fingerprint(data, scaling, recipe.query_weight) | {
        "method": "domination",
        "alpha": float(alpha),
        "layers": recipe.layers if isinstance(recipe.layers, str) else "function",
        "margin": repr(recipe.margin),
    }
    keeper = Keeper(options.checkpoint, options.resume, fit)
    with keeper.advising(), chunks_on(data, recipe, options.patience) as chunks:
        result, problem = train_domination_chunks(
            chunks,
            recipe,
            alpha=alpha,
            scale=scaling.factors,
            capacity=sample_capacity(data),
            **_common(options, keeper),
        )
    return _outcome(result, problem.n_pairs, chunks, keeper)


def sample_capacity(data: Partitions) -> int:
    """Rows that may come to the client as a sample; a twentieth of them all would not fit there.

    It depends on the data alone: with the number of workers in it, the result would.
    """
    row = max(1, data.nbytes // max(1, data.n_rows))
    return max(_SAMPLE_ROWS * data.n_features, _SAMPLE_BYTES // row)


def _common(options: Options, keeper: Keeper) -> dict[str, Any]:
    return {
        "tol": options.tol,
        "max_iter": options.max_iter,
        "w0": options.w0 if keeper.w0 is None else keeper.w0,
        "n_threads": threads.resolve(options.n_jobs),
        "callback": keeper.callback(options.callback),
    }


def _outcome(result: Result, n_pairs: int, chunks: DaskChunks, keeper: Keeper) -> Outcome:
    return Outcome(result, n_pairs, chunks.n_rounds, chunks.n_repeated, keeper.n_before)


def _fingerprint(
    data: Partitions, scaling: Scaling, query_weight: Mapping[Any, float] | None
) -> dict[str, Any]:
    """What says of which data a checkpoint is; how they are partitioned does not matter."""
    return {
        "n_rows": data.n_rows,
        "n_features": data.n_features,
        "n_queries": data.n_queries,
        "scale": scaling.kind,
        "query_weight": digest(query_weight),
    }
