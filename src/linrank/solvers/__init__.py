"""Solvers: functions from an objective to a minimizer. They print nothing and keep nothing."""
