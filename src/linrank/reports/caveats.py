"""What a reader must know before believing the numbers: leakage, odd data, an unfinished fit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from linrank.judging.inspect import Finding, Overlap, Profile, findings, shared_queries

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from linrank.data.dataset import Dataset
    from linrank.reports.fits import Training

FEW_QUERIES = 30  # below this an interval by resampling is too narrow

# What has been dealt with already, or is said elsewhere: the report scales, and names conventions.
_SETTLED = {"scales-differ", "huge-values"}
_GRAVE = {"label-like-feature", "no-pairs"}


def leakage(parts: Mapping[str, Dataset]) -> dict[tuple[str, str], Overlap]:
    """Queries that two parts share, by the names of the parts: test and train first."""
    pairs = [("test", "train"), ("valid", "train"), ("test", "valid")]
    found = {
        (one, other): shared_queries(parts[one], parts[other])
        for one, other in pairs
        if one in parts and other in parts
    }
    return {names: overlap for names, overlap in found.items() if overlap}


def leakage_message(one: str, other: str, overlap: Overlap) -> str:
    """The leak in a sentence or two; numbers, an example, and what they mean."""
    n, of = max(overlap.n_ids, overlap.n_rows), overlap.n_queries
    many = f"{n:,} of {of:,} {WORDS[one]} queries"
    example = f" (query {overlap.example} is one)" if overlap.example is not None else ""
    told = WORDS[other]
    if not overlap.n_rows:
        return (
            f"{many} have the id of a {told} query{example}, but other rows. Where ids are "
            "numbered anew in each file this means nothing; else the model "
            "has been shown what it is judged by."
        )
    judged = "the numbers are too good" if one == "test" else "the choice of C is not to be trusted"
    also = f"{overlap.n_rows:,} of {of:,} {WORDS[one]} queries are {told} queries, row by row"
    return f"{also}{example}: {judged}. Split by query, each query into one part only."


WORDS = {"train": "training", "valid": "validation", "test": "test"}


def leakage_caveats(found: Mapping[tuple[str, str], Overlap]) -> Iterator[Finding]:
    """One for each two parts that share queries."""
    for (one, other), overlap in found.items():
        code = "leakage" if overlap.n_rows else "shared-ids"
        yield Finding(code, leakage_message(one, other, overlap), grave=overlap.n_rows > 0)


def data_caveats(
    parts: Mapping[str, Dataset],
    profiles: Mapping[str, Profile],
    found: Mapping[tuple[str, str], Overlap],
    scaled: bool,
) -> Iterator[Finding]:
    """Leakage, then what ``linrank inspect`` finds in each part, each finding once."""
    yield from leakage_caveats(found)
    found_in: dict[str, dict[str, str]] = {}
    for name in parts:
        for finding in findings(profiles[name]):
            if not (scaled and finding.code in _SETTLED):
                found_in.setdefault(finding.code, {})[name] = finding.message
    for code, messages in found_in.items():
        yield Finding(code, _said(messages), grave=code in _GRAVE)
    n_queries = parts["test"].queries.n_queries
    if n_queries < FEW_QUERIES and parts["test"].qid is not None:
        yield Finding(
            "few-queries",
            f"There are {n_queries} test queries: intervals and p values of so few are rough.",
        )


def _said(messages: Mapping[str, str]) -> str:
    """The message of the test data, or of the last part that has one; the others are named."""
    *others, last = messages
    told = f"{WORDS[last].capitalize()} data: {messages[last]}."
    if not others:
        return told
    names = " and ".join(WORDS[name] for name in others)
    also = "" if len({*messages.values()}) == 1 else ", with other numbers"
    return f"{told} So it is in the {names} data{also}."


def training_caveats(training: Training) -> Iterator[Finding]:
    """A grid whose end is the best, a fit that stopped early."""
    if training.tuning.edge is not None:
        told = training.tuning.edge
        yield Finding("edge-of-grid", f"{told[:1].upper()}{told[1:]}.")
    if not training.result.converged:
        yield Finding(
            "not-converged", f"The fit is not converged: {training.result.message}.", True
        )
