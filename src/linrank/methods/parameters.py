"""The parameters of every method, declared once: name, type, default, choices, one line of help.

Estimators inherit their ``__init__`` from these dataclasses, and argparse is filled from them.
"""
# ruff: noqa: RUF009  (a field is declared by a call)

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from linrank import choices as of
from linrank.methods.base import Choosing, Parameters, Watched, choose, declare

CERTIFIED = "stop when certified to be within TOL·F of the minimum"


def tolerance(help: str, told: str) -> Any:
    """The field tol; None for what ``told`` says."""
    return declare(None, help, "positive", flags=("-e", "--tol"), metavar="TOL", told=told)


def steps(help: str, told: str) -> Any:
    """The field max_iter; None for what ``told`` says."""
    return declare(None, help, "count", told=told)


def memory(help: str, **details: Any) -> Any:
    """The field memory_limit."""
    return declare(None, help, "size_in_bytes", **details)


def grid(help: str, **details: Any) -> Any:
    """A field of values to choose from."""
    return declare("auto", help, "grid", **details)


def normalization() -> Any:
    """The field query_normalization."""
    return choose(of.QUERY_NORMALIZATIONS, "divide the loss of each query by its number of pairs")


def components() -> Any:
    """The field n_components of duals of low rank."""
    return declare(5, "numbers of each row that make up its duals", "count", metavar="K")


def factor_bounds() -> Any:
    """The field constraint of duals of low rank."""
    return choose(of.CONSTRAINTS, "what bounds them, each by itself or their norm")


def kernel_function() -> Any:
    """The field kernel; one that is precomputed, or a function, is for Python."""
    return choose(
        of.KERNELS[:-1],
        "k of scores Σ β_i k(x_i, x): exp(-γ‖a - b‖²), (γ a·b + c)^d, tanh(γ a·b + c), a·b",
    )


@dataclass(eq=False, repr=False, kw_only=True)
class Filled(Parameters):
    """The rows of linear models may lack values."""

    missing: str = choose(
        of.MISSING,
        "what a missing value (NaN, null) means, to the model too; indicator: 0 and a weight",
    )


@dataclass(eq=False, repr=False, kw_only=True)
class Shaped(Filled):
    """Curves and interactions beside weights."""

    curves: str | None = choose(of.CURVES, "a curve of each feature beside its weight, or steps")
    n_knots: int | None = declare(
        None, "knots of a curve", "count", told="200; spline, step: 8", needs=("curves", ())
    )
    interactions: int = declare(0, "landmarks of a term of all features", "natural")


@dataclass(eq=False, repr=False, kw_only=True)
class PairLosses:
    """Which pairs are compared, by which loss, and how heavily."""

    loss: str = choose(of.LOSSES, "loss of a pair")
    pairs: str = choose(
        of.PAIRS,
        "of a query: all, of neighboring labels, the --n-closest, or these and --n-random others",
    )
    n_closest: int | str = declare(
        "auto",
        "pairs with the closest labels, by --seed",
        "size",
        told="auto, all of neighboring labels",
        needs=("pairs", of.SELECTED_PAIRS),
    )
    n_random: int | str = declare(
        "auto",
        "pairs drawn from the others by --seed",
        "size",
        told="auto, as many as the closest",
        needs=("pairs", ("pruned",)),
    )
    pair_weighting: str = declare(
        of.AUTO,
        "uniform, grade_diff, gain_diff (of 2^label), or what a swap changes in ndcg@20, map, ...",
        "weighting",
    )
    query_normalization: str | None = choose(
        (of.AUTO, *of.QUERY_NORMALIZATIONS), "divide the loss of each query by its number of pairs"
    )


@dataclass(eq=False, repr=False, kw_only=True)
class Placed:
    """Where training computes."""

    device: str = declare("cpu", "where to compute: cpu, cuda, cuda:1", "device")


@dataclass(eq=False, repr=False, kw_only=True)
class RowsPlaced(Placed):
    """The same, with the rows there."""


def weight_of_losses(help: str = "weight of the pair losses") -> Any:
    """The field C."""
    return declare(1.0, help, "positive", flags=("-c", "--C"), metavar="C")


def relative_weight() -> Any:
    """The field C where it may be left to the data."""
    return declare(
        of.AUTO, "weight of the losses", "weight", flags=("-c", "--C"), told="auto, by size"
    )


# ---- RankSVM ------------------------------------------------------------------------------------


