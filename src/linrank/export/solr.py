"""Apache Solr's learning-to-rank module: a LinearModel as JSON, and defaults of features.

Solr computes in float32 and knows no intercept. A feature without a value takes the
``defaultValue`` of its definition, 0 where it has none.
"""

from __future__ import annotations

from typing import Any

from linrank.export.artefact import Artefact
from linrank.export.curve_form import CurveForm
from linrank.export.elasticsearch import (
    Normalizers,
    about_inexpressible,
    check_steps,
    default_values,
    json_text,
    leaves,
)
from linrank.export.engine_names import check_feature_names, check_plain_name, listed
from linrank.export.linear_form import LinearForm, singles, text

NORMALIZERS = True
CURVES = True
_DEFAULT_STORE = "_DEFAULT_"
_PACKAGE = "org.apache.solr.ltr"
_ZOOKEEPER = 1_000_000  # bytes of a node, unless jute.maxbuffer says otherwise


def write(
    form: LinearForm,
    name: str,
    normalizers: str,
    *,
    store: str = _DEFAULT_STORE,
    collection: str = "COLLECTION",
    tolerance: Any = None,
    steps: Any = None,
) -> Artefact:
    """The body of ``PUT schema/model-store``, and defaults to add to the feature store.

    Parameters
    ----------
    form : LinearForm
        The model.
    name : str
        What the model is to be called.
    normalizers : {"folded", "engine"}
        Whether Solr scales the features.
    store : str
        The feature store that has the features.
    collection : str
        The collection that the instructions speak of.
    tolerance, steps : float or None, int or None
        Of curves, which are written as steps: how far these may be from a curve, or how many there
        may be in all (default: 1000).
    """
    check_feature_names("solr", form.names)
    check_plain_name("solr", "model", name)
    check_plain_name("solr", "feature store", store)
    check_plain_name("solr", "collection", collection)
    check_steps(form, tolerance, steps)
    weights, warnings = singles(form.weights), _about_log(form)
    features: list[dict[str, Any]] = [{"name": feature} for feature in form.names]
    if normalizers == "engine":
        scaled = Normalizers.of(form)
        weights, warnings = scaled.weights, [*scaled.warnings, *warnings]
        _add_normalizers(features, scaled)
    document = {
        "class": f"{_PACKAGE}.model.LinearModel",
        "name": name,
        "store": store,
        "features": features,
        "params": {"weights": dict(zip(form.names, weights, strict=True))},
    }
    if isinstance(form, CurveForm):
        found, told = form.steps(tolerance, steps)
        document["class"] = f"{_PACKAGE}.model.MultipleAdditiveTreesModel"
        document["params"] = {"trees": [_tree(*step) for step in found]}
        warnings += told
    files = {"model.json": json_text(document)}
    defaults, lost = default_values(form)
    warnings += [*about_inexpressible(form, lost), *_about_size(files["model.json"])]
    if defaults:
        files["features.json"] = json_text(_patch(defaults, store))
    instructions = _instructions(form, name, store, collection, bool(defaults))
    return Artefact("solr", files, instructions, tuple(warnings))


def _tree(feature: str, cut: float, rise: float) -> dict[str, Any]:
    """One split; Solr goes right where a value is above the threshold, by 1e-6 at least."""
    (threshold,) = singles([cut])
    below, above = (text(leaf) for leaf in leaves(rise))
    root = {"feature": feature, "threshold": text(threshold)}
    return {"weight": "1", "root": {**root, "left": {"value": below}, "right": {"value": above}}}


def _add_normalizers(features: list[dict[str, Any]], scaled: Normalizers) -> None:
    """Solr's setters take the numbers of a normalizer as texts."""
    kind, keys = (
        ("StandardNormalizer", ("avg", "std"))
        if scaled.kind == "standard"
        else ("MinMaxNormalizer", ("min", "max"))
    )
    for feature, low, high in zip(features, scaled.lows, scaled.highs, strict=True):
        params = dict(zip(keys, (text(low), text(high)), strict=True))
        feature["norm"] = {"class": f"{_PACKAGE}.norm.{kind}", "params": params}


def _patch(defaults: dict[str, float], store: str) -> list[dict[str, Any]]:
    """What the definitions of these features have to say of missing values."""
    return [
        {"store": store, "name": feature, "params": {"defaultValue": text(value)}}
        for feature, value in defaults.items()
    ]


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


def _about_log(form: LinearForm) -> list[str]:
    """The feature log is ``name=value,name=value``: such names make it ambiguous, no more."""
    return [
        f"the feature name {name!r} has a {'comma' if ',' in name else 'sign ='}, by which Solr's "
        "feature log separates features: training from that log will be hard"
        for name in form.names
        if "," in name or "=" in name
    ][:1]


def _instructions(
    form: LinearForm, name: str, store: str, collection: str, has_defaults: bool
) -> str:
    base = f"http://localhost:8983/solr/{collection}"
    told = (
        f"{form.what} of {len(form.names)} features for Apache Solr.\n\n"
        f"The feature store {store!r} must have features of these names, which give the values "
        f"that the model was trained on: {listed(form.names)}. Put the model beside them:\n\n"
        f"  curl -X PUT '{base}/schema/model-store' \\\n"
        "    -H 'Content-type:application/json' --data-binary @model.json\n\n"
        "To replace a model of this name, first remove it: curl -X DELETE "
        f"'{base}/schema/model-store/{name}'. Reload the collection. Use the model to rerank the "
        "best documents of a query; efi.* gives what the features ask for:\n\n"
        f"  curl -G '{base}/query' --data-urlencode 'q=KEYWORDS' \\\n"
        f"    --data-urlencode 'rq={{!ltr model={name} reRankDocs=100 efi.text=KEYWORDS}}' \\\n"
        "    --data-urlencode 'fl=id,score'\n\n"
        "Scores may be negative. Those of documents beyond reRankDocs are of the first query and "
        "not comparable.\n"
    )
    if has_defaults:
        told += (
            "\nSolr takes 0 for a feature without a value; the model was trained with other "
            "values. features.json has them as a patch: add each defaultValue to the params of "
            "the feature of that name before you send your features to "
            f"{base}/schema/feature-store (a feature that is there cannot be changed: delete "
            f"{base}/schema/feature-store/{store} first).\n"
        )
    return told
