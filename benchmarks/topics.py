"""One model for each of 1,000 topics on 100,000 sparse rows: time by threads, memory, precision.

Rows are made-up documents. A topic has twenty words that matter to it, each with its own weight;
its positives, 100 to 1,000 rows, are those with the highest noisy score. Memory is the peak of the
resident set above what there was before the fit (Linux only), by the bytes of the matrix.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

import linrank
from giant import peak
from linrank.data.rows import CsrRows
from report import Table, main, ratio, seconds
from shapes import Documents

ROWS, TEST, TOPICS = 100_000, 20_000, 1_000
WORDS = 20  # of a topic
NEAR_LINEAR = 1.7  # two threads against one
ONE_MATRIX = 1.0  # what the topics may take in addition to the matrix and the models
NEGATIVES = 0.1  # as in the thesis

# Name, share of the negatives that a fit sees, estimator. The one of large models comes last: what
# it leaves to the allocator would hide what the others take.
LEARNERS: list[tuple[str, float | None, Callable[[], Any]]] = [
    ("domination, l1", NEGATIVES, lambda: linrank.DominationRanker(alpha=1.0, tol=1e-2)),
    (
        "domination, induction of 5 features at a time",
        NEGATIVES,
        lambda: linrank.DominationRanker(alpha=1.0, feature_induction=5, tol=1e-2),
    ),
    ("PAMIR, 10^4 steps", None, lambda: linrank.SGDRanker("pa", n_steps=10_000, average=True)),
]


def measure(quick: bool) -> list[Table]:
    fraction, n_topics = (0.02, 12) if quick else (1.0, TOPICS)
    X, Y, n_train = make(fraction, n_topics)
    train, test = X.take(slice(0, n_train)), X.take(slice(n_train, None))
    table = Table(
        f"{n_topics} topics on {train.describe()}",
        [
            *("learner", "rows of a fit", "1 thread, s", "2 threads, s", "ratio", "ms per topic"),
            *("non-zero, median", "models / matrix", "rest of the peak", "MAP", "P@10"),
        ],
        notes=[
            f"the matrix is {train.nbytes / 1e6:.0f} MB; the peak is what a fit on two threads "
            "takes in addition, relative to the matrix; its rest excludes the models",
            f"MAP and P@10 on {test.shape[0]} other rows, mean over the topics",
        ],
    )
    for name, share, estimator in LEARNERS:
        _add(
            table,
            name,
            linrank.PerQueryRanker(estimator(), negative_sampling=share),
            train,
            test,
            Y,
        )
    return [table]


def _add(
    table: Table, name: str, ranker: Any, train: CsrRows, test: CsrRows, Y: sparse.csr_array
) -> None:
    n_train, n_topics = train.shape[0], Y.shape[1]
    ranker.set_params(random_state=0, n_jobs=1)
    ranker.fit(train, Y[:n_train][:, : max(1, n_topics // 100)])  # code and caches are warm
    one = seconds(lambda: ranker.fit(train, Y[:n_train]), 1)[0]
    bits = ranker.coef_.data
    ranker.set_params(n_jobs=2)
    two: list[float] = []
    grown = peak(lambda: two.extend(seconds(lambda: ranker.fit(train, Y[:n_train]), 1)))
    if not np.array_equal(bits, ranker.coef_.data):
        raise RuntimeError(f"{name}: two threads gave other models than one")
    coef = ranker.coef_
    models = coef.data.nbytes + coef.indices.nbytes + coef.indptr.nbytes
    worth = ranker.evaluate(test, Y[n_train:], ("map", "p@10"))
    rows = np.median([model.training["n_rows"] for model in ranker.models_[: min(50, n_topics)]])
    table.add(
        name, int(rows), one, two[0], ratio(one / two[0], NEAR_LINEAR), 1e3 * one / n_topics,
        int(np.median(ranker.n_nonzero_)), ratio(models / train.nbytes),
        _share((grown - models) / train.nbytes), worth["map"], worth["p@10"],
    )  # fmt: skip


def _share(share: float) -> str:
    return f"{share:.3g}x (<= {ONE_MATRIX:g}x: {'met' if share <= ONE_MATRIX else 'MISSED'})"


def make(fraction: float, n_topics: int) -> tuple[CsrRows, sparse.csr_array, int]:
    """Rows of training and test, labels of rows × topics, and how many rows are for training."""
    n_rows = round(fraction * (ROWS + TEST))
    rows = Documents("topics", ROWS + TEST, 47_236, 70, 0.002).make(fraction).rows
    rng = np.random.default_rng(16)
    frequency = np.bincount(rows.columns, minlength=rows.shape[1])
    usual = np.flatnonzero((frequency > n_rows / 1000) & (frequency < n_rows / 20))
    positives = np.geomspace(100, 1000, n_topics) * fraction * (ROWS + TEST) / ROWS
    columns = [_positives(rng, rows, usual, max(3, round(n))) for n in positives.tolist()]
    offsets = np.concatenate([[0], np.cumsum([len(c) for c in columns])])
    ones = np.ones(int(offsets[-1]), dtype=np.int8)
    Y = sparse.csc_array((ones, np.concatenate(columns), offsets), shape=(n_rows, n_topics))
    return rows, Y.tocsr(), round(fraction * ROWS)


def _positives(
    rng: np.random.Generator, rows: CsrRows, usual: NDArray[np.int64], n_positives: int
) -> NDArray[np.int64]:
    """The rows of the highest score, a sum over some words, and noise."""
    weights = np.zeros(rows.shape[1])
    weights[rng.choice(usual, WORDS, replace=False)] = rng.exponential(size=WORDS)
    scores = linrank.LinearModel(weights).predict(rows)
    scores += 0.5 * scores.std() * rng.standard_normal(len(scores))
    return np.sort(np.argpartition(-scores, n_positives)[:n_positives])


if __name__ == "__main__":
    main(measure, __doc__)
