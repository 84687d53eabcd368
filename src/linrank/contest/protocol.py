"""Which files train, which choose, which test: three parts, or LETOR's rotation of five subsets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from linrank.data.dataset import Dataset

__all__ = ["Fold", "Protocol", "rotation", "three_parts"]


@dataclass(frozen=True)
class Fold:
    """Numbers of the subsets that make up each part."""

    train: tuple[int, ...]
    valid: tuple[int, ...]
    test: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Protocol:
    """Subsets of whole queries, and the folds that they make.

    Attributes
    ----------
    subsets : tuple of Dataset
        Queries of different subsets are different queries, whatever their ids.
    names : tuple of str
        What messages call them.
    folds : tuple of Fold
    """

    subsets: tuple[Dataset, ...]
    names: tuple[str, ...]
    folds: tuple[Fold, ...]

    def describe(self) -> str:
        """The protocol in a few words."""
        if len(self.folds) == 1:
            return "one split"
        fold = self.folds[0]
        return (
            f"{len(self.folds)} folds of {len(self.subsets)} subsets, {len(fold.train)} to train, "
            f"{len(fold.valid)} to choose, {len(fold.test)} to test"
        )


def three_parts(train: Dataset, valid: Dataset, test: Dataset) -> Protocol:
    """One split."""
    sources = [
        name if data.source.startswith("<") else data.source  # no file: known by its part
        for name, data in (("train", train), ("valid", valid), ("test", test))
    ]
    return Protocol((train, valid, test), tuple(sources), (Fold((0,), (1,), (2,)),))


def rotation(subsets: Sequence[Dataset]) -> Protocol:
    """LETOR's folds: fold k trains on all subsets from the k-th on but the last two of the circle.

    With five subsets, fold 1 trains on S1, S2, S3, chooses on S4 and tests on S5; fold 2 trains on
    S2, S3, S4, chooses on S5 and tests on S1; and so on. Every query is tested once.

    Examples
    --------
    >>> from linrank import make_ranking
    >>> parts = [make_ranking(n_queries=4, random_state=k) for k in range(5)]
    >>> rotation(parts).folds[1]
    Fold(train=(1, 2, 3), valid=(4,), test=(0,))
    """
    n = len(subsets)
    if n < 3:
        raise ValueError(
            f"folds need at least 3 subsets, one each to train, to choose and to test; got {n} "
            "(LETOR has 5)"
        )
    folds = []
    for k in range(n):
        circle = [(k + i) % n for i in range(n)]
        folds.append(Fold(tuple(circle[: n - 2]), (circle[n - 2],), (circle[n - 1],)))
    names = [
        f"S{k + 1}" if data.source.startswith("<") else data.source
        for k, data in enumerate(subsets)
    ]
    return Protocol(tuple(subsets), tuple(names), tuple(folds))
