"""The process of one method on one fold: trains its candidates, keeps the best, tells of it.

It is started as ``python -c`` in a folder of its own with the path of a job; lines of JSON on
standard output say how it goes: what they hold replaces what was said before. It ends when its
standard input does: nobody would read what it finds.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linrank.data.dataset import Dataset, join_rows
from linrank.data.rows import CsrRows, DenseRows, Rows
from linrank.judging.contest.methods import Contestant, Model, Trial
from linrank.metrics import Convention

Array = NDArray[Any]


def write_subset(folder: str, number: int, data: Dataset) -> None:
    """Write the subset with the rows of each query together, queries numbered from 0."""
    queries = data.queries
    rows = data.rows if queries.order is None else data.rows.take(queries.order)
    arrays = {"labels": queries.gather(data.labels), "offsets": queries.offsets}
    if isinstance(rows, CsrRows):
        arrays |= {"values": rows.values, "columns": rows.columns, "starts": rows.offsets}
    else:
        arrays |= {"values": rows.values}
    for name, array in arrays.items():
        np.save(_path(folder, number, name), array)
    with open(_path(folder, number, "about", "json"), "w", encoding="utf-8") as file:
        json.dump({"n_features": data.n_features, "index_base": data.index_base}, file)


def read_joined(folder: str, numbers: Sequence[int]) -> Dataset:
    """The subsets one after the other as one dataset; a single one is mapped, not read."""
    with open(_path(folder, numbers[0], "about", "json"), encoding="utf-8") as file:
        about = json.load(file)
    rows = [_read_rows(folder, k, about["n_features"]) for k in numbers]
    labels = [_read(folder, k, "labels") for k in numbers]
    sizes = np.concatenate([np.diff(_read(folder, k, "offsets")) for k in numbers])
    return Dataset(
        join_rows(rows),
        np.concatenate(labels),
        np.repeat(np.arange(len(sizes)), sizes),
        index_base=about["index_base"],
    )


def _read_rows(folder: str, number: int, n_features: int) -> Rows:
    values = _read(folder, number, "values")
    if values.ndim == 2:
        return DenseRows(values)
    columns, starts = (_read(folder, number, name) for name in ("columns", "starts"))
    return CsrRows(values, columns, starts, n_features)


def _read(folder: str, number: int, name: str) -> Array:
    # As a plain array over the map: some libraries look at the type.
    return np.asarray(np.load(_path(folder, number, name), mmap_mode="r"))


def _path(folder: str, number: int, name: str, extension: str = "npy") -> str:
    return os.path.join(folder, f"{number}-{name}.{extension}")


Tell = Callable[[dict[str, Any]], None]


def main(path: str) -> None:
    """Do the job that the file at ``path`` describes."""
    tell = _messages()
    threading.Thread(target=_end_with_the_parent, daemon=True).start()
    try:
        with open(path, encoding="utf-8") as file:
            job = json.load(file)
        train, valid, test = job["parts"]
        known = read_joined(job["folder"], valid) if valid else None
        job["rules"]["convention"] = Convention(**job["rules"]["convention"])
        trial = Trial(read_joined(job["folder"], train), known, **job["rules"])
        rows = read_joined(job["folder"], test)
        tell({"began": True})
        search(Contestant(**job["method"]), trial, rows, tell)
    except Exception as error:  # whatever a method of others may raise: its row will say so
        import traceback

        traceback.print_exc()
        text = " ".join(str(error).split())
        why = f"{type(error).__name__}: {text}" if text else repr(error)
        tell({"status": "failed", "why": why})


def search(method: Contestant, trial: Trial, test: Dataset, tell: Tell, folder: str = ".") -> None:
    """Judge each candidate; tell of the best so far, its scores of the test rows in a file.

    Every file has a name of its own, which is told: whoever ends this between the file and the
    message still has the scores of the candidate that was told of last.
    """
    start, best, best_score, name = time.process_time(), None, -np.inf, ""
    parts = trial.parts()
    scores = np.empty(sum(held_out.n_rows for _, held_out, _ in parts))
    for n_seen, point in enumerate(method.points(trial), start=1):
        for part, held_out, rows in parts:
            model, took = _timed(method, part, point)
            scores[rows] = model.predict(held_out)
        score = trial.judge(scores) if np.isfinite(scores).all() else -np.inf
        # Of those that differ by rounding only, the first: the most regularised.
        if best is None or score > best_score + 1e-12 * min(1.0, abs(best_score)):
            if trial.valid is None:  # so far there are models of the folds only
                model, took = _timed(method, trial, point)
            best, best_score, last = {**point, **model.found}, score, name
            name = f"scores-{n_seen}.npy"
            np.save(os.path.join(folder, name), np.asarray(model.predict(test), np.float64))
            about = {
                "parameters": best,
                "score": score if np.isfinite(score) else None,
                "fit_seconds": took,
                "size": asdict(model.size()),
            }
            tell({**about, "scores": name, "n_candidates": n_seen})
            if last:
                os.remove(os.path.join(folder, last))
        tell({"n_candidates": n_seen, "search_seconds": time.process_time() - start})
    if best is None:
        raise ValueError("the method has come up with no model")
    if not np.isfinite(best_score):
        raise ValueError("no candidate gives finite scores that the measure can judge")
    tell({"status": "done"})
    # One fit is one from the beginning, without what other candidates have left or looked for.
    tell({"fit_seconds": _timed(method, trial.anew(), best)[1]})


def _timed(method: Contestant, trial: Trial, point: Mapping[str, Any]) -> tuple[Model, float]:
    began = time.process_time()
    model = method.model(trial, point)
    return model, time.process_time() - began


def _messages() -> Tell:
    """Lines on what was standard output; what libraries print goes to standard error."""
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)

    def tell(message: dict[str, Any]) -> None:
        out.write(json.dumps(message) + "\n")
        out.flush()

    return tell


def _end_with_the_parent() -> None:
    """The other end of standard input closes when the parent is gone, however it went."""
    sys.stdin.buffer.read()
    os._exit(1)
