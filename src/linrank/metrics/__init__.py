"""Ranking measures: values that parse from their names, under the field's conventions."""

from linrank.metrics.conventions import CONVENTIONS, Convention, convention
from linrank.metrics.counted import PairCounts, RowCounts
from linrank.metrics.evaluate import DEFAULT_METRICS, evaluate, rank_within_queries
from linrank.metrics.evaluation import Evaluation
from linrank.metrics.measures import (
    AUC,
    ERR,
    NDCG,
    AllPairsError,
    AveragePrecision,
    DominatedError,
    DominationError,
    MeanNDCG,
    Measure,
    PairwiseAccuracy,
    Precision,
    Recall,
    ReciprocalRank,
)
from linrank.metrics.parsing import parse, parse_scoring, valid_forms

__all__ = [
    "AUC",
    "CONVENTIONS",
    "DEFAULT_METRICS",
    "ERR",
    "NDCG",
    "AllPairsError",
    "AveragePrecision",
    "Convention",
    "DominatedError",
    "DominationError",
    "Evaluation",
    "MeanNDCG",
    "Measure",
    "PairCounts",
    "PairwiseAccuracy",
    "Precision",
    "Recall",
    "ReciprocalRank",
    "RowCounts",
    "convention",
    "evaluate",
    "parse",
    "parse_scoring",
    "rank_within_queries",
    "valid_forms",
]
