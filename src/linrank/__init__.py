"""linrank: learning to rank from preferences, at any scale."""

from __future__ import annotations

import os
from importlib import import_module

TYPE_CHECKING = False  # that of typing, which takes 15 ms to import
if TYPE_CHECKING:
    from typing import Any

__version__ = "0.1.0"


def _read_homes() -> dict[str, str]:
    """The module of each public name, by the lines ``from MODULE import NAME as NAME``."""
    with open(os.path.join(os.path.dirname(__file__), "__init__.pyi"), encoding="utf-8") as stub:
        words = [line.split() for line in stub if line.startswith("from ")]
    return {name: module for _, module, _, name, _, _ in words}


# Imported on first use (PEP 562): the command line must not wait for scikit-learn and SciPy, which
# only the estimators need.
_HOME = _read_homes()
__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'linrank' has no attribute {name!r}")
    module = _HOME[name]
    value = import_module(f"linrank.{name}") if module == "linrank" else None
    value = value or getattr(import_module(module), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
