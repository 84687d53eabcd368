"""Small twins of the engines that models are exported to: their parsers and their scorers.

Written from the documentation of the engines, blind to the exporters, and strict: what an engine
would refuse, or read as something else than was meant, is refused here. Each twin reads what its
engine reads and returns a function from columns of feature values, by name, to scores; NaN is a
feature that gives no value for a document.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

Columns = Mapping[str, np.ndarray]
Scorer = Callable[[Columns], np.ndarray]


class Refused(Exception):
    """The engine does not take the artefact, or not with the meaning that it should have."""


def require(condition: object, complaint: str) -> None:
    if not condition:
        raise Refused(complaint)


def strict_json(text: str | bytes) -> Any:
    """JSON of RFC 8259: no NaN, no Infinity, and no key twice, which parsers settle differently."""

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        keys = [key for key, _ in pairs]
        require(len(set(keys)) == len(keys), f"duplicate keys among {keys[:20]}")
        return dict(pairs)

    def no_constant(name: str) -> None:
        raise Refused(f"{name} is no JSON number")

    try:
        return json.loads(text, object_pairs_hook=unique, parse_constant=no_constant)
    except (ValueError, UnicodeDecodeError) as problem:
        raise Refused(f"not JSON: {problem}") from None


def known_keys(mapping: Any, keys: Iterable[str], what: str) -> dict[str, Any]:
    require(isinstance(mapping, dict), f"{what} is no object: {mapping!r}")
    unknown = set(mapping) - set(keys)
    require(not unknown, f"{what} has unknown fields {sorted(unknown)}")
    return mapping


def single(value: Any, what: str) -> np.float32:
    """A JSON number as Java's float: true is no number, and what overflows would rank nothing."""
    require(type(value) in (int, float), f"{what} is {value!r}, not a number")
    with np.errstate(over="ignore"):
        result = np.float32(value)
    require(np.isfinite(result), f"{what} is {value!r}, infinite in single precision")
    return result


def parse_float(text: Any) -> np.float32:
    """Java's ``Float.parseFloat``; NaN and what is infinite would make scores that rank nothing."""
    require(isinstance(text, str), f"{text!r} is no string")
    try:
        return single(float(text.strip().rstrip("fFdD")), text)
    except ValueError:
        raise Refused(f"NumberFormatException: {text!r}") from None


def column(columns: Columns, name: str) -> np.ndarray:
    require(name in columns, f"there is no feature {name!r}")
    return columns[name]


def summed(columns: Columns, terms: Iterable[np.ndarray], dtype: Any = np.float32) -> np.ndarray:
    """Terms added from left to right, each sum rounded to a precision."""
    total = np.zeros(len(next(iter(columns.values()))), dtype)
    for term in terms:
        total += term
    return total


def plugin(body: bytes | str, feature_set: Sequence[str]) -> Scorer:
    """``POST _ltr/_featureset/<feature_set>/_createmodel`` of Elasticsearch and OpenSearch.

    The body holds ``model.name`` and ``model.model``, which has a ``type`` and a ``definition``
    (JSON in a string, or an object); unknown fields are errors, and so would be normalizers, which
    linrank does not write. ``model/linear`` maps features of the set to JSON numbers; all others
    have the weight 0. ``model/xgboost+json`` lists trees, whose rows go to the child "yes" below
    the condition. Vectors are dense and start as zeros, so a feature without a value is 0.
    Everything is a Java float.
    """
    outer = known_keys(strict_json(body), ("model", "validation"), "the request").get("model")
    name = known_keys(outer, ("name", "model"), "model").get("name")
    require(isinstance(name, str) and name, f"the name of the model is {name!r}")
    model = known_keys(outer.get("model"), ("type", "definition"), "model.model")
    require(len(set(feature_set)) == len(feature_set), "a feature set has each feature once")
    definition = model.get("definition")
    definition = strict_json(definition) if isinstance(definition, str) else definition

    def values(columns: Columns, feature: str) -> np.ndarray:
        return np.nan_to_num(column(columns, feature).astype(np.float32), nan=0.0)

    if model.get("type") == "model/xgboost+json":
        trees = [_plugin_tree(tree, feature_set) for tree in definition]
        return lambda columns: summed(
            columns, (np.where(values(columns, f) < cut, *ends) for f, cut, ends in trees)
        )
    require(model.get("type") == "model/linear", f"unknown type {model.get('type')!r}")
    require(isinstance(definition, dict), "Expected start object")
    unknown = [feature for feature in definition if feature not in feature_set]
    require(not unknown, f"Feature {unknown} is unknown.")
    weights = {f: single(weight, f"the weight of {f}") for f, weight in definition.items()}
    return lambda columns: summed(columns, (w * values(columns, f) for f, w in weights.items()))


