"""Elasticsearch and OpenSearch with the learning-to-rank plugin: a model is a JSON body.

The plugin fills features that do not match a document with 0, computes in float32, knows no
intercept, and keeps features apart by name.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import numpy as np

from linrank.export.artefact import Artefact
from linrank.export.curve_form import CurveForm
from linrank.export.engine_names import check_feature_names, check_plain_name, listed
from linrank.export.linear_form import LinearForm, about_magnitudes, power_of_two, singles


def default_values(form: LinearForm) -> tuple[dict[str, float], list[str]]:
    """The value that a missing feature must take, where it is not 0, and who cannot have one.

    A missing value adds ``w fill + extra``, as does the value ``fill + extra / w``. There is none
    where w is 0, or so small that the quotient is beyond float32. A feature that was never missing
    in training needs none: what the engine takes for 0 there, training took for 0 too.
    """
    with np.errstate(over="ignore"):
        values = np.where(form.absent, form.defaults, 0.0).astype(np.float32)
    found = {
        name: single
        for name, value, single in zip(form.names, values, singles(values), strict=True)
        if np.isfinite(value) and value != 0.0
    }
    return found, [form.names[j] for j in np.flatnonzero(~np.isfinite(values))]


def about_inexpressible(form: LinearForm, names: list[str]) -> list[str]:
    """The warning about features whose absence no value can stand for."""
    if not names:
        return []
    more = f" (and {len(names) - 1} more)" if len(names) > 1 else ""
    return [
        f"the feature {names[0]!r}{more} has next to no weight but an effect when it is missing, "
        f"which no value in {form.target} can have: rows without it are ordered differently"
    ]


@dataclass(frozen=True)
class Normalizers:
    """What an engine subtracts from each feature and divides it by, all of it in float32.

    Attributes
    ----------
    kind : {"standard", "minmax"}
        ``(x - mean) / deviation`` or ``(x - low) / (high - low)``.
    lows, highs : list of float
        Mean and deviation, or least and largest value.
    weights : list of float
        Of the scaled features.
    warnings : tuple of str
        What the model does not know.
    """

    kind: str
    lows: list[float]
    highs: list[float]
    weights: list[float]
    warnings: tuple[str, ...] = ()

    @classmethod
    def of(cls, form: LinearForm) -> Normalizers:
        """Those of a form whose model was trained with ``scale="standard"`` or ``"minmax"``."""
        if form.divisors is None:
            raise ValueError(
                "normalizers='engine' writes the scaling of the training, and the model was "
                f"trained with scale={form.scale!r}; use 'folded', or train with "
                "scale='standard' or 'minmax'"
            )
        known = form.statistics
        if form.scale == "standard":
            shifts = np.zeros_like(form.weights) if known is None else known.mean
            lows, highs = singles(shifts), singles(form.divisors)
            widths = np.array(highs, dtype=np.float32)
        else:
            shifts = np.zeros_like(form.weights) if known is None else known.low
            lows, highs, widths = _ranges(shifts, form.divisors)
        scaled = form.weights * np.asarray(widths, dtype=np.float64)
        with np.errstate(over="ignore", invalid="ignore"):
            # The order is kept by a factor of their own: these may be large where raw ones are
            # small. That of the raw weights has no part in default values, which are quotients.
            weights = (scaled * _factor(scaled)).astype(np.float32)
        usable = np.isfinite(widths) & (widths > 0) & np.isfinite(weights) & np.isfinite(lows)
        if not usable.all():
            j = int(np.flatnonzero(~usable)[0])
            raise ValueError(
                f"the feature {form.names[j]!r} is divided by {form.divisors[j]:g} in training, "
                "which an engine cannot do in float32; use normalizers='folded'"
            )
        warnings = [] if known is not None else [_SHIFTLESS]
        warnings += about_magnitudes(
            form.names, form.weights, weights.astype(np.float64), "float32"
        )
        return cls(form.scale, lows, highs, singles(weights), tuple(warnings))


def _factor(weights: np.ndarray[tuple[int], np.dtype[np.float64]]) -> float:
    held = weights[np.isfinite(weights) & (weights != 0.0)]
    return power_of_two(held, None, np.empty(0), "float32") if held.size else 1.0


_SHIFTLESS = (
    "the model does not know the means and ranges of its training data: the normalizers subtract "
    "0, which gives the same order; scores differ by a constant"
)


def _ranges(
    shifts: np.ndarray[tuple[int], np.dtype[np.float64]],
    divisors: np.ndarray[tuple[int], np.dtype[np.float64]],
) -> tuple[list[float], list[float], np.ndarray[tuple[int], np.dtype[np.float32]]]:
    """Ends in float32, and the difference that the engine makes of them.

    Where rounding would close the range, or change it by more than a thousandth, it begins at 0.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        lows = shifts.astype(np.float32)
        highs = (shifts + divisors).astype(np.float32)
        off = ~(np.abs((highs - lows) / divisors - 1.0) < 1e-3)
        lows = np.where(off, np.float32(0), lows)
        highs = np.where(off, divisors.astype(np.float32), highs)
        return singles(lows), singles(highs), highs - lows


