"""Small twins of the engines that models are exported to: their parsers and their scorers.

Written from the documentation of the engines, blind to the exporters, and strict: what an engine
would refuse, or read as something else than was meant, is refused here. A twin scores columns
of feature values by name; NaN is a feature that gives no value for a document.
"""
