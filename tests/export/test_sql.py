"""Export to SQL: the databases themselves order rows as the model does."""

from dataclasses import replace

import numpy as np
import pytest
from databases import DATABASES
from exported_models import Kind, model_of, random_rows
from hypothesis import given
from hypothesis import strategies as st
from rounding import assert_order

from hypothesis_profiles import examples
from linrank import LinearModel
from linrank.data.scaling import Scaling
from linrank.errors import ExportWarning
from linrank.export.sql import DIALECTS, literal

KINDS = {kind: model_of(Kind(missing=kind)) for kind in ("error", "zero", "mean", "indicator")}
NAMES = KINDS["error"].feature_names
EVERY_DATABASE = pytest.mark.parametrize("database", DATABASES.values(), ids=list(DATABASES))


@pytest.fixture(scope="module", params=DATABASES)
def database(request):
    """Rows, and a function that queries a table of them."""
    X, chosen = random_rows(len(NAMES), with_missing=True), DATABASES[request.param]
    return X, chosen.table(X, NAMES), chosen.dialect


def scores_in(ask, model, dialect):
    """The scores of the rows of the table, NaN for NULL."""
    expression = model.export("sql", dialect=dialect).text
    found = ask(f"SELECT {expression} FROM documents ORDER BY docid")
    return np.array([score for (score,) in found], dtype=np.float64)


@pytest.mark.parametrize("kind", KINDS)
def test_a_database_orders_rows_as_the_model_does(database, kind):
    X, ask, dialect = database
    model = KINDS[kind]
    scores = scores_in(ask, model, dialect)
    whole = np.ones(len(X), dtype=bool)
    if kind == "error":  # NULL where the model has no score
        whole = ~np.isnan(X[:, model.coef != 0]).any(axis=1)
        assert np.isnan(scores[~whole]).all()
        X = np.where(model.coef == 0, 0.0, X)
    assert_order(model, X[whole], scores[whole], "float64")


@pytest.mark.parametrize("kind", KINDS)
def test_ranks_within_queries_are_those_of_the_model(database, kind):
    _, ask, dialect = database
    n, options = 2_000, {"table": "documents", "qid": "qid", "docid": "docid"}
    query = KINDS[kind].export("sql", dialect=dialect, **options).text
    found = ask(query.replace(" listed\n", f" listed WHERE docid < {n}\n"))
    docid = np.array([row[0] for row in found])
    qid, score, rank = (np.array([row[j] for row in found]) for j in (1, -2, -1))
    for value in np.unique(qid):
        of_query = np.flatnonzero(qid == value)
        assert rank[of_query].tolist() == list(range(1, len(of_query) + 1))
        known = [s for s in score[of_query] if s is not None]
        assert known == sorted(known, reverse=True)
        # Where the model refuses missing values, rows without a score come last.
        assert [s for s in score[of_query] if s is None] == list(score[of_query][len(known) :])
    assert sorted(docid) == list(range(n))


def scaled_scores(database, model, X):
    """Scores that a database gives of features divided by their ranges within queries."""
    options = {"table": "documents", "qid": "qid", "docid": "docid", "dialect": database.dialect}
    artefact = replace(model, scaling=Scaling("query")).export("sql", **options)
    assert artefact.warnings == ()
    found = {row[0]: row[-2] for row in database.table(X, model.feature_names)(artefact.text)}
    return [found[i] for i in range(len(X))]


@EVERY_DATABASE
@pytest.mark.parametrize("kind", ["zero", "mean"])
def test_features_are_divided_by_their_ranges_within_queries(database, kind):
    X = random_rows(len(NAMES), with_missing=True)[:400].astype(float)
    qid = np.arange(len(X)) % 50
    X[qid == 3, 1] = 2.5
    expected = replace(KINDS[kind], scaling=Scaling("query")).predict(X, qid=qid)
    np.testing.assert_allclose(scaled_scores(database, KINDS[kind], X), expected, rtol=1e-9)


@EVERY_DATABASE
def test_null_stays_null_where_a_model_refuses_it_and_a_constant_feature_adds_0(database):
    X = np.zeros((100, 2))
    X[50:, 0] = 4.0
    X[3] = [np.nan, 0.0]
    scores = scaled_scores(database, LinearModel([1.0, 1.0], ["a", "b"]), X)
    assert [scores[i] for i in (0, 50, 3)] == [0.0, 1.0, None]


