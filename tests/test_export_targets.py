"""What each engine gets: contents, names that it refuses, warnings, scores read back."""

from __future__ import annotations

import json
import re
import warnings
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

from export_cases import statistics
from linrank import ExportWarning, LinearModel
from linrank.data.missing import Missing
from linrank.data.scaling import Scaling
from linrank.export.targets import TARGETS, export, options_of, target_name

NAMES = ["bm25", "age", "clicks"]
MODEL = LinearModel([0.5, 0.25, 2.0], NAMES)
NEGATIVE = LinearModel([0.5, -0.25, 0.0], NAMES)
MEAN = LinearModel([0.5, 0.25, 2.0], NAMES, missing=Missing("mean", np.array([2.0, 0.0, 0.1])))
INDICATOR = LinearModel(
    [0.5, 0.0, 2.0], NAMES, missing=Missing("indicator", weights=np.array([1.0, 0.5, 0.0]))
)
SCALED = LinearModel(
    [0.5, 0.25, 2.0],
    NAMES,
    Scaling("standard", np.array([2.0, 0.1, 4.0])),
    statistics=statistics([0, 0, 0], [1, 10, 0.5]),
)


def quiet(model, target, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ExportWarning)
        return model.export(target, **options)


# ---- all targets --------------------------------------------------------------------------------


@pytest.mark.parametrize("target", ["elasticsearch", "opensearch", "solr", "vespa"])
def test_no_warning_where_all_is_said(target):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        artefact = MODEL.export(target)
    assert artefact.target == target
    assert artefact.warnings == ()
    assert "bm25" in artefact.instructions


@pytest.mark.parametrize("target", TARGETS)
def test_every_target_says_what_scaling_by_query_means(target):
    with pytest.warns(ExportWarning, match="scale='query'"):
        artefact = LinearModel([1.0], ["a"], Scaling("query")).export(target)
    assert any("scale='query'" in text for text in artefact.warnings)


def test_aliases_and_capitals():
    assert target_name("ES") == "elasticsearch"
    assert target_name("os") == "opensearch"
    assert target_name("Solr") == "solr"


@pytest.mark.parametrize(
    ("given", "near"),
    [("elastic", "elasticsearch"), ("solar", "solr"), ("lib-linear", "liblinear"), ("x" * 9, None)],
)
def test_an_unknown_target_is_answered_with_the_nearest(given, near):
    with pytest.raises(ValueError, match=f"unknown export target '{given}'") as caught:
        MODEL.export(given)
    assert (f"did you mean {near!r}?" in str(caught.value)) == (near is not None)
    assert "vespa" in str(caught.value)


def test_an_unknown_option_is_answered_with_those_there_are():
    assert options_of("solr") == ("store", "collection", "tolerance", "steps")
    with pytest.raises(TypeError, match="solr has no option 'shop'; it has store, collection"):
        MODEL.export("solr", shop="a")
    with pytest.raises(TypeError, match="ranklib has no option 'a'; it has none"):
        MODEL.export("ranklib", a=1)


@pytest.mark.parametrize("name", ["", " ", None, 3])
def test_a_model_needs_a_name(name):
    with pytest.raises(ValueError, match="name must be a text"):
        MODEL.export("solr", name=name)


@pytest.mark.parametrize("target", TARGETS)
def test_all_zeros_are_refused(target):
    with pytest.raises(ValueError, match="all weights of the model are 0"):
        LinearModel([0.0, 0.0], ["a", "b"]).export(target)


def test_what_is_no_linear_model_is_refused():
    from linrank import KernelModel
    from linrank.kernels.functions import Kernel

    model = KernelModel([[0.0], [1.0]], [-1.0, 2.0], Kernel("rbf", gamma=0.5))
    with pytest.raises(TypeError, match="export a LinearModel"):
        model.export("solr")
    with pytest.raises(TypeError, match="a model with the kernel 'rbf'"):
        export(model, "solr")


@pytest.mark.parametrize("target", TARGETS)
def test_the_same_model_gives_the_same_bytes(target):
    first, second = quiet(MEAN, target), quiet(MEAN, target)
    assert first.files == second.files


# ---- Elasticsearch and OpenSearch ---------------------------------------------------------------


