"""Files and pipes: ``-`` is a standard stream, a file appears whole or not at all."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping
from typing import Any

from linrank.io.blocks import StandardOutput, standard_input

# What a command needs of the library loads inside the functions: `linrank --help` answers at once.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from linrank.cli.console import Console
    from linrank.models.linear import Model


STANDARD = "-"


def check_readable(path: str) -> None:
    """Raise OSError now if the file or store at `path` could not be opened later."""
    from linrank.system.durable import recover

    recover(path)
    os.close(os.open(path, os.O_RDONLY | os.O_NONBLOCK))  # does not wait for a writer of a pipe


def check_writable(path: str) -> None:
    """Raise OSError now if a file could not be created at `path` later.

    Training may take an hour; a misspelt folder must not be found out after it.
    """
    from linrank.system.durable import check_place

    if path != STANDARD:
        check_place(path)


def check_apart(output: str, *inputs: str | None) -> None:
    """Raise ValueError if writing `output` would destroy one of the files that are read."""
    for path in inputs:
        if path is None or STANDARD in (path, output) or not os.path.isfile(output):
            continue
        if os.path.exists(path) and os.path.samefile(path, output):
            raise ValueError(f"{output}: is read and would be overwritten; name another output")


def check_output(path: str | None, *inputs: str | None) -> None:
    """Both, if a file is to be written at all."""
    if path is not None:
        check_writable(path)
        check_apart(path, *inputs)


def check_inputs(*paths: str | None) -> None:
    """That the files among those could be opened; others are not given, or a standard stream."""
    for path in paths:
        if path not in (None, STANDARD):
            check_readable(path)


def write_lines(path: str, blocks: Iterable[str]) -> None:
    """Write blocks of whole lines to a file (atomically) or, for ``-``, to standard output.

    A file is compressed where its name ends in .gz, .bz2, .xz or .zst.

    Each block is passed on before the next one is asked for: a pipe may lead to who wants it first.
    """
    if path == STANDARD:
        for block in blocks:
            write_standard(block)
        return
    from linrank.io.write import open_output

    with open_output(path) as file:
        for block in blocks:
            file.write(block.encode())
            file.flush()


def write_standard(text: str) -> None:
    """Write text that programs read to standard output: in UTF-8, as into a file.

    Halves of surrogate pairs, as names of files may hold, become the escapes that JSON has.
    """
    _write(text, "utf-8", "backslashreplace")


def json_report(command: str, facts: Mapping[str, Any], **how: Any) -> str:
    """A line of JSON: which command of which version has found what."""
    import json

    from linrank import __version__

    report = {"command": command, "linrank": __version__, **facts}
    return json.dumps(report, ensure_ascii=False, **how) + "\n"


def show_standard(text: str) -> None:
    """Write text for a person to standard output, with ``?`` for what a terminal cannot spell."""
    _write(text, getattr(sys.stdout, "encoding", None) or "utf-8", "replace")


def _write(text: str, encoding: str, errors: str) -> None:
    if sys.stdout is not None and not hasattr(sys.stdout, "buffer"):  # text only, in a notebook
        sys.stdout.write(text)
        return
    output = StandardOutput()
    output.write(text.encode(encoding, errors))
    output.flush()


def flush_standard() -> None:
    """Pass on what was written to standard output by others, as argparse its help."""
    if hasattr(sys.stdout, "buffer"):
        StandardOutput().flush()


def read_text(path: str) -> str:
    """The whole text of a small file or of standard input."""
    from linrank.io.blocks import open_blocks

    found, content = open_blocks(path), bytearray()
    for block, _ in found.blocks:
        content += block
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{found.name}: byte {error.start} is not UTF-8; give a text file"
        ) from None
    return text.replace("\r\n", "\n").replace("\r", "\n")


VALIDATED = "valid "  # begins the names of the measures on --valid, in the summary of the training


def is_model(path: str) -> bool:
    """Whether a file starts like the JSON of a model; no line of data begins with a brace."""
    from linrank.system.durable import naming

    if path == STANDARD or not os.path.isfile(path):
        return False
    with naming(path), open(path, "rb") as file:
        return file.read(64).lstrip().startswith(b"{")


def read_model(path: str) -> Model:
    """The model of a file or of standard input."""
    from linrank.models.linear import load_model

    if path != STANDARD:
        return load_model(path)
    from linrank.models.file import MAX_BYTES
    from linrank.system.durable import Scratch

    with Scratch() as scratch:
        copy = os.path.join(scratch.path, "standard input")
        with open(copy, "wb") as file:
            file.write(standard_input().read(MAX_BYTES + 1))
        return load_model(copy)


def write_model(model: Model, path: str, console: Console) -> None:
    """Save the model to a file or to standard output, and say so."""
    if path == STANDARD:
        _write_standard(model)
    else:
        model.save(path)
    console.say("saved", "standard output" if path == STANDARD else path)


def _write_standard(model: Model) -> None:
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
