"""The house rules that a machine can check: who may import whom, and what the core may know."""

from __future__ import annotations

import ast
import functools
import graphlib
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "linrank"
CORE = sorted((ROOT / "core").rglob("*.[ch]pp"))

# Part -> the parts that it may import. A part is a module or a package directly below linrank.
# The arrows go one way: bytes -> data -> loss -> objective -> solver -> model -> scores -> shells.
GROUND = {"_core", "checks", "durable", "errors", "inner_product", "json_text", "lazy"}
GROUND |= {"memory", "nearest", "options", "scratch", "threads"}
DATA = GROUND | {"data"}
TRAINING = DATA | {
    "bounds",
    "pairs",
    "losses",
    "risk",
    "objective",
    "published",
    "sampling",
    "solvers",
    "problem",
    "planning",
    "ranksvm",
}
SAVED = TRAINING | {"scaling", "missing", "model_checks", "model_file", "provenance", "kernels"}
SAVED |= {"kernel_contents", "kernel_model_checks", "kernel_scores"}
MODEL = SAVED | {"model", "kernel_model"}
ALLOWED: dict[str, set[str]] = {
    "checks": set(),
    "durable": {"scratch"},
    "errors": set(),
    "grids": set(),
    "inner_product": {"_core"},
    "json_text": set(),
    "lazy": set(),
    "memory": {"checks"},
    "nearest": set(),
    "options": set(),
    "eval_sets": DATA,
    "scratch": set(),
    "seeds": set(),
    "tables": set(),
    "text_features": GROUND | {"data"},
    "threads": set(),
    "reference": DATA,
    "data": GROUND,
    "store": DATA,
    "tabular": DATA,
    "writing": DATA | {"tabular"},
    "loading": DATA | {"store", "tabular"},
    "converting": DATA | {"loading", "store", "tabular", "writing"},
    "clicks": DATA,
    "datasets": DATA,
    "metrics": DATA,
    "comparison": DATA | {"metrics", "seeds", "tables"},
    "pairs": DATA,
    "margins": DATA,
    "layering": DATA | {"margins", "pairs"},
    "bounds": DATA,
    "losses": DATA | {"layering", "pairs"},
    "risk": DATA | {"losses"},
    "objective": DATA | {"bounds", "losses"},
    "published": DATA | {"pairs", "losses"},
    "solvers": DATA | {"bounds", "losses", "objective"},
    "sampling": DATA,
    "problem": TRAINING - {"problem", "planning", "ranksvm"},
    "planning": TRAINING - {"planning", "ranksvm"},
    "ranksvm": TRAINING - {"ranksvm"},
    "scaling": DATA,
    "missing": DATA,
    "provenance": DATA,
    "model_file": DATA,
    "model_checks": DATA | {"model_file", "pairs"},
    "kernel_model_checks": DATA | {"kernels"},
    "kernel_scores": DATA | {"kernels"},
    "kernel_contents": DATA | {"kernels", "model_file", "scaling"},
    "kernel_model": SAVED,
    "export": DATA | {"missing", "scaling"},
    "model": SAVED | {"export", "kernel_model"},
    "column_tallies": DATA,
    "check_findings": set(),
    "checking": MODEL | {"check_findings", "column_tallies"},
    "weights": DATA,
    "folds": DATA,
    "pathwise": TRAINING,
    "path": TRAINING | {"scaling", "grids", "pathwise"},
    "model_scores": MODEL | {"metrics"},
    "monitor": MODEL | {"eval_sets", "metrics"},
    "validation": MODEL | {"metrics", "folds", "model_scores", "monitor"},
    "tuning": MODEL | {"metrics", "path", "validation"},
    "stochastic": DATA | {"pairs", "losses", "risk", "objective", "solvers"},
    "domination": TRAINING | {"layering", "margins", "scaling", "weights", "grids", "seeds"},
    "lowrank": TRAINING,
    "chunks": TRAINING
    | {"layering", "margins", "scaling", "weights", "domination", "store", "pathwise"},
    "chunked_path": MODEL | {"chunks", "path"},
    "paths": MODEL
    | {"chunks", "chunked_path", "path", "seeds", "store", "store_fitting", "weights"},
    "chunked_tuning": MODEL
    | {"chunks", "chunked_path", "folds", "metrics", "model_scores", "path", "tuning"}
    | {"validation"},
    "kernels": TRAINING,
    "duals": MODEL | {"lowrank", "seeds", "weights"},
    "domination_tuning": MODEL | {"metrics", "layering", "domination", "validation"},
    "domination_ranker_cv": MODEL
    | {"eval_sets", "metrics", "monitor", "weights", "seeds", "linear_ranker"}
    | {"domination", "domination_tuning", "validation"},
    "store_descent": DATA | {"scaling", "store", "stochastic"},
    "ranker": DATA | {"metrics"},
    "model_selection": DATA | {"metrics", "ranker", "folds"},
    "fitted_ranker": TRAINING | {"metrics", "ranker", "store"},
    "store_fitting": MODEL | {"monitor", "chunks", "store"},
    "linear_ranker": MODEL | {"export", "monitor", "fitted_ranker", "seeds", "stochastic"},
    "sklearn_callbacks": MODEL | {"store"},
    "query_scaler": DATA | {"scaling"},
    "estimators": MODEL
    | {"monitor", "weights", "linear_ranker", "sklearn_callbacks"}
    | {"store", "store_fitting"},
    "ranksvm_cv": MODEL
    | {"eval_sets", "metrics", "monitor", "weights", "linear_ranker"}
    | {"path", "tuning", "validation"}
    | {"chunks", "chunked_path", "chunked_tuning", "store", "store_fitting"},
    "stream_ranker": MODEL | {"linear_ranker", "seeds", "stochastic"},
    "sgd_ranker": MODEL
    | {"monitor", "weights", "seeds", "stochastic"}
    | {"sklearn_callbacks", "store", "store_descent", "store_fitting", "stream_ranker"},
    "domination_ranker": MODEL
    | {"monitor", "weights", "seeds", "linear_ranker"}
    | {"domination", "sklearn_callbacks", "store", "store_fitting"},
    "lowrank_ranker": MODEL | {"monitor", "weights", "seeds", "linear_ranker"},
    "factorized_ranksvm": MODEL | {"sklearn_callbacks", "monitor", "lowrank", "lowrank_ranker"},
    "regularized_ranksvm": MODEL | {"sklearn_callbacks", "monitor", "lowrank", "lowrank_ranker"},
    "kernel_training": MODEL | {"kernels", "kernel_model"},
    "kernel_ranker": MODEL | {"fitted_ranker", "kernel_model"},
    "kernel_folds": MODEL | {"validation"},
    "kernel_grids": DATA | {"grids", "kernels", "scaling"},
    "kernel_tuning": MODEL
    | {"metrics", "model_scores", "validation", "kernel_folds", "kernel_training"},
    "kernel_ranksvm_cv": MODEL
    | {"eval_sets", "metrics", "monitor", "weights", "seeds", "validation"}
    | {"kernel_grids", "kernel_ranker", "kernel_training", "kernel_tuning"},
    "kernel_ranksvm": MODEL
    | {"monitor", "weights", "seeds", "kernel_ranker", "kernel_training", "sklearn_callbacks"},
    "sgd_tuning": MODEL | {"metrics", "grids", "stochastic", "validation"},
    "sgd_ranker_cv": MODEL
    | {"eval_sets", "metrics", "weights", "linear_ranker", "seeds", "stochastic"}
    | {"sgd_tuning", "validation"},
    "topics": MODEL | {"metrics", "monitor", "linear_ranker", "margins", "seeds"},
    "per_query_ranker": MODEL | {"metrics", "linear_ranker", "seeds", "topics"},
    "onnx": MODEL
    | {"export", "linear_ranker", "estimators", "ranksvm_cv", "sgd_ranker", "sgd_ranker_cv"}
    | {"domination_ranker", "domination_ranker_cv", "factorized_ranksvm", "regularized_ranksvm"},
    "plot_axes": set(),
    "plot_text": {"tables"},
    "pair_plots": {"plot_axes"},
    "path_plots": {"plot_axes", "plot_text"},
    "weight_plots": {"plot_axes", "plot_text"},
    "query_plots": {"plot_axes", "plot_text"},
    "comparison_plots": {"plot_axes", "plot_text"},
    "grid_plots": {"plot_axes"},
    "rank_plots": {"plot_axes"},
    "plots": MODEL
    | {"grid_plots", "pair_plots", "path_plots", "rank_plots", "plot_axes"}
    | {"weight_plots", "query_plots", "comparison_plots", "plot_text"},
    "displays": DATA
    | {"metrics", "plots", "plot_axes", "plot_text"}
    | {"weight_plots", "query_plots", "comparison_plots"},
    "reporting": MODEL
    | {"comparison", "displays", "metrics", "path", "tables", "tuning", "validation"},
    "contest": MODEL
    | {"metrics", "comparison", "tables", "seeds", "pathwise", "stochastic"}
    | {"domination", "lowrank", "kernel_training"},
    # The command line builds objects of the parts; scikit-learn's faces are not on its path.
    "cli": MODEL
    | {"metrics", "plots", "path", "tuning", "validation"}
    | {"sgd_tuning", "stochastic", "domination", "domination_tuning", "lowrank"}
    | {"kernel_grids", "kernel_model", "kernel_training", "kernel_tuning"}
    | {"check_findings", "checking", "comparison", "contest", "reporting", "tables"}
    | {"chunks", "converting", "dask", "export", "loading", "store", "store_descent"}
    | {"tabular", "writing"},
    "__main__": {"cli"},
    "demo": MODEL | {"metrics", "datasets", "reporting"},
    "dask": MODEL
    | {"chunked_path", "chunked_tuning", "chunks", "domination_ranker", "estimators"}
    | {"linear_ranker", "margins", "metrics", "monitor", "path", "ranksvm_cv"}
    | {"seeds", "stochastic", "store", "tuning", "validation", "weights"},
}
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
    if part not in ALLOWED:
        return [f"{name}: the part {part!r} is not in the table ALLOWED"]
    found = []
    for node in ast.walk(tree):
        for target in imported(node, name, is_package):
            if part_of(target) not in ALLOWED[part] | {part}:
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
        ("linrank.losses.squared_hinge", "import linrank.solvers.newton"),
        ("linrank.metrics.ndcg", "def f():\n    from linrank.estimators import RankSVM"),
        ("linrank.cli.train", "from linrank.estimators import RankSVM"),
        ("linrank.solvers.newton", "from linrank import RankSVM"),
        ("linrank.nowhere", "import numpy"),
    ],
)
def test_an_import_against_the_direction_is_found(name, source):
    assert len(violations(name, ast.parse(source), is_package=False)) == 1


