"""The methods that take part, by name: what they are, and where their grids are found."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linrank.data.dataset import Dataset
from linrank.errors import did_you_mean
from linrank.metrics import Convention, convention, parse
from linrank.metrics.evaluate import evaluate_queries

Array = NDArray[Any]
Value = str | int | float | None


def fair_convention(name: str | Convention) -> Convention:
    """The convention with equal scores averaged over their orders where it takes input order.

    Trees and single features tie many rows. In a file sorted by label, input order would rank
    tied rows perfectly.
    """
    chosen = convention(name)
    return convention(chosen, ties="average") if chosen.ties == "stable" else chosen


@dataclass(frozen=True)
class Task:
    """The data and the rules of one fold, as a method sees them.

    Attributes
    ----------
    train, valid : Dataset
        The rows of a query come together, in both.
    scoring : str
        The measure that candidates are chosen by.
    convention : Convention
        Its rules.
    scale : {"standard", "minmax", "none"}
        Scaling of the features for methods that depend on it, to be fitted on ``train``.
    seed : int
        Of everything random.
    """

    train: Dataset
    valid: Dataset
    scoring: str
    convention: Convention
    scale: str = "standard"
    seed: int = 0

    def judge(self, scores: Any) -> float:
        """The measure of scores of the validation rows, signed so that higher is better.

        Scores that it cannot judge, as equal ones by Kendall's τ, are worse than all others.
        """
        measure = parse(self.scoring)
        result = evaluate_queries(
            self.valid.queries,
            self.valid.labels,
            np.asarray(scores, dtype=np.float64),
            metrics=measure,
            convention=self.convention,
            n_jobs=1,
        )
        value = next(iter(result.values()))
        if np.isnan(value):
            return -np.inf
        return value if measure.higher_is_better else 0.0 - value


@dataclass(frozen=True)
class Size:
    """How large a model is: bytes of its saved form, and what it is made of."""

    n_bytes: int
    n_parts: int = 0
    part: str = "weights"


@dataclass(frozen=True)
class Candidate:
    """A model with the parameters that it was trained with.

    Attributes
    ----------
    parameters : mapping of str to str, int, float or None
        What distinguishes it from the others of its grid.
    predict : callable
        Scores of the rows of a dataset.
    size : callable
        Its `Size`; called for models that are kept.
    seconds : float or None
        Processor time of its training; None where it came out of a search that has no time for
        each candidate, as a path has not.
    fit : callable or None
        Trains it once more, from the beginning, with nothing but the chosen parameters: timed if
        it is chosen, in place of ``seconds``, which for boosters holds rounds that are not kept
        and their validation.
    """

    parameters: Mapping[str, Value]
    predict: Callable[[Dataset], Array]
    size: Callable[[], Size]
    seconds: float | None = None
    fit: Callable[[], object] | None = field(default=None)


BASELINE = "ranksvm"
Trainer = Callable[[Task], Iterator[Candidate]]


@dataclass(frozen=True)
class Method:
    """A way of learning to rank that a contest can train.

    Parameters
    ----------
    name : str
        What tables call it.
    family : str
        Whose it is.
    description : str
        What it minimises, in a few words.
    grid : str
        Its candidates, in words.
    trainer : str
        ``"module:function"``. The function takes a `Task` and yields a `Candidate` for each point
        of its grid, the most regularised first: among equals on validation the first is taken. It
        is named and not passed because it runs in a process of its own.
    needs : str or None
        A package that must be there.
    """

    name: str
    family: str
    description: str
    grid: str
    trainer: str
    needs: str | None = None

    @property
    def is_missing(self) -> bool:
        """Whether the package that it needs is absent."""
        return self.needs is not None and find_spec(self.needs) is None

    def load(self) -> Trainer:
        """Import the function that trains it."""
        module, _, name = self.trainer.partition(":")
        trainer: Trainer = getattr(import_module(module), name)
        return trainer


_OWN, _SKLEARN, _PLAIN = "linrank", "scikit-learn", "baseline"
_ROUNDS = "rounds up to 500, stopped after 50 without gain on validation"

METHODS = {
    method.name: method
    for method in (
        Method(
            "ranksvm",
            _OWN,
            "linear RankSVM, squared hinge, all pairs",
            "31 values of C, 2^-20 to 2^10, one path",
            "linrank.judging.contest.own:ranksvm",
        ),
        Method(
            "ranksvm-hinge",
            _OWN,
            "linear RankSVM, hinge, all pairs",
            "24 values of C, 2^-20 to 2^3, each from the last",
            "linrank.judging.contest.own:ranksvm_hinge",
        ),
        Method(
            "ranksvm-closest",
            _OWN,
            "linear RankSVM, squared hinge, pairs of neighbouring labels",
            "31 values of C, 2^-20 to 2^10, one path",
            "linrank.judging.contest.own:ranksvm_closest",
        ),
        Method(
            "sgd",
            _OWN,
            "stochastic descent on sampled pairs: hybrid, averaged",
            "11 values of λ, 1e3 to 1e-7, in one pass of 100,000 steps",
            "linrank.judging.contest.own:sgd",
        ),
        Method(
            "domination-l1",
            _OWN,
            "domination loss, l1 penalty: few features",
            "a path of 50 values of α",
            "linrank.judging.contest.own:domination_l1",
        ),
        Method(
            "domination-l2",
            _OWN,
            "domination loss, l2 penalty",
            "a path of 50 values of α",
            "linrank.judging.contest.own:domination_l2",
        ),
        Method(
            "factorized",
            _OWN,
            "RankSVM whose duals are a matrix of low rank",
            "8 values of C, 1e-5 to 1e2 × 1 or 5 components",
            "linrank.judging.contest.own:factorized",
        ),
        Method(
            "kernel",
            _OWN,
            "RankSVM with an rbf kernel, 256 Nyström landmarks",
            "γ 0.1, 0.3 and 1 times 1/(features·variance) × 7 values of C, 1e-5 to 10",
            "linrank.judging.contest.own:kernel",
        ),
        Method(
            "svr-l1",
            _SKLEARN,
            "LinearSVR on the labels, absolute errors",
            "7 values of C, 1e-6 to 1 × ε 0 or 0.1",
            "linrank.judging.contest.rivals:svr_l1",
        ),
        Method(
            "svr-l2",
            _SKLEARN,
            "LinearSVR on the labels, squared errors",
            "10 values of C, 1e-7 to 100 × ε 0 or 0.1",
            "linrank.judging.contest.rivals:svr_l2",
        ),
        Method(
            "forest",
            _SKLEARN,
            "RandomForestRegressor on the labels, 300 trees",
            "leaves of at least 5 or 20 rows × a third or the root of the features at a split",
            "linrank.judging.contest.rivals:forest",
        ),
        Method(
            "gbdt",
            _SKLEARN,
            "HistGradientBoostingRegressor on the labels",
            "7, 15 or 31 leaves × learning rate 0.05 or 0.1 × up to 300 rounds, the best on "
            "validation",
            "linrank.judging.contest.rivals:gbdt",
        ),
        Method(
            "lightgbm",
            "LightGBM",
            "gradient boosting, lambdarank",
            f"7, 15 or 31 leaves × learning rate 0.05 or 0.1; {_ROUNDS}",
            "linrank.judging.contest.boosting:lightgbm_lambdarank",
            "lightgbm",
        ),
        Method(
            "xgboost-pairwise",
            "XGBoost",
            "gradient boosting, rank:pairwise",
            f"depth 3, 4 or 6 × learning rate 0.05 or 0.1; {_ROUNDS}",
            "linrank.judging.contest.boosting:xgboost_pairwise",
            "xgboost",
        ),
        Method(
            "xgboost-ndcg",
            "XGBoost",
            "gradient boosting, rank:ndcg",
            f"depth 3, 4 or 6 × learning rate 0.05 or 0.1; {_ROUNDS}",
            "linrank.judging.contest.boosting:xgboost_ndcg",
            "xgboost",
        ),
        Method(
            "catboost",
            "CatBoost",
            "gradient boosting, YetiRank",
            "depth 4 or 6 × learning rate 0.05 or 0.1 × up to 300 rounds, the best on validation",
            "linrank.judging.contest.boosting:catboost_yetirank",
            "catboost",
        ),
        Method(
            "best-feature",
            _PLAIN,
            "the best single feature, up or down",
            "the 20 features that order the training pairs best",
            "linrank.judging.contest.rivals:best_feature",
        ),
        Method(
            "random",
            _PLAIN,
            "a random order",
            "none",
            "linrank.judging.contest.rivals:random_order",
        ),
    )
}


def method_named(name: str) -> Method:
    """The method of that name; an unknown one is told the nearest."""
    if name in METHODS:
        return METHODS[name]
    hint = did_you_mean(name, METHODS, 0.5)
    raise ValueError(f"unknown method {name!r}{hint} (known: {', '.join(METHODS)})")


def chosen_methods(
    methods: str | Iterable[str | Method] = "all",
    without: Iterable[str] = (),
    baseline: str | None = None,
) -> Sequence[Method]:
    """The methods asked for, in their order, each once, and the baseline among them.

    Raises ValueError for an unknown name, for two methods of one name, and if none is named or
    left.
    """
    if isinstance(methods, str):
        asked = list(METHODS.values()) if methods == "all" else [method_named(methods)]
    else:
        asked = [m if isinstance(m, Method) else method_named(m) for m in methods]
        if not asked:
            raise ValueError(f"methods is empty; name some of {', '.join(METHODS)}, or 'all'")
    left_out = [without] if isinstance(without, str) else list(without)
    known = {method.name for method in asked}
    for name in left_out:
        if name not in known:
            method_named(name)
    kept = [m for m in dict.fromkeys(asked) if m.name not in left_out]
    names = [method.name for method in kept]
    if baseline is not None and baseline not in names:
        if baseline in left_out:
            raise ValueError(f"{baseline!r} is the baseline and is left out; name another")
        kept.insert(0, method_named(baseline))
    if not kept:
        raise ValueError("no method is left; name at least one that is not left out")
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"two methods are called {name!r}; names must differ")
    return kept
