"""Search engines on Lucene: Elasticsearch and OpenSearch with their plugin, and Solr.

Both compute in float32, know no intercept, keep features apart by name and take 0 for a feature
without a value, unless they are told of another one.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from linrank.data import first_true
from linrank.export.artefact import Artefact, fill_text
from linrank.export.form import Form, singles, text
from linrank.export.names import check_feature_names, check_plain_name, join_names
from linrank.export.steps import steps_of


def _default_values(form: Form) -> tuple[dict[str, float], list[str]]:
    """The value that a missing feature must take, where it is not 0, and a warning of others.

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
    lost = [form.names[j] for j in np.flatnonzero(~np.isfinite(values))]
    if not lost:
        return found, []
    more = f" (and {len(lost) - 1} more)" if len(lost) > 1 else ""
    return found, [
        f"the feature {lost[0]!r}{more} has next to no weight but an effect when it is missing, "
        f"which no value in {form.target} can have: rows without it are ordered differently"
    ]


def _as_json(document: Any) -> bytes:
    """A document for people and programs."""
    return (json.dumps(document, ensure_ascii=False, allow_nan=False, indent=2) + "\n").encode()


def _leaves(rise: float) -> list[float]:
    """What a step adds below and above, in float32: never less than 0, as Lucene wants scores."""
    return singles([max(0.0, -rise), max(0.0, rise)])


# ---- Elasticsearch and OpenSearch ----------------------------------------------------------------

# The plugin keeps a feature as a document with the id feature-NAME; ids have at most 512 bytes.
_MOST_BYTES = 512 - len("feature-")


def write_plugin(
    form: Form,
    name: str,
    *,
    featureset: str | None = None,
    tolerance: Any = None,
    steps: Any = None,
) -> Artefact:
    """The body of ``POST _ltr/_featureset/FEATURESET/_createmodel``, and defaults of features.

    Parameters
    ----------
    form : Form
        The model.
    name : str
        What the model is to be called.
    featureset : str or None
        The feature set that the model belongs to; that of the model's name by default.
    tolerance, steps : float or None, int or None
        Of curves, which are written as steps: how far these may be from a curve, or how many there
        may be in all (default: 1000).
    """
    trees, warnings = steps_of(form, tolerance, steps)
    target, featureset = form.target, name if featureset is None else featureset
    check_feature_names(target, form.names, most_bytes=_MOST_BYTES)
    check_plain_name(target, "model", name)
    check_plain_name(target, "feature set", featureset)
    kind = "model/linear"
    definition: Any = dict(zip(form.names, singles(form.weights), strict=True))
    if trees is not None:
        kind, definition = "model/xgboost+json", [_plugin_tree(*step) for step in trees]
    # The plugin wants the weights as a text that holds JSON, not as an object.
    definition = json.dumps(definition, ensure_ascii=False, allow_nan=False)
    model = {"type": kind, "definition": definition}
    files = {"model.json": _as_json({"model": {"name": name, "model": model}})}
    defaults, told = _default_values(form)
    warnings += [*_about_signs(form), *told]
    if defaults:
        files["defaults.json"] = _as_json(defaults)
        warnings.append(
            f"the model fills in missing values (missing={form.missing!r}) where {target} takes 0: "
            f"the queries of {len(defaults)} of the features need the values that come with it"
        )
    instructions = _plugin_instructions(form, name, featureset, bool(defaults))
    return Artefact(target, files, instructions, tuple(warnings))


def _plugin_tree(feature: str, cut: float, rise: float) -> dict[str, Any]:
    """One split, as XGBoost dumps it: "yes" is where a value is below the condition."""
    (condition,) = singles([np.nextafter(np.float32(cut), np.float32(np.inf))])
    below, above = _leaves(rise)
    children = [{"nodeid": 1, "leaf": below}, {"nodeid": 2, "leaf": above}]
    split = {"nodeid": 0, "depth": 0, "split": feature, "split_condition": condition}
    return {**split, "yes": 1, "no": 2, "missing": 1, "children": children}


