"""Fits with known results: every method, place of the data and storage, by public names only.

``golden_fits.json`` holds what each fit gave when it was written. Run as a program:

    python tests/golden_fits.py            compare every fit, tell the largest deviations
    python tests/golden_fits.py --write    write the table anew (say why in the commit)
"""

from __future__ import annotations

import argparse
import contextlib
import io
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
from linrank.cli.main import main as linrank_main

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
    def text(self) -> str:
        """The rows as SVMlight text."""
        lines = (
            f"{y:g} qid:{q} " + " ".join(f"{j}:{v!r}" for j, v in enumerate(row, 1)) + "\n"
            for row, y, q in zip(self.X.tolist(), self.y.tolist(), self.qid.tolist(), strict=True)
        )
        path = self.folder / "train.txt"
        path.write_text("".join(lines))
        return str(path)

    @cached_property
    def preferences(self) -> str:
        path = self.folder / "pairs.txt"
        path.write_text("".join(f"{i} {j}\n" for i, j in self.pairs.tolist()))
        return str(path)

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

    def close(self) -> None:
        self.closing.close()


# ---- what is kept of a fit ----------------------------------------------------------------------


def linear(ranker: Any) -> Numbers:
    """A fitted linear ranker."""
    kept = {"coef": ranker.coef_, "objective": ranker.objective_, "gap": ranker.duality_gap_}
    if hasattr(ranker, "n_iter_"):
        kept["n_iter"] = ranker.n_iter_
    if hasattr(ranker, "n_steps_"):
        kept.update(n_iter=ranker.n_steps_, loss=ranker.loss_)
    return {**kept, "n_pairs": ranker.n_pairs_}


def kernel(ranker: Any, bench: Bench) -> Numbers:
    """A fitted ranker with scores that are not linear."""
    kept = {"objective": ranker.objective_, "gap": ranker.duality_gap_, "n_iter": ranker.n_iter_}
    return {"scores": ranker.predict(bench.X[:20], qid=bench.qid[:20]), **kept}


def search(ranker: Any, *chosen: str) -> Numbers:
    """A fitted ranker that chose its parameters."""
    best = {name: getattr(ranker, name) for name in chosen}
    return {"fold_scores": ranker.scores_, "best_score": ranker.best_score_, **best}


def path(found: Any) -> Numbers:
    """A path, of C or of alpha."""
    grid = found.Cs if hasattr(found, "Cs") else found.alphas
    kept = {"grid": grid, "coef": found.coefs, "objective": found.objectives, "gap": found.gaps}
    return {**kept, "n_iter": int(np.sum(found.n_iter))}


def saved(file: str, bench: Bench) -> Numbers:
    """A model file that the command line has written."""
    model = linrank.load_model(file)
    kept = {
        k: model.training[k]
        for k in ("objective", "gap", "n_iter", "n_steps")
        if k in model.training
    }
    if isinstance(model, linrank.KernelModel):
        return {"scores": model.predict(bench.X[:20]), **kept}
    return {"coef": model.coef, **kept}


# ---- the fits -----------------------------------------------------------------------------------

CASES: dict[str, Callable[[Bench], Numbers]] = {}


def case(name: str) -> Callable[[Callable[[Bench], Numbers]], Callable[[Bench], Numbers]]:
    def add(fit: Callable[[Bench], Numbers]) -> Callable[[Bench], Numbers]:
        assert name not in CASES
        CASES[name] = fit
        return fit

    return add


def in_memory(name: str, make: Callable[[], Any], *storages: str, **given: str) -> None:
    """A linear ranker on arrays; ``given`` maps arguments of fit to attributes of the bench."""
    for storage in storages or ("float64",):

        @case(f"{name} | memory | {storage}")
        def fit(bench: Bench, storage: str = storage) -> Numbers:
            arguments = {key: getattr(bench, attribute) for key, attribute in given.items()}
            X = arguments.pop("X", None)
            X = bench.matrix(storage) if X is None else X
            return linear(make().fit(X, bench.y, qid=bench.qid, **arguments))


