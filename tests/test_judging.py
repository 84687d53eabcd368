"""Labels from qrels by (query, document), and runs side by side as features."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hypothesis_profiles import examples
from linrank.data.dataset import Dataset
from linrank.data.words import Comments, Words
from linrank.io.trec import label_by_qrels

IDS = st.sampled_from(["1", "2", "07", "q", "ü"])
DOCUMENTS = st.sampled_from(["a", "b", "c", "docid=d", "GX-1"])


def rows_of(pairs: list[tuple[object, str | None]]) -> Dataset:
    words = Words.of("" if d is None else f"docid = {d}" for _, d in pairs)
    data = Dataset.of(np.arange(float(len(pairs)))[:, None], [9.0] * len(pairs))
    qid = np.array([q for q, _ in pairs], dtype=object)
    return replace(data, qid=qid, comments=Comments(words.text, words.offsets))


@examples(40)
@given(
    st.lists(st.tuples(IDS, DOCUMENTS), min_size=1, max_size=12),
    st.dictionaries(st.tuples(IDS, DOCUMENTS), st.sampled_from([-1.0, 0.0, 1.0, 2.5]), min_size=1),
    st.sampled_from(["zero", "drop", "error"]),
)
def test_labels_are_those_of_a_dictionary(pairs, judgments, unjudged):
    qrels: dict[str, dict[str, float]] = {}
    for (q, d), relevance in judgments.items():
        qrels.setdefault(q, {})[d] = relevance
    data, known = rows_of(pairs), [pair in judgments for pair in pairs]
    if not any(known):
        with pytest.raises(ValueError, match=r"none of the .* the ids must be the same"):
            label_by_qrels(data, qrels, unjudged)
        return
    if unjudged == "error" and not all(known):
        with pytest.raises(ValueError, match=f"row {known.index(False)}, document .* not judged"):
            label_by_qrels(data, qrels, unjudged)
        return
    kept = [i for i in range(len(pairs)) if known[i] or unjudged != "drop"]
    found = label_by_qrels(data, qrels, unjudged)
    assert found.labels.tolist() == [judgments.get(pairs[i], 0.0) for i in kept]
    assert found.X[:, 0].tolist() == kept
    assert found.docids == [pairs[i][1] for i in kept]


def test_integer_ids_match_their_text(tmp_path):
    path = tmp_path / "a.qrels"
    path.write_text("7 0 a 2\n8 0 a 1\n")
    data = rows_of([(8, "a"), (7, "a"), (7, "b")])
    data = replace(data, qid=np.array([8, 7, 7]))
    assert label_by_qrels(data, path).labels.tolist() == [1, 2, 0]
    assert data.labels.tolist() == [9, 9, 9]  # what was given stays


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (replace(rows_of([("q", "a")]), comments=None), "have no document ids"),
        (replace(rows_of([("q", "a")]), qid=None), "have no query ids"),
        (rows_of([("q", "a"), ("q", None)]), "row 1 of query 'q' has no document id"),
    ],
)
def test_rows_without_ids_are_refused(data, message):
    with pytest.raises(ValueError, match=message):
        label_by_qrels(data, {"q": {"a": 1}})


def test_what_is_no_judgment_is_refused():
    with pytest.raises(TypeError, match="qrels must be a Qrels, the path"):
        label_by_qrels(rows_of([("q", "a")]), 3)
    with pytest.raises(ValueError, match="unjudged must be one of zero, drop, error"):
        label_by_qrels(rows_of([("q", "a")]), {"q": {"a": 1}}, "none")
