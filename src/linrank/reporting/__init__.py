"""Reports: what a model does on test queries, as one page for people."""