@dataclass(eq=False, repr=False, kw_only=True)
class PathTraining(PairLosses, RowsPlaced, Parameters):
    """What a path over C, a search along it and one model have in common."""

    n_rounds: int = 1
    solver: str = choose(of.SOLVERS, "Newton's method, cutting planes, or a published method")
    tol: float | None = tolerance(
        "stop within TOL·F of the minimum, or tron at ‖∇F(w)‖ ≤ TOL·‖∇F(0)‖",
        told="1e-4; hinge, bundle, tron: 1e-3",
    )
    max_iter: int | None = steps("steps at most", told="100; bundle: 2000")
    positive: bool = declare(
        False, "keep all coefficients >= 0", "flag", needs=("solver", ("newton",))
    )
    coef_bounds: Any = declare(
        None,
        "keep LOW <= coefficient <= HIGH of feature F, or * for the others; an empty end is open; "
        "several with commas, or in @FILE",
        "bounds",
        flags=("--bounds",),
        needs=("solver", ("newton",)),
    )
    memory_limit: float | str | None = memory("train in passes over a store within SIZE, as 2GB")


@dataclass(eq=False, repr=False, kw_only=True)
class RankSVMTraining(PathTraining, Shaped):
    """What one model and a search over C have in common."""

    increasing: Any = declare(
        None, "features whose curves must not fall, with commas", "features", needs=("curves", ())
    )
    decreasing: Any = declare(
        None, "features whose curves must not rise", "features", needs=("curves", ())
    )


@dataclass(eq=False, repr=False)
class RankSVMParameters(RankSVMTraining, Watched):
    """Parameters of `linrank.RankSVM`."""

    C: float | str = relative_weight()
    _: dataclasses.KW_ONLY
    warm_start: bool = False


@dataclass(eq=False, repr=False, kw_only=True)
class PublishedParameters(Filled, Watched):
    """Parameters of the published baselines for the squared hinge on all pairs."""

    C: float = weight_of_losses()
    scale: str = choose(of.SCALES[1:], "as published, features as they are")
    solver: str = choose(
        ("tron", "bundle", "prsvm", "prsvm+"),
        "the trust-region method, cutting planes, or the first on listed pairs, or level by level",
    )
    loss: str = choose(of.LOSSES, "loss of a pair; bundle takes both")
    counting: str | None = declare(
        None,
        "how tron and bundle count violated pairs",
        "choice",
        choices=of.COUNTINGS,
        metavar="WAY",
        told=f"{of.COUNTINGS[0]}; bundle: newton's own",
        needs=("solver", of.COUNTED),
    )
    tol: float | None = tolerance(
        "stop when ‖∇F(w)‖ ≤ TOL·‖∇F(0)‖; bundle: at a gap of TOL·F", told="1e-3"
    )
    max_iter: int | None = steps("steps at most", told="100; bundle: 2000")
    query_normalization: str | None = normalization()


# ---- the domination loss ------------------------------------------------------------------------


@dataclass(eq=False, repr=False, kw_only=True)
class DominationPathTraining(Parameters):
    """What a path over alpha, a search along it and one model have in common."""

    margin: Any = declare(
        None,
        "a number between neighboring layers, or linear[:K1[,K2]] or log[:K1[,K2]] for "
        "K1·label + K2 or K1·log(label) + K2 over the lowest layer",
        "margin",
    )
    layers: Any = choose(of.LAYERS, "every label a layer, or labels > 0 above the rest")
    pooled: bool = declare(False, "take all rows for one query", "flag")
    solver: str = choose(of.DOMINATION_SOLVERS, "coordinate descent, or Newton's method (l2)")
    negative_sampling: float | None = declare(
        None, "keep a share F of the lowest layer of each query, drawn by --seed", "share"
    )
    tol: float | None = tolerance(CERTIFIED, told="1e-4")
    max_iter: int | None = steps(
        "sweeps over the features, or Newton steps, at most", told="1000; newton: 100"
    )
    memory_limit: float | str | None = memory(
        "--penalty l2: train in passes over a store, taking SIZE at most, as 2GB"
    )


@dataclass(eq=False, repr=False, kw_only=True)
class DominationTraining(DominationPathTraining, Shaped):
    """What one model and a search over alpha have in common."""


@dataclass(eq=False, repr=False)
class DominationParameters(RowsPlaced, DominationTraining, Watched):
    """Parameters of `linrank.DominationRanker`."""

    penalty: str = choose(of.PENALTIES, "α‖w‖₁, α‖w‖² or nothing, with α from --alpha")
    alpha: float = declare(
        1.0, "weight α of the penalty", "positive", metavar="A", needs=("penalty", of.PENALTIES[:2])
    )
    _: dataclasses.KW_ONLY
    feature_induction: int | None = declare(
        None,
        "start without features and add the N that promise most, until none does",
        "count",
        needs=("solver", of.DOMINATION_SOLVERS[:2]),
    )
    warm_start: bool = False


