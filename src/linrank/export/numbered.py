"""RankLib and LIBLINEAR: texts of programs that know features by numbers, from 1."""

from __future__ import annotations

import numpy as np

from linrank.data import Array
from linrank.export.artefact import Artefact, fill_text
from linrank.export.form import Form, text
from linrank.export.names import join_names
from linrank.system.resources import check_fits

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


def write_ranklib(form: Form, name: str) -> Artefact:
    """RankLib: the text of a Coordinate Ascent model, ``number:weight`` in one line.

    The plugins of search engines read the same text as a model of type ``model/ranklib``.

    Parameters
    ----------
    form : Form
        The model.
    name : str
        Not part of the file.
    """
    numbers = _feature_numbers(form)
    order = np.argsort(numbers, kind="stable")
    line = " ".join(f"{numbers[k]}:{text(form.weights[k])}" for k in order)
    content = f"{_HEADER}{line}\n"
    return _make_artefact(form, numbers, content)


_LINE = 24  # bytes of a weight


def write_liblinear(form: Form, name: str) -> Artefact:
    """LIBLINEAR: a regression model, a line for every feature, without bias.

    LIBLINEAR gives the value of the function for models of regression, and a class for all others.

    Parameters
    ----------
    form : Form
        The model.
    name : str
        Not part of the file.
    """
    numbers = _feature_numbers(form)
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
    return _make_artefact(form, numbers, content)


_MOST = 2**31 - 1  # a Java or C int
_DIGITS = 10  # of that; Python refuses to read thousands


def _feature_numbers(form: Form) -> Array:
    """The number of each feature, from 1: its name if all names are numbers, else its column.

    So a feature map can give other numbers: those of an engine's feature set.
    """
    are_numbers = [name.isdecimal() and name.isascii() for name in form.names]
    if not any(are_numbers):
        return form.columns + 1
    for name, is_number in zip(form.names, are_numbers, strict=True):
        if not is_number or len(name) > _DIGITS or not 1 <= int(name) <= _MOST:
            raise ValueError(
                f"{form.target} knows features by numbers from 1, and {name!r} is none, while "
                "others are; give the numbers of all features by a feature map"
            )
    numbers = np.array([int(name) for name in form.names], dtype=np.int64)
    found, counts = np.unique(numbers, return_counts=True)
    if len(found) < len(numbers):  # 1 and 01 are two names
        number = found[counts.argmax()]
        same = " and ".join(
            repr(name) for name, k in zip(form.names, numbers, strict=True) if k == number
        )
        raise ValueError(
            f"{form.target} knows features by numbers, and {same} are one; give each a number of "
            "its own by a feature map"
        )
    return numbers


def _make_artefact(form: Form, numbers: Array, content: str) -> Artefact:
    """The file of a program that knows features by numbers and takes 0 for a missing value.

    ``instructions`` have a place for the number of ``{features}`` and one for their ``{names}``.
    """
    warnings = []
    if form.base == 0 and not any(name.isdecimal() for name in form.names):
        warnings.append(
            f"the features of the training file are numbered from 0, those of {form.target} from "
            "1: feature 0 of the file is feature 1 here"
        )
    n = int(np.count_nonzero(form.contributions * form.absent))
    if n:
        warnings.append(
            f"the model fills in missing values (missing={form.missing!r}) where {form.target} "
            f"takes 0: fill in those of {n} of the features before"
        )
    names = join_names([f"{k} {name}" for k, name in zip(numbers, form.names, strict=True)])
    told = fill_text(form.target, "text", n_features=len(form.names), names=names)
    return Artefact(form.target, {"model.txt": content.encode()}, told, tuple(warnings))
