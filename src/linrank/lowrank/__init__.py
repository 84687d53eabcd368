"""Low-rank RankSVM: training on the dual, whose variables form a matrix of low rank per query."""