def in_store(name: str, make: Callable[..., Any], place: str, *storages: str) -> None:
    limit = {"whole": {}, "passes": {"memory_limit": "64GB"}}[place]
    for storage in storages:

        @case(f"{name} | store, {place} | {storage}")
        def fit(bench: Bench, storage: str = storage) -> Numbers:
            return linear(make(**limit).fit(bench.store(storage)))


def on_cluster(name: str, make: Callable[[], Any], *storages: str) -> None:
    for storage in storages:

        @case(f"{name} | cluster | {storage}")
        def fit(bench: Bench, storage: str = storage) -> Numbers:
            ranker = make().set_params(client=bench.client)
            return linear(ranker.fit(**bench.partitioned(storage)))


def named(cls: str, **options: Any) -> Callable[..., Any]:
    """A ranker of linrank or linrank.dask; the latter is imported only when it is called."""

    def make(**more: Any) -> Any:
        home, _, name = f"linrank.{cls}".rpartition(".")
        made = getattr(import_module(home), name)
        return made(**papers.settings_of(made, **options, **more))

    return make


STORAGES = ("float32", "float64", "csr")
HALVES = {"sample_weight": "weight"}

in_memory("RankSVM", named("RankSVM", C=0.3, **TIGHT), *STORAGES)
in_memory("RankSVM, weights", named("RankSVM", C=0.3, **TIGHT), *STORAGES, **HALVES)
in_memory("RankSVM, default tol", named("RankSVM"), *STORAGES)
in_memory("RankSVM, hinge", named("RankSVM", C=0.3, loss="hinge"), *STORAGES)
in_memory("RankSVM, bundle", named("RankSVM", C=0.3, solver="bundle"), "float64", "csr")
in_memory(
    "RankSVM, bundle, hinge", named("RankSVM", C=0.3, solver="bundle", loss="hinge"), "float32"
)
for solver in ("tron", "prsvm", "prsvm+"):
    in_memory(f"RankSVM, {solver}", named("RankSVM", C=0.3, solver=solver, tol=1e-8))
for counting in ("fenwick", "red-black-score", "avl", "wavelet"):
    options = {"C": 0.3, "solver": "tron", "counting": counting, "tol": 1e-8}
    in_memory(f"RankSVM, tron by {counting}", named("published.PublishedRankSVM", **options), "csr")
in_memory("RankSVM, adjacent", named("RankSVM", pairs="adjacent", **TIGHT), "float64", "csr")
in_memory("RankSVM, closest", named("RankSVM", pairs="closest", **CHOSEN, **TIGHT), "float64")
in_memory("RankSVM, pruned", named("RankSVM", pairs="pruned", **CHOSEN, **TIGHT), "csr")
in_memory("RankSVM, grade_diff", named("RankSVM", pair_weighting="grade_diff", **TIGHT))
in_memory("RankSVM, gain_diff", named("RankSVM", pair_weighting="gain_diff", **TIGHT), "float32")
in_memory("RankSVM, normalized", named("RankSVM", query_normalization="pairs", **TIGHT), **HALVES)
in_memory(
    "RankSVM, query weights",
    named("RankSVM", C=0.1, **TIGHT),
    "float64",
    "csr",
    query_weight="query_weight",
)
in_memory("RankSVM, positive", named("RankSVM", positive=True, **TIGHT), "float64", "csr")
in_memory("RankSVM, bounds", named("RankSVM", coef_bounds=(-0.25, 0.3), **TIGHT), "float32")
in_memory(
    "RankSVM, bounds, hinge",
    named("RankSVM", C=0.1, loss="hinge", coef_bounds={0: (None, 0.1), 5: (-0.2, None)}),
)
for missing in ("zero", "mean", "indicator"):
    in_memory(f"RankSVM, missing {missing}", named("RankSVM", missing=missing, **TIGHT), X="holes")
for scale in ("standard", "minmax", "query"):
    storages = ("float64", "csr") if scale == "standard" else ("float32",)
    in_memory(f"RankSVM, scale {scale}", named("RankSVM", C=0.3, scale=scale, **TIGHT), *storages)

for place in ("whole", "passes"):
    in_store("RankSVM", named("RankSVM", C=0.3, **TIGHT), place, *STORAGES)
