"""Solvers: functions from an objective to a minimiser. They print nothing and keep nothing."""
