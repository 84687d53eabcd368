"""Paths and their searches on any place of data, with the settings of the papers."""

from __future__ import annotations

from linrank.choices import PAPERS
from linrank.data.dataset import Dataset
from linrank.methods import ranksvm
from linrank.methods.base import Task
from linrank.methods.ground import Ground
from linrank.methods.parameters import RankSVMSearch
from linrank.methods.search import search_ranksvm
from linrank.parts.parts import MemoryParts, Parts
from linrank.search.tuning import Judging

_PAPERS = {name: value for name, value in PAPERS.items() if name != "C"}
_JUDGING = ("scoring", "selection", "convention", "progress")


def ground_of(place, *, query_weight=None, kept=None, n_jobs=1, **options) -> Ground:
    """The ground of a path over C, on the queries ``kept``."""
    if isinstance(place, Dataset):
        place = MemoryParts(place, n_jobs)
    parameters = RankSVMSearch(n_jobs=n_jobs, **{**_PAPERS, **options})
    task = Task(place.select(kept), parameters, query_weight=query_weight)
    return Ground.of(task, ranksvm.recipe_of)


def path_over(place, Cs, *, progress=None, callback=None, **options):
    """The path over C, and its scaling."""
    ground = ground_of(place, **options)
    path, _ = search_ranksvm.follow(ground, Cs, progress=progress, callback=callback)
    return path, ground.scaling


def tune(place: Dataset | Parts, folds, Cs, **options):
    """The measures of the models of every fold's path."""
    judging = Judging(**{name: options.pop(name) for name in _JUDGING if name in options})
    return search_ranksvm.tune(ground_of(place, **options), folds, Cs, judging)
