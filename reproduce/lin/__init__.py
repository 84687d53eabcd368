"""Lin et al. (2013): closest and pruned pairs."""

from reproduce.paper import Paper, Script

PAPER = Paper(
    folder="lin",
    citation="Lin et al. (2013)",
    title="Data Selection Techniques for Large-scale RankSVM",
    scripts=(
        Script("figure_1", "dual variables of pairs by closeness, for growing C", 0.1),
        Script("table_1", "closest and random pairs on artificial data, low noise", 2),
        Script("table_2", "the same, high noise", 2),
        Script("figure_2", "dual variables of pairs by closeness, for growing noise", 0.1),
        Script("table_3", "pruned pairs on artificial data", 2),
        Script("table_4", "pruned pairs on five regression sets, linear", 1),
        Script("table_5", "the same with the RBF kernel", 6),
        Script("table_6", "how many pairs there are", 0.1),
        Script("figure_3", "accuracy against the number of pairs", 1.5),
    ),
)  # fmt: skip