in_store("RankSVM, hinge", named("RankSVM", C=0.3, loss="hinge"), "passes", "float64")
in_store(
    "RankSVM, scale query", named("RankSVM", C=0.3, scale="query", **TIGHT), "passes", "float32"
)
on_cluster("RankSVM", named("dask.RankSVM", C=0.3, **TIGHT), *STORAGES)
on_cluster("RankSVM, hinge", named("dask.RankSVM", C=0.3, loss="hinge"), "float64")
on_cluster(
    "RankSVM, positive, standard",
    named("dask.RankSVM", C=0.3, positive=True, scale="standard", **TIGHT),
    "float32",
)


@case("RankSVM, pairs given | memory | float64")
def _pairs(bench: Bench) -> Numbers:
    ranker = papers.RankSVM(C=0.3, **TIGHT)
    return linear(
        ranker.fit_pairs(bench.X, bench.pairs, pair_weight=1 + np.arange(len(bench.pairs)) % 2)
    )


@case("RankSVM, pairs given and labels | memory | csr")
def _pairs_and_labels(bench: Bench) -> Numbers:
    given = {"qid": bench.qid, "across_queries": True, "y": bench.y}
    return linear(
        papers.RankSVM(C=0.3, **TIGHT).fit_pairs(bench.matrix("csr"), bench.pairs, **given)
    )


@case("RankSVM, early stopping | memory | float64")
def _early(bench: Bench) -> Numbers:
    ranker = papers.RankSVM(early_stopping=True, n_iter_no_change=1, **TIGHT)
    held_out = {"eval_set": [(bench.X[:60], bench.y[:60])], "eval_qid": [bench.qid[:60]]}
    ranker.fit(bench.X, bench.y, qid=bench.qid, **held_out)
    return {**linear(ranker), "best_iteration": ranker.best_iteration_}


CS = [0.01, 0.1, 1.0]
ALPHAS = [0.5, 1.5, 5.0]


@case("ranksvm_path | memory | float64")
def _path(bench: Bench) -> Numbers:
    return path(papers.ranksvm_path(bench.X, bench.y, bench.qid, Cs=CS, **TIGHT))


@case("ranksvm_path, hinge | memory | csr")
def _path_hinge(bench: Bench) -> Numbers:
    X = bench.matrix("csr")
    return path(papers.ranksvm_path(X, bench.y, bench.qid, Cs=CS, loss="hinge"))


@case("ranksvm_path | store, passes | float32")
def _path_passes(bench: Bench) -> Numbers:
    store = bench.store("float32")
    return path(papers.ranksvm_path(store, Cs=CS, memory_limit="64GB", **TIGHT))


@case("ranksvm_path | cluster | float64")
def _path_cluster(bench: Bench) -> Numbers:
    from linrank.dask import ranksvm_path

    given = bench.partitioned("float64") | papers.settings_of(linrank.ranksvm_path)
    return path(ranksvm_path(**given, Cs=CS, client=bench.client, **TIGHT))


def _rank_search(ranker: Any) -> Numbers:
    return {**linear(ranker), **search(ranker, "C_")}


for storage in ("float32", "csr"):

    @case(f"RankSVMCV | memory | {storage}")
    def _cv(bench: Bench, storage: str = storage) -> Numbers:
        ranker = papers.RankSVMCV(CS, cv=3, **TIGHT)
        return _rank_search(ranker.fit(bench.matrix(storage), bench.y, qid=bench.qid))


@case("RankSVMCV, pruned, map | memory | float64")
def _cv_pruned(bench: Bench) -> Numbers:
    options = {"scoring": "map", "pairs": "pruned", "scale": "standard", "selection": "one_se"}
    ranker = papers.RankSVMCV(CS, cv=3, **options, **CHOSEN, **TIGHT)
    return _rank_search(ranker.fit(bench.X, bench.y, qid=bench.qid))


@case("RankSVMCV | store, passes | float64")
def _cv_passes(bench: Bench) -> Numbers:
    ranker = papers.RankSVMCV(CS, cv=3, memory_limit="64GB", **TIGHT)
    return _rank_search(ranker.fit(bench.store("float64")))


