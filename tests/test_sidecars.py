"""What stands beside the data: queries, weights, positions, and preferences as text."""

import gzip
import io
import logging

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import linrank
import papers
from cli_files import write_svmlight
from linrank import DataFormatError, load_preferences, make_ranking
from papers import RankSVM

ROWS = "2 1:1 2:3\n0 1:2 2:1\n1 1:0 2:2\n0 1:4 2:4\n3 1:1 2:1\n"
CSV = "label,a,b\n2,1,3\n0,2,1\n1,0,2\n0,4,4\n3,1,1\n"


@pytest.fixture(params=["data.txt", "data.csv"])
def path(request, tmp_path):
    path = tmp_path / request.param
    path.write_text(CSV if request.param.endswith("csv") else ROWS)
    return path


def beside(path, ending, *numbers):
    path.with_name(path.name + ending).write_text("".join(f"{n}\n" for n in numbers))


@pytest.mark.parametrize("ending", [".query", ".group"])
def test_queries(path, ending, caplog):
    packed = path.with_name(f"{path.name}.gz")
    packed.write_bytes(gzip.compress(path.read_bytes()))
    beside(path, ending, 2, 3)
    with caplog.at_level(logging.INFO, "linrank"):
        data = linrank.load(path)
    assert data.queries.offsets.tolist() == [0, 2, 5]
    assert f"{path.name}{ending}" in caplog.text
    assert linrank.load(path, sidecars=False).qid is None
    assert linrank.load(packed).queries.offsets.tolist() == [0, 2, 5]


def test_weights_of_rows_and_positions(path):
    beside(path, ".weight", 1, 2, 0, 0.5, 1)
    beside(path, ".position", 1, 2, 3, 1, 2)
    data = linrank.load(path)
    assert data.weight.tolist() == [1, 2, 0, 0.5, 1]
    assert data.position.tolist() == [1, 2, 3, 1, 2]


def test_the_weight_of_a_query_is_that_of_its_pairs(path):
    beside(path, ".group", 2, 3)
    beside(path, ".weight", 4, 9)
    data = linrank.load(path)
    assert data.weight.tolist() == [2, 2, 3, 3, 3]
    by_query = papers.RankSVM(tol=1e-8).fit(
        data.X, data.y, qid=data.qid, query_weight=np.array([4, 4, 9, 9, 9])
    )
    by_row = papers.RankSVM(tol=1e-8).fit(data.X, data.y, qid=data.qid, sample_weight=data.weight)
    np.testing.assert_allclose(by_row.coef_, by_query.coef_, rtol=1e-6)


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({".query": [2, 2]}, "its 2 queries have 4 rows together, .* has 5"),
        ({".query": [2, 3], ".group": [2, 3]}, "query and .*group both tell the queries"),
        ({".query": [5, 0]}, r"\.query:2: 0 is no number of rows"),
        ({".query": [2.5, 2.5]}, r"\.query:1: 2.5 is no number of rows"),
        ({".query": [2, "x"]}, r"\.query:2: expected one number, got 'x'"),
        ({".weight": [1, 1]}, "2 weights for the 5 rows and 1 queries"),
        ({".weight": [1, 1, 1, -1, 1]}, r"\.weight:4: the weight -1 is below 0"),
        ({".weight": [1, 1, 1, "nan", 1]}, r"\.weight:4: expected one number"),
        ({".position": [1, 1]}, "2 positions for the 5 rows"),
    ],
)
def test_faults(path, files, message):
    for ending, numbers in files.items():
        beside(path, ending, *numbers)
    with pytest.raises(DataFormatError, match=message):
        linrank.load(path)


def test_what_the_data_say_themselves_is_not_said_beside(tmp_path):
    text = tmp_path / "t.csv"
    text.write_text("label,qid,sample_weight,position,a\n1,1,1,1,2\n0,1,1,2,3\n")
    for ending, numbers in ((".query", [2]), (".weight", [1, 1]), (".position", [1, 2])):
        beside(text, ending, *numbers)
        with pytest.raises(DataFormatError, match="sidecars=False"):
            linrank.load(text)
        text.with_name(text.name + ending).unlink()
    assert linrank.load(text).n_rows == 2


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("sizes", ["1e300\n", "9223372036854775807\n9223372036854775807\n6\n"])
def test_sizes_that_no_integer_holds(path, sizes):
    path.with_name(f"{path.name}.query").write_text(sizes)
    with pytest.raises(DataFormatError, match=r"query:1: .* is no number of rows of a query"):
        linrank.load(path)


def read(text, **options):
    return load_preferences(io.BytesIO(text.encode()), **options)


def test_columns_comments_and_blank_lines():
    found = read("# winner loser\n\n3 1\r\n  2\t0 0.25 # why\n10 4 1e-3\n7 0 +2.", n_rows=11)
    assert found.pairs.tolist() == [[3, 1], [2, 0], [10, 4], [7, 0]]
    assert found.weight.tolist() == [1.0, 0.25, 0.001, 2.0]
    assert found.lines.tolist() == [3, 4, 5, 6]