def _plugin_tree(tree: Any, feature_set: Sequence[str]) -> tuple[str, np.float32, Any]:
    """One split: the feature, the condition, and the leaves below and above it."""
    keys = ("nodeid", "depth", "split", "split_condition", "yes", "no", "missing", "children")
    below, above = known_keys(tree, keys, "a tree")["children"]
    require((tree["yes"], tree["no"]) == (below["nodeid"], above["nodeid"]), "the children")
    require(tree["split"] in feature_set, f"Feature [{tree['split']}] is unknown.")
    leaves = [single(leaf["leaf"], "a leaf") for leaf in (below, above)]
    require(min(leaves) == 0.0, "Lucene takes no negative score")
    return tree["split"], single(tree["split_condition"], "a condition"), leaves


_SOLR = "org.apache.solr.ltr."


def solr(features: bytes | str, model: bytes | str) -> Scorer:
    """``PUT schema/feature-store`` and ``PUT schema/model-store`` of Solr.

    Features need a name and a class; ``defaultValue`` of a feature (a number or a string) stands in
    where it has no value, and is 0 otherwise. A model lists features of its store, each once. A
    linear one has a weight for every one of them; trees go left up to the threshold and a slack of
    1e-6. Everything is a Java float.
    """
    stores: dict[str, dict[str, np.float32]] = {}
    for entry in strict_json(features):
        known_keys(entry, ("name", "class", "store", "params"), "a feature")
        name, kind = entry.get("name"), entry.get("class")
        require(isinstance(name, str) and name, f"the name of a feature is {name!r}")
        require(isinstance(kind, str) and "." in kind, f"the class of {name} is {kind!r}")
        store = stores.setdefault(entry.get("store", "_DEFAULT_"), {})
        require(name not in store, f"{name} already contained in the store")
        value = (entry.get("params") or {}).get("defaultValue", 0)
        store[name] = parse_float(value) if isinstance(value, str) else single(value, name)
    entry = known_keys(strict_json(model), ("class", "name", "store", "features", "params"), "it")
    require(isinstance(entry.get("name"), str) and entry["name"], "the name of the model")
    store = stores.get(entry.get("store", "_DEFAULT_"), {})
    require(store, f"Missing or empty feature store: {entry.get('store')}")
    require(isinstance(entry["features"], list) and entry["features"], "no features declared")
    listed = [
        known_keys(f, ("name",), "a feature of the model").get("name") for f in entry["features"]
    ]
    for name in listed:
        require(name in store, f"Feature: {name} not found in store")
        require(listed.count(name) == 1, f"duplicated feature {name}")

    def values(columns: Columns, name: str) -> np.ndarray:
        found = column(columns, name).astype(np.float32)
        return np.where(np.isnan(found), store[name], found)

    if entry["class"] == f"{_SOLR}model.MultipleAdditiveTreesModel":
        trees = [_solr_tree(tree, listed) for tree in entry["params"]["trees"]]
        return lambda columns: summed(
            columns, (np.where(values(columns, f) <= cut, *ends) for f, cut, ends in trees)
        )
    require(entry["class"] == f"{_SOLR}model.LinearModel", f"unknown class {entry['class']!r}")
    weights = known_keys(entry.get("params"), ("weights",), "params").get("weights")
    require(weights, "the model doesn't contain any weights")
    require(set(weights) >= set(listed), "the model lacks weight(s)")
    require(set(weights) <= set(listed), "weights of features that are not listed are ignored")
    held = {name: single(weights[name], f"the weight of {name}") for name in listed}
    return lambda columns: summed(columns, (w * values(columns, name) for name, w in held.items()))