@case("RankSVMCV | cluster | float64")
def _cv_cluster(bench: Bench) -> Numbers:
    from linrank.dask import RankSVMCV

    ranker = RankSVMCV(CS[:2], cv=2, client=bench.client, **papers.settings_of(RankSVMCV), **TIGHT)
    return _rank_search(ranker.fit(**bench.partitioned("float64")))


STEPS = {"n_steps": 3000, "random_state": 7, "alpha": 0.01}
for algorithm in ("pegasos", "sgd-svm", "pa", "romma", "logistic", "hybrid"):
    in_memory(f"SGDRanker, {algorithm}", named("SGDRanker", algorithm=algorithm, **STEPS))
for sampling in ("query", "query-level", "roc", "rejection"):
    in_memory(
        f"SGDRanker, {sampling}",
        named("SGDRanker", sampling=sampling, average=True, **STEPS),
        "csr" if sampling in ("query", "roc") else "float32",
    )
in_memory(
    "SGDRanker, exact record",
    named("SGDRanker", C=0.1, n_steps=3000, random_state=7, record="exact", scale="standard"),
    **HALVES,
)
in_store("SGDRanker", named("SGDRanker", average="uniform", **STEPS), "whole", "float32")
in_store("SGDRanker", named("SGDRanker", average="uniform", **STEPS), "passes", "float32", "csr")


@case("SGDRanker, partial_fit | memory | float64")
def _stream(bench: Bench) -> Numbers:
    ranker = papers.SGDRanker(alpha=0.01, random_state=7, average=True)
    for i in range(0, len(bench.y), 29):
        rows = slice(i, i + 29)
        ranker.partial_fit(bench.X[rows], bench.y[rows], qid=bench.qid[rows])
    return linear(ranker)


@case("SGDRankerCV | memory | float64")
def _descent_cv(bench: Bench) -> Numbers:
    options = {"algorithms": ["pegasos", "logistic"], "n_steps": 2000, "random_state": 7, "cv": 3}
    ranker = papers.SGDRankerCV([1e-3, 1e-2, 1e-1], **options)
    ranker.fit(bench.X, bench.y, qid=bench.qid)
    best = {"algorithm": ranker.algorithm_}
    return {**linear(ranker), **search(ranker, "alpha_"), **best}


L1 = {"penalty": "l1", "alpha": 2.0}
L2 = {"penalty": "l2", "alpha": 0.5}
for storage in STORAGES:
    in_memory("DominationRanker, l1", named("DominationRanker", **L1, tol=1e-10), storage)
    in_memory("DominationRanker, l2", named("DominationRanker", **L2, **TIGHT), storage)
in_memory("DominationRanker, l1, default tol", named("DominationRanker", **L1), **HALVES)
in_memory(
    "DominationRanker, l2 by coordinates",
    named("DominationRanker", **L2, solver="coordinate", tol=1e-10),
)
in_memory(
    "DominationRanker, l2, margin, binary",
    named("DominationRanker", **L2, margin=1.0, layers="binary", **TIGHT),
    "csr",
)
in_memory("DominationRanker, pooled", named("DominationRanker", **L2, pooled=True, **TIGHT))
in_memory(
    "DominationRanker, induction",
    named("DominationRanker", alpha=0.5, feature_induction=2, tol=1e-10),
    "float64",
    "csr",
)
in_memory(
    "DominationRanker, negative sampling",
    named("DominationRanker", **L1, negative_sampling=0.5, random_state=3, tol=1e-10),
)
in_store("DominationRanker, l1", named("DominationRanker", **L1, tol=1e-10), "whole", "float32")
in_store("DominationRanker, l2", named("DominationRanker", **L2, **TIGHT), "passes", *STORAGES)
on_cluster("DominationRanker, l2", named("dask.DominationRanker", **L2, **TIGHT), "float64", "csr")


for penalty, storage in (("l1", "float64"), ("l2", "csr")):

    @case(f"domination_path, {penalty} | memory | {storage}")
    def _domination_path(bench: Bench, penalty: str = penalty, storage: str = storage) -> Numbers:
        options = {"penalty": penalty, "alphas": ALPHAS, "tol": 1e-10}
        return path(linrank.domination_path(bench.matrix(storage), bench.y, bench.qid, **options))

    @case(f"DominationRankerCV, {penalty} | memory | {storage}")
    def _domination_cv(bench: Bench, penalty: str = penalty, storage: str = storage) -> Numbers:
        ranker = papers.DominationRankerCV(penalty, ALPHAS, cv=3, tol=1e-10)
        ranker.fit(bench.matrix(storage), bench.y, qid=bench.qid)
        return {**linear(ranker), **search(ranker, "alpha_")}


