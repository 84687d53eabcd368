"""rank_profile: how many dimensions of each query's dual matrix hold how much of its energy."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linrank.duals.dual_matrix import (
    RANK_TOL,
    Block,
    DualMatrix,
    dual_matrix,
    frame_of,
    singular_rank,
)
from linrank.system.seeds import seed_of, seed_of_part
from linrank.system.tables import Column, Table

Array = NDArray[Any]
_BASELINES = (None, "shuffled")
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
        if relative_to not in _RELATIVE:
            raise ValueError(f"relative_to must be 'size' or 'possible', got {relative_to!r}")
        whole = self.n_rows if relative_to == "size" else self.possible
        shares: Array = self.dimensions / whole[:, np.newaxis]
        return shares

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

    def columns(self) -> dict[str, Any]:
        """The numbers of each query by name, as `to_frame` and `table` show them."""
        found = {
            "query": self.query_ids,
            "rows": self.n_rows,
            "pairs": self.n_pairs,
            "possible": self.possible,
            "rank": self.ranks,
        }
        for k, share in enumerate(self.energy):
            found[f"k_{_percent(share)}"] = self.dimensions[:, k]
        if self.baseline is not None:
            for k, share in enumerate(self.energy):
                found[f"k_{_percent(share)} shuffled"] = self.baseline.dimensions[:, k]
        return found

    def to_frame(self) -> Any:
        """A pandas DataFrame, a row a query."""
        return frame_of(self.columns())

    def table(self, queries: Sequence[Any] | None = None) -> str:
        """The numbers of each query as text, as in Table 6 of Xu et al. (2019).

        Parameters
        ----------
        queries : sequence of ids, optional
            Which queries to show, in this order; all if None.
        """
        columns = self.columns()
        place = {query: k for k, query in enumerate(self.query_ids)}
        shown = self.query_ids if queries is None else queries
        for query in shown:
            if query not in place:
                raise KeyError(f"no query {query!r} with pairs in the profile; see query_ids")
        rows = [[str(values[place[query]]) for values in columns.values()] for query in shown]
        return Table([*map(Column, columns)], rows).to_text()

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
    if not (isinstance(tol, numbers.Real) and 0.0 <= tol < 1.0):
        raise ValueError(f"tol must be a number from 0 to below 1, got {tol!r}")
    if baseline not in _BASELINES:
        raise ValueError(f"baseline must be None or 'shuffled', got {baseline!r}")
    dual = _as_dual(model, X=X, y=y, qid=qid, **options)
    seed = None if baseline is None else seed_of(random_state)
    sizes, spectra, shuffled = [], [], []
    for k, block in enumerate(dual):
        sizes.append((block.n_rows, block.n_pairs, min(block.values.shape)))
        spectra.append(_spectrum(block, symmetric))
        if seed is not None:
            shuffled.append(_spectrum(_shuffled(block, seed_of_part(seed, k)), symmetric))
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
    eigenvalues: Array = np.abs(np.linalg.eigvalsh(square + square.T))
    return np.sort(eigenvalues)[::-1]


def _dimensions(singular: Array, shares: tuple[float, ...], tol: float) -> list[int]:
    """``k_t`` of each share t; values that count as 0 have no energy."""
    rank = singular_rank(singular, tol)
    if rank == 0:
        return [0] * len(shares)
    held = np.cumsum(singular[:rank] ** 2)
    # A sum in floating point may miss t = 1, or a t that is met exactly, by some ulps.
    wanted = np.array(shares) * held[-1] * (1.0 - 1e-14)
    return [
        rank if t == 1.0 else int(k) + 1
        for t, k in zip(shares, np.searchsorted(held, wanted), strict=True)
    ]


def _shuffled(block: Block, seed: int) -> Block:
    """The block with its dual variables in a random order, on the cells that they had."""
    cells = block.is_pair | (block.values != 0.0)
    values = np.zeros_like(block.values)
    values[cells] = np.random.default_rng(seed).permutation(block.values[cells])
    return replace(block, values=values)


def _percent(share: float) -> str:
    return f"{100.0 * share:g}%"
