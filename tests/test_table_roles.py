"""Which column is what: conventions, choices, and what is refused."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hypothesis_profiles import examples
from linrank.choices import COLUMN_NAMES
from linrank.io.columns import Column
from linrank.io.roles import IF_PRESENT, TableOptions, assign, note_roles


def table(*columns: str) -> list[Column]:
    """Columns by name; ``name:kind`` for one that is no number."""
    return [
        Column(*(text.split(":") if text[-1].isalpha() and ":" in text else (text, "number")))
        for text in columns
    ]


def roles_of(*columns: str, **options):
    return assign(table(*columns), TableOptions(**options), "t")


@pytest.mark.parametrize(
    ("role", "name"), [(role, name) for role, names in COLUMN_NAMES.items() for name in names]
)
def test_every_conventional_name_in_any_case(role, name):
    base = [] if role == "label" else ["label"]
    for spelt in (name, name.upper(), name.title()):
        roles = roles_of(*base, spelt, "x")
        assert roles.fields[role] == spelt
        assert roles.features == ("x",)


def test_features_are_the_other_numbers_in_the_order_of_the_file():
    roles = roles_of("b", "title:text", "rel", "day:other", "a", "qid:text", "__index_level_0__")
    assert roles.fields == {"label": "rel", "qid": "qid"}
    assert roles.features == ("b", "a")
    assert list(roles.left_out) == ["title", "day", "__index_level_0__"]
    # The text of a query stands beside its id.
    roles = roles_of("qid:text", "query:text", "docno:text", "rank", "label", "features:list")
    assert (roles.fields["qid"], roles.features, roles.layout) == ("qid", ("features",), "list")
    assert roles_of("query:text", "label", "x").fields["qid"] == "query"


def test_one_line_tells_every_column():
    columns = ("grade", "query:text", "url:text", "bm25", "dwell", "category:text", "Unnamed: 0")
    assert str(roles_of(*columns)) == (
        "label 'grade', query 'query', document 'url', weight -, position -, 2 features; "
        "left out: category (text), Unnamed: 0 (an index of pandas)"
    )
    assert str(roles_of("label", "sample_weight", "position", "v:list", "x", features="v")) == (
        "label 'label', query -, document -, weight 'sample_weight', position 'position', "
        "features in 'v'; left out: x (not chosen)"
    )
    many = roles_of("label", "x", *(f"t{i}:text" for i in range(20)))
    assert str(many).endswith("t11 (text), 8 more")


@pytest.mark.parametrize(
    ("name", "what"),
    [
        *(("id", "an id"), ("user_id", "an id"), ("sessionId", "an id"), ("doc", "an id")),
        *(("timestamp", "a time"), ("judged_date", "a time"), ("index", "an index")),
    ],
)
def test_ids_times_and_indexes_are_left_out_with_a_warning(name, what):
    roles = roles_of("label", "qid", name, "x")
    assert (roles.features, roles.left_out) == (("x",), {name: what})
    said = rf"t: '{name}' \({what}\) is left out.*in features= \('\*,{name}'\)"
    with pytest.warns(UserWarning, match=said):
        note_roles(roles, TableOptions(), lambda text: None)
    assert roles_of("label", "qid", name, "x", features="*").features == ("x",)
    assert roles_of("label", "qid", name, "x", features=f"*,{name}").features == ("x", name)
    quiet = roles_of("label", "qid", name, "x", features=f"*,!{name}")
    assert (quiet.features, quiet.left_out, quiet.unsaid) == (("x",), {name: what}, "")
    assert roles_of("label", name, "x", known=("x",)).unsaid == ""


def test_a_document_may_have_several_ids_and_none_is_a_feature():
    roles = roles_of("label", "url:text", "item_id", "product_id", "x")
    assert (roles.fields["docid"], roles.features) == ("url", ("x",))
    assert roles.left_out == {"item_id": "a document id", "product_id": "a document id"}
    roles = roles_of("label", "url:text", "document_id", "x")
    assert (roles.fields["docid"], roles.left_out) == ("document_id", {"url": "text"})


@pytest.mark.parametrize(("name", "role"), [("weight", "weight"), ("Rank", "position")])
def test_a_name_that_may_be_a_role_or_a_feature_is_asked_for(name, role):
    asked = rf"'{name}' may hold the {role} of each row, or a feature; say {role}='{name}', or "
    with pytest.raises(ValueError, match=asked + rf"{role}=False.*\('\*,!{name}' is all others"):
        roles_of("label", name, "x")
    assert roles_of("label", name, "x", **{role: name}).fields[role] == name
    assert roles_of("label", name, "x", **{role: False}).features == (name, "x")
    assert roles_of("label", name, "x", features=f"*,!{name}").features == ("x",)
    assert roles_of("label", name, "x", features="*").left_out == {name: f"{role}, or a feature"}
    assert roles_of("label", name, "x", **{role: False}, features="*").features == (name, "x")
    assert roles_of("label", name, "x", known=("x",)).features == ("x",)
    assert roles_of("label", name, "x", known=(name,)).features == (name,)


@pytest.mark.parametrize(
    ("columns", "options", "message"),
    [
        (["label", "rel", "x"], {}, "'label' and 'rel' could each be the label; choose with lab"),
        (["Label", "label", "x"], {}, "'Label' and 'label' could each be"),
        (["label", "qid", "query_id", "x"], {}, "'qid' and 'query_id' could each be the qid"),
        (["a", "b"], {}, "no column is the label .*it has 'a', 'b'"),
        (["label"], {}, "no features"),
        (["label", "title:text"], {}, "no features: beside label='label' no column is numeric"),
        (["label", "id"], {}, "no column is numeric, or it is named like 'id' .an id.; it has"),
        (["label", "x"], {"qid": "gid"}, "qid='gid' names no column"),
        (["label", "qid", "x"], {"qid": "qld"}, "did you mean 'qid'"),
        (["label", "qid", "x"], {"qid": False}, "'qid' would be a feature.*a leak"),
        (["label", "docid", "x"], {"docid": False}, "'docid' would be a feature"),
        (["label", "qid", "session", "x"], {"qid": "session"}, "qid is 'session': a leak"),
        (["label", "y", "x"], {"label": "label"}, "'y' would be a feature"),
        (["label", "x"], {"qid": "label"}, "one column cannot have two roles"),
        (["label", "x"], {"features": "label"}, "is the label and cannot be a feature too"),
        (["label", "x"], {"features": ["x", "x"]}, "names the column 'x' twice"),
        (["label", "bm25"], {"features": "bm52"}, "did you mean 'bm25'"),
        (["label", "x", "u:text"], {"features": ["x", "u"]}, "'u' is not numeric"),
        (["label", "x", "v:list"], {"features": ["x", "v"]}, "must be the only feature"),
        (["label", "x"], {"features": "*,!x"}, "leaves none"),
        (["label", "a"], {"known": ["a", "b"]}, "no column 'b', a feature that the model knows"),
    ],
)
def test_what_is_not_clear_is_refused(columns, options, message):
    with pytest.raises(ValueError, match=message):
        roles_of(*columns, **options)


def test_a_name_that_is_no_string_is_a_type_error():
    with pytest.raises(TypeError, match="label must be the name of a column"):
        roles_of("label", "x", label=3)
    with pytest.raises(TypeError, match="features must be names"):
        roles_of("label", "x", features=[1])


@pytest.mark.parametrize(
    ("columns", "options", "features"),
    [
        (["label", "weight", "rank"], {"weight": False, "position": False}, ["weight", "rank"]),
        *((["label", "qid", n], {}, [n]) for n in ("valid", "humid", "grid", "index_size", "paid")),
        *((["label", n, "x"], {}, ["x"]) for n in ("Unnamed: 0", "__index_level_0__")),
        (["x"], {"label": IF_PRESENT}, ["x"]),
        (["x"], {"label": False}, ["x"]),
        (["rel", "x"], {"label": IF_PRESENT}, ["x"]),
        # Chosen ones keep their order and need no guard.
        (["label", "qid", "b", "a", "c"], {"qid": False, "features": ["c", "a"]}, ["c", "a"]),
        (["label", "f2", "f1", "g"], {"features": "g,f*"}, ["g", "f2", "f1"]),
        (["label", "tf[a]", "tfa"], {"features": ["tf[a]"]}, ["tf[a]"]),
        (["label", "a,b", "c"], {"features": "a,b"}, ["a,b"]),
        (["label", "y", "x"], {"label": "label", "features": "*,!y"}, ["x"]),
        # What a model knows is selected by name.
        (["label", "c", "b", "a"], {"known": ("a", "b")}, ["a", "b"]),
        (["label", "features:list"], {"known": ("a", "b")}, ["features"]),
    ],
)
def test_columns_that_are_features(columns, options, features):
    roles = roles_of(*columns, **options)
    assert roles.features == tuple(features)
    assert roles.unsaid == ""


@examples(50)
@given(st.permutations(["rel", "qid", "docno:text", "f1", "f2", "f3"]))
def test_roles_do_not_depend_on_the_order_of_columns(columns):
    roles = roles_of(*columns)
    assert roles.fields == {"label": "rel", "qid": "qid", "docid": "docno"}
    assert roles.features == tuple(c for c in columns if c.startswith("f"))


def test_no_two_conventions_share_a_name():
    pairs = itertools.combinations(COLUMN_NAMES.values(), 2)
    assert all(not set(a) & set(b) for a, b in pairs)
