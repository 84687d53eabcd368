"""Stochastic pairwise descent: learning from pairs that are drawn, one after the other."""