in_memory(
    "FactorizedRankSVM",
    named("FactorizedRankSVM", n_components=3, C=0.1, random_state=5),
    "float64",
    "csr",
)
in_memory(
    "FactorizedRankSVM, ball",
    named("FactorizedRankSVM", n_components=2, C=0.1, constraint="ball", random_state=5),
    "float32",
)
in_memory(
    "RegularizedRankSVM",
    named("RegularizedRankSVM", gamma=1.0, lam=0.1, C=0.1),
    "float64",
    "csr",
)
in_memory(
    "RegularizedRankSVM, scale",
    named("RegularizedRankSVM", gamma=1.0, lam=0.5, C=0.1, scale="standard"),
    "float32",
)

KERNELS: dict[str, tuple[str, dict[str, Any]]] = {
    "rbf": ("float64", {"kernel": "rbf", **TIGHT}),
    "rbf, standard": ("float32", {"kernel": "rbf", "scale": "standard", "gamma": 0.2, **TIGHT}),
    "rbf, hinge": ("float64", {"kernel": "rbf", "loss": "hinge", "gamma": 0.2}),
    "poly": ("csr", {"kernel": "poly", "degree": 2, "coef0": 1.0, "gamma": 0.1, **TIGHT}),
    "linear": ("csr", {"kernel": "linear", "pairs": "adjacent", **TIGHT}),
    "nystroem": ("float64", {"approximation": "nystroem", "n_components": 40, **TIGHT}),
}
for name, (storage, options) in KERNELS.items():

    @case(f"KernelRankSVM, {name} | memory | {storage}")
    def _kernel(bench: Bench, storage: str = storage, options: dict[str, Any] = options) -> Numbers:
        ranker = papers.KernelRankSVM(C=0.3, random_state=2, **options)
        return kernel(ranker.fit(bench.matrix(storage), bench.y, qid=bench.qid), bench)


@case("KernelRankSVM, pairs given | memory | float64")
def _kernel_pairs(bench: Bench) -> Numbers:
    ranker = papers.KernelRankSVM(C=0.3, gamma=0.2, **TIGHT)
    return kernel(ranker.fit_pairs(bench.X, bench.pairs), bench)


@case("KernelRankSVMCV | memory | float64")
def _kernel_cv(bench: Bench) -> Numbers:
    ranker = papers.KernelRankSVMCV(Cs=CS, gammas=[0.05, 0.5], cv=3, random_state=2, **TIGHT)
    ranker.fit(bench.X, bench.y, qid=bench.qid)
    return {**kernel(ranker, bench), **search(ranker, "C_", "gamma_")}


TOPICS = {
    "RankSVM": ("float64", lambda: papers.RankSVM(**TIGHT)),
    "DominationRanker": ("csr", lambda: papers.DominationRanker(tol=1e-10)),
    "SGDRanker": ("float32", lambda: papers.SGDRanker(alpha=0.01, n_steps=2000)),
}
for name, (storage, make) in TOPICS.items():

    @case(f"PerQueryRanker, {name} | memory | {storage}")
    def _topics(bench: Bench, storage: str = storage, make: Callable[[], Any] = make) -> Numbers:
        ranker = linrank.PerQueryRanker(make(), random_state=4)
        return {"coef": ranker.fit(bench.matrix(storage), bench.topics).coef_.toarray()}


# ---- the command line ---------------------------------------------------------------------------


def run(*arguments: str) -> str:
    """Standard output of a command, which must succeed or say that it did not converge."""
    with contextlib.redirect_stdout(io.StringIO()) as out:
        status = linrank_main([*arguments, "-q"])
    assert status in (0, 3), f"linrank {' '.join(arguments)}: status {status}"
    return out.getvalue()