@EVERY_DATABASE
def test_as_many_features_as_a_table_has_columns(database):
    rng = np.random.default_rng(0)
    names, X = (
        [f"f{j}" for j in range(database.n_columns)],
        rng.normal(size=(20, database.n_columns)),
    )
    model, ask = LinearModel(rng.normal(size=len(names)), names), database.table(X, names)
    assert_order(model, X, scores_in(ask, model, database.dialect), "float64")
    ranked = ask(model.export("sql", table="documents", dialect=database.dialect).text)
    assert_order(model, X, [row[-2] for row in sorted(ranked)], "float64")


@EVERY_DATABASE
def test_integer_columns_are_not_divided_or_rounded_as_integers(database):
    model = LinearModel([0.25, -1.0], ["clicks", "views"])
    ask = database.table(np.array([[3.0, 0.0], [1.0, 1.0]]), ["clicks", "views"])
    whole = "SELECT docid, CAST(clicks AS INTEGER) clicks, CAST(views AS INTEGER) views"
    expression = model.export("sql", dialect=database.dialect).text
    query = f"SELECT 2 * {expression} FROM ({whole} FROM documents) t ORDER BY docid"
    assert ask(query) == [(1.5,), (-1.5,)]


@EVERY_DATABASE
def test_a_column_that_the_table_lacks_is_an_error(database):
    """A bare "name" that is no column would be a text in SQLite, worth 0."""
    ask = database.table(np.zeros((2, 1)), ["f1"])
    model = LinearModel([1.0], ["bm25"])
    with pytest.raises(database.error, match="bm25"):
        ask(model.export("sql", table="documents", dialect=database.dialect).text)


column_names = st.text(
    st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1, max_size=12
)
HOSTILE = [
    *("a`b", "\\", "\\g", "a\\\nb", "DELIMITER //\nx", ":x", ":'x'", "$1", "?", "--", "/*", "#"),
    *("a;b", "\t.", " a", "\x01", "\x7f", "NULL", "listed", "scored", "x" * 64, "é" * 40, "\ufeff"),
]


def taken(names, dialect):
    """Those of the names that a column can have beside docid and qid."""
    found = []
    for name in names:
        try:
            DIALECTS[dialect].quote(name)
        except ValueError:
            continue
        if name.casefold() not in ("docid", "qid"):
            found.append(name)
    return found or ["a\nb"]


def assert_named(database, names):
    model = LinearModel([0.1, -3.0, 1e-5][: len(names)], names)
    X = np.arange(1.0, 1 + 2 * len(names)).reshape(2, -1)
    ask = database.table(X, names)
    query = model.export("sql", table="documents", qid="qid", dialect=database.dialect).text
    ranked = [row[-2] for row in sorted(ask(query))]
    for scores in (ranked, scores_in(ask, model, database.dialect)):
        np.testing.assert_allclose(scores, model.predict(X), rtol=1e-14)


@EVERY_DATABASE
@examples(15)
@given(st.lists(column_names, min_size=1, max_size=3, unique_by=str.casefold))
def test_any_text_can_be_the_name_of_a_column(database, names):
    assert_named(database, taken(names, database.dialect))


@EVERY_DATABASE
def test_names_that_mean_something_to_a_client(database):
    for begin in range(0, len(HOSTILE), 3):
        assert_named(database, taken(HOSTILE[begin : begin + 3], database.dialect))


@EVERY_DATABASE
@pytest.mark.parametrize("scale", [1e-250, 1e-100, 1e100, 1e200])
def test_weights_near_the_ends_of_all_floats(database, scale):
    """The exported weights are those of the model times a power of two, so that none overflows."""
    model = LinearModel([scale, -3.0 * scale, 1e-3 * scale], ["a", "b", "c"])
    X = np.array([[1e50, 1.0, 1e-50], [1.0, 0.0, 7.0], [-1e-50, 1e50, 2.0]])
    scores = scores_in(database.table(X, ["a", "b", "c"]), model, database.dialect)
    factor = scores[1] / model.predict(X)[1]
    np.testing.assert_allclose(scores, factor * model.predict(X), rtol=1e-14)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_literal_is_a_double_with_all_its_digits(value):
    text = literal(value)
    assert "e" in text
    assert float(text) == value


