"""Fixtures that several test modules share."""

from cli_files import files

__all__ = ["files"]