# ---- stochastic descent -------------------------------------------------------------------------


@dataclass(eq=False, repr=False, kw_only=True)
class DescentTraining(Filled):
    """What one model and a search over λ have in common."""

    aggressiveness: float = declare(
        1.0,
        "largest step of the algorithm pa",
        "positive",
        metavar="A",
        needs=("algorithm", ("pa",)),
    )
    n_steps: int = declare(100_000, "pairs to draw, as in 1e6", "steps")
    sampling: str = choose(
        of.SAMPLINGS, "how pairs are drawn; pairs: all with the same probability"
    )
    average: bool | str = declare(
        False, "keep an average of the weights over the steps", "average", choices=of.AVERAGES
    )
    record: str | None = declare(
        None,
        "compute the objective on the way, four times in each power of ten steps: over all pairs, "
        "or over a sample",
        "choice",
        choices=of.RECORDS,
    )


@dataclass(eq=False, repr=False)
class SGDParameters(DescentTraining, Watched):
    """Parameters of `linrank.SGDRanker`."""

    algorithm: str = choose(of.ALGORITHMS, "how a pair changes the weights")
    _: dataclasses.KW_ONLY
    alpha: float | None = declare(
        None,
        "λ of λ/2 ‖w‖² + mean loss of a pair; or give -c C, λ = 1/(C·pairs)",
        "positive",
        metavar="L",
        told="1e-4",
        excludes=("C",),
    )
    C: float | None = declare(
        None, "λ = 1/(C·pairs), in place of --alpha", "positive", flags=("-c", "--C"), metavar="C"
    )
    tol: float | None = tolerance(
        "stop when the objective has stopped falling by the share TOL", told="never"
    )
    warm_start: bool = False
    steps_per_row: float = 4.0
    buffer_mb: float = 64
    passes: int | None = declare(
        None,
        "times that a store with --memory-limit, or the file of --stream, is read",
        "count",
        told="--stream: 1",
    )
    memory_limit: float | str | None = memory(
        "descend over a store, or --stream, part by part, taking SIZE at most, as 2GB",
        told="--stream: 150MB",
    )


# ---- duals of low rank --------------------------------------------------------------------------


@dataclass(eq=False, repr=False, kw_only=True)
class LowRankTraining(Filled):
    """What both methods have in common."""

    tol: float | None = tolerance(
        "factorized: stop when f falls by at most TOL·|f| an epoch; regularized: when certified to "
        "be within TOL·|Ψ|",
        told="1e-6",
    )
    max_iter: int | None = steps("epochs or iterations at most", told="2000; regularized: 1000")
    query_normalization: str | None = normalization()


@dataclass(eq=False, repr=False)
class FactorizedParameters(LowRankTraining, Watched):
    """Parameters of `linrank.FactorizedRankSVM`."""

    n_components: int = components()
    C: float = weight_of_losses("largest dual variable of a pair")
    _: dataclasses.KW_ONLY
    constraint: str = factor_bounds()
    keep_factors: bool = False


@dataclass(eq=False, repr=False)
class RegularizedParameters(LowRankTraining, Watched):
    """Parameters of `linrank.RegularizedRankSVM`."""

    gamma: float = declare(
        10.0, "weight of the nuclear norm, 0 for none", "nonnegative", metavar="G"
    )
    lam: float = declare(
        0.1, "what ties the duals to the matrix of low rank", "positive", metavar="L"
    )
    C: float = weight_of_losses("largest dual variable of a pair")
    _: dataclasses.KW_ONLY
    memory_limit: float | str | None = memory(
        "refuse to take more for the duals, at least 32 bytes per pair, as 2GB"
    )
    keep_duals: bool = False


# ---- kernels ------------------------------------------------------------------------------------


def _having(name: str) -> tuple[str, ...]:
    """The kernels that have a parameter."""
    return tuple(kernel for kernel, own in of.KERNEL_PARAMETERS.items() if name in own)


@dataclass(eq=False, repr=False, kw_only=True)
class KernelTraining(PairLosses, Placed, Parameters):
    """What one model and a search over C and γ have in common."""

    degree: int = declare(3, "d of poly", "count", metavar="D", needs=("kernel", _having("degree")))
    coef0: float = declare(
        0.0, "c of poly and sigmoid", "finite", metavar="C", needs=("kernel", _having("coef0"))
    )
    tol: float | None = tolerance(CERTIFIED, told="1e-4; hinge: 1e-3")
    max_iter: int | None = steps("Newton steps at most", told="100; hinge: 500")
    memory_limit: float | str | None = memory(
        "for kernel matrices, as 2GB", told="half of what is free"
    )


