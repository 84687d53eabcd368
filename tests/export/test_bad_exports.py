"""Bad input of exports: each is an error that names the value, the place and the remedy."""

from __future__ import annotations

import re

import numpy as np
import pytest
from exported_models import training_rows

import linrank
from linrank import LinearModel
from linrank.export import TARGETS
from linrank.export.targets import options_of, target_name

NAMES = ("bm25", "age", "clicks")

pytestmark = pytest.mark.filterwarnings("ignore::linrank.errors.ExportWarning")


@pytest.fixture
def model() -> LinearModel:
    return LinearModel([0.5, -1.0, 2.0], NAMES)


@pytest.mark.parametrize(
    ("target", "nearest"),
    [("elasticsaerch", "elasticsearch"), ("opensarch", "opensearch"), ("slor", "solr")],
)
def test_an_unknown_target_is_told_the_nearest(model, target, nearest):
    with pytest.raises(ValueError, match=rf"{target!r}.*did you mean {nearest!r}") as caught:
        model.export(target)
    assert all(name in str(caught.value) for name in TARGETS)


@pytest.mark.parametrize("target", TARGETS)
def test_weights_that_are_all_zero_rank_nothing(target):
    with pytest.raises(ValueError, match="all weights"):
        LinearModel([0.0, 0.0, 0.0], NAMES).export(target)


def test_a_feature_map_that_is_not_there(model, tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere"):
        model.export("elasticsearch", feature_map=tmp_path / "nowhere.map")


def test_a_feature_map_of_another_type(model):
    with pytest.raises(TypeError, match="feature_map"):
        model.export("elasticsearch", feature_map=["x", "y", "z"])


@pytest.mark.parametrize("target", TARGETS)
def test_an_option_that_the_target_does_not_have(model, target):
    with pytest.raises(TypeError, match=f"{target}.*'color'"):
        model.export(target, color="red")


@pytest.mark.parametrize("name", ["", " ", None, 3])
def test_a_name_that_is_none(model, name):
    with pytest.raises((TypeError, ValueError), match="name"):
        model.export("elasticsearch", name=name)


def test_a_kernel_model_is_no_sum_over_features():
    rows = training_rows(3, 0)[:20]
    ranker = linrank.KernelRankSVM(kernel="rbf").fit(rows, np.arange(20) % 3)
    from linrank.export import export

    with pytest.raises(TypeError, match=r"rbf.*LinearModel"):
        export(ranker.model_, "elasticsearch")


def test_what_is_no_model_at_all():
    from linrank.export import export

    with pytest.raises(TypeError, match="LinearModel, got ndarray"):
        export(np.ones(3), "elasticsearch")


def test_an_estimator_that_was_not_fitted():
    from sklearn.exceptions import NotFittedError

    with pytest.raises(NotFittedError):
        linrank.RankSVM().export("elasticsearch")


def test_nothing_is_saved_where_there_is_no_folder(model, tmp_path):
    artefact = model.export("elasticsearch")
    with pytest.raises(FileNotFoundError, match=re.escape(str(tmp_path / "nowhere"))):
        artefact.save(tmp_path / "nowhere" / "model.json")
    assert not list(tmp_path.iterdir())


def test_targets_and_their_options_by_name(model):
    assert [target_name(name) for name in ("ES", "os", "Solr")] == [
        "elasticsearch",
        "opensearch",
        "solr",
    ]
    assert options_of("solr") == ("store", "collection", "tolerance", "steps")
    with pytest.raises(TypeError, match="solr has no option 'shop'; it has store, collection"):
        model.export("solr", shop="a")
    with pytest.raises(TypeError, match="ranklib has no option 'a'; it has none"):
        model.export("ranklib", a=1)
    with pytest.raises(ValueError, match="phase must be 'first' or 'second', got 'third'"):
        model.export("vespa", phase="third")
    with pytest.raises(ValueError, match="unknown export target 'xyz'; there are elasticsearch"):
        model.export("xyz")
