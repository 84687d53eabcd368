"""The options that say which column of a table is what."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from linrank.errors import DataFormatError

if TYPE_CHECKING:
    from linrank.io.tables.roles import TableOptions

FORMATS = ("svmlight", "parquet", "arrow", "csv", "tsv", "run")
_NONE = "none"
_ROLES = {
    "label": "the label (default: label, y, relevance, rel, grade or target)",
    "qid": "the query ids (default: qid, query_id, group, group_id or query)",
    "docid": "the document ids (default: docid, docno or doc_id)",
    "weight": "the weights of rows (default: weight or sample_weight)",
    "position": "where a row was shown (default: position or rank)",
}
# How the library's arguments are spelt on the command line.
_FLAGS = "|".join((*_ROLES, "features", "format", "missing", "dtype", "unjudged"))
_TOLD = re.compile(rf"(?<![\w-])({_FLAGS})=(?:(False)|('[^']*'(?:, '[^']*')*(?: or '[^']*')?))?")


def add_columns(parser: argparse.ArgumentParser) -> None:
    """Declare them."""
    group = parser.add_argument_group(
        "tables", "columns of Parquet, Arrow, CSV and TSV files; 'none' says there is none"
    )
    group.add_argument(
        "--format",
        choices=FORMATS,
        help="what the data are (default: told by the first bytes, then by the name)",
    )
    for role, about in _ROLES.items():
        group.add_argument(f"--{role}", metavar="COLUMN", help=about)
    group.add_argument(
        "--features",
        metavar="COLUMNS",
        help="features: names and patterns with commas, as 'bm25*,!bm25_url' (default: the column "
        "features if it holds lists, else all other numbers; for a model, those that it knows)",
    )
    group.add_argument(
        "--no-sidecars",
        action="store_true",
        help="ignore FILE.query, FILE.group, FILE.weight and FILE.position beside text",
    )


def column_options(
    args: argparse.Namespace, known: Sequence[str] | None, labelled: bool
) -> TableOptions:
    """The options as the reader takes them; a command may lack them."""
    from linrank.io.tables.roles import IF_PRESENT, TableOptions

    found = column_choices(args)
    if found["label"] is None and not (labelled and not getattr(args, "no_labels", False)):
        found["label"] = IF_PRESENT
    return TableOptions(**found, features=getattr(args, "features", None), known=known)


def column_choices(args: argparse.Namespace) -> dict[str, Any]:
    """The columns of roles as given: a name, False for none, None by convention."""
    given = {role: getattr(args, role, None) for role in _ROLES}
    return {role: False if value == _NONE else value for role, value in given.items()}


@contextmanager
def in_options() -> Iterator[None]:
    """Let errors of reading speak of options instead of arguments."""
    try:
        yield
    except ValueError as error:
        if type(error) not in (ValueError, DataFormatError):  # others are made of more than words
            raise
        raise type(error)(spelt(str(error))) from error


def spelt(message: str) -> str:
    """A message with options instead of arguments.

    Examples
    --------
    >>> spelt("choose with label='rel', or label=False; see features=")
    'choose with --label rel, or --label none; see --features'
    >>> spelt("say missing='zero', 'mean' or 'indicator'")
    'say --missing zero, mean or indicator'
    """

    def flag(match: re.Match[str]) -> str:
        value = _NONE if match[2] else match[3] and match[3].replace("'", "")
        return f"--{match[1]}" + (f" {value}" if value is not None else "")

    return _TOLD.sub(flag, message.replace("sidecars=False", "--no-sidecars"))