def test_the_table_has_no_cycle():
    """Mutual permission would allow what the one direction forbids."""
    tuple(graphlib.TopologicalSorter(ALLOWED).static_order())


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


def test_the_table_permits_nothing_that_nobody_does():
    """Beside the layers, which a part may build on as a whole."""
    used: dict[str, set[str]] = {"cli": {"lowrank"}}  # imported by the name of the method
    for name in MODULES:
        for node in ast.walk(tree_of(name)):
            targets = imported(node, name, name in PACKAGES)
            used.setdefault(part_of(name), set()).update(map(part_of, targets))
    idle = {part: allowed - MODEL - used[part] for part, allowed in ALLOWED.items()}
    assert {part: names for part, names in idle.items() if names} == {}


def includes(path: Path) -> list[str]:
    return re.findall(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]', path.read_text(), re.MULTILINE)


@pytest.mark.parametrize("path", CORE, ids=lambda p: p.name)
def test_core_knows_neither_python_nor_streams(path):
    banned = re.compile(r"Python\.h|nanobind|pybind|numpy|iostream|fstream|omp\.h")
    assert [i for i in includes(path) if banned.search(i)] == []


@pytest.mark.parametrize("path", CORE, ids=lambda p: p.name)
def test_threads_start_in_one_place(path):
    if path.name == "parallel.hpp":
        assert "thread" in includes(path)
    else:
        assert {"thread", "future"} & set(includes(path)) == set()


