"""Stevens (2010): the domination loss, by coordinate descent."""

from reproduce.paper import Paper, Script

PAPER = Paper(
    folder="stevens",
    citation="Stevens (2010)",
    title="Efficient Coordinate Descent for Ranking with Domination Loss",
    scripts=(
        Script("figure_4", "Domination Rank on LETOR sets", 0.5),
        Script("figure_10", "how sparse the models are and what that costs, with Figures 6 and 7",
               2.5),
        Script("figure_11", "Domination Rank against PAMIR, query by query", 0.7),
        Script("figure_16", "topics of documents: precision and number of weights", 2.5),
        Script("figure_18", "Domination Rank against PAMIR, topic by topic", 2),
    ),
)  # fmt: skip
