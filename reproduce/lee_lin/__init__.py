"""Lee and Lin (2014): trees that count pairs, and linear RankSVM against pointwise methods."""

from reproduce.paper import Paper, Script

PAPER = Paper(
    folder="lee_lin",
    citation="Lee and Lin (2014)",
    title="Large-scale Linear RankSVM",
    scripts=(
        Script("table_5", "linear RankSVM against linear SVR", 1),
        Script("table_6", "random forests and GBDT with few trees, beside RankSVM and SVR", 1),
    ),
)
