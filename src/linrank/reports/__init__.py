"""`report`: from data and models to a page."""

from __future__ import annotations

import datetime
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from types import SimpleNamespace
from typing import Any

from linrank.data.dataset import Dataset
from linrank.metrics.measures import Metric
from linrank.reports import sections
from linrank.reports.diagnosis import failures
from linrank.reports.html import document
from linrank.reports.material import Material, gather
from linrank.system import cached_property, replacing

# (id, entry of the contents, heading, what makes its sentence and the rest of it)
SECTIONS: tuple[tuple[str, str, str, Callable[[Material], tuple[str, ...]]], ...] = (
    ("measures", "How good", "How good is it?", sections.measures),
    ("queries", "Query by query", "Query by query", sections.by_query),
    ("worst", "Where it goes wrong", "Where it goes wrong", failures),
    ("weights", "What it learned", "What it learned", sections.weights),
    ("training", "How it was trained", "How it was trained", sections.training),
    ("data", "Data", "The data", sections.data),
    ("method", "Method", "How this page was made", sections.method),
)


@dataclass(frozen=True, eq=False)
class Report:
    """A page on a ranking, made by :func:`linrank.report`.

    Attributes
    ----------
    material : Material
        Everything behind it: ``evaluations``, ``comparison``, ``worst``, ``training``, ...
    title : str
    date : str
    """

    material: Material
    title: str
    date: str

    def to_html(self) -> str:
        """Return the page: one document that loads nothing and runs nothing."""
        return self._html

    @cached_property
    def _html(self) -> str:
        made = [(a, b, c, make(self.material)) for a, b, c, make in SECTIONS]
        head = sections.header(self.material, self.title)
        return document(self.title, head, made, sections.footer(self.material, self.date))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the page to a file, whole or not at all."""
        page = self.to_html().encode("utf-8")
        with replacing(path) as file:
            file.write(page)

    def to_dict(self) -> dict[str, Any]:
        """Return what the top of the page says as plain values, ready for JSON."""
        return sections.summary_dict(self.material)

    def _repr_html_(self) -> str:
        """The page in a frame: its style must not touch the notebook's."""
        page = escape(self.to_html(), quote=True)
        style = "width:100%;height:80vh;border:1px solid #8884;border-radius:6px"
        title = escape(self.title)
        return f'<iframe sandbox srcdoc="{page}" title="{title}" style="{style}"></iframe>'

    def __repr__(self) -> str:
        value = self.material.evaluation[self.material.scoring]
        return f"<Report on {self.material.ranking.name}: {self.material.scoring} {value:.4f}>"


def report(
    test: Dataset,
    *,
    train: Dataset | None = None,
    valid: Dataset | None = None,
    model: Any = None,
    against: Any = None,
    model_name: str | None = None,
    against_name: str | None = None,
    scoring: Metric | None = None,
    metrics: Sequence[Metric] | None = None,
    convention: str = "linrank",
    Cs: Any = "auto",
    scale: str = "auto",
    n_folds: int = 5,
    feature_names: Sequence[str] | None = None,
    n_worst: int = 5,
    confidence: float = 0.95,
    n_resamples: int = 10_000,
    title: str | None = None,
    random_state: int = 0,
    n_jobs: int | None = None,
    progress: Callable[[str], None] | None = None,
) -> Report:
    """Judge a ranking on test queries, and explain where it goes wrong, on one page.

    Parameters
    ----------
    test : Dataset
        The queries to judge by, from :func:`linrank.load` or :meth:`linrank.Dataset.of`.
    train : Dataset, optional
        Training data. Without ``model`` a linear RankSVM is trained for every C of the grid and the
        best on ``valid``, or on folds of ``train``, is taken. The page then shows the path and the
        convergence. Test queries among the training queries are found and told.
    valid : Dataset, optional
        What C is chosen on.
    model : LinearModel, KernelModel, fitted estimator or array (n_rows,), optional
        What is judged: a model or scores of the test rows.
    against : the same, optional
        What it is compared with. If None, the feature of ``train`` that alone ranks the training
        queries best; without ``train``, nothing.
    model_name, against_name : str, optional
        What the page calls them.
    scoring : str or callable, optional
        The measure to choose C by and to begin with: ``ndcg@10``, or the pairwise accuracy where
        labels are negative or too large for gains of 2^y - 1.
    metrics : sequence of str or callable, optional
        Further measures; those of :func:`linrank.evaluate` if None.
    convention : str, default="linrank"
        Whose rules for gains, ties and empty queries, as in :func:`linrank.evaluate`.
    Cs : "auto" or array of float
        The grid, as in :func:`linrank.ranksvm_path`.
    scale : {"auto", "none", "standard", "minmax", "query"}, default="auto"
        Feature scaling of the model that is trained, as in :class:`linrank.RankSVM`.
    n_folds : int, default=5
        Folds of whole queries, without ``valid``.
    feature_names : sequence of str, optional
        Names of the features; those of the model or of the data if None, else their numbers.
    n_worst : int, default=5
        Queries to explain.
    confidence : float, default=0.95
        Of the intervals.
    n_resamples : int, default=10000
        Of the bootstrap and of the randomization test.
    title : str, optional
        Of the page.
    random_state : int, default=0
        Seed of the resampling.
    n_jobs : int, optional
        Threads; None uses all cores. Results do not depend on it.
    progress : callable, optional
        Called with a line on what is being done.

    Returns
    -------
    Report
        ``to_html()``, ``save(path)``, ``to_dict()``; a notebook shows it.

    Examples
    --------
    >>> import linrank
    >>> data = linrank.make_ranking(n_queries=60, n_features=5, random_state=0)
    >>> page = linrank.report(data.select(data.qid >= 40), train=data.select(data.qid < 40))
    >>> page.save("report.html")
    """
    options = SimpleNamespace(**locals())
    options.tell = progress or (lambda text: None)
    material = gather(_parts(train, valid, test), options)
    today = datetime.date.today().isoformat()
    return Report(material, title or f"How well does {material.ranking.name} rank?", today)


def _parts(*parts: Any) -> dict[str, Dataset]:
    """By name, those that are there."""
    named = dict(zip(("train", "valid", "test"), parts, strict=True))
    for name, data in named.items():
        if not isinstance(data, Dataset) and (data is not None or name == "test"):
            raise TypeError(
                f"{name} must be a Dataset, got {type(data).__name__}; linrank.load(path) reads "
                "one, linrank.Dataset.of(X, y, qid=qid) makes one of arrays"
            )
    if named["valid"] is not None and named["train"] is None:
        raise ValueError("valid is what C is chosen on; it needs train")
    return {name: data for name, data in named.items() if data is not None}
