"""Vespa: a rank profile with the score as an expression, in double precision.

The names of the features are rank features, such as ``bm25(title)`` or ``attribute(popularity)``,
or functions of the profile that it inherits from.
"""

from __future__ import annotations

import re
from xml.sax.saxutils import escape, quoteattr

from linrank.export.artefact import Artefact
from linrank.export.curve_form import CurveForm, decisions
from linrank.export.engine_names import check_printable, listed, refuse
from linrank.export.linear_form import LinearForm, positional, text

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


PRECISION = "float64"
CURVES = True
_WEIGHTS = ("literal", "query")
_PHASES = ("first", "second")
_CHOICE = "if ({x} > {knot}, {above}, {below})"


def write(
    form: LinearForm,
    name: str,
    normalizers: str,
    *,
    inherits: str = "default",
    weights: str = "literal",
    phase: str = "first",
    schema: str = "SCHEMA",
) -> Artefact:
    """A rank profile, and with ``weights="query"`` a query profile with the weights.

    Parameters
    ----------
    form : LinearForm
        The model.
    name : str
        What the profile is to be called.
    normalizers : {"folded"}
        Scaling is in the weights.
    inherits : str
        The rank profile that it inherits from.
    weights : {"literal", "query"}
        Whether the weights are numbers in the expression, or inputs of the query, which can be
        changed without a deployment.
    phase : {"first", "second"}
        The phase of ranking that takes the expression.
    schema : str
        The schema that the instructions speak of.
    """
    for option, value, known in (("weights", weights, _WEIGHTS), ("phase", phase, _PHASES)):
        if value not in known:
            raise ValueError(f"{option} must be {' or '.join(map(repr, known))}, got {value!r}")
    for what, word in (("profile", name), ("inherited profile", inherits), ("schema", schema)):
        check_profile_name(what, word)
    if name == inherits:
        raise ValueError(
            f"the rank profile {name!r} would inherit from itself, which Vespa refuses; give it "
            "another name, or name another profile by inherits"
        )
    for feature in form.names:
        check_rank_feature(feature)
    if weights == "query" and isinstance(form, CurveForm):
        raise ValueError("curves are no weights that a query could give; use weights='literal'")
    numbers = _Numbers(as_inputs=weights == "query")
    terms = _terms(form, numbers)
    files = {f"{name}.profile": _profile(name, inherits, phase, terms, numbers).encode()}
    if numbers.inputs:
        files[f"{name}.xml"] = _query_profile(name, numbers).encode()
    return Artefact("vespa", files, _instructions(form, name, schema, numbers))


class _Numbers:
    """Numbers of an expression: written out, or inputs with the numbers as their defaults."""

    def __init__(self, *, as_inputs: bool) -> None:
        self._as_inputs = as_inputs
        self.inputs: dict[str, str] = {}

    def of(self, prefix: str, feature: str, value: float) -> str:
        """The text that stands for a value: ``w`` of a feature, or ``m`` of a missing one."""
        if not self._as_inputs:
            return text(value)
        stem = f"{prefix}_{re.sub('[^A-Za-z0-9]+', '_', feature).strip('_')}"
        known, n = stem, 1
        while known in self.inputs:
            n += 1
            known = f"{stem}_{n}"
        self.inputs[known] = positional(value)  # a schema knows no exponents, an expression does
        return f"query({known})"


def _terms(form: LinearForm, numbers: _Numbers) -> list[str]:
    """What each feature adds. A number that is not there is NaN in Vespa.

    Attributes may always lack a value; other features are asked only if the model has a rule.
    """
    terms = []
    for k, (feature, weight) in enumerate(zip(form.names, form.weights, strict=True)):
        product = f"{numbers.of('w', feature, weight)} * {feature}" if weight else "0.0"
        missing = form.contributions[k]
        if isinstance(form, CurveForm):
            product = decisions(form.curves[k], feature, text, _CHOICE)
        if form.missing == "error" and not feature.startswith("attribute("):
            terms.append(product)
            continue
        instead = numbers.of("m", feature, missing) if missing else "0.0"
        terms.append(f"if (isNan({feature}), {instead}, {product})")
    return terms


def _profile(name: str, inherits: str, phase: str, terms: list[str], numbers: _Numbers) -> str:
    inputs = ""
    if numbers.inputs:
        lines = "".join(
            f"        query({key}) double: {value}\n" for key, value in numbers.inputs.items()
        )
        inputs = f"    inputs {{\n{lines}    }}\n"
    expression = " +\n            ".join(terms)
    return (
        f"rank-profile {name} inherits {inherits} {{\n"
        f"{inputs}"
        f"    {phase}-phase {{\n"
        "        expression {\n"
        f"            {expression}\n"
        "        }\n"
        "    }\n"
        "}\n"
    )


def _query_profile(name: str, numbers: _Numbers) -> str:
    fields = "".join(
        f"    <field name={quoteattr(f'ranking.features.query({key})')}>{escape(value)}</field>\n"
        for key, value in numbers.inputs.items()
    )
    return (
        f'<query-profile id="{name}">\n    <field name="ranking.profile">{name}</field>\n'
        f"{fields}</query-profile>\n"
    )


def _instructions(form: LinearForm, name: str, schema: str, numbers: _Numbers) -> str:
    told = (
        f"{form.what} of {len(form.names)} features for Vespa.\n\n"
        f"Put {name}.profile into the folder schemas/{schema}/ of the application package, or its "
        f"text into schemas/{schema}.sd, and deploy: vespa deploy. Every feature must be a rank "
        "feature or a function that the inherited profile has, with the values that the model was "
        f"trained on: {listed(form.names)}. To log such values for the next training, list them "
        "under match-features.\n\n"
    )
    if not numbers.inputs:
        return told + (
            "Use it in a query:\n\n"
            f"  vespa query 'select * from {schema} where userQuery()' query=KEYWORDS "
            f"ranking={name}\n"
        )
    return told + (
        f"Put {name}.xml into search/query-profiles/: it holds the weights, which can be changed "
        "there, or in a query by input.query(NAME)=VALUE, without a new expression. Use it in a "
        "query:\n\n"
        f"  vespa query 'select * from {schema} where userQuery()' query=KEYWORDS "
        f"queryProfile={name}\n"
    )
