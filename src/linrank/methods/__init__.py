"""The methods of linrank."""

from linrank.methods import parameters as of
from linrank.methods.base import Later, Method, Training, register


def _register_own(
    name: str,
    summary: str,
    parameters: type,
    search: type | None = None,
    places: tuple[str, ...] = (),
    module: str | None = None,
    searching: str = "search",
) -> Method:
    """Register a method of linrank itself, whose functions have the usual names and places."""
    where = f"linrank.methods.{module or name}:{{}}{'' if module is None else f'_{name}'}"
    path = None if search is None else Training(f"linrank.methods.{searching}:search_{name}")
    train, describe = Training(where.format("train")), Later(where.format("describe"))
    recipe = Later(where.format("recipe_of")) if "cluster" in places else None
    return register(
        Method(name, summary, parameters, train, describe, search, path, recipe, places)
    )


RANKSVM = _register_own(
    "ranksvm",
    "RankSVM on all pairs: ½‖w‖² + C Σ max(0, 1 - w·(x_i - x_j))²",
    of.RankSVMParameters,
    of.RankSVMSearch,
    ("store", "cluster"),
)
PUBLISHED = _register_own(
    "published",
    "the same by the methods of the literature, for comparison",
    of.PublishedParameters,
    module="ranksvm",
)
SGD = _register_own(
    "sgd",
    "descent on pairs drawn at random: λ/2 ‖w‖² + mean loss of a pair",
    of.SGDParameters,
    of.SGDSearch,
    ("store", "stream"),
)
DOMINATION = _register_own(
    "domination",
    "few weights: Σ log(1 + Σ exp(w·(x_j - x_i))) + α‖w‖₁",
    of.DominationParameters,
    of.DominationSearch,
    ("store", "cluster"),
)
FACTORIZED = _register_own(
    "factorized",
    "RankSVM with the hinge, its duals products of a few numbers a row",
    of.FactorizedParameters,
    of.FactorizedSearch,
    module="lowrank",
)
REGULARIZED = _register_own(
    "regularized",
    "RankSVM with the hinge, its duals matrices of low rank",
    of.RegularizedParameters,
    module="lowrank",
)
KERNEL = _register_own(
    "kernel",
    "RankSVM with a kernel: scores Σ β_i k(x_i, x), not linear",
    of.KernelParameters,
    of.KernelSearch,
)
AUTO = _register_own(
    "auto",
    "linear, curves or interactions: what ranks unseen queries best",
    of.AutoParameters,
    of.AutoSearch,
    searching="auto",
)
