"""What a table lacks or has too much of: missing values, infinity, damage, slips."""

from __future__ import annotations

import sys

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import linrank
from hypothesis_profiles import examples
from linrank import _core
from linrank.errors import DataFormatError
from table_files import TABLE, write_table


@pytest.mark.parametrize("ending", ["parquet", "arrow", "csv"])
def test_missing_values_by_policy(tmp_path, ending):
    table = pa.table({"y": [1, 0, 2], "a": [1.0, None, 4.0], "b": pa.array([None, 5.0, 6.0])})
    path = write_table(table, tmp_path / f"t.{ending}")
    with pytest.raises(DataFormatError, match=r"row 0, column 'b' is missing; .*missing='zero'"):
        linrank.load(path)
    assert linrank.load(path, missing="zero").X.tolist() == [[1, 0], [0, 5], [4, 6]]
    assert linrank.load(path, missing="mean").X.tolist() == [[1, 5.5], [2.5, 5], [4, 6]]
    nulls = pa.table({"y": [1, 0], "a": [np.nan, 1.0], "b": pa.nulls(2)})
    assert linrank.load(nulls, missing="zero").X.tolist() == [[0, 0], [1, 0]]
    told = linrank.load(path, missing="indicator")
    assert told.X.tolist() == [[1, 0, 0, 1], [0, 5, 1, 0], [4, 6, 0, 0]]
    assert told.feature_names == ("a", "b", "missing(a)", "missing(b)")
    assert np.isnan(linrank.load(path, missing="keep").X).sum() == 2
    with pytest.raises(ValueError, match="missing must be"):
        linrank.load(path, missing="median")


@examples(40)
@given(
    hnp.arrays(np.float32, st.tuples(st.integers(1, 40), st.integers(1, 20)),
               elements=st.floats(width=32, allow_infinity=False)),
    st.integers(0, 5),
)  # fmt: skip
def test_slices_with_nulls_against_a_plain_loop(values, start):
    """Arrow arrays that begin in the middle of their bits; NaN becomes null."""
    start = min(start, len(values) - 1)
    columns = {f"f{j}": pa.array(values[:, j], from_pandas=True) for j in range(values.shape[1])}
    table = pa.table({"label": np.arange(len(values)), **columns}).slice(start)
    found = linrank.load(table, missing="keep").X
    expected = np.where(np.isnan(values), np.float32(np.nan), values)[start:]
    assert found.tobytes() == np.ascontiguousarray(expected).tobytes()


def test_infinity_is_refused_with_its_place(tmp_path):
    table = pa.table({"y": [1, 0, 1], "a": [1.0, 2.0, 3.0], "b": [1.0, 2.0, -np.inf]})
    for ending in ("parquet", "csv"):
        path = write_table(table, tmp_path / f"t.{ending}", 2)
        for missing in ("error", "zero"):
            with pytest.raises(DataFormatError, match=r"row 2, column 'b' is infinite"):
                linrank.load(path, missing=missing)
    with pytest.raises(DataFormatError, match=r"column 'b'.* too large .*dtype='float64'"):
        linrank.load(pa.table({"y": [1], "b": [1e39]}), dtype="float32")


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"label": ["good", "bad"], "x": [1, 2]}, "label column 'label' is text .*value is 'good'"),
        ({"label": [1, None], "x": [1, 2]}, r"label of row 1 \(column 'label'\) is missing"),
        ({"label": [1.0, np.inf], "x": [1, 2]}, "label of row 1 .* is inf"),
        ({"label": [1, 0], "qid": ["a", None], "x": [1, 2]}, "qid of row 1 .* is missing"),
        ({"label": [1, 0], "qid": [np.nan, 1.0], "x": [1, 2]}, "qid of row 0 .* is missing"),
        ({"label": [1, 0], "qid": [[1], [2]], "x": [1, 2]}, "qid column 'qid' is list"),
        ({"label": [1, 0], "docid": [[1], [2]], "x": [1, 2]}, "docid column 'docid' is list"),
        (
            {"label": [1, 0], "sample_weight": ["a", "b"], "x": [1, 2]},
            "weight column 'sample_weight' is text",
        ),
        ({"label": pa.array([], pa.int8()), "x": pa.array([], pa.int8())}, "no rows"),
        ({"y": [1, 0], "sample_weight": [1.0, -1.0], "x": [1, 2]}, "be >= 0, got -1.0 at row 1"),
    ],
)
def test_columns_at_fault(columns, message):
    with pytest.raises(ValueError, match=message):
        linrank.load(pa.table(columns))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"", "empty"),
        (b"\n", "empty"),
        (b"1,2,3\n4,5,6\n", "the first line, 1, 2, 3, ..., holds numbers"),
        (b"y;x\n1;2\n", "the first line has no ',' but ';'"),
        (b"y,x\n", "no rows"),
        (b"y,x\n1,2\n3\n", "t.csv:3: a line with 1 fields, the first line has 2"),
        (b"y,x\n1,2,3\n", "t.csv:2: a line with 3 fields"),
        (b"y,qid,x\n1,,2\n", "qid of row 0 .* is missing"),
        (b",y,x\n0,1,2\n", r"column 0 .* has no name.*index=False"),
        (b"y,x,x\n0,1,2\n", "2 columns are named 'x'"),
        (b"y,qid,x\nlow,a,2\n1,a,3\n", "label column 'y' is text .* the first value is 'low'"),
    ],
)
def test_csv_at_fault(tmp_path, text, message):
    (tmp_path / "t.csv").write_bytes(text)
    with pytest.raises(DataFormatError, match=message):
        linrank.load(tmp_path / "t.csv")


