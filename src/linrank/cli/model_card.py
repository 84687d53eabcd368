"""A model in words: what it is, how it was trained, and its largest numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from linrank.cli.console import bytes_text, count

if TYPE_CHECKING:
    from linrank.kernel_model import KernelModel
    from linrank.model import LinearModel

__all__ = ["describe_model"]

FORMULAS = {
    "rbf": "exp(-γ‖a - b‖²)",
    "poly": "(γ a·b + c)^degree",
    "sigmoid": "tanh(γ a·b + c)",
    "linear": "a·b",
    "precomputed": "given as a matrix",
    "fourier": "exp(-γ‖a - b‖²) by random cosine features",
}


def describe_model(
    model: LinearModel | KernelModel, top: int | None
) -> tuple[dict[str, Any], list[str]]:
    """What there is to say of a model, as values and as lines; its ``top`` largest numbers."""
    from linrank.model import LinearModel

    if isinstance(model, LinearModel):
        report = _linear_report(model, top)
        return report, _linear_lines(report)
    report = _kernel_report(model, top)
    return report, _kernel_lines(report)


def _header(model: LinearModel | KernelModel, family: str) -> dict[str, Any]:
    from linrank import __version__

    return {
        "command": "inspect",
        "linrank": __version__,
        "kind": "model",
        "family": family,
        "trained_with": model.linrank_version,
        "scale": model.scaling.kind,
        "training": dict(model.training),
        "features": model.n_features,
    }


def _largest(coef: Any, top: int | None) -> list[int]:
    """Where the numbers are that are not 0, the largest first."""
    import numpy as np

    nonzero = np.flatnonzero(coef)
    by_size = np.argsort(-np.abs(coef[nonzero]), kind="stable")
    places: list[int] = nonzero[by_size[:top]].tolist()
    return places


def _card(rows: dict[str, Any], training: dict[str, Any]) -> list[str]:
    rows |= {key: value for key, value in training.items() if value is not None}
    width = 2 + max(map(len, rows))
    return [f"{key:<{width}}{value}" for key, value in rows.items()]


def _which(n_shown: int, n_nonzero: int) -> str:
    shown = f"the {n_shown:,} largest of {n_nonzero:,}"
    return f"{shown if n_shown < n_nonzero else f'all {n_shown:,}'} that are not zero"


# ---- linear models ------------------------------------------------------------------------------


def _linear_report(model: LinearModel, top: int | None) -> dict[str, Any]:
    names = model.feature_names
    base: Any = model.training.get("index_base") or 0
    return {
        **_header(model, "linear"),
        "nonzero_weights": model.n_nonzero,
        "density": model.density,
        "weights": [
            {"feature": names[j] if names else str(j + base), "weight": float(model.coef[j])}
            for j in _largest(model.coef, top)
        ],
    }


def _linear_lines(report: dict[str, Any]) -> list[str]:
    rows = {
        "model": f"linear, trained with linrank {report['trained_with']}",
        "features": f"{report['features']:,}, {report['nonzero_weights']:,} with a weight "
        f"({100 * report['density']:.3g} %)",
        "scale": report["scale"],
    }
    lines = _card(rows, report["training"])
    if report["nonzero_weights"] == 0:
        return [*lines, "no feature has a weight: all rows score 0"]
    which = _which(len(report["weights"]), report["nonzero_weights"])
    lines.append(f"{'weight':>14}  feature, {which}")
    return lines + [f"{item['weight']:>+14.6g}  {item['feature']}" for item in report["weights"]]


# ---- kernel models ------------------------------------------------------------------------------


def _kernel_report(model: KernelModel, top: int | None) -> dict[str, Any]:
    import numpy as np

    rows, support = model.rows, model.support
    return {
        **_header(model, "kernel"),
        "kernel": model.kernel.name,
        "parameters": model.kernel.parameters,
        "support_rows": model.n_support,
        "training_rows": model.n_train,
        "storage": None if rows is None else rows.describe(),
        "bytes": 0 if rows is None else int(rows.nbytes),
        "nonzero_coefficients": int(np.count_nonzero(model.coef)),
        "coefficients": [
            {
                "term": i,
                "training_row": None if support is None else int(support[i]),
                "coefficient": float(model.coef[i]),
            }
            for i in _largest(model.coef, top)
        ],
    }


def _kernel_lines(report: dict[str, Any]) -> list[str]:
    name = report["kernel"]
    greek = {"gamma": "γ", "coef0": "c"}
    values = [f"{greek.get(k, k)} = {v:.6g}" for k, v in report["parameters"].items()]
    rows = {
        "model": f"kernel, trained with linrank {report['trained_with']}",
        "kernel": ", ".join([f"{name}: {FORMULAS[name]}", *values]),
        "features": f"{report['features']:,}",
        "support": _support_text(report),
        "scale": report["scale"],
    }
    if name == "precomputed":
        rows["features"] = f"{report['features']:,} columns, one for each training row"
    lines = _card(rows, report["training"])
    if report["nonzero_coefficients"] == 0:
        return [*lines, "no row has a coefficient: all rows score 0"]
    what = "cosine feature" if name == "fourier" else "training row, counted from 0"
    if name != "fourier" and report["coefficients"][0]["training_row"] is None:
        what = "support row, counted from 0"
    which = _which(len(report["coefficients"]), report["nonzero_coefficients"])
    lines.append(f"{'coefficient':>14}  {what}, {which}")
    return lines + [
        f"{item['coefficient']:>+14.6g}  "
        f"{item['term'] if item['training_row'] is None else item['training_row']}"
        for item in report["coefficients"]
    ]


def _support_text(report: dict[str, Any]) -> str:
    n_support, n_train = report["support_rows"], report["training_rows"]
    if report["kernel"] == "fourier":
        text = count(n_support, "frequency", "frequencies")
    else:
        text = count(n_support, "row")
        text += f" of {n_train:,} ({100 * n_support / n_train:.3g} %)" if n_train else ""
    if report["storage"] is None:
        return text
    return f"{text}; {report['storage']}, {bytes_text(report['bytes'])}"
