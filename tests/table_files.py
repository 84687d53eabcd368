"""Tables for the tests: a dataset as Arrow, and as files of every format."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from linrank.data.dataset import Dataset

ENDINGS = ("parquet", "arrow", "arrows", "csv", "tsv")


def as_table(data: Dataset, **more) -> pa.Table:
    """Columns label, qid, docid, f1, f2, ... of a dense dataset, in this order."""
    columns = {"label": data.y, "qid": data.qid}
    if data.comments is not None:
        columns["docid"] = data.docids
    columns |= {f"f{j}": data.X[:, j - 1] for j in range(1, data.n_features + 1)}
    return pa.table({**columns, **more})


def write_table(table: pa.Table, path: Path, rows_per_batch: int = 1000) -> Path:
    """Write a table in the format that the ending of the path names."""
    kind = path.suffix[1:]
    if kind == "parquet":
        pa.parquet.write_table(table, path, row_group_size=rows_per_batch)
    elif kind in ("arrow", "arrows"):
        new = pa.ipc.new_file if kind == "arrow" else pa.ipc.new_stream
        with pa.OSFile(str(path), "wb") as file, new(file, table.schema) as writer:
            writer.write_table(table, max_chunksize=rows_per_batch)
    else:
        options = pa.csv.WriteOptions(delimiter="," if kind == "csv" else "\t")
        pa.csv.write_csv(table, path, write_options=options)
    return path


TABLE = pa.table(
    {
        "rel": pa.array([2, 0, 1, 1, 0], pa.int8()),
        "qid": [7, 7, 3, 7, 3],
        "docno": ["a b", "c,d", 'e"f', "g\nh", "ü"],
        "url": ["u", "v", "w", "x", "y"],
        "bm25": pa.array([0.5, -1.25, 1e-40, 3e38, -0.0], pa.float32()),
        "clicks": pa.array([1, 2, 3, 4, 5], pa.float32()),
        "sample_weight": [1.0, 2.0, 0.5, 1.0, 1.0],
        "position": [1, 2, 3, 4, 5],
    }
)
