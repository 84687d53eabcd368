"""Ranking on a Dask cluster: the estimators and functions of linrank for data in partitions.

The names are those of ``linrank``; what they take is a dask array, a dask dataframe, a list of
delayed blocks or a `linrank.Store` on a disk that all workers see.
"""

from importlib import import_module
from importlib.util import find_spec

from linrank.system.names import names_of

# dask itself is looked for by its scheduler: a folder named dask on the path, such as that of a
# user's scripts, would pass for the package.
if find_spec("distributed") is None:
    raise ImportError(
        "linrank.dask needs dask and distributed, which are not installed: "
        "pip install 'dask[array,dataframe]' distributed"
    )

# Every task of ours imports this package on its worker, and with it what dask is to know there.
import_module("linrank.dask.rounds")

__all__, __getattr__, __dir__ = names_of(__name__)
