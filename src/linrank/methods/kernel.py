"""RankSVM with a kernel as a method: exact or approximate, and what is told of it."""

from __future__ import annotations

from typing import Any

from linrank.data.dataset import Dataset
from linrank.data.queries import query_weights
from linrank.methods.base import Description, Task, Trained, values_of
from linrank.methods.linear import (
    Line,
    converged_lines,
    doubt_of,
    ending,
    optimum_attributes,
    optimum_line,
    pair_lines,
    relative_gap,
)
from linrank.models.kernel import KernelModel
from linrank.options import KERNEL, WITH_GAMMA
from linrank.search.kernel_fit import fit_kernel
from linrank.search.monitor import Monitor
from linrank.system.seeds import seed_of
from linrank.system.words import count

# What the training takes under their own names.
_PASSED_ON = (
    *("kernel", "gamma", "degree", "coef0", "scale", "C", "approximation", "n_components"),
    *KERNEL,
)


def train(task: Task) -> Trained:
    """Minimise ``½ β'Qβ + C Σ ω_ij l(1 - (s_i - s_j))`` over rows in memory."""
    p, data, monitor = task.parameters, task.data, Monitor.watching(task.parameters)
    assert isinstance(data, Dataset)  # of a store too: no pass over one has a kernel
    model, result = fit_kernel(
        data,
        **values_of(p, _PASSED_ON),
        seed=seed_of(p.random_state),
        query_weight=query_weights(task.query_weight, data.queries),
        preferences=task.preferences,
        n_jobs=p.n_jobs,
        callback=monitor if monitor.is_needed else None,
    )
    shown = {
        **optimum_attributes(result),
        "history": result.history,
        "n_pairs": model.training["n_pairs"],
    }
    return Trained(model, result, shown, monitor, result.converged, doubt_of(result))


def describe(trained: Trained, parameters: Any) -> Description:
    """Work, optimum, size of the model and convergence."""
    result, p, model = trained.result, parameters, trained.model
    assert isinstance(model, KernelModel)
    kernel = p.kernel if isinstance(p.kernel, str) else "function"
    by = "" if p.approximation is None else f" by {p.approximation}"
    width = f", γ = {model.kernel.gamma:.4g}" if kernel in WITH_GAMMA else ""
    told = f"{kernel}{by}{width}, {p.loss.replace('_', ' ')}, C = {p.C:g}"
    lines: tuple[Line, ...] = (
        ("trained", f"{told}: {count(result.n_iter, 'iteration')}"),
        optimum_line(result),
        *pair_lines(model.training),
        ("model", _size(model)),
        *converged_lines(trained),
    )
    facts = {
        **values_of(p, _PASSED_ON),
        "kernel": kernel,
        "seed": model.training.get("seed"),
        "gamma": model.kernel.gamma,
        "pairs_compared": model.training["n_pairs"],
        "objective": result.value,
        "duality_gap": result.gap,
        "relative_gap": relative_gap(result),
        "support_rows": len(model.coef),
        "hessian_products": result.n_hvp,
        **ending(result),
    }
    return Description(lines, facts)


def _size(model: KernelModel) -> str:
    """How much a score costs."""
    if model.support is None:
        return count(len(model.coef), "component")
    n_rows = int(model.training["n_rows"])  # type: ignore[arg-type]
    share = f"{100 * len(model.coef) / n_rows:.3g} %"
    return f"{len(model.coef):,} of {count(n_rows, 'row')} support it ({share})"
