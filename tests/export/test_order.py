"""Every artefact orders rows as the model does: random rows, any few, and those of a fit."""

from __future__ import annotations

import json
from functools import cache

import numpy as np
import pandas
import pandas as pd
import pytest
from exported_models import KINDS, Kind, model_of, rows_of
from hypothesis import given
from hypothesis import strategies as st
from rounding import assert_order, bounds, first_inversion, resolved, terms_of, underflow
from serving import FILLS_ZERO, PRECISION, SCORERS, code_in, columns_of, exported, scores_in

import linrank
from hypothesis_profiles import examples
from linrank import LinearModel
from linrank.cli.main import main
from linrank.export.artefact import Artefact

CASES = [
    pytest.param(kind, target, {}, id=f"{kind}-{target}")
    for kind in KINDS
    for target in SCORERS
    if not (target in FILLS_ZERO and kind.missing in ("mean", "indicator"))
    # What OpenSearch reads is what Elasticsearch reads: a few kinds show it.
    if target != "opensearch" or kind in KINDS[::6]
] + [pytest.param(kind, "onnx", {"precision": "float64"}) for kind in KINDS[1::6]]


@pytest.mark.parametrize(("kind", "target", "options"), CASES)
def test_the_artefact_orders_rows_as_the_model_does(kind, target, options):
    model, rows = model_of(kind), rows_of(kind)
    computed = scores_in(target, model, rows, **options)
    assert_order(model, rows, computed, options.get("precision", PRECISION[target]))


@pytest.mark.parametrize("missing", ["error", "zero", "mean", "indicator"])
@pytest.mark.parametrize("target", ["json", "onnx"])
def test_the_code_of_the_instructions_orders_rows(target, missing, tmp_path, monkeypatch):
    kind = Kind(missing=missing)
    model, rows = model_of(kind), rows_of(kind)[:500]
    artefact = exported(model, target)
    artefact.save(tmp_path / next(iter(artefact.files)))
    monkeypatch.chdir(tmp_path)
    frame = pd.DataFrame(rows, columns=model.feature_names)
    told = {"frame": frame[sorted(model.feature_names)]}
    exec(code_in(artefact.instructions.split("In Vespa")[0]), told)
    if target == "onnx":
        found = told["score"]
    else:  # a value that is missing is None, or is not there at all
        lists = frame.astype(object).where(frame.notna(), None).to_dict("records")
        short = [{k: v for k, v in row.items() if v is not None} for row in lists]
        found = [told["score"](row) for row in [*lists[::2], *short[1::2]]]
        rows = np.concatenate([rows[::2], rows[1::2]])
        if missing == "error":
            with pytest.raises(TypeError):
                told["score"]({"another": 1.0})
    assert_order(model, rows, found, PRECISION[target])


def test_the_scores_of_the_definition_are_those_of_the_model_and_the_bound_is_narrow():
    for kind in KINDS:
        model, rows = model_of(kind), rows_of(kind)
        terms = terms_of(model, rows)
        off = np.abs(model.predict(rows) - terms.sum(axis=1))
        assert (off <= bounds(terms, "float64")).all()
        assert resolved(terms.sum(axis=1), bounds(terms, "float32")) > 0.6


def test_the_check_notices_a_weight_that_is_off_by_a_thousandth():
    model, rows = model_of(Kind()), rows_of(Kind())
    terms = terms_of(model, rows)
    for j in np.flatnonzero(model.coef):
        with pytest.raises(AssertionError, match="ranks above row"):
            assert_order(model, rows, terms.sum(axis=1) + 1e-3 * terms[:, j], "float32")


# ---- any rows by any weights: all pairs, one by one ------------------------------------------

exponents = st.integers(-45, 38)
digits = st.floats(1.0, 9.0) | st.floats(-9.0, -1.0) | st.just(0.0)
# Values that single precision holds, so that every engine reads them as they are.
values = st.floats(-1e6, 1e6, width=32) | st.sampled_from([0.0, 1.0, 1e-20, 1e15])


@st.composite
def problems(draw):
    """Weights within a dozen orders of each other, anywhere in single precision; a few rows."""
    d = draw(st.integers(1, 4))
    middle = draw(exponents)
    spread = draw(st.lists(st.integers(-6, 6), min_size=d, max_size=d))
    signed = draw(st.lists(digits, min_size=d, max_size=d).filter(any))
    coef = np.array([w * 10.0 ** (middle + s) for w, s in zip(signed, spread, strict=True)])
    rows = draw(st.lists(st.lists(values, min_size=d, max_size=d), min_size=2, max_size=12))
    return coef, np.array(rows, dtype=np.float32)


def all_pairs_kept(scores, bound, computed) -> bool:
    surely = (scores - bound)[:, None] > (scores + bound)[None, :]
    return bool((computed[:, None] > computed[None, :])[surely].all())


@examples(40)
@given(problems())
def test_every_target_keeps_the_order_of_every_pair(problem):
    coef, rows = problem
    model = LinearModel(coef, [f"x{j}" for j in range(coef.size)])
    terms = terms_of(model, rows)
    scores = terms.sum(axis=1)
    for target in SCORERS.keys() - {"onnx", "sql"}:  # these cost something to start
        computed, precision = scores_in(target, model, rows), PRECISION[target]
        assert np.isfinite(computed).all()
        bound = bounds(terms, precision) + underflow(scores, computed, coef.size, precision)
        assert all_pairs_kept(scores, bound, computed)


@examples(40)
@given(
    st.lists(
        st.tuples(st.integers(0, 6), st.integers(0, 2), st.integers(0, 6)), min_size=1, max_size=9
    )
)
def test_the_check_by_sorting_is_the_check_of_all_pairs(rows):
    scores, bound, computed = np.array(rows, dtype=np.float64).T
    inversion = first_inversion(scores, bound / 2, computed)
    assert (inversion is None) == all_pairs_kept(scores, bound / 2, computed)
    if inversion is not None:
        i, k = inversion
        assert scores[i] - bound[i] / 2 > scores[k] + bound[k] / 2
        assert computed[i] <= computed[k]


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
