"""``linrank predict -``: answers while the input is open, in bounded memory."""

from __future__ import annotations

import select
import subprocess
import sys

import pytest

from cli_files import write_svmlight
from linrank.cli.main import main
from linrank.data.synthetic import make_ranking

COMMAND = [sys.executable, "-m", "linrank"]


@pytest.fixture(scope="module")
def by_query(files):
    path = str(files["folder"] / "by_query.json")
    assert main(["train", files["train"], path, "--scale", "query", "-q"]) == 0
    return path


def process(*arguments):
    return subprocess.Popen(
        [*COMMAND, "predict", *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        bufsize=0,
    )


def tell(child, lines):
    child.stdin.write("".join(lines).encode())


def answer(child, timeout=300.0):
    """A line of the child, or None where it has nothing to say."""
    ready, _, _ = select.select([child.stdout], [], [], timeout)
    return child.stdout.readline().decode() if ready else None


def end(child):
    child.stdin.close()
    rest = child.stdout.read().decode()
    child.stdout.close()
    assert child.wait(timeout=300) == 0
    return rest


@pytest.mark.parametrize("kind", ["model", "by_query"])
@pytest.mark.parametrize("options", ["", "--trec --topk 3"])
def test_a_stream_has_the_bits_of_the_file(files, by_query, kind, options, cli):
    model = {"model": files["model"], "by_query": by_query}[kind]
    whole = cli(f"predict {files['valid']} {model} {options}").out
    assert whole.count("\n") > 20
    assert cli(f"predict {files['valid']} {model} --stream {options}").out == whole
    child = process("-", model, *options.split())
    with open(files["valid"]) as text:
        tell(child, text)
    assert end(child) == whole


def test_a_row_without_docid_has_its_number_in_the_stream(files, tmp_path, cli):
    data = write_svmlight(tmp_path / "plain.txt", files["valid_data"], docid=False)
    line = f"predict {data} {files['model']} --trec"
    assert cli(f"{line} --stream").out == cli(line).out


def test_every_line_is_answered_before_the_next(files):
    with open(files["valid"]) as text, open(files["scores"]) as scores:
        lines, expected = text.readlines()[:4], scores.readlines()[:4]
    child = process("-", files["model"])
    for line, score in zip(lines, expected, strict=True):
        tell(child, [line])
        assert answer(child) == score
    assert end(child) == ""


def test_a_query_is_answered_when_the_next_one_begins(files, by_query, cli):
    with open(files["valid"]) as text:
        lines = text.readlines()
    whole = cli(f"predict {files['valid']} {by_query}").out.splitlines(keepends=True)
    ids = [line.split()[1] for line in lines]
    n_first = ids.index(next(qid for qid in ids if qid != ids[0]))
    child = process("-", by_query)
    tell(child, lines[: n_first - 1])
    tell(child, lines[n_first - 1 : n_first])
    assert answer(child, 0.3) is None
    tell(child, lines[n_first : n_first + 1])
    assert [answer(child) for _ in range(n_first)] == whole[:n_first]
    tell(child, lines[n_first + 1 :])
    assert end(child) == "".join(whole[n_first:])


def test_memory_does_not_grow_with_the_stream(files):
    data = make_ranking(n_queries=50, n_features=6, random_state=3)
    with open(write_svmlight(files["folder"] / "long.txt", data), "rb") as file:
        text = file.read()
    block = text * (2_000_000 // len(text))
    child = process("-", files["model"], "-o", "/dev/null")

    def peak():
        with open(f"/proc/{child.pid}/status") as status:
            return next(int(s.split()[1]) for s in status if s.startswith("VmHWM"))

    child.stdin.write(block)
    child.stdin.write(block)
    before = peak()
    for _ in range(14):
        child.stdin.write(block)
    after = peak()
    assert end(child) == ""
    assert after - before < 4000  # kB; the 28 MB of text are 13 MB of rows and ids


def test_unknown_features_are_told_once(files, tmp_path, cli):
    path = tmp_path / "wide.txt"
    path.write_text("1 qid:1 1:1 9:5\n1 qid:1 1:1 12:5\n1 qid:2 1:1\n")
    out, err = cli(f"predict {path} {files['model']} --stream")
    assert len(set(out.split())) == 1
    assert err.count("warning") == 1
    assert "wide.txt:2:" in err
    assert "feature 12 is one that the model has not seen: it knows 6" in err


def test_only_models_by_query_need_the_rows_of_a_query_together(files, by_query, tmp_path, cli):
    path = tmp_path / "mixed.txt"
    path.write_text("1 qid:1 1:1\n1 qid:2 1:1\n1 qid:1 1:2\n")
    cli(f"predict {path} {by_query}")
    cli(f"predict {path} {files['model']} --stream")
