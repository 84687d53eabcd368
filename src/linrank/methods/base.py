"""What the shells know of a way of learning to rank, whichever it is: its parameters and functions.

Without NumPy or scikit-learn, so that the command line starts in a blink.
"""
# ruff: noqa: RUF009  (a field is declared by a call)

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar

from linrank import choices as of
from linrank.errors import did_you_mean

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from linrank.data import Dataset, Preferences
    from linrank.methods.ground import Monitor
    from linrank.models.linear import LinearModel, Model


F = TypeVar("F", bound=Callable[..., Any])

# ---- parameters ---------------------------------------------------------------------------------

# What stands for values of a kind in the help.
METAVARS = {
    "count": "N",
    "natural": "N",
    "steps": "N",
    "size": "N|auto",
    "size_in_bytes": "SIZE",
    "weight": "C|auto",
    "share": "F",
    "grid": "GRID",
    "features": "F,...",
    "bounds": "F:LOW:HIGH",
    "margin": "M",
    "algorithms": "NAME,...",
}


@dataclass(frozen=True)
class Option:
    """A parameter as the command line has it.

    Attributes
    ----------
    help : str
        One line; the default is added to it.
    kind : str
        What values it takes, a key of ``linrank.cli.options.KINDS``: "choice", "flag", "positive",
        "count" and so on.
    flags : tuple of str
        How it is spelt, if not ``--name-of-the-parameter``.
    choices : tuple
        The values of a "choice".
    metavar : str
        What stands for the value in the help; that of `METAVARS` if it is empty.
    told : str or None
        What the help says of the default, where the value itself does not say it.
    needs : (str, tuple of str) or ()
        Another parameter, and its values that this one goes with; without any, it must be given.
    excludes : tuple of str
        Parameters that cannot be given beside this one.
    """

    help: str
    kind: str = "choice"
    flags: tuple[str, ...] = ()
    choices: tuple[Any, ...] = ()
    metavar: str = ""
    told: str | None = None
    needs: tuple[Any, ...] = ()
    excludes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "metavar", self.metavar or METAVARS.get(self.kind, "NAME"))


def declare(default: Any, help: str = "", kind: str = "choice", **details: Any) -> Any:
    """A field of a dataclass; without help, the command line has no such option."""
    metadata = {"option": Option(help, kind, **details)} if help else {}
    return dataclasses.field(default=default, metadata=metadata)


def choose(choices: tuple[Any, ...], help: str, **details: Any) -> Any:
    """A field with a few values, the first of which is the default."""
    return declare(choices[0], help, "choice", choices=choices, **details)


def options_of(parameters: type) -> dict[str, Option]:
    """The parameters that the command line has, by name."""
    fields = dataclasses.fields(parameters)
    return {f.name: f.metadata["option"] for f in fields if "option" in f.metadata}


def defaults_of(parameters: type) -> dict[str, Any]:
    """All parameters and their defaults, by name."""
    return {f.name: f.default for f in dataclasses.fields(parameters)}


def takes(parameters: type) -> Callable[[F], F]:
    """A function that passes its keywords to a dataclass, with these in its signature."""
    fields = inspect.signature(parameters).parameters.values()

    def show(function: F) -> F:
        whole = inspect.signature(function)
        own = [each for each in whole.parameters.values() if each.kind is not each.VAR_KEYWORD]
        named = [each.replace(kind=each.KEYWORD_ONLY) for each in fields]
        known = {each.name for each in own}
        both = [*own, *(each for each in named if each.name not in known)]
        function.__signature__ = whole.replace(parameters=both)  # type: ignore[attr-defined]
        return function

    return show


@dataclass(eq=False, repr=False, kw_only=True)
class Parameters:
    """What all methods have: what is done to the rows before any training, threads, a seed."""

    scale: str = choose(
        of.SCALES,
        "divide features by their deviation, range, or range in each query, in the model",
    )
    random_state: Any = declare(
        None, "of random numbers", "natural", flags=("--seed",), metavar="N", told="0"
    )
    n_jobs: int | None = None
    verbose: int = 0

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        """An object whose ``__init__`` will know all names, or an error in the user's words.

        Here, at the end of every line of ancestors, it hides no signature of an ``__init__``.
        """
        if not kwargs.keys() <= cls.__dataclass_fields__.keys():
            known = inspect.signature(cls.__init__).parameters
            is_open = any(one.kind is one.VAR_KEYWORD for one in known.values())
            for name in () if is_open else kwargs.keys() - known.keys():
                hint = did_you_mean(name, known)
                raise TypeError(f"{cls.__name__} has no parameter {name!r}{hint}")
        return super().__new__(cls)


@dataclass(eq=False, repr=False, kw_only=True)
class Watched:
    """What is watched while one model is trained."""

    early_stopping: bool = False
    n_iter_no_change: int = 5
    scoring: str | Callable[[Any, Any], float] = of.SCORING
    callback: Any = None


@dataclass(eq=False, repr=False, kw_only=True)
class Choosing:
    """How a search measures models on rows that they have not seen, and chooses among them."""

    cv: Any = None
    scoring: str | Callable[[Any, Any], float] = of.SCORING
    selection: str = choose(
        of.SELECTIONS, "the best mean, or the simplest model within one standard error of it"
    )


def search_of(parameters: type, grid: Mapping[str, tuple[Any, ...]]) -> type:
    """The parameters of a search over a grid: those of one model, with values for its axes."""
    not_ours = {*grid, *Watched.__dataclass_fields__}
    made: list[tuple[str, Any, Any]] = [
        (f"{name}s", Any, declare(tuple(values), f"values of {name}", "grid", metavar="GRID"))
        for name, values in grid.items()
    ]
    for one in dataclasses.fields(parameters):
        if one.name not in not_ours:
            same = dataclasses.field(default=one.default, metadata=one.metadata)
            made.append((one.name, Any, same))
    name = f"{parameters.__name__.removesuffix('Parameters')}Search"
    return dataclasses.make_dataclass(name, made, bases=(Choosing,), eq=False, repr=False)


# ---- methods ------------------------------------------------------------------------------------


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


class Training(Later):
    """One that trains: from its call to its end the core keeps the threads that it starts."""

    def __call__(self, *args: Any, **options: Any) -> Any:
        from linrank._core import keep_threads  # loads NumPy

        return keep_threads(partial(self.load(), *args, **options))


METHODS: dict[str, Method] = {}


def register(method: Method) -> Method:
    """Add a method under its name; one that is there already is replaced."""
    if method.grid and method.search is None:
        path = partial(Training("linrank.methods.search:search_grid"), method)
        search = search_of(method.parameters, method.grid)
        method = replace(method, search=search, path=path)
    METHODS[method.name] = method
    return method


def method_named(name: str) -> Method:
    """The method, or a ValueError that names the nearest one."""
    if name not in METHODS:
        near, known = did_you_mean(name, METHODS), ", ".join(METHODS)
        raise ValueError(f"no method is named {name!r}{near}; known: {known}")
    return METHODS[name]
