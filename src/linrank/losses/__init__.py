"""Pair losses: functions of the scores of each query, blind to the rows."""
