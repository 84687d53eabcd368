"""The sets of web search of Lee and Lin, official or stood in for, prepared as in the paper."""

from __future__ import annotations

from collections.abc import Sequence

import problems
from linrank.data.dataset import Dataset
from linrank.io.load import load
from linrank.metrics import evaluate
from reproduce import official
from reproduce.official import Parts

MEAN_NDCG = ("mean_ndcg", "letor")
NDCG_10 = ("ndcg@10", "linrank")
# By set: which NDCG the paper reports. LETOR's and MSLR's discount is 1/log2(max(2, i)) and the
# mean is over all positions; Yahoo's is 1/log2(i + 1), cut at min(10, l_q).
NDCG = {
    "MQ2007": MEAN_NDCG,
    "MQ2008": MEAN_NDCG,
    "MSLR 30k": MEAN_NDCG,
    "YAHOO LTRC set 1": NDCG_10,
    "YAHOO LTRC set 2": NDCG_10,
}


def mq2007() -> Parts:
    """LETOR values are published as query-level normalized; OHSUMED's are normalized here."""
    parts = official.folds("MQ2007")
    if parts is not None:
        return Parts("MQ2007", **parts)
    parts = {part: problems.ohsumed(1, part) for part in official.PARTS}
    return Parts("MQ2007", **parts, stand_in="OHSUMED fold 1")


def mq2008() -> Parts:
    return Parts("MQ2008", **{part: problems.mq2008(1, part) for part in official.PARTS})


def mslr() -> Parts:
    parts = official.folds("MSLR-WEB30K")
    stand_in = "" if parts is not None else "MSLR sample"
    if parts is None:
        train, vali = official.split_off(problems._read("mslr_sample/train.txt.xz"))
        parts = {"train": train, "vali": vali, "test": problems._read("mslr_sample/test.txt.xz")}
    return Parts("MSLR 30k", **official.unit_range(parts), stand_in=stand_in)


def yahoo_1() -> Parts | None:
    """Nothing stands in for it: set 2 has a stand-in of the same kind already."""
    parts = official.yahoo(1)
    return None if parts is None else Parts("YAHOO LTRC set 1", **official.unit_range(parts))


def yahoo_2() -> Parts:
    parts = official.yahoo(2)
    stand_in = "" if parts is not None else "LightGBM's example"
    if parts is None:
        train, vali = official.split_off(_lightgbm("train"))
        parts = {"train": train, "vali": vali, "test": _lightgbm("test")}
    return Parts("YAHOO LTRC set 2", **official.unit_range(parts), stand_in=stand_in)


def _lightgbm(part: str) -> Dataset:
    """Its query sizes come in a separate file."""
    import io

    rows = load(io.BytesIO(problems.text_of(f"lightgbm_rank/rank.{part}.xz")))
    counts = problems.text_of(f"lightgbm_rank/rank.{part}.query.xz").split()
    return Dataset.of(rows.X, rows.y, group=[int(count) for count in counts])


def web_search(names: Sequence[str] = tuple(NDCG)) -> list[Parts]:
    """The sets of those names, as far as they or their stand-ins are here."""
    makers = dict(zip(NDCG, (mq2007, mq2008, mslr, yahoo_1, yahoo_2), strict=True))
    made = [makers[name]() for name in names]
    return [one for one in made if one is not None]


def pairwise_accuracy(data: Dataset, scores: object) -> float:
    """Pooled over the pairs of all queries, in percent; equal scores are errors."""
    metric = "pairwise_accuracy"
    return 100 * float(evaluate(data.y, scores, qid=data.qid, metrics=[metric])[metric])


def ndcg(name: str, data: Dataset, scores: object) -> float:
    metric, convention = NDCG[name]
    found = evaluate(data.y, scores, qid=data.qid, metrics=[metric], convention=convention)
    return float(found[metric])
