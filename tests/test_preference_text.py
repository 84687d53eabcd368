"""Preferences as text: the reader, and ``linrank train --preferences``."""

from __future__ import annotations

import gzip
import io
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import papers
from cli_files import write_svmlight
from linrank import DataFormatError, load_preferences, make_ranking
from linrank.cli.main import main
from linrank.models.linear import load_model
from papers import RankSVM


def read(text, **options):
    return load_preferences(io.BytesIO(text.encode()), **options)


def test_columns_comments_and_blank_lines():
    found = read("# winner loser\n\n3 1\r\n  2\t0 0.25 # why\n10 4 1e-3\n7 0 +2.", n_rows=11)
    assert found.pairs.tolist() == [[3, 1], [2, 0], [10, 4], [7, 0]]
    assert found.weight.tolist() == [1.0, 0.25, 0.001, 2.0]
    assert found.lines.tolist() == [3, 4, 5, 6]


def test_no_weights_are_no_array():
    assert read("1 0\n2 0 1.0\n").weight is None


@given(
    st.lists(
        st.tuples(
            st.integers(0, 10**17),
            st.integers(1, 10**6),
            st.none() | st.floats(0.0, 1e300, allow_nan=False),
        ),
        min_size=1,
        max_size=30,
    )
)
def test_what_is_written_is_read(pairs):
    lines = [f"{i} {i + d}{'' if w is None else f' {w!r}'}" for i, d, w in [*pairs, (0, 1, 1.0)]]
    found = read("\n".join(lines))
    assert found.pairs.tolist() == [[i, i + d] for i, d, _ in [*pairs, (0, 1, 1.0)]]
    weight = [1.0 if w is None else w for _, _, w in [*pairs, (0, 1, 1.0)]]
    assert (np.ones(len(weight)) if found.weight is None else found.weight).tolist() == weight


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("1", "expected 'winner loser [weight]', got 1 column"),
        ("1 2 3 4", "expected 'winner loser [weight]', got 4 columns"),
        ("x 2", "the winner is 'x', not a row number (0, 1, 2, ...)"),
        ("1 2.0", "the loser is '2.0', not a row number"),
        ("-1 2", "the winner is '-1', not a row number"),
        ("1_0 2", "the winner is '1_0', not a row number"),
        ("٣ 2", "the winner is '٣', not a row number"),
        ("1,2", "got 1 column"),
        ("1 9", "there is no row '9' for the loser; the data have rows 0 to 8"),
        ("9" * 50 + " 1", "there is no row '" + "9" * 40 + "...' for the winner"),
        ("4 4", "row 4 is compared with itself"),
        ("4 5 -1", "the weight is '-1'; weights are finite numbers >= 0"),
        ("4 5 nan", "the weight is 'nan'"),
        ("4 5 1e999", "the weight is '1e999'"),
        ("4 5 0x1", "the weight is '0x1'"),
        ("4 5 one", "the weight is 'one'"),
        ("4 5 1\x00", "the weight is '1\\x00'"),
    ],
)
def test_a_fault_is_told_with_its_line(line, message):
    with pytest.raises(DataFormatError) as error:
        read(f"# a comment\n0 1\n{line}\n5 x\n", n_rows=9)
    assert str(error.value).startswith("<stream>:3: ")
    assert message in str(error.value)


def test_lines_are_counted_across_blocks():
    text = f"0 1 #{'x' * 1000}\n" * 5000 + "0 0\n"  # more than one block of 4 MB
    with pytest.raises(DataFormatError, match="<stream>:5001: row 0 is compared with itself"):
        read(text)


@pytest.mark.parametrize("text", ["", "\n\n", "# nothing\n"])
def test_an_empty_file_is_an_error(text):
    with pytest.raises(DataFormatError, match="no preferences; expected lines"):
        read(text)


def test_weights_of_zero_only_are_an_error():
    with pytest.raises(DataFormatError, match="all weights are zero"):
        read("0 1 0\n1 0 0.0\n")


# ---- the command line ---------------------------------------------------------------------------


