"""support_distribution: which pairs carry a ranker, by how close their labels are."""

from __future__ import annotations

import numbers
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linrank.data.dataset import Dataset
from linrank.data.frames import as_array
from linrank.data.preferences import Preferences
from linrank.data.queries import Queries, query_weights
from linrank.duals.dual_matrix import (
    DualMatrix,
    as_dataset,
    check_sizes,
    choice_of_pairs,
    dual_matrix,
    frame_of,
)
from linrank.duals.entries import HuberEntries, PairEntries, SquaredHingeEntries
from linrank.errors import check_one_of, check_positive
from linrank.models.linear import LinearModel
from linrank.options import LOSSES, SELECTED_PAIRS
from linrank.pairs import Cells, Pairs, Selection, chosen, weighted_as
from linrank.system.seeds import seed_of

Array = NDArray[Any]
_CHUNK = 1 << 20  # pairs that are looked at together


def chunks(pairs: Pairs, size: int = _CHUNK) -> Iterator[Preferences]:
    """All pairs and their weights ω, ``size`` at a time: by query, by level of the winner."""
    cells = Cells.of(pairs.queries)
    blocks = cells.at(1) if pairs.adjacent else cells.beyond(0)
    for begin in range(0, blocks.n_pairs, size):
        numbers = np.arange(begin, min(begin + size, blocks.n_pairs))
        winners, losers = blocks.pairs(numbers)
        yield weighted_as(pairs, Preferences(cells.rows[winners], cells.rows[losers]))


@dataclass(frozen=True, eq=False)
class TrainedPairs:
    """Swept pairs and listed ones, and the entries that give α of either."""

    queries: Queries
    swept: Pairs | None
    listed: Preferences | None
    entries: PairEntries
    loss: str

    @property
    def n_pairs(self) -> int:
        n_swept = 0 if self.swept is None else self.swept.n_pairs
        return n_swept + (0 if self.listed is None else len(self.listed))

    @property
    def can_sample(self) -> bool:
        """Whether the pairs are all pairs of the labels, which `linrank.pairs.random` draws."""
        return self.listed is None and self.swept is not None and not self.swept.adjacent

    def parts(self) -> Iterator[Preferences]:
        """All pairs with their weights ω, a million at a time."""
        if self.swept is not None:
            yield from chunks(self.swept)
        if self.listed is not None:
            yield self.listed

    def sample(self, n: int, seed: int) -> Iterator[Preferences]:
        """``n`` of the pairs, drawn uniformly without a list of all, with their weights."""
        if not self.can_sample or self.swept is None:
            raise ValueError(
                "n_sample draws from all pairs of the labels, but the model was trained on chosen "
                "ones; leave it out"
            )
        drawn = Selection.of(self.queries, drawn=("n_sample", n), seed=seed).listed()
        yield weighted_as(self.swept, drawn)


def _of_dual(dual: Any) -> TrainedPairs:
    """Of a `DualMatrix` of a RankSVM."""
    if not isinstance(dual, DualMatrix):
        raise TypeError(
            f"give the training data beside a {type(dual).__name__}; a DualMatrix alone has them"
        )
    if not isinstance(dual.entries, PairEntries):
        raise TypeError(
            f"the α of a {dual.kind} model are no function of single pairs: support_distribution "
            "takes those of RankSVM and KernelRankSVM"
        )
    return TrainedPairs(dual.pairs.queries, dual.pairs, None, dual.entries, dual.loss)


def _of_model(
    model: Any,
    epsilon: float | None,
    X: Any,
    query_weight: Any = None,
    n_jobs: int | None = None,
    **rows: Any,
) -> TrainedPairs:
    """Of a fitted ranker or its model; the hinge of a linear one has exact duals."""
    inner = getattr(model, "model_", model)
    training = getattr(inner, "training", None)
    if not isinstance(training, Mapping) or training.get("loss") not in LOSSES:
        raise TypeError(
            "support_distribution takes a fitted RankSVM or KernelRankSVM, its model, or a "
            f"DualMatrix; got {type(model).__name__}"
        )
    data = as_dataset(X, n_jobs, **rows)
    if isinstance(inner, LinearModel) and training["loss"] == "hinge":
        is_chosen = training.get("pairs") in SELECTED_PAIRS
        if is_chosen and chosen(data, **choice_of_pairs(training))[1] is not None:
            raise ValueError(
                f"α of the hinge with pairs={training['pairs']!r} is not known for a linear model "
                "where pairs are listed; use KernelRankSVM(kernel='linear') or the squared hinge"
            )
        return _of_dual(dual_matrix(model, data, query_weight=query_weight, n_jobs=n_jobs))
    check_sizes(training, {"n_rows": data.n_rows})
    scores = inner.predict(data.X, qid=data.qid, n_jobs=n_jobs)
    return _of_data(training, epsilon, data, scores, query_weight)


