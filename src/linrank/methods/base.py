"""Method, Task, Trained: what the shells know of a way of learning to rank, whichever it is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

from linrank.errors import did_you_mean
from linrank.methods import parameters as of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from linrank.data.dataset import Dataset
    from linrank.data.preferences import Preferences
    from linrank.models.linear import LinearModel, Model
    from linrank.search.monitor import Monitor


@dataclass(frozen=True, eq=False)
class Task:
    """What a method is to train on, wherever it lies, and what is asked beside its parameters.

    Attributes
    ----------
    data : Dataset, Store or Parts
        The rows: in memory, a store that is read in passes, or parts wherever they lie.
    parameters : object
        Has the fields of ``Method.parameters``: one of these dataclasses, or an estimator.
    sets : tuple of Dataset
        Validation data, measured at every iterate.
    query_weight : mapping, array or None
        As users give it.
    preferences : Preferences or None
        Listed pairs beside those of the labels.
    start : LinearModel, array or None
        Where the weights begin, an array being those of scaled columns; at 0 if None.
    """

    data: Any
    parameters: Any
    sets: tuple[Dataset, ...] = ()
    query_weight: Any = None
    preferences: Preferences | None = None
    start: LinearModel | NDArray[np.float64] | None = None


@dataclass(frozen=True, eq=False)
class Trained:
    """What a training leaves behind.

    Attributes
    ----------
    model : LinearModel or KernelModel
        Scores raw rows.
    result : object
        What the solver returned, of the iterate that was kept.
    attributes : dict
        What the estimator shows of it beyond what all do, by name; None takes an attribute away.
    monitor : Monitor or None
        What watched the iterates.
    is_done : bool
        Whether what was asked for was reached.
    doubt : str
        What to say when it was not.
    """

    model: Model
    result: Any
    attributes: Mapping[str, Any]
    monitor: Monitor | None = None
    is_done: bool = True
    doubt: str = ""


@dataclass(frozen=True)
class Description:
    """A training in words, for people and for programs.

    Attributes
    ----------
    lines : tuple of (str, str)
        A label and a sentence each.
    facts : dict
        What a JSON report says.
    """

    lines: tuple[tuple[str, str], ...]
    facts: dict[str, Any]


@dataclass(frozen=True)
class Method:
    """A way of learning to rank, declared once; estimators, searches and commands are made of it.

    Attributes
    ----------
    name : str
        As in ``--method NAME``.
    summary : str
        What it minimizes, in a line.
    parameters : type
        A dataclass of one model's parameters.
    train : callable
        From a `Task` to a `Trained`.
    describe : callable
        From a `Trained` and its parameters to a `Description`.
    search : type or None
        A dataclass of the parameters of a search, grids in place of what is chosen.
    path : callable or None
        From a `Task`, whose parameters are those of the search, and folds to what was found.
    recipe : callable or None
        From parameters, what the data are (in words) and the weights of queries to the losses of
        data in parts; what these cannot serve is refused.
    places : tuple of str
        Beside memory, what it can train on: "store" (in passes), "cluster", "stream".
    grid : dict
        In place of ``search`` and ``path``: values of one or two parameters, the simplest model
        first. Every model of the grid is then trained by itself.
    """

    name: str
    summary: str
    parameters: type
    train: Callable[[Task], Trained]
    describe: Callable[[Trained, Any], Description]
    search: type | None = None
    path: Callable[..., Any] | None = None
    recipe: Callable[[Any, str, Any], Any] | None = None
    places: tuple[str, ...] = field(default=())
    grid: Mapping[str, tuple[Any, ...]] = field(default_factory=dict, hash=False)


def values_of(parameters: Any, names: tuple[str, ...]) -> dict[str, Any]:
    """Some values, of a dataclass or of an estimator."""
    return {name: getattr(parameters, name) for name in names}


@dataclass(frozen=True)
class Later:
    """The function ``"module:name"``, imported when called: a table of methods stays light."""

    where: str

    def load(self) -> Any:
        """The function, its module imported."""
        module, _, name = self.where.partition(":")
        return getattr(import_module(module), name)

    def __call__(self, *args: Any, **options: Any) -> Any:
        return self.load()(*args, **options)


METHODS: dict[str, Method] = {}


def register(method: Method) -> Method:
    """Add a method under its name; one that is there already is replaced."""
    if method.grid and method.search is None:
        path = partial(Later("linrank.methods.search:search_grid"), method)
        search = of.search_of(method.parameters, method.grid)
        method = replace(method, search=search, path=path)
    METHODS[method.name] = method
    return method


def method_named(name: str) -> Method:
    """The method, or a ValueError that names the nearest one."""
    if name not in METHODS:
        near, known = did_you_mean(name, METHODS), ", ".join(METHODS)
        raise ValueError(f"no method is named {name!r}{near}; known: {known}")
    return METHODS[name]


def _own(
    name: str,
    summary: str,
    parameters: type,
    search: type | None = None,
    places: tuple[str, ...] = (),
    module: str | None = None,
) -> Method:
    """Register a method of linrank itself, whose functions have the usual names and places."""
    where = f"linrank.methods.{module or name}:{{}}{'' if module is None else f'_{name}'}"
    path = None if search is None else Later(f"linrank.methods.search:search_{name}")
    train, describe = Later(where.format("train")), Later(where.format("describe"))
    recipe = Later(where.format("recipe_of")) if "cluster" in places else None
    return register(
        Method(name, summary, parameters, train, describe, search, path, recipe, places)
    )


RANKSVM = _own(
    "ranksvm",
    "RankSVM on all pairs: ½‖w‖² + C Σ max(0, 1 - w·(x_i - x_j))²",
    of.RankSVMParameters,
    of.RankSVMSearch,
    ("store", "cluster"),
)
PUBLISHED = _own(
    "published",
    "the same by the methods of the literature, for comparison",
    of.PublishedParameters,
    module="ranksvm",
)
SGD = _own(
    "sgd",
    "descent on pairs drawn at random: λ/2 ‖w‖² + mean loss of a pair",
    of.SGDParameters,
    of.SGDSearch,
    ("store", "stream"),
)
DOMINATION = _own(
    "domination",
    "few weights: Σ log(1 + Σ exp(w·(x_j - x_i))) + α‖w‖₁",
    of.DominationParameters,
    of.DominationSearch,
    ("store", "cluster"),
)
FACTORIZED = _own(
    "factorized",
    "RankSVM with the hinge, its duals products of a few numbers a row",
    of.FactorizedParameters,
    of.FactorizedSearch,
    module="lowrank",
)
REGULARIZED = _own(
    "regularized",
    "RankSVM with the hinge, its duals matrices of low rank",
    of.RegularizedParameters,
    module="lowrank",
)
KERNEL = _own(
    "kernel",
    "RankSVM with a kernel: scores Σ β_i k(x_i, x), not linear",
    of.KernelParameters,
    of.KernelSearch,
)
AUTO = register(
    Method(
        "auto",
        "linear, curves or interactions: what ranks unseen queries best",
        of.AutoParameters,
        Later("linrank.methods.auto:train"),
        Later("linrank.methods.auto:describe"),
        of.AutoSearch,
        Later("linrank.methods.auto:search_auto"),
    )
)
