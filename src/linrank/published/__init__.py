"""The methods of the literature, apart from the production path: for comparison and teaching.

Each way of counting the violated pairs is a short part of ``core/published`` behind one interface;
all give the same sums. One thread, double precision, rows in CSR. `factorize_by_pairs` is the dual
of low rank by its pairs, on any rows.
"""

from typing import Any

from linrank.options import COUNTINGS
from linrank.published.counting import Counted, ExplicitPairs, TreeHinge, published_loss
from linrank.published.listed_pairs import FactorizedByPairs, factorize_by_pairs

__all__ = [
    "COUNTINGS",
    "Counted",
    "ExplicitPairs",
    "FactorizedByPairs",
    "PublishedRankSVM",
    "TreeHinge",
    "factorize_by_pairs",
    "published_loss",
]


def __getattr__(name: str) -> Any:
    if name != "PublishedRankSVM":
        raise AttributeError(f"module 'linrank.published' has no attribute {name!r}")
    from importlib import import_module  # the estimator stands above all that it uses

    return import_module("linrank.estimators.ranksvm").PublishedRankSVM
