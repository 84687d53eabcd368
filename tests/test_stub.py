"""What type checkers are told: the stub of the C++ module, and signatures of estimators."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

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