@given(
    st.lists(
        st.tuples(
            st.integers(0, 10**17),
            st.integers(1, 10**6),
            st.none() | st.floats(0.0, 1e300, allow_nan=False),
        ),
        max_size=30,
    )
)
def test_what_is_written_is_read(pairs):
    pairs = [*pairs, (0, 1, 1.0)]
    found = read("\n".join(f"{i} {i + d}{'' if w is None else f' {w!r}'}" for i, d, w in pairs))
    assert found.pairs.tolist() == [[i, i + d] for i, d, _ in pairs]
    weight = [1.0 if w is None else w for _, _, w in pairs]
    assert (found.weight is None) == (weight == [1.0] * len(weight))
    assert found.weight is None or found.weight.tolist() == weight


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("1", "expected 'winner loser [weight]', got 1 column"),
        ("1 2 3 4", "expected 'winner loser [weight]', got 4 columns"),
        ("x 2", "the winner is 'x', not a row number (0, 1, 2, ...)"),
        ("1 2.0", "the loser is '2.0', not a row number"),
        ("1_0 2", "the winner is '1_0', not a row number"),
        ("٣ 2", "the winner is '٣', not a row number"),
        ("1 9", "there is no row '9' for the loser; the data have rows 0 to 8"),
        ("9" * 50 + " 1", "there is no row '" + "9" * 40 + "...' for the winner"),
        ("4 4", "row 4 is compared with itself"),
        ("4 5 -1", "the weight is '-1'; weights are finite numbers >= 0"),
        ("4 5 nan", "the weight is 'nan'"),
        ("4 5 0x1", "the weight is '0x1'"),
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


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no preferences; expected lines"),
        ("# nothing\n\n", "no preferences; expected lines"),
        ("0 1 0\n1 0 0.0\n", "all weights are zero"),
    ],
)
def test_text_without_preferences_is_an_error(text, message):
    with pytest.raises(DataFormatError, match=message):
        read(text)


# ---- the command line ---------------------------------------------------------------------------

DATA = make_ranking(n_queries=8, n_features=5, random_state=4)
RNG = np.random.default_rng(0)
PAIRS = RNG.integers(0, DATA.n_rows, (4000, 2))
PAIRS = PAIRS[(np.diff(DATA.qid[PAIRS])[:, 0] == 0) & (PAIRS[:, 0] != PAIRS[:, 1])]
WEIGHT = RNG.integers(1, 5, len(PAIRS)) / 2
LISTED = "".join(
    f"{i} {j} {w}\n" for (i, j), w in zip(PAIRS.tolist(), WEIGHT.tolist(), strict=True)
)
TRAIN = "train {data} {model} -e 1e-10 --preferences"


@pytest.fixture
def work(tmp_path):
    """Paths of the data, of preferences between rows of its queries, and of a model."""
    (tmp_path / "pairs.txt").write_text(LISTED)
    data = write_svmlight(tmp_path / "data.txt", DATA)
    return {"data": data, "listed": tmp_path / "pairs.txt", "model": tmp_path / "model.json"}


@pytest.mark.parametrize("with_labels", [True, False])
def test_training_equals_fit_pairs(work, with_labels, cli):
    options = [] if with_labels else ["--no-labels"]
    flags = papers.flags("--scale", "standard", "--json", *options)
    told, model = cli(f"{TRAIN} {{listed}}", *flags, **work), linrank.load_model(work["model"])
    own = {"pair_weight": WEIGHT, "qid": DATA.qid, "y": DATA.y if with_labels else None}
    ranker = RankSVM(tol=1e-10, scale="standard").fit_pairs(DATA.X, PAIRS, **own)
    assert_allclose(model.coef, ranker.coef_, rtol=1e-7, atol=1e-9)
    report = told.json["data"]
    assert report["preferences"] == len(PAIRS) == model.training["n_preferences"]
    assert report["pairs"] == (DATA.queries.n_pairs if with_labels else 0)
    assert f"{len(PAIRS):,} preferences" in told.err


def test_compressed_and_standard_input(work, monkeypatch, cli):
    cli(f"{TRAIN} {{listed}} -q", **work)
    plain = linrank.load_model(work["model"]).coef
    packed = work["listed"].with_suffix(".txt.gz")
    packed.write_bytes(gzip.compress(LISTED.encode()))
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(LISTED.encode())))
    for source in (packed, "-"):
        cli(f"{TRAIN} {source} -q", **work)
        assert_array_equal(linrank.load_model(work["model"]).coef, plain)


def test_across_queries_must_be_meant(work, cli):
    last = DATA.n_rows - 1
    work["listed"].write_text(f"1 0\n\n0 {last}\n")
    err = cli(f"{TRAIN} {{listed}} -q", status=1, **work).err
    assert f"pairs.txt:3: it prefers row 0 of query 0 to row {last} of query 7" in err
    assert "--across-queries" in err
    cli(f"{TRAIN} {{listed}} -q --across-queries", **work)


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        ("{data} {model} --no-labels", 2, "needs --preferences FILE"),
        ("{data} {model} --across-queries", 2, "needs --preferences FILE"),
        ("- {model} --preferences -", 2, "only one of the files"),
        # Told before the data are read.
        ("/none {model} --preferences /nowhere/pairs", 1, "/nowhere/pairs: No such file"),
        ("{data} {listed} --preferences {listed}", 1, "is read and would be overwritten"),
    ],
)
def test_what_the_command_refuses(work, arguments, status, message, cli):
    assert message in cli(f"train {arguments}", status=status, **work).err
