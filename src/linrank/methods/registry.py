"""METHODS: the table of all methods, which the shells go through. A new method is a line here."""

from __future__ import annotations

from linrank.errors import did_you_mean
from linrank.methods import parameters as of
from linrank.methods.base import Method, later

METHODS: dict[str, Method] = {}


def register(method: Method) -> Method:
    """Add a method under its name; one that is there already is replaced."""
    METHODS[method.name] = method
    return method


def method_named(name: str) -> Method:
    """The method, or a ValueError that names the nearest one."""
    if name not in METHODS:
        near, known = did_you_mean(name, METHODS), ", ".join(METHODS)
        raise ValueError(f"no method is named {name!r}{near}; known: {known}")
    return METHODS[name]


RANKSVM = register(
    Method(
        "ranksvm",
        "RankSVM on all pairs: ½‖w‖² + C Σ max(0, 1 - w·(x_i - x_j))²",
        of.RankSVMParameters,
        later("linrank.methods.ranksvm:train"),
        later("linrank.methods.ranksvm:describe"),
        search=of.RankSVMSearch,
        path=later("linrank.methods.search:search_ranksvm"),
        places=("store", "cluster"),
    )
)
PUBLISHED = register(
    Method(
        "published",
        "the same by the methods of the literature, for comparison",
        of.PublishedParameters,
        later("linrank.methods.published:train"),
        later("linrank.methods.ranksvm:describe"),
    )
)
SGD = register(
    Method(
        "sgd",
        "descent on pairs drawn at random: λ/2 ‖w‖² + mean loss of a pair",
        of.SGDParameters,
        later("linrank.methods.sgd:train"),
        later("linrank.methods.sgd:describe"),
        search=of.SGDSearch,
        path=later("linrank.methods.search:search_sgd"),
        places=("store", "stream"),
    )
)
DOMINATION = register(
    Method(
        "domination",
        "few weights: Σ log(1 + Σ exp(w·(x_j - x_i))) + α‖w‖₁",
        of.DominationParameters,
        later("linrank.methods.domination:train"),
        later("linrank.methods.domination:describe"),
        search=of.DominationSearch,
        path=later("linrank.methods.search:search_domination"),
        places=("store", "cluster"),
    )
)
FACTORIZED = register(
    Method(
        "factorized",
        "RankSVM with the hinge, its duals products of a few numbers a row",
        of.FactorizedParameters,
        later("linrank.methods.lowrank:train_factorized"),
        later("linrank.methods.lowrank:describe_factorized"),
        search=of.FactorizedSearch,
        path=later("linrank.methods.search:search_factorized"),
    )
)
REGULARIZED = register(
    Method(
        "regularized",
        "RankSVM with the hinge, its duals matrices of low rank",
        of.RegularizedParameters,
        later("linrank.methods.lowrank:train_regularized"),
        later("linrank.methods.lowrank:describe_regularized"),
    )
)
KERNEL = register(
    Method(
        "kernel",
        "RankSVM with a kernel: scores Σ β_i k(x_i, x), not linear",
        of.KernelParameters,
        later("linrank.methods.kernel:train"),
        later("linrank.methods.kernel:describe"),
        search=of.KernelSearch,
        path=later("linrank.methods.search:search_kernel"),
    )
)
