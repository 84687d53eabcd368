"""Sculley (2009): stochastic descent on sampled pairs."""

from reproduce.paper import Paper, Script

PAPER = Paper(
    folder="sculley",
    citation="Sculley (2009)",
    title="Large Scale Learning to Rank",
    scripts=(
        Script("figure_1", "MAP of stochastic descent on LETOR folds", 0.5),
        Script("figure_2", "the objective by the number of steps", 2),
        Script("table_1", "AUC and time on large single queries", 4, True),
    ),
)
