"""What dual variables tell: how many dimensions they fill, and which pairs carry a ranker."""

from __future__ import annotations

import numbers
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from linrank.choices import LOSSES
from linrank.data import Array, Preferences, Queries, query_weights
from linrank.duals.dual_matrix import (
    RANK_TOL,
    Block,
    DualMatrix,
    as_dataset,
    check_sizes,
    choice_of_pairs,
    dual_matrix,
    singular_rank,
)
from linrank.duals.entries import PairEntries, chunks
from linrank.errors import check_one_of
from linrank.models.linear import LinearModel
from linrank.pairs import Pairs, select_pairs
from linrank.system import frame_of, seed_of, seed_of_part


def check_share(tol: Any) -> None:
    """Raise ValueError unless ``tol`` is a share below 1."""
    if not (isinstance(tol, numbers.Real) and 0.0 <= float(tol) < 1.0):
        raise ValueError(f"tol must be a number from 0 to below 1, got {tol!r}")


# ---- rank_profile -------------------------------------------------------------------------------

_RELATIVE = ("size", "possible")


@dataclass(frozen=True, eq=False)
class RankProfile:
    """Ranks and dimensions of the dual matrices of many queries; see :func:`linrank.rank_profile`.

    All arrays have an element, or a row, for each query with pairs, in the order of `query_ids`.

    Attributes
    ----------
    query_ids : list
        Ids of the queries.
    n_rows, n_pairs : int64 arrays
        Rows and pairs of each query; ``n_rows`` is the size of its square matrix.
    possible : int64 array
        The largest rank that the matrix could have: the shorter side of its rectangle, or twice
        that of the symmetric matrix (but not more than ``n_rows``).
    ranks : int64 array
        Singular values above ``tol`` times the largest.
    energy : tuple of float
        Shares t of the energy ``Σ σ²``.
    dimensions : int64 array (n_queries, n_energies)
        ``k_t``, the fewest singular values that hold a share t of the energy; 0 of a zero matrix.
    tol : float
        Singular values up to ``tol`` times the largest count as 0, so that ``k_1`` is the rank.
    symmetric : bool
        Whether the matrices are ``A + A'``.
    baseline : RankProfile or None
        The same of shuffled dual variables.
    """

    query_ids: list[Any]
    n_rows: Array
    n_pairs: Array
    possible: Array
    ranks: Array
    energy: tuple[float, ...]
    dimensions: Array
    tol: float
    symmetric: bool = False
    baseline: RankProfile | None = field(default=None, repr=False)

    def ratios(self, relative_to: str = "size") -> Array:
        """``k_t`` over the rows of the query ("size"), or over the largest possible rank.

        Parameters
        ----------
        relative_to : {"size", "possible"}
            "size" is the normalization of Xu et al. (2019), which calls matrices low-rank that
            have the full rank of their rectangle; "possible" does not.

        Returns
        -------
        float64 array (n_queries, n_energies)
        """
        check_one_of("relative_to", relative_to, _RELATIVE)
        whole = self.n_rows if relative_to == "size" else self.possible
        return np.asarray(self.dimensions / whole[:, np.newaxis])

    def distribution(self, relative_to: str = "size") -> Array:
        """Queries by ranges of a tenth of `ratios`, ``(0, 10%], ..., (90%, 100%]``.

        A ratio of 0, of a zero matrix, counts in the first.

        Returns
        -------
        int64 array (n_energies, 10)
        """
        # The small number keeps 3/10 from being above three tenths by rounding.
        bins = np.ceil(10.0 * self.ratios(relative_to) - 1e-9).astype(np.int64) - 1
        bins = np.clip(bins, 0, 9)
        return np.stack([np.bincount(column, minlength=10) for column in bins.T])

    def to_frame(self) -> Any:
        """A pandas DataFrame with a row for each query."""
        columns = {
            "query": self.query_ids,
            "rows": self.n_rows,
            "pairs": self.n_pairs,
            "possible": self.possible,
            "rank": self.ranks,
        }
        for profile, kind in ((self, ""), (self.baseline, " shuffled")):
            if profile is not None:
                names = (f"k_{_percent(share)}{kind}" for share in self.energy)
                columns |= dict(zip(names, profile.dimensions.T, strict=True))
        return frame_of(columns)

    def __repr__(self) -> str:
        """The medians over the queries, by share of the energy."""
        lines = [f"<RankProfile of {len(self.query_ids)} queries; medians over them:"]
        for k, share in enumerate(self.energy):
            size, possible = (np.median(self.ratios(by)[:, k]) for by in _RELATIVE)
            line = f"  {_percent(share)} of the energy in {np.median(self.dimensions[:, k]):g} "
            line += f"dimensions, {size:.0%} of the size, {possible:.0%} of the largest rank"
            if self.baseline is not None:
                line += f"; shuffled {np.median(self.baseline.dimensions[:, k]):g}"
            lines.append(line)
        return "\n".join(lines) + ">"


