"""The committed stub of the C++ module says what the module says."""

from __future__ import annotations

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
