"""Stevens et al. (2010): the domination loss."""

from reproduce.paper import Paper

PAPER = Paper(
    folder="stevens",
    citation="Stevens et al. (2010)",
    title="Coordinate Descent for Ranking with Domination Loss",
    scripts=(),
)
