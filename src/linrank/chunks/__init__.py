"""Training on chunks of whole queries, wherever they are: one sum, one solver, one answer."""
