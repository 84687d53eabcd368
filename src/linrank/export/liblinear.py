"""LIBLINEAR: the text of a regression model, whose prediction is the score itself."""

from __future__ import annotations

import numpy as np

from linrank.export.artefact import Artefact
from linrank.export.engine_names import feature_numbers, numbered_artefact
from linrank.export.linear_form import LinearForm, text
from linrank.system.resources import check_fits

NAMED = False
PRECISION = "float64"
_LINE = 24  # bytes of a weight
_INSTRUCTIONS = (
    "A linear model of {features} features as a regression model of LIBLINEAR.\n\n"
    "Features by number: {names}. Score rows in LIBSVM's format without qid:; what "
    "it predicts are the scores, and the accuracy that it prints means nothing:\n\n"
    "  predict test.txt model.txt scores.txt\n\n"
    "Programs that read such files, like the example of Solr's learning-to-rank module, take "
    "the lines after w, one weight for each feature. Raw values, not scaled by svm-scale.\n"
)


def write(form: LinearForm, name: str, normalizers: str) -> Artefact:
    """The model file: a line for every feature, without bias.

    LIBLINEAR gives the value of the function for models of regression, and a class for all others.

    Parameters
    ----------
    form : LinearForm
        The model.
    name : str
        Not part of the file.
    normalizers : {"folded"}
        Scaling is in the weights.
    """
    numbers = feature_numbers(form)
    mapped = not np.array_equal(numbers, form.columns + 1)
    n_features = int(numbers.max()) if mapped else form.n_features
    check_fits(_LINE * n_features, f"a text of {n_features:,} weights", "use smaller numbers")
    weights = np.zeros(n_features)
    weights[numbers - 1] = form.weights
    lines = [
        "solver_type L2R_L2LOSS_SVR",
        "nr_class 2",
        f"nr_feature {n_features}",
        "bias -1",
        "w",
        *(f"{text(weight)} " for weight in weights),
    ]
    content = "\n".join(lines) + "\n"
    return numbered_artefact(form, numbers, content, _INSTRUCTIONS)
