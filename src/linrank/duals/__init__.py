"""Dual matrices: the dual variables of a ranker by query, and how many dimensions they fill."""
