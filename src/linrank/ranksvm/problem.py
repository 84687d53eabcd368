"""The problem of a linear RankSVM: its objectives, smoothed or not, and smaller copies of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linrank.data.bounds import Box
from linrank.data.dataset import Dataset
from linrank.data.preferences import Preferences
from linrank.data.rows import Design, StreamedRows, without_offsets
from linrank.errors import NoPairsError
from linrank.losses.base import ScoreLoss
from linrank.losses.hinge import Hinge, Huber, SquaredHinge
from linrank.losses.preferences import PreferenceHinge, PreferenceHuber, PreferenceSquaredHinge
from linrank.objective import Ridge, Sum
from linrank.pairs import Pairs, chosen
from linrank.published import method as published
from linrank.ranksvm.plan import sample_preferences, sample_queries
from linrank.risk import Risk
from linrank.solvers.smoothing import Sharpening
from linrank.system.threads import resolve, useful_threads

Array = NDArray[Any]

SAMPLE_SEED = 20140401  # of the preconditioner only: the optimum does not depend on it


@dataclass(frozen=True, eq=False)
class Problem:
    """The RankSVM objective and what it takes to make a smaller one of it."""

    rows: Design
    pairs: Pairs | None  # of the labels; None if there are none
    C: float
    scale: Array | None
    n_threads: int
    loss: str = "squared_hinge"
    preferences: Preferences | None = None
    box: Box | None = None

    @classmethod
    def of(
        cls,
        data: Dataset,
        C: float,
        *,
        loss: str = "squared_hinge",
        preferences: Any = None,
        bounds: tuple[Array, Array] | None = None,
        scale: Array | None = None,
        n_jobs: int | None = None,
        **weighing: Any,
    ) -> Problem:
        """The problem of these data; ``weighing`` are the options of `linrank.pairs.chosen`."""
        if preferences is not None:
            preferences = Preferences.of(preferences, n_rows=data.n_rows)
        pairs, listed = _graded_pairs(data, preferences is None, **weighing)
        if listed is not None:
            preferences = listed if preferences is None else listed.joined(preferences)
        n_threads = useful_threads(data.rows.nbytes, resolve(n_jobs))
        box = None if bounds is None else Box(*bounds)
        rows: Design = data.rows
        if not isinstance(rows, StreamedRows):
            rows = without_offsets(rows)
        return cls(rows, pairs, float(C), scale, n_threads, loss, preferences, box)

    @property
    def n_rows(self) -> int:
        """Rows that are compared with others, at most."""
        if self.pairs is not None:
            return self.pairs.queries.n_rows
        return min(self.rows.shape[0], 2 * len(self.preferences or ()))

    @property
    def longest_query(self) -> int:
        """Rows of the longest query with pairs to find; 0 if all are listed."""
        return 0 if self.pairs is None else int(np.diff(self.pairs.queries.offsets).max())

    @property
    def capacity(self) -> int:
        """Rows that a sample may have."""
        return self.rows.capacity if isinstance(self.rows, StreamedRows) else self.n_rows

    @property
    def largest_matrix(self) -> int:
        """Features up to which the whole Hessian may be formed: all that its factor is worth."""
        return self.rows.shape[1]

    def objective(self, epsilon: float = 1.0) -> Sum:
        """``F``, with the hinge smoothed within ``epsilon`` of its kink."""
        risks = (Risk(self.rows, loss, self.C, self.scale) for loss in self.losses(epsilon))
        return Sum(Ridge(self.box), *risks)

    def losses(self, epsilon: float = 1.0) -> list[ScoreLoss]:
        """The losses that ``F`` is made of: of the pairs of labels, of the preferences."""
        if self.loss != "hinge":
            return self._losses_of(SquaredHinge, PreferenceSquaredHinge)
        return self._losses_of(
            lambda pairs, n_threads: Huber(pairs, epsilon, n_threads),
            lambda listed, n_rows, n_threads: PreferenceHuber(listed, n_rows, epsilon, n_threads),
        )

    def unsmoothed(self) -> Sum:
        """``F`` with its kinks, for a method that does not need curvature."""
        if self.loss != "hinge":
            return self.objective()
        return self.sum_of(Hinge, PreferenceHinge)

    def published(self, method: str, counting: str | None) -> Sum:
        """``F`` as a published method computes it: sparse rows in double, one thread."""
        if isinstance(self.rows, StreamedRows):
            raise ValueError(
                f"solver={method!r} is a published method and reads stored rows, but these are "
                f"{self.rows.describe()}; use solver='newton', or allow more memory"
            )
        rows = published.sparse_doubles(self.rows)
        return replace(self, rows=rows, n_threads=1).sum_of(
            lambda pairs, _: published.published_loss(pairs, self.loss, method, counting),
            PreferenceHinge if self.loss == "hinge" else PreferenceSquaredHinge,
        )

    def sum_of(
        self,
        of_pairs: Callable[[Pairs, int], ScoreLoss],
        of_preferences: Callable[[Preferences, int, int], ScoreLoss],
    ) -> Sum:
        """``½‖w‖²`` and the risks of the pairs of labels and of the preferences, if there are."""
        losses = self._losses_of(of_pairs, of_preferences)
        return Sum(Ridge(self.box), *(Risk(self.rows, loss, self.C, self.scale) for loss in losses))

    def _losses_of(
        self,
        of_pairs: Callable[[Pairs, int], ScoreLoss],
        of_preferences: Callable[[Preferences, int, int], ScoreLoss],
    ) -> list[ScoreLoss]:
        losses = []
        if self.pairs is not None:
            losses.append(of_pairs(self.pairs, self.n_threads))
        if self.preferences is not None:
            losses.append(of_preferences(self.preferences, self.rows.shape[0], self.n_threads))
        return losses

    def sharpening(self, tol: float) -> Sharpening | None:
        """From the smoothed hinge to the hinge; None where nothing is smoothed."""
        return Sharpening(self.objective, tol) if self.loss == "hinge" else None

    def sample(self, n_rows: int) -> Problem:
        """The same problem on about ``n_rows`` rows, its loss scaled up to the whole.

        Of rows that are computed block by block those of the sample are stored.
        """
        if not isinstance(self.rows, StreamedRows):
            return self._sample(n_rows)
        return self._sample(min(n_rows, self.rows.capacity))._stored(self.rows)

    def _stored(self, rows: StreamedRows) -> Problem:
        """The same problem on the rows that it names, stored; ``rows`` are all of them."""
        pairs, listed = self.pairs, self.preferences
        named = [np.zeros(0, dtype=np.int64)]
        if pairs is not None:
            order = pairs.queries.order
            named.append(np.arange(rows.shape[0]) if order is None else order)
        if listed is not None:
            named += [listed.winners, listed.losers]
        kept = np.unique(np.concatenate(named))
        if pairs is not None:
            pairs = replace(pairs, queries=replace(pairs.queries, order=_place(kept, named[1])))
        if listed is not None:
            ends = _place(kept, listed.winners), _place(kept, listed.losers)
            listed = Preferences(*ends, listed.weight)
        return replace(
            self, rows=rows.stored(kept, self.n_threads), pairs=pairs, preferences=listed
        )

    def _sample(self, n_rows: int) -> Problem:
        whole = self.pairs
        if whole is None:
            return self._with_preferences_of(self, n_rows / self.n_rows)
        queries, positions, row_weight = sample_queries(whole.queries, n_rows, SAMPLE_SEED)
        pairs = whole.on(queries, positions, row_weight)
        n_bytes = self.rows.nbytes * queries.n_rows / whole.queries.n_rows
        weight = pairs.total_weight()
        sample = replace(
            self,
            pairs=pairs,
            C=self.C * whole.total_weight() / weight if weight > 0 else self.C,
            n_threads=useful_threads(n_bytes, self.n_threads),
        )
        return sample._with_preferences_of(self, n_rows / self.n_rows)

    def _with_preferences_of(self, whole: Problem, share: float) -> Problem:
        """The same problem with a share of the preferences, which keep their weight in all."""
        if whole.preferences is None:
            return self
        some = sample_preferences(whole.preferences, share, SAMPLE_SEED, whole.C / self.C)
        n_threads = useful_threads(share * self.rows.nbytes, self.n_threads)
        return replace(self, preferences=some, n_threads=n_threads)


def _place(kept: Array, rows: Array) -> Array:
    """Where the rows are among those kept, which ascend."""
    return np.searchsorted(kept, rows).astype(np.int64, copy=False)


def _graded_pairs(
    data: Dataset, is_needed: bool, **options: Any
) -> tuple[Pairs | None, Preferences | None]:
    """The pairs of the labels, swept and listed; None where there are none and none are needed."""
    try:
        return chosen(data, **options)
    except NoPairsError:
        if is_needed:
            raise
        return None, None
