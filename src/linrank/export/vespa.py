"""Vespa: a rank profile with the score as an expression, in double precision.

The names of the features are rank features, such as ``bm25(title)`` or ``attribute(popularity)``,
or functions of the profile that it inherits from.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from xml.sax.saxutils import escape, quoteattr

from linrank.export.artefact import Artefact
from linrank.export.engine_names import listed
from linrank.export.numbers import positional, text
from linrank.export.vespa_names import check_profile_name, check_rank_feature

if TYPE_CHECKING:
    from linrank.export.linear_form import LinearForm

__all__ = ["PRECISION", "write"]

PRECISION = "float64"
_WEIGHTS = ("literal", "query")
_PHASES = ("first", "second")


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
    for feature, weight, missing in zip(form.names, form.weights, form.contributions, strict=True):
        product = f"{numbers.of('w', feature, weight)} * {feature}" if weight else "0.0"
        if form.missing == "error" and not feature.startswith("attribute("):
            terms.append(product)
            continue
        instead = numbers.of("m", feature, missing) if missing else "0.0"
        terms.append(f"if (isNan({feature}), {instead}, {product})")
    return terms


def _profile(name: str, inherits: str, phase: str, terms: list[str], numbers: _Numbers) -> str:
    inputs = ""
    if numbers.inputs:
        lines = "".join(f"        query({key}) double: {value}\n" for key, value in _items(numbers))
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


def _items(numbers: _Numbers) -> list[tuple[str, str]]:
    return list(numbers.inputs.items())


def _query_profile(name: str, numbers: _Numbers) -> str:
    fields = "".join(
        f"    <field name={quoteattr(f'ranking.features.query({key})')}>{escape(value)}</field>\n"
        for key, value in _items(numbers)
    )
    return (
        f'<query-profile id="{name}">\n    <field name="ranking.profile">{name}</field>\n'
        f"{fields}</query-profile>\n"
    )


def _instructions(form: LinearForm, name: str, schema: str, numbers: _Numbers) -> str:
    told = (
        f"A linear model of {len(form.names)} features for Vespa.\n\n"
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
