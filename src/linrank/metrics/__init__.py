"""Ranking measures: values that parse from their names, under the field's conventions."""

from linrank.metrics.conventions import CONVENTIONS, Convention, convention
from linrank.metrics.evaluate import DEFAULT_METRICS, evaluate, rank_within_queries
from linrank.metrics.evaluation import Evaluation, PairCounts
from linrank.metrics.measures import (
    AUC,
    ERR,
    NDCG,
    AveragePrecision,
    MeanNDCG,
    Measure,
    PairwiseAccuracy,
    Precision,
    Recall,
    ReciprocalRank,
)
from linrank.metrics.parsing import parse, valid_forms

__all__ = [
    "AUC",
    "CONVENTIONS",
    "DEFAULT_METRICS",
    "ERR",
    "NDCG",
    "AveragePrecision",
    "Convention",
    "Evaluation",
    "MeanNDCG",
    "Measure",
    "PairCounts",
    "PairwiseAccuracy",
    "Precision",
    "Recall",
    "ReciprocalRank",
    "convention",
    "evaluate",
    "parse",
    "rank_within_queries",
    "valid_forms",
]