def rank_profile(
    model: Any,
    X: Any = None,
    y: Any = None,
    qid: Any = None,
    *,
    energy: Sequence[float] | float = (0.9, 1.0),
    tol: float = RANK_TOL,
    symmetric: bool = False,
    baseline: str | None = None,
    random_state: Any = 0,
    **options: Any,
) -> RankProfile:
    """Ranks of the dual matrices of a model, and the dimensions that hold most of their energy.

    For each query, with ``σ_1 >= σ_2 >= ...`` the singular values of its matrix,
    ``k_t = min{k: Σ_{i<=k} σ_i² >= t Σ σ_i²}``: section 4 of Xu et al. (2019).

    Parameters
    ----------
    model : DualMatrix or model
        What :func:`linrank.dual_matrix` returns, or what it takes, together with the data.
    X, y, qid : training data
        Not of a `DualMatrix`.
    energy : float or sequence of float, default=(0.9, 1.0)
        Shares t, in (0, 1].
    tol : float, default=1e-6
        Singular values up to ``tol`` times the largest count as 0; "all of the energy" is that of
        the others, so that ``k_1`` is the rank.
    symmetric : bool, default=False
        Take ``A + A'`` in place of ``A``, which doubles the ranks of two levels: what the ranks of
        Table 6 of the paper agree with.
    baseline : {None, "shuffled"}, default=None
        "shuffled" makes the same profile of the same dual variables in a random order, query by
        query, each on some pair of its query: what is low-rank in that is owed to the values and
        the shape, not to how α is arranged.
    random_state : int, Generator or None, default=0
        Of the order.
    **options
        Passed on to :func:`linrank.dual_matrix` with a model: weights, ``group``, ``thresholded``.

    Returns
    -------
    RankProfile

    Examples
    --------
    >>> from linrank import RankSVM, make_ranking, rank_profile
    >>> data = make_ranking(n_queries=5, n_features=4, random_state=0)
    >>> ranker = RankSVM(C=0.1, loss="hinge").fit(data.X, data.y, qid=data.qid)
    >>> profile = rank_profile(ranker, data.X, data.y, data.qid)
    >>> (profile.dimensions[:, 1] == profile.ranks).all().item()
    True
    """
    shares = _shares(energy)
    check_share(tol)
    check_one_of("baseline", baseline, (None, "shuffled"))
    dual = _as_dual(model, X=X, y=y, qid=qid, **options)
    seed = None if baseline is None else seed_of(random_state)
    sizes, spectra, shuffled = [], [], []
    for k, block in enumerate(dual):
        sizes.append((block.n_rows, block.n_pairs, min(block.values.shape)))
        spectra.append(_spectrum(block, symmetric))
        if seed is not None:
            shuffled.append(_spectrum(_shuffle(block, seed_of_part(seed, k)), symmetric))
    n_rows, n_pairs, possible = np.array(sizes, dtype=np.int64).reshape(-1, 3).T
    if symmetric:  # rank(A + A') <= 2 rank(A)
        possible = np.minimum(2 * possible, n_rows)

    def profile(found: list[Array], null: RankProfile | None) -> RankProfile:
        ranks = np.array([singular_rank(one, tol) for one in found], dtype=np.int64)
        k_t = np.array([_dimensions(one, shares, tol) for one in found], dtype=np.int64)
        ids = list(dual.query_ids)
        return RankProfile(
            ids, n_rows, n_pairs, possible, ranks, shares, k_t, float(tol), symmetric, null
        )

    return profile(spectra, profile(shuffled, None) if shuffled else None)


def _shares(energy: Any) -> tuple[float, ...]:
    given = (energy,) if isinstance(energy, numbers.Real) else tuple(energy)
    for share in given:
        if not (isinstance(share, numbers.Real) and 0.0 < float(share) <= 1.0):
            raise ValueError(f"energy must be shares above 0 and up to 1, got {share!r}")
    if not given:
        raise ValueError("energy is empty; give at least one share, such as 0.9")
    return tuple(float(share) for share in given)


def _as_dual(model: Any, **given: Any) -> DualMatrix:
    if isinstance(model, DualMatrix):
        wrong = [name for name, value in given.items() if value is not None]
        if wrong:
            raise ValueError(f"a DualMatrix knows its data; leave {', '.join(wrong)} out")
        return model
    if given["X"] is None:
        raise ValueError(
            "rank_profile of a model needs its training data: rank_profile(model, X, y, qid)"
        )
    return dual_matrix(model, **given)


