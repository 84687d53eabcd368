"""Many rankings of the same rows, one a topic: their labels, the loop over them, their models."""
