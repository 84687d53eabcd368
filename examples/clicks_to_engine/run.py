"""From a click log to a search engine: propensities, RankSVM, offline evaluation, artifacts.

The log is generated, so that the truth is known: users click by the position-based model on lists
of a production ranker that overrates popularity. Four rankers are compared on test queries:
production, RankSVM on raw clicks (naive), RankSVM on clicks weighted by inverse propensities
estimated from the log (ips), and RankSVM on the true grades, which no real log has.

    python examples/clicks_to_engine/run.py [FOLDER] [--seeds N]
"""

from __future__ import annotations

import argparse
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linrank import ExportWarning, RankSVM, clicks, evaluate

Array = NDArray[Any]

FEATURES = ("title_match", "body_match", "phrase_match", "freshness", "popularity", "length")
PRODUCTION = np.array([0.5, 0.3, 0.0, 0.0, 1.0, 0.0])  # weights of the ranker that made the log
TASTE = np.array([1.0, 0.7, 0.7, 0.4, 0.1, -0.3])  # what readers prefer
ATTRACTIVENESS = np.array([0.05, 0.3, 0.6, 0.9])  # chance of a click when looked at, by grade
N_POSITIONS = 10
PROPENSITY = clicks.power_law(N_POSITIONS, eta=1.0)  # the truth; used to generate clicks only
GRID = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2)
MAX_WEIGHT = 20.0


@dataclass(frozen=True)
class Traffic:
    """Queries, what was shown for them and clicked, and the truth behind it."""

    X: Array
    qid: Array
    grade: Array  # hidden: used only in the last comparison
    log: clicks.Impressions

    @property
    def production(self) -> Array:
        return self.X @ PRODUCTION


def generate(seed: int, n_queries: int, n_lists: int, n_rows: int = 12) -> Traffic:
    """Show lists of ten of the twelve rows of a query, and gather clicks.

    The rankings vary slightly, as in live systems; propensities can be estimated from that.
    """
    rng = np.random.default_rng(seed)
    X = rng.gamma(4.0, 0.5, size=(n_queries * n_rows, len(FEATURES)))  # mean 2, deviation 1
    X[:, FEATURES.index("popularity")] = rng.lognormal(size=len(X))  # a long tail
    utility = (X - X.mean(axis=0)) @ TASTE + 0.7 * rng.normal(size=len(X))
    grade = np.digitize(utility, [0.5, 1.5, 2.5])
    qid = np.repeat(np.arange(n_queries), n_rows)
    log = clicks.simulate_clicks(
        ATTRACTIVENESS[grade], qid, X @ PRODUCTION, PROPENSITY,
        n_lists=n_lists, noise=0.4, random_state=seed + 1,
    )  # fmt: skip
    return Traffic(X, qid, grade, log)


def propensities(logs: list[clicks.Impressions]) -> Array:
    """Propensities from all results shown at several positions; each row belongs to one log."""
    rows = [log.rows_needed("harvest") for log in logs]
    offsets = np.cumsum([0, *(row.max() + 1 for row in rows[:-1])])
    everything = clicks.Impressions.of(
        np.concatenate([log.position for log in logs]),
        np.concatenate([log.clicked for log in logs]),
        row=np.concatenate([row + offset for row, offset in zip(rows, offsets, strict=True)]),
    )
    return clicks.harvest(everything)


def learn(train: Traffic, valid: Traffic, propensity: Array) -> RankSVM:
    """RankSVM on preferences of clicks, with C chosen by the clicks on other queries.

    With propensities of 1 this is the naive method: every click counts the same, and C is chosen
    by how high the clicked results rank.
    """
    preferences = clicks.click_preferences(
        train.log, "clicked_over_others", propensity=propensity, max_weight=MAX_WEIGHT
    )
    best: tuple[float, RankSVM] | None = None
    for C in GRID:
        ranker = RankSVM(C=C, scale="standard").fit_pairs(train.X, preferences, qid=train.qid)
        value = clicks.counterfactual_value(
            valid.log, ranker.predict(valid.X), qid=valid.qid, propensity=propensity,
            metric="dcg@10", estimator="snips", max_weight=MAX_WEIGHT,
        ).value  # fmt: skip
        if best is None or value > best[0]:
            best = value, ranker
    if best is None:
        raise ValueError("the grid of C is empty")
    return best[1]


