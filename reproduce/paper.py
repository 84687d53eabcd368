"""What there is to reproduce: papers, and a script for each of their tables and figures."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from reproduce.page import Page

PAPERS = ("lee_lin", "sculley", "xu", "lin", "stevens")  # folders, each with its PAPER


@dataclass(frozen=True)
class Script:
    """One table or figure.

    Parameters
    ----------
    module : str
        The file in the folder of the paper, without ``.py``: ``"table_6"``.
    about : str
        What it compares, for the list.
    minutes : float
        What a run takes on two idle cores.
    is_timed : bool
        Its numbers are times: worth something on an idle machine only.
    """

    module: str
    about: str
    minutes: float
    is_timed: bool = False


@dataclass(frozen=True)
class Paper:
    """A paper and its scripts, in the order of their numbers."""

    folder: str
    citation: str
    title: str
    scripts: tuple[Script, ...]

    def name_of(self, script: Script) -> str:
        """``"lee-lin-table-6"``: what the command line and the page of results are called."""
        return f"{self.folder}-{script.module}".replace("_", "-")

    def run(self, script: Script, *, quick: bool) -> Page:
        module = import_module(f"reproduce.{self.folder}.{script.module}")
        page: Page = module.reproduce(quick)
        return page


def papers() -> list[Paper]:
    """All papers whose folder is here."""
    return [import_module(f"reproduce.{folder}").PAPER for folder in PAPERS]


def scripts() -> Iterator[tuple[str, Paper, Script]]:
    """All scripts, with their names."""
    for paper in papers():
        for script in paper.scripts:
            yield paper.name_of(script), paper, script
