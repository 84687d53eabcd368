"""The names that linrank.dask offers, and where each lives."""

from linrank.dask.estimators import DominationRanker as DominationRanker
from linrank.dask.estimators import RankSVM as RankSVM
from linrank.dask.estimators import RankSVMCV as RankSVMCV
from linrank.dask.estimators import ranksvm_path as ranksvm_path
from linrank.dask.scoring import evaluate as evaluate
from linrank.dask.scoring import predict as predict
