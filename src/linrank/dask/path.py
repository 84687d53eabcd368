"""Regularisation paths on a cluster."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from linrank.dask.partitions import Partitions, partitions_of
from linrank.dask.parts import DaskParts
from linrank.dask.training import datasets_on
from linrank.data.queries import query_weights
from linrank.options import SELECTED_PAIRS
from linrank.parts.choices import check_query_weight, check_rank
from linrank.parts.gathered_rows import gathered
from linrank.parts.path import PartsPath, path_of_parts
from linrank.parts.recipes import RankRecipe
from linrank.ranksvm.path import PathResult, as_Cs, solve_path, warn_unless_certified
from linrank.solvers.result import Callback
from linrank.system import resources as threads
from linrank.system.seeds import seed_of


def ranksvm_path(
    X: Any,
    y: Any = None,
    qid: Any = None,
    *,
    Cs: Any = "auto",
    loss: str = "squared_hinge",
    pairs: str = "all",
    n_closest: int | str = "auto",
    n_random: int | str = "auto",
    pair_weighting: str = "uniform",
    tol: float | None = None,
    max_iter: int | None = None,
    scale: str = "none",
    query_normalization: str | None = None,
    positive: bool = False,
    coef_bounds: Any = None,
    sample_weight: Any = None,
    query_weight: Any = None,
    random_state: Any = None,
    client: Any = None,
    on_split: str = "repair",
    patience: float = 60.0,
    n_jobs: int | None = None,
    callback: Callback | None = None,
) -> PathResult:
    """Fit ``RankSVM`` for many C on a cluster, each model certified to ``tol``.

    The models are those of :func:`linrank.ranksvm_path` on the same rows, to within their gaps.
    The partitions stay on their workers from the first C to the last.

    Parameters
    ----------
    X, y, qid, sample_weight, query_weight
        The data, as in :meth:`linrank.dask.RankSVM.fit`.
    Cs, loss, pair_weighting, tol, max_iter, scale, query_normalization, positive, coef_bounds
        As in :func:`linrank.ranksvm_path`.
    pairs, n_closest, n_random, random_state
        As there; ``"closest"`` and ``"pruned"`` where scores are gathered only (`on_split`).
    client : dask.distributed.Client or None
        The cluster; None takes the client in force.
    on_split : {"repair", "error", "gather"}, default="repair"
        What to do with a query whose rows lie in several partitions: move them to one, refuse, or
        leave them and gather the scores of all rows, 8 bytes each, for every product.
    patience : float, default=60
        Seconds for which no worker may be there before the fit is given up.
    n_jobs : int or None
        Threads of what is done here: work on samples, and the sweep of gathered scores.
    callback : callable or None
        Called with the state of each iterate, ``"C"`` included; returning True ends the path.

    Returns
    -------
    PathResult
    """
    grid = as_Cs(Cs)
    options = RankOptions(loss, pairs, pair_weighting, query_normalization, n_closest, n_random)
    training = {
        "tol": tol,
        "max_iter": max_iter,
        "scale": scale,
        "positive": positive,
        "coef_bounds": coef_bounds,
        "callback": callback,
    }
    with partitions_of(
        X, y, qid, sample_weight, client, on_split=on_split, gathers=True, patience=patience
    ) as data:
        if data.is_split:
            with datasets_on(data, patience) as datasets:
                lazy = gathered(datasets)
                path, _ = solve_path(
                    lazy,
                    grid,
                    query_weight=query_weights(query_weight, lazy.queries),
                    n_jobs=n_jobs,
                    **options.of_gathered(random_state),
                    **training,
                )
        else:
            path = path_on(data, options, query_weight, grid, patience, n_jobs, **training).path
    warn_unless_certified(path)
    return path


@dataclass(frozen=True)
class RankOptions:
    """The losses of a RankSVM by the names of its parameters."""

    loss: str = "squared_hinge"
    pairs: str = "all"
    pair_weighting: str = "uniform"
    query_normalization: str | None = None
    n_closest: int | str = "auto"
    n_random: int | str = "auto"

    def of_chunks(self, query_weight: Any) -> RankRecipe:
        """The recipe of chunks of whole queries; what they cannot serve is refused."""
        known: dict[str, Any] = {
            "loss": self.loss,
            "pairs": self.pairs,
            "pair_weighting": self.pair_weighting,
            "query_normalization": self.query_normalization,
        }
        check_rank("partitions of whole queries", solver="newton", **known)
        return RankRecipe(**known, query_weight=check_query_weight(query_weight))

    def of_gathered(self, random_state: Any) -> dict[str, Any]:
        """Options of `linrank.ranksvm.train.train`, which knows them all."""
        seed = seed_of(random_state) if self.pairs in SELECTED_PAIRS else 0
        return {**vars(self), "seed": seed}


def path_on(
    data: Partitions,
    options: RankOptions,
    query_weight: Any,
    Cs: Any,
    patience: float,
    n_jobs: int | None,
    **training: Any,
) -> PartsPath:
    """The path over partitions of whole queries."""
    parts = DaskParts(data, patience, threads.resolve(n_jobs))
    return path_of_parts(parts, options.of_chunks(query_weight), Cs, **training)
