"""Artefact: the files that an export makes, with a text on where they go."""

from __future__ import annotations

import contextlib
import errno
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from linrank.durable import replacing, sync_folder

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Artefact"]

_README = "README.txt"


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
        if len(self.files) > 1 or os.path.isdir(path):
            return self.instructions
        return self.instructions.replace(next(iter(self.files)), os.path.basename(os.fspath(path)))

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
        folder = os.path.dirname(os.path.abspath(name))
        if not os.path.isdir(folder):
            raise FileNotFoundError(errno.ENOENT, f"there is no folder {folder}; create it", name)
        if len(self.files) > 1 or os.path.isdir(name):
            return self._save_folder(name)
        if os.path.exists(name) and not os.path.isfile(name):  # a pipe, or /dev/stdout
            with open(name, "wb") as stream:
                stream.write(self.content)
            return [name]
        readme = f"{os.path.splitext(name)[0]}.{_README}"
        return _place({name: self.content, readme: self.instructions_for(name).encode()})

    def _save_folder(self, folder: str) -> list[str]:
        if os.path.exists(folder) and not os.path.isdir(folder):
            raise NotADirectoryError(errno.ENOTDIR, self._needs_folder(), folder)
        suffixes = {os.path.splitext(name)[1] for name in self.files}
        made = not os.path.isdir(folder)
        if made and os.path.splitext(folder)[1] in suffixes - {""}:
            raise ValueError(f"{folder}: {self._needs_folder()}")
        contents = {os.path.join(folder, name): content for name, content in self.files.items()}
        contents[os.path.join(folder, _README)] = self.instructions.encode()
        if made:
            os.mkdir(folder)
        try:
            return _place(contents)
        except BaseException:
            if made:
                with contextlib.suppress(OSError):
                    os.rmdir(folder)
            raise

    def _needs_folder(self) -> str:
        return f"the artefact has {len(self.files)} files ({', '.join(self.files)}); name a folder"


def _place(contents: dict[str, bytes]) -> list[str]:
    """Write all under temporary names, then rename: a failure to write leaves no file behind."""
    with contextlib.ExitStack() as renamed:
        for path, content in contents.items():
            with open(renamed.enter_context(replacing(path)), "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
    sync_folder(os.path.dirname(os.path.abspath(next(iter(contents)))))
    return list(contents)
