"""Generated sets with the shapes of well-known collections, kept on disk once made."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import linrank
from linrank.data.dataset import Dataset
from linrank.data.rows import CsrRows, DenseRows
from linrank.data.synthetic import make_ranking

# ---- documents ------------------------------------------------------------
#
# Made-up collections of documents: unit tf-idf rows, one query, a rare topic to be found.
#
# A document is a bag of tokens. A share of them, different for each document, comes from the words
# of its topic, the others from a background that follows Zipf's law. Documents of topic 0
# are the positives; topic 1 has half of its words, and some positives hold hardly any word of their
# topic, so that no linear model is perfect.

N_TOPICS, TOPIC_WORDS = 100, 400
BLOCK = 1 << 15  # documents made at once: a document and a word share a key of 32 bits
LAW, FLATTENING = 1.0, 30.0  # frequency of the word of rank r ~ (r + FLATTENING)^-LAW

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]


@dataclass(frozen=True)
class Documents:
    """A fraction of the set has that share of its rows, and all words that these rows hold."""

    about: str
    n_rows: int
    n_features: int  # at most 2^16
    n_tokens: int  # of the median document
    positives: float  # share of the rows

    @property
    def density(self) -> float:
        """Upper bound: a word counts once for all its tokens in a document."""
        return self.n_tokens / self.n_features

    def make(self, fraction: float) -> Dataset:
        n_rows = max(100, round(fraction * self.n_rows))
        rng = np.random.default_rng(2009)
        topic = _topics(rng, n_rows, self.positives)
        words = _Words(rng, self.n_features)
        size = rng.lognormal(np.log(self.n_tokens), 0.5, n_rows)
        n_tokens = np.clip(size, 5, 10 * self.n_tokens).astype(np.int64)
        share = rng.beta(2.5, 6.0, n_rows).astype(np.float32)  # of the tokens from the topic
        blocks = []
        for begin in range(0, n_rows, BLOCK):
            part = slice(begin, begin + BLOCK)
            blocks.append(_count_words(*words.draw(rng, n_tokens[part], topic[part], share[part])))
        counts, columns, sizes = (np.concatenate(parts) for parts in zip(*blocks, strict=True))
        offsets = np.concatenate([[0], np.cumsum(sizes)])
        values = _unit_tf_idf(counts, columns, offsets, self.n_features)
        rows = CsrRows(values, columns, offsets, self.n_features)
        return Dataset(rows, (topic == 0).astype(np.float64), np.zeros(n_rows, np.int64))


def _topics(rng: np.random.Generator, n_rows: int, positives: float) -> Ints:
    """Topic 0 by its share, which a small set has too; the others by Zipf's law."""
    frequency = 1.0 / np.arange(1, N_TOPICS)
    topic = 1 + rng.choice(N_TOPICS - 1, n_rows, p=frequency / frequency.sum())
    topic[rng.choice(n_rows, max(5, round(positives * n_rows)), replace=False)] = 0
    return topic.astype(np.int32)


class _Words:
    """Words as tables of equally likely entries: a draw is one random number and one look."""

    def __init__(self, rng: np.random.Generator, n_words: int) -> None:
        frequency = (np.arange(n_words) + FLATTENING) ** -LAW
        frequency = rng.permutation(frequency / frequency.sum())  # frequent words lie anywhere
        self.background = _table(frequency, 1 << 22)
        topics = []
        for _ in range(N_TOPICS):
            # Words of a topic are rarer than the common ones, and not the rarest.
            chosen = rng.choice(n_words, TOPIC_WORDS, replace=False, p=_flatten(frequency))
            topics.append(chosen)
        topics[1][::2] = topics[0][::2]
        law = 1.0 / (np.arange(TOPIC_WORDS) + 5.0)
        places = _table(law / law.sum(), 1 << 12)
        self.topics = np.stack(topics).astype(np.int32)[:, places]

    def draw(
        self, rng: np.random.Generator, n_tokens: NDArray[np.int64], topic: Ints, share: Floats
    ) -> tuple[NDArray[np.uint32], int]:
        """A key ``document << 16 | word`` for each token, and the number of documents."""
        document = np.repeat(np.arange(len(n_tokens), dtype=np.uint32), n_tokens)
        place = rng.integers(0, 1 << 32, len(document), dtype=np.uint32)
        word = self.background[place >> 10]
        is_topical = rng.random(len(document), dtype=np.float32) < share[document]
        of = topic[document[is_topical]]
        word[is_topical] = self.topics[of, place[is_topical] >> 20]
        return document << 16 | word.astype(np.uint32), len(n_tokens)


def _flatten(frequency: Floats) -> Floats:
    root = np.sqrt(frequency)
    root[frequency > np.quantile(frequency, 0.98)] = 0
    return root / root.sum()


def _table(probability: Floats, size: int) -> Ints:
    """The quantiles of a distribution, in ``size`` equal steps."""
    steps = (np.arange(size) + 0.5) / size
    found = np.searchsorted(np.cumsum(probability), steps)
    return np.minimum(found, len(probability) - 1).astype(np.int32)


