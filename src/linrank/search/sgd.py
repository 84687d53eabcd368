"""The choice of λ and algorithm for stochastic descent: all models of a fold in one pass."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linrank.data.dataset import Dataset
from linrank.data.scaling import Scaling
from linrank.metrics import parse_scoring
from linrank.options import ALGORITHMS
from linrank.ranksvm.path import as_grid
from linrank.search.folds import (
    Fold,
    affordable_folds,
    check_selection,
    edge,
    first_best,
    judge,
    side_by_side,
    simplest,
    weight_of_part,
)
from linrank.stochastic.run import Rule, Run
from linrank.stochastic.samplers import PairSampler, pair_sampler
from linrank.system.threads import resolve

Array = NDArray[Any]

_CHUNK = 1 << 16  # steps between two looks at whether the search was called off


def as_alphas(alphas: Any) -> NDArray[np.float64]:
    """The grid of λ, descending; ``"auto"`` is 1, 0.1, ..., 1e-7: eight models fill a vector."""
    ascending = as_grid("alphas", alphas, [10.0**-k for k in range(8)])
    return np.ascontiguousarray(ascending[::-1])


def as_algorithms(algorithms: Any) -> tuple[str, ...]:
    """The algorithms of a grid: one name or several."""
    names = (algorithms,) if isinstance(algorithms, str) else tuple(algorithms)
    for name in names:
        if name not in ALGORITHMS:
            expected = ", ".join(map(repr, ALGORITHMS))
            raise ValueError(f"algorithms must be some of {expected}, got {name!r}")
    if not names or len(set(names)) < len(names):
        raise ValueError(f"algorithms must be different and at least one, got {algorithms!r}")
    return names


@dataclass(frozen=True, eq=False)
class SGDTuning:
    """The measure of every model on every fold, and the one that they speak for.

    Attributes
    ----------
    algorithms : tuple of str
        In the order of preference among equals.
    alphas : float64 array
        Descending.
    scores : float64 array (n_folds, n_algorithms, n_alphas)
        The measure on the validation part of each fold; an error has a minus sign.
    selection : {"best", "one_se"}
        The rule of choice.
    """

    algorithms: tuple[str, ...]
    alphas: Array
    scores: Array
    selection: str = "best"

    @property
    def mean_scores(self) -> Array:
        """Mean over folds, (n_algorithms, n_alphas)."""
        mean: Array = self.scores.mean(axis=0)
        return mean

    @property
    def chosen(self) -> tuple[int, int]:
        """Algorithm and λ to use, as indices.

        The largest mean; among equals the first algorithm, then the largest λ. ``one_se`` goes on
        to the largest λ of the same algorithm within one standard error.
        """
        a, k = divmod(first_best(self.mean_scores.ravel()), len(self.alphas))
        return (a, k) if self.selection == "best" else (a, simplest(self.scores[:, a]))

    @property
    def rule(self) -> tuple[str, float]:
        """The chosen algorithm and λ."""
        a, k = self.chosen
        return self.algorithms[a], float(self.alphas[k])

    @property
    def edge(self) -> str | None:
        """What to say when the best λ is at an end of the grid; None elsewhere."""
        return edge("alpha", self.alphas, self.mean_scores[self.chosen[0]])


def tune_sgd(
    data: Dataset,
    folds: Sequence[Fold],
    algorithms: tuple[str, ...],
    alphas: Array,
    *,
    n_steps: int,
    sampling: str = "pairs",
    average: str | None = None,
    aggressiveness: float = 1.0,
    scale: str = "none",
    seed: int = 0,
    query_weight: Array | None = None,
    scoring: str = "ndcg@10",
    convention: str = "linrank",
    selection: str = "best",
    n_jobs: int | None = None,
) -> SGDTuning:
    """Train the models of the whole grid on every fold and measure them on what is left out.

    The models of a fold learn from the same pairs, in one pass. Folds of whole queries copy no
    rows, unless a scaling by columns makes them differ: the sampler leaves the other queries out.

    Parameters
    ----------
    data : Dataset
        What the row numbers of the folds refer to.
    folds : sequence of Fold
        Training and validation parts.
    algorithms, alphas
        The grid, as `as_algorithms` and `as_alphas` return it.
    n_steps, sampling, average, aggressiveness, seed
        Of every fold, as in :func:`linrank.stochastic.train.descend`.
    scale : {"none", "standard", "minmax", "query"}
        Feature scaling, fitted on the training part of each fold.
    query_weight : array (n_queries,), optional
        The factors c_q, in the order of ``data.queries``.
    scoring, convention, selection
        The measure, of which less is better if it is an error, and how to choose by it.
    n_jobs : int or None
        Threads in all: folds run side by side, each with its share. Results do not depend on it.
    """
    parse_scoring(scoring)
    check_selection(selection, len(folds))
    rules = [Rule(name, alpha, aggressiveness) for name in algorithms for alpha in alphas.tolist()]
    cancelled = threading.Event()

    def run(k: int, n_threads: int) -> Array:
        fold, part = folds[k], _Part.of(data, folds[k], scale, query_weight, n_threads)
        sampler = part.sampler(sampling)
        models = Run(part.data.rows, sampler, rules, n_steps, average=average, seed=seed)
        while models.n_steps < n_steps and not cancelled.is_set():
            models.until(min(n_steps, models.n_steps + _CHUNK), n_threads)
        coefs = np.array([part.scaling.fold(w) for w in models.weights()])
        return judge(
            coefs, data, fold, k, part.scaling, scoring, convention=convention, n_jobs=n_threads
        )

    copies = data.qid is None or scale != "none"
    most = affordable_folds(data) if copies else len(folds)
    scores = np.array(side_by_side(run, len(folds), most, resolve(n_jobs), cancelled))
    shape = (len(folds), len(algorithms), len(alphas))
    return SGDTuning(algorithms, alphas, scores.reshape(shape), selection)


@dataclass(frozen=True, eq=False)
class _Part:
    """What the models of a fold are trained on."""

    data: Dataset  # rows scaled
    keep: Array | None  # queries that take part; None for all
    query_weight: Array | None
    scaling: Scaling

    @classmethod
    def of(
        cls, data: Dataset, fold: Fold, scale: str, query_weight: Array | None, n_threads: int
    ) -> _Part:
        keep, part, weight = _kept_queries(data, fold.train), data, data.weight
        if fold.train is not None and keep is None:  # queries are divided: a copy of the rows
            part = data.select(fold.train)
            query_weight = weight_of_part(query_weight, data, part, fold.train)
            weight = part.weight
        elif fold.train is not None:  # rows of weight 0 do not count in the scaling
            weight = np.zeros(data.n_rows)
            weight[fold.train] = 1.0 if data.weight is None else data.weight[fold.train]
        scaling = Scaling.fit(scale, part.rows, weight=weight, n_jobs=n_threads)
        return cls(scaling.applied(part, n_jobs=n_threads), keep, query_weight, scaling)

    def sampler(self, sampling: str) -> PairSampler:
        """Pairs of the training part."""
        return pair_sampler(
            self.data.queries,
            sampling,
            labels=self.data.labels,
            row_weight=self.data.weight,
            query_weight=self.query_weight,
            keep=self.keep,
        )


def _kept_queries(data: Dataset, train: Array | None) -> Array | None:
    """The queries that consist of training rows, if the others have none of them; else None."""
    if train is None:
        return None
    queries = data.queries
    is_train = np.zeros(data.n_rows, dtype=np.int64)
    is_train[train] = 1
    n_train = np.add.reduceat(queries.gather(is_train), queries.offsets[:-1])
    keep: Array = n_train == np.diff(queries.offsets)
    return keep if int(n_train.sum()) == int(n_train[keep].sum()) else None
