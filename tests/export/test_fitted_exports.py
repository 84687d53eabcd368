"""From training to the engine: estimators and the command line, with data that lack values."""

from __future__ import annotations

import json
from functools import cache

import numpy as np
import pandas
import pytest
from rounding import assert_order
from serving import FILLS_ZERO, PRECISION, SCORERS, columns_of, exported, scores_in

import linrank
from linrank.cli.main import main
from linrank.export.artefact import Artefact

NAMES = ("bm25", "age", "clicks", "length", "links", "constant")


@cache
def data(has_gaps):
    """Rows of which the second feature may be missing, the last but one is of the query."""
    rng = np.random.default_rng(5)
    qid = np.repeat(np.arange(30), 10)
    rows = rng.normal(size=(300, 6)) * [1.0, 1e-3, 50.0, 1e4, 1.0, 0] + [3.0, 0.0, 50.0, 2e4, 0, 1]
    labels = np.digitize(rows[:, 0] + rows[:, 3] / 1e4 - rows[:, 2] / 50, [3.0, 5.0])
    rows[:, 4] = rng.gamma(2.0, size=30)[qid]
    if has_gaps:
        rows[::7, 1] = np.nan
    return pandas.DataFrame(rows.astype(np.float32), columns=NAMES), labels, qid


@cache
def fitted(scale, missing):
    rows, labels, qid = data(missing != "error")
    train = qid < 20
    return linrank.RankSVM(scale=scale, missing=missing).fit(
        rows[train], labels[train], qid=qid[train]
    )


@pytest.mark.parametrize("missing", ["error", "zero", "mean", "indicator"])
@pytest.mark.parametrize("scale", ["none", "standard", "minmax"])
def test_held_out_rows_keep_their_order_without_what_no_pair_sees(scale, missing, tmp_path):
    ranker = fitted(scale, missing)
    rows, _, qid = data(missing != "error")
    assert (ranker.coef_[4:] == 0.0).all()
    if missing == "mean":
        assert ranker.model_.missing.absent.tolist() == [False, True, *[False] * 4]
    ranker.model_.save(tmp_path / "model.json")
    loaded = linrank.load_model(tmp_path / "model.json")
    for target in SCORERS:
        artefact = exported(ranker, target)
        assert dict(exported(loaded, target).files) == dict(artefact.files)
        if target != "onnx":  # which takes the whole row
            assert b"links" not in b"".join(artefact.files.values())
        if target in FILLS_ZERO and missing in ("mean", "indicator"):
            assert "fill in those of 1 of the features" in " ".join(artefact.warnings)
            continue
        held_out = rows[qid >= 20].to_numpy()
        assert_order(loaded, held_out, scores_in(target, loaded, held_out), PRECISION[target])
    defaults = json.loads(exported(ranker, "elasticsearch").files.get("defaults.json", b"{}"))
    assert list(defaults) == (["age"] if missing in ("mean", "indicator") else [])
    patch = json.loads(exported(ranker, "solr").files.get("features.json", b"[]"))
    assert [each["name"] for each in patch] == list(defaults)


@pytest.mark.parametrize("target", SCORERS)
def test_the_command_line_writes_what_the_engine_reads(target, tmp_path):
    model, rows = fitted("standard", "zero").model_, data(True)[0].to_numpy()
    model.save(tmp_path / "model.json")
    path = tmp_path / "artefact"
    command = ["export", str(tmp_path / "model.json"), "--to", target, "-o", str(path), "-q"]
    assert main(command) == 0
    assert path.is_file()  # of one file: zeros need no defaults beside it
    artefact = Artefact(target, {"model": path.read_bytes()}, "")
    computed = SCORERS[target](artefact, columns_of(model, rows))
    assert_order(model, rows, computed, PRECISION[target])


def test_estimators_warn_where_they_are_called():
    ranker = linrank.RankSVM().fit([[0.0], [1.0]], [0, 1], qid=[1, 1])
    with pytest.warns(linrank.ExportWarning, match="no feature names") as caught:
        assert ranker.export("solr").text == ranker.model_.export("solr").text
    assert [warning.filename for warning in caught] == [__file__, __file__]
