"""Artefact: the files that an export makes, with a text on where they go."""

from __future__ import annotations

import contextlib
import errno
import os
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from linrank.system import durable

if TYPE_CHECKING:
    from collections.abc import Mapping

_README = "README.txt"
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
        """The instructions, for an only file that has been given another name."""
        if self._needs_folder(os.fspath(path)):
            return self.instructions
        own, given = next(iter(self.files)), os.path.basename(os.fspath(path))
        if _PLAIN.fullmatch(given):
            return self.instructions.replace(own, given)
        # Other names need quotes, of a kind for every language that the text has a line of.
        return f"What is called {own} here has been written as {given!r}.\n\n{self.instructions}"

    def save(self, path: str | os.PathLike[str]) -> list[str]:
        """Write the files and the instructions, all of them or none.

        Parameters
        ----------
        path : str or path
            For an artefact of one file the file to write, with the instructions beside it as
            ``STEM.README.txt``. For several files, and where `path` is a folder, the folder that
            gets them and ``README.txt``; it is made if it is not there.

        Returns
        -------
        list of str
            The paths written, the model first.
        """
        name = os.fspath(path)
        if self._needs_folder(name):
            return self._save_folder(name)
        if os.path.exists(name) and not os.path.isfile(name):  # a pipe, or /dev/stdout
            with durable.replacing(name) as stream:
                stream.write(self.content)
            return [name]
        texts = (self.content, self.instructions_for(name).encode())
        return _place(dict(zip(self.paths(name), texts, strict=True)))

    def paths(self, path: str | os.PathLike[str]) -> list[str]:
        """The files that `save` writes, or writes over: the model first, the instructions last."""
        name = os.fspath(path)
        if self._needs_folder(name):
            return [os.path.join(name, file) for file in (*self.files, _README)]
        return [name, durable.name_beside(name, f".{_README}")]

    def _needs_folder(self, name: str) -> bool:
        return len(self.files) > 1 or os.path.isdir(name)

    def _save_folder(self, folder: str) -> list[str]:
        if os.path.exists(folder) and not os.path.isdir(folder):
            raise NotADirectoryError(errno.ENOTDIR, self._name_a_folder(), folder)
        contents = (*self.files.values(), self.instructions.encode())
        paths, parent = self.paths(folder), os.path.dirname(os.path.abspath(folder))
        if os.path.isdir(folder):
            durable.sweep(parent)  # it may have been made there by a process that was killed
            return _place(dict(zip(paths, contents, strict=True)))
        suffixes = {os.path.splitext(name)[1] for name in self.files}
        if os.path.splitext(folder)[1] in suffixes - {""}:
            raise ValueError(f"{folder}: {self._name_a_folder()}")
        durable.check_place(folder)
        with durable.naming(folder, over=True), durable.Scratch(parent, 0o777) as scratch:
            _place(dict(zip(self.paths(scratch.path), contents, strict=True)))
            os.rename(scratch.path, folder)  # all of it, or none
            durable.sync_folder(parent)
        return paths

    def _name_a_folder(self) -> str:
        return f"the artefact has {len(self.files)} files ({', '.join(self.files)}); name a folder"


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