def method_of(arguments: str) -> str:
    words = arguments.split()
    return words[words.index("--method") + 1] if "--method" in words else "ranksvm"


SGD = "--method sgd --alpha 0.01 --seed 7"
TRAIN = {
    "newton": ("text", "-c 0.3 -e 1e-10"),
    "newton, default tol, standard": ("text", "--scale standard"),
    "hinge": ("text", "-c 0.3 --loss hinge"),
    "bundle": ("text", "-c 0.3 --solver bundle"),
    "tron": ("text", "--method published -c 0.3 -e 1e-8"),
    "pruned": ("text", "--pairs pruned --n-closest 60 --seed 3 -e 1e-10"),
    "positive": ("text", "--positive --bounds 1:0:0.2 -e 1e-10"),
    "newton, whole": ("store", "-c 0.3 -e 1e-10"),
    "newton, passes": ("store", "-c 0.3 -e 1e-10 --memory-limit 64GB"),
    "sgd": ("text", f"{SGD} --n-steps 3000"),
    "sgd, passes": ("store", f"{SGD} --n-steps 3000 --memory-limit 64GB"),
    "sgd, stream": ("text", f"{SGD} --stream"),
    "domination, l1": ("text", "--method domination --alpha 2 -e 1e-10"),
    "domination, l2, passes": (
        "store",
        "--method domination --penalty l2 --alpha 0.5 -e 1e-10 --memory-limit 64GB",
    ),
    "factorized": ("text", "--method factorized --n-components 3 -c 0.1 --seed 5"),
    "regularized": ("text", "--method regularized --gamma 1 -c 0.1"),
    "kernel": ("text", "--method kernel --kernel rbf --gamma 0.2 -c 0.3 -e 1e-10"),
    "nystroem": (
        "text",
        "--method kernel --approximation nystroem --n-components 40 -c 0.3 -e 1e-10 --seed 2",
    ),
}
for name, (source, arguments) in TRAIN.items():

    @case(f"linrank train, {name} | {source} | float32")
    def _train(bench: Bench, source: str = source, arguments: str = arguments) -> Numbers:
        data = bench.text if source == "text" else str(bench.store("float32").path)
        model = str(bench.folder / "model.json")
        run("train", data, model, *papers.flags(*arguments.split(), method=method_of(arguments)))
        return saved(model, bench)


@case("linrank train, preferences | text | float32")
def _train_preferences(bench: Bench) -> Numbers:
    model = str(bench.folder / "model.json")
    options = ["--preferences", bench.preferences, "--across-queries", "-e", "1e-10"]
    run("train", bench.text, model, *papers.flags(*options))
    return saved(model, bench)


@case("linrank train, cluster | store | float32")
def _train_cluster(bench: Bench) -> Numbers:
    model = str(bench.folder / "model.json")
    store, address = str(bench.store("float32").path), bench.client.cluster.scheduler_address
    run("train", store, model, *papers.flags("-c", "0.3", "-e", "1e-10", "--dask", address))
    return saved(model, bench)


TUNE = {
    "newton": "--Cs 0.01,0.1,1 -e 1e-10",
    "hinge, map": "--Cs 0.01,0.1,1 --loss hinge -m map",
    "sgd": "--method sgd --alphas 0.001,0.01,0.1 --n-steps 2000 --seed 7",
    "domination": "--method domination --alphas 0.5,1.5,5 -e 1e-10",
    "kernel": "--method kernel --kernel rbf --Cs 0.1,1 --gammas 0.05,0.5 -e 1e-10",
}
for name, arguments in TUNE.items():

    @case(f"linrank tune, {name} | text | float32")
    def _tune(bench: Bench, arguments: str = arguments) -> Numbers:
        model = str(bench.folder / "model.json")
        given = papers.flags(*arguments.split(), method=method_of(arguments), grid=True)
        told = json.loads(run("tune", bench.text, *given, "--folds", "3", "-o", model, "--json"))
        scores = next(told[key]["scores"] for key in ("path", "grid", "scores") if key in told)
        best = {key: told[key] for key in ("C", "alpha", "gamma") if told.get(key) is not None}
        kept = {"fold_scores": scores, "best_score": told["score"], **best}
        return {**saved(model, bench), **kept}


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
