"""Artefact: the files that an export makes, with a text on where they go."""

from __future__ import annotations

import contextlib
import errno
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from string import Template

from linrank.system import durable

_README = "README.txt"
_TEXTS = Path(__file__).with_name("texts")
_PLAIN = re.compile(r"[\w.+,@%=][\w.+,@%=-]*")  # the same in a shell, in Python and in Java


@dataclass(frozen=True, eq=False, repr=False)
class Artefact:
    """A model as one engine takes it.

    Attributes
    ----------
    target : str
        The engine: a name of ``linrank.export.TARGETS``.
    files : mapping of str to bytes
        The files by their names; the first is the model, others go with it.
    instructions : str
        Where to put the files, and the request that uses the model.
    warnings : tuple of str
        What the engine cannot express, and what to do about it.
    """

    target: str
    files: Mapping[str, bytes]
    instructions: str
    warnings: tuple[str, ...] = ()

    def __repr__(self) -> str:
        files = ", ".join(
            f"{name} ({len(content):,} bytes)" for name, content in self.files.items()
        )
        n = len(self.warnings)
        told = f"; {n} warning{'' if n == 1 else 's'}" if n else ""
        return f"<Artefact for {self.target}: {files}{told}>"

    @property
    def content(self) -> bytes:
        """The first file: the model."""
        return next(iter(self.files.values()))

    @property
    def text(self) -> str:
        """The first file as text."""
        try:
            return self.content.decode()
        except UnicodeDecodeError:
            raise ValueError(
                f"a model for {self.target} is no text; take .content, or .save it"
            ) from None

    def instructions_for(self, path: str | os.PathLike[str]) -> str:
        """The instructions, for files that have been given other names."""
        name = os.fspath(path)
        if self._is_folder(name):
            return self.instructions
        told, written = self.instructions, map(os.path.basename, self.paths(name))
        given = dict(zip(self.files, written, strict=False))  # the last are the instructions
        if not all(map(_PLAIN.fullmatch, given.values())):
            # Other names need quotes, of a kind for every language that the text has a line of.
            renamed = (f"{own} here has been written as {new!r}" for own, new in given.items())
            return f"What is called {', and '.join(renamed)}.\n\n{told}"
        names = "|".join(map(re.escape, given))
        return re.sub(rf"(?<![\w.-])({names})", lambda match: given[match[1]], told)

    def save(self, path: str | os.PathLike[str]) -> list[str]:
        """Write the files and the instructions, all of them or none.

        Parameters
        ----------
        path : str or path
            The file to write, with the others beside it as ``STEM.OTHER``, the instructions as
            ``STEM.README.txt``. Or a folder that gets all of them under their own names: one that
            is there, or is made because `path` ends in a slash or, for several files, has no
            extension.

        Returns
        -------
        list of str
            The paths written, the model first.
        """
        name = os.fspath(path)
        if self._is_folder(name):
            return self._save_folder(name)
        if os.path.exists(name) and not os.path.isfile(name):  # a pipe, or /dev/stdout
            with durable.replacing(name) as stream:
                stream.write(self.content)
            return [name]
        contents = (*self.files.values(), self.instructions_for(name).encode())
        return _place(dict(zip(self.paths(name), contents, strict=True)))

    def paths(self, path: str | os.PathLike[str]) -> list[str]:
        """The files that `save` writes, or writes over: the model first, the instructions last."""
        name = os.fspath(path)
        if self._is_folder(name):
            return [os.path.join(name, file) for file in (*self.files, _README)]
        others = (*list(self.files)[1:], _README)
        return [name, *(durable.name_beside(name, f".{file}") for file in others)]

    def _is_folder(self, name: str) -> bool:
        if os.path.isdir(name) or name.endswith(os.sep):
            return True
        is_other = os.path.exists(name) and not os.path.isfile(name)  # a pipe, which takes one file
        return len(self.files) > 1 and (is_other or not os.path.splitext(name)[1])

    def _save_folder(self, folder: str) -> list[str]:
        if os.path.exists(folder.rstrip(os.sep)) and not os.path.isdir(folder):
            told = f"the artefact has {len(self.files)} files ({', '.join(self.files)})"
            raise NotADirectoryError(
                errno.ENOTDIR, f"{told}; name a folder, or a file with an extension", folder
            )
        contents = (*self.files.values(), self.instructions.encode())
        paths, parent = self.paths(folder), os.path.dirname(os.path.abspath(folder))
        if os.path.isdir(folder):
            durable.sweep(parent)  # it may have been made there by a process that was killed
            return _place(dict(zip(paths, contents, strict=True)))
        durable.check_place(folder.rstrip(os.sep))
        with durable.naming(folder, over=True), durable.Scratch(parent, 0o777) as scratch:
            _place(dict(zip(self.paths(scratch.path), contents, strict=True)))
            os.rename(scratch.path, folder)  # all of it, or none
            durable.sync_folder(parent)
        return paths


def fill_text(file: str, *sections: str, **values: object) -> str:
    """Sections of a file of texts, one after the other, with values in place of ``$names``."""
    content = _TEXTS.joinpath(f"{file}.txt").read_text("utf-8")
    _, *parts = re.split(r"^\[(\w+)\]\n", content, flags=re.MULTILINE)
    found = dict(zip(parts[::2], parts[1::2], strict=True))
    return Template("".join(map(found.__getitem__, sections))).substitute(values)


def _place(contents: dict[str, bytes]) -> list[str]:
    """Write all, then rename: a failure to write leaves no file behind."""
    for path in contents:
        durable.check_place(path)
    with durable.one_at_a_time(next(iter(contents))), contextlib.ExitStack() as renamed:
        for path, content in contents.items():
            file = renamed.enter_context(durable.replacing(path))
            file.write(content)
            durable.settle(file)
    return list(contents)
