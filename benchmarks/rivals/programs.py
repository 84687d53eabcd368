"""Programs of other people that you have built: found in a folder, run on files, models read back.

``python benchmarks/run.py race --rivals FOLDER``, or ``make bench RIVALS=FOLDER``; the environment
variable LINRANK_RIVALS does the same. FOLDER has, anywhere below, any of

==================  ==================================================================
program             it is
==================  ==================================================================
``train``           of liblinear-ranksvm, ``train -s 8``: L2-loss RankSVM on all pairs
``svm_rank_learn``  of SVM-rank: the hinge on all pairs, by cutting planes
``sofia-ml``        of sofia-ml: stochastic pairwise descent
==================  ==================================================================

Nothing of them is part of linrank, and none is needed: what is not there is skipped with a line.
"""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import dump_svmlight_file

from linrank.data.dataset import Dataset

Array = NDArray[Any]
VARIABLE = "LINRANK_RIVALS"


class Absent(Exception):
    """The program is not in the folder of rivals, or there is no such folder."""


def find(name: str) -> Path:
    """The program of that name below the folder of rivals."""
    folder = os.environ.get(VARIABLE)
    if not folder:
        raise Absent("no folder of rivals; run.py race --rivals FOLDER names one")
    found = sorted(path for path in Path(folder).rglob(name) if os.access(path, os.X_OK))
    if not found:
        raise Absent(f"no program {name} below {folder}")
    return found[0]


def liblinear_ranksvm(data: Dataset, C: float, tol: float, limit: float) -> tuple[float, Array]:
    """Seconds and weights of ``train -s 8``; its stopping rule is ‖∇F(w)‖ <= tol·‖∇F(0)‖."""
    program = find("train")
    with tempfile.TemporaryDirectory() as name:
        rows, model = write_rows(data, Path(name)), Path(name, "model")
        times = []
        for tolerance in (1e9, tol):  # the first only reads and writes
            options = ["-s", "8", "-c", repr(C), "-e", repr(tolerance)]
            times.append(seconds_of([str(program), *options, str(rows), str(model)], limit))
        lines = model.read_text().split("\nw\n")[1].split()
    w = np.array(lines[: data.n_features], dtype=np.float64)
    return max(times[1] - times[0], 0.0), w


def svm_rank(data: Dataset, C: float, tol: float, limit: float) -> tuple[float, Array]:
    """Seconds and weights of ``svm_rank_learn``; its C is that of the sum over all queries."""
    program = find("svm_rank_learn")
    with tempfile.TemporaryDirectory() as name:
        rows, model = write_rows(data, Path(name)), Path(name, "model")
        weight = f"{C * data.queries.n_queries!r}"
        command = [str(program), "-c", weight, "-e", repr(tol), str(rows), str(model)]
        taken = seconds_of(command, limit)
        last = model.read_text().splitlines()[-1]
    w = np.zeros(data.n_features)
    for feature, value in re.findall(r"(\d+):(\S+)", last):
        w[int(feature) - 1] = float(value)
    return taken, w


def write_rows(data: Dataset, folder: Path) -> Path:
    """The data as SVMlight text, from feature 1 on."""
    path = folder / "rows.txt"
    queries = np.unique(data.qid, return_inverse=True)[1]
    dump_svmlight_file(data.X, data.y, str(path), zero_based=False, query_id=queries + 1)
    return path


def seconds_of(command: Sequence[str], limit: float) -> float:
    """Processor seconds of a program."""
    before = children_seconds()
    try:
        subprocess.run(command, check=True, capture_output=True, timeout=limit)
    except subprocess.TimeoutExpired:
        raise Absent(f"{command[0]} took more than {limit:g} s") from None
    return children_seconds() - before


def children_seconds() -> float:
    """Processor seconds of all processes that have ended."""
    times = os.times()
    return times.children_user + times.children_system