def _about_signs(form: Form) -> list[str]:
    told = []
    if (j := first_true(form.weights < 0.0)) is not None:
        told.append(
            f"scores can be negative, as the weight of {form.names[j]!r} is, and Lucene "
            "forbids that in a main query: use the model in a rescore, or train with positive=True"
        )
    known = form.statistics
    if known is not None and (j := first_true(known.low < 0.0)) is not None:
        told.append(
            f"the feature {form.names[j]!r} was as low as {known.low[j]:g} in training, "
            "and Lucene allows no negative score of a feature's query: add a constant there, which "
            "changes no order"
        )
    return told


def _plugin_instructions(form: Form, name: str, featureset: str, has_defaults: bool) -> str:
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
    return fill_text(
        "plugin",
        *(["text", "defaults"] if has_defaults else ["text"]),
        summary=form.summary,
        target=form.target,
        quoted=repr(featureset),
        featureset=featureset,
        names=join_names(form.names),
        model=name,
        query=json.dumps(query, ensure_ascii=False),
    )


# ---- Solr ----------------------------------------------------------------------------------------

_DEFAULT_STORE = "_DEFAULT_"
_PACKAGE = "org.apache.solr.ltr"
_ZOOKEEPER = 1_000_000  # bytes of a node, unless jute.maxbuffer says otherwise


def write_solr(
    form: Form,
    name: str,
    *,
    store: str = _DEFAULT_STORE,
    collection: str = "COLLECTION",
    tolerance: Any = None,
    steps: Any = None,
) -> Artefact:
    """The body of ``PUT schema/model-store``, and defaults to add to the feature store.

    Parameters
    ----------
    form : Form
        The model.
    name : str
        What the model is to be called.
    store : str
        The feature store that has the features.
    collection : str
        The collection that the instructions speak of.
    tolerance, steps : float or None, int or None
        As in `write_plugin`.
    """
    check_feature_names("solr", form.names)
    check_plain_name("solr", "model", name)
    check_plain_name("solr", "feature store", store)
    check_plain_name("solr", "collection", collection)
    trees, warnings = steps_of(form, tolerance, steps)
    kind = "LinearModel"
    params: Any = {"weights": dict(zip(form.names, singles(form.weights), strict=True))}
    if trees is not None:
        kind, params = "MultipleAdditiveTreesModel", {"trees": [_solr_tree(*s) for s in trees]}
    document = {
        "class": f"{_PACKAGE}.model.{kind}",
        "name": name,
        "store": store,
        "features": [{"name": feature} for feature in form.names],
        "params": params,
    }
    files = {"model.json": _as_json(document)}
    defaults, told = _default_values(form)
    warnings += [*_about_log(form), *told, *_about_size(files["model.json"])]
    if defaults:
        files["features.json"] = _as_json(
            [
                {"store": store, "name": feature, "params": {"defaultValue": text(value)}}
                for feature, value in defaults.items()
            ]
        )
    instructions = fill_text(
        "solr",
        *(["text", "defaults"] if defaults else ["text"]),
        summary=form.summary,
        base=f"http://localhost:8983/solr/{collection}",
        quoted=repr(store),
        store=store,
        names=join_names(form.names),
        model=name,
    )
    return Artefact("solr", files, instructions, tuple(warnings))


def _solr_tree(feature: str, cut: float, rise: float) -> dict[str, Any]:
    """One split; Solr goes right where a value is above the threshold, by 1e-6 at least."""
    (threshold,) = singles([cut])
    below, above = (text(leaf) for leaf in _leaves(rise))
    root = {"feature": feature, "threshold": text(threshold)}
    return {"weight": "1", "root": {**root, "left": {"value": below}, "right": {"value": above}}}


def _about_size(model: bytes) -> list[str]:
    """A model that SolrCloud takes without a complaint and does not keep."""
    if len(model) <= _ZOOKEEPER:
        return []
    return [
        f"model.json has {len(model) / 1e6:.1f} MB, and SolrCloud keeps models in ZooKeeper, which "
        "takes 1 MB: put the file on the nodes and send a model of the class "
        f"{_PACKAGE}.model.DefaultWrapperModel that names it as its resource, or train with fewer "
        "features"
    ]


def _about_log(form: Form) -> list[str]:
    """The feature log is ``name=value,name=value``: such names make it ambiguous, no more."""
    return [
        f"the feature name {name!r} has a {'comma' if ',' in name else 'sign ='}, by which Solr's "
        "feature log separates features: training from that log will be hard"
        for name in form.names
        if "," in name or "=" in name
    ][:1]
