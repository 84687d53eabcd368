"""What is watched while a solver runs: validation measure, early stopping, progress."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from linrank.choices import SCORING
from linrank.data.dataset import Dataset
from linrank.data.queries import as_sizes
from linrank.data.scaling import Scaling
from linrank.metrics import convention, evaluate, parse, parse_scoring
from linrank.models.linear import LinearModel

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from linrank.solvers.result import Result

    State = dict[str, Any]
    Callback = Callable[[State], bool | None]


def entries(eval_set: Any, eval_qid: Any, eval_group: Any) -> list[tuple[Any, Any, Any, Any]]:
    """``(X, y, qid, group)`` of every validation set, as given."""
    pairs = [eval_set] if isinstance(eval_set, tuple) and len(eval_set) == 2 else list(eval_set)
    qids, groups = (
        _one_each("eval_qid", eval_qid, pairs),
        _one_each("eval_group", eval_group, pairs),
    )
    return [(X, y, q, g) for (X, y), q, g in zip(pairs, qids, groups, strict=True)]


def folds_or_validation(
    cv: Any, eval_set: Any = None, eval_qid: Any = None, eval_group: Any = None
) -> Any:
    """The parameter ``cv``, or the validation data of ``fit`` as ``(X, y, qid)`` in its place.

    Of several pairs in ``eval_set`` the last one decides, as it does for `early_stopping`.
    """
    if eval_set is None:
        _check_alone(eval_qid, eval_group)
        return cv
    if cv is not None:
        raise ValueError(
            f"eval_set is there to choose by, and cv={cv!r} too; leave one of them out"
        )
    sets = entries(eval_set, eval_qid, eval_group)
    if not sets:
        raise ValueError("eval_set is empty; give a pair (X, y), or leave it out")
    X, y, qid, group = sets[-1]
    if group is None:
        return X, y, qid
    if qid is not None:
        raise ValueError("give eval_qid (one id per row) or eval_group (sizes), not both")
    sizes = as_sizes(group, len(y))
    return X, y, np.repeat(np.arange(len(sizes)), sizes)


def _check_alone(eval_qid: Any, eval_group: Any) -> None:
    for name, value in (("eval_qid", eval_qid), ("eval_group", eval_group)):
        if value is not None:
            raise ValueError(f"{name} is given without eval_set")


def _one_each(name: str, values: Any, pairs: Sequence[Any]) -> list[Any]:
    if values is None:
        return [None] * len(pairs)
    each = list(values)
    # A single validation set may come without the list around it.
    if len(pairs) == 1 and (len(each) != 1 or np.ndim(each[0]) == 0):
        return [values]
    if len(each) != len(pairs):
        raise ValueError(f"{name} has {len(each)} entries for {len(pairs)} pairs in eval_set")
    return each


def validation_sets(
    data: Dataset,
    X_val: Any,
    y_val: Any,
    qid_val: Any,
    eval_set: Any,
    eval_qid: Any,
    eval_group: Any,
) -> list[Dataset]:
    """The validation data of ``fit``, in the spelling of scikit-learn or of the tree libraries.

    ``eval_set`` is a list of pairs ``(X, y)``, or one such pair; ``eval_qid`` (ids per row) or
    ``eval_group`` (sizes) has one entry for each. All must match the training `data`.
    """
    filling = data.filling
    n_features = data.n_raw_features
    missing = "error" if filling is None else "keep"
    if eval_set is None:
        _check_alone(eval_qid, eval_group)
        if (X_val is None) != (y_val is None) or (X_val is None and qid_val is not None):
            raise ValueError("X_val, y_val and qid_val belong together; pass the missing ones")
        listed = [] if X_val is None else [(X_val, y_val, qid_val, None)]
    elif any(part is not None for part in (X_val, y_val, qid_val)):
        raise ValueError("give X_val, y_val and qid_val, or eval_set, not both")
    else:
        listed = entries(eval_set, eval_qid, eval_group)
    sets = [Dataset.of(X, y, qid=qid, group=group, missing=missing) for X, y, qid, group in listed]
    for held_out in sets:
        if (held_out.qid is None) != (data.qid is None):
            lacking = "validation" if held_out.qid is None else "training"
            remedy = "qid_val (with eval_set: eval_qid or eval_group)"
            remedy = remedy if held_out.qid is None else "qid or group"
            raise ValueError(
                f"the {lacking} data has no query ids, the other has; pass {remedy} too"
            )
        if held_out.n_features != n_features:
            raise ValueError(
                f"the validation rows have {held_out.n_features} features, "
                f"the training rows {n_features}"
            )
    return sets if filling is None else [filling.dataset(held_out) for held_out in sets]


class Monitor:
    """A callback for the solver.

    It computes `scoring` on each validation set at every iterate, remembers the best iterate (of
    the last set), and asks to stop after `n_iter_no_change` iterations without a better one.

    Parameters
    ----------
    ranker : object
        Has the parameters ``verbose``, ``callback`` and ``n_jobs``; where it takes validation data,
        those of `Watched` too.
    sets : sequence of Dataset
        Validation data.
    scaling : Scaling or None
        Of the training run: iterates live in the scaled space. None where what the solver calls w
        are no weights of features.
    """

    def __init__(
        self,
        ranker: Any,
        sets: Sequence[Dataset] = (),
        scaling: Scaling | None = None,
    ) -> None:
        self._scoring = scoring = getattr(ranker, "scoring", SCORING)
        self.scaling = scaling or Scaling()
        many = len(sets) > 1
        name = scoring if isinstance(scoring, str) else str(parse(scoring))
        self.keys = [f"val{i if many else ''}_{name}" for i in range(len(sets))]
        self.history: dict[str, list[float]] = {key: [] for key in self.keys}
        self.best_iteration = 0
        self.best_w: NDArray[np.float64] | None = None
        self._n_jobs = n_jobs = ranker.n_jobs
        self._sets = [
            replace(data, rows=self.scaling.transform(data.rows, data.queries, n_jobs=n_jobs))
            for data in sets
        ]
        self._sign = 1.0 if not sets or parse(scoring).higher_is_better else -1.0
        is_impatient = getattr(ranker, "early_stopping", False)
        self._patience: int | None = ranker.n_iter_no_change if is_impatient else None
        self._verbose, self._callback = ranker.verbose, ranker.callback

    @classmethod
    def of(cls, ranker: Any, sets: Sequence[Dataset], scaling: Scaling) -> Monitor:
        """The monitor that the parameters of an estimator ask for, checked."""
        if ranker.early_stopping and not sets:
            raise ValueError("early_stopping=True needs validation data: pass X_val and y_val")
        if ranker.scoring != SCORING:
            parse_scoring(ranker.scoring)  # a misspelt name is told even with nothing to score
        if ranker.n_iter_no_change < 1:
            raise ValueError(f"n_iter_no_change must be >= 1, got {ranker.n_iter_no_change}")
        return cls(ranker, sets, scaling)

    @property
    def is_needed(self) -> bool:
        """Whether there is anything to do at an iterate."""
        return bool(self._sets) or self._verbose > 0 or self._callback is not None

    def __call__(self, state: State) -> bool:
        if self._sets:
            self._score(state["w"])
        latest = {key: values[-1] for key, values in self.history.items()}
        if self._verbose > 0:
            _report(state, latest)
        wanted = self._callback is not None and self._callback({**state, **latest})
        return bool(wanted) or self._out_of_patience()

    def best(self, result: Result) -> Result:
        """The best iterate in place of the last one."""
        i = self.best_iteration
        if self.best_w is None or i == len(result.history["objective"]) - 1:
            return result
        history = result.history
        return replace(
            result,
            w=self.best_w,
            value=history["objective"][i],
            gap=history["gap"][i],
            # Where there is no gradient, the residual says the same of the smallest subgradient.
            gradient_norm=history.get("gradient_norm", history["kkt_residual"])[i],
            kkt_residual=history["kkt_residual"][i],
            converged=False,
            stopped="callback",
            message=f"iteration {i} had the best {self.keys[-1]}",
        )

    def _score(self, w: NDArray[np.float64]) -> None:
        model = LinearModel(self.scaling.fold(w))
        # The start at 0 ranks nothing: in input order, rows sorted by label would be perfect.
        rules = convention("linrank", ties="stable" if w.any() else "average")
        for key, data in zip(self.keys, self._sets, strict=True):
            scores = model.predict(data.rows, n_jobs=self._n_jobs)
            values = evaluate(
                data.labels, scores, qid=data.qid, metrics=(self._scoring,), convention=rules
            )
            self.history[key].append(float(values[self._scoring]))
        if self._sets:
            steering = self.history[self.keys[-1]]
            gain = self._sign * (steering[-1] - steering[self.best_iteration])
            # The first iterate always, later ones only when strictly better.
            if self.best_w is None or gain > 0.0:
                self.best_iteration, self.best_w = len(steering) - 1, w.copy()

    def _out_of_patience(self) -> bool:
        if self._patience is None:
            return False
        n_judged = len(self.history[self.keys[-1]])
        return bool(n_judged - 1 - self.best_iteration >= self._patience)


def _report(state: State, latest: dict[str, float]) -> None:
    """One line per iteration."""
    told = [key for key in ("objective", "gap") if np.isfinite(state.get(key, np.nan))]
    known = {key: state[key] for key in told}
    values = "".join(f", {key} {value:.6g}" for key, value in {**known, **latest}.items())
    # Solvers count iterations, descents steps.
    place = f"step {state['n_steps']:,}" if "n_steps" in state else f"iteration {state['n_iter']}"
    tell(f"{place}{values}")


def tell(line: str) -> None:
    """A line of progress: to the logger when somebody listens, else to standard error.

    A notebook shows standard error as a red box: there it goes to standard output.
    """
    import logging  # what nobody listens to is not loaded

    logger = logging.getLogger("linrank")
    if logger.hasHandlers() and logger.isEnabledFor(logging.INFO):
        logger.info(line)  # which puts its own name before it
    else:
        ipython: Any = sys.modules.get("IPython")
        shell = None if ipython is None else ipython.get_ipython()
        stream = sys.stderr if getattr(shell, "kernel", None) is None else sys.stdout
        stream.write(f"linrank: {line}\n")