def test_a_slip_among_numbers_costs_no_feature(tmp_path):
    (tmp_path / "t.csv").write_text("".join(["y,x,u\n", *("1,2.5,3\n" * 20), "1,2.5x,a\n"]))
    with pytest.raises(DataFormatError, match=r"t.csv:22: the column 'x' holds '2.5x'"):
        linrank.load(tmp_path / "t.csv", features="x")


def test_a_word_behind_the_first_megabyte_is_named_with_its_line(tmp_path):
    lines = ["y,u,x\n", *(f"{i % 3},a,{i}.5\n" for i in range(120_000)), "1,a,oops\n"]
    (tmp_path / "t.csv").write_text("".join(lines))
    with pytest.raises(DataFormatError, match=r"t.csv:120002: the column 'x' holds 'oops'"):
        linrank.load(tmp_path / "t.csv")


def test_options_of_the_other_kind_are_refused(tmp_path):
    (tmp_path / "t.txt").write_text("1 qid:1 1:2\n")
    for source, options, message in (
        (tmp_path / "t.txt", {"label": "y"}, r"label= is for tables, and .*t.txt is SVMlight text"),
        (tmp_path / "t.txt", {"format": "paquet"}, "did you mean 'parquet'"),
        (TABLE, {"zero_based": True}, "zero_based"),
        (TABLE, {"n_features": 3}, "2 features, n_features=3"),
    ):
        with pytest.raises(ValueError, match=message):
            linrank.load(source, **options)


@pytest.mark.parametrize("ending", ["parquet", "arrow", "arrows"])
def test_damaged_files_are_refused_or_read(tmp_path, ending):
    """Cut short or with a byte changed: a dataset, or one of our errors, never anything else."""
    rng, damaged = np.random.default_rng(5), tmp_path / f"damaged.{ending}"
    columns = {"label": rng.integers(0, 3, 64), "x": rng.normal(size=64)}
    columns["qid"] = pa.array([f"q{i // 8}" for i in range(64)]).dictionary_encode()
    columns["docno"] = [f"d{i}" for i in range(64)]
    whole = write_table(pa.table(columns), tmp_path / f"whole.{ending}", 16).read_bytes()
    n_refused = 0
    for k in range(120):
        data = bytearray(whole)
        if k % 2:
            del data[int(rng.integers(8, len(data))) :]
        else:
            data[int(rng.integers(8, len(data)))] ^= int(rng.integers(1, 256))
        damaged.write_bytes(data)
        try:
            linrank.load(damaged, missing="keep")
        except (ValueError, MemoryError) as error:
            assert "damaged." in str(error)  # noqa: PT017
            n_refused += isinstance(error, DataFormatError)
    assert n_refused > 30


def test_the_size_in_the_metadata_is_checked_before_memory_is_taken(tmp_path, monkeypatch):
    monkeypatch.setattr("linrank.system.resources.available", lambda: 39)
    path = write_table(TABLE, tmp_path / "t.parquet")
    with pytest.raises(MemoryError, match=r"t.parquet: 5 × 2 float32 would take 40 B"):
        linrank.load(path)


@examples(30)
@given(st.data())
def test_interleaved_columns_are_the_transpose(data):
    n_rows, n_columns = data.draw(st.integers(0, 600)), data.draw(st.integers(1, 20))
    kinds = data.draw(st.lists(st.sampled_from(["f4", "f8", "i1", "u2", "i4", "i8"]),
                               min_size=n_columns, max_size=n_columns))  # fmt: skip
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    columns = [rng.integers(0, 100, n_rows).astype(kind) for kind in kinds]
    out = np.full((n_rows, n_columns + 1), -1.0, np.float32)[:, :n_columns]
    first = np.zeros(n_columns, np.int64)
    seen = _core.interleave_columns(columns, [None] * n_columns, first, out, 2)
    assert seen == (False, False)
    assert (out == np.array(columns).T).all()


def test_without_pyarrow_the_extra_is_named(tmp_path, monkeypatch):
    path = write_table(TABLE, tmp_path / "t.parquet")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r"pip install pyarrow"):
        linrank.load(path)