def _of_scores(
    settings: Mapping[str, Any],
    epsilon: float | None,
    scores: Any,
    query_weight: Any = None,
    n_jobs: int | None = None,
    **rows: Any,
) -> TrainedPairs:
    """Of the scores of the training rows and the settings of the training."""
    column = as_array(scores, "scores").astype(np.float64, copy=False)
    if column.ndim != 1:
        raise ValueError(f"scores must be 1-D, one for each row; got shape {column.shape}")
    check_one_of("loss", settings.get("loss", LOSSES[0]), LOSSES)
    data = as_dataset(column[:, np.newaxis], n_jobs, **rows)
    return _of_data(settings, epsilon, data, column, query_weight)


def _of_data(
    settings: Mapping[str, Any], epsilon: Any, data: Dataset, scores: Array, query_weight: Any
) -> TrainedPairs:
    C, loss = settings.get("C"), str(settings.get("loss", LOSSES[0]))
    check_positive("C", C)
    if settings.get("n_preferences"):
        raise ValueError(
            f"the model was trained on {settings['n_preferences']} listed preferences, which have "
            "no order difference; use a model of fit(X, y)"
        )
    weight = query_weights(query_weight, data.queries)
    swept, listed = chosen(data, query_weight=weight, **choice_of_pairs(settings))
    z, C = data.queries.gather(np.asarray(scores, dtype=np.float64)), float(C or 0.0)
    if loss == "squared_hinge":
        return TrainedPairs(data.queries, swept, listed, SquaredHingeEntries(z, C), loss)
    epsilon = settings.get("epsilon", epsilon)
    if epsilon is None:
        raise ValueError(
            "α of the hinge needs epsilon, the width within which its training smoothed it: pass "
            "epsilon=, as the result of the training has it"
        )
    check_positive("epsilon", epsilon)
    return TrainedPairs(data.queries, swept, listed, HuberEntries(z, C, float(epsilon)), loss)


# α up to this share of that of a pair with equal scores counts as 0: what rounding leaves of a
# margin of exactly 1.
SUPPORT_TOL = 1e-6
_LISTED = 1_000_000  # pairs that are kept one by one
_LOOKED_AT = 100_000_000  # pairs that are looked at, at most, unless a sample is asked for
_SAMPLE = 1_000_000