# Where files of a scratch folder are written, which nobody else sees.
OF_A_SCRATCH = {"cli/models.py", "contest/process.py", "contest/boosting.py", "contest/own.py"}
OF_A_SCRATCH |= {"export/artefact.py", "store/folder.py", "store/sources.py", "store/spill.py"}
WRITES = re.compile(
    r"""open\([^)\n]*["'][wxa]b?\+?b?["']|os\.(replace|rename)\(|mkstemp|mkdtemp|TemporaryDirectory"""
)


def test_files_are_written_in_one_way():
    """By `durable.replacing`: whole or not there, under no name that can be foreseen."""
    found = set()
    for path in PACKAGE.rglob("*.py"):
        code = re.sub(r"(?m)^ *>>>.*|open\(os\.devnull.*", "", path.read_text()).splitlines()
        if any(WRITES.search(line) for line in code):
            found.add(path.relative_to(PACKAGE).as_posix())
    assert found == OF_A_SCRATCH | {"durable.py"}


def test_nothing_has_a_name_that_says_nothing():
    folders = ("src", "core", "bindings", "tests", "benchmarks", "reproduce")
    names = {p for folder in folders for p in (ROOT / folder).rglob("*")}
    assert [str(p) for p in names if p.stem.lower() in FORBIDDEN_NAMES] == []


@pytest.mark.parametrize("statement", ["import linrank", "import linrank.cli.main"])
def test_the_command_line_starts_without_scipy_and_scikit_learn(statement):
    """Importing scikit-learn alone takes longer than training on a small set."""
    code = f"{statement}; import sys; print(*sorted({{m.split('.')[0] for m in sys.modules}}))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    heavy = {"scipy", "sklearn", "pandas", "polars", "pyarrow", "matplotlib", "joblib"}
    heavy |= {"dask", "distributed"}
    assert heavy & set(run.stdout.split()) == set()
