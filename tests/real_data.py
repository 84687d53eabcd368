"""Where the real data sets are, if they are here at all."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


def real_file(name: str) -> Path:
    """The file ``name`` of the data folder; skips the test where there is none.

    The folder is ``$LINRANK_DATA``, or ``../shared/data`` beside the repository or one above it.
    """
    root = Path(__file__).resolve().parent.parent
    folders = [root.parent / "shared" / "data", root.parent.parent / "shared" / "data"]
    if "LINRANK_DATA" in os.environ:
        folders.insert(0, Path(os.environ["LINRANK_DATA"]))
    for folder in folders:
        if (folder / name).exists():
            return folder / name
    pytest.skip(f"no data set {name}; set LINRANK_DATA to its folder")
