"""A linear model as PMML 4.4: a RegressionModel without an intercept, in double precision.

What a missing value counts as is written into the mining schema where that can say it:

    refused      missingValueTreatment="returnInvalid";
    v            missingValueReplacement="v".

A value that adds something beside ``w·v`` (an indicator) is replaced behind the mining schema,
which would hide from everything after it that the value was missing: two derived fields, the
value with v in its gaps and 1 where there is a gap, take the place of the one.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from typing import TYPE_CHECKING
from xml.etree.ElementTree import Element, SubElement

from linrank import __version__
from linrank.export.artefact import Artefact
from linrank.export.engine_names import refuse

if TYPE_CHECKING:
    from collections.abc import Container, Sequence

    from linrank.export.linear_form import LinearForm

PRECISION = "float64"

_NAMESPACE = "http://www.dmg.org/PMML-4_4"
# Neither these characters nor a reference to them can be in a document of XML 1.0.
_REFUSED = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def write(form: LinearForm, name: str, normalizers: str) -> Artefact:
    """The model as a PMML document.

    Parameters
    ----------
    form : LinearForm
        The weights, by the names of fields.
    name : str
        Name of the model and of the file.
    normalizers : str
        ``folded``: the weights are those of raw fields.
    """
    _check(name, "model")
    for feature in form.names:
        _check(feature, "feature")
    taken = set(form.names)
    target, score = _unused("relevance", taken), _unused("score", taken)
    root = Element("PMML", {"xmlns": _NAMESPACE, "version": "4.4"})
    header = SubElement(root, "Header", description="Ranks by score, higher is better")
    SubElement(header, "Application", name="linrank", version=__version__)
    _add_dictionary(root, [*form.names, target])
    attributes = {
        "functionName": "regression",
        "modelName": name,
        "algorithmName": "linear ranking",
    }
    model = SubElement(root, "RegressionModel", attributes)
    _add_schema(model, form, target)
    output = SubElement(model, "Output")
    typed = {"optype": "continuous", "dataType": "double"}
    SubElement(output, "OutputField", {"name": score, **typed, "feature": "predictedValue"})
    _add_table(model, form)
    ElementTree.indent(root)
    document = ElementTree.tostring(root, encoding="utf-8", xml_declaration=True) + b"\n"
    files = {"model.pmml": document}
    return Artefact("pmml", files, _instructions(form, score))


def _check(text: str, what: str) -> None:
    found = _REFUSED.search(text)
    if found or not text:
        reason = f"XML has no place for U+{ord(found[0]):04X}" if found else "it is empty"
        refuse("pmml", what, text, reason)


def _unused(name: str, taken: Container[str]) -> str:
    """The name, with as many underscores as it takes to differ from others."""
    while name in taken:
        name += "_"
    return name


def _add_dictionary(root: Element, names: Sequence[str]) -> None:
    dictionary = SubElement(root, "DataDictionary", numberOfFields=str(len(names)))
    for name in names:
        SubElement(dictionary, "DataField", name=name, optype="continuous", dataType="double")


def _add_schema(model: Element, form: LinearForm, target: str) -> None:
    schema = SubElement(model, "MiningSchema")
    values = zip(form.names, form.fill.tolist(), form.extra.tolist(), strict=True)
    for name, fill, extra in values:
        if form.missing == "error":
            missing = {"missingValueTreatment": "returnInvalid"}
        elif extra:
            missing = {}
        else:
            way = "asMean" if form.missing == "mean" else "asValue"
            missing = {"missingValueReplacement": repr(fill), "missingValueTreatment": way}
        SubElement(schema, "MiningField", {"name": name, "usageType": "active", **missing})
    SubElement(schema, "MiningField", name=target, usageType="target")


def _add_table(model: Element, form: LinearForm) -> None:
    """The weights; before them, where there are any, the fields derived for indicators."""
    names, fills = form.names, form.fill.tolist()
    weights, extras = form.weights.tolist(), form.extra.tolist()
    derived = None
    if any(extras):
        derived = SubElement(model, "LocalTransformations")
    table = SubElement(model, "RegressionTable", intercept="0.0")
    taken = set(names)
    for name, fill, weight, extra in zip(names, fills, weights, extras, strict=True):
        field = name
        if derived is not None and extra:
            gap = _unused(f"missing({name})", taken)
            _add_gap(derived, gap, name)
            _add_predictor(table, gap, extra)
            if weight:
                field = _unused(f"filled({name})", taken)
                _add_filled(derived, field, name, fill)
                taken.add(field)
            taken.add(gap)
        if weight:
            _add_predictor(table, field, weight)


def _add_predictor(table: Element, field: str, weight: float) -> None:
    SubElement(table, "NumericPredictor", name=field, coefficient=repr(weight))


def _derived(parent: Element, name: str) -> Element:
    return SubElement(parent, "DerivedField", name=name, optype="continuous", dataType="double")


def _add_filled(parent: Element, field: str, name: str, fill: float) -> None:
    """The field with its gaps filled."""
    SubElement(_derived(parent, field), "FieldRef", field=name, mapMissingTo=repr(fill))


def _add_gap(parent: Element, field: str, name: str) -> None:
    """1 where the field is missing, 0 elsewhere."""
    choice = SubElement(_derived(parent, field), "Apply", function="if")
    SubElement(SubElement(choice, "Apply", function="isMissing"), "FieldRef", field=name)
    for value in ("1.0", "0.0"):
        SubElement(choice, "Constant", dataType="double").text = value


def _instructions(form: LinearForm, score: str) -> str:
    if form.missing != "error":
        missing = "Missing fields are filled in as the model does."
    else:
        missing = "The model refuses missing values: a record that lacks a field has no score."
    return (
        f"model.pmml is a PMML 4.4 document with one RegressionModel of {len(form.names)} fields. "
        f"The output field {score} is what to sort by, higher is better. {missing} In Java, with "
        "JPMML-Evaluator:\n\n"
        "    Evaluator evaluator = new LoadingModelEvaluatorBuilder()\n"
        f'        .load(new File("model.pmml")).build();\n'
        f'    Object score = evaluator.evaluate(record).get("{score}");\n'
    )
