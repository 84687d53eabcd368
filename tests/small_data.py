"""Small training sets that several tests share."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from linrank import Dataset, make_ranking


def small(seed: int = 0, n_features: int = 5, **options) -> Dataset:
    return make_ranking(12, (3, 12), n_features, random_state=seed, dtype="float64", **options)


def weighted(data: Dataset, seed: int = 0) -> Dataset:
    """The same rows with weights, some of them 0."""
    return replace(data, weight=np.random.default_rng(seed).integers(0, 4, data.n_rows) / 2)
