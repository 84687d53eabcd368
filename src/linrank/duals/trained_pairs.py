"""The pairs that a ranker was trained on, and what makes their α: of a model or of its scores."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linrank.checks import check_one_of, check_positive
from linrank.data.dataset import Dataset
from linrank.data.frames import as_array
from linrank.data.preferences import Preferences
from linrank.data.queries import Queries
from linrank.duals.entries import Entries, HuberEntries, SquaredHingeEntries
from linrank.duals.matrix import DualMatrix
from linrank.duals.of_model import as_dataset, dual_matrix
from linrank.duals.pair_alphas import Listed, chunks, weights
from linrank.model import LinearModel
from linrank.options import LOSSES, SELECTED_PAIRS
from linrank.pairs import Pairs, chosen, random
from linrank.weights import query_weights

__all__ = ["TrainedPairs", "of_dual", "of_model", "of_scores"]

Array = NDArray[Any]
_CHOICE = ("pairs", "n_closest", "n_random", "seed", "pair_weighting", "query_normalization")


@dataclass(frozen=True, eq=False)
class TrainedPairs:
    """Swept pairs and listed ones, and the entries that give α of either."""

    queries: Queries
    swept: Pairs | None
    listed: Preferences | None
    entries: Entries
    loss: str
    C: float

    @property
    def n_pairs(self) -> int:
        n_swept = 0 if self.swept is None else self.swept.n_pairs
        return n_swept + (0 if self.listed is None else len(self.listed))

    @property
    def n_differences(self) -> int:
        """The largest order difference that a pair could have."""
        return int(self.queries.n_levels.max()) - 1

    @property
    def slope(self) -> float:
        """α/ω of a pair with equal scores."""
        return self.C if self.loss == "hinge" else 2.0 * self.C

    @property
    def can_sample(self) -> bool:
        """Whether the pairs are all pairs of the labels, which `linrank.pairs.random` draws."""
        return self.listed is None and self.swept is not None and not self.swept.adjacent

    def parts(self) -> Iterator[tuple[Listed, Array]]:
        """All pairs and their weights ω, a million at a time."""
        if self.swept is not None:
            for listed in chunks(self.swept):
                yield listed, weights(self.swept, listed)
        if self.listed is not None:
            listed = Listed.of_rows(self.queries, self.listed.winners, self.listed.losers)
            yield listed, np.ones(len(listed)) if self.listed.weight is None else self.listed.weight

    def sample(self, n: int, seed: int) -> Iterator[tuple[Listed, Array]]:
        """``n`` of the pairs, drawn uniformly without a list of all, and their weights."""
        if not self.can_sample or self.swept is None:
            raise ValueError(
                "n_sample draws from all pairs of the labels, but the model was trained on chosen "
                "ones; leave it out"
            )
        queries = self.queries
        number = np.repeat(np.arange(queries.n_queries), np.diff(queries.offsets))
        some = random(queries.scatter(queries.levels), queries.scatter(number), n, seed=seed)
        listed = Listed.of_rows(queries, some.winners, some.losers)
        yield listed, weights(self.swept, listed)

    def rows_of(self, listed: Listed) -> Array:
        """The pairs by rows of the matrix, (n_pairs, 2)."""
        pairs = np.column_stack([listed.i, listed.j])
        return pairs if self.queries.order is None else self.queries.order[pairs]


def of_dual(dual: Any) -> TrainedPairs:
    """Of a `DualMatrix` of a RankSVM."""
    if not isinstance(dual, DualMatrix):
        raise TypeError(
            f"give the training data beside a {type(dual).__name__}; a DualMatrix alone has them"
        )
    if dual.kind != "ranksvm":
        raise TypeError(
            f"the α of a {dual.kind} model are no function of single pairs: support_distribution "
            "takes those of RankSVM and KernelRankSVM"
        )
    pairs = dual.pairs
    return TrainedPairs(pairs.queries, pairs, None, dual.entries, dual.loss, dual.C)


def of_model(
    model: Any,
    X: Any,
    y: Any,
    qid: Any,
    epsilon: float | None,
    *,
    group: Any = None,
    sample_weight: Any = None,
    query_weight: Any = None,
    n_jobs: int | None = None,
) -> TrainedPairs:
    """Of a fitted ranker or its model; the hinge of a linear one has exact duals."""
    inner = getattr(model, "model_", model)
    training = getattr(inner, "training", None)
    if not isinstance(training, Mapping) or training.get("loss") not in LOSSES:
        raise TypeError(
            "support_distribution takes a fitted RankSVM or KernelRankSVM, its model, or a "
            f"DualMatrix; got {type(model).__name__}"
        )
    data = as_dataset(X, y, qid, group, sample_weight, n_jobs)
    if isinstance(inner, LinearModel) and training["loss"] == "hinge":
        if training.get("pairs") in SELECTED_PAIRS and _is_listed(training, data):
            raise ValueError(
                f"α of the hinge with pairs={training['pairs']!r} is not known for a linear model "
                "where pairs are listed; use KernelRankSVM(kernel='linear') or the squared hinge"
            )
        return of_dual(dual_matrix(model, data, query_weight=query_weight, n_jobs=n_jobs))
    _check_rows(training, data)
    scores = inner.predict(data.X, qid=data.qid, n_jobs=n_jobs)
    return _of_scores(training, data, scores, query_weight, epsilon)


def of_scores(
    settings: Mapping[str, Any],
    scores: Any,
    y: Any,
    qid: Any,
    epsilon: float | None,
    *,
    group: Any = None,
    sample_weight: Any = None,
    query_weight: Any = None,
    n_jobs: int | None = None,
) -> TrainedPairs:
    """Of the scores of the training rows and the settings of the training."""
    column = as_array(scores, "scores").astype(np.float64, copy=False)
    if column.ndim != 1:
        raise ValueError(f"scores must be 1-D, one for each row; got shape {column.shape}")
    check_one_of("loss", settings.get("loss", LOSSES[0]), LOSSES)
    data = as_dataset(column[:, np.newaxis], y, qid, group, sample_weight, n_jobs)
    return _of_scores(settings, data, column, query_weight, epsilon)


def _of_scores(
    settings: Mapping[str, Any], data: Dataset, scores: Array, query_weight: Any, epsilon: Any
) -> TrainedPairs:
    C, loss = settings.get("C"), str(settings.get("loss", LOSSES[0]))
    check_positive("C", C)
    if settings.get("n_preferences"):
        raise ValueError(
            f"the model was trained on {settings['n_preferences']} listed preferences, which have "
            "no order difference; use a model of fit(X, y)"
        )
    weight = query_weights(query_weight, data.queries)
    swept, listed = chosen(data, query_weight=weight, **_choice(settings))
    z = data.queries.gather(np.asarray(scores, dtype=np.float64))
    entries = _entries(z, float(C or 0.0), loss, settings.get("epsilon", epsilon))
    return TrainedPairs(data.queries, swept, listed, entries, loss, entries.C)


def _entries(
    z: Array, C: float, loss: str, epsilon: float | None
) -> SquaredHingeEntries | HuberEntries:
    if loss == "squared_hinge":
        return SquaredHingeEntries(z, C)
    if epsilon is None:
        raise ValueError(
            "α of the hinge needs epsilon, the width within which its training smoothed it: pass "
            "epsilon=, as the result of the training has it"
        )
    check_positive("epsilon", epsilon)
    return HuberEntries(z, C, float(epsilon))


def _check_rows(training: Mapping[str, Any], data: Dataset) -> None:
    n_rows = training.get("n_rows")
    if n_rows is not None and n_rows != data.n_rows:
        raise ValueError(
            f"the data have {data.n_rows} rows, the model was trained on {n_rows}; dual variables "
            "belong to the training data: pass X, y and qid as they were given to fit"
        )


def _choice(settings: Mapping[str, Any]) -> dict[str, Any]:
    return {name: settings[name] for name in _CHOICE if settings.get(name) is not None}


def _is_listed(training: Mapping[str, Any], data: Dataset) -> bool:
    return chosen(data, **_choice(training))[1] is not None
