"""Who takes part in a contest: linrank's own methods, from their registry, and the rivals.

A contestant is a function from a `Trial` and a point of its grid to a model. It is named and not
passed, because it runs in a process of its own.
"""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial
from importlib.util import find_spec
from itertools import product
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linrank.data.dataset import Dataset
from linrank.data.rows import as_rows
from linrank.data.scaling import Scaling
from linrank.errors import did_you_mean
from linrank.methods.base import METHODS, Later, Task
from linrank.metrics import Convention, convention, parse
from linrank.metrics.evaluate import evaluate_queries
from linrank.models.kernel import KernelModel
from linrank.models.linear import LinearModel
from linrank.search.folds import deal

Array = NDArray[Any]

BASELINE = "ranksvm"
BEST = "best"  # in a grid: as many rounds as are best on validation; left out where there is none
N_FOLDS = 5  # of the training queries, where there is no validation part to choose by


def fair_convention(name: str | Convention) -> Convention:
    """The convention with equal scores averaged over their orders where it takes input order.

    Trees and single features tie many rows. In a file sorted by label, input order would rank
    tied rows perfectly.
    """
    chosen = convention(name)
    return convention(chosen, ties="average") if chosen.ties == "stable" else chosen


@dataclass(frozen=True, eq=False)
class Trial:
    """The data and the rules of one fold, as a contestant sees them.

    Attributes
    ----------
    train : Dataset
        The rows of a query come together.
    valid : Dataset or None
        The rows that candidates are judged on; None where cross-validation over the training
        queries chooses, so that nothing is there to stop a training by.
    scoring : str
        The measure that candidates are chosen by.
    convention : Convention
        Its rules.
    scale : {"standard", "minmax", "none"}
        Scaling of the features for methods that depend on it, to be fitted on ``train``.
    seed : int
        Of everything random.
    last : dict
        What a candidate leaves for the next one.
    """

    train: Dataset
    valid: Dataset | None
    scoring: str
    convention: Convention
    scale: str = "standard"
    seed: int = 0
    last: dict[str, Any] = field(default_factory=dict, repr=False)
    _kept: dict[Any, Any] = field(default_factory=dict, repr=False)

    def judge(self, scores: Any) -> float:
        """The measure of scores of the validation rows, signed so that higher is better.

        In cross-validation, of the training rows, each scored by a model that has not seen it.
        Scores that it cannot judge, as equal ones by Kendall's τ, are worse than all others.
        """
        measure = parse(self.scoring)
        data = self.train if self.valid is None else self.valid
        result = evaluate_queries(
            data.queries,
            data.labels,
            np.asarray(scores, dtype=np.float64),
            metrics=measure,
            convention=self.convention,
            n_jobs=1,
        )
        value = next(iter(result.values()))
        if np.isnan(value):
            return -np.inf
        return value if measure.higher_is_better else 0.0 - value

    def parts(self) -> Sequence[tuple[Trial, Dataset, Any]]:
        """What candidates are trained on, the rows that they score, and which of the judged ones.

        The folds depend on the sizes of the training queries alone: they are the same for all.
        """
        if self.valid is not None:
            return [(self, self.valid, slice(None))]
        data, folds = self.train, deal(self.train, N_FOLDS)
        trials = [replace(self.anew(), train=data.select(fold.train)) for fold in folds]
        held_out = [np.asarray(fold.valid) for fold in folds]
        return [(t, data.select(rows), rows) for t, rows in zip(trials, held_out, strict=True)]

    def anew(self) -> Trial:
        """The same without what candidates have left."""
        return replace(self, last={}, _kept={})

    def once(self, make: Callable[..., Any], *given: Any) -> Any:
        """``make(trial, *given)``, made for the first candidate and kept for the others."""
        key = (make, *given)
        if key not in self._kept:
            self._kept[key] = make(self, *given)
        return self._kept[key]


@dataclass(frozen=True)
class Size:
    """How large a model is: bytes of its saved form, and what it is made of."""

    n_bytes: int
    n_parts: int = 0
    part: str = "weights"


