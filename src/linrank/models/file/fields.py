"""Fields of a document that may hold anything: each is there, of its type and within bounds."""

from __future__ import annotations

from typing import Any

from linrank.models.file.contents import Invalid


def field(document: dict[str, Any], key: str, *types: type, name: str | None = None) -> Any:
    """The value of a key that has to be there, of one of the types."""
    if key not in document:
        raise Invalid(f"the key {name or key!r} is missing")
    value = document[key]
    if type(value) not in types:  # not isinstance: True is no number here
        expected = " or ".join("null" if t is type(None) else t.__name__ for t in types)
        raise Invalid(f"{name or key!r} is a {type(value).__name__}, expected {expected}")
    return value


def integer(
    document: dict[str, Any], key: str, low: int, high: int, *, name: str | None = None
) -> int:
    """The integer of a key, within bounds."""
    value = int(field(document, key, int, name=name))
    if not low <= value <= high:
        raise Invalid(f"{name or key!r} is {value}, expected {low} to {high}")
    return value


def training(document: dict[str, Any]) -> dict[str, Any]:
    """The summary of the training run: plain values only."""
    summary: dict[str, Any] = field(document, "training", dict)
    for key in summary:
        scalars = (str, int, float, bool, type(None))
        field(summary, key, *scalars, name=f"training.{key[:80]}")
    return summary


def names(document: dict[str, Any], n_features: int) -> list[str] | None:
    """The feature names, as many as there are features; whether they are text, a model checks."""
    found: list[str] | None = field(document, "feature_names", list, type(None))
    if found is not None and len(found) != n_features:
        raise Invalid(f"{len(found)} feature names for {n_features} features")
    return found


def known_keys(document: dict[str, Any], keys: tuple[str, ...], where: str = "") -> None:
    """Refuse any other key: one that we do not know may change what the scores mean."""
    unknown = [key for key in document if key not in keys]
    if unknown:
        raise Invalid(f"unknown key {unknown[0][:80]!r}{where}")
