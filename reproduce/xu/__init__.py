"""Xu et al. (2019): duals of low rank."""

from reproduce.paper import Paper

PAPER = Paper(
    folder="xu",
    citation="Xu et al. (2019)",
    title="Efficient Ranking SVM with low-rank duals",
    scripts=(),
)