@pytest.mark.parametrize("target", ["elasticsearch", "opensearch"])
def test_the_definition_is_a_text_that_holds_json(target):
    artefact = MODEL.export(target, name="mine", featureset="set")
    body = json.loads(artefact.text)
    assert list(body) == ["model"]
    assert body["model"]["name"] == "mine"
    assert body["model"]["model"]["type"] == "model/linear"
    definition = body["model"]["model"]["definition"]
    assert isinstance(definition, str)
    assert json.loads(definition) == {"bm25": 0.5, "age": 0.25, "clicks": 2.0}
    assert "feature_normalizers" not in body["model"]["model"]
    assert (
        "_ltr/_featureset/set/_createmodel" in MODEL.export(target, featureset="set").instructions
    )


def test_weights_are_written_as_short_as_float32_allows():
    text = LinearModel([0.1, 1 / 3], ["a", "b"]).export("es").text
    assert '\\"a\\": 0.1' in text
    assert '\\"b\\": 0.33333334' in text


def test_negative_scores_and_features_are_warned_about():
    with pytest.warns(ExportWarning, match="as the weight of 'age' is, and Lucene forbids"):
        NEGATIVE.export("es")
    low = LinearModel([1.0, 1.0], ["a", "b"], statistics=statistics([0, -3], [1, 1]))
    with pytest.warns(ExportWarning, match="'b' was as low as -3 in training"):
        low.export("opensearch")


def test_defaults_go_to_a_second_file():
    with pytest.warns(ExportWarning, match="queries of 2 of the features need the values"):
        artefact = MEAN.export("es")
    assert list(artefact.files) == ["model.json", "defaults.json"]
    assert json.loads(artefact.files["defaults.json"]) == {"bm25": 2.0, "clicks": 0.1}
    assert "defaults.json" in artefact.instructions


def test_an_effect_without_weight_cannot_be_said():
    artefact = quiet(INDICATOR, "es")
    assert any("'age' has next to no weight but an effect" in text for text in artefact.warnings)
    assert json.loads(artefact.files["defaults.json"]) == {"bm25": 2.0}


@pytest.mark.parametrize("target", ["elasticsearch", "opensearch", "solr"])
@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("a\nb", "'\\\\n' at place 1"),
        ("a\u200bb", "cannot be seen"),
        (" a", "blanks at an end"),
    ],
)
def test_names_that_no_request_carries(target, name, why):
    with pytest.raises(ValueError, match=f"{target} cannot take the feature name .*{why}"):
        MODEL.export(target, feature_map={"age": name})


@pytest.mark.parametrize("target", ["elasticsearch", "solr"])
@pytest.mark.parametrize("name", ["my model", "a/b", "a'b", "{x}", "a&b"])
def test_models_have_names_that_urls_carry(target, name):
    with pytest.raises(ValueError, match=f"{target} cannot take the model name"):
        MODEL.export(target, name=name)


def test_names_of_a_plugin_have_a_length():
    MODEL.export("es", feature_map={"age": "x" * 504})
    with pytest.raises(ValueError, match="it has 505 bytes, at most 504 are stored"):
        MODEL.export("es", feature_map={"age": "x" * 505})


def test_names_of_other_alphabets_are_kept():
    body = json.loads(MODEL.export("es", feature_map={"age": 'Größe "π"'}).text)
    assert 'Größe "π"' in json.loads(body["model"]["model"]["definition"])


# ---- Solr ---------------------------------------------------------------------------------------


def test_the_model_of_solr():
    artefact = MODEL.export("solr", name="mine", store="shop", collection="films")
    document = json.loads(artefact.text)
    assert document == {
        "class": "org.apache.solr.ltr.model.LinearModel",
        "name": "mine",
        "store": "shop",
        "features": [{"name": "bm25"}, {"name": "age"}, {"name": "clicks"}],
        "params": {"weights": {"bm25": 0.5, "age": 0.25, "clicks": 2.0}},
    }
    assert "solr/films/schema/model-store' " in artefact.instructions
    assert "{!ltr model=mine " in artefact.instructions


