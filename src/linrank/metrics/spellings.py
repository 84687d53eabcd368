"""How other tools spell the measures: each becomes the spelling of linrank."""

from __future__ import annotations

import re

__all__ = ["ALIASES", "OPTIONS", "respelt"]

# Names in small letters, without cutoff and options.
ALIASES = {
    # ir_measures and trec_eval
    "ap": "map",
    "rr": "mrr",
    "r": "recall",
    "recip_rank": "mrr",
    # ranx
    "precision": "p",
    "hit_rate": "success",
    "rank_biased_precision": "rbp",
    # XGBoost, LightGBM, scikit-learn
    "pre": "p",
    "mean_average_precision": "map",
    "average_precision": "map",
    "average_precision_score": "map",
    "ndcg_score": "ndcg",
    "roc_auc": "auc",
    "roc_auc_score": "auc",
    # SciPy, scikit-survival, and in words
    "meanndcg": "mean_ndcg",
    "reciprocal_rank": "mrr",
    "mean_reciprocal_rank": "mrr",
    "kendalltau": "kendall_tau",
    "tau_b": "kendall_tau",
    "goodman_kruskal_gamma": "gamma",
    "somersd": "somers_d",
    "c_index": "concordance_index",
    "cindex": "concordance_index",
}

# Options and their values: the gain is called dcg by ir_measures.
OPTIONS = {
    ("dcg", "exp-log2"): ("gain", "exponential"),
    ("dcg", "log2"): ("gain", "linear"),
}

_TREC_CUTOFF = re.compile(r"(ndcg|map|p|recall|success)(?:_cut)?[_.](\d+)")
_RANX_PERSISTENCE = re.compile(r"rbp\.(\d+)")
_RANX_BURGES = re.compile(r"ndcg_burges(@.*)?")


def respelt(text: str) -> str:
    """Return a name whose cutoff or option is part of the word in linrank's form.

    Examples
    --------
    >>> respelt("ndcg_cut_10"), respelt("P.5".lower()), respelt("rbp.95"), respelt("ndcg_burges@3")
    ('ndcg@10', 'p@5', 'rbp(p=0.95)', 'ndcg(gain=exponential)@3')
    """
    if match := _TREC_CUTOFF.fullmatch(text):
        return f"{match[1]}@{match[2]}"
    if match := _RANX_PERSISTENCE.fullmatch(text):
        return f"rbp(p=0.{match[1]})"
    if match := _RANX_BURGES.fullmatch(text):
        return f"ndcg(gain=exponential){match[1] or ''}"
    return text
