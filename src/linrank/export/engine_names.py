"""Which names an engine takes, and what to say of one that it does not."""

from __future__ import annotations

from collections.abc import Callable, Iterable

__all__ = ["check_names", "refuse"]


def _control(name: str) -> str | None:
    """The first character that no engine and no request can be trusted with."""
    return next((c for c in name if ord(c) < 32 or ord(c) == 127), None)


# Target -> the first character of a name that it cannot take, and why not.
_RULES: dict[str, tuple[Callable[[str], str | None], str]] = {}
_PLAIN = (_control, "control characters do not survive a request")


def check_names(target: str, names: Iterable[str], *, what: str) -> None:
    """Refuse names that the engine does not take, with the name, the character and the reason.

    Parameters
    ----------
    target : str
        The engine.
    names : iterable of str
        Names of features, or of the model.
    what : str
        What bears the names, as an error says it.
    """
    forbidden, why = _RULES.get(target, _PLAIN)
    for name in names:
        if not name.strip():
            refuse(target, what, name, "it is empty", what)
        character = forbidden(name)
        if character is not None:
            at = name.index(character)
            refuse(target, what, name, f"{character!r} at place {at}: {why}", what)


def refuse(target: str, what: str, name: str, reason: str, remedy: str) -> None:
    """Raise the error about a name."""
    rename = "give another by a feature map" if remedy == "feature" else "choose another"
    raise ValueError(f"{target} cannot take the {what} name {name!r}: {reason}; {rename}")