def test_whole_weights_keep_their_point():
    """Solr casts weights to Double: an integer in the JSON is a Long and fails."""
    assert re.search(r'"a": 3\.0\b', LinearModel([3.0], ["a"]).export("solr").text)


def test_defaults_of_solr_are_a_patch_of_its_features():
    artefact = MEAN.export("solr", store="shop")
    assert json.loads(artefact.files["features.json"]) == [
        {"store": "shop", "name": "bm25", "params": {"defaultValue": "2.0"}},
        {"store": "shop", "name": "clicks", "params": {"defaultValue": "0.1"}},
    ]
    assert artefact.warnings == ()
    assert "features.json" in artefact.instructions


def test_solr_expresses_indicators_by_defaults_where_there_is_a_weight():
    with pytest.warns(ExportWarning, match="'age' has next to no weight"):
        artefact = INDICATOR.export("solr")
    (patch,) = json.loads(artefact.files["features.json"])
    assert patch["name"] == "bm25"
    assert patch["params"] == {"defaultValue": "2.0"}


def test_defaults_beyond_float32_are_said_to_be_lost():
    missing = Missing("indicator", weights=np.array([1.0, 0.0]))
    model = LinearModel([1e-39, 1.0], ["a", "b"], missing=missing)
    with pytest.warns(ExportWarning, match="'a' has next to no weight"):
        artefact = model.export("solr")
    assert list(artefact.files) == ["model.json"]


def test_names_that_make_the_feature_log_ambiguous():
    with pytest.warns(ExportWarning, match="'lang=en' has a sign ="):
        MODEL.export("solr", feature_map={"age": "lang=en"})


# ---- Vespa --------------------------------------------------------------------------------------


def test_a_rank_profile():
    model = LinearModel([0.5, -1e-5, 2.0], ["bm25(title)", "clicks", "attribute(age)"])
    assert model.export("vespa", name="learned").text == (
        "rank-profile learned inherits default {\n"
        "    first-phase {\n"
        "        expression {\n"
        "            0.5 * bm25(title) +\n"
        "            -1e-05 * clicks +\n"
        "            if (isNan(attribute(age)), 0.0, 2.0 * attribute(age))\n"
        "        }\n"
        "    }\n"
        "}\n"
    )


def test_missing_values_of_a_rank_profile():
    text = INDICATOR.export("vespa", phase="second", inherits="other").text
    assert "rank-profile linrank inherits other {" in text
    assert "second-phase {" in text
    assert "if (isNan(bm25), 1.0, 0.5 * bm25) +" in text
    assert "if (isNan(age), 0.5, 0.0) +" in text
    assert "if (isNan(clicks), 0.0, 2.0 * clicks)\n" in text


def test_weights_as_inputs_of_the_query():
    names = ["bm25(title)", "bm25_title", "attribute(age)"]
    mean = Missing("mean", values=np.array([1.0, 0.0, 2.0]))
    model = LinearModel([0.5, 1e-7, 2.0], names, missing=mean)
    artefact = model.export("vespa", weights="query")
    inputs = dict(re.findall(r"query\((\w+)\) double: (-?[0-9]+\.[0-9]+)\n", artefact.text))
    assert inputs == {
        "w_bm25_title": "0.5",
        "m_bm25_title": "0.5",
        "w_bm25_title_2": "0.0000001",
        "w_attribute_age": "2.0",
        "m_attribute_age": "4.0",
    }
    assert "if (isNan(bm25_title), 0.0, query(w_bm25_title_2) * bm25_title)" in artefact.text
    profile = ElementTree.fromstring(artefact.files["linrank.xml"])
    assert profile.attrib == {"id": "linrank"}
    fields = {field.get("name"): field.text for field in profile}
    assert fields.pop("ranking.profile") == "linrank"
    assert fields == {f"ranking.features.query({key})": value for key, value in inputs.items()}


@pytest.mark.parametrize(
    "name",
    [
        "bm25(title)",
        "fieldMatch(title).completeness",
        "fieldMatch(title).a.b2",
        "nativeRank",
        "closeness(field, embedding)",
        'distance(label, "x y")',
        "freshness(timestamp).logscale",
        "term(0).significance",
        "my_function(attribute(a), -1.5e3)",
        "@x$",
    ],
)
def test_rank_features_are_taken(name):
    assert name in quiet(MODEL, "vespa", feature_map={"age": name}).text


