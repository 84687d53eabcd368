"""RankLib: the text of a Coordinate Ascent model, ``number:weight`` in one line.

The engines' plugins read the same text as a model of type ``model/ranklib``.
"""

from __future__ import annotations

import numpy as np

from linrank.export.artefact import Artefact
from linrank.export.engine_names import feature_numbers, numbered_artefact
from linrank.export.linear_form import LinearForm, text

NAMED = False

# RankLib reads the kind of model from the first line and skips the others that begin so. They are
# its parameters of training, which is not what made this model; they are there for other readers.
_HEADER = """\
## Coordinate Ascent
## Restart = 5
## MaxIteration = 25
## StepBase = 0.05
## StepScale = 2.0
## Tolerance = 0.001
## Regularized = false
## Slack = 0.001
"""
_INSTRUCTIONS = (
    "A linear model of {features} features as RankLib's Coordinate Ascent.\n\n"
    "Features by number: {names}. Score rows in RankLib's format, which must name "
    "all of these features in each row:\n\n"
    "  java -jar RankLib.jar -load model.txt -rank test.txt -score scores.txt\n\n"
    "The learning-to-rank plugins of Elasticsearch and OpenSearch take the text as the "
    "definition of a model of type model/ranklib; the numbers are then places in the feature "
    "set, from 1. Do not pass -norm: the weights are those of raw values.\n"
)


def write(form: LinearForm, name: str, normalizers: str) -> Artefact:
    """The model file.

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
    order = np.argsort(numbers, kind="stable")
    line = " ".join(f"{numbers[k]}:{text(form.weights[k])}" for k in order)
    content = f"{_HEADER}{line}\n"
    return numbered_artefact(form, numbers, content, _INSTRUCTIONS)