@pytest.fixture
def work(tmp_path):
    """Data, preferences between rows of its queries, and names of files."""
    data = make_ranking(n_queries=8, n_features=5, random_state=4)
    rng = np.random.default_rng(0)
    pairs = rng.integers(0, data.n_rows, (4000, 2))
    same = data.qid[pairs[:, 0]] == data.qid[pairs[:, 1]]
    pairs = pairs[same & (pairs[:, 0] != pairs[:, 1])]
    weight = rng.integers(1, 5, len(pairs)) / 2
    lines = [f"{i} {j} {w}\n" for (i, j), w in zip(pairs.tolist(), weight.tolist(), strict=True)]
    (tmp_path / "pairs.txt").write_text("".join(lines))
    return {
        "data": data,
        "pairs": pairs,
        "weight": weight,
        "train": write_svmlight(tmp_path / "train.txt", data),
        "listed": str(tmp_path / "pairs.txt"),
        "model": str(tmp_path / "model.json"),
        "folder": tmp_path,
    }


def command(work, *options):
    listed = ["--preferences", work["listed"]]
    return main(["train", work["train"], work["model"], *listed, "-e", "1e-10", *options])


@pytest.mark.parametrize("with_labels", [True, False])
def test_training_equals_fit_pairs(work, with_labels, capsys):
    options = [] if with_labels else ["--no-labels"]
    given = papers.flags("--scale", "standard", "--json", *options)
    assert command(work, *given) == 0
    told = capsys.readouterr()
    data = work["data"]
    ranker = RankSVM(tol=1e-10, scale="standard").fit_pairs(
        data.X,
        work["pairs"],
        pair_weight=work["weight"],
        qid=data.qid,
        y=data.y if with_labels else None,
    )
    assert_allclose(load_model(work["model"]).coef, ranker.coef_, rtol=1e-7, atol=1e-9)
    report = json.loads(told.out)
    assert report["data"]["preferences"] == len(work["pairs"])
    assert report["data"]["pairs"] == (data.queries.n_pairs if with_labels else 0)
    assert f"{len(work['pairs']):,} preferences" in told.err
    assert load_model(work["model"]).training["n_preferences"] == len(work["pairs"])


def test_compressed_and_standard_input(work, monkeypatch):
    assert command(work, "-q") == 0
    plain = load_model(work["model"]).coef
    with open(work["listed"], "rb") as file:
        text = file.read()
    packed = work["folder"] / "pairs.txt.gz"
    packed.write_bytes(gzip.compress(text))
    assert command({**work, "listed": str(packed)}, "-q") == 0
    assert_array_equal(load_model(work["model"]).coef, plain)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text)))
    assert command({**work, "listed": "-"}, "-q") == 0
    assert_array_equal(load_model(work["model"]).coef, plain)


def test_across_queries_must_be_meant(work, capsys):
    last = work["data"].n_rows - 1
    with open(work["listed"], "w") as file:
        file.write(f"1 0\n\n0 {last}\n")
    assert command(work, "-q") == 1
    err = capsys.readouterr().err
    assert f"pairs.txt:3: it prefers row 0 of query 0 to row {last} of query 7" in err
    assert "--across-queries" in err
    assert command(work, "-q", "--across-queries") == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--no-labels"], "needs --preferences FILE"),
        (["--across-queries"], "needs --preferences FILE"),
    ],
)
def test_options_that_need_preferences(work, options, message, capsys):
    assert main(["train", work["train"], work["model"], *options]) == 2
    assert message in capsys.readouterr().err


def test_one_standard_input_only(work, capsys):
    assert main(["train", "-", work["model"], "--preferences", "-"]) == 2
    assert "only one of the files" in capsys.readouterr().err


def test_a_missing_file_is_told_before_the_data_are_read(work, capsys):
    assert command({**work, "train": "/nowhere/data", "listed": "/nowhere/pairs"}) == 1
    assert "/nowhere/pairs: No such file" in capsys.readouterr().err


def test_the_preferences_are_not_overwritten(work, capsys):
    assert command({**work, "model": work["listed"]}) == 1
    assert "is read and would be overwritten" in capsys.readouterr().err
