"""Lee and Lin (2014): trees that count pairs, and linear RankSVM against pointwise methods."""

from reproduce.paper import Paper, Script

PAPER = Paper(
    folder="lee_lin",
    citation="Lee and Lin (2014)",
    title="Large-scale Linear RankSVM",
    scripts=(
        Script("table_5", "linear RankSVM against linear SVR", 1),
        Script("table_6", "random forests and GBDT with few trees, against RankSVM and SVR", 1.5),
        Script("table_7", "random forests and GBDT with 1,000 trees", 3.5),
        Script("table_9", "linear RankSVM against random forests on sparse rows", 0.5),
        Script("table_10", "pairs of neighboring levels against all", 0.5, True),
        Script("figure_4", "ways of counting pairs, by time", 4, True),
        Script("figure_5", "methods by time, few levels", 1, True),
        Script("figure_6", "methods by time, many levels", 1.5, True),
        Script("figure_7", "methods by time at three values of C", 2.5, True),
    ),
)