def _count_words(
    keys: NDArray[np.uint32], n_documents: int
) -> tuple[NDArray[np.int64], Ints, NDArray[np.int64]]:
    """How often each word of each document occurs, the words, and how many a document has."""
    keys.sort()
    first = np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1]]))
    counts = np.diff(first, append=len(keys))
    unique = keys[first]
    sizes = np.bincount(unique >> 16, minlength=n_documents)
    return counts, (unique & 0xFFFF).astype(np.int32), sizes


def _unit_tf_idf(
    counts: NDArray[np.int64], columns: Ints, offsets: NDArray[np.int64], n_words: int
) -> NDArray[np.float32]:
    """``(1 + log tf)·log(n / df)``, each row divided by its length."""
    n_rows = len(offsets) - 1
    document_frequency = np.maximum(1, np.bincount(columns, minlength=n_words))
    idf = np.log((n_rows + 1) / document_frequency).astype(np.float32)
    values = 1 + np.log(counts.astype(np.float32))
    values *= idf[columns]
    length = np.sqrt(np.add.reduceat(np.square(values), offsets[:-1]))
    values /= np.repeat(length, np.diff(offsets))
    return values


# ---- all sets ------------------------------------------------------------

CACHE = Path(__file__).resolve().parent.parent / "build" / "benchmarks"


@dataclass(frozen=True)
class Shape:
    """Arguments of `linrank.make_ranking`; a fraction of the set has that share of its queries."""

    about: str
    n_queries: int
    rows_per_query: int | tuple[int, int]
    n_features: int
    n_levels: int | None
    density: float = 1.0

    def make(self, fraction: float) -> Dataset:
        n_queries, rows = self.n_queries, self.rows_per_query
        if n_queries == 1 and isinstance(rows, int):
            rows = max(10, round(fraction * rows))
        else:
            n_queries = max(2, round(fraction * n_queries))
        sizes = (n_queries, rows, self.n_features, self.n_levels)
        data = make_ranking(*sizes, density=self.density, random_state=2014)
        return query_normalized(data) if self.density == 1.0 else data


# Bounds of the query sizes are chosen for the mean size in the comment behind them. Dense sets are
# normalized by query, as LETOR and Yahoo sets are when published: conjugate gradients then need
# about as many steps as on real sets, on the raw values four times as many.
GENERATED: dict[str, Shape | Documents] = {
    "a": Shape("MQ2007 shape", 1_692, (7, 67), 46, 3),  # 25
    "b": Shape("MSLR-WEB30K shape", 18_920, (40, 290), 136, 5),  # 120
    "b20": Shape("MSLR-WEB30K shape, 20%", 3_784, (40, 290), 136, 5),
    "b10": Shape("MSLR-WEB30K shape, 10%", 1_892, (40, 290), 136, 5),
    "c": Shape("MQ2007-list shape, labels distinct", 1_030, (350, 1_300), 46, None),  # 720
    "y20": Shape("Yahoo shape, 20%", 3_750, (8, 64), 520, 5),  # 25
    "d": Shape("sparse CTR shape, one query", 1, 1_000_000, 1_000_000, 2, 30e-6),
    "d200k": Shape("sparse CTR shape, one query", 1, 200_000, 200_000, 2, 150e-6),
    "f": Shape("one query, labels distinct", 1, 50_000, 46, None),
    "rcv1": Documents("RCV1 shape, one query", 804_414, 47_236, 70, 0.002),
}


def generate(name: str, fraction: float) -> Dataset:
    """Generated once: making ``b`` takes longer than all its fits."""
    folder = CACHE / (name if fraction == 1.0 else f"{name}-{fraction:g}")
    shape = GENERATED[name]
    stamp = repr((shape, fraction, linrank.__version__))
    if not (folder / "stamp").exists() or (folder / "stamp").read_text() != stamp:
        folder.mkdir(parents=True, exist_ok=True)
        _store(shape.make(fraction), folder)
        (folder / "stamp").write_text(stamp)
    arrays = {path.stem: np.load(path) for path in folder.glob("*.npy")}
    if shape.density < 1:
        rows: Any = CsrRows(
            arrays["values"], arrays["columns"], arrays["offsets"], shape.n_features
        )
    else:
        rows = DenseRows(arrays["values"])
    return Dataset(rows, arrays["labels"], arrays["qid"], source=f"<{name}>")


def _store(data: Dataset, folder: Path) -> None:
    arrays = {"values": data.rows.values, "labels": data.labels, "qid": data.qid}
    if isinstance(data.rows, CsrRows):
        arrays |= {"columns": data.rows.columns, "offsets": data.rows.offsets}
    for key, array in arrays.items():
        np.save(folder / f"{key}.npy", array)


def query_normalized(data: Dataset) -> Dataset:
    """Each feature mapped to [0, 1] inside each query; 0 where it is constant there."""
    order, offsets = data.queries.order, data.queries.offsets
    X = np.array(data.X) if isinstance(data.rows, DenseRows) else data.X.toarray()
    X = X if order is None else X[order]
    for begin, end in pairwise(offsets):
        rows = X[begin:end]
        rows -= rows.min(axis=0)
        width = rows.max(axis=0)
        rows *= np.divide(1, width, out=np.zeros_like(width), where=width > 0)
    data = data if order is None else data.select(order)
    return replace(data, rows=DenseRows(X))