@dataclass(frozen=True, eq=False)
class SupportDistribution:
    """Dual variables of the pairs by closeness; see :func:`linrank.support_distribution`.

    Attributes
    ----------
    difference : int64 array (n_differences,)
        The order differences r that occur, ascending: 1 for neighboring labels of a query.
    n_pairs, n_support : int64 arrays (n_differences,)
        Pairs that were looked at, and those of them with ``α > 0``, for each r.
    alpha_sum : float64 array (n_differences,)
        ``Σα`` over the pairs that were looked at, for each r.
    n_total : int
        Pairs of the training; more than ``n_pairs.sum()`` if these are a sample of them.
    rows : int64 array (n_pairs, 2) or None
        The pairs (i above j) one by one, rows of X, from order-closest to farthest; None where they
        were too many to keep.
    alpha : float64 array (n_pairs,) or None
        α of each of `rows`.
    loss : {"hinge", "squared_hinge"}
        Whose dual it is.
    C : float
        Weight of the losses: ``α <= C ω`` for the hinge.
    """

    difference: Array
    n_pairs: Array
    n_support: Array
    alpha_sum: Array
    n_total: int
    rows: Array | None = field(repr=False)
    alpha: Array | None = field(repr=False)
    loss: str
    C: float

    @property
    def is_sample(self) -> bool:
        """Whether the pairs are a random sample of those of the training."""
        return int(self.n_pairs.sum()) < self.n_total

    @property
    def n_closest(self) -> int:
        """Pairs of neighboring labels that were looked at: the 1-closest ones."""
        return int(self.n_pairs[self.difference == 1].sum())

    @property
    def support_share(self) -> float:
        """Share of the pairs that have ``α > 0``."""
        return float(self.n_support.sum() / self.n_pairs.sum())

    @property
    def mean_alpha(self) -> Array:
        """Mean α for each r."""
        mean: Array = self.alpha_sum / self.n_pairs
        return mean

    def up_to(self, difference: int) -> dict[str, float]:
        """What the pairs with order difference up to ``difference`` make up of the whole.

        Returns
        -------
        dict
            ``"pairs"``, ``"support"`` and ``"alpha"``: their share of all pairs, of the pairs with
            ``α > 0``, and of ``Σα``.

        Examples
        --------
        >>> from linrank import RankSVM, support_distribution
        >>> X, y = [[0.0], [1.0], [2.0]], [0, 1, 2]
        >>> ranker = RankSVM(C=100.0, loss="hinge").fit(X, y)
        >>> support_distribution(ranker, X, y).up_to(1)["alpha"]  # 0 to 2 needs no pull of its own
        1.0
        """
        near = self.difference <= difference
        parts = {"pairs": self.n_pairs, "support": self.n_support, "alpha": self.alpha_sum}
        return {name: _share(float(a[near].sum()), float(a.sum())) for name, a in parts.items()}

    def columns(self) -> dict[str, Any]:
        """The numbers of each order difference by name, as `to_frame` shows them."""
        total = float(self.alpha_sum.sum())
        return {
            "difference": self.difference,
            "pairs": self.n_pairs,
            "support": self.n_support,
            "support_share": self.n_support / self.n_pairs,
            "alpha_mean": self.mean_alpha,
            "alpha_share": self.alpha_sum / total if total > 0.0 else self.alpha_sum,
        }

    def to_frame(self) -> Any:
        """A pandas DataFrame, a row for each order difference."""
        return frame_of(self.columns())

    def __repr__(self) -> str:
        """Pairs, those with α > 0, and what the 1-closest ones have of them."""
        n_seen = int(self.n_pairs.sum())
        what = f"a sample of {n_seen:,} of {self.n_total:,}" if self.is_sample else f"{n_seen:,}"
        near = self.up_to(1)
        return (
            f"<SupportDistribution of {what} pairs, {self.loss}, C={self.C:g}: "
            f"{self.support_share:.1%} have α > 0; the {self.n_closest:,} 1-closest ones are "
            f"{near['support']:.1%} of these, with {near['alpha']:.1%} of Σα>"
        )


