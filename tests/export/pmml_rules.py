"""The rules of the PMML 4.4 schema for the elements that a regression takes, and how it scores.

Written from the XSD of the Data Mining Group: for each element its attributes, those in `needed`
being required, and its children in the order of the sequence, with how many there may be.
"""

import re
from dataclasses import dataclass, field

import numpy as np

SPACE = "{http://www.dmg.org/PMML-4_4}"
MANY = 10**9


def number(text):
    return re.fullmatch(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?", text) is not None


def count(text):
    return re.fullmatch(r"\d+", text) is not None


def anything(text):
    return True


def one_of(*values):
    return lambda text: text in values


OPTYPE = one_of("categorical", "ordinal", "continuous")
DATATYPE = one_of("string", "integer", "float", "double", "boolean")
FUNCTION = one_of("regression", "classification")


@dataclass(frozen=True)
class Rule:
    needed: dict = field(default_factory=dict)
    optional: dict = field(default_factory=dict)
    children: tuple = ()  # (names, fewest, most), in order
    text: bool = False


EXPRESSION = ("Constant", "FieldRef", "Apply")
RULES = {
    "PMML": Rule(
        {"version": one_of("4.4")},
        children=(
            (("Header",), 1, 1),
            (("DataDictionary",), 1, 1),
            (("TransformationDictionary",), 0, 1),
            (("RegressionModel",), 0, MANY),
        ),
    ),
    "Header": Rule(
        optional={"copyright": anything, "description": anything, "modelVersion": anything},
        children=(
            (("Application",), 0, 1),
            (("Annotation",), 0, MANY),
            (("Timestamp",), 0, 1),
        ),
    ),
    "Application": Rule({"name": anything}, {"version": anything}),
    "DataDictionary": Rule(
        optional={"numberOfFields": count}, children=((("DataField",), 1, MANY),)
    ),
    "DataField": Rule(
        {"name": anything, "optype": OPTYPE, "dataType": DATATYPE}, {"displayName": anything}
    ),
    "RegressionModel": Rule(
        {"functionName": FUNCTION},
        {
            "modelName": anything,
            "algorithmName": anything,
            "targetFieldName": anything,
            "normalizationMethod": one_of("none", "simplemax", "softmax", "logit", "exp"),
        },
        (
            (("MiningSchema",), 1, 1),
            (("Output",), 0, 1),
            (("ModelStats",), 0, 1),
            (("ModelExplanation",), 0, 1),
            (("Targets",), 0, 1),
            (("LocalTransformations",), 0, 1),
            (("RegressionTable",), 1, MANY),
            (("ModelVerification",), 0, 1),
        ),
    ),
    "MiningSchema": Rule(children=((("MiningField",), 1, MANY),)),
    "MiningField": Rule(
        {"name": anything},
        {
            "usageType": one_of("active", "target", "predicted", "supplementary", "group"),
            "missingValueReplacement": anything,
            "missingValueTreatment": one_of(
                "asIs", "asMean", "asMode", "asMedian", "asValue", "returnInvalid"
            ),
        },
    ),
    "Output": Rule(children=((("OutputField",), 1, MANY),)),
    "OutputField": Rule(
        {"name": anything, "dataType": DATATYPE},  # the data type is required since 4.3
        {"optype": OPTYPE, "feature": one_of("predictedValue", "transformedValue")},
    ),
    "LocalTransformations": Rule(children=((("DerivedField",), 0, MANY),)),
    "DerivedField": Rule(
        {"optype": OPTYPE, "dataType": DATATYPE},
        {"name": anything, "displayName": anything},
        ((EXPRESSION, 1, 1),),
    ),
    "FieldRef": Rule({"field": anything}, {"mapMissingTo": anything}),
    "Constant": Rule(optional={"dataType": DATATYPE}, text=True),
    "Apply": Rule(
        {"function": one_of("if", "isMissing")},
        {"mapMissingTo": anything, "defaultValue": anything},
        ((EXPRESSION, 0, MANY),),
    ),
    "RegressionTable": Rule(
        {"intercept": number},
        {"targetCategory": anything},
        (
            (("NumericPredictor",), 0, MANY),
            (("CategoricalPredictor",), 0, MANY),
            (("PredictorTerm",), 0, MANY),
        ),
    ),
    "NumericPredictor": Rule({"name": anything, "coefficient": number}, {"exponent": count}),
}


def violations(element, path=""):
    """What an element has against the rules, as sentences."""
    name = element.tag.removeprefix(SPACE)
    path = f"{path}/{name}"
    if not element.tag.startswith(SPACE) or name not in RULES:
        return [f"{path}: unknown element"]
    rule = RULES[name]
    found = [f"{path}: lacks {key}" for key in rule.needed if key not in element.attrib]
    known = rule.needed | rule.optional
    for key, value in element.attrib.items():
        if key not in known:
            found.append(f"{path}: unknown attribute {key}")
        elif not known[key](value):
            found.append(f"{path}: {key}={value!r}")
    if (element.text or "").strip() and not rule.text:
        found.append(f"{path}: text {element.text!r}")
    found += _sequence(element, rule, path)
    return found + [v for child in element for v in violations(child, path)]


def _sequence(element, rule, path):
    """Children in the order of the sequence, none too few or too many."""
    left = [child.tag.removeprefix(SPACE) for child in element]
    found = []
    for names, fewest, most in rule.children:
        n = 0
        while left and left[0] in names and n < most:
            left.pop(0)
            n += 1
        if n < fewest:
            found.append(f"{path}: {n} of {names}, at least {fewest}")
    return found + ([f"{path}: {left[0]} out of order"] if left else [])


def scope_violations(root):
    """Names that are not defined, or twice: rules of the specification beside the schema's."""
    fields = [e.get("name") for e in root.iter(f"{SPACE}DataField")]
    mined = [e.get("name") for e in root.iter(f"{SPACE}MiningField")]
    derived = [e.get("name") for e in root.iter(f"{SPACE}DerivedField")]
    output = [e.get("name") for e in root.iter(f"{SPACE}OutputField")]
    used = [e.get("field") for e in root.iter(f"{SPACE}FieldRef")]
    used += [e.get("name") for e in root.iter(f"{SPACE}NumericPredictor")]
    found = [f"{n} is not in the dictionary" for n in mined if n not in fields]
    found += [f"{n} is used and not known" for n in used if n not in mined + derived]
    every = fields + derived + output
    found += [f"{n} is defined twice" for n in set(every) if every.count(n) > 1]
    (dictionary,) = root.iter(f"{SPACE}DataDictionary")
    if int(dictionary.get("numberOfFields")) != len(fields):
        found.append("numberOfFields is wrong")
    return found


def score(root, columns):
    """Scores of records, given as a column for each field; NaN is missing, and so is a result."""
    known = {}
    valid = True
    for mined in root.iter(f"{SPACE}MiningField"):
        if mined.get("usageType") == "target":
            continue
        x = columns[mined.get("name")]
        if mined.get("missingValueTreatment") == "returnInvalid":
            valid = valid & ~np.isnan(x)
        replacement = mined.get("missingValueReplacement")
        known[mined.get("name")] = (
            x if replacement is None else np.where(np.isnan(x), float(replacement), x)
        )
    for derived in root.iter(f"{SPACE}DerivedField"):
        known[derived.get("name")] = _value(derived[0], known)
    (table,) = root.iter(f"{SPACE}RegressionTable")
    total = float(table.get("intercept"))
    for predictor in table:
        total = total + float(predictor.get("coefficient")) * known[predictor.get("name")]
    return np.where(valid, total, np.nan)


def _value(expression, known):
    tag = expression.tag.removeprefix(SPACE)
    if tag == "Constant":
        return float(expression.text)
    if tag == "FieldRef":
        x, replacement = known[expression.get("field")], expression.get("mapMissingTo")
        return x if replacement is None else np.where(np.isnan(x), float(replacement), x)
    arguments = [_value(argument, known) for argument in expression]
    if expression.get("function") == "isMissing":
        return np.isnan(arguments[0])
    return np.where(*arguments)  # if
