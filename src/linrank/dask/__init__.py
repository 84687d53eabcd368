"""Ranking on a Dask cluster: the estimators and functions of linrank for data in partitions.

The names are those of ``linrank``; what they take is a dask array, a dask dataframe, a list of
delayed blocks or a `linrank.Store` on a disk that all workers see.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from linrank.dask.estimators import DominationRanker, RankSVM
    from linrank.dask.scoring import evaluate, predict

# dask itself is looked for by its scheduler: a folder named dask on the path, such as that of a
# user's scripts, would pass for the package.
if find_spec("distributed") is None:
    raise ImportError(
        "linrank.dask needs dask and distributed, which are not installed: "
        "pip install 'dask[array,dataframe]' distributed"
    )

# Every task of ours imports this package on its worker, and with it what dask is to know there.
import_module("linrank.dask.rounds")

__all__ = [
    "DominationRanker",
    "RankSVM",
    "RankSVMCV",
    "evaluate",
    "predict",
    "ranksvm_path",
]

# Where each public name lives; they are imported on first use, as those of linrank.
_HOME = {
    "DominationRanker": "linrank.dask.estimators",
    "RankSVM": "linrank.dask.estimators",
    "RankSVMCV": "linrank.dask.estimators",
    "evaluate": "linrank.dask.scoring",
    "predict": "linrank.dask.scoring",
    "ranksvm_path": "linrank.dask.estimators",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'linrank.dask' has no attribute {name!r}")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