@dataclass(frozen=True)
class Outcome:
    """One seed: rankers judged by the truth, and by the log of another ranker."""

    seed: int
    ranker: RankSVM  # the one that is exported
    propensity: Array  # as estimated
    ndcg: dict[str, float]  # NDCG@10 of the true grades, by ranker
    gain: tuple[float, float]  # clicks per list, ips - naive: from the log, and its standard error
    true_gain: float


def run(seed: int = 0, n_queries: int = 200, n_lists: int = 20_000) -> Outcome:
    """The whole path on generated traffic."""
    train, valid, test = (generate(100 * seed + 10 * k, n_queries, n_lists) for k in range(3))
    propensity = propensities([train.log, valid.log, test.log])
    rankers = {
        "naive": learn(train, valid, np.ones(N_POSITIONS)),
        "ips": learn(train, valid, propensity),
        "grades": RankSVM(C=1e-3, scale="standard").fit(train.X, train.grade, qid=train.qid),
    }
    scores = {"production": test.production}
    scores |= {name: ranker.predict(test.X) for name, ranker in rankers.items()}
    offline = {
        name: clicks.counterfactual_value(
            test.log, scores[name], qid=test.qid, propensity=propensity, metric="clicks"
        )
        for name in ("naive", "ips")
    }
    ndcg = {
        name: float(evaluate(test.grade, s, qid=test.qid, metrics=["ndcg@10"])["ndcg@10"])
        for name, s in scores.items()
    }
    true_gain = true_clicks(test, scores["ips"]) - true_clicks(test, scores["naive"])
    return Outcome(
        seed, rankers["ips"], propensity, ndcg,
        offline["ips"].minus(offline["naive"]), true_gain,
    )  # fmt: skip


def true_clicks(test: Traffic, scores: Array) -> float:
    """Clicks per list if the ranking were shown: what the estimate from the log should predict."""
    order = np.lexsort((-scores, test.qid))
    _, size = np.unique(test.qid, return_counts=True)
    rank = np.concatenate([np.arange(n) for n in size])
    looks = np.append(PROPENSITY, np.zeros(size.max()))[rank]
    return float(looks @ ATTRACTIVENESS[test.grade[order]] / len(size))


def table(outcomes: list[Outcome]) -> str:
    """One line per seed, as Markdown."""
    names = list(outcomes[0].ndcg)
    head = ["seed", *(f"NDCG@10 {name}" for name in names), "ips - naive, from the log", "true"]
    lines = [head, ["---"] * len(head)]
    for o in outcomes:
        gain = f"{o.gain[0]:+.3f} ± {o.gain[1]:.3f}"
        cells = [f"{o.ndcg[name]:.4f}" for name in names]
        lines.append([str(o.seed), *cells, gain, f"{o.true_gain:+.3f}"])
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def export(ranker: RankSVM, folder: Path) -> list[str]:
    """Write the model and the files for Solr and Elasticsearch; return lines to print."""
    folder.mkdir(parents=True, exist_ok=True)
    names = dict(enumerate(FEATURES))
    ranker.model_.save(folder / "model.json")
    lines = [f"wrote {folder / 'model.json'}"]
    for target in ("solr", "elasticsearch"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ExportWarning)  # printed below
            artifact = ranker.export(target, name="clicks", feature_map=names)
        lines += [f"wrote {path}" for path in artifact.save(folder / f"{target}.json")]
        lines += [f"{target}: {text}" for text in artifact.warnings]
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", nargs="?", type=Path, default=Path("clicks-to-engine"))
    parser.add_argument("--seeds", type=int, default=5, help="number of simulations (default: 5)")
    arguments = parser.parse_args()
    outcomes = [run(seed) for seed in range(arguments.seeds)]
    print("propensities by position, for the last seed")
    print("  true     ", *(f"{p:.2f}" for p in PROPENSITY))
    print("  estimated", *(f"{p:.2f}" for p in outcomes[-1].propensity))
    print()
    print(table(outcomes))
    print("\nips - naive: additional clicks per list of the one over the other.\n")
    print("\n".join(export(outcomes[-1].ranker, arguments.folder)))


if __name__ == "__main__":
    main()
