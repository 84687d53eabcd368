"""LETOR sets by fold and part: those that are here, and official ones that a user has."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache

from linrank.data.dataset import Dataset
from reproduce import official

Maker = Callable[[int, str], Dataset]
OFFICIAL = ("MQ2007", "HP2003")  # of the sets of the paper


def with_official(sets: Mapping[str, Maker]) -> dict[str, Maker]:
    """These sets, and before them the official ones whose first fold is here."""
    found = {name: _maker(name) for name in OFFICIAL if official.folds(name) is not None}
    return {**found, **sets}


def _maker(name: str) -> Maker:
    @cache
    def fold_of(fold: int) -> dict[str, Dataset]:
        parts = official.folds(name, fold)
        if parts is None:
            raise FileNotFoundError(f"{name}: fold 1 is here and fold {fold} is not")
        return parts

    return lambda fold, part: fold_of(fold)[part]
