"""TopicModels: the models of all topics, in the memory of their non-zero coefficients."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from linrank.model import LinearModel
from linrank.scaling import Scaling

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Learnt", "TopicModels", "stacked"]


@dataclass(frozen=True, eq=False)
class Learnt:
    """What the fit of one topic leaves behind.

    Attributes
    ----------
    columns, values : arrays
        The non-zero weights of the model.
    training : mapping
        Summary of the run, as in :class:`linrank.LinearModel`.
    converged : bool
        Whether the estimator reached its tolerance, if it has one.
    seconds : float
        Time of the fit.
    """

    columns: NDArray[np.int32]
    values: NDArray[np.float64]
    training: Mapping[str, Any]
    converged: bool
    seconds: float


def stacked(learnt: list[Learnt | None], n_features: int) -> Any:
    """The coefficients as a ``scipy.sparse.csr_array``; takes the weights out of ``learnt``.

    A topic's weights are let go of as soon as they are copied, so that there is hardly more than
    one copy at a time.
    """
    from scipy.sparse import csr_array

    sizes = [0 if one is None else len(one.values) for one in learnt]
    offsets = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])
    n_entries = int(offsets[-1])
    index = np.int32 if n_entries <= np.iinfo(np.int32).max else np.int64
    values, columns = np.empty(n_entries), np.empty(n_entries, dtype=index)
    for t, begin in enumerate(offsets[:-1].tolist()):
        one, learnt[t] = learnt[t], None
        if one is not None:
            values[begin : begin + sizes[t]] = one.values
            columns[begin : begin + sizes[t]] = one.columns
    shape = (len(learnt), n_features)
    return csr_array((values, columns, offsets.astype(index)), shape=shape)


@dataclass(frozen=True, eq=False)
class TopicModels(Sequence[LinearModel | None]):
    """A :class:`linrank.LinearModel` for each topic, None for one that could not be learnt.

    They are made when they are asked for: what is kept is ``coef``, sparse.

    Attributes
    ----------
    coef : scipy.sparse.csr_array of shape (n_topics, n_features)
        Coefficients of the raw features.
    trainings : list of mapping or None
        Summary of the run of each topic; None for a topic without a model.
    scaling : Scaling
        The same for all.
    feature_names : tuple of str or None
        Likewise.
    """

    coef: Any
    trainings: list[Mapping[str, Any] | None]
    scaling: Scaling
    feature_names: tuple[str, ...] | None

    def __len__(self) -> int:
        return len(self.trainings)

    @overload
    def __getitem__(self, t: int) -> LinearModel | None: ...
    @overload
    def __getitem__(self, t: slice) -> list[LinearModel | None]: ...
    def __getitem__(self, t: int | slice) -> LinearModel | list[LinearModel | None] | None:
        if isinstance(t, slice):
            return [self[i] for i in range(*t.indices(len(self)))]
        training = self.trainings[t]
        if training is None:
            return None
        return LinearModel(self.weights(t), self.feature_names, self.scaling, training)

    def __repr__(self) -> str:
        n_missing = sum(training is None for training in self.trainings)
        missing = f", {n_missing} without a model" if n_missing else ""
        return f"<TopicModels: {len(self)} topics{missing}, {self.coef.nnz} non-zero weights>"

    def weights(self, t: int) -> NDArray[np.float64]:
        """The coefficients of topic ``t`` as a dense vector."""
        t = range(len(self))[t]
        dense = np.zeros(self.coef.shape[1])
        entries = slice(self.coef.indptr[t], self.coef.indptr[t + 1])
        dense[self.coef.indices[entries]] = self.coef.data[entries]
        return dense