def _solr_tree(tree: Any, listed: Sequence[str]) -> tuple[str, np.float32, Any]:
    root = known_keys(tree, ("weight", "root"), "a tree")["root"]
    require(root["feature"] in listed, f"Feature: {root['feature']} not found")
    ends = [
        parse_float(tree["weight"]) * parse_float(root[side]["value"]) for side in ("left", "right")
    ]
    return root["feature"], parse_float(root["threshold"]) + np.float32(1e-6), ends


_NAME = r"[A-Za-z_][A-Za-z0-9_-]*"
_PROFILE = re.compile(
    rf"rank-profile\s+({_NAME})\s+inherits\s+({_NAME}(?:\s*,\s*{_NAME})*)\s*\{{"
    r"\s*((?:first|second)-phase)\s*\{\s*expression\s*\{([^{}]*)\}\s*\}\s*\}\s*"
)
_NUMBER = r"[0-9]+(?:\.[0-9]+)?(?:e[+-]?[0-9]+)?"
_EXPRESSION = re.compile(rf"(?:\s|{_NUMBER}|[-+*(),>]|columns\[[0-9]+\]|where\(|isnan\()*")


def vespa(text: str) -> Scorer:
    """A rank profile of Vespa, the one of a text that is to be put inside of a schema.

    ``rank-profile name inherits others { phase { expression { ... } } }``; the name may have
    dashes, but starts with a letter or ``_``. An expression is made of rank features, numbers,
    signs of arithmetic, ``if (condition, then, else)`` and ``isNan(x)``, all in double precision.
    """
    found = _PROFILE.fullmatch(text)
    require(found, f"Vespa reads a rank profile here, not {text!r}")

    def score(columns: Columns) -> np.ndarray:
        expression, names = found[4], list(columns)
        for name in sorted(names, key=len, reverse=True):
            place = f"columns[{names.index(name)}]"
            expression = re.sub(rf"(?<![\w.@$]){re.escape(name)}(?![\w.@$(])", place, expression)
        expression = expression.replace("if (", "where(").replace("isNan(", "isnan(")
        require(_EXPRESSION.fullmatch(expression), f"Vespa cannot read {expression!r}")
        known = {"columns": [np.asarray(c, np.float64) for c in columns.values()]}
        known |= {"where": np.where, "isnan": np.isnan, "__builtins__": {}}
        return summed(columns, [eval(" ".join(expression.split()), known)], np.float64)

    return score


_JAVA_DOUBLE = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


def ranklib(text: str) -> Scorer:
    """RankLib's Coordinate Ascent model; the columns are the features of the data, from 1.

    The first line names the ranker after ``##``; lines that start with ``##`` are skipped; the
    first other line is the model, ``id:weight`` apart by spaces, and whatever follows is not read.
    Values are Java floats, weights and sums doubles. An unknown value counts as 0; an id beyond
    those of the data is an error.
    """
    lines = text.split("\n")
    require(lines[0].replace("## ", "").strip().upper() == "COORDINATE ASCENT", lines[0])
    content = [line.strip() for line in lines if line.strip() and not line.startswith("##")]
    require(len(content) == 1, "only the first line of weights is read")
    require("#" not in content[0], "the end of the line is cut at #")
    pairs = [item.split(":") for item in content[0].split(" ") if item]
    require(all(len(pair) == 2 for pair in pairs), "an item is id:weight")
    for number, weight in pairs:
        require(re.fullmatch(r"[0-9]+", number) and int(number) >= 1, f"the id {number!r}")
        require(_JAVA_DOUBLE.fullmatch(weight), f"NumberFormatException: {weight!r}")
    weights = {int(number): float(weight) for number, weight in pairs}
    require(len(weights) == len(pairs), "an id that comes twice counts twice")
    require(np.isfinite(list(weights.values())).all(), "an infinite weight")

    def score(columns: Columns) -> np.ndarray:
        require(max(weights) <= len(columns), "requesting unspecified feature")
        values = [np.nan_to_num(c.astype(np.float32), nan=0.0) for c in columns.values()]
        return summed(columns, (w * np.float64(values[k - 1]) for k, w in weights.items()), float)

    return score


