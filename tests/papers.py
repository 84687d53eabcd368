"""Estimators and commands with the settings of the papers: what solvers and bits are tested on."""

from __future__ import annotations

import inspect
from dataclasses import field, fields, make_dataclass
from typing import Any

import linrank
from linrank.choices import AUTO, PAPERS

FLAGS = {
    "--C": "1",
    "--scale": "none",
    "--pair-weighting": "uniform",
    "--query-normalization": "none",
}


def settings_of(cls: Any, **given: Any) -> dict[str, Any]:
    """The papers' settings in place of what is left to the data, and what is given."""
    known = inspect.signature(cls).parameters
    left = [name for name in PAPERS if name in known and known[name].default == AUTO]
    return {**{name: PAPERS[name] for name in left}, **given}


def flags(*given: str) -> list[str]:
    """What is given, and the flags of the papers' settings that it leaves out."""
    said = {"--C" if word == "-c" else word for word in given}
    return [
        *given,
        *(word for name, value in FLAGS.items() if name not in said for word in (name, value)),
    ]


def _with_papers(cls: Any) -> Any:
    """The class with other defaults, and all else as it is."""
    declared = {each.name: each for each in fields(cls)}
    own = [
        (name, Any, field(default=value, kw_only=declared[name].kw_only))
        for name, value in settings_of(cls).items()
    ]
    made = make_dataclass(cls.__name__, own, bases=(cls,), eq=False, repr=False)
    made.__module__, made.__doc__ = __name__, cls.__doc__
    return made


RankSVM = _with_papers(linrank.RankSVM)
RankSVMCV = _with_papers(linrank.RankSVMCV)
KernelRankSVM = _with_papers(linrank.KernelRankSVM)
KernelRankSVMCV = _with_papers(linrank.KernelRankSVMCV)
SGDRanker = _with_papers(linrank.SGDRanker)
SGDRankerCV = _with_papers(linrank.SGDRankerCV)
DominationRanker = _with_papers(linrank.DominationRanker)
DominationRankerCV = _with_papers(linrank.DominationRankerCV)
FactorizedRankSVM = _with_papers(linrank.FactorizedRankSVM)
FactorizedRankSVMCV = _with_papers(linrank.FactorizedRankSVMCV)
RegularizedRankSVM = _with_papers(linrank.RegularizedRankSVM)


def ranksvm_path(*given: Any, **options: Any) -> Any:
    """The path over C of the papers' problem."""
    return linrank.ranksvm_path(*given, **settings_of(linrank.ranksvm_path, **options))