@dataclass(frozen=True)
class Model:
    """A trained model, as a contest uses it.

    Attributes
    ----------
    predict : callable
        Scores of the rows of a dataset.
    size : callable
        Its `Size`; called for models that are kept.
    found : mapping of str to str, int or float
        Parameters that its training chose, beside or in place of those of the grid: with them,
        ``fit`` gives the same model and searches no more.
    """

    predict: Callable[[Dataset], Array]
    size: Callable[[], Size]
    found: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        model: Any,
        predict: Callable[[Dataset], Array] | None = None,
        n_leaves: Callable[[], int] | None = None,
        **more: Any,
    ) -> Model:
        """A model of linrank, or anything that predicts the scores of a matrix."""
        if isinstance(model, LinearModel | KernelModel):
            ours = partial(_saved_size, model)
            return cls(lambda data: model.predict(data, n_jobs=1), ours, **more)

        def size() -> Size:
            n_bytes = len(pickle.dumps(model))
            return Size(n_bytes) if n_leaves is None else Size(n_bytes, n_leaves(), "leaves")

        return cls(predict or (lambda data: model.predict(data.X)), size, **more)


def _saved_size(model: LinearModel | KernelModel) -> Size:
    """Bytes of what ``model.save`` writes, all files together."""
    parts = (int(np.count_nonzero(model.coef)), "weights")
    if isinstance(model, KernelModel):
        parts = (model.n_support, "support rows")
    with TemporaryDirectory() as folder:
        try:
            model.save(os.path.join(folder, "model.json"))
        except ImportError:  # beyond a million numbers the file needs safetensors
            return Size(8 * model.n_features * parts[0], *parts)
        return Size(sum(entry.stat().st_size for entry in os.scandir(folder)), *parts)


@dataclass(frozen=True)
class Contestant:
    """A way of learning to rank that a contest can train.

    Parameters
    ----------
    name : str
        What tables call it.
    family : str
        Whose it is.
    description : str
        What it minimises, in a few words.
    fit : str
        ``"module:function"``. The function takes a `Trial` and, by name, a value of each axis of
        the grid, and returns a `Model` or whatever ``predict(X)`` tells the scores of.
    grid : dict
        Values by the name of the parameter, the most regularised first: among equals the first
        is taken. In place of values, ``"module:function"`` of a function that finds them in a
        `Trial`. The value `BEST` is tried where there is a validation part.
    needs : str or None
        A package that must be there.
    settings : dict
        What all candidates have in common, passed to ``fit`` as well.
    note : str
        What to know of the candidates beyond the grid.
    is_usual : bool
        Whether it is one of "all".
    also : sequence of dict
        Candidates of their own, tried before the grid: ``{}`` for the plain defaults.
    """

    name: str
    family: str
    description: str
    fit: str
    grid: Mapping[str, Sequence[Any] | str] = field(default_factory=dict)
    needs: str | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    note: str = ""
    is_usual: bool = True
    also: Sequence[Mapping[str, Any]] = ()

    @property
    def is_missing(self) -> bool:
        """Whether the package that it needs is absent."""
        return self.needs is not None and find_spec(self.needs) is None

    @property
    def candidates(self) -> str:
        """The candidates in words."""
        axes = " × ".join(_in_words(name, values) for name, values in self.grid.items())
        told = [*map(point_in_words, self.also), axes, self.note]
        return "; ".join(part for part in told if part) or "none"

    def points(self, trial: Trial) -> Sequence[dict[str, Any]]:
        """The parameters of every candidate."""
        axes: dict[str, Sequence[Any]] = {}
        for name, values in self.grid.items():
            if isinstance(values, str):
                values = _named(values)(trial, **self.settings)
            axes[name] = [v for v in values if v != BEST or trial.valid is not None]
        grid = [dict(zip(axes, place, strict=True)) for place in product(*axes.values())]
        also = [dict(point) for point in self.also]
        return also + [point for point in grid if point not in also]

    def model(self, trial: Trial, point: Mapping[str, Any]) -> Model:
        """The candidate, trained."""
        model = _named(self.fit)(trial, **{**self.settings, **point})
        return model if isinstance(model, Model) else Model.of(model)


