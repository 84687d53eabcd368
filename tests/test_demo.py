"""The demo runs, learns something, and leaves a folder that stands alone."""

from __future__ import annotations

import re
import sys

import numpy as np
import pytest
from sklearn.base import clone

from linrank import demo


@pytest.fixture(scope="module")
def small():
    return demo.run(n_queries=150, n_features=12)


def test_parts_share_no_query(small):
    ids = [set(data.qid.tolist()) for data in small.parts.values()]
    assert not ids[0] & ids[1]
    assert not ids[0] & ids[2]
    assert not ids[1] & ids[2]
    assert len(ids[0] | ids[1] | ids[2]) == 150


def test_learning_beats_the_baselines(small):
    random, single, learnt = (result["ndcg@10"] for result in small.test.values())
    assert random < single < learnt


def test_the_choice_is_the_best_on_validation(small):
    chosen = next(value for ranker, value in small.path if ranker is small.best)
    assert chosen == max(value for _, value in small.path)


def test_certificates_bound_every_fit(small):
    """The minimum lies between F - gap and F."""
    train = small.parts["train"]
    for ranker, _ in small.path:
        assert ranker.converged_
        minimum = clone(ranker).set_params(tol=1e-9).fit(train.X, train.y, qid=train.qid).objective_
        rounding = 1e-7 * minimum  # the rows are float32
        assert ranker.objective_ - ranker.duality_gap_ - rounding <= minimum
        assert minimum <= ranker.objective_ + rounding


def test_folder_holds_everything_it_names(tmp_path, capsys):
    assert demo.main([str(tmp_path / "out")]) == 0
    text = capsys.readouterr().out
    assert "certificate for C" in text
    assert "pairwise_accuracy" in text
    for name in ("model.json", "convergence.png", "weights.png", "ndcg.png", "report.html"):
        assert str(tmp_path / "out" / name) in text
        assert (tmp_path / "out" / name).stat().st_size > 500
    page = (tmp_path / "out" / "report.html").read_text()
    assert page.count("data:image/png;base64,") == 3
    assert not re.search(r"(src|href)=\"(?!data:)", page)


def test_the_saved_model_scores_like_the_chosen_one(tmp_path, small):
    from linrank.model import load_model

    demo._write(small, ["text"], str(tmp_path))
    X = small.parts["test"].X
    saved = load_model(tmp_path / "model.json")
    np.testing.assert_array_equal(saved.predict(X), small.best.decision_function(X))


def test_without_matplotlib_it_says_so_and_goes_on(tmp_path, small, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    written = demo._write(small, ["some <text>"], str(tmp_path))
    assert "pip install linrank[plot]" in capsys.readouterr().err
    assert [path.rsplit("/", 1)[1] for path in written] == ["model.json", "report.html"]
    assert "some &lt;text&gt;" in (tmp_path / "report.html").read_text()


def test_a_file_in_the_place_of_the_folder_is_told(tmp_path, capsys):
    (tmp_path / "file").write_text("")
    with pytest.raises(SystemExit):
        demo.main([str(tmp_path / "file")])
    assert "is a file; name a folder" in capsys.readouterr().err
