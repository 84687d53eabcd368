"""A contest of learning methods on the same parts of the same data: which ranker to ship."""
