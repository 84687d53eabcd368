"""Lin et al. (2013): closest and pruned pairs."""

from reproduce.paper import Paper

PAPER = Paper(
    folder="lin",
    citation="Lin et al. (2013)",
    title="Data Selection Techniques for Large-scale RankSVM",
    scripts=(),
)
