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

__all__ = ["DominationRanker", "RankSVM", "RankSVMCV", "evaluate", "predict", "ranksvm_path"]


def __getattr__(name: str) -> Any:
    """Import a public name on first use, as those of linrank."""
    if name not in __all__:
        raise AttributeError(f"module 'linrank.dask' has no attribute {name!r}")
    module = "scoring" if name in ("evaluate", "predict") else "estimators"
    value = getattr(import_module(f"linrank.dask.{module}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
