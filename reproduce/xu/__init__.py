"""Xu et al. (2019): RankSVM with duals of low rank."""

from reproduce.paper import Paper, Script

PAPER = Paper(
    folder="xu",
    citation="Xu et al. (2019)",
    title="Modeling the Parameter Interactions in Ranking SVM with Low-Rank Approximation",
    scripts=(
        Script("figure_2", "dimensions that keep the energy of RankSVM's duals", 0.3),
        Script("table_2", "low-rank RankSVM against RankSVM on OHSUMED", 5),
        Script("table_3", "the same on MQ2007", 3),
        Script("table_4", "the same on MQ2008", 3),
        Script("table_6", "ranks of the dual matrices of three queries", 0.3),
        Script("table_7", "what the number of factors K does", 0.7),
        Script("table_8", "what γ and λ do", 0.3),
        Script("figure_4", "learning curves of the two methods", 0.1, is_timed=True),
    ),
)  # fmt: skip
