"""support_distribution: which pairs carry a ranker, by how close their labels are."""

from __future__ import annotations

import numbers
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linrank.duals.pair_alphas import alphas
from linrank.duals.trained_pairs import TrainedPairs, of_dual, of_model, of_scores
from linrank.seeds import seed_of

__all__ = ["SUPPORT_TOL", "SupportDistribution", "support_distribution"]

Array = NDArray[Any]

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
        The order differences r that occur, ascending: 1 for neighbouring labels of a query.
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
        """Pairs of neighbouring labels that were looked at: the 1-closest ones."""
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
        try:
            import pandas
        except ImportError:
            raise ImportError("to_frame needs pandas: pip install pandas") from None
        return pandas.DataFrame(self.columns())

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
    1 for neighbouring labels. With ``ξ_ij = 1 - s_i + s_j`` of the scores of the training rows,

    - squared hinge: ``α_ij = 2Cω_ij max(0, ξ_ij)``;
    - hinge, linear model: the exact duals of :func:`linrank.dual_matrix`;
    - hinge, kernel model: ``α_ij = Cω_ij clip(ξ_ij/ε, 0, 1)``, the dual point that certifies the
      training, with ε the width within which it smoothed the hinge in the end.

    Figures 1 and 2 of Lin, Jan & Lin (2013) show these α; `plots.support_distribution` draws them.

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
        trained = of_scores(model, scores, y, qid, epsilon, **options)
    elif X is None:
        trained = of_dual(model)
    else:
        trained = of_model(model, X, y, qid, epsilon, **options)
    return _distribution(trained, float(tol), n_sample, random_state)


def _distribution(
    trained: TrainedPairs, tol: float, n_sample: int | None, random_state: Any
) -> SupportDistribution:
    """The sums by order difference, and the pairs themselves if they are few."""
    n_total = trained.n_pairs
    if n_sample is None and n_total > _LOOKED_AT and trained.can_sample:
        n_sample = _SAMPLE
    is_sample = n_sample is not None and n_sample < n_total
    parts = (
        trained.sample(int(n_sample or 0), seed_of(random_state)) if is_sample else trained.parts()
    )
    is_kept = (int(n_sample or 0) if is_sample else n_total) <= _LISTED
    sums = np.zeros((3, trained.n_differences))  # pairs, pairs with α > 0, Σα by r - 1
    kept: list[tuple[Array, Array, Array]] = []
    for listed, weight in parts:
        alpha = alphas(trained.entries, listed, weight)
        place = listed.difference - 1
        is_support = alpha > tol * trained.slope * weight
        for row, counted in zip(sums, (None, is_support, alpha), strict=True):
            row += np.bincount(place, counted, minlength=len(row))
        if is_kept:
            kept.append((listed.difference, trained.rows_of(listed), alpha))
    rows, values = _from_closest(kept) if is_kept else (None, None)
    found = np.flatnonzero(sums[0])
    n_pairs, n_support = sums[:2, found].astype(np.int64)
    return SupportDistribution(
        found + 1,
        n_pairs,
        n_support,
        sums[2, found],
        n_total,
        rows,
        values,
        trained.loss,
        trained.C,
    )


def _from_closest(kept: list[tuple[Array, Array, Array]]) -> tuple[Array, Array]:
    """Pairs and their α by order difference; among equals, as they came."""
    difference, rows, alpha = (np.concatenate([one[k] for one in kept]) for k in range(3))
    order = np.argsort(difference, kind="stable")
    return rows[order], alpha[order]


def _share(part: float, whole: float) -> float:
    return part / whole if whole > 0.0 else 0.0
