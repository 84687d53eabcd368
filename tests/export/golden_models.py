"""The two models whose artefacts are kept as golden files, and the artefacts as text.

Numbers that are short in decimals and different from each other, so that a file can be read
beside this one: a weight of 0 that is left out, a negative one, a scaling that is folded in.
"""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np

import linrank
from linrank import LinearModel
from linrank.data.statistics import ColumnStatistics
from linrank.errors import ExportWarning
from linrank.export import TARGETS
from linrank.export.artefact import Artefact
from linrank.missing import Missing
from linrank.scaling import Scaling

FOLDER = Path(__file__).resolve().parent / "golden"
_NAMES = ("bm25_title", "age", "popularity", "length")
_WEIGHTS = np.array([2.0, -0.5, 0.0, 1.5])  # of the scaled features
_DEVIATIONS = np.array([4.0, 0.125, 1.0, 1000.0])


def plain_model() -> LinearModel:
    """Weights 2, -0.5, 0 and 1.5 of raw features; no statistics, no rule for missing values."""
    return LinearModel(_WEIGHTS, _NAMES)


def full_model() -> LinearModel:
    """Standard deviations 4, 0.125, 1, 1000; means 10, 0.25, 3, 2500 for missing values."""
    mean = np.array([10.0, 0.25, 3.0, 2500.0])
    statistics = ColumnStatistics(
        100.0, 100, mean, _DEVIATIONS**2, mean - 2 * _DEVIATIONS, mean + 3 * _DEVIATIONS,
        np.full(4, 100),
    )  # fmt: skip
    scaling = Scaling("standard", 1.0 / _DEVIATIONS)
    missing = Missing("mean", mean)
    coef = scaling.fold(_WEIGHTS)
    return LinearModel(coef, _NAMES, scaling, missing=missing, statistics=statistics)


# Name of a folder -> how its artefact is made.
CASES = {
    **{f"{target}-plain": (plain_model, target, {}) for target in TARGETS},
    **{f"{target}-full": (full_model, target, {}) for target in TARGETS},
    "elasticsearch-engine": (full_model, "elasticsearch", {"normalizers": "engine"}),
}


def artefact_of(case: str) -> Artefact:
    make, target, options = CASES[case]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ExportWarning)
        return make().export(target, name="golden", **options)


def texts_of(artefact: Artefact) -> dict[str, str]:
    """The files as text, and the warnings; the version of linrank does not count."""
    texts = {name: _text(name, content) for name, content in artefact.files.items()}
    texts["warnings.txt"] = "".join(f"{warning}\n" for warning in artefact.warnings)
    return {name: text.replace(linrank.__version__, "VERSION") for name, text in texts.items()}


def _text(name: str, content: bytes) -> str:
    if not name.endswith(".onnx"):
        return content.decode()
    return ""
