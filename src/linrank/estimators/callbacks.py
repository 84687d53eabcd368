"""Callbacks of scikit-learn >= 1.9: they are told of every iteration of a fit, and may end it."""

from __future__ import annotations

import functools
import inspect
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from linrank.data.dataset import Dataset
from linrank.io.store.outline import columns_of
from linrank.io.store.store import Store

try:
    from sklearn.callback import CallbackSupportMixin
    from sklearn.callback import with_callbacks as _torn_down
except ImportError:  # scikit-learn < 1.9 has none; without set_callbacks nobody asks for them

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """In place of scikit-learn's, which older versions lack."""

    def _torn_down(method: Any) -> Any:
        return method


if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from linrank.models.linear import LinearModel

    Fit = TypeVar("Fit", bound=Callable[..., Any])


class CallbackSupport(CallbackSupportMixin):  # type: ignore[misc]
    """Gives an estimator ``set_callbacks``, where scikit-learn has it; its fits are decorated."""


class FitWatch:
    """What a fit tells the callbacks of its estimator: the whole, and one task an iteration.

    As in scikit-learn's own solvers that only report an iterate when it is done, the task of an
    iteration begins with the report of the one before, and the last task, which never ran, ends
    empty. How many there will be is known to nobody before `tol` is reached.

    Parameters
    ----------
    ranker : CallbackSupport
        The estimator.
    given : mapping from str to Any
        The arguments of its ``fit``. ``X`` and ``y`` go to the callbacks as they are, unless ``X``
        is a store; query ids go along as metadata. The labels and ids of a data set are its own.
    """

    def __init__(self, ranker: Any, given: Mapping[str, Any]) -> None:
        X, y = given.get("X"), given.get("y")
        self._ranker, self._given = ranker, given
        self._rows: dict[str, Any] = {"estimator": ranker}
        if not isinstance(X, Store):
            y = X.labels if isinstance(X, Dataset) else y
            self._rows |= {"X": X, "y": y, "metadata": self._metadata}
        self._whole = ranker._init_callback_context(max_subtasks=None)
        self._whole.call_on_fit_task_begin(**self._rows)
        self._task: Any = None

    def begin(self) -> None:
        """The solver is about to start."""
        self._task = self._whole.subcontext(task_name="iteration")
        self._task.call_on_fit_task_begin(**self._rows)

    def report(self, n_iter: int, model: Callable[[], LinearModel] | None) -> bool:
        """An iterate is there, and the next begins; whether a callback wants to stop.

        ``n_iter`` is 0 for the starting point, which took no iteration. ``model`` is called if a
        callback asks for the estimator as if it were fitted; None where that cannot be had.
        """
        if n_iter == 0:
            return False
        attributes = None if model is None else lambda: self._fitted(model())
        stop = self._task.call_on_fit_task_end(**self._rows, reconstruction_attributes=attributes)
        self.begin()
        return bool(stop)

    def close(self) -> None:
        """The estimator is fitted."""
        if self._task is not None:
            self._task.call_on_fit_task_end(estimator=self._ranker)
        self._whole.call_on_fit_task_end(**self._rows, reconstruction_attributes=dict)

    def _fitted(self, model: LinearModel) -> dict[str, Any]:
        return {"model_": model, "coef_": model.coef, "needs_qid_": self._ids() is not None}

    def _metadata(self) -> dict[str, Any] | None:
        qid = self._ids()
        return None if qid is None else {"qid": qid}

    def _ids(self) -> Any:
        """The query of each row; of a store, what stands for it."""
        X, group = self._given.get("X"), self._given.get("group")
        if isinstance(X, Store):
            return columns_of(X).qid
        if isinstance(X, Dataset):
            return X.qid
        if group is not None:
            return np.repeat(np.arange(len(group)), group)
        return self._given.get("qid")


def with_callbacks(fit: Fit) -> Fit:
    """Let the callbacks of the estimator watch ``fit``; without any, nothing is changed.

    While it runs, the estimator holds a `FitWatch`, which the `Monitor` reports to.
    """
    signature = inspect.signature(fit)

    def watched(ranker: Any, *args: Any, **kwargs: Any) -> Any:
        ranker._fit_watch = FitWatch(ranker, signature.bind(ranker, *args, **kwargs).arguments)
        try:
            fitted = fit(ranker, *args, **kwargs)
            ranker._fit_watch.close()
        finally:
            del ranker._fit_watch
        return fitted

    watched = _torn_down(watched)

    @functools.wraps(fit)
    def run(ranker: Any, *args: Any, **kwargs: Any) -> Any:
        run_ = watched if getattr(ranker, "_skl_callbacks", None) else fit
        return run_(ranker, *args, **kwargs)

    return run  # type: ignore[return-value]
