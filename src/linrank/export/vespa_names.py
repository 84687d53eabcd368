"""What Vespa reads as a rank feature, and as the name of a rank profile."""

from __future__ import annotations

import re

from linrank.export.engine_names import check_printable, refuse

__all__ = ["check_profile_name", "check_rank_feature"]

_PROFILE = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
# feature := name [ "(" argument { "," argument } ")" ] { "." output }
# argument := number | text in quotes | feature
_TOKEN = re.compile(
    r"""\s*(?: (?P<word>[A-Za-z_@][A-Za-z0-9_@$]*)
            | (?P<value>-?[0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?(?![A-Za-z0-9_@$])
                | "[^"\\{}]*" | '[^'\\{}]*')
            | (?P<sign>[(),.]) )""",
    re.VERBOSE,
)
_DEEPEST = 32  # brackets in brackets; no rank feature has three
_RESERVED = ("if", "in", "true", "false")


def check_profile_name(what: str, name: str) -> None:
    """Refuse a name that no rank profile can have."""
    check_printable("vespa", what, name)
    if _PROFILE.fullmatch(name):
        return
    bad = next((c for c in name if not re.match("[A-Za-z0-9_-]", c)), name[0])
    reason = f"{bad!r} at place {name.index(bad)}: letters, digits, _ and - are allowed, a letter "
    refuse("vespa", what, name, reason + "or _ at the beginning")


def check_rank_feature(name: str) -> None:
    """Refuse a feature name that would not be read as one rank feature."""
    check_printable("vespa", "feature", name)
    end = _feature(name, 0, _DEEPEST)
    if name[end:].strip():
        at = end + len(name[end:]) - len(name[end:].lstrip())
        reason = (
            f"{name[at]!r} at place {at} ends it there; a rank feature is written as name, "
            "name(argument, ...) or name(argument).output, of letters, digits, _, @ and $"
        )
        refuse("vespa", "feature", name, reason)


def _feature(text: str, at: int, room: int) -> int:
    """Where the feature that begins at a place ends; the place itself where none begins.

    ``room`` is how many brackets deep it may go.
    """
    found = _TOKEN.match(text, at)
    if not found or not found["word"]:
        return at
    if found["word"] in _RESERVED:
        refuse("vespa", "feature", text, f"{found['word']!r} is a word of the language")
    end = found.end()
    if text[end : end + 1] == "(":
        if room == 0:
            refuse("vespa", "feature", text, f"its brackets nest more than {_DEEPEST} deep")
        inside = _arguments(text, end + 1, room - 1)
        if inside is None:
            return end
        end = inside
    while text[end : end + 1] == ".":
        output = re.compile("[A-Za-z0-9_@$]+").match(text, end + 1)
        if not output:
            return end
        end = output.end()
    return end


def _arguments(text: str, at: int, room: int) -> int | None:
    """Where the brackets close; None if what they hold is no list of arguments."""
    while True:
        found = _TOKEN.match(text, at)
        if found is None:
            return None
        if found["value"] is not None:
            at = found.end()
        else:
            end = _feature(text, at, room)
            if end == at:
                return None
            at = end
        sign = _TOKEN.match(text, at)
        if sign is None or sign["sign"] not in (")", ","):
            return None
        at = sign.end()
        if sign["sign"] == ")":
            return at