@dataclass(eq=False, repr=False)
class KernelParameters(KernelTraining):
    """Parameters of `linrank.KernelRankSVM`."""

    kernel: Any = kernel_function()
    _: dataclasses.KW_ONLY
    gamma: float | str = declare(
        "scale",
        "γ, or scale or auto, 1/(features·variance) or 1/features",
        "width",
        metavar="G",
        needs=("kernel", _having("gamma")),
    )
    C: float | str = relative_weight()
    approximation: str | None = choose(
        of.APPROXIMATIONS, "a sum over --n-components rows, in place of one over all rows"
    )
    n_components: int | None = declare(
        None,
        "size of the approximation",
        "count",
        metavar="M",
        told="512",
        needs=("approximation", ()),
    )
    callback: Any = None


# ---- searches -----------------------------------------------------------------------------------


GRID_OF_C = "2^-10:2^14 times the C of auto"


@dataclass(eq=False, repr=False)
class RankSVMPath(PathTraining):
    """Parameters of `linrank.ranksvm_path`."""

    Cs: Any = grid("values of C", told=GRID_OF_C)


@dataclass(eq=False, repr=False)
class RankSVMSearch(RankSVMTraining, Choosing):
    """Parameters of `linrank.RankSVMCV`."""

    Cs: Any = grid("values of C", told=GRID_OF_C)


@dataclass(eq=False, repr=False)
class GridOfAlpha:
    """The values of alpha of a path."""

    penalty: str = choose(of.PENALTIES[:2], "α‖w‖₁ or α‖w‖²")
    alphas: Any = grid("values of α")
    _: dataclasses.KW_ONLY
    n_alphas: int = declare(
        50, "values of α, from the one that leaves no weight", "count", excludes=("alphas",)
    )
    eps: float | None = declare(
        None,
        "down to E times that",
        "share",
        metavar="E",
        told="1e-3; l2: 1e-6",
        excludes=("alphas",),
    )
    max_features: int | None = declare(
        None, "end the path with the first model of more than N weights", "count"
    )


@dataclass(eq=False, repr=False, kw_only=True)
class DominationPath(GridOfAlpha, DominationPathTraining):
    """Parameters of `linrank.domination_path`."""

    scale: str = "none"


@dataclass(eq=False, repr=False)
class DominationSearch(GridOfAlpha, DominationTraining, Choosing):
    """Parameters of `linrank.DominationRankerCV`."""


@dataclass(eq=False, repr=False)
class SGDSearch(DescentTraining, Choosing):
    """Parameters of `linrank.SGDRankerCV`."""

    alphas: Any = grid("values of λ", told="1e-7:1:10")
    _: dataclasses.KW_ONLY
    algorithms: Any = declare(of.ALGORITHMS[0], f"of {', '.join(of.ALGORITHMS)}", "algorithms")


@dataclass(eq=False, repr=False)
class FactorizedSearch(LowRankTraining, Choosing):
    """Parameters of `linrank.FactorizedRankSVMCV`."""

    Cs: Any = grid("values of C", told=f"every second of {GRID_OF_C}")
    _: dataclasses.KW_ONLY
    n_components: int = components()
    constraint: str = factor_bounds()


@dataclass(eq=False, repr=False)
class KernelSearch(KernelTraining, Choosing):
    """Parameters of `linrank.KernelRankSVMCV`."""

    kernel: Any = kernel_function()
    _: dataclasses.KW_ONLY
    Cs: Any = grid("values of C", told=f"every second of {GRID_OF_C}")
    gammas: Any = grid(
        "values of γ", told="4^-3 to 4^3 times that of scale", needs=("kernel", _having("gamma"))
    )


# ---- the choice among methods -------------------------------------------------------------------


@dataclass(eq=False, repr=False)
class AutoParameters(Filled):
    """Parameters of `linrank.AutoRanker` as a method that trains."""

    metric: str | Callable[[Any, Any], float] = of.SCORING
    time_limit: float | None = declare(
        None, "try no further kind of model that would take longer", "positive", metavar="SECONDS"
    )
    selection: str = choose(
        of.SELECTIONS, "the best mean, or the simplest model within one standard error of it"
    )


@dataclass(eq=False, repr=False)
class AutoSearch(AutoParameters):
    """Parameters of `linrank.AutoRanker`."""

    _: dataclasses.KW_ONLY
    cv: Any = None

    @property
    def scoring(self) -> str | Callable[[Any, Any], float]:
        """The metric, as other searches call it."""
        return self.metric

    @scoring.setter
    def scoring(self, name: str | Callable[[Any, Any], float]) -> None:
        self.metric = name
