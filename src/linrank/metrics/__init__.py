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
    ConcordanceIndex,
    CustomMeasure,
    DominatedError,
    DominationError,
    Gamma,
    KendallTau,
    MeanNDCG,
    Measure,
    PairwiseAccuracy,
    Precision,
    RankBiasedPrecision,
    Recall,
    ReciprocalRank,
    SomersD,
    Success,
)
from linrank.metrics.names import parse, parse_scoring, valid_forms
from linrank.metrics.runs import RUN_METRICS, evaluate_run
from linrank.metrics.survival import ConcordanceResult, concordance_index

__all__ = [
    "AUC",
    "CONVENTIONS",
    "DEFAULT_METRICS",
    "ERR",
    "NDCG",
    "RUN_METRICS",
    "AllPairsError",
    "AveragePrecision",
    "ConcordanceIndex",
    "ConcordanceResult",
    "Convention",
    "CustomMeasure",
    "DominatedError",
    "DominationError",
    "Evaluation",
    "Gamma",
    "KendallTau",
    "MeanNDCG",
    "Measure",
    "PairCounts",
    "PairwiseAccuracy",
    "Precision",
    "RankBiasedPrecision",
    "Recall",
    "ReciprocalRank",
    "RowCounts",
    "SomersD",
    "Success",
    "concordance_index",
    "convention",
    "evaluate",
    "evaluate_run",
    "parse",
    "parse_scoring",
    "rank_within_queries",
    "valid_forms",
]
