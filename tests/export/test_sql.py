"""Export to SQL: the databases themselves order rows as the model does."""

import sqlite3

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from portable_models import KINDS, NAMES, assert_scores, model_of, rows_of

from linrank import LinearModel
from linrank.errors import ExportWarning
from linrank.export.sql import literal
from linrank.export.sql_dialects import DIALECTS
from linrank.missing import Missing
from linrank.scaling import Scaling

N_ROWS = 100_000
DOUBLE = 2.0**-52  # twice the unit: SQLite reads the last digit of a literal with an error


def quoted(name):
    return '"' + name.replace('"', '""') + '"'


def in_sqlite(X, names):
    """A table of the rows, NULL where a value is missing, in their order."""
    connection = sqlite3.connect(":memory:")
    columns = ", ".join(f"{quoted(name)} REAL" for name in names)
    connection.execute(f"CREATE TABLE documents (docid INTEGER PRIMARY KEY, qid, {columns})")
    marks = ", ".join("?" * (len(names) + 2))
    rows = np.where(np.isnan(X), None, X).tolist()
    listed = ([i, i % 50, *row] for i, row in enumerate(rows))
    connection.executemany(f"INSERT INTO documents VALUES ({marks})", listed)
    return lambda query: connection.execute(query).fetchall()


def in_duckdb(X, names):
    connection = duckdb.connect()
    columns = {"docid": np.arange(len(X)), "qid": np.arange(len(X)) % 50}
    columns |= {n: pa.array(x, mask=np.isnan(x)) for n, x in zip(names, X.T, strict=True)}
    connection.register("documents", pa.table(columns))
    return lambda query: connection.execute(query).fetchall()


DATABASES = {"sqlite": in_sqlite, "duckdb": in_duckdb}


@pytest.fixture(scope="module", params=DATABASES)
def database(request):
    """Rows, and a function that queries a table of them."""
    X = rows_of(N_ROWS, len(NAMES))
    return X, DATABASES[request.param](X, NAMES)


@pytest.mark.parametrize("kind", KINDS)
def test_a_database_orders_rows_as_the_model_does(database, kind):
    X, ask = database
    model = model_of(kind)
    expression = model.export("sql").text
    found = ask(f"SELECT {expression} FROM documents ORDER BY docid")
    scores = np.array([score for (score,) in found], dtype=np.float64)
    whole = np.ones(len(X), dtype=bool)
    if kind == "error":  # NULL where the model has no score
        whole = ~np.isnan(X[:, model.coef != 0]).any(axis=1)
        assert np.isnan(scores[~whole]).all()
        X = np.where(model.coef == 0, 0.0, X)
    assert_scores(scores[whole], model, X[whole], DOUBLE)


@pytest.mark.parametrize("kind", KINDS)
def test_ranks_within_queries_are_those_of_the_model(database, kind):
    _, ask = database
    model, n = model_of(kind), 2_000
    query = model.export("sql", table="documents", qid="qid", docid="docid").text
    limited = query.replace('FROM "documents" listed', f'FROM "documents" listed WHERE docid < {n}')
    found = ask(limited)
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


