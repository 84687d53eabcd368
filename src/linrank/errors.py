"""The errors and warnings that linrank raises on its own account."""

from __future__ import annotations

import numbers
from collections.abc import Iterable

TYPE_CHECKING = False  # that of typing, which takes 15 ms to import
if TYPE_CHECKING:
    from typing import Any


class LinrankError(Exception):
    """What every error has in common that linrank alone raises; each is a built-in one as well.

    Arguments that no function could take are plain ValueErrors and TypeErrors.
    """


class CheckpointError(LinrankError, ValueError):
    """A checkpoint is damaged, foreign, from a newer version, or of another run."""


class ClusterError(LinrankError, RuntimeError):
    """A Dask cluster is gone or cannot go on; the message says what is left and how to go on."""


class DataFormatError(LinrankError, ValueError):
    """A data file does not follow its format; the message names file, line and column."""


class DeviceError(LinrankError, RuntimeError):
    """A device, its driver or the library that reaches it is missing."""


class ModelFormatError(LinrankError, ValueError):
    """A model file is damaged, foreign, or from a newer version."""


class NoPairsError(LinrankError, ValueError):
    """No query holds two different labels, so there is nothing to learn from."""


class TooFewPairsError(LinrankError, ValueError):
    """The labels make fewer pairs than were asked for."""


class DataWarning(UserWarning):
    """Data look like something other than what they are taken for; the message says what to do."""


class ExportWarning(UserWarning):
    """An exported model does not say all that the model says; the message says what to do."""


if TYPE_CHECKING:

    class ConvergenceWarning(UserWarning):
        """The solver stopped before its tolerance was reached; a subclass of scikit-learn's."""


def __getattr__(name: str) -> Any:
    """``ConvergenceWarning``, made on first use.

    Filters ask for a true subclass of scikit-learn's, and the command line, which warns of nothing
    by it, must not wait for scikit-learn.
    """
    if name != "ConvergenceWarning":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from sklearn.exceptions import ConvergenceWarning

    about = "The solver stopped before its tolerance was reached; a subclass of scikit-learn's."
    made = type(name, (ConvergenceWarning,), {"__module__": __name__, "__doc__": about})
    return globals().setdefault(name, made)  # one class, whichever thread came first


_INSIDE = (__name__.partition(".")[0], "sklearn", "joblib")  # a search calls us by way of them


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn with the line of the user's code, however deep inside this is."""
    import sys
    import warnings

    frame: Any = sys._getframe(1)
    level = 2
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] in _INSIDE:
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


def check_positive(name: str, value: Any, otherwise: str = "", optional: bool = False) -> None:
    """Raise ValueError for what is no finite number > 0; the message ends with ``otherwise``.

    None passes where the value is ``optional``, here as below.
    """
    if optional and value is None:
        return
    if not (is_number(value) and 0.0 < float(value) < float("inf")):
        raise ValueError(f"{name} must be a finite number > 0, got {value!r}{otherwise}")


def check_natural(name: str, value: Any, otherwise: str = "", optional: bool = False) -> None:
    """Raise ValueError for what is no integer >= 1; ``otherwise`` says what else it may be."""
    if optional and value is None:
        return
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or value < 1:
        raise ValueError(f"{name} must be an integer >= 1{otherwise}, got {value!r}")


def check_numbers(C: Any, tol: Any, max_iter: Any) -> None:
    """Raise ValueError for numbers that no training takes; the last two may be None."""
    check_positive("C", C)
    check_positive("tol", tol, optional=True)
    check_natural("max_iter", max_iter, optional=True)


def check_share(name: str, value: Any, otherwise: str = "") -> None:
    """Raise ValueError for what is neither None nor a number > 0 and <= 1."""
    if value is not None and not (is_number(value) and 0.0 < float(value) <= 1.0):
        raise ValueError(f"{name} must be a share{otherwise} > 0 and <= 1, or None, got {value!r}")


def check_one_of(name: str, value: Any, known: tuple[str | None, ...]) -> None:
    """Raise ValueError for what is none of the ``known`` names, two at least."""
    if not (value is None or isinstance(value, str)) or value not in known:
        names = [repr(one) for one in known]
        raise ValueError(f"{name} must be {', '.join(names[:-1])} or {names[-1]}, got {value!r}")


def is_number(value: Any) -> bool:
    """Whether it is a real number; True and False are none."""
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


_LONGEST = 100  # characters; comparing two names takes the product of their lengths
_MOST = 50_000  # a second


def nearest(name: object, known: Iterable[str], cutoff: float = 0.6) -> str | None:
    """The most similar of the known names; None where none is alike by at least ``cutoff``.

    A message must not take longer than the work that it is about: long names, which nobody
    misspells, are not compared, nor is any where there are very many.
    """
    import difflib  # needed only to say what is wrong

    wrong, names = str(name), [one for one in known if len(one) <= _LONGEST]
    if len(wrong) > _LONGEST or len(names) > _MOST:
        return None
    near = difflib.get_close_matches(wrong, names, n=1, cutoff=cutoff)
    return near[0] if near else None


def did_you_mean(name: object, known: Iterable[str], cutoff: float = 0.6) -> str:
    """The end of a sentence on an unknown name; empty where no known one is like it.

    Examples
    --------
    >>> "unknown format 'parkett'" + did_you_mean("parkett", ["csv", "parquet"])
    "unknown format 'parkett'; did you mean 'parquet'?"
    """
    near = nearest(name, known, cutoff)
    return "" if near is None else f"; did you mean {near!r}?"
