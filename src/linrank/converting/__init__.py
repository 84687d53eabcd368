"""Data sets from any format into any other."""
