"""The house rules that a machine can check: who may import whom, and what the core may know."""

from __future__ import annotations

import ast
import functools
import graphlib
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from cli_files import run_code

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "linrank"
CORE = sorted((ROOT / "core").rglob("*.[ch]pp"))

# The parts of linrank, in layers: a part may import those of the layers above it, and nothing else.
# Data flow one way: bytes -> data -> loss -> objective -> solver -> trainer -> model -> shells.
LAYERS: tuple[set[str], ...] = (
    {"_core", "errors", "choices"},
    {"system"},
    {"data"},
    {"io", "pairs", "export"},
    {"metrics", "clicks"},
    {"losses"},
    {"objective", "displays"},
    {"solvers"},
    {"published"},
    {"ranksvm", "lowrank", "stochastic"},
    {"kernels", "domination"},
    {"models"},
    {"search", "duals"},
    {"parts"},
    {"methods"},
    {"judging"},
    {"reports", "estimators"},
    {"dask", "onnx"},
    {"cli"},
    {"demo", "__main__"},
)
LAYER = {part: level for level, parts in enumerate(LAYERS) for part in parts}
# Scikit-learn's faces are not on the path of the command line, which must start in a blink.
REFUSED = {"cli": {"estimators", "onnx"}}
FORBIDDEN_NAMES = {"utils", "util", "helpers", "helper", "common", "misc", "manager"}


def module_name(path: Path) -> str:
    """The dotted name of a source file below src."""
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(path): path for path in sorted(PACKAGE.rglob("*.py"))}
PACKAGES = {name for name, path in MODULES.items() if path.name == "__init__.py"}
KNOWN = set(MODULES) | {"linrank._core"}


@functools.cache
def tree_of(name: str) -> ast.Module:
    """The syntax tree of a module: three tests ask for each."""
    return ast.parse(MODULES[name].read_text())


def imported(node: ast.AST, name: str, is_package: bool) -> Iterator[str]:
    """The modules of linrank that one import statement of module `name` reaches."""
    if isinstance(node, ast.Import):
        yield from (a.name for a in node.names if a.name.split(".")[0] == "linrank")
    elif isinstance(node, ast.ImportFrom):
        base = node.module or ""
        if node.level:
            anchor = name.split(".")[: None if is_package else -1]
            anchor = anchor[: len(anchor) - (node.level - 1)]
            base = ".".join([*anchor, base] if base else anchor)
        if base.split(".")[0] == "linrank":
            for alias in node.names:
                below = f"{base}.{alias.name}"
                if below in KNOWN:
                    yield below
                elif (base, alias.name) != ("linrank", "__version__"):
                    yield base


def part_of(name: str) -> str:
    """The part that a module belongs to; empty for linrank itself."""
    return [*name.split("."), ""][1]


def violations(name: str, tree: ast.Module, is_package: bool) -> list[str]:
    """What module `name` imports against the direction, as sentences."""
    part = part_of(name)
    if part not in LAYER:
        return [f"{name}: the part {part!r} is in none of LAYERS"]
    found = []
    for node in ast.walk(tree):
        for target in imported(node, name, is_package):
            other = part_of(target)
            is_below = LAYER.get(other, len(LAYERS)) < LAYER[part]
            if other != part and (not is_below or other in REFUSED.get(part, ())):
                found.append(f"{name}:{getattr(node, 'lineno', 0)} imports {target}")
    return found


@pytest.mark.parametrize("name", [n for n in MODULES if n != "linrank"])
def test_imports_follow_the_direction(name):
    assert violations(name, tree_of(name), name in PACKAGES) == []


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("linrank.data.rows", "from linrank.solvers import newton"),
        ("linrank.data.rows", "from ..model import LinearModel"),
        ("linrank.losses.base", "import linrank.solvers.newton"),
        ("linrank.metrics.ndcg", "def f():\n    from linrank.estimators.ranksvm import RankSVM"),
        ("linrank.cli.train", "from linrank.estimators.ranksvm import RankSVM"),
        ("linrank.solvers.newton", "from linrank import RankSVM"),
        ("linrank.nowhere", "import numpy"),
    ],
)
def test_an_import_against_the_direction_is_found(name, source):
    assert len(violations(name, ast.parse(source), is_package=False)) == 1


