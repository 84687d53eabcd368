"""Model files for the commands: a path, or ``-`` for a standard stream."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from linrank.cli.streams import STANDARD, write_standard
from linrank.io.blocks import standard_input
from linrank.system.durable import naming

if TYPE_CHECKING:
    from linrank.cli.console import Console
    from linrank.models.kernel import KernelModel
    from linrank.models.linear import LinearModel

VALIDATED = "valid "  # begins the names of the measures on --valid, in the summary of the training


def is_model(path: str) -> bool:
    """Whether a file starts like the JSON of a model; no line of data begins with a brace."""
    if path == STANDARD or not os.path.isfile(path):
        return False
    with naming(path), open(path, "rb") as file:
        return file.read(64).lstrip().startswith(b"{")


def read_model(path: str) -> LinearModel | KernelModel:
    """The model of a file or of standard input."""
    from linrank.models.linear import load_model

    if path != STANDARD:
        return load_model(path)
    from linrank.models.file import MAX_JSON_BYTES
    from linrank.system.durable import Scratch

    with Scratch() as scratch:
        copy = os.path.join(scratch.path, "standard input")
        with open(copy, "wb") as file:
            file.write(standard_input().read(MAX_JSON_BYTES + 1))
        return load_model(copy)


def write_model(model: LinearModel | KernelModel, path: str, console: Console) -> None:
    """Save the model to a file or to standard output, and say so."""
    if path == STANDARD:
        _write_standard(model)
    else:
        model.save(path)
    console.say("saved", "standard output" if path == STANDARD else path)


def _write_standard(model: LinearModel | KernelModel) -> None:
    from linrank.system.durable import Scratch

    with Scratch() as scratch:
        copy = os.path.join(scratch.path, "model.json")
        model.save(copy)
        if len(os.listdir(scratch.path)) > 1:
            size = f"{model.n_features:,} features"
            if hasattr(model, "n_support"):
                size = f"{model.n_support:,} support rows of {size}"
            raise ValueError(
                f"a model of {size} takes two files and cannot go to standard output; name a file"
            )
        with open(copy, encoding="utf-8") as file:
            write_standard(file.read())
