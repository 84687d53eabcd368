"""Fits with known results: every method, place of the data and storage, by public names only.

``golden_fits.json`` holds what each fit gave when it was written. Run as a program:

    python tests/golden_fits.py            compare every fit, tell the largest deviations
    python tests/golden_fits.py --write    write the table anew (say why in the commit)
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

import linrank
import papers

TABLE = Path(__file__).with_name("golden_fits.json")
Numbers = dict[str, Any]

# Of the fits: small enough for coefficients that agree between places, storages and processors,
# large enough to be reached before rounding ends the fit at an iteration of its own choosing.
TIGHT = {"tol": 1e-10}
CHOSEN = {"n_closest": 60, "random_state": 3}


class Bench:
    """The data in every form, made once; a cluster within this process when it is first asked."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        rng = np.random.default_rng(20240607)
        n_queries, n_features = 24, 6
        sizes = rng.integers(2, 13, n_queries)
        self.qid = np.repeat(100 + rng.permutation(n_queries), sizes)
        n = len(self.qid)
        # Eighths: exact in float32, in text and in sums of a few.
        self.X = rng.integers(-16, 17, (n, n_features)) / 8
        self.X[rng.random(self.X.shape) < 0.4] = 0
        signal = self.X @ np.array([1.0, -0.5, 0.25, 0.75, 0.0, -1.25])
        self.y = np.digitize(signal + rng.integers(-12, 13, n) / 8, [-1.5, 0.5, 2.0]).astype(float)
        self.weight = rng.integers(1, 5, n) / 2
        self.query_weight = {q: 1 + i % 3 for i, q in enumerate(np.unique(self.qid).tolist())}
        self.pairs = rng.integers(0, n, (120, 2))
        self.pairs = self.pairs[self.pairs[:, 0] != self.pairs[:, 1]]
        self.topics = np.digitize(
            self.X @ rng.integers(-4, 5, (n_features, 4)) + rng.integers(-8, 9, (n, 4)), [2, 6]
        ).astype(float)
        self.holes = np.where(rng.random(self.X.shape) < 0.1, np.nan, self.X)

    def matrix(self, storage: str) -> Any:
        return {
            "float32": lambda: self.X.astype(np.float32),
            "float64": lambda: self.X,
            "csr": lambda: sparse.csr_array(self.X),
        }[storage]()

    def store(self, storage: str) -> linrank.Store:
        """The weighted rows in chunks of a few queries each."""
        path = self.folder / f"store-{storage}"
        if not path.exists():
            given = {"qid": self.qid, "sample_weight": self.weight}
            linrank.Store.write(path, self.matrix(storage), self.y, **given, chunk_bytes=1500)
        return linrank.Store(path)

    @cached_property
    def closing(self) -> contextlib.ExitStack:
        return contextlib.ExitStack()

    @cached_property
    def client(self) -> Any:
        """Two workers in threads of this process."""
        from distributed import Client, LocalCluster

        cluster = self.closing.enter_context(
            LocalCluster(n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None)
        )
        return self.closing.enter_context(Client(cluster))

    def partitioned(self, storage: str) -> dict[str, Any]:
        """Rows in five partitions, whose ends cut queries."""
        import dask
        import dask.array as da

        if storage == "csr":
            bounds = np.linspace(0, len(self.y), 6).astype(int)
            X, (y, qid, weight) = self.matrix(storage), (self.y, self.qid, self.weight)
            X, y, qid, weight = (
                [dask.delayed(a[i:j]) for i, j in itertools.pairwise(bounds)]
                for a in (X, y, qid, weight)
            )
        else:
            size = -(-len(self.y) // 5)
            X = da.from_array(self.matrix(storage), chunks=(size, -1))
            y, qid, weight = (
                da.from_array(a, chunks=size) for a in (self.y, self.qid, self.weight)
            )
        return {"X": X, "y": y, "qid": qid, "sample_weight": weight}

    def data(self, place: str, storage: str) -> dict[str, Any]:
        """The arguments of a fit: arrays, a store, or partitions."""
        if place == "cluster":
            return self.partitioned(storage)
        if place != "memory":
            return {"X": self.store(storage)}
        return {"X": self.matrix(storage), "y": self.y, "qid": self.qid}

    def close(self) -> None:
        self.closing.close()


# ---- what is kept of a fit ----------------------------------------------------------------------


def numbers_of(found: Any, bench: Bench) -> Numbers:
    """What is kept of a path, or of a fitted ranker."""
    if hasattr(found, "coefs"):
        kept = {"grid": found.values, "coef": found.coefs, "n_iter": int(np.sum(found.n_iter))}
        return {**kept, "objective": found.objectives, "gap": found.gaps}
    kept = {"objective": found.objective_, "gap": found.duality_gap_}
    for name in ("n_iter", "n_steps", "loss", "best_iteration"):
        if hasattr(found, f"{name}_"):
            kept["n_iter" if name == "n_steps" else name] = getattr(found, f"{name}_")
    if hasattr(found, "coef_"):
        kept |= {"coef": found.coef_, "n_pairs": found.n_pairs_}
    else:
        kept["scores"] = found.predict(bench.X[:20], qid=bench.qid[:20])
    if hasattr(found, "scores_"):
        kept |= {"fold_scores": found.scores_, "best_score": found.best_score_}
        kept |= {f"{name}_": value for name, value in found.best_params_.items()}
        if "algorithm_" in kept:
            kept["algorithm"] = kept.pop("algorithm_")
    return kept


# ---- the fits -----------------------------------------------------------------------------------

CASES: dict[str, Callable[[Bench], Numbers]] = {}


def case(name: str) -> Callable[[Callable[[Bench], Numbers]], Callable[[Bench], Numbers]]:
    def add(fit: Callable[[Bench], Numbers]) -> Callable[[Bench], Numbers]:
        assert name not in CASES
        CASES[name] = fit
        return fit

    return add


def fits(
    name: str,
    *storages: str,
    place: str = "memory",
    what: str = "",
    call: str = "fit",
    given: Callable[[Bench], dict[str, Any]] = lambda bench: {},
    **options: Any,
) -> None:
    """Cases of ``what``, the first word of the name if it is empty, by its name in linrank.

    ``given`` are arguments of the ``call`` beside the rows, or in their place.
    """
    for storage in storages or ("float64",):

        @case(f"{name} | {place} | {storage}")
        def fit(bench: Bench, storage: str = storage) -> Numbers:
            at_cluster = "dask." if place == "cluster" else ""
            home, _, short = f"linrank.{at_cluster}{what or name.split(',')[0]}".rpartition(".")
            made, own = getattr(import_module(home), short), dict(options)
            if place == "cluster":
                own["client"] = bench.client
            if place == "store, passes":
                own["memory_limit"] = "64GB"
            settings = papers.settings_of(getattr(linrank, short, made), **own)
            data = bench.data(place, storage) | given(bench)
            if isinstance(made, type):
                return numbers_of(getattr(made(**settings), call)(**data), bench)
            return numbers_of(made(**data, **settings), bench)


STORAGES = ("float32", "float64", "csr")


def weighted(bench: Bench) -> dict[str, Any]:
    return {"sample_weight": bench.weight}


fits("RankSVM", *STORAGES, C=0.3, **TIGHT)
fits("RankSVM, weights", *STORAGES, given=weighted, C=0.3, **TIGHT)
fits("RankSVM, default tol", *STORAGES)
fits("RankSVM, hinge", *STORAGES, C=0.3, loss="hinge")
fits("RankSVM, bundle", "float64", "csr", C=0.3, solver="bundle")
fits("RankSVM, bundle, hinge", "float32", C=0.3, solver="bundle", loss="hinge")
for solver in ("tron", "prsvm", "prsvm+"):
    fits(f"RankSVM, {solver}", C=0.3, solver=solver, tol=1e-8)
for counting in ("fenwick", "red-black-score", "avl", "wavelet"):
    published = {"what": "published.PublishedRankSVM", "solver": "tron", "counting": counting}
    fits(f"RankSVM, tron by {counting}", "csr", C=0.3, tol=1e-8, **published)
fits("RankSVM, adjacent", "float64", "csr", pairs="adjacent", **TIGHT)
fits("RankSVM, closest", "float64", pairs="closest", **CHOSEN, **TIGHT)
fits("RankSVM, pruned", "csr", pairs="pruned", **CHOSEN, **TIGHT)
fits("RankSVM, grade_diff", pair_weighting="grade_diff", **TIGHT)
fits("RankSVM, gain_diff", "float32", pair_weighting="gain_diff", **TIGHT)
fits("RankSVM, normalized", given=weighted, query_normalization="pairs", **TIGHT)
fits(
    "RankSVM, query weights",
    *("float64", "csr"),
    given=lambda bench: {"query_weight": bench.query_weight},
    C=0.1,
    **TIGHT,
)
fits("RankSVM, positive", "float64", "csr", positive=True, **TIGHT)
fits("RankSVM, bounds", "float32", coef_bounds=(-0.25, 0.3), **TIGHT)
ENDS = {0: (None, 0.1), 5: (-0.2, None)}
fits("RankSVM, bounds, hinge", C=0.1, loss="hinge", coef_bounds=ENDS)
for missing in ("zero", "mean", "indicator"):
    fits(f"RankSVM, missing {missing}", given=lambda b: {"X": b.holes}, missing=missing, **TIGHT)
for scale, storages in (("standard", STORAGES[1:]), ("minmax", STORAGES[:1])):
    fits(f"RankSVM, scale {scale}", *storages, C=0.3, scale=scale, **TIGHT)
for place in ("memory", "store, passes"):
    fits("RankSVM, scale query", "float32", place=place, C=0.3, scale="query", **TIGHT)
for place in ("store, whole", "store, passes", "cluster"):
    fits("RankSVM", *STORAGES, place=place, C=0.3, **TIGHT)
for place in ("store, passes", "cluster"):
    fits("RankSVM, hinge", place=place, C=0.3, loss="hinge")
by_deviation = {"C": 0.3, "positive": True, "scale": "standard", **TIGHT}
fits("RankSVM, positive, standard", "float32", place="cluster", **by_deviation)


def alone(bench: Bench) -> dict[str, Any]:
    return {"y": None, "qid": None, "pairs": bench.pairs}


def heavier(bench: Bench) -> dict[str, Any]:
    return {**alone(bench), "pair_weight": 1 + np.arange(len(bench.pairs)) % 2}


def beside_labels(bench: Bench) -> dict[str, Any]:
    return {"pairs": bench.pairs, "across_queries": True}


def held_out(bench: Bench) -> dict[str, Any]:
    return {"eval_set": [(bench.X[:60], bench.y[:60])], "eval_qid": [bench.qid[:60]]}


listed = {"call": "fit_pairs", "C": 0.3, **TIGHT}
fits("RankSVM, pairs given", given=heavier, **listed)
fits("RankSVM, pairs given and labels", "csr", given=beside_labels, **listed)
fits("KernelRankSVM, pairs given", given=alone, gamma=0.2, **listed)
early = {"early_stopping": True, "n_iter_no_change": 1}
fits("RankSVM, early stopping", given=held_out, **early, **TIGHT)

CS = [0.01, 0.1, 1.0]
ALPHAS = [0.5, 1.5, 5.0]
fits("ranksvm_path", Cs=CS, **TIGHT)
fits("ranksvm_path, hinge", "csr", Cs=CS, loss="hinge")
fits("ranksvm_path", "float32", place="store, passes", Cs=CS, **TIGHT)
fits("ranksvm_path", place="cluster", Cs=CS, **TIGHT)
fits("RankSVMCV", "float32", "csr", Cs=CS, cv=3, **TIGHT)
pruned = {"scoring": "map", "pairs": "pruned", "scale": "standard", "selection": "one_se"}
fits("RankSVMCV, pruned, map", Cs=CS, cv=3, **pruned, **CHOSEN, **TIGHT)
fits("RankSVMCV", place="store, passes", Cs=CS, cv=3, **TIGHT)
fits("RankSVMCV", place="cluster", Cs=CS[:2], cv=2, **TIGHT)

STEPS = {"n_steps": 3000, "random_state": 7, "alpha": 0.01}
for algorithm in ("pegasos", "sgd-svm", "pa", "romma", "logistic", "hybrid"):
    fits(f"SGDRanker, {algorithm}", algorithm=algorithm, **STEPS)
for sampling in ("query", "query-level", "roc", "rejection"):
    storage = "csr" if sampling in ("query", "roc") else "float32"
    fits(f"SGDRanker, {sampling}", storage, sampling=sampling, average=True, **STEPS)
recorded = {"C": 0.1, "n_steps": 3000, "random_state": 7, "record": "exact", "scale": "standard"}
fits("SGDRanker, exact record", given=weighted, **recorded)
fits("SGDRanker", "float32", place="store, whole", average="uniform", **STEPS)
fits("SGDRanker", "float32", "csr", place="store, passes", average="uniform", **STEPS)
grid = {"alphas": [1e-3, 1e-2, 1e-1], "algorithms": ["pegasos", "logistic"], "cv": 3}
fits("SGDRankerCV", n_steps=2000, random_state=7, **grid)


@case("SGDRanker, partial_fit | memory | float64")
def _stream(bench: Bench) -> Numbers:
    ranker = papers.SGDRanker(alpha=0.01, random_state=7, average=True)
    for i in range(0, len(bench.y), 29):
        rows = slice(i, i + 29)
        ranker.partial_fit(bench.X[rows], bench.y[rows], qid=bench.qid[rows])
    return numbers_of(ranker, bench)


L1 = {"penalty": "l1", "alpha": 2.0}
L2 = {"penalty": "l2", "alpha": 0.5}
NAME = "DominationRanker"
fits(f"{NAME}, l1", *STORAGES, **L1, **TIGHT)
fits(f"{NAME}, l2", *STORAGES, **L2, **TIGHT)
fits(f"{NAME}, l1, default tol", given=weighted, **L1)
fits(f"{NAME}, l2 by coordinates", solver="coordinate", **L2, **TIGHT)
fits(f"{NAME}, l2, margin, binary", "csr", margin=1.0, layers="binary", **L2, **TIGHT)
fits(f"{NAME}, pooled", pooled=True, **L2, **TIGHT)
fits(f"{NAME}, induction", "float64", "csr", alpha=0.5, feature_induction=2, **TIGHT)
fits(f"{NAME}, negative sampling", negative_sampling=0.5, random_state=3, **L1, **TIGHT)
fits(f"{NAME}, l1", "float32", place="store, whole", **L1, **TIGHT)
fits(f"{NAME}, l2", *STORAGES, place="store, passes", **L2, **TIGHT)
fits(f"{NAME}, l2", "float64", "csr", place="cluster", **L2, **TIGHT)
for penalty, storage in (("l1", "float64"), ("l2", "csr")):
    over = {"penalty": penalty, "alphas": ALPHAS, **TIGHT}
    fits(f"domination_path, {penalty}", storage, **over)
    fits(f"DominationRankerCV, {penalty}", storage, cv=3, **over)

factors = {"C": 0.1, "random_state": 5}
fits("FactorizedRankSVM", "float64", "csr", n_components=3, **factors)
fits("FactorizedRankSVM, ball", "float32", n_components=2, constraint="ball", **factors)
fits("RegularizedRankSVM", "float64", "csr", gamma=1.0, lam=0.1, C=0.1)
fits("RegularizedRankSVM, scale", "float32", gamma=1.0, lam=0.5, C=0.1, scale="standard")

KERNELS: dict[str, tuple[str, dict[str, Any]]] = {
    "rbf": ("float64", {"kernel": "rbf", **TIGHT}),
    "rbf, standard": ("float32", {"kernel": "rbf", "scale": "standard", "gamma": 0.2, **TIGHT}),
    "rbf, hinge": ("float64", {"kernel": "rbf", "loss": "hinge", "gamma": 0.2}),
    "poly": ("csr", {"kernel": "poly", "degree": 2, "coef0": 1.0, "gamma": 0.1, **TIGHT}),
    "linear": ("csr", {"kernel": "linear", "pairs": "adjacent", **TIGHT}),
    "nystroem": ("float64", {"approximation": "nystroem", "n_components": 40, **TIGHT}),
}
for name, (storage, options) in KERNELS.items():
    fits(f"KernelRankSVM, {name}", storage, C=0.3, random_state=2, **options)
fits("KernelRankSVMCV", Cs=CS, gammas=[0.05, 0.5], cv=3, random_state=2, **TIGHT)

TOPICS = {
    "RankSVM": ("float64", lambda: papers.RankSVM(**TIGHT)),
    "DominationRanker": ("csr", lambda: papers.DominationRanker(**TIGHT)),
    "SGDRanker": ("float32", lambda: papers.SGDRanker(alpha=0.01, n_steps=2000)),
}
for name, (storage, make) in TOPICS.items():

    @case(f"PerQueryRanker, {name} | memory | {storage}")
    def _topics(bench: Bench, storage: str = storage, make: Callable[[], Any] = make) -> Numbers:
        ranker = linrank.PerQueryRanker(make(), random_state=4)
        return {"coef": ranker.fit(bench.matrix(storage), bench.topics).coef_.toarray()}


# ---- comparing ----------------------------------------------------------------------------------


@contextlib.contextmanager
def bench(folder: Path) -> Iterator[Bench]:
    made = Bench(folder)
    try:
        yield made
    finally:
        made.close()


def fitted(name: str, bench: Bench) -> Numbers:
    """The numbers of a fit as JSON holds them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the best C at the end of a grid, a tolerance too small
        found = CASES[name](bench)
    return json.loads(json.dumps({key: _plain(value) for key, value in found.items()}))


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    return None if isinstance(value, float) and not np.isfinite(value) else value


def deviations(found: Numbers, expected: Numbers) -> dict[str, float]:
    """How far each number is from the table: 0 for the same bits, inf for what has no distance.

    Coefficients and scores by the largest of them, gaps by the objective, all else by itself.
    """
    assert found.keys() == expected.keys()
    return {key: _deviation(key, found, expected) for key in expected}


def _deviation(key: str, found: Numbers, expected: Numbers) -> float:
    if found[key] == expected[key]:
        return 0.0
    if not isinstance(expected[key], float | list):
        return float(abs(found[key] - expected[key])) if key == "n_iter" else np.inf
    one, other = np.asarray(found[key], float), np.asarray(expected[key], float)
    if one.shape != other.shape:
        return np.inf
    unit = np.asarray(expected["objective"], float) if key == "gap" else np.abs(other).max()
    return float(np.max(np.abs(one - other) / np.abs(unit)))


def _main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--write", action="store_true", help="write the table anew")
    write = parser.parse_args().write
    with tempfile.TemporaryDirectory() as folder, bench(Path(folder)) as data:
        found = {name: fitted(name, data) for name in CASES}
    if write:
        lines = (f"{json.dumps(name)}: {json.dumps(found[name])}" for name in found)
        TABLE.write_text("{\n" + ",\n".join(lines) + "\n}\n")
        return 0
    table = json.loads(TABLE.read_text())
    n_same = 0
    for name, numbers in found.items():
        apart = {k: d for k, d in deviations(numbers, table[name]).items() if d}
        n_same += not apart
        if apart:
            print(f"{name}: " + ", ".join(f"{k} {d:.1e}" for k, d in apart.items()))
    print(f"{n_same} of {len(table)} fits have the bits of the table")
    return 0


if __name__ == "__main__":
    sys.exit(_main())
