"""A rank profile of Vespa, and the scores of documents under it.

Rules: ``rank-profile name inherits others { phase { expression { ... } } }``; the name may have
dashes, but starts with a letter or ``_``. An expression is made of rank features, numbers, signs of
arithmetic, ``if (condition, then, else)`` and ``isNan(x)``, all in double precision.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from engines.rules import Columns, n_rows, require

_NAME = r"[A-Za-z_][A-Za-z0-9_-]*"
_PROFILE = re.compile(
    rf"rank-profile\s+({_NAME})\s+inherits\s+({_NAME}(?:\s*,\s*{_NAME})*)\s*\{{"
    r"\s*((?:first|second)-phase)\s*\{\s*expression\s*\{([^{}]*)\}\s*\}\s*\}\s*"
)
_NUMBER = r"[0-9]+(?:\.[0-9]+)?(?:e[+-]?[0-9]+)?"
_EXPRESSION = re.compile(rf"(?:\s|{_NUMBER}|[-+*(),>]|columns\[[0-9]+\]|where\(|isnan\()*")


@dataclass
class RankProfile:
    name: str
    inherits: tuple[str, ...]
    phase: str
    expression: str

    def score(self, columns: Columns) -> np.ndarray:
        """Scores of documents whose rank features have these names."""
        text, names = self.expression, list(columns)
        for name in sorted(names, key=len, reverse=True):
            place = f"columns[{names.index(name)}]"
            text = re.sub(rf"(?<![\w.@$]){re.escape(name)}(?![\w.@$(])", place, text)
        text = text.replace("if (", "where(").replace("isNan(", "isnan(")
        require(_EXPRESSION.fullmatch(text), f"Vespa cannot read {text!r}")
        known = {"columns": [np.asarray(c, np.float64) for c in columns.values()]}
        known |= {"where": np.where, "isnan": np.isnan, "__builtins__": {}}
        scores = eval(" ".join(text.split()), known)
        return np.broadcast_to(np.asarray(scores), n_rows(columns))


def parse_rank_profile(text: str) -> RankProfile:
    """The one rank profile of a text that is to be put inside of a schema."""
    found = _PROFILE.fullmatch(text)
    require(found, f"Vespa reads a rank profile here, not {text!r}")
    return RankProfile(found[1], tuple(re.split(r"\s*,\s*", found[2])), found[3], found[4])
