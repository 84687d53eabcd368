"""Where the real data sets are, if they are here at all, and how they are read."""

from __future__ import annotations

import io
import lzma
import os
from pathlib import Path

import pytest

from linrank import Dataset, load


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


def mq2008(*parts: int) -> Dataset:
    """Parts of MQ2008, in one dataset; 1, 2, 3 are the training data of fold 1."""
    text = [lzma.decompress(real_file(f"mq2008/S{k}.txt.xz").read_bytes()) for k in parts]
    return load(io.BytesIO(b"".join(text)))
