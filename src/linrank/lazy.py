"""cached_property for objects that many threads make at once."""

from __future__ import annotations

import functools
import sys
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

__all__ = ["cached_property"]

if TYPE_CHECKING or sys.version_info >= (3, 12):
    from functools import cached_property
else:

    class cached_property(functools.cached_property):
        """That of Python 3.12 for the versions before it.

        Theirs holds a lock while it computes, one for all objects of a class: fits that run side
        by side would wait for each other at every value and gradient.
        """

        def __init__(self, func: Any) -> None:
            super().__init__(func)
            self.lock = nullcontext()