def point_in_words(point: Mapping[str, Any]) -> str:
    """What a candidate changes.

    Examples
    --------
    >>> point_in_words({"C": 1 / 3, "loss": "hinge"}), point_in_words({})
    ('C 0.333, loss hinge', 'defaults')
    """
    return ", ".join(_in_words(name, [value]) for name, value in point.items()) or "defaults"


def _in_words(name: str, values: Sequence[Any] | str) -> str:
    if isinstance(values, str):
        return f"values of {name} that suit the data"
    told = [f"{value:.3g}" if isinstance(value, float) else str(value) for value in values]
    if len(told) > 3:
        return f"{len(told)} values of {name}, {told[0]} to {told[-1]}"
    return f"{name} {' or '.join([', '.join(told[:-1]), told[-1]] if told[1:] else told)}"


def _named(where: str) -> Any:
    try:
        return Later(where).load()
    except AttributeError:
        raise ImportError(
            f"a process of its own cannot import {where}; put it at the top level of a module"
        ) from None


# ---- linrank's own methods ----------------------------------------------------------------------


def _powers(base: float, first: int, last: int) -> tuple[float, ...]:
    step = 1 if last >= first else -1
    return tuple(float(base) ** k for k in range(first, last + step, step))


# What a registered method is tried with, where its own grid and defaults do not suit a contest: by
# name of the contestant, changes of the parameters, and the grid, which may be empty. The changes
# alone are a candidate too.
_HERE = __name__
_C, _WARM = _powers(2, -20, 10), {"warm_start": True}
_BY_NDCG = {"pair_weighting": "ndcg@20", "C": "auto"}
_PER_QUERY = {"C": f"{_HERE}:weights_per_query"}
_TRIED: dict[str, dict[str, tuple[dict[str, Any], dict[str, Any]]]] = {
    "ranksvm": {
        "ranksvm": (_WARM, {"C": _C}),
        "ranksvm-hinge": ({**_WARM, "loss": "hinge"}, {"C": _powers(2, -20, 3)}),
        "ranksvm-closest": ({**_WARM, "pairs": "closest"}, {"C": _C}),
        "ranksvm-ndcg": (_BY_NDCG, _PER_QUERY),
        "curves": ({**_BY_NDCG, "curves": "quantile"}, _PER_QUERY),
        "interactions": ({**_BY_NDCG, "curves": "quantile", "interactions": 300}, _PER_QUERY),
    },
    "sgd": {"sgd": ({"algorithm": "hybrid", "average": "weighted"}, {"alpha": _powers(10, 3, -7)})},
    "domination": {
        f"domination-{penalty}": (
            {**_WARM, "penalty": penalty},
            {"alpha": f"{_HERE}:path_of_alphas"},
        )
        for penalty in ("l1", "l2")
    },
    "factorized": {
        "factorized": ({"tol": 1e-5}, {"C": _powers(10, -5, 2), "n_components": (1, 5)})
    },
    "kernel": {
        "kernel": (
            {"approximation": "nystroem"},
            {"gamma": f"{_HERE}:usual_gammas", "C": _powers(10, -5, 1)},
        )
    },
}


def own_contestants() -> Iterator[Contestant]:
    """Of every registered method; one without a grid takes part if it is named."""
    for method in METHODS.values():
        named = {"train": _where(method.train), "parameters": _where(method.parameters)}
        tried = _TRIED.get(method.name, {method.name: ({}, dict(method.grid))})
        for name, (changes, grid) in tried.items():
            told = ", ".join(
                f"{key} {value}" for key, value in changes.items() if value is not True
            )
            yield Contestant(
                name,
                "linrank",
                f"{method.summary} ({told})" if told else method.summary,
                f"{_HERE}:own",
                grid,
                settings={**named, **changes},
                is_usual=bool(grid) or method.name in _TRIED,
                also=[{}],
            )


def _where(thing: Any) -> str:
    return str(thing.where) if isinstance(thing, Later) else f"{thing.__module__}:{thing.__name__}"


