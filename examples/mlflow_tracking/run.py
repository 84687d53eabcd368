"""Track RankSVM fits in MLflow: parameters, certificates, metrics, the model and its ONNX export.

    python examples/mlflow_tracking/run.py [FOLDER]

Needs MLflow and ONNX: pip install mlflow onnx onnxruntime. The runs go to a database in
FOLDER, or to MLFLOW_TRACKING_URI if that is set; look at them with
mlflow ui --backend-store-uri sqlite:///FOLDER/mlflow.db.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from pathlib import Path

import mlflow
import numpy as np
import onnxruntime

from linrank import Dataset, RankSVM, evaluate, load_model, make_ranking

METRICS = ("ndcg@10", "map", "pairwise_accuracy")
GRID = (1e-6, 1e-4, 1e-2)


def key(metric: str) -> str:
    """A name that MLflow accepts: it does not allow @."""
    return metric.replace("@", "_at_")


def track(train: Dataset, valid: Dataset, C: float) -> str:
    """Fit and log everything about it; the id of the run."""
    with mlflow.start_run(run_name=f"RankSVM C={C:g}") as run:
        ranker = RankSVM(C=C, scale="standard").fit(train.X, train.y, qid=train.qid)
        mlflow.log_params({k: v for k, v in ranker.get_params().items() if v is not None})
        # Identifies the training data; the fingerprint is in the model file too.
        mlflow.set_tag("data", ranker.model_.training["fingerprint"])
        for step, (objective, gap) in enumerate(
            zip(ranker.history_["objective"], ranker.history_["gap"], strict=True)
        ):
            mlflow.log_metrics({"objective": objective, "gap": gap}, step=step)
        found = evaluate(valid.y, ranker.predict(valid.X), qid=valid.qid, metrics=METRICS)
        mlflow.log_metrics({f"valid_{key(name)}": float(found[name]) for name in METRICS})
        with tempfile.TemporaryDirectory() as folder:
            ranker.model_.save(os.path.join(folder, "model.json"))
            ranker.export("onnx").save(os.path.join(folder, "model.onnx"))
            mlflow.log_artifacts(folder, artifact_path="model")
    return run.info.run_id


def best_run(run_ids: list[str]) -> mlflow.entities.Run:
    """The run with the best validation metric, as stored in MLflow."""
    runs = [mlflow.get_run(run_id) for run_id in run_ids]
    return max(runs, key=lambda run: run.data.metrics[f"valid_{key(METRICS[0])}"])


def serve(run_id: str, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Scores of the two files that were logged: by linrank, and by onnxruntime."""
    with tempfile.TemporaryDirectory() as folder:
        kept = mlflow.artifacts.download_artifacts(
            run_id=run_id, artifact_path="model", dst_path=folder
        )
        scores = load_model(os.path.join(kept, "model.json")).predict(X)
        session = onnxruntime.InferenceSession(os.path.join(kept, "model.onnx"))
    return scores, session.run(None, {"X": X.astype(np.float32)})[0][:, 0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", nargs="?", type=Path, default=Path("mlflow-tracking"))
    folder = parser.parse_args().folder.absolute()
    folder.mkdir(parents=True, exist_ok=True)
    if "MLFLOW_TRACKING_URI" not in os.environ:
        mlflow.set_tracking_uri(f"sqlite:///{folder / 'mlflow.db'}")
    name = "linrank"
    if mlflow.get_experiment_by_name(name) is None:
        mlflow.create_experiment(name, artifact_location=(folder / "artifacts").as_uri())
    mlflow.set_experiment(name)

    data = make_ranking(n_queries=150, n_features=12, random_state=0)
    part = data.qid % 3  # whole queries to each part
    train, valid, test = (data.select(np.flatnonzero(part == k)) for k in range(3))
    chosen = best_run([track(train, valid, C) for C in GRID])
    scores, onnx_scores = serve(chosen.info.run_id, test.X)
    found = evaluate(test.y, scores, qid=test.qid, metrics=METRICS)
    print(f"chosen: C = {chosen.data.params['C']}, data {chosen.data.tags['data']}")
    print("test: ", ", ".join(f"{metric} {found[metric]:.4f}" for metric in METRICS))
    print(f"largest relative difference of ONNX scores: {relative(scores, onnx_scores):.1e}")


def relative(a: np.ndarray, b: np.ndarray) -> float:
    return float(np.max(np.abs(a - b)) / np.max(np.abs(a)))


if __name__ == "__main__":
    main()
