"""The scripts that measure the papers again: all listed, all with a page, all told of."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from real_data import real_file

pytest.importorskip("threadpoolctl")
ROOT = Path(__file__).resolve().parent.parent
FOLDERS = [str(ROOT), str(ROOT / "benchmarks")]
sys.path += FOLDERS
try:
    from reproduce import cells, official, page, paper
    from reproduce import run as command
finally:
    for folder in FOLDERS:
        sys.path.remove(folder)

SCRIPTS = {name: (of, script) for name, of, script in paper.scripts()}
RESULTS = ROOT / "reproduce" / "results"
DOCS = (ROOT / "docs" / "reproduction.md").read_text(encoding="utf-8")


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(ROOT / "reproduce" / "run.py"), *arguments],
        capture_output=True,
        text=True,
    )


def verdict(text: str) -> str:
    found = re.search(r"^Verdict: \*\*(.+)\*\*$", text, re.MULTILINE)
    assert found is not None
    return found.group(1)


def test_every_module_of_a_paper_is_listed_or_used():
    """A file with ``reproduce(`` that no Script names would never run."""
    for of in paper.papers():
        folder = ROOT / "reproduce" / of.folder
        found = {p.stem for p in folder.glob("*.py") if "\ndef reproduce(" in p.read_text("utf-8")}
        assert found == {script.module for script in of.scripts}


@pytest.mark.parametrize("name", SCRIPTS)
def test_every_script_has_a_page_with_a_verdict(name):
    text = (RESULTS / f"{name}.md").read_text(encoding="utf-8")
    assert verdict(text) in page.VERDICTS
    assert "quick run" not in text
    for heading in ("## Numbers", "## Differences in data and protocol", "## Measured"):
        assert heading in text
    assert f"run.py {name}`" in text
    for link in re.findall(r"!\[.*?\]\((.+?)\)", text):
        assert (RESULTS / link).exists(), link


def test_no_page_is_left_over():
    assert {path.stem for path in RESULTS.glob("*.md")} == set(SCRIPTS)


@pytest.mark.parametrize("name", SCRIPTS)
def test_the_documentation_tells_the_verdict_of_the_page(name):
    row = next(line for line in DOCS.splitlines() if line.startswith(f"| `{name}` |"))
    told = [cell.strip() for cell in row.split("|")][3]
    assert told == verdict((RESULTS / f"{name}.md").read_text(encoding="utf-8"))


def test_the_published_accuracy_of_ranksvm_is_reached():
    """82.70 % within 0.2, SVR about half a point lower, boosting about even: on the kept page."""
    text = (RESULTS / "lee-lin-table-6.md").read_text(encoding="utf-8")
    rows = [
        [cell.strip() for cell in line.split("|")[1:-1]]
        for line in text.splitlines()
        if line.startswith("| MQ2008 ")
    ]
    accuracy = {row[1]: float(row[2]) for row in rows if float(row[2]) > 1}
    assert accuracy["L2-loss RankSVM"] == pytest.approx(82.70, abs=0.2)
    assert accuracy["L2-loss RankSVM"] - accuracy["L2-loss SVR"] == pytest.approx(0.53, abs=0.25)
    assert accuracy["GBDT"] == pytest.approx(accuracy["L2-loss RankSVM"], abs=0.25)


def test_the_list_names_all():
    done = run("--list")
    assert done.returncode == 0
    assert [line.split()[0] for line in done.stdout.splitlines()] == list(SCRIPTS)


def test_an_unknown_name_is_refused():
    done = run("lee-lin-table-99")
    assert done.returncode == 2
    assert "lee-lin-table-99" in done.stderr
    assert "--list" in done.stderr


@pytest.mark.slow
def test_a_quick_run_writes_where_it_is_told(tmp_path):
    real_file("mq2008/S1.txt.xz")
    done = run("--quick", "--out", str(tmp_path), "lee-lin-table-5")
    assert done.returncode == 0, done.stderr
    text = (tmp_path / "lee-lin-table-5.md").read_text(encoding="utf-8")
    assert "quick run" in text
    assert "| MQ2008 | L2-loss RankSVM | 82.7" in re.sub(" +", " ", text)


def test_a_new_verdict_goes_into_the_documentation(tmp_path):
    docs = tmp_path / "reproduction.md"
    docs.write_text("| `a-table-1` | this | VERDICT | words |\n| `a-table-10` | that | holds | |\n")
    command.update_verdict(docs, "a-table-1", "holds in part")
    assert docs.read_text() == (
        "| `a-table-1` | this | holds in part | words |\n| `a-table-10` | that | holds | |\n"
    )


# ---- pages ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("holds", "expected"),
    [
        ([True, True], "holds"),
        ([True, False], "holds in part"),
        ([False, None], "does not hold"),
        ([True, None], "holds"),
    ],
)
def test_the_verdict_follows_from_the_claims(holds, expected):
    claims = [page.Claim("said", it, "found") for it in holds]
    assert page.Page("Table 1", claims, [], []).verdict == expected


def test_numbers_beside_the_papers():
    assert page.against(82.714, 82.7, 2) == ("82.71", "82.70", "+0.01")
    assert page.against(None, 0.5, 4) == ("-", "0.5000", "-")


@pytest.mark.parametrize(
    ("cell", "expected"),
    [("1.65 (1.52–2.07)", 1.65), ("2.1e+03x", 2100), ("1,000,000", 1e6), (0.25, 0.25), ("-3", -3)],
)
def test_the_first_number_of_a_cell(cell, expected):
    assert cells.number(cell) == expected


def test_cells_without_a_number_and_goals_not_reached():
    assert np.isnan(cells.number("never"))
    assert cells.seconds("-") == cells.seconds(">= 20") == np.inf
    assert cells.seconds("0.5") == 0.5


# ---- official files ---------------------------------------------------------


def test_official_files_are_found_and_absent_ones_are_none(tmp_path, monkeypatch):
    import lzma

    monkeypatch.setattr(official.problems, "DATA", tmp_path)
    assert official.folds("MQ2007") is None
    folder = tmp_path / "MQ2007" / "Fold1"
    folder.mkdir(parents=True)
    text = b"2 qid:1 1:0.5 2:1\n0 qid:1 1:0.25 2:0\n"
    (folder / "train.txt").write_bytes(text)
    (folder / "vali.txt").write_bytes(text)
    assert official.folds("MQ2007") is None  # a part is missing
    (folder / "test.txt.xz").write_bytes(lzma.compress(text))
    parts = official.folds("MQ2007")
    assert parts is not None
    assert list(parts) == ["train", "vali", "test"]
    np.testing.assert_array_equal(parts["test"].y, [2, 0])


def test_features_are_scaled_by_the_training_part():
    from linrank.data.dataset import Dataset

    train = Dataset.of(np.array([[0.0, 5.0], [4.0, 5.0]]), [0, 1])
    test = Dataset.of(np.array([[8.0, 7.0]]), [0])
    scaled = official.unit_range({"train": train, "test": test})
    np.testing.assert_allclose(scaled["train"].X, [[0, 0], [1, 0]])
    np.testing.assert_allclose(scaled["test"].X, [[2, 0]])


def test_every_fourth_query_validates():
    from linrank.data.dataset import Dataset

    qid = np.repeat([7, 3, 9, 1, 5], 2)
    data = Dataset.of(np.arange(10.0)[:, None], np.tile([0, 1], 5), qid=qid)
    train, vali = official.split_off(data)
    assert set(vali.qid) == {1}
    assert set(train.qid) == {7, 3, 9, 5}