def test_modules_do_not_import_each_other_in_circles():
    """Imports at module level, those inside functions and TYPE_CHECKING blocks left out."""
    graph = {
        name: {
            target
            for node in tree_of(name).body
            for target in imported(node, name, name in PACKAGES)
            if target != name
        }
        for name in MODULES
    }
    tuple(graphlib.TopologicalSorter(graph).static_order())


def through_own_face(name: str, tree: ast.Module) -> list[str]:
    """The names that a module takes from the face of its own folder, where circles do not show."""
    folder = name.rpartition(".")[0]
    return [
        alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module == folder
        for alias in node.names
        if f"{folder}.{alias.name}" not in KNOWN
    ]


FACED = [n for n, path in MODULES.items() if path.with_name("__init__.pyi").exists()]


@pytest.mark.parametrize("name", [n for n in FACED if n.count(".") > 1 and n not in PACKAGES])
def test_names_of_the_own_folder_come_from_their_modules(name):
    assert through_own_face(name, tree_of(name)) == []


def test_a_name_from_the_face_of_the_own_folder_is_found():
    tree = ast.parse("from linrank.data import Dataset, frames")
    assert through_own_face("linrank.data.scaling", tree) == ["Dataset"]


def test_every_folder_has_its_layer():
    folders = {path.name for path in PACKAGE.iterdir() if (path / "__init__.py").exists()}
    assert folders - set(LAYER) == set()
    assert len([name for name in MODULES if name.count(".") == 1 and name not in PACKAGES]) <= 9


def includes(path: Path) -> list[str]:
    return re.findall(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]', path.read_text(), re.MULTILINE)


@pytest.mark.parametrize("path", CORE, ids=lambda p: p.name)
def test_core_knows_neither_python_nor_streams_and_starts_threads_in_one_place(path):
    banned = re.compile(r"Python\.h|nanobind|pybind|numpy|iostream|fstream|omp\.h")
    assert [i for i in includes(path) if banned.search(i)] == []
    assert bool({"thread", "future"} & set(includes(path))) == (path.name == "parallel.cpp")


# Where files of a scratch folder are written, which nobody else sees.
OF_A_SCRATCH = {"cli/files.py", "export/artefact.py", "io/store/writer.py", "judging/runner.py"}
WRITES = re.compile(
    r"""open\([^)\n]*["'][wxa]b?\+?b?["']|os\.(replace|rename)\(|mkstemp|mkdtemp|TemporaryDirectory"""
)


def test_files_are_written_in_one_way():
    """By `durable.replacing`: whole or not there, under no name that can be foreseen."""
    found = set()
    for path in PACKAGE.rglob("*.py"):
        # A member of an archive is no file of its own.
        none = r"(?m)^ *>>>.*|open\(os\.devnull.*|archive\.open\(.*"
        code = re.sub(none, "", path.read_text()).splitlines()
        if any(WRITES.search(line) for line in code):
            found.add(path.relative_to(PACKAGE).as_posix())
    assert found == OF_A_SCRATCH | {"system/durable.py"}


def test_pickles_measure_and_send_and_are_no_files():
    """Who can write a pickle can run a program here."""
    users = {path for path in PACKAGE.rglob("*.py") if "pickle." in path.read_text()}
    names = {path.relative_to(PACKAGE).as_posix() for path in users}
    assert names == {"judging/candidates.py", "dask/inputs.py"}


def test_nothing_has_a_name_that_says_nothing():
    folders = ("src", "core", "bindings", "tests", "benchmarks", "reproduce")
    names = {p for folder in folders for p in (ROOT / folder).rglob("*")}
    assert [str(p) for p in names if p.stem.lower() in FORBIDDEN_NAMES] == []


@pytest.mark.parametrize("statement", ["import linrank", "import linrank.cli.main"])
def test_the_command_line_starts_without_scipy_and_scikit_learn(statement):
    """Importing scikit-learn alone takes longer than training on a small set."""
    code = f"{statement}; import sys; print(*sorted({{m.split('.')[0] for m in sys.modules}}))"
    heavy = {"numpy", "scipy", "sklearn", "pandas", "polars", "pyarrow", "matplotlib", "joblib"}
    heavy |= {"dask", "distributed"}
    assert heavy & set(run_code(code).split()) == set()
