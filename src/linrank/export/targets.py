"""The targets of an export, by name; each is a module with a function ``write``.

A target module has

    def write(form: LinearForm, name: str, normalizers: str, *, option=default, ...) -> Artefact

whose keyword-only parameters are the target's options, and may say of itself

    PRECISION = "float32" | "float64"   what the engine computes in (default: float32); an option
                                        of the name ``precision`` takes its place
    DENSE = True                        features of weight 0 are written too
    NAMED = False                       the engine knows features by numbers, not names
    NORMALIZERS = True                  the engine can scale features itself
    CURVES = True                       it takes a `CurveForm`, too
    INTERACTIONS = True                 and their interactions
    scales_queries(options) -> bool     whether it scales within queries, given these options

Nothing heavy is imported here: the command line lists the targets in its help.
"""

from __future__ import annotations

import inspect
import warnings as python_warnings
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, Any

from linrank.errors import ExportWarning, check_one_of, nearest

if TYPE_CHECKING:
    from linrank.export.artefact import Artefact
    from linrank.export.feature_map import FeatureMap

# Name -> what it is, for help texts; the module has the same name, unless two share one.
TARGETS = {
    "elasticsearch": "Elasticsearch with the learning-to-rank plugin",
    "opensearch": "OpenSearch with the learning-to-rank plugin",
    "solr": "Apache Solr's learning-to-rank module",
    "vespa": "a rank profile of Vespa",
    "ranklib": "RankLib's Coordinate Ascent, also for the engines that read RankLib",
    "liblinear": "a regression model of LIBLINEAR",
    "onnx": "an ONNX graph, for onnxruntime and others",
    "sql": "a scoring expression, or a query that ranks a table",
    "json": "names and weights, for a program of one's own",
}
ALIASES = {"es": "elasticsearch", "os": "opensearch"}
MODULES = {"opensearch": "elasticsearch"}
NORMALIZERS = ("folded", "engine")


def target_name(target: str) -> str:
    """The full name of a target; a ValueError for an unknown one names the nearest."""
    name = str(target).lower()
    name = ALIASES.get(name, name)
    if name in TARGETS:
        return name
    near = nearest(name, [*TARGETS, *ALIASES], 0.5)
    hint = "" if near is None else f"did you mean {near!r}? "
    raise ValueError(f"unknown export target {target!r}; {hint}there are {', '.join(TARGETS)}")


def options_of(target: str) -> tuple[str, ...]:
    """The options that a target has of its own."""
    parameters = inspect.signature(_module(target_name(target)).write).parameters.values()
    return tuple(p.name for p in parameters if p.kind is p.KEYWORD_ONLY)


def export(
    model: Any,
    target: str,
    *,
    name: str = "linrank",
    feature_map: FeatureMap | None = None,
    normalizers: str = "folded",
    **options: Any,
) -> Artefact:
    """A linear model as an engine takes it; see :meth:`linrank.LinearModel.export`."""
    target = target_name(target)
    module = _module(target)
    _check_options(target, options)
    _check_normalizers(target, module, normalizers)
    if not isinstance(name, str) or not name.strip():
        raise ValueError(f"name must be a text, the name of the model in the engine, got {name!r}")
    from linrank.export.linear_form import LinearForm

    kind: Any = LinearForm
    if hasattr(model, "curves"):
        _check_curves(target, module, model, normalizers)
        from linrank.export.curve_form import CurveForm

        kind = CurveForm
    precision: Any = options.get("precision") or getattr(module, "PRECISION", "float32")
    form = kind.of(
        model,
        target=target,
        feature_map=feature_map,
        precision=precision,
        dense=getattr(module, "DENSE", False),
        named=getattr(module, "NAMED", True),
        by_query=hasattr(module, "scales_queries") and module.scales_queries(options),
    )
    artefact: Artefact = module.write(form, name, normalizers, **options)
    artefact = replace(artefact, warnings=(*form.warnings, *artefact.warnings))
    for text in artefact.warnings:
        python_warnings.warn(text, ExportWarning, stacklevel=3)
    return artefact


def _module(target: str) -> Any:
    return import_module(f"linrank.export.{MODULES.get(target, target)}")


def _check_options(target: str, options: dict[str, Any]) -> None:
    known = options_of(target)
    for option in options:
        if option not in known:
            has = f"it has {', '.join(known)}" if known else "it has none"
            raise TypeError(f"the target {target} has no option {option!r}; {has}")


def _check_curves(target: str, module: Any, model: Any, normalizers: str) -> None:
    """Refuse what the target cannot express of an additive model."""
    needed = "CURVES" if model.interactions is None else "INTERACTIONS"
    if not getattr(module, needed, False):
        able = [name for name in TARGETS if getattr(_module(name), needed, False)]
        told = {"CURVES": "curves", "INTERACTIONS": "interactions of features"}[needed]
        raise ValueError(f"{target} has no way to compute {told}; these have: {', '.join(able)}")
    if normalizers == "engine":
        raise ValueError("curves are of raw values, which an engine must not scale; use 'folded'")


def _check_normalizers(target: str, module: Any, normalizers: str) -> None:
    check_one_of("normalizers", normalizers, NORMALIZERS)
    if normalizers == "engine" and not getattr(module, "NORMALIZERS", False):
        raise ValueError(
            f"{target} has no normalizers of its own; with normalizers='folded' the scaling is in "
            "the weights"
        )
