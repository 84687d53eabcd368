"""The errors and warnings that linrank raises on its own account."""

from __future__ import annotations

__all__ = [
    "CheckpointError",
    "ClusterError",
    "ConvergenceWarning",
    "DataFormatError",
    "ExportWarning",
    "ModelFormatError",
    "NoPairsError",
    "TooFewPairsError",
]


class CheckpointError(ValueError):
    """A checkpoint is damaged, foreign, from a newer version, or of another run."""


class ClusterError(RuntimeError):
    """A Dask cluster is gone or cannot go on; the message says what is left and how to go on."""


class DataFormatError(ValueError):
    """A data file does not follow its format; the message names file, line and column."""


class ModelFormatError(ValueError):
    """A model file is damaged, foreign, or from a newer version."""


class NoPairsError(ValueError):
    """No query holds two different labels, so there is nothing to learn from."""


class TooFewPairsError(ValueError):
    """The labels make fewer pairs than were asked for."""


class ConvergenceWarning(UserWarning):
    """The solver stopped before its tolerance was reached."""


class ExportWarning(UserWarning):
    """An exported model does not say all that the model says; the message says what to do."""