def liblinear(text: str) -> Scorer:
    """LIBLINEAR's model file, of a regression model: ``load_model`` and ``predict_values``.

    Words apart by white space; ``solver_type``, ``nr_class``, ``nr_feature`` and ``bias`` in any
    order; ``w`` ends the header, and as many doubles follow as there are features. Rows are sparse:
    what is not there is 0.
    """
    words = text.split()
    require("w" in words, "fscanf failed to read the model")
    end = words.index("w")
    header = dict(zip(words[:end:2], words[1:end:2], strict=True))
    require(2 * len(header) == end, "a key comes twice")
    require(header.keys() == {"solver_type", "nr_class", "nr_feature", "bias"}, "unknown text")
    require(header["solver_type"].endswith("_SVR"), "a classifier predicts a class")
    require((header["nr_class"], header["bias"]) == ("2", "-1"), "one vector without a bias")
    weights = np.array(words[end + 1 :], dtype=np.float64)
    require(len(weights) == int(header["nr_feature"]), f"{len(weights)} weights")
    require(np.isfinite(weights).all(), "an infinite weight")

    def score(columns: Columns) -> np.ndarray:
        values = [np.nan_to_num(np.float64(c), nan=0.0) for c in columns.values()]
        return summed(columns, (w * c for w, c in zip(weights, values, strict=False)), float)

    return score


_JSON = ("format", "version", "name", "linrank", "factor", "missing", "scaling", "features")


def plain_json(content: bytes) -> Scorer:
    """Weights or curves as plain JSON: what the guide says of the format.

    The score is the sum over the features that the row has of ``weight`` times the value, or of the
    curve, and of ``missing`` over those that it lacks; where ``missing`` is null there is none.
    """
    document = known_keys(strict_json(content), (*_JSON, "interactions"), "the document")
    kind = document["format"].removeprefix("linrank-")
    require(kind in ("weights", "curves") and document["version"] == 1, "the format")
    require(document["factor"] > 0, "a factor that keeps the order")
    features, own = document["features"], ("weight",)
    if kind == "curves":
        own = ("knots", "values", "slopes")
    for entry in features:
        require(entry.keys() == {"name", "column", "missing", *own}, "a feature")
        numbers = np.hstack([entry[key] for key in own] + [entry["missing"] or 0.0])
        require(np.isfinite(numbers).all(), "finite numbers")
    require(len({entry["name"] for entry in features}) == len(features), "a name comes twice")

    def curve(f: Any, x: np.ndarray) -> np.ndarray:
        p = np.searchsorted(f["knots"], x)
        knots = np.array(f["knots"] or [0.0])
        return np.array(f["values"])[p] + np.array(f["slopes"])[p] * (
            x - knots[np.maximum(p - 1, 0)]
        )

    def terms(columns: Columns) -> Iterable[np.ndarray]:
        for f in features:
            x = column(columns, f["name"]).astype(np.float64)
            known = f["weight"] * x if kind == "weights" else curve(f, x)
            yield np.where(np.isnan(x), np.nan if f["missing"] is None else f["missing"], known)
        if "interactions" in document:
            term, values = document["interactions"], list(columns.values())
            q = np.stack([curve(f, values[f["column"]]) for f in term["quantiles"]], axis=1)
            away = ((q[:, None] - np.array(term["landmarks"])) ** 2).sum(axis=2)
            yield np.exp(-term["gamma"] * away) @ term["coef"]

    return lambda columns: summed(columns, terms(columns), np.float64)