def own(trial: Trial, train: str, parameters: str, **given: Any) -> LinearModel | KernelModel:
    """A model of one of linrank's methods, by the names of what was registered.

    With ``warm_start`` it begins where the last candidate ended.
    """
    declared = _named(parameters)
    of_all = {"scale": trial.scale, "random_state": trial.seed, "n_jobs": 1}
    known = {each.name for each in fields(declared)}
    shared = {name: value for name, value in of_all.items() if name in known}
    start = trial.last.get("model") if given.get("warm_start") else None
    data = trial.train
    if "curves" in given and data.rows.is_sparse:
        from linrank.judging.contest.rivals import dense

        data = replace(data, rows=as_rows(dense(data)))
    task = Task(data, declared(**shared, **given), start=start)
    model: LinearModel | KernelModel = _named(train)(task).model
    trial.last["model"] = model
    return model


def weights_per_query(trial: Trial, **_: Any) -> list[float]:
    """C where the weights of all pairs sum to the number of queries that have any."""
    n_queries = max(1, int((trial.train.queries.n_levels > 1).sum()))
    return [weight / n_queries for weight in (0.1, 0.3, 1.0, 3.0, 10.0, 30.0)]


def path_of_alphas(trial: Trial, penalty: str, **_: Any) -> list[float]:
    """From the α that leaves no weight down to where the penalty hardly matters."""
    from linrank.domination.path import PathProblem, as_alphas

    options: dict[str, Any] = {"scale": trial.scale, "seed": trial.seed, "n_jobs": 1}
    path = PathProblem.of(trial.train, penalty=penalty, **options)
    alphas: list[float] = as_alphas("auto", path.problem, 50, None).tolist()
    return alphas


def usual_gammas(trial: Trial, **_: Any) -> list[float]:
    """Relative to 1/(features·variance)."""
    from linrank.kernels.functions import Kernel

    scaling = Scaling.fit(trial.scale, trial.train.rows, n_jobs=1)
    rows = scaling.rows(trial.train.rows, n_jobs=1)
    usual = Kernel.of("rbf", gamma="scale", rows=rows).gamma
    return [share * float(usual) for share in (0.1, 0.3, 1.0)]


# ---- the choice ---------------------------------------------------------------------------------


def contestants() -> dict[str, Contestant]:
    """All that are known, by name."""
    from linrank.judging.contest.rivals import RIVALS

    return {one.name: one for one in (*own_contestants(), *RIVALS)}


def chosen_methods(
    methods: str | Iterable[str | Contestant] = "all",
    without: Iterable[str] = (),
    baseline: str | None = None,
) -> Sequence[Contestant]:
    """The methods asked for, in their order, each once, and the baseline among them.

    Raises ValueError for an unknown name, for two methods of one name, and if none is named or
    left.
    """
    known = contestants()

    def named(name: str) -> Contestant:
        if name not in known:
            hint = did_you_mean(name, known, 0.5)
            raise ValueError(f"unknown method {name!r}{hint} (known: {', '.join(known)})")
        return known[name]

    if methods == "all":
        methods = [one for one in known.values() if one.is_usual]
    given = [methods] if isinstance(methods, str) else list(methods)
    if not given:
        raise ValueError(f"methods is empty; name some of {', '.join(known)}, or 'all'")
    left_out = [without] if isinstance(without, str) else list(without)
    kept: dict[str, Contestant] = {}
    for one in given:
        asked = one if isinstance(one, Contestant) else named(one)
        if kept.setdefault(asked.name, asked) != asked:
            raise ValueError(f"two methods are called {asked.name!r}; names must differ")
    for name in left_out:
        if kept.pop(name, None) is None:
            named(name)
    if baseline is not None and baseline not in kept:
        if baseline in left_out:
            raise ValueError(f"{baseline!r} is the baseline and is left out; name another")
        kept = {baseline: named(baseline), **kept}
    if not kept:
        raise ValueError("no method is left; name at least one that is not left out")
    return list(kept.values())
