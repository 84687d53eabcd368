"""Sculley (2009): stochastic descent on sampled pairs."""

from reproduce.paper import Paper

PAPER = Paper(
    folder="sculley", citation="Sculley (2009)", title="Large Scale Learning to Rank", scripts=()
)