NORMALIZERS = True
CURVES = True
# The plugin keeps a feature as a document with the id feature-NAME; ids have at most 512 bytes.
_MOST_BYTES = 512 - len("feature-")


def write(
    form: LinearForm,
    name: str,
    normalizers: str,
    *,
    featureset: str | None = None,
    tolerance: Any = None,
    steps: Any = None,
) -> Artefact:
    """The body of ``POST _ltr/_featureset/FEATURESET/_createmodel``, and defaults of features.

    Parameters
    ----------
    form : LinearForm
        The model.
    name : str
        What the model is to be called.
    normalizers : {"folded", "engine"}
        Whether the plugin scales the features.
    featureset : str or None
        The feature set that the model belongs to; that of the model's name by default.
    tolerance, steps : float or None, int or None
        Of curves, which are written as steps: how far these may be from a curve, or how many there
        may be in all (default: 1000).
    """
    check_steps(form, tolerance, steps)
    target, featureset = form.target, name if featureset is None else featureset
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
    definition: Any = dict(zip(form.names, weights, strict=True))
    if isinstance(form, CurveForm):
        model["type"], (found, told) = "model/xgboost+json", form.steps(tolerance, steps)
        definition, warnings = [_tree(*step) for step in found], [*told, *warnings]
    model["definition"] = json.dumps(definition, ensure_ascii=False, allow_nan=False)
    files = {"model.json": json_text({"model": {"name": name, "model": model}})}
    defaults, lost = default_values(form)
    warnings += about_inexpressible(form, lost)
    if defaults:
        files["defaults.json"] = json_text(defaults)
        warnings.append(_about_defaults(form, len(defaults)))
    instructions = _instructions(form, name, featureset, bool(defaults))
    return Artefact(target, files, instructions, tuple(warnings))


def check_steps(form: LinearForm, tolerance: Any, steps: Any) -> None:
    """Refuse options of steps where there are none."""
    if not isinstance(form, CurveForm) and (tolerance is not None or steps is not None):
        raise ValueError("tolerance and steps are of curves, and the model is linear")


def leaves(rise: float) -> list[float]:
    """What a step adds below and above, in float32: never less than 0, as Lucene wants scores."""
    return singles([max(0.0, -rise), max(0.0, rise)])


def _tree(feature: str, cut: float, rise: float) -> dict[str, Any]:
    """One split, as XGBoost dumps it: "yes" is where a value is below the condition."""
    (condition,) = singles([np.nextafter(np.float32(cut), np.float32(np.inf))])
    below, above = leaves(rise)
    children = [{"nodeid": 1, "leaf": below}, {"nodeid": 2, "leaf": above}]
    split = {"nodeid": 0, "depth": 0, "split": feature, "split_condition": condition}
    return {**split, "yes": 1, "no": 2, "missing": 1, "children": children}


def json_text(document: Any) -> bytes:
    """A document for people and programs."""
    return (json.dumps(document, ensure_ascii=False, allow_nan=False, indent=2) + "\n").encode()


def _normalizers(form: LinearForm, scaled: Normalizers) -> dict[str, Any]:
    kind, *keys = {
        "standard": ("standard", "mean", "standard_deviation"),
        "minmax": ("min_max", "minimum", "maximum"),
    }[scaled.kind]
    pairs = zip(scaled.lows, scaled.highs, strict=True)
    own = ({kind: dict(zip(keys, pair, strict=True))} for pair in pairs)
    return dict(zip(form.names, own, strict=True))


def _about_defaults(form: LinearForm, n_defaults: int) -> str:
    return (
        f"the model fills in missing values (missing={form.missing!r}) where {form.target} takes "
        f"0: the queries of {n_defaults} of the features need the values that come with it"
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


def _instructions(form: LinearForm, name: str, featureset: str, has_defaults: bool) -> str:
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
        f"{form.what} of {len(form.names)} features for {form.target} with the learning-to-rank "
        f"plugin.\n\nThe feature set {featureset!r} must have features of these names, with the "
        f"queries whose scores the model was trained on: {listed(form.names)}. Put the model "
        "beside it:\n\n"
        f"  curl -X POST 'http://localhost:9200/_ltr/_featureset/{featureset}/_createmodel' \\\n"
        "    -H 'Content-Type: application/json' --data-binary @model.json\n\n"
        "A model cannot be changed: delete it (DELETE _ltr/_model/"
        f"{name}) or take another name. Use it in a rescore of the first query's best documents; "
        "the params are those that the templates of the features ask for:\n\n"
        "  curl -X POST 'http://localhost:9200/INDEX/_search' \\\n"
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
