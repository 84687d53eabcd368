"""RankSVM on a Dask cluster: the parameters of the one in memory, and four of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from linrank.dask.partitions import Partitions
from linrank.dask.ranker import ClusterRanker, Refused, refuse
from linrank.dask.training import train_ranksvm
from linrank.data.bounds import weight_bounds
from linrank.data.dataset import Dataset
from linrank.estimators import ranksvm as estimators
from linrank.estimators.base import ExactRanker
from linrank.parts.choices import check_query_weight, check_rank
from linrank.parts.recipes import RankRecipe

_CHOICES = ("loss", "pairs", "pair_weighting", "solver", "query_normalization")
_NO_LIST: Refused = ("n_closest", "auto", "it counts listed pairs; use pairs='all' or 'adjacent'")
_OF_RANKSVM: tuple[Refused, ...] = (
    _NO_LIST,
    ("n_random", *_NO_LIST[1:]),
    ("random_state", None, "nothing is random here"),
)


class RankSVM(ClusterRanker, ExactRanker):
    """:class:`linrank.RankSVM` for rows on a Dask cluster: the same objective, the same solver.

    Every pass over the rows is a round of tasks, one a worker; Newton's method itself runs where
    ``fit`` is called. A lost worker costs its part of a round, and changes no bit of the result.

    Parameters
    ----------
    C, loss, pairs, pair_weighting, tol, max_iter, scale, query_normalization, positive, coef_bounds
        As in :class:`linrank.RankSVM`; of `pairs` ``"all"`` and ``"adjacent"``.
    warm_start, early_stopping, n_iter_no_change, scoring, callback, verbose
        As in :class:`linrank.RankSVM`. Validation data are in memory.
    n_jobs : int or None, default=None
        Threads of the work on a sample, which is done here; a worker uses its own threads.
    client : distributed.Client or None, default=None
        None takes the one in force.
    on_split : {"repair", "error", "gather"}, default="repair"
        What to do with a query whose rows lie in several partitions: bring them together, raise, or
        leave them and gather the scores of all rows, 8 bytes each, for every product. Without `qid`
        all rows are one query, and scores are gathered where there are several partitions.
    checkpoint : str, os.PathLike or None, default=None
        A file for the weights of each iteration, to go on from when the cluster is lost.
    patience : float, default=60
        Seconds for which no worker may be there, or the scheduler silent, before
        :class:`linrank.errors.ClusterError` is raised.
    solver, n_closest, n_random, random_state
        Only their defaults; another value is refused.

    Attributes
    ----------
    coef_, n_iter_, converged_, objective_, duality_gap_, kkt_residual_, history_, model_
        As in :class:`linrank.RankSVM`, as are ``best_iteration_``, ``n_pairs_``, ``n_queries_``,
        ``needs_qid_``, ``n_features_in_`` and ``feature_names_in_``.
    repair_ : Repair
        Queries and rows that were moved to make split queries whole.
    n_rounds_, n_repeated_ : int
        Rounds of tasks, and how many were repeated because a worker was lost.
    """

    _in_memory = estimators.RankSVM
    _gathers = True

    def __init__(
        self,
        C: float = 1.0,
        *,
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
        warm_start: bool = False,
        early_stopping: bool = False,
        n_iter_no_change: int = 5,
        scoring: str = "ndcg@10",
        random_state: Any = None,
        callback: Callable[[dict[str, Any]], bool | None] | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        client: Any = None,
        on_split: str = "repair",
        checkpoint: Any = None,
        patience: float = 60.0,
    ) -> None:
        self.C = C
        self.loss = loss
        self.pairs = pairs
        self.n_closest = n_closest
        self.n_random = n_random
        self.pair_weighting = pair_weighting
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.scale = scale
        self.query_normalization = query_normalization
        self.positive = positive
        self.coef_bounds = coef_bounds
        self.warm_start = warm_start
        self.early_stopping = early_stopping
        self.n_iter_no_change = n_iter_no_change
        self.scoring = scoring
        self.random_state = random_state
        self.callback = callback
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.client = client
        self.on_split = on_split
        self.checkpoint = checkpoint
        self.patience = patience

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        qid: Any = None,
        sample_weight: Any = None,
        query_weight: Any = None,
        X_val: Any = None,
        y_val: Any = None,
        qid_val: Any = None,
        resume: bool = False,
    ) -> RankSVM:
        """Learn ``coef_`` from labelled rows on the cluster.

        Parameters
        ----------
        X : dask array or dataframe, list of delayed blocks or of futures, Store or its path
            The rows. A store is read by the workers, which must see its folder; it has its own
            labels and queries.
        y, qid, sample_weight : dask array or series, list of blocks, or name of a column
            Labels, queries and weights of the rows, in any partitions. Queries may come in any
            order, and lie in several partitions.
        query_weight : mapping from query id to weight
            Query weights ``c >= 0``.
        X_val, y_val, qid_val : validation data, in memory
            `scoring` is computed on them at every iteration.
        resume : bool, default=False
            Begin with the weights that the file `checkpoint` holds, where there is one.

        Returns
        -------
        RankSVM
            The fitted estimator.
        """
        check_ranksvm(self)
        weights = check_query_weight(query_weight)
        with self._partitions(X, y, qid, sample_weight) as data:
            return self._fit_on(data, weights, resume, X_val, y_val, qid_val)

    def _fit_on(
        self, data: Partitions, query_weight: Any, resume: bool, *validation: Any
    ) -> RankSVM:
        scaling = self._scaling(data)
        monitor = self._monitor(data, scaling, *validation)
        recipe = RankRecipe(
            self.loss,
            self.pairs,
            self.pair_weighting,
            self.query_normalization,
            query_weight,
            by_query=scaling.needs_queries,
        )
        described = cast(Dataset, data)  # of which only names and number of features are asked
        bounds = weight_bounds(self.positive, self.coef_bounds, described, scaling.factors)
        options = self._run_options(data, scaling, monitor, resume)
        found = train_ranksvm(
            data, recipe, C=self.C, scaling=scaling, options=options, bounds=bounds
        )
        settings = {"C": self.C, **self._settings(self._options())}
        self._finish(found, data, scaling, monitor, **settings)
        return self


def check_ranksvm(ranker: Any) -> None:
    """Raise ValueError for a parameter of a RankSVM that a cluster cannot serve."""
    check_rank("a cluster", **{name: getattr(ranker, name) for name in _CHOICES})
    refuse(ranker, _OF_RANKSVM)