@pytest.mark.parametrize("open_database", DATABASES.values(), ids=list(DATABASES))
@pytest.mark.parametrize("kind", ["error", "zero", "mean"])
def test_scaling_within_queries_is_written_where_the_query_is_named(open_database, kind):
    names, n_rows = NAMES[:4], 400
    X = np.round(rows_of(n_rows, 4, missing=kind != "error"), 3)
    X[np.abs(X) > 1e6] = 7.0
    X[np.arange(n_rows) % 50 == 3, 1] = 2.5  # constant in one query
    model = model_of(kind, names, scaling=Scaling("query"))
    artefact = model.export("sql", table="documents", qid="qid", docid="docid")
    assert artefact.warnings == ()
    found = {row[0]: row[-2] for row in open_database(X, names)(artefact.text)}
    expected = model.predict(X, qid=np.arange(n_rows) % 50)
    np.testing.assert_allclose([found[i] for i in range(n_rows)], expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("open_database", DATABASES.values(), ids=list(DATABASES))
def test_scaling_within_queries_keeps_null_where_the_model_refuses_missing_values(open_database):
    """A feature that is constant in its query adds 0, one that is NULL makes the score NULL."""
    model = LinearModel([1.0, 1.0], ["a", "b"], scaling=Scaling("query"))
    X = np.zeros((100, 2))
    X[50:, 0] = 4.0
    X[3] = [np.nan, 0.0]
    query = model.export("sql", table="documents", qid="qid", docid="docid").text
    found = {row[0]: row[-2] for row in open_database(X, ["a", "b"])(query)}
    assert [found[i] for i in (0, 50, 3)] == [0.0, 1.0, None]


def test_without_a_query_scaling_within_queries_is_warned_about():
    with pytest.warns(ExportWarning, match="scale='query'"):
        model_of(scaling=Scaling("query")).export("sql", table="documents")


@pytest.mark.parametrize("open_database", DATABASES.values(), ids=list(DATABASES))
def test_fifteen_hundred_features_are_not_nested_too_deep(open_database):
    names = [f"f{j}" for j in range(1500)]
    model, X = model_of("mean", names), rows_of(20, 1500)
    found = open_database(X, names)(f"SELECT {model.export('sql').text} FROM documents")
    assert_scores(np.array(found)[:, 0], model, X, DOUBLE)


@pytest.mark.parametrize("open_database", DATABASES.values(), ids=list(DATABASES))
def test_integer_columns_are_not_divided_or_rounded_as_integers(open_database):
    model = LinearModel([0.25, -1.0], ["clicks", "views"])
    ask = open_database(np.array([[3.0, 0.0], [1.0, 1.0]]), ["clicks", "views"])
    whole = "SELECT docid, CAST(clicks AS INTEGER) clicks, CAST(views AS INTEGER) views"
    expression = model.export("sql").text
    query = f"SELECT 2 * {expression} FROM ({whole} FROM documents) t ORDER BY docid"
    assert ask(query) == [(1.5,), (-1.5,)]


def test_a_column_that_the_table_lacks_is_an_error_in_sqlite_too():
    """A bare "name" that is no column would be a text there, worth 0."""
    ask = in_sqlite(np.zeros((2, 1)), ["f1"])
    with pytest.raises(sqlite3.OperationalError, match="no such column"):
        ask(LinearModel([1.0], ["bm25"]).export("sql", table="documents").text)


column_names = st.text(
    st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1, max_size=12
)


@pytest.mark.parametrize("open_database", DATABASES.values(), ids=list(DATABASES))
@settings(max_examples=15, deadline=None)
@given(st.lists(column_names, min_size=1, max_size=3, unique_by=str.casefold))
def test_any_text_can_be_the_name_of_a_column(open_database, names):
    names = [name for name in names if name.casefold() not in ("docid", "qid")] or ["a\nb"]
    model = LinearModel([0.1, -3.0, 1e-5][: len(names)], names)
    X = np.arange(1.0, 1 + 2 * len(names)).reshape(2, -1)
    ask = open_database(X, names)
    query = model.export("sql", table="documents", qid="qid").text
    assert_scores(np.array([row[-2] for row in sorted(ask(query))]), model, X, DOUBLE)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_literal_is_a_double_with_all_its_digits(value):
    text = literal(value)
    assert "e" in text
    assert float(text) == value


@pytest.mark.parametrize(
    ("dialect", "name", "said"),
    [
        ("ansi", "a\0b", r"U\+0000"),
        ("ansi", "", "it is empty"),
        ("mysql", "a" * 65, "65 characters, the limit is 64"),
        ("mysql", "fire \U0001f525", r"U\+1F525.*Basic Multilingual Plane"),
        ("mysql", "trailing ", "end with a space"),
        ("bigquery", "a`b", r"U\+0060"),
        ("bigquery", "a.b", r"'\.'.*not among"),
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


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"dialect": "mysq"}, "did you mean 'mysql'"),
        ({"dialect": "oracle"}, "dialect must be one of"),
        ({"qid": "qid"}, "name it by table="),
        ({"docid": "id"}, "name it by table="),
        ({"table": "t", "name": "bm"}, "column 'bm_score'"),
        ({"normalizers": "engine"}, "no normalizers"),
    ],
)
def test_options_that_make_no_sense(options, said):
    with pytest.raises(ValueError, match=said):
        LinearModel([1.0], ["BM_score"]).export("sql", **options)


@pytest.mark.parametrize("option", ["table", "qid", "docid"])
def test_an_option_that_is_no_name(option):
    options = {"table": "t"} | {option: True}
    with pytest.raises(TypeError, match=f"{option} must be a name, got True"):
        LinearModel([1.0], ["a"]).export("sql", **options)


def test_a_schema_is_quoted_apart_from_its_table():
    text = LinearModel([1.0], ["a"]).export("sql", table="shop.items", dialect="mysql").text
    assert "FROM `shop`.`items` listed" in text


def test_the_instructions_say_what_null_does():
    model = LinearModel([1.0], ["a"])
    assert "refuses missing values" in model.export("sql").instructions
    filled = LinearModel([1.0], ["a"], missing=Missing("zero"))
    assert "filled in" in filled.export("sql").instructions
