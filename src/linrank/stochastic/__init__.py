"""Stochastic pairwise descent: learning from sampled pairs, at a cost that the data do not set."""
