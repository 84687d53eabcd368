"""Methods as values: what each is called, which parameters it has, and how it trains."""
