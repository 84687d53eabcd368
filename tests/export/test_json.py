"""Export to plain JSON: the scorer of its instructions scores as the model does."""

import numpy as np
import pytest
from portable_models import KINDS, NAMES, assert_scores, code_in, model_of, rows_of

from linrank import LinearModel

DOUBLE = 2.0**-53


def records(X, names):
    """Rows as a program has them: a missing value is None, or is not there at all."""
    for i, row in enumerate(X.tolist()):
        known = {name: x for name, x in zip(names, row, strict=True) if x == x}
        yield known if i % 2 else {name: known.get(name) for name in names}


@pytest.mark.parametrize("kind", KINDS)
def test_the_scorer_of_the_instructions_scores_as_the_model(kind, tmp_path, monkeypatch):
    model, X = model_of(kind), rows_of(2_000, len(NAMES), missing=kind != "error")
    artefact = model.export("json")
    artefact.save(tmp_path / "model.json")
    monkeypatch.chdir(tmp_path)
    told = {}
    exec(code_in(artefact.instructions), told)
    scores = [told["score"](record) for record in records(X, NAMES)]
    assert_scores(scores, model, X, DOUBLE)
    np.testing.assert_allclose(scores, model.predict(X), rtol=1e-9, atol=1e-300)


def test_the_scorer_refuses_missing_values_where_the_model_does(tmp_path, monkeypatch):
    artefact = LinearModel([1.0], ["a"]).export("json")
    artefact.save(tmp_path / "model.json")
    monkeypatch.chdir(tmp_path)
    told = {}
    exec(code_in(artefact.instructions), told)
    with pytest.raises(TypeError):
        told["score"]({"b": 1.0})
