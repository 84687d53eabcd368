"""Domination Rank: training for the domination loss."""