def support_distribution(
    model: Any,
    X: Any = None,
    y: Any = None,
    qid: Any = None,
    *,
    scores: Any = None,
    epsilon: float | None = None,
    tol: float = SUPPORT_TOL,
    n_sample: int | None = None,
    random_state: Any = 0,
    **options: Any,
) -> SupportDistribution:
    """The dual variables of the pairs against their closeness, from order-closest to farthest.

    The order difference r of a pair is that of its labels, ranked 0, 1, 2, ... inside their query:
    1 for neighboring labels. With ``ξ_ij = 1 - s_i + s_j`` of the scores of the training rows,

    - squared hinge: ``α_ij = 2Cω_ij max(0, ξ_ij)``;
    - hinge, linear model: the exact duals of :func:`linrank.dual_matrix`;
    - hinge, kernel model: ``α_ij = Cω_ij clip(ξ_ij/ε, 0, 1)``, the dual point that certifies the
      training, with ε the width within which it smoothed the hinge in the end.

    Figures 1 and 2 of Lin, Jan & Lin (2013) show these α; `SupportDistributionDisplay` draws them.

    Parameters
    ----------
    model : RankSVM, RankSVMCV, KernelRankSVM, KernelRankSVMCV, their models, DualMatrix, or mapping
        A fitted ranker; what :func:`linrank.dual_matrix` returns, without the data; or, with
        `scores`, the settings of the training: ``{"C": ..., "loss": ...}``, ``"pairs"`` and the
        like.
    X, y, qid : training data
        As given to ``fit``; X may be a `Dataset`. With `scores`, y and qid alone.
    scores : array (n_rows,), optional
        Scores of the training rows, in place of a model; `model` has the settings.
    epsilon : float, optional
        ε of the hinge with `scores`, or of a kernel model that does not tell its own.
    tol : float, default=1e-6
        α up to ``tol`` times that of a pair with equal scores (``Cω`` of the hinge, ``2Cω`` of its
        square) counts as 0.
    n_sample : int, optional
        Look at so many pairs, drawn by :func:`linrank.pairs.random`. None: at all of them, block by
        block, unless they are more than 10^8: then at 10^6 random ones, and ``is_sample`` says so.
        Up to 10^6 pairs are kept one by one; of more, the sums by order difference are.
    random_state : int, Generator or None, default=0
        Of the sample.
    **options
        ``group``, ``sample_weight``, ``query_weight`` as in ``fit``, and ``n_jobs``.

    Returns
    -------
    SupportDistribution

    Examples
    --------
    >>> from linrank import RankSVM, make_ranking, support_distribution
    >>> data = make_ranking(n_queries=5, n_features=4, random_state=0)
    >>> ranker = RankSVM(C=0.1).fit(data.X, data.y, qid=data.qid)
    >>> found = support_distribution(ranker, data.X, data.y, data.qid)
    >>> int(found.n_pairs.sum()) == ranker.n_pairs_ == len(found.alpha)
    True
    """
    if not (isinstance(tol, numbers.Real) and 0.0 <= tol < 1.0):
        raise ValueError(f"tol must be a number from 0 to below 1, got {tol!r}")
    if n_sample is not None and (not isinstance(n_sample, numbers.Integral) or n_sample < 1):
        raise ValueError(f"n_sample must be an integer >= 1 or None, got {n_sample!r}")
    if scores is not None:
        if not isinstance(model, Mapping):
            raise TypeError(
                "with scores, model is a mapping of the settings of the training, such as "
                f"{{'C': 1.0, 'loss': 'hinge'}}; got {type(model).__name__}"
            )
        trained = _of_scores(model, epsilon, scores, y=y, qid=qid, **options)
    elif X is None:
        trained = _of_dual(model)
    else:
        trained = _of_model(model, epsilon, X, y=y, qid=qid, **options)
    return _distribution(trained, float(tol), n_sample, random_state)


def _distribution(
    trained: TrainedPairs, tol: float, n_sample: int | None, random_state: Any
) -> SupportDistribution:
    """The sums by order difference, and the pairs themselves if they are few."""
    n_total, n_seen, queries = trained.n_pairs, trained.n_pairs, trained.queries
    parts = trained.parts()
    if n_sample is None and n_total > _LOOKED_AT and trained.can_sample:
        n_sample = _SAMPLE
    if n_sample is not None and n_sample < n_total:
        n_seen = int(n_sample)
        parts = trained.sample(n_seen, seed_of(random_state))
    C, position = trained.entries.C, queries.scatter(np.arange(queries.n_rows))
    slope = C if trained.loss == "hinge" else 2.0 * C  # α/ω of a pair with equal scores
    sums = np.zeros((3, int(queries.n_levels.max()) - 1))  # pairs, those with α > 0, Σα by r - 1
    kept = []
    for part in parts:
        i, j = position[part.winners], position[part.losers]
        weight = np.ones(len(part)) if part.weight is None else part.weight
        alpha = trained.entries.of_pairs(i, j, weight)
        place = (queries.levels[i] - queries.levels[j]).astype(np.int64) - 1
        for row, counted in zip(sums, (None, alpha > tol * slope * weight, alpha), strict=True):
            row += np.bincount(place, counted, minlength=len(row))
        if n_seen <= _LISTED:
            kept.append((place, part.pairs, alpha))
    rows = values = None
    if n_seen <= _LISTED:
        place, rows, values = (np.concatenate(side) for side in zip(*kept, strict=True))
        order = np.argsort(place, kind="stable")  # from the closest; among equals, as they came
        rows, values = rows[order], values[order]
    found = np.flatnonzero(sums[0])
    n_pairs, n_support = sums[:2, found].astype(np.int64)
    return SupportDistribution(
        found + 1, n_pairs, n_support, sums[2, found], n_total, rows, values, trained.loss, C
    )


def _share(part: float, whole: float) -> float:
    return part / whole if whole > 0.0 else 0.0
