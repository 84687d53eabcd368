"""The grids of linrank's own methods, each by its fastest way through the grid."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator, Mapping
from itertools import product
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linrank.data.dataset import Dataset
from linrank.data.scaling import Scaling
from linrank.judging.contest.methods import Candidate, Size, Task, Value
from linrank.models.kernel import KernelModel
from linrank.models.linear import LinearModel

Array = NDArray[Any]

_N_STEPS = 100_000
_LANDMARKS = 256


def linear_candidate(
    coef: Array,
    parameters: Mapping[str, Value],
    seconds: float | None = None,
    fit: Callable[[], object] | None = None,
) -> Candidate:
    """A candidate with coefficients of the raw features."""
    model = LinearModel(np.asarray(coef, dtype=np.float64))

    def predict(data: Dataset) -> Array:
        return model.predict(data, n_jobs=1)

    def size() -> Size:
        return Size(saved_bytes(model), int(np.count_nonzero(model.coef)))

    return Candidate(parameters, predict, size, seconds, fit)


def saved_bytes(model: LinearModel | KernelModel) -> int:
    """Bytes of what ``model.save`` writes, all files together."""
    with TemporaryDirectory() as folder:
        model.save(os.path.join(folder, "model.json"))
        return sum(entry.stat().st_size for entry in os.scandir(folder))


def ranksvm(task: Task) -> Iterator[Candidate]:
    """The squared hinge on all pairs: a path over C."""
    return _path(task, 2.0 ** np.arange(-20, 11))


def ranksvm_hinge(task: Task) -> Iterator[Candidate]:
    """The hinge on all pairs: C ascending, each model from the last."""
    return _path(task, 2.0 ** np.arange(-20, 4), loss="hinge")


def ranksvm_closest(task: Task) -> Iterator[Candidate]:
    """The squared hinge on pairs of neighbouring labels: a path over C."""
    return _path(task, 2.0 ** np.arange(-20, 11), pairs="closest")


def _path(task: Task, Cs: Array, **options: Any) -> Iterator[Candidate]:
    from linrank.ranksvm.path import train_path
    from linrank.ranksvm.train import train

    scaling = Scaling.fit(task.scale, task.train.rows, n_jobs=1)
    options |= {"scale": scaling.factors, "n_jobs": 1}
    found = train_path(task.train, Cs.tolist(), **options)
    for C, result in zip(Cs.tolist(), found, strict=False):

        def fit(C: float = C) -> object:
            return train(task.train, C=C, **options)

        yield linear_candidate(scaling.fold(result.w), {"C": C}, fit=fit)


def sgd(task: Task) -> Iterator[Candidate]:
    """Passive-aggressive steps, then Pegasos, averaged: all λ in one pass."""
    from linrank.stochastic.run import Rule, Run
    from linrank.stochastic.samplers import pair_sampler

    scaling = Scaling.fit(task.scale, task.train.rows, n_jobs=1)
    data = scaling.applied(task.train, n_jobs=1)
    alphas = (10.0 ** np.arange(3, -8, -1)).tolist()

    def run(grid: list[float]) -> Array:
        rules = [Rule("hybrid", alpha) for alpha in grid]
        sampler = pair_sampler(data.queries, "pairs", labels=data.labels)
        models = Run(data.rows, sampler, rules, _N_STEPS, average="weighted", seed=task.seed)
        models.until(_N_STEPS)
        return models.weights()

    for alpha, w in zip(alphas, run(alphas), strict=True):

        def fit(alpha: float = alpha) -> object:
            return run([alpha])

        yield linear_candidate(scaling.fold(w), {"alpha": alpha}, fit=fit)


def domination_l1(task: Task) -> Iterator[Candidate]:
    """The domination loss from no feature on."""
    return _domination(task, "l1")


def domination_l2(task: Task) -> Iterator[Candidate]:
    """The domination loss, from weights near 0 on."""
    return _domination(task, "l2")


def _domination(task: Task, penalty: str) -> Iterator[Candidate]:
    from linrank.domination.path import PathProblem, as_alphas, follow

    def made() -> PathProblem:
        return PathProblem.of(
            task.train, penalty=penalty, scale=task.scale, seed=task.seed, n_jobs=1
        )

    path = made()
    alphas = as_alphas("auto", path.problem, 50, None)
    for alpha, result in zip(
        alphas.tolist(), follow(path.problem, alphas, **path.options), strict=False
    ):

        def fit(alpha: float = alpha) -> object:
            fresh = made()
            return list(follow(fresh.problem, np.array([alpha]), **fresh.options))

        yield linear_candidate(path.scaling.fold(result.w), {"alpha": alpha}, fit=fit)


def factorized(task: Task) -> Iterator[Candidate]:
    """Duals that are inner products of short vectors; every fit has a start of its own."""
    from linrank.lowrank.factorized import train_factorized

    scaling = Scaling.fit(task.scale, task.train.rows, n_jobs=1)
    for C, n_components in product(10.0 ** np.arange(-5, 3), (1, 5)):
        start = time.process_time()
        result = train_factorized(
            task.train,
            n_components=n_components,
            C=float(C),
            tol=1e-5,
            scale=scaling.factors,
            seed=task.seed,
            n_jobs=1,
        )
        seconds = time.process_time() - start
        parameters = {"C": float(C), "n_components": n_components}
        yield linear_candidate(scaling.fold(result.w), parameters, seconds)


def kernel(task: Task) -> Iterator[Candidate]:
    """A kernel by landmarks; γ relative to that of ``gamma="scale"``."""
    from linrank.kernels.functions import Kernel
    from linrank.methods.kernel import fit_kernel

    scaling = Scaling.fit(task.scale, task.train.rows, n_jobs=1)
    usual = Kernel.of("rbf", gamma="scale", rows=scaling.rows(task.train.rows, n_jobs=1)).gamma
    for share, C in product((0.1, 0.3, 1.0), 10.0 ** np.arange(-5, 2)):
        start = time.process_time()
        model, _ = fit_kernel(
            task.train,
            kernel="rbf",
            gamma=share * usual,
            scale=task.scale,
            approximation="nystroem",
            n_components=min(_LANDMARKS, task.train.n_rows),
            C=float(C),
            seed=task.seed,
            n_jobs=1,
        )
        seconds = time.process_time() - start
        yield _kernel_candidate(model, {"gamma": share * usual, "C": float(C)}, seconds)


def _kernel_candidate(
    model: KernelModel, parameters: Mapping[str, Value], seconds: float
) -> Candidate:
    def predict(data: Dataset) -> Array:
        return model.predict(data, n_jobs=1)

    def size() -> Size:
        n_numbers = model.n_support * model.n_features
        try:
            return Size(saved_bytes(model), model.n_support, "support rows")
        except ImportError:  # beyond a million numbers the file needs safetensors
            return Size(8 * n_numbers, model.n_support, "support rows")

    return Candidate(json.loads(json.dumps(parameters)), predict, size, seconds)
