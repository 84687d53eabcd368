"""The kernels compile for a card, also where there is none."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "core" / "cuda"


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="needs the compiler of CUDA")
@pytest.mark.parametrize("file", sorted(FOLDER.glob("*.cu")), ids=lambda file: file.name)
def test_kernels_compile(file, tmp_path):
    asked = ["nvcc", "-std=c++17", "-arch=sm_90", "-cubin", "-Werror", "all-warnings"]
    done = subprocess.run(
        [*asked, "-o", str(tmp_path / "out"), str(file)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
