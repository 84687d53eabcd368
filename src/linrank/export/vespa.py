"""Vespa: a rank profile with the score as an expression, in double precision.

The names of the features are rank features, such as ``bm25(title)`` or ``attribute(popularity)``,
or functions of the profile that it inherits from.
"""

from __future__ import annotations

import re
from typing import NoReturn

from linrank.errors import check_one_of
from linrank.export.artefact import Artefact, fill_text
from linrank.export.form import Form, text
from linrank.export.names import check_printable, join_names, refuse
from linrank.export.steps import decisions

_PROFILE = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
# feature := word [ "(" argument { "," argument } ")" ] { "." output }
# argument := number | text in quotes | feature
_WORD = re.compile(r"[A-Za-z_@][A-Za-z0-9_@$]*")
_OUTPUT = re.compile(r"[A-Za-z0-9_@$]+")
_VALUE = re.compile(
    r"""-?[0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?(?![A-Za-z0-9_@$])
    | "[^"\\{}]*"
    | '[^'\\{}]*'""",
    re.VERBOSE,
)
_RESERVED = ("if", "in", "true", "false")
_DEEPEST = 32  # brackets in brackets; no rank feature has three


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
    end = _end_of_feature(name, 0, _DEEPEST)
    if end < len(name):
        _refuse_at(name, end)


def _end_of_feature(name: str, at: int, room: int) -> int:
    """Where the feature ends that begins at a place, with brackets at most ``room`` deep."""
    word = _WORD.match(name, at)
    if word is None:
        _refuse_at(name, at)
    if word[0] in _RESERVED:
        refuse("vespa", "feature", name, f"{word[0]!r} is a word of the language")
    at = word.end()
    if name.startswith("(", at):
        if room == 0:
            refuse("vespa", "feature", name, f"its brackets nest more than {_DEEPEST} deep")
        at = _end_of_arguments(name, at + 1, room - 1)
    while name.startswith(".", at):
        output = _OUTPUT.match(name, at + 1)
        if output is None:
            _refuse_at(name, at)
        at = output.end()
    return at


def _end_of_arguments(name: str, at: int, room: int) -> int:
    """Where the brackets end whose first argument begins at a place."""
    while True:
        at = _skip_blanks(name, at)
        value = _VALUE.match(name, at)
        at = _skip_blanks(name, value.end() if value else _end_of_feature(name, at, room))
        if name.startswith(")", at):
            return at + 1
        if not name.startswith(",", at):
            _refuse_at(name, at)
        at += 1


def _skip_blanks(name: str, at: int) -> int:
    return len(name) - len(name[at:].lstrip())


def _refuse_at(name: str, at: int) -> NoReturn:
    what = f"{name[at]!r} at place {at} ends it there" if at < len(name) else "it is not complete"
    reason = (
        f"{what}; a rank feature is written as name, name(argument, ...) or name(argument).output, "
        "of letters, digits, _, @ and $"
    )
    refuse("vespa", "feature", name, reason)


_CHOICE = "if ({x} > {knot}, {above}, {below})"


def write(
    form: Form,
    name: str,
    *,
    inherits: str = "default",
    phase: str = "first",
    schema: str = "SCHEMA",
) -> Artefact:
    """A rank profile.

    Parameters
    ----------
    form : Form
        The model.
    name : str
        What the profile is to be called.
    inherits : str
        The rank profile that it inherits from.
    phase : {"first", "second"}
        The phase of ranking that takes the expression.
    schema : str
        The schema that the instructions speak of.
    """
    check_one_of("phase", phase, ("first", "second"))
    for what, word in (("profile", name), ("inherited profile", inherits), ("schema", schema)):
        check_profile_name(what, word)
    if name == inherits:
        raise ValueError(
            f"the rank profile {name!r} would inherit from itself, which Vespa refuses; give it "
            "another name, or name another profile by inherits"
        )
    for feature in form.names:
        check_rank_feature(feature)
    content = _profile(name, inherits, phase, _terms(form))
    told = {"summary": form.summary, "names": join_names(form.names)}
    instructions = fill_text("vespa", "text", profile=name, schema=schema, **told)
    return Artefact("vespa", {f"{name}.profile": content}, instructions)


def _terms(form: Form) -> list[str]:
    """What each feature adds. A number that is not there is NaN in Vespa.

    Attributes may always lack a value; other features are asked only if the model has a rule.
    """
    terms = []
    for k, (feature, weight) in enumerate(zip(form.names, form.weights, strict=True)):
        product = f"{text(weight)} * {feature}" if weight else "0.0"
        missing = form.contributions[k]
        if form.curves is not None:
            product = decisions(form.curves[k], feature, text, _CHOICE)
        if form.missing == "error" and not feature.startswith("attribute("):
            terms.append(product)
        else:
            terms.append(f"if (isNan({feature}), {text(missing) if missing else '0.0'}, {product})")
    return terms


def _profile(name: str, inherits: str, phase: str, terms: list[str]) -> bytes:
    expression = " +\n            ".join(terms)
    return (
        f"rank-profile {name} inherits {inherits} {{\n"
        f"    {phase}-phase {{\n"
        "        expression {\n"
        f"            {expression}\n"
        "        }\n"
        "    }\n"
        "}\n"
    ).encode()
