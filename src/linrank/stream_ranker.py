"""StreamRanker: ``partial_fit``, the part of SGDRanker that learns from rows as they come."""

from __future__ import annotations

import math
from numbers import Real
from typing import TYPE_CHECKING, Any, ClassVar

from sklearn.utils.validation import column_or_1d, validate_data

from linrank.data.frames import as_array, column_names
from linrank.data.id_columns import check_no_query_ids
from linrank.linear_ranker import DescentRanker
from linrank.model import LinearModel
from linrank.seeds import seed_of
from linrank.stochastic.descent import Learner
from linrank.stochastic.streaming import StreamTrainer
from linrank.stochastic.training import DescentResult, regularisation

if TYPE_CHECKING:
    from linrank.data.dataset import Dataset
    from linrank.data.rows import Rows

__all__ = ["StreamRanker"]

# Parameters that a stream is opened with, and keeps.
_OPTIONS = (
    "algorithm",
    "alpha",
    "aggressiveness",
    "sampling",
    "average",
    "steps_per_row",
    "buffer_mb",
)


class StreamRanker(DescentRanker):
    """A ranker with ``partial_fit``.

    A subclass has the parameters of `SGDRanker`.
    """

    __metadata_request__partial_fit: ClassVar[dict[str, bool]] = {"qid": True}

    def partial_fit(self, X: Any, y: Any, *, qid: Any = None) -> StreamRanker:
        """Learn from some more rows.

        Rows of whole or partial queries may come in any order, a few or many at a time. New rows
        make pairs among themselves and with the rows of their query that a buffer of `buffer_mb`
        remembers; `steps_per_row` steps are taken for each of them. After :meth:`fit`, goes on from
        its weights. `n_steps`, `tol`, `record`, `early_stopping`, `callback` and `verbose` are for
        ``fit`` only; `C`, `scale` and ``algorithm="hybrid"``, which need to know the whole of the
        data, are refused.

        Parameters
        ----------
        X : matrix of shape (n_rows, n_features)
            NumPy or SciPy matrix or data frame; the buffer keeps float32.
        y : array of shape (n_rows,)
            Real labels.
        qid : array of shape (n_rows,)
            Query of each row, in all calls or in none. None: all rows ever given are one query.

        Returns
        -------
        SGDRanker
            The estimator. Before the first pair there is nothing to predict with.

        Examples
        --------
        >>> from linrank import SGDRanker
        >>> ranker = SGDRanker(random_state=0)
        >>> for _ in range(50):
        ...     ranker = ranker.partial_fit([[0.0], [1.0]], [0, 1], qid=["a", "a"])
        >>> bool(ranker.coef_[0] > 0), ranker.n_steps_
        (True, 400)
        """
        labels = None if y is None else column_or_1d(as_array(y, "y"), warn=True)
        self._check_stream(qid)
        if qid is None:
            check_no_query_ids(X)
        is_new = not hasattr(self, "n_features_in_")
        try:
            validate_data(self, X, labels, reset=is_new, skip_check_array=True)
            stream = self._stream if hasattr(self, "_stream") else self._open_stream()
            stream.feed(X, labels, qid)
        except BaseException:  # an interrupt too
            if is_new:  # rows that were refused do not say what the next ones must look like
                for name in ("n_features_in_", "feature_names_in_"):
                    self.__dict__.pop(name, None)
            raise
        self._stream: StreamTrainer = stream
        self.needs_qid_ = qid is not None
        self._stream_options = self._kept_options()
        if stream.counts.pairs > 0:
            self._adopt_stream(column_names(X))
        return self

    def _check_stream(self, qid: Any) -> None:
        """Refuse what a stream cannot do, and what has changed since it was opened."""
        if self.C is not None:
            raise ValueError(
                f"partial_fit cannot use C={self.C}: λ = 1/(C p) needs the number p of pairs, "
                "which a stream does not know; set alpha, and C=None"
            )
        if self.scale != "none":
            raise ValueError(
                f"partial_fit cannot use scale={self.scale!r}, which needs all rows; scale X "
                "before and set scale='none'"
            )
        if self.missing != "error":
            raise ValueError(
                f"partial_fit cannot use missing={self.missing!r}, which is learnt from all rows; "
                "fill them in before and set missing='error'"
            )
        if self.algorithm == "hybrid":
            raise ValueError(
                "partial_fit cannot use algorithm='hybrid', which plans its switch by n_steps; use "
                "'pegasos' or 'pa'"
            )
        if hasattr(self, "needs_qid_") and self.needs_qid_ != (qid is not None):
            told, now = ("with", "without") if self.needs_qid_ else ("without", "with")
            raise ValueError(f"rows came {told} qid before and now {now}; give qid always or never")
        for name, value in getattr(self, "_stream_options", {}).items():
            if getattr(self, name) != value:
                raise ValueError(
                    f"{name} was {value!r} when the stream began and is {getattr(self, name)!r} "
                    "now; set it back, or begin anew with sklearn.base.clone"
                )

    def _kept_options(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in _OPTIONS}

    def _open_stream(self) -> StreamTrainer:
        alpha = regularisation(self.alpha)
        steps = getattr(self, "n_steps_", 0)
        learner = Learner(self.algorithm, alpha, self.aggressiveness, float(steps))
        for name in ("buffer_mb", "steps_per_row"):
            value = getattr(self, name)
            if not (isinstance(value, Real) and 0 < float(value) < math.inf):
                raise ValueError(f"{name} must be finite and > 0, got {value!r}")
        stream = StreamTrainer(
            [learner],
            average=self._average(),
            seed=seed_of(self.random_state),
            sampling=self.sampling,
            memory=int(self.buffer_mb * 1e6),
            steps_per_row=self.steps_per_row,
        )
        if hasattr(self, "coef_"):
            if self.model_.scaling.needs_queries:
                raise ValueError(
                    "partial_fit cannot go on from a fit with scale='query', whose weights are for "
                    "rows scaled within their query; begin anew with sklearn.base.clone"
                )
            if self.model_.missing.is_filled:
                raise ValueError(
                    "partial_fit cannot go on from a fit that fills in missing values; begin anew "
                    "with sklearn.base.clone"
                )
            stream.descent.grow(self.coef_.size)
            stream.descent.become(0, learner, self.coef_)
        self._steps_before = steps
        return stream

    def _adopt_stream(self, names: tuple[str, ...] | None) -> None:
        """Set the attributes of a fit from the state of the stream."""
        stream = self._stream
        stream.descent.check_finite()
        result = DescentResult(
            w=stream.weights()[0],
            alpha=stream.descent.learners[0].alpha,
            n_steps=self._steps_before + stream.n_steps,
            objective=math.nan,
            gap=math.nan,
            loss=float(stream.descent.mean_losses()[0]),
            stopped="stream",
            message="took the steps of all rows so far",
            n_pairs=stream.counts.pairs,
            history={},
        )
        training = {
            **self._kept_options(),
            "average": self._average(),
            **result.summary,
            "n_rows": stream.counts.rows,
        }
        if names is None and hasattr(self, "feature_names_in_"):  # of rows before these
            names = tuple(map(str, self.feature_names_in_))
        self._adopt_result(result)
        self.model_ = LinearModel(result.w, names, training=training)
        self.coef_ = self.model_.coef
        self.n_queries_ = stream.buffer.n_new_queries

    def _forget_stream(self) -> None:
        """A fit begins anew: what was streamed is not part of it."""
        for name in ("_stream", "_stream_options", "_steps_before"):
            self.__dict__.pop(name, None)

    def _rows(self, X: Any, qid: Any) -> tuple[Rows | Dataset, Any]:
        if hasattr(self, "_stream") and not hasattr(self, "model_"):
            self._stream.check_pairs("partial_fit so far")
        return super()._rows(X, qid)
