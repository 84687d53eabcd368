"""The judge of `optimum.cpp`, compiled and called: F at given weights, and how low F gets."""

from __future__ import annotations

import ctypes
import functools
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import numpy as np

Real = np.longdouble
_SOURCE = Path(__file__).with_name("optimum.cpp")


def is_able() -> bool:
    """Whether there is a compiler, and long doubles that are longer than doubles."""
    return shutil.which("g++") is not None and np.finfo(Real).eps < 1e-18


@functools.cache
def _library() -> ctypes.CDLL:
    folder = tempfile.mkdtemp(prefix="linrank-law-")
    target = os.path.join(folder, "optimum.so")
    flags = ["-O2", "-std=c++20", "-shared", "-fPIC"]
    subprocess.run(["g++", *flags, str(_SOURCE), "-o", target], check=True)
    library = ctypes.CDLL(target)
    shutil.rmtree(folder)
    return library


def _pointer(a: np.ndarray) -> ctypes.c_void_p:
    return a.ctypes.data_as(ctypes.c_void_p)


def judge_pairs(rows, pairs, weight, loss, candidates, lower=None, upper=None, scale=1):
    """(F at each candidate, the least F found) of ``½‖w‖² + Σ weight l(1 - w·D(x_i - x_j))``.

    ``pairs`` is an array (p, 2) of winners and losers, ``scale`` the diagonal of D.
    """
    rows = np.asarray(rows, dtype=Real)
    n = rows.shape[1]
    keep = np.asarray(weight) > 0
    # Differences first: an offset would cost digits, even here.
    delta = np.ascontiguousarray((scale * (rows[pairs[:, 0]] - rows[pairs[:, 1]]))[keep])
    weight = np.ascontiguousarray(np.asarray(weight, dtype=Real)[keep])
    candidates = np.ascontiguousarray(candidates, dtype=Real)
    ends = [
        np.full(n, default) if given is None else np.ascontiguousarray(given, dtype=np.float64)
        for given, default in ((lower, -np.inf), (upper, np.inf))
    ]
    values, least, best = np.zeros(len(candidates), Real), np.zeros(1, Real), np.zeros(n, Real)
    _library().pair_optimum(
        *(ctypes.c_int64(n), ctypes.c_int64(len(weight)), _pointer(delta), _pointer(weight)),
        *(ctypes.c_int(loss == "squared_hinge"), _pointer(ends[0]), _pointer(ends[1])),
        *(ctypes.c_int64(len(candidates)), _pointer(candidates), _pointer(values)),
        *(_pointer(least), _pointer(best)),
    )
    return values, least[0]


def judge_domination(rows, query, layer, omega, u, penalty, alpha, candidates):
    """The same of ``Σ omega_i log(1 + Σ_(j in D(i)) u_j e^(m_j - m_i)) + alpha·penalty(w)``."""
    rows = np.asarray(rows, dtype=Real)
    rows = np.ascontiguousarray(rows - rows[0])
    n_rows, n = rows.shape
    query, layer = (np.ascontiguousarray(a, dtype=np.int64) for a in (query, layer))
    omega, u = (np.ascontiguousarray(a, dtype=Real) for a in (omega, u))
    candidates = np.ascontiguousarray(candidates, dtype=Real)
    values, least, best = np.zeros(len(candidates), Real), np.zeros(1, Real), np.zeros(n, Real)
    _library().domination_optimum(
        *(ctypes.c_int64(n), ctypes.c_int64(n_rows), _pointer(rows), _pointer(query)),
        *(_pointer(layer), _pointer(omega), _pointer(u), ctypes.c_int(penalty == "l1")),
        *(ctypes.c_double(alpha), ctypes.c_int64(len(candidates)), _pointer(candidates)),
        *(_pointer(values), _pointer(least), _pointer(best)),
    )
    return values, least[0]


def features_of(matrix):
    """Rows whose inner products are this matrix: its Cholesky factor, pivoted."""
    rest, columns = np.array(matrix, dtype=Real), []
    largest = rest.diagonal().max()
    while True:
        k = int(np.argmax(rest.diagonal()))
        if not rest[k, k] > Real(1e-17) * largest:
            return np.column_stack(columns) if columns else np.zeros((len(rest), 1), Real)
        columns.append(rest[:, k] / np.sqrt(rest[k, k]))
        rest = rest - np.outer(columns[-1], columns[-1])
