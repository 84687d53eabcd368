"""Table 2: RankSVM with duals of low rank against RankSVM on OHSUMED."""

from __future__ import annotations

from reproduce.page import OTHER_FEATURES, Page
from reproduce.xu import gains
from reproduce.xu.protocol import MEASURES, ohsumed_folds

SET = "OHSUMED"
STARS = {gains.FAC: MEASURES, gains.REG: MEASURES}


def reproduce(quick: bool) -> Page:
    found = gains.found(SET, quick, ohsumed_folds)
    levels, tests = found.rows(f"{SET}: test measures"), found.rows(f"{SET}: ", "difference to")
    return Page(
        "Table 2: ranking accuracies on OHSUMED",
        gains.claims(tests, STARS),
        [
            gains.levels(levels, SET, note=OTHER_FEATURES),
            gains.differences(tests, SET, STARS),
        ],
        [
            "OHSUMED of LETOR 2.0: the same documents, labels and folds, but 25 features, which we "
            "normalize by query, for the 45 of LETOR 3.0",
            *gains.PROTOCOL,
        ],
    )