@pytest.mark.parametrize(
    ("dialect", "name", "said"),
    [
        ("ansi", "a\0b", r"it has '\\x00' \(U\+0000\) at place 1; names there have no NUL"),
        ("ansi", "", "it is empty"),
        ("mysql", "a" * 65, "65 characters, the limit is 64"),
        ("mysql", "fire \U0001f525", r"U\+1F525. at place 5"),
        ("mysql", "inner and trailing ", r"U\+0020\) at place 18; names .* no blank at the end"),
        ("mysql", "trailing\t", r"U\+0009\) at place 8; names .* no blank at the end"),
        ("bigquery", "a`b", r"U\+0060"),
        *(
            ("bigquery", name, rf"U\+{code}\) at place 1; names there have letters, marks, digits")
            for name, code in [("p€", "20AC"), ("a→b", "2192"), ("x😀", "1F600"), ("a.b", "002E")]
        ),
        ("bigquery", "n\u00a0b", r"U\+00A0"),
        ("bigquery", "x" * 301, "limit is 300"),
        ("sqlserver", "x" * 129, "limit is 128"),
    ],
)
def test_a_name_that_a_database_refuses_is_an_error(dialect, name, said):
    with pytest.raises(ValueError, match=said) as caught:
        LinearModel([1.0], [name]).export("sql", dialect=dialect)
    assert repr(name) in str(caught.value)
    assert "feature map" in str(caught.value)


def test_names_are_quoted_as_the_dialect_has_it():
    model = LinearModel([2.0], ["a`b]c d"])
    found = {d: model.export("sql", dialect=d).text for d in ("ansi", "mysql", "sqlserver")}
    assert found == {
        "ansi": '(2.0e0 * "a`b]c d")\n',
        "mysql": "(2.0e0 * `a``b]c d`)\n",
        "sqlserver": "(2.0e0 * [a`b]]c d])\n",
    }
    plain = LinearModel([2.0], ["größe & 1"])
    assert plain.export("sql", dialect="bigquery").text == "(2.0e0 * `größe & 1`)\n"


def test_names_that_differ_in_capitals_only():
    model = LinearModel([1.0, 2.0], ["BM25", "bm25"])
    with pytest.warns(ExportWarning, match="'BM25' and 'bm25' differ in their capitals"):
        model.export("sql")
    for dialect in set(DIALECTS) - {"ansi"}:
        with pytest.raises(ValueError, match="one column"):
            model.export("sql", dialect=dialect)


def test_names_that_differ_behind_what_postgresql_keeps():
    model = LinearModel([1.0, 2.0], ["é" * 32 + "a", "é" * 32 + "b"])
    with pytest.warns(ExportWarning, match="first 63 bytes in common.*PostgreSQL"):
        model.export("sql")
    assert model.export("sql", dialect="mysql").warnings == ()


@pytest.mark.parametrize("name", ["postgresql", "mariadb"])
def test_what_leaves_the_range_of_doubles_is_an_error_of_the_server(name):
    """Others answer with infinity; the guide says so."""
    model = LinearModel([10.0], ["a"])
    ask = DATABASES[name].table(np.array([[1e308]]), ["a"])
    with pytest.raises(DATABASES[name].error, match="out of range"):
        ask(f"SELECT {model.export('sql', dialect=DATABASES[name].dialect).text} FROM documents")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"dialect": "mysq"}, "did you mean 'mysql'"),
        ({"dialect": "oracle"}, "dialect must be one of"),
        ({"qid": "qid"}, "name it by table="),
        ({"docid": "id"}, "name it by table="),
        ({"table": "t", "name": "bm"}, "column 'bm_score'"),
    ],
)
def test_options_that_make_no_sense(options, said):
    with pytest.raises(ValueError, match=said):
        LinearModel([1.0], ["BM_score"]).export("sql", **options)

    for option in ("table", "qid", "docid"):
        with pytest.raises(TypeError, match=f"{option} must be a name, got True"):
            LinearModel([1.0], ["a"]).export("sql", **{"table": "t", option: True})


def test_a_schema_is_quoted_apart_from_its_table():
    text = LinearModel([1.0], ["a"]).export("sql", table="shop.items", dialect="mysql").text
    assert "FROM `shop`.`items` listed" in text


def test_the_instructions_say_what_null_does():
    assert "refuses missing values" in KINDS["error"].export("sql").instructions
    assert "filled in" in KINDS["zero"].export("sql").instructions
