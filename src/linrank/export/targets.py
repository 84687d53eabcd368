"""The targets of an export: a table, and the function that looks into it.

A target is a row of `TARGETS` and a function

    def write(form: Form, name: str, *, option=default, ...) -> Artefact

whose keyword-only parameters are its options. Nothing heavy is imported here: the command line
lists the targets in its help.
"""

from __future__ import annotations

import inspect
import warnings as python_warnings
from dataclasses import dataclass, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any

from linrank.errors import ExportWarning, nearest

if TYPE_CHECKING:
    from linrank.export.artefact import Artefact
    from linrank.export.names import FeatureMap


@dataclass(frozen=True)
class Target:
    """What an export asks of an engine.

    Attributes
    ----------
    summary : str
        What it is, for help texts.
    where : str
        ``module:function`` of the function that writes, the module one of this package.
    precision : {"float32", "float64"}
        What it computes in; an option of the name ``precision`` takes its place.
    is_dense : bool
        Whether features of weight 0 are written too.
    has_names : bool
        Whether it knows features by names, rather than by numbers.
    takes : {"weights", "curves", "interactions"}
        What it can compute, and all before that.
    scales_with : tuple of str
        Options with which it divides features by their ranges within queries; empty if it cannot.
    """

    summary: str
    where: str
    precision: str = "float32"
    is_dense: bool = False
    has_names: bool = True
    takes: str = "weights"
    scales_with: tuple[str, ...] = ()

    def load(self) -> Any:
        """The function that writes."""
        module, _, function = self.where.partition(":")
        return getattr(import_module(f"linrank.export.{module}"), function)


TARGETS = {
    "elasticsearch": Target(
        "Elasticsearch with the learning-to-rank plugin", "lucene:write_plugin", takes="curves"
    ),
    "opensearch": Target(
        "OpenSearch with the learning-to-rank plugin", "lucene:write_plugin", takes="curves"
    ),
    "solr": Target("Apache Solr's learning-to-rank module", "lucene:write_solr", takes="curves"),
    "vespa": Target("a rank profile of Vespa", "vespa:write", "float64", takes="curves"),
    "ranklib": Target(
        "RankLib's Coordinate Ascent, also for the engines that read RankLib",
        "numbered:write_ranklib",
        has_names=False,
    ),
    "liblinear": Target(
        "a regression model of LIBLINEAR", "numbered:write_liblinear", "float64", has_names=False
    ),
    "onnx": Target(
        "an ONNX graph, for onnxruntime and others",
        "onnx_graph:write",
        is_dense=True,  # X has all columns of the model,
        has_names=False,  # and goes by their places
        takes="curves",
    ),
    "sql": Target(
        "a scoring expression, or a query that ranks a table",
        "sql:write",
        "float64",
        takes="curves",
        scales_with=("table", "qid"),
    ),
    "json": Target(
        "names and weights, for a program of one's own",
        "json:write",
        "float64",
        takes="interactions",
    ),
}
ALIASES = {"es": "elasticsearch", "os": "opensearch"}
_PARTS = {"weights": "weights", "curves": "curves", "interactions": "interactions of features"}


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
    write = TARGETS[target_name(target)].load()
    parameters = inspect.signature(write).parameters.values()
    return tuple(p.name for p in parameters if p.kind is p.KEYWORD_ONLY)


def export(
    model: Any,
    target: str,
    *,
    name: str = "linrank",
    feature_map: FeatureMap | None = None,
    **options: Any,
) -> Artefact:
    """A linear model as an engine takes it; see :meth:`linrank.LinearModel.export`."""
    target = target_name(target)
    engine = TARGETS[target]
    _check_options(target, options)
    if not isinstance(name, str) or not name.strip():
        raise ValueError(f"name must be a text, the name of the model in the engine, got {name!r}")
    _check_parts(target, model)
    from linrank.export.form import Form

    scales = [options.get(option) is not None for option in engine.scales_with]
    form = Form.of(
        model,
        target=target,
        feature_map=feature_map,
        precision=options.get("precision") or engine.precision,
        dense=engine.is_dense,
        named=engine.has_names,
        scales_queries=bool(scales) and all(scales),
    )
    artefact: Artefact = engine.load()(form, name, **options)
    artefact = replace(artefact, warnings=(*form.warnings, *artefact.warnings))
    for text in artefact.warnings:
        python_warnings.warn(text, ExportWarning, stacklevel=3)
    return artefact


def _check_options(target: str, options: dict[str, Any]) -> None:
    known = options_of(target)
    for option in options:
        if option not in known:
            has = f"it has {', '.join(known)}" if known else "it has none"
            raise TypeError(f"the target {target} has no option {option!r}; {has}")


def _check_parts(target: str, model: Any) -> None:
    """Refuse what the target cannot express of an additive model."""
    if not hasattr(model, "curves"):
        return
    order = list(_PARTS)
    needed = "curves" if model.interactions is None else "interactions"
    able = [name for name, t in TARGETS.items() if order.index(t.takes) >= order.index(needed)]
    if target not in able:
        raise ValueError(
            f"{target} has no way to compute {_PARTS[needed]}; these have: {', '.join(able)}"
        )
