"""What a folder offers to others: the names in its stub, each imported on first use (PEP 562)."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any


def names_of(package: str) -> tuple[list[str], Callable[[str], Any], Callable[[], list[str]]]:
    """``__all__``, ``__getattr__`` and ``__dir__`` of a folder.

    Its stub has a line ``from MODULE import NAME as NAME`` for each name.
    """
    module = sys.modules[package]
    with open(os.path.join(module.__path__[0], "__init__.pyi"), encoding="utf-8") as stub:
        words = [line.split() for line in stub if line.startswith("from ")]
    homes = {name: home for _, home, _, name, _, _ in words}

    def find(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(homes[name]), name)
        setattr(module, name, value)
        return value

    return sorted(homes), find, lambda: sorted({*vars(module), *homes})