def _spectrum(block: Block, symmetric: bool) -> Array:
    """Singular values, descending, of the block or of the symmetric matrix of the query."""
    if not symmetric:
        return block.singular_values
    square = block.full()
    return np.sort(np.abs(np.linalg.eigvalsh(square + square.T)))[::-1]


def _dimensions(singular: Array, shares: tuple[float, ...], tol: float) -> list[int]:
    """``k_t`` of each share t; values that count as 0 have no energy."""
    rank = singular_rank(singular, tol)
    if rank == 0:
        return [0] * len(shares)
    held = np.cumsum(singular[:rank] ** 2)
    # A sum in floating point may miss t = 1, or a t that is met exactly, by some ulps.
    wanted = np.array(shares) * held[-1] * (1.0 - 1e-14)
    fewest = (np.searchsorted(held, wanted) + 1).tolist()
    return [rank if t == 1.0 else k for t, k in zip(shares, fewest, strict=True)]


def _shuffle(block: Block, seed: int) -> Block:
    """The block with its dual variables in a random order, on the cells that they had."""
    cells = block.is_pair | (block.values != 0.0)
    values = np.zeros_like(block.values)
    values[cells] = np.random.default_rng(seed).permutation(block.values[cells])
    return replace(block, values=values)


def _percent(share: float) -> str:
    return f"{100.0 * share:g}%"


# ---- support_distribution ---------------------------------------------------------------------


class TrainedPairs(NamedTuple):
    """Swept pairs and listed ones, and the entries that give α of either."""

    queries: Queries
    swept: Pairs | None
    listed: Preferences | None
    entries: PairEntries
    loss: str


def _trained_pairs(
    model: Any, X: Any, query_weight: Any = None, n_jobs: int | None = None, **rows: Any
) -> TrainedPairs:
    """The pairs that a model was trained on; the hinge of a linear one has exact duals."""
    if X is None:
        if not isinstance(model, DualMatrix):
            raise TypeError(
                f"give the training data beside a {type(model).__name__}; a DualMatrix alone has "
                "them"
            )
        if not isinstance(model.entries, PairEntries):
            raise TypeError(
                f"the α of a {model.kind} model are no function of single pairs: "
                "support_distribution takes those of RankSVM and KernelRankSVM"
            )
        return TrainedPairs(model.pairs.queries, model.pairs, None, model.entries, model.loss)
    inner = getattr(model, "model_", model)
    training = getattr(inner, "training", None)
    if not isinstance(training, Mapping) or training.get("loss") not in LOSSES:
        raise TypeError(
            "support_distribution takes a fitted RankSVM or KernelRankSVM, its model, or a "
            f"DualMatrix; got {type(model).__name__}"
        )
    if training.get("n_preferences"):
        raise ValueError(
            f"the model was trained on {training['n_preferences']} listed preferences, which have "
            "no order difference; use a model of fit(X, y)"
        )
    data, loss = as_dataset(X, n_jobs, **rows), str(training["loss"])
    check_sizes(training, {"n_rows": data.n_rows})
    weight = query_weights(query_weight, data.queries)
    swept, listed = select_pairs(data, query_weight=weight, **choice_of_pairs(training))
    if isinstance(inner, LinearModel) and loss == "hinge":
        if listed is not None:
            raise ValueError(
                f"α of the hinge with pairs={training['pairs']!r} is not known for a linear model "
                "where pairs are listed; use KernelRankSVM(kernel='linear') or the squared hinge"
            )
        dual = dual_matrix(model, data, query_weight=query_weight, n_jobs=n_jobs)
        return _trained_pairs(dual, None)
    C, scores = float(training["C"]), inner.predict(data.X, qid=data.qid, n_jobs=n_jobs)
    z = data.queries.gather(np.asarray(scores, dtype=np.float64))
    if loss == "squared_hinge":
        entries = PairEntries.of_squared_hinge(z, C)
        return TrainedPairs(data.queries, swept, listed, entries, loss)
    if "epsilon" not in training:
        raise ValueError(
            "α of the hinge needs the width within which its training smoothed it, which this "
            "model does not tell; use the squared hinge"
        )
    entries = PairEntries.of_huber(z, C, float(training["epsilon"]))
    return TrainedPairs(data.queries, swept, listed, entries, loss)


