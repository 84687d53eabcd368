"""Runs judged by qrels, as trec_eval does: what was retrieved, and what should have been."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from linrank import _core
from linrank.data import Array, Queries, first_true
from linrank.io.trec import Qrels, Run
from linrank.metrics.conventions import Convention
from linrank.metrics.conventions import convention as named_convention
from linrank.metrics.evaluate import evaluate_queries, has_gains, measures_of
from linrank.metrics.evaluation import Evaluation
from linrank.metrics.measures import Metric
from linrank.system.resources import resolve

RUN_METRICS = ("ndcg@10", "map", "mrr", "p@10", "recall@100")


def evaluate_run(
    qrels: Any,
    run: Any,
    *,
    metrics: Metric | Iterable[Metric] = RUN_METRICS,
    convention: str | Convention = "trec_eval",
    complete: bool = False,
    n_jobs: int | None = None,
) -> Evaluation:
    """Return the means of ranking measures of a run, by the judgments of its documents.

    A document that was retrieved but not judged has relevance 0. One that was judged but not
    retrieved has no rank; it counts among the relevant documents (in the ideal DCG, in AP, in
    recall) and, in measures of pairs and rows, stands below all that were retrieved, tied with the
    others like it. Queries are averaged in the order of the qrels; those of the run without any
    judgment are left out.

    Parameters
    ----------
    qrels : Qrels, path or mapping
        Judgments, the name of a file of them, or ``{query: {document: relevance}}``.
    run : Run, path or mapping
        Scores, the name of a file, or ``{query: {document: score}}``.
    metrics : names or measures
        As in `evaluate`.
    convention : str or Convention, default="trec_eval"
        As in `evaluate`.
    complete : bool, default=False
        Whether queries of the qrels that the run lacks count too, with nothing retrieved, as by
        ``trec_eval -c``.
    n_jobs : int, optional
        Threads; None uses all cores. Results do not depend on it.

    Returns
    -------
    Evaluation
        With ids of queries as strings.

    Raises
    ------
    ValueError
        No query of the run is judged.

    Examples
    --------
    >>> qrels = {"q1": {"a": 1, "b": 0, "c": 2}, "q2": {"a": 1}}
    >>> run = {"q1": {"a": 0.9, "x": 0.5, "c": 0.1}, "q3": {"a": 1.0}}
    >>> print(evaluate_run(qrels, run, metrics=["P@2", "map"]))
    metric      mean   queries
    p@2       0.5000         1
    map       0.8333         1
    convention trec_eval: gain y, discount 1/log2(i+1), ties by descending document id, ...
    >>> evaluate_run(qrels, run, metrics="map", complete=True).per_query["map"].round(4)
    array([0.8333, 0.    ])
    """
    judged = JudgedRun(qrels, run, complete=complete, n_jobs=n_jobs)
    return judged.evaluate(metrics, convention, n_jobs)


class JudgedRun:
    """The documents of the queries that count: first those retrieved, then the others judged.

    Attributes
    ----------
    qrels, run : Qrels, Run
        What was given.
    queries : Queries
        Queries in the order of the qrels.
    labels, scores : float64 array (n_rows,)
        Relevance, 0 where not judged; score, 0 where not retrieved.
    n_ranked : int64 array (n_queries,)
        Documents of each query that were retrieved.
    retrieved : int64 array
        Row in the run of each retrieved document, query by query.
    n_not_judged, n_not_retrieved : int
        Queries of the run without judgments; queries of the qrels that the run lacks.
    """

    def __init__(
        self, qrels: Any, run: Any, *, complete: bool = False, n_jobs: int | None = None
    ) -> None:
        self.qrels = qrels = Qrels.of_user(qrels)
        self.run = run = Run.of_user(run)
        of_run = qrels.numbers_of(run.query_ids.tolist())
        in_run = np.zeros(qrels.n_queries, dtype=bool)
        in_run[of_run[of_run >= 0]] = True
        if not in_run.any():
            raise ValueError(_nothing_in_common(qrels, run))
        kept = np.ones_like(in_run) if complete else in_run
        new = np.where(kept, np.cumsum(kept) - 1, -1)  # numbers of the queries that count
        run_query, qrels_query = np.append(new, -1)[of_run][run.query], new[qrels.query]

        own = np.flatnonzero(run_query >= 0)
        row = qrels.find(of_run[run.query], run.docids)[own]
        missed = qrels_query >= 0
        missed[row[row >= 0]] = False
        missed = np.flatnonzero(missed)
        # Query by query, retrieved before missed; inside, in the order of the files.
        query = np.concatenate([run_query[own], qrels_query[missed]])
        order = np.argsort(query, kind="stable")
        self.labels = np.concatenate(
            [np.where(row >= 0, qrels.relevance[row], 0.0), qrels.relevance[missed]]
        )[order]
        self.scores = np.concatenate([run.scores[own], np.zeros(len(missed))])[order]
        n_queries = int(kept.sum())
        sizes = np.bincount(query, minlength=n_queries)
        self.queries = replace(
            Queries.of(self.labels, group=sizes, n_jobs=n_jobs), ids=qrels.query_ids[kept]
        )
        self.n_ranked = np.bincount(run_query[own], minlength=n_queries).astype(np.int64)
        self.retrieved = own[order[order < len(own)]]
        self.n_not_judged = int((of_run < 0).sum())
        self.n_not_retrieved = int((~in_run).sum())

    def evaluate(
        self, metrics: Any, convention: str | Convention, n_jobs: int | None = None
    ) -> Evaluation:
        """`evaluate_run` of what was brought together."""
        chosen, measures = named_convention(convention), measures_of(metrics)
        if has_gains(measures) and not chosen.negative_is_zero:
            self._check_relevance(chosen)
        docid = self._id_order(n_jobs) if chosen.ties == "docid" else None
        rules: Any = {"metrics": measures, "convention": chosen, "docid": docid, "n_jobs": n_jobs}
        rows = self.queries, self.labels, self.scores
        return evaluate_queries(*rows, n_ranked=self.n_ranked, **rules)

    def _id_order(self, n_jobs: int | None) -> Array:
        """Place of each document among the ids of its query; 0 where it was not retrieved."""
        offsets = np.concatenate([[0], np.cumsum(self.n_ranked)])
        documents = self.run.docids.core
        places = _core.document_order(offsets, self.retrieved, documents, resolve(n_jobs))
        keys = np.zeros(len(self.labels), dtype=np.int64)
        # Retrieved document t of query q stands at offsets[q] + t.
        shift = self.queries.offsets[:-1] - offsets[:-1]
        keys[np.arange(len(places)) + np.repeat(shift, self.n_ranked)] = places
        return keys

    def _check_relevance(self, chosen: Convention) -> None:
        row = first_true(self.qrels.relevance < 0)
        if row is None:
            return
        where = "" if self.qrels.lines is None else f"{self.qrels.source}:{self.qrels.lines[row]}: "
        raise ValueError(
            f"{where}document {self.qrels.docids[row]!r} of query "
            f"{self.qrels.query_ids[self.qrels.query[row]]!r} has relevance "
            f"{self.qrels.relevance[row]:g}, which has no gain under {chosen.name}; "
            "use the convention trec_eval, where it counts 0"
        )


def _nothing_in_common(qrels: Qrels, run: Run) -> str:
    def some(table: Qrels | Run) -> str:
        ids = [repr(q) for q in table.query_ids[:3].tolist()]
        return ", ".join(ids) + (", ..." if table.n_queries > 3 else "")

    return (
        f"none of the {run.n_queries} queries of the run {run.source} ({some(run)}) is judged in "
        f"the qrels {qrels.source} ({some(qrels)}); the ids must be the same, letter by letter"
    )
