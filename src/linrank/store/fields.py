"""Members of a JSON object that may be anything, fetched by what they must be."""

from __future__ import annotations

from typing import Any, TypeVar

from linrank import json_text
from linrank.data.frames import check_names

__all__ = ["Invalid", "boolean", "choice", "counts", "integer", "member", "parse", "texts"]

T = TypeVar("T")
# What a manifest can hold at most. Its lists are a dozen, whatever the number of chunks.
MAX_BYTES = 256 << 20
MAX_VALUES = 20_000_000
MAX_COUNT = 1 << 60


class Invalid(Exception):
    """What is wrong with a manifest, and what to do about it where that is special."""

    def __init__(self, problem: str, remedy: str | None = None) -> None:
        super().__init__(problem)
        self.problem, self.remedy = problem, remedy


def parse(content: bytes) -> dict[str, Any]:
    """The JSON object of a file that may be damaged or hostile."""
    try:
        document = json_text.parse(content, MAX_VALUES)
    except json_text.MalformedJSON as error:
        raise Invalid(f"is truncated, damaged or no manifest: {error}") from None
    if not isinstance(document, dict):
        raise Invalid(f"holds a {type(document).__name__}, not an object")
    return document


def member(document: dict[str, Any], name: str, kind: type[T]) -> T:
    """A member of exactly this type: true is no integer."""
    if name not in document:
        raise Invalid(f"has no member {name!r}")
    value = document[name]
    if type(value) is not kind:
        raise Invalid(f"{name} is {_short(value)}, expected a {kind.__name__}")
    return value


def integer(document: dict[str, Any], name: str, low: int, high: int = MAX_COUNT) -> int:
    """An integer within limits."""
    value = member(document, name, int)
    if not low <= value <= high:
        raise Invalid(f"{name} is {_short(value)}, expected {low} to {high}")
    return value


def boolean(document: dict[str, Any], name: str) -> bool:
    """True or false."""
    return member(document, name, bool)


def choice(document: dict[str, Any], name: str, choices: tuple[Any, ...]) -> Any:
    """One of a few values."""
    if name not in document:
        raise Invalid(f"has no member {name!r}")
    value = document[name]
    if not any(type(value) is type(c) and value == c for c in choices):
        raise Invalid(f"{name} is {_short(value)}, expected one of {choices}")
    return value


def counts(
    document: dict[str, Any], name: str, n: int | None, low: int, high: int = MAX_COUNT
) -> list[int]:
    """A list of n integers within limits."""
    values = member(document, name, list)
    if n is not None and len(values) != n:
        raise Invalid(f"{name} has {len(values)} elements, expected {n}")
    for k, value in enumerate(values):
        if type(value) is not int or not low <= value <= high:
            raise Invalid(f"{name}[{k}] is {_short(value)}, expected {low} to {high}")
    return values


def texts(document: dict[str, Any], name: str, n: int) -> tuple[str, ...] | None:
    """A list of n names, or null."""
    if document.get(name, "") is None:
        return None
    values = member(document, name, list)
    if len(values) != n:
        raise Invalid(f"{name} has {len(values)} elements, expected {n}")
    for k, value in enumerate(values):
        if type(value) is not str:
            raise Invalid(f"{name}[{k}] is {_short(value)}, expected a string")
    try:
        check_names(values)
    except ValueError as error:
        raise Invalid(str(error)) from None
    return tuple(values)


def _short(value: Any) -> str:
    if isinstance(value, (list, dict)):
        return f"a {type(value).__name__}"
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}..."
