"""Table 4: RankSVM with duals of low rank against RankSVM on MQ2008."""

from __future__ import annotations

import problems
from reproduce.page import Page
from reproduce.xu import gains

SET = "MQ2008"
STARS = {gains.FAC: ("ndcg@3",), gains.REG: ("map", "ndcg@3")}


def reproduce(quick: bool) -> Page:
    found = gains.found(SET, quick, problems.mq2008_folds)
    levels, tests = found.rows(f"{SET}: test measures"), found.rows(f"{SET}: ", "difference to")
    return Page(
        "Table 4: ranking accuracies on MQ2008",
        gains.claims(tests, STARS),
        [gains.levels(levels, SET), gains.differences(tests, SET, STARS)],
        ["the data and the folds are the paper's", *gains.PROTOCOL],
    )