# α up to this share of that of a pair with equal scores counts as 0: what rounding leaves of a
# margin of exactly 1.
SUPPORT_TOL = 1e-6
_LISTED = 1_000_000  # pairs that are kept one by one; of more there are the sums alone
_LOOKED_AT = 100_000_000  # pairs that are all looked at, seconds; of more, so many random ones:
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
        return np.asarray(self.alpha_sum / self.n_pairs)

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
        return {name: float(a[near].sum() / (a.sum() or 1.0)) for name, a in parts.items()}

    def to_frame(self) -> Any:
        """A pandas DataFrame, a row for each order difference."""
        columns = {
            "difference": self.difference,
            "pairs": self.n_pairs,
            "support": self.n_support,
            "support_share": self.n_support / self.n_pairs,
            "alpha_mean": self.mean_alpha,
            "alpha_share": self.alpha_sum / (self.alpha_sum.sum() or 1.0),
        }
        return frame_of(columns)

    def __repr__(self) -> str:
        """Pairs, those with α > 0, and what the 1-closest ones have of them."""
        near, n_seen = self.up_to(1), int(self.n_pairs.sum())
        pairs = f"{n_seen:,}" if n_seen == self.n_total else f"{n_seen:,} of {self.n_total:,}"
        return (
            f"<SupportDistribution of {pairs} pairs, {self.loss}, "
            f"C={self.C:g}: {self.support_share:.1%} have α > 0; the {self.n_closest:,} 1-closest "
            f"ones are {near['support']:.1%} of these, with {near['alpha']:.1%} of Σα>"
        )


def support_distribution(
    model: Any,
    X: Any = None,
    y: Any = None,
    qid: Any = None,
    *,
    tol: float = SUPPORT_TOL,
    **options: Any,
) -> SupportDistribution:
    """The dual variables of the pairs against their closeness, from order-closest to farthest.

    The order difference r of a pair is that of its labels, ranked 0, 1, 2, ... inside their query:
    1 for neighboring labels. With ``ξ_ij = 1 - s_i + s_j`` of the scores of the training rows,

    - squared hinge: ``α_ij = 2Cω_ij max(0, ξ_ij)``;
    - hinge, linear model: the exact duals of :func:`linrank.dual_matrix`;
    - hinge, kernel model: ``α_ij = Cω_ij clip(ξ_ij/ε, 0, 1)``, the dual point that certifies the
      training, with ε the width within which it smoothed the hinge in the end.

    All pairs are looked at, a million at a time, unless a model was trained on more than 10^8 pairs
    that are not listed: then 10^6 random ones are, the same every time, and ``n_total`` tells.

    Figures 1 and 2 of Lin, Jan & Lin (2013) show these α; `SupportDistributionDisplay` draws them.

    Parameters
    ----------
    model : RankSVM, RankSVMCV, KernelRankSVM, KernelRankSVMCV, their models, or DualMatrix
        A fitted ranker; or what :func:`linrank.dual_matrix` returns, without the data.
    X, y, qid : training data
        As given to ``fit``; X may be a `Dataset`.
    tol : float, default=1e-6
        α up to ``tol`` times that of a pair with equal scores (``Cω`` of the hinge, ``2Cω`` of its
        square) counts as 0.
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
    check_share(tol)
    queries, swept, listed, entries, loss = _trained_pairs(model, X, y=y, qid=qid, **options)
    slope = entries.C if loss == "hinge" else 2.0 * entries.C  # α/ω of a pair with equal scores
    position = queries.scatter(np.arange(queries.n_rows))
    n_swept, n_listed = 0 if swept is None else swept.n_pairs, 0 if listed is None else len(listed)
    n_sampled = _SAMPLE if n_swept > _LOOKED_AT and listed is None else None
    every = [
        () if swept is None else chunks(swept, n_sampled=n_sampled),
        () if listed is None else [listed],
    ]
    is_kept = (n_sampled or n_swept + n_listed) <= _LISTED
    sums = np.zeros((3, int(queries.n_levels.max()) - 1))  # pairs, those with α > 0, Σα by r - 1
    kept = []
    for part in chain(*every):
        i, j = position[part.winners], position[part.losers]
        weight = np.ones(len(part)) if part.weight is None else part.weight
        alpha = entries.of_pairs(i, j, weight)
        place = (queries.levels[i] - queries.levels[j]).astype(np.int64) - 1
        for row, counted in zip(sums, (None, alpha > tol * slope * weight, alpha), strict=True):
            row += np.bincount(place, counted, minlength=len(row))
        if is_kept:
            kept.append((place, part.pairs, alpha))
    rows = values = None
    if is_kept:
        place, rows, values = (np.concatenate(side) for side in zip(*kept, strict=True))
        order = np.argsort(place, kind="stable")  # from the closest; among equals, as they came
        rows, values = rows[order], values[order]
    found = np.flatnonzero(sums[0])
    n_pairs, n_support = sums[:2, found].astype(np.int64)
    n_total = n_swept + n_listed
    return SupportDistribution(
        found + 1, n_pairs, n_support, sums[2, found], n_total, rows, values, loss, entries.C
    )