@pytest.mark.parametrize(
    ("name", "rest"),
    [
        ("a b", " b"),
        ("a-b", "-b"),
        ("größe", "öße"),
        ("1a", "1a"),
        ("a(", r"\("),
        ("a(b", r"\(b"),
        ("a(b))", r"\)"),
        ("a(b c)", r"\(b c\)"),
        ("a(,)", r"\(,\)"),
        ("a.", r"\."),
        ('a("{")', r'\("{"\)'),
        ("a) + (b", r"\) \+ \(b"),
        ('a("b(" + c + ")")', r"\(0 \+ c \+ 0\)"),
        ("if", "if"),
        ("a(in)", r"\(in\)"),
        ("a(" * 33 + "b" + ")" * 33, r"\(f\)"),
    ],
)
def test_what_is_no_rank_feature_is_refused(name, rest):
    told = f"vespa cannot take the feature name .* it ends before '{rest}'; a rank feature is"
    with pytest.raises(ValueError, match=told):
        MODEL.export("vespa", feature_map={"age": name})


@pytest.mark.parametrize(("name", "at"), [("1a", "'1' at place 0"), ("a b", "' ' at place 1")])
def test_profiles_have_names_of_their_own(name, at):
    with pytest.raises(ValueError, match=f"vespa cannot take the profile name .*{at}"):
        MODEL.export("vespa", name=name)
    assert "rank-profile a-b_1 " in MODEL.export("vespa", name="a-b_1").text


def test_options_of_vespa_are_checked():
    with pytest.raises(ValueError, match="weights must be 'literal' or 'query', got 'x'"):
        MODEL.export("vespa", weights="x")
    with pytest.raises(ValueError, match="phase must be 'first' or 'second', got 'third'"):
        MODEL.export("vespa", phase="third")


# ---- RankLib and LIBLINEAR ----------------------------------------------------------------------


def test_ranklib_is_a_line_of_numbers_and_weights():
    lines = LinearModel([0.1, 0.0, -2.0]).export("ranklib").text.splitlines()
    assert lines[0] == "## Coordinate Ascent"
    assert all(line.startswith("##") for line in lines[:-1])
    assert lines[-1] == "1:0.1 3:-2.0"


def test_numbers_of_a_feature_map_are_taken_and_sorted():
    numbers = {"bm25": 7, "age": 2, "clicks": 5}
    assert MODEL.export("ranklib", feature_map=numbers).text.endswith("\n2:0.25 5:2.0 7:0.5\n")
    lines = MODEL.export("liblinear", feature_map=numbers).text.splitlines()
    assert lines[2] == "nr_feature 7"
    assert [float(line) for line in lines[5:]] == [0.0, 0.25, 0.0, 0.0, 2.0, 0.0, 0.5]


@pytest.mark.parametrize("target", ["ranklib", "liblinear"])
@pytest.mark.parametrize("given", [{"age": 2}, {"bm25": 0, "age": 1, "clicks": 2}])
def test_numbers_are_for_all_features_and_from_one(target, given):
    with pytest.raises(ValueError, match="knows features by numbers from 1"):
        MODEL.export(target, feature_map=given)


def test_liblinear_has_a_line_a_feature():
    text = LinearModel([0.1, 0.0, -2e-30]).export("liblinear").text
    assert text == (
        "solver_type L2R_L2LOSS_SVR\nnr_class 2\nnr_feature 3\nbias -1\nw\n0.1 \n0.0 \n-2e-30 \n"
    )


@pytest.mark.parametrize("target", ["ranklib", "liblinear"])
def test_programs_that_take_zero_for_what_is_missing(target):
    with pytest.warns(ExportWarning, match=f"where {target} takes 0: fill in those of 2 of"):
        MEAN.export(target)


@pytest.mark.parametrize("target", ["ranklib", "liblinear"])
def test_files_numbered_from_zero_are_shifted_and_told(target):
    model = LinearModel([1.0, 2.0], training={"index_base": 0})
    with pytest.warns(ExportWarning, match="feature 0 of the file is feature 1 here"):
        model.export(target)
