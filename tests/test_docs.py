"""What the README, the guide, the docstrings and the demo show is run, as it is read."""

from __future__ import annotations

import contextlib
import doctest
import importlib
import io
import os
import pkgutil
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import sklearn

import linrank
from cli_files import write_svmlight
from linrank import demo, evaluate, load, load_model
from linrank.cli.main import main

ROOT = Path(__file__).resolve().parent.parent
REFERENCE = (ROOT / "docs" / "reference" / "index.md").read_text()
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCE = re.compile(r"^```(\w+)[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL)
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


def blocks(text: str) -> list[tuple[int, str, str]]:
    """(line, language, code) of every fenced block whose language is run."""
    return [
        (text.count("\n", 0, match.start()) + 2, match[1], match[2])
        for match in FENCE.finditer(text)
        if match[1] in ("python", "sh", "bash", "console")
    ]


def commands(code: str) -> Iterator[str]:
    """The commands of a shell block that begin with `linrank`."""
    for line in code.replace("\\\n", " ").splitlines():
        line = line.removeprefix("$ ")
        if line.startswith(("linrank ", "cat ")) and "linrank " in line:
            yield line


@pytest.fixture
def workplace(tmp_path, monkeypatch):
    """A folder with train.txt, vali.txt and test.txt, and `linrank` on the path of the shell."""
    shape = {"n_queries": 12, "rows_per_query": (4, 12), "n_features": 8, "n_levels": 3}
    for seed, name in enumerate(("train.txt", "vali.txt", "test.txt")):
        write_svmlight(tmp_path / name, linrank.make_ranking(**shape, random_state=seed))
    script = tmp_path / "bin" / "linrank"
    script.parent.mkdir()
    script.write_text(
        f"#!{sys.executable}\nimport sys\nfrom linrank.cli.main import main\nsys.exit(main())\n"
    )
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{script.parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("PYTHONPATH", str(Path(linrank.__file__).resolve().parent.parent))
    monkeypatch.setenv("MPLBACKEND", "Agg")
    monkeypatch.chdir(tmp_path)


def run_python(code: str, where: str, names: dict[str, object]) -> None:
    """Execute a block; one that is a session (>>>) is compared with the output it shows."""
    if ">>>" in code:
        test = doctest.DocTestParser().get_doctest(code, names, where, where, 0)
        report, runner = io.StringIO(), doctest.DocTestRunner(optionflags=FLAGS)
        outcome = runner.run(test, out=report.write, clear_globs=False)
        names.update(test.globs)
        assert outcome.failed == 0, report.getvalue()
    else:
        with contextlib.redirect_stdout(io.StringIO()):
            exec(compile(code, where, "exec"), names)


def run_commands(code: str, where: str) -> None:
    """Run the commands of a block.

    Those that need no shell are run in this process: most of the time of a page went into starting
    interpreters.
    """
    for command in commands(code):
        if set(command) & set("|<>*?$&;`~"):
            shell = ["bash", "-c", f"set -o pipefail; {command}"]
            run = subprocess.run(shell, capture_output=True, text=True)
            status, said = run.returncode, run.stderr
        else:
            error = io.StringIO()
            with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(error):
                status = main(shlex.split(command, comments=True)[1:])
            said = error.getvalue()
        assert status == 0, f"{where}: {command}\n{said}"


PAGES_THAT_RUN = [page for page in PAGES[1:] if blocks(page.read_text())]  # the README: below


@pytest.mark.parametrize("page", PAGES_THAT_RUN, ids=lambda p: str(p.relative_to(ROOT)))
def test_the_page_runs(page, workplace):
    names: dict[str, object] = {"__name__": "__main__"}
    with sklearn.config_context():  # a page that fails leaves its settings to no other test
        for line, language, code in blocks(page.read_text()):
            where = f"{page.name}:{line}"
            if language == "python":
                run_python(code, where, names)
            else:
                run_commands(code, where)


README = ROOT / "README.md"
SHOWN = re.compile(r"^```python\n(.*?)^```\n\n```text\n(.*?)^```", re.MULTILINE | re.DOTALL)
TABLE_OF_README = {  # its rows of linrank, and those of the guide that they are
    "linrank, linear": "`RankSVM()`",
    "linrank, curves": "with curves",
    "linrank, interactions": "with curves and interactions",
    "linrank, `AutoRanker`": "`AutoRanker`",
    "LightGBM, regularized": "LightGBM, regularized",
    "XGBoost, regularized": "XGBoost, regularized",
}


def test_the_readme_runs_in_a_new_folder(workplace, tmp_path):
    """Verbatim, with no file there but those that its own commands write."""
    for path in tmp_path.glob("*.txt"):
        path.unlink()
    text = README.read_text()
    for line, language, code in blocks(text):
        if language != "python":
            run_commands(code, f"README.md:{line}")
            others = {row.split()[0] for row in code.splitlines()} - {"linrank"}
            assert others <= {"pip", "make"}
    (code, shown) = SHOWN.search(text).groups()
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(code, "README.md", "exec"), {"__name__": "__main__"})
    assert out.getvalue() == shown


def test_the_readme_is_short_and_has_its_pictures():
    text = README.read_text()
    assert len(text.split()) <= 900
    pictures = re.findall(r"docs/images/\w+\.png", text)
    assert len(pictures) == 2
    for name in pictures:
        assert 5_000 < (ROOT / name).stat().st_size < 120_000


def cells_by_row(text: str) -> dict[str, list[str]]:
    """The cells of the rows of the first table with MQ2008 in its head."""
    lines = iter(text.splitlines())
    next(line for line in lines if line.startswith("| |") and "MQ2008" in line)
    next(lines)
    rows = [line.strip("| ").split(" | ") for line in iter(lambda: next(lines), "")]
    return {name: cells[:4] for name, *cells in rows}


def test_the_table_of_the_readme_is_that_of_the_guide():
    guide = cells_by_row((ROOT / "docs" / "guide" / "better-rankers.md").read_text())
    shown = cells_by_row(README.read_text())
    assert len(shown) == 9
    assert shown == {name: guide[TABLE_OF_README.get(name, name)] for name in shown}


def test_the_first_pages_show_something_to_run():
    """Both faces, Python and the command line, are in the README and in the quickstart."""
    for page in (ROOT / "README.md", ROOT / "docs" / "guide" / "quickstart.md"):
        found = blocks(page.read_text())
        assert any(language == "python" for _, language, _ in found)
        assert any(list(commands(code)) for _, language, code in found if language != "python")


def module_names() -> list[str]:
    found = pkgutil.walk_packages(linrank.__path__, "linrank.")
    return sorted(["linrank", *(m.name for m in found if m.name != "linrank._core")])


@pytest.mark.parametrize("name", module_names())
def test_docstring_examples(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    outcome = doctest.testmod(importlib.import_module(name), optionflags=FLAGS)
    assert outcome.failed == 0


@pytest.mark.parametrize("name", sorted(linrank.__all__))
def test_every_public_name_is_documented(name):
    assert (getattr(linrank, name).__doc__ or "").strip()
    assert f"\n   {name}\n" in REFERENCE or f"`linrank.{name}`" in REFERENCE


@pytest.mark.parametrize("name", re.findall(r"^   ([\w.]+)$", REFERENCE, re.MULTILINE))
def test_every_entry_of_the_reference_exists(name):
    assert pkgutil.resolve_name(f"linrank.{name}") is not None


def test_the_layout_is_that_of_the_folders():
    """CONTRIBUTING.md names every folder of the package and every module at its root, no other."""
    layout = (ROOT / "CONTRIBUTING.md").read_text().split("```text\n")[1].split("```")[0]
    package = layout.split("src/linrank/\n")[1].split("tests/ ")[0]
    root = ROOT / "src" / "linrank"
    folders = {path.parent.name for path in root.glob("*/__init__.py")}
    named = set(re.findall(r"(\w+)/", package))
    assert folders - named == set()
    assert named - folders - {"tables", "write", "store"} == set()
    entries = {"__init__", "__main__", "demo", "onnx"}  # ways in, with nothing behind them
    modules = {path.stem for path in root.glob("*.py")} - entries
    assert modules - set(re.findall(r"\w+", package)) == set()


def test_it_learns_and_leaves_what_it_names(tmp_path, capsys):
    folder = tmp_path / "out"
    assert demo.main([str(folder)]) == 0
    out, err = capsys.readouterr()
    shown = re.findall(r"^\$ linrank (\w+) ", err, re.MULTILINE)
    assert shown == [command.split()[0] for command in demo.COMMANDS]
    assert "above the minimum: certified by the dual" in err
    names = "random (baseline)", "best-feature", "ranksvm", "curves"
    mean = {name: re.search(rf"^{re.escape(name)} +(0\.\d+)", out, re.MULTILINE) for name in names}
    random, single, learnt, curved = (float(mean[name][1]) for name in names)
    assert random < single - 0.1 < single < learnt < curved
    assert f"see {folder / 'report.html'}" in out
    page, test = (folder / "report.html").read_text(), load(folder / "test")
    assert page.count("<svg") == 6
    assert "clicks_30d" in page
    scores = load_model(folder / "model.json").predict(test)
    assert evaluate(test.y, scores, qid=test.qid, metrics="ndcg@10")["ndcg@10"] > single


@pytest.mark.usefixtures("plain")
def test_without_matplotlib_it_says_so_and_goes_on(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(demo, "COMMANDS", demo.COMMANDS[-1:])
    assert demo.main([str(tmp_path)]) == 0
    assert "pip install matplotlib" in capsys.readouterr().err
    page = (tmp_path / "report.html").read_text()
    assert "<svg" not in page
    assert "pip install matplotlib" in page


def test_a_command_that_fails_ends_it(tmp_path, monkeypatch):
    monkeypatch.setattr(demo, "COMMANDS", ("inspect {}/none", *demo.COMMANDS))
    assert demo.main([str(tmp_path)]) == 1
    assert not (tmp_path / "report.html").exists()


def test_a_file_in_the_place_of_the_folder_is_told(tmp_path, capsys):
    (tmp_path / "file").write_text("")
    with pytest.raises(SystemExit):
        demo.main([str(tmp_path / "file")])
    assert "is a file; name a folder" in capsys.readouterr().err


def test_a_folder_with_files_of_others_is_left_alone(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(demo, "COMMANDS", ())
    (tmp_path / "own" / "train").mkdir(parents=True)
    with pytest.raises(SystemExit):
        demo.main([str(tmp_path / "own")])
    assert "own has other files in it; name a new folder" in capsys.readouterr().err
    assert list((tmp_path / "own" / "train").iterdir()) == []
    for _ in range(2):  # its own folder takes it again
        assert demo.main([str(tmp_path / "made")]) == 0
