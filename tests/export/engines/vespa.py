"""Vespa's rank profiles, and the scores of documents under them.

Rules of the schema language: ``rank-profile name inherits others { ... }``; the name may have
dashes, but starts with a letter or ``_``. ``expression:`` goes to the end of the line, or to a
brace that closes the block; ``expression { ... }`` may take several lines. ``#`` starts a comment.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from engines.rules import Columns, Refused, n_rows, require
from engines.vespa_expression import Environment, by_name, evaluate, unknown

_NAME = r"[A-Za-z_][A-Za-z0-9_]*"
_DASHED = r"[A-Za-z_][A-Za-z0-9_-]*"
_PHASES = ("first-phase", "second-phase", "global-phase")


@dataclass
class RankProfile:
    name: str
    inherits: tuple[str, ...]
    functions: dict[str, str] = field(default_factory=dict)
    phases: dict[str, str] = field(default_factory=dict)
    match_features: str = ""

    def score(self, columns: Columns, phase: str = "first-phase") -> np.ndarray:
        """Scores in the given phase."""
        features = {name: np.asarray(value, np.float64) for name, value in columns.items()}
        scores = evaluate(self.phases[phase], self._environment(features))
        return np.broadcast_to(np.asarray(scores), n_rows(columns))

    def _environment(self, values: Mapping[str, np.ndarray]) -> Environment:
        environment: Environment

        def function(name: str) -> np.ndarray:
            body = self.functions.get(name.removesuffix("()"))
            return unknown(name) if body is None else evaluate(body, environment)

        environment = by_name(values, function)
        return environment


def parse_rank_profile(text: str) -> RankProfile:
    """The one rank profile of a text that is to be put inside of a schema."""
    scanner = _Scanner(text)
    head = scanner.take(
        rf"rank-profile\s+({_DASHED})(?:\s+inherits\s+({_DASHED}(?:\s*,\s*{_DASHED})*))?\s*\{{"
    )
    inherits = tuple(re.split(r"\s*,\s*", head[2])) if head[2] else ()
    profile = RankProfile(head[1], inherits)
    while not scanner.found(r"\}"):
        _item(scanner, profile)
    require(scanner.at_end(), f"text after the rank profile: {scanner.rest()!r}")
    require(profile.phases, "the profile ranks by nothing")
    return profile


def _item(scanner: _Scanner, profile: RankProfile) -> None:
    if match := scanner.found(rf"function\s+(?:inline\s+)?({_NAME})\s*\(\s*\)\s*\{{"):
        require(match[1] not in profile.functions, f"Function '{match[1]}' is defined twice")
        profile.functions[match[1]] = _expression(scanner)
        scanner.take(r"\}")
        return
    if match := scanner.found(rf"({'|'.join(_PHASES)})\s*\{{"):
        require(match[1] not in profile.phases, f"{match[1]} comes twice")
        while not scanner.found(r"\}"):
            if not scanner.found(r"(?:rerank-count|keep-rank-count)\s*:\s*[0-9]+"):
                profile.phases[match[1]] = _expression(scanner)
        return
    features = scanner.take(r"match-features\s*(?:\{([^}]*)\}|:([^}\n]*))")
    profile.match_features = (features[1] or features[2] or "").strip()


def _expression(scanner: _Scanner) -> str:
    if scanner.found(r"expression\s*\{"):
        return scanner.take(r"([^{}]*)\}")[1].strip()
    return scanner.take(r"expression *:([^{}\n]*)\n?")[1].strip()


class _Scanner:
    """A text that is read from the front; white space and comments before a match do not count."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def found(self, pattern: str) -> re.Match[str] | None:
        """The match right here, which is then behind us; or None."""
        self._skip()
        match = re.compile(pattern).match(self._text, self._at)
        self._at = match.end() if match else self._at
        return match

    def take(self, pattern: str) -> re.Match[str]:
        match = self.found(pattern)
        if match is None:
            raise Refused(f"Vespa reads /{pattern}/ here, not {self.rest()!r}")
        return match

    def at_end(self) -> bool:
        self._skip()
        return self._at == len(self._text)

    def rest(self) -> str:
        return self._text[self._at : self._at + 60]

    def _skip(self) -> None:
        self._at = re.compile(r"(?:\s+|#[^\n]*)*").match(self._text, self._at).end()
