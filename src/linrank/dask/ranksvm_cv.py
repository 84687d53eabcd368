"""RankSVMCV on a Dask cluster: the folds, the paths and the choice of the one in memory."""

from __future__ import annotations

from typing import Any

import numpy as np

from linrank.dask.estimators import ClusterRanker, check_ranksvm
from linrank.dask.partitions import Partitions
from linrank.dask.parts import DaskParts
from linrank.dask.path import RankOptions
from linrank.dask.training import datasets_on
from linrank.data.dataset import Dataset
from linrank.data.queries import query_weights
from linrank.data.scaling import Scaling
from linrank.estimators import search
from linrank.methods.ranksvm import options_of, settings_of
from linrank.metrics import parse_scoring
from linrank.models.linear import LinearModel
from linrank.pairs.choice import chosen_sizes
from linrank.parts.choices import check_query_weight
from linrank.parts.gathered_rows import gathered
from linrank.parts.path import path_of_parts
from linrank.parts.search import folds_of, tune_parts
from linrank.ranksvm.path import PathResult, as_Cs, solve_path
from linrank.search.folds import as_folds
from linrank.search.grids import tune
from linrank.search.tuning import Tuning
from linrank.system import resources as threads


class RankSVMCV(ClusterRanker, search.RankSVMCV):
    """:class:`linrank.RankSVMCV` for rows on a Dask cluster: the same folds, the same choice.

    For every fold a regularisation path is fitted on the queries of the other folds, which stay on
    their workers, and its models are measured there on the queries of the fold.

    Parameters
    ----------
    Cs, cv, scoring, selection
        As in :class:`linrank.RankSVMCV`. Folds are those that the same rows in memory would have;
        validation data ``cv=(X_val, y_val, qid_val)`` are in memory.
    loss, pairs, pair_weighting, tol, max_iter, scale, query_normalization, positive, coef_bounds
        As in :class:`linrank.RankSVMCV`; of `pairs` ``"all"`` and ``"adjacent"``.
    n_jobs : int or None, default=None
        Threads of what is done here; a worker uses its own threads.
    verbose : int, default=0
        Report each model when positive.
    client, on_split, patience
        As in :class:`linrank.dask.RankSVM`.
    n_closest, n_random, solver, random_state
        Only their defaults; another value is refused.

    Attributes
    ----------
    C_, Cs_, scores_, mean_scores_, best_score_, path_
        As in :class:`linrank.RankSVMCV`.
    coef_, n_iter_, converged_, objective_, duality_gap_, kkt_residual_, history_, model_
        As in :class:`linrank.RankSVMCV`.
    repair_ : Repair
        Queries and rows that were moved to make split queries whole.
    """

    _in_memory = search.RankSVMCV
    _gathers = True

    def __init__(
        self,
        Cs: Any = "auto",
        *,
        cv: Any = None,
        scoring: str = "ndcg@10",
        selection: str = "best",
        loss: str = "squared_hinge",
        pairs: str = "all",
        n_closest: int | str = "auto",
        n_random: int | str = "auto",
        pair_weighting: str = "uniform",
        solver: str = "newton",
        tol: float | None = None,
        max_iter: int | None = None,
        scale: str = "none",
        query_normalization: str | None = None,
        positive: bool = False,
        coef_bounds: Any = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        client: Any = None,
        on_split: str = "repair",
        patience: float = 60.0,
    ) -> None:
        searching: dict[str, Any] = {
            "cv": cv,
            "scoring": scoring,
            "selection": selection,
            "loss": loss,
            "pairs": pairs,
            "n_closest": n_closest,
            "n_random": n_random,
            "pair_weighting": pair_weighting,
            "solver": solver,
            "tol": tol,
            "max_iter": max_iter,
            "scale": scale,
            "query_normalization": query_normalization,
            "positive": positive,
            "coef_bounds": coef_bounds,
            "random_state": random_state,
            "n_jobs": n_jobs,
            "verbose": verbose,
        }
        super().__init__(Cs, **searching)
        self.client = client
        self.on_split = on_split
        self.patience = patience

    def fit(  # type: ignore[override]
        self,
        X: Any,
        y: Any = None,
        *,
        qid: Any = None,
        sample_weight: Any = None,
        query_weight: Any = None,
    ) -> RankSVMCV:
        """Choose C and learn ``coef_`` with it, on the cluster.

        Parameters
        ----------
        X, y, qid, sample_weight, query_weight
            The training data, as in :meth:`linrank.dask.RankSVM.fit`.

        Returns
        -------
        RankSVMCV
            The fitted estimator.
        """
        grid = as_Cs(self.Cs)
        parse_scoring(self.scoring)
        check_ranksvm(self)
        weight = check_query_weight(query_weight)
        with self._partitions(X, y, qid, sample_weight) as data:
            return self._fit_on(data, grid, weight)

    def _fit_on(self, data: Partitions, grid: Any, weight: Any) -> RankSVMCV:
        if data.is_split:
            with datasets_on(data, self.patience) as datasets:
                found = self._gathered(gathered(datasets), grid, weight)
        else:
            found = self._over_parts(data, grid, weight)
        tuning, path, scaling, n_pairs = found
        result = path.results[tuning.chosen]
        settings = settings_of(self, options_of(self)) | {"scoring": self.scoring}
        model = LinearModel.of_sizes(
            result,
            data.feature_names,
            scaling,
            n_rows=data.n_rows,
            n_queries=data.n_queries,
            n_pairs=n_pairs,
            **settings,
            **tuning.choice,
        )
        self._adopt_cluster(result, model, data)
        self.history_ = result.history
        self._adopt_choice(tuning, path)
        self.n_iter_ = int(path.n_iter[: tuning.chosen + 1].sum())
        return self

    def _over_parts(
        self, data: Partitions, grid: Any, query_weight: Any
    ) -> tuple[Tuning, PathResult, Scaling, int]:
        """Folds of queries that lie whole in their partitions."""
        parts = DaskParts(data, self.patience, threads.resolve(self.n_jobs))
        recipe = self._rank_options().of_chunks(query_weight)
        options = self._path_options()
        folds = folds_of(self.cv, parts)
        tuning = tune_parts(
            parts, folds, recipe, grid, scoring=self.scoring, **self._choosing(), **options
        )
        found = path_of_parts(parts, recipe, grid, **options)
        return tuning, found.path, found.scaling, found.n_pairs

    def _gathered(
        self, lazy: Dataset, grid: Any, query_weight: Any
    ) -> tuple[Tuning, PathResult, Scaling, int]:
        """The same by gathered scores, where queries are split or there is one only."""
        options = {
            **self._rank_options().of_gathered(None),
            **self._path_options(),
            "query_weight": query_weights(query_weight, lazy.queries),
            "n_jobs": self.n_jobs,
        }
        folds = as_folds(self.cv, lazy, np.empty((lazy.n_rows, 0)))
        tuning = tune(lazy, folds, grid, scoring=self.scoring, **self._choosing(), **options)
        path, scaling = solve_path(lazy, grid, **options)
        return tuning, path, scaling, chosen_sizes(lazy.queries, self.pairs)["n_pairs"]

    def _rank_options(self) -> RankOptions:
        return RankOptions(self.loss, self.pairs, self.pair_weighting, self.query_normalization)

    def _path_options(self) -> dict[str, Any]:
        names = ("tol", "max_iter", "scale", "positive", "coef_bounds")
        return {name: getattr(self, name) for name in names}

    def _choosing(self) -> dict[str, Any]:
        return {"selection": self.selection, "progress": self._progress}
