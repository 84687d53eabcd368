"""PMML 4.4: the schema rules of a RegressionModel, and the evaluation of one.

Rules: the order of children and the attributes that the XML schema demands; names that are unique
and known; the mining schema is the gate of the model, so its replacement of missing values comes
before every transformation inside of the model. A field that is missing makes the result of a
function missing (but for ``isMissing``, ``isNotMissing`` and the branch that ``if`` does not take),
and a missing predictor makes the score missing. NaN stands for missing.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from engines.pmml_expression import EXPRESSIONS, evaluate
from engines.rules import Columns, Refused, column, n_rows, require

NAMESPACE = "http://www.dmg.org/PMML-4_4"

# Children in their order, with how many there may be; attributes that must be there, and may be.
_CHILDREN = {
    "PMML": "Header MiningBuildTask? DataDictionary TransformationDictionary? RegressionModel",
    "Header": "Extension* Application? Annotation* Timestamp?",
    "DataDictionary": "Extension* DataField+ Taxonomy*",
    "DataField": "Extension* Interval* Value*",
    "RegressionModel": "Extension* MiningSchema Output? ModelStats? ModelExplanation? Targets? "
    "LocalTransformations? RegressionTable+ ModelVerification? Extension*",
    "MiningSchema": "Extension* MiningField+",
    "Output": "Extension* OutputField+",
    "LocalTransformations": "Extension* DerivedField*",
    "DerivedField": f"Extension* ({'|'.join(EXPRESSIONS)}) Value*",
    "RegressionTable": "Extension* NumericPredictor* CategoricalPredictor* PredictorTerm*",
    "NumericPredictor": "Extension*",
    "Apply": f"Extension* ({'|'.join(EXPRESSIONS)})*",
    "NormContinuous": "Extension* LinearNorm LinearNorm+",
}
_ATTRIBUTES = {
    "PMML": ("version", ""),
    "Header": ("", "copyright description modelVersion"),
    "Application": ("name", "version"),
    "DataDictionary": ("", "numberOfFields"),
    "DataField": ("name optype dataType", "displayName isCyclic taxonomy"),
    "RegressionModel": (
        "functionName",
        "modelName algorithmName modelType targetFieldName normalizationMethod isScorable",
    ),
    "MiningField": (
        "name",
        "usageType optype importance outliers lowValue highValue missingValueReplacement "
        "missingValueTreatment invalidValueTreatment invalidValueReplacement",
    ),
    "OutputField": ("name dataType", "optype displayName targetField feature"),
    "DerivedField": ("optype dataType", "name displayName"),
    "RegressionTable": ("intercept", "targetCategory"),
    "NumericPredictor": ("name coefficient", "exponent"),
    "Apply": ("function", "mapMissingTo defaultValue invalidValueTreatment"),
    "FieldRef": ("field", "mapMissingTo"),
    "Constant": ("", "dataType missing"),
    "NormContinuous": ("field", "mapMissingTo outliers"),
    "LinearNorm": ("orig norm", ""),
    "Extension": ("", "extender name value"),
}


@dataclass(frozen=True)
class RegressionModel:
    target: str | None
    replacements: dict[str, float | None]  # of the active fields
    derived: list[tuple[str, Any]]
    intercept: float
    predictors: list[tuple[str, float]]

    def score(self, columns: Columns) -> np.ndarray:
        """Scores in double precision; NaN where the result is missing."""
        values: dict[str, np.ndarray] = {}
        for name, replacement in self.replacements.items():
            given = column(columns, name).astype(np.float64)
            missing = np.isnan(given)
            values[name] = given if replacement is None else np.where(missing, replacement, given)
        for name, expression in self.derived:
            values[name] = evaluate(expression, values)
        total = np.full(n_rows(columns), self.intercept)
        for name, coefficient in self.predictors:
            total = total + coefficient * values[name]
        return total


def load(document: bytes) -> RegressionModel:
    """The model of a document that keeps the rules."""
    try:
        root = ElementTree.fromstring(document)
    except ElementTree.ParseError as problem:
        raise Refused(f"not XML: {problem}") from None
    _check(root)
    require(_tag(root) == "PMML" and root.get("version") == "4.4", "<PMML version='4.4'>")
    dictionary = _fields(_child(root, "DataDictionary"))
    transformations = _child(root, "TransformationDictionary")
    require(transformations is None or not len(transformations), "global transformations")
    model = _child(root, "RegressionModel")
    require(model.get("functionName") == "regression", "a regression")
    require(model.get("normalizationMethod", "none") == "none", "a score as it is")
    return _model(model, dictionary)


def _model(model: Any, dictionary: Mapping[str, Any]) -> RegressionModel:
    target, replacements = _mining_fields(_child(model, "MiningSchema"), dictionary)
    local = _child(model, "LocalTransformations")
    derived = [] if local is None else [_derived(field) for field in local]
    names = [*dictionary, *(name for name, _ in derived)]
    require(len(set(names)) == len(names), "a name stands for one field")
    (table,) = [child for child in model if _tag(child) == "RegressionTable"]
    predictors = []
    for child in table:
        require(_tag(child) == "NumericPredictor", f"<{_tag(child)}>")
        require(child.get("exponent", "1") == "1", "a linear predictor")
        require(child.get("name") in {*replacements, *names[len(dictionary) :]}, "its field")
        predictors.append((child.get("name"), _real(child.get("coefficient"))))
    repeated = [name for name, _ in predictors]
    require(len(set(repeated)) == len(repeated), "a field predicts once")
    return RegressionModel(target, replacements, derived, _real(table.get("intercept")), predictors)


def _fields(dictionary: Any) -> dict[str, Any]:
    fields = {field.get("name"): field for field in dictionary if _tag(field) == "DataField"}
    count = sum(_tag(field) == "DataField" for field in dictionary)
    require(len(fields) == count, "the names of data fields are unique")
    stated = dictionary.get("numberOfFields")
    require(stated is None or int(stated) == count, f"numberOfFields={stated} of {count}")
    for name, field in fields.items():
        require(field.get("optype") == "continuous", f"{name} is {field.get('optype')}")
        require(field.get("dataType") in ("double", "float", "integer"), f"the type of {name}")
    return fields


def _mining_fields(schema: Any, dictionary: Mapping[str, Any]) -> tuple[str | None, dict[str, Any]]:
    target, active = None, {}
    for field in schema:
        name, usage = field.get("name"), field.get("usageType", "active")
        require(name in dictionary, f"mining field {name!r} is not in the dictionary")
        require(name not in active and name != target, f"mining field {name!r} comes twice")
        if usage in ("target", "predicted"):
            target = name
            continue
        require(usage == "active", f"usageType={usage!r}")
        replacement = field.get("missingValueReplacement")
        treatment = field.get("missingValueTreatment", "asIs")
        require(
            treatment in ("asIs", "asMean", "asMode", "asMedian", "asValue", "returnInvalid"),
            f"missingValueTreatment={treatment!r}",
        )
        active[name] = None if replacement is None else _real(replacement)
    return target, active


def _derived(field: Any) -> tuple[str, Any]:
    require(field.get("name"), "a local transformation has a name")
    require(field.get("optype") == "continuous", "a continuous predictor")
    (expression,) = [child for child in field if _tag(child) in EXPRESSIONS]
    return field.get("name"), expression


def _check(element: Any) -> None:
    """The children and the attributes that the XML schema allows, all the way down."""
    tag = _tag(element)
    needed, allowed = (words.split() for words in _ATTRIBUTES.get(tag, ("", "")))
    lacking = [name for name in needed if name not in element.attrib]
    require(not lacking, f"<{tag}> lacks {lacking}")
    if tag in _ATTRIBUTES:
        unknown = [name for name in element.attrib if name not in [*needed, *allowed]]
        require(not unknown, f"<{tag}> has no attributes {unknown}")
    sequence = "".join(f"{_tag(child)} " for child in element)
    if tag in _CHILDREN:
        pattern = "".join(_step(step) for step in _CHILDREN[tag].split())
        require(re.fullmatch(pattern, sequence), f"<{tag}> holds {sequence[:200]}")
    for child in element:
        _check(child)


def _step(step: str) -> str:
    """``Name?`` as a pattern for names, each followed by a space."""
    name, count = (step[:-1], step[-1]) if step[-1] in "?*+" else (step, "")
    return f"(?:{name} ){count}"


def _tag(element: Any) -> str:
    prefix = f"{{{NAMESPACE}}}"
    require(element.tag.startswith(prefix), f"{element.tag} is not of {NAMESPACE}")
    return str(element.tag[len(prefix) :])


def _child(element: Any, tag: str) -> Any:
    return next((child for child in element if _tag(child) == tag), None)


def _real(text: str | None) -> float:
    require(
        text is not None and re.fullmatch(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", text.strip()),
        f"{text!r} is no REAL-NUMBER",
    )
    value = float(text or "")
    require(np.isfinite(value), f"{text!r} is infinite")
    return value
