"""The slow twin of the reader: the format, straight from its description, one token at a time."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from hypothesis import strategies as st

_BLANKS = re.compile(rb"[ \t\r]+")


@dataclass
class Parsed:
    """What a text says, row by row."""

    labels: list[float] = field(default_factory=list)
    weights: list[float | None] = field(default_factory=list)
    qids: list[bytes | None] = field(default_factory=list)
    entries: list[dict[int, float]] = field(default_factory=list)
    comments: list[str] = field(default_factory=list)

    def columns(self) -> tuple[int, int]:
        """(first index, number of columns) with ``zero_based="auto"``."""
        indices = [index for row in self.entries for index in row]
        base = 0 if 0 in indices else 1
        return base, max(indices) - base + 1

    def matrix(self, dtype: Any) -> np.ndarray:
        base, n_columns = self.columns()
        x = np.zeros((len(self.entries), n_columns), dtype)
        for i, row in enumerate(self.entries):
            for index, value in row.items():
                x[i, index - base] = value  # double first, then rounded to dtype
        return x

    def qid(self) -> list[Any] | None:
        if self.qids[0] is None:
            return None
        integer = re.compile(rb"0|-?[1-9][0-9]*")
        tokens = [token or b"" for token in self.qids]
        if all(integer.fullmatch(t) and -(2**63) <= int(t) < 2**63 for t in tokens):
            return [int(t) for t in tokens]
        return [t.decode("utf-8", "backslashreplace") for t in tokens]


def parse(text: bytes) -> Parsed:
    """Parse valid text with nothing but Python's own ``split`` and ``float``."""
    parsed = Parsed()
    for line in text.split(b"\n"):
        data, _, comment = line.partition(b"#")
        tokens = [token for token in _BLANKS.split(data) if token]
        if not tokens:
            continue
        label, colon, weight = tokens.pop(0).partition(b":")
        parsed.labels.append(float(label))
        parsed.weights.append(float(weight) if colon else None)
        qid = tokens.pop(0)[4:] if tokens and tokens[0].startswith(b"qid:") else None
        parsed.qids.append(qid)
        pairs = [token.split(b":") for token in tokens]
        parsed.entries.append({int(index): float(value) for index, value in pairs})
        parsed.comments.append(comment.strip(b" \t\r").decode("utf-8", "backslashreplace"))
    return parsed


# ---- random texts -------------------------------------------------------------------------------

digits = st.text("0123456789", min_size=1, max_size=20)  # all numbers stay within float32
signs = st.sampled_from(["", "", "", "-", "+"])
exponents = st.integers(-30, 17).map(lambda e: f"e{e}") | st.sampled_from(["E+05", "e-310", "e2"])
fixed = st.builds("{}{}.{}".format, signs, digits, digits)
number_texts = st.one_of(
    st.builds("{}{}".format, signs, digits),
    fixed,
    st.builds("{}{}.".format, signs, digits),
    st.builds("{}.{}".format, signs, digits),
    st.builds("{}{}".format, fixed, exponents),
    st.floats(-1e30, 1e30).map(repr),
    st.floats(-(2.0**90), 2.0**90, width=32).map(lambda x: f"{x:.6f}"),
)
blanks = st.text(" \t", min_size=1, max_size=3)
line_ends = st.sampled_from(["\n", "\n", "\r\n", " \n", "\t\r\n"])
id_texts = st.one_of(
    st.integers(-5, 5).map(str),
    st.sampled_from(["007", "q7", "a:b", "-0", "9223372036854775808", "Ünï", "1.5"]),
)
comment_texts = st.text(st.characters(blacklist_characters="\n", codec="utf-8"), max_size=20)


@st.composite
def _lines(draw: Any, with_query: bool, widths: Any) -> str:
    label = draw(number_texts)
    if draw(st.integers(0, 3)) == 0:
        label += f":{draw(st.integers(0, 3))}"
    parts = [label]
    if with_query:
        parts.append(f"qid:{draw(id_texts)}")
    widest = draw(st.sampled_from(widths))
    indices = draw(st.sets(st.integers(0, widest), max_size=6))
    if draw(st.booleans()):  # a full row
        first = draw(st.integers(0, 1))
        indices = set(range(first, first + draw(st.integers(1, 6))))
    parts += [f"{index}:{draw(number_texts)}" for index in sorted(indices)]
    line = draw(st.sampled_from(["", "", " ", "\t"])) + parts[0]
    for part in parts[1:]:
        line += draw(blanks | st.just(" ")) + part
    if draw(st.integers(0, 2)) == 0:
        line += draw(st.sampled_from([" ", "", "\t"])) + "#" + draw(comment_texts)
    return line


@st.composite
def texts(draw: Any, most_rows: int = 8, widths: Any = (4, 12, 1100)) -> bytes:
    """A valid file of a few lines, in every form that the format allows."""
    with_query = draw(st.booleans())
    rows = draw(st.lists(_lines(with_query, widths), min_size=1, max_size=most_rows))
    text = "" if draw(st.integers(0, 5)) else "\ufeff"
    for row in rows:
        text += draw(st.sampled_from(["", "", "", "\n", "# a remark\n", " \t\r\n"]))
        text += row + draw(line_ends)
    return (text.rstrip("\r\n") if draw(st.booleans()) else text).encode()
