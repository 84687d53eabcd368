"""RankSVM with a kernel as a method: exact or approximate, and what is told of it."""

from __future__ import annotations

from typing import Any

import numpy as np

from linrank.choices import APPROXIMATIONS, KERNEL, SELECTED_PAIRS, WITH_GAMMA
from linrank.data.dataset import Dataset
from linrank.data.queries import query_weights
from linrank.data.scaling import Scaling
from linrank.errors import check_one_of
from linrank.kernels.approximation import train_approximate
from linrank.kernels.functions import Kernel, check_kernel_rows
from linrank.kernels.train import train_kernel
from linrank.methods.base import Description, Task, Trained, values_of
from linrank.methods.ground import (
    Line,
    Monitor,
    describe_optimum,
    doubt_of,
    is_auto,
    optimum_attributes,
    optimum_line,
    pair_lines,
    relative_gap,
    settle,
)
from linrank.methods.ranksvm import weight_in_memory
from linrank.models.kernel import KernelModel
from linrank.parts.parts import Facts
from linrank.system.resources import count
from linrank.system.seeds import seed_of

# What a model knows of the options; how much memory there was is not part of it.
_TOLD = ("C", *(name for name in KERNEL if name != "memory_limit"))
# Of the parameters, for programs.
_REPORTED = (
    *("kernel", "gamma", "degree", "coef0", "scale", "C", "approximation", "n_components"),
    *KERNEL,
)


def train(task: Task) -> Trained:
    """Minimize ``½ β'Qβ + C Σ ω_ij l(1 - (s_i - s_j))`` over rows in memory.

    Rows are scaled first, unless they are the kernel matrix; the model scores raw ones.
    """
    task, facts = settle(task)
    p, data, monitor = task.parameters, task.data.dataset, Monitor(task.parameters)
    assert data is not None  # of a store too: no pass over one has a kernel
    options = {
        **values_of(p, ("C", *KERNEL)),
        "seed": seed_of(p.random_state),
        "query_weight": query_weights(task.query_weight, data.queries),
        "preferences": task.preferences,
        "n_jobs": p.n_jobs,
    }
    check_one_of("approximation", p.approximation, APPROXIMATIONS)
    scaling, scaled, function = known = scaled_rows(data, p)
    if is_auto(p.C):
        options["C"] = kernel_unit(task, facts, options, known)
    settings = {name: options[name] for name in _TOLD}
    options["callback"] = monitor if monitor.is_needed else None
    result: Any
    if p.approximation is None:
        result = train_kernel(scaled, kernel=function, **options)
    else:
        settings["approximation"] = p.approximation
        result = train_approximate(scaled, kernel=function, n_components=p.n_components, **options)
    if p.approximation is not None or p.pairs in SELECTED_PAIRS:
        settings["seed"] = options["seed"]  # nothing else is random
    if task.preferences is not None:
        settings["n_preferences"] = len(task.preferences)
    if data.index_base is not None:
        settings["index_base"] = data.index_base
    model = KernelModel.of(result, scaled, scaling, function, **settings)
    shown = {
        **optimum_attributes(result),
        "C": options["C"],
        "history": result.history,
        "n_pairs": model.training["n_pairs"],
    }
    return Trained(model, result, shown, monitor, result.converged, doubt_of(result))


def scaled_rows(data: Dataset, parameters: Any) -> tuple[Scaling, Dataset, Kernel]:
    """The scaling, the rows that it leads to, and the kernel of these."""
    p = parameters
    check_kernel_rows(p.kernel, p.scale, data)
    scaling = Scaling.fit(p.scale, data.rows, weight=data.weight, n_jobs=p.n_jobs)
    scaled = scaling.applied(data, n_jobs=p.n_jobs)
    width = {"gamma": getattr(p, "gamma", "scale"), "degree": p.degree, "coef0": p.coef0}
    return scaling, scaled, Kernel.of(p.kernel, **width, rows=scaled.rows, weight=data.weight)


def kernel_unit(
    task: Task,
    facts: Facts | None,
    options: dict[str, Any],
    known: tuple[Scaling, Dataset, Kernel] | None = None,
) -> float:
    """The C that "auto" is: as of a linear model of the features that the kernel stands for.

    Their variance is that of the rows for the kernel "linear", else the mean of ``k(x, x)``. The
    task is settled by ``facts``; what `scaled_rows` returns may be ``known``.
    """
    place, p = task.data, task.parameters
    data, facts = place.dataset, facts or place.facts()
    scaling, scaled, function = known or scaled_rows(data, p)
    if p.kernel == "linear":
        return weight_in_memory(data, place.balance(scaling, None, facts), options)
    spread = float(np.average(function.diagonal(scaled.rows), weights=data.weight))
    return weight_in_memory(data, facts.balance(spread), options)


def describe(trained: Trained, parameters: Any) -> Description:
    """Work, optimum, size of the model and convergence."""
    result, p, model = trained.result, parameters, trained.model
    assert isinstance(model, KernelModel)
    kernel = p.kernel if isinstance(p.kernel, str) else "function"
    by = "" if p.approximation is None else f" by {p.approximation}"
    width = f", γ = {model.kernel.gamma:.4g}" if kernel in WITH_GAMMA else ""
    told = f"{kernel}{by}{width}, {p.loss.replace('_', ' ')}, C = {model.training['C']:g}"
    lines: tuple[Line, ...] = (
        ("trained", f"{told}: {count(result.n_iter, 'iteration')}"),
        optimum_line(result),
        *pair_lines(model.training),
        ("model", _size(model)),
    )
    facts = {
        **values_of(p, _REPORTED),
        "kernel": kernel,
        **{name: model.training[name] for name in _TOLD if name in model.training},
        "scale": model.scaling.kind,
        "seed": model.training.get("seed"),
        "gamma": model.kernel.gamma,
        "pairs_compared": model.training["n_pairs"],
        "relative_gap": relative_gap(result),
        "support_rows": len(model.coef),
        "hessian_products": result.n_hvp,
    }
    return describe_optimum(trained, *lines, **facts)


def _size(model: KernelModel) -> str:
    """How much a score costs."""
    if model.support is None:
        return count(len(model.coef), "component")
    n_rows = int(model.training["n_rows"])  # type: ignore[arg-type]
    share = f"{100 * len(model.coef) / n_rows:.3g} %"
    return f"{len(model.coef):,} of {count(n_rows, 'row')} support it ({share})"
