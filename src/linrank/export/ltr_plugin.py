"""The learning-to-rank plugin that Elasticsearch and OpenSearch share: a model is a JSON body.

The plugin fills features that do not match a document with 0, computes in float32, knows no
intercept, and keeps features apart by name.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np

from linrank.export.artefact import Artefact
from linrank.export.default_values import about_inexpressible, default_values
from linrank.export.engine_names import check_feature_names, check_plain_name, listed
from linrank.export.normalizers import Normalizers
from linrank.export.numbers import singles

if TYPE_CHECKING:
    from linrank.export.linear_form import LinearForm

__all__ = ["write_plugin_model"]

# The plugin keeps a feature as a document with the id feature-NAME; ids have at most 512 bytes.
_MOST_BYTES = 512 - len("feature-")


def write_plugin_model(
    form: LinearForm, name: str, normalizers: str, *, target: str, port: int, featureset: str | None
) -> Artefact:
    """The body of ``_createmodel``, and the defaults that feature queries have to bring."""
    featureset = name if featureset is None else featureset
    check_feature_names(target, form.names, most_bytes=_MOST_BYTES)
    check_plain_name(target, "model", name)
    check_plain_name(target, "feature set", featureset)
    model: dict[str, Any] = {"type": "model/linear"}
    weights, warnings = singles(form.weights), _about_signs(form)
    if normalizers == "engine":
        scaled = Normalizers.of(form)
        weights, warnings = scaled.weights, [*scaled.warnings, *warnings]
        model["feature_normalizers"] = _normalizers(form, scaled)
    # The plugin wants the weights as a text that holds JSON, not as an object.
    definition = dict(zip(form.names, weights, strict=True))
    model["definition"] = json.dumps(definition, ensure_ascii=False, allow_nan=False)
    files = {"model.json": _json({"model": {"name": name, "model": model}})}
    defaults, lost = default_values(form)
    warnings += about_inexpressible(target, lost)
    if defaults:
        files["defaults.json"] = _json(defaults)
        warnings.append(_about_defaults(target, form, len(defaults)))
    instructions = _instructions(target, port, name, featureset, bool(defaults), form)
    return Artefact(target, files, instructions, tuple(warnings))


def _json(document: dict[str, Any]) -> bytes:
    return (json.dumps(document, ensure_ascii=False, allow_nan=False, indent=2) + "\n").encode()


def _normalizers(form: LinearForm, scaled: Normalizers) -> dict[str, Any]:
    if scaled.kind == "standard":
        return {
            feature: {"standard": {"mean": mean, "standard_deviation": deviation}}
            for feature, mean, deviation in zip(form.names, scaled.lows, scaled.highs, strict=True)
        }
    return {
        feature: {"min_max": {"minimum": low, "maximum": high}}
        for feature, low, high in zip(form.names, scaled.lows, scaled.highs, strict=True)
    }


def _about_defaults(target: str, form: LinearForm, n_defaults: int) -> str:
    return (
        f"the model fills in missing values (missing={form.missing!r}) where {target} takes 0: "
        f"the queries of {n_defaults} of the features need the values of defaults.json"
    )


def _about_signs(form: LinearForm) -> list[str]:
    told = []
    negative = np.flatnonzero(form.weights < 0.0)
    if negative.size:
        told.append(
            f"scores can be negative, as the weight of {form.names[negative[0]]!r} is, and Lucene "
            "forbids that in a main query: use the model in a rescore, or train with positive=True"
        )
    if form.statistics is not None and (form.statistics.low < 0.0).any():
        j = int(np.flatnonzero(form.statistics.low < 0.0)[0])
        told.append(
            f"the feature {form.names[j]!r} was as low as {form.statistics.low[j]:g} in training, "
            "and Lucene allows no negative score of a feature's query: add a constant there, which "
            "changes no order"
        )
    return told


def _instructions(
    target: str, port: int, name: str, featureset: str, has_defaults: bool, form: LinearForm
) -> str:
    query = {
        "query": {"match": {"title": "KEYWORDS"}},
        "rescore": {
            "window_size": 1000,
            "query": {
                "rescore_query": {"sltr": {"params": {"keywords": "KEYWORDS"}, "model": name}},
                "query_weight": 0,
            },
        },
    }
    text = (
        f"A linear model of {len(form.names)} features for {target} with the learning-to-rank "
        f"plugin.\n\nThe feature set {featureset!r} must have features of these names, with the "
        f"queries whose scores the model was trained on: {listed(form.names)}. Put the model "
        "beside it:\n\n"
        f"  curl -X POST 'http://localhost:{port}/_ltr/_featureset/{featureset}/_createmodel' \\\n"
        "    -H 'Content-Type: application/json' --data-binary @model.json\n\n"
        "A model cannot be changed: delete it (DELETE _ltr/_model/"
        f"{name}) or take another name. Use it in a rescore of the first query's best documents; "
        "the params are those that the templates of the features ask for:\n\n"
        f"  curl -X POST 'http://localhost:{port}/INDEX/_search' \\\n"
        "    -H 'Content-Type: application/json' \\\n"
        f"    -d '{json.dumps(query, ensure_ascii=False)}'\n"
    )
    if has_defaults:
        text += (
            "\nA feature whose query does not match counts 0. The model was trained with other "
            "values for missing ones, which defaults.json lists: give each to its feature, as "
            '{"function_score": {"field_value_factor": {"field": FIELD, "missing": VALUE}}} or in '
            "a script_score that returns it for documents without the field.\n"
        )
    return text
