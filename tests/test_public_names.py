"""What the package says of itself: its names, its stubs, one version, one list of Pythons."""

from __future__ import annotations

import ast
import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

import linrank


@pytest.mark.parametrize("name", linrank.__all__)
def test_every_public_name_is_there(name):
    assert getattr(linrank, name).__name__.removeprefix("linrank.") == name
    assert name in dir(linrank)


def test_dir_shows_the_public_names_and_nothing_else():
    assert sorted(dir(linrank)) == sorted([*linrank.__all__, "__version__"])


MODULES = [name for name in linrank.__all__ if importlib.util.find_spec(f"linrank.{name}")]


@pytest.mark.parametrize("name", MODULES)
def test_modules_are_attributes_that_nobody_imported(name):
    code = f"import linrank; print(linrank.{name}.__name__, {name!r} in dir(linrank))"
    found = subprocess.check_output([sys.executable, "-c", code], text=True)
    assert found.split() == [f"linrank.{name}", "True"]


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="module 'linrank' has no attribute 'RankSVN'"):
        linrank.RankSVN  # noqa: B018


STUB = Path(__file__).resolve().parent.parent / "src" / "linrank" / "_core.pyi"


def test_the_stub_is_current(tmp_path):
    pytest.importorskip("nanobind")
    fresh = tmp_path / "_core.pyi"
    command = [sys.executable, "-m", "nanobind.stubgen", "-q", "-m", "linrank._core", "-o"]
    subprocess.run([*command, str(fresh)], check=True)
    assert STUB.read_text() == fresh.read_text(), "run `make stub` and commit src/linrank/_core.pyi"


@pytest.mark.parametrize("module", ["methods/parameters.py", "dask/estimators.py"])
def test_type_checkers_see_every_parameter(module):
    # They know a dataclass by ``@dataclass(...)`` alone, not by another name for it: its fields
    # would be missing in the signatures of the estimators that inherit them.
    tree = ast.parse((STUB.parent / module).read_text())
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    decorators = {ast.unparse(one) for node in classes for one in node.decorator_list}
    assert decorators
    assert {one.split("(")[0] for one in decorators} == {"dataclass"}


tomllib = pytest.importorskip("tomllib")  # of Python 3.11
ROOT = Path(__file__).parents[1]
PYPROJECT = (ROOT / "pyproject.toml").read_text()


def minor_versions(pattern: str, text: str) -> list[int]:
    return [int(minor) for minor in re.findall(pattern, text)]


def test_the_version_is_written_once():
    project = tomllib.loads(PYPROJECT)
    assert "version" not in project["project"]
    assert project["project"]["dynamic"] == ["version"]
    (provider,) = project["tool"]["dynamic-metadata"]
    source = provider["input"]
    written = re.findall(r'^__version__ = "(.+)"$', (ROOT / source).read_text(), re.MULTILINE)
    assert written == [linrank.__version__]


def test_the_citation_follows_the_version():
    citation = (ROOT / "CITATION.cff").read_text()
    assert re.findall(r"^version: (.+)$", citation, re.MULTILINE) == [linrank.__version__]


def test_every_list_of_pythons_is_the_same():
    built = minor_versions(r'"cp3(\d+)-\*"', PYPROJECT)
    assert built == minor_versions(r"Python :: 3\.(\d+)", PYPROJECT)
    assert built[0] == minor_versions(r'requires-python = ">=3\.(\d+)"', PYPROJECT)[0]
    releasing = (ROOT / "docs" / "releasing.md").read_text()
    assert minor_versions(r"CPython 3\.(\d+) to", releasing) == built[:1]
    assert minor_versions(r"to 3\.(\d+) on Linux", releasing) == built[-1:]


def test_the_workflow_builds_what_the_docs_promise():
    workflow = (ROOT / ".github" / "workflows" / "wheels.yml").read_text()
    (runners,) = re.findall(r"os: \[(.+)\]", workflow)
    platforms = {re.sub(r"-[\d.]+", "", name) for name in runners.split(", ")}
    assert platforms == {"ubuntu", "ubuntu-arm", "macos"}
    assert "manylinux-aarch64-image" in PYPROJECT
    assert 'archs = ["arm64"]' in PYPROJECT


def test_what_tries_a_wheel_is_there_and_tells_a_wheel_that_does_nothing(monkeypatch, tmp_path):
    command = tomllib.loads(PYPROJECT)["tool"]["cibuildwheel"]["test-command"]
    path = ROOT / command.removeprefix("python {project}/")
    spec = importlib.util.spec_from_file_location("try_wheel", path)
    trial = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(trial)
    monkeypatch.setattr(trial, "COMMANDS", ["--version"])
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(trial.subprocess, "run", lambda *_, **__: None)
    with pytest.raises(FileNotFoundError):
        trial.main()


def test_the_container_has_all_that_a_build_reads():
    copied = re.findall(r"^COPY (?!--)(.+) \S+$", (ROOT / "Dockerfile").read_text(), re.MULTILINE)
    names = {name for line in copied for name in line.split()}
    built_from = {"pyproject.toml", "CMakeLists.txt", "core", "bindings", "src"}
    assert built_from | {"README.md", "LICENSE"} <= names
    kept = (ROOT / ".dockerignore").read_text().splitlines()
    assert {f"!{name}" for name in names} <= set(kept)
