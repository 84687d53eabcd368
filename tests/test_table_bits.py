"""The same judgments give the same model, to the bit, whatever they are stored as."""

from __future__ import annotations

import io
import lzma

import numpy as np
import pyarrow as pa

import linrank
import papers
from cli_files import write_svmlight
from linrank.data.synthetic import make_ranking
from real_data import real_file
from table_files import ENDINGS, as_table, write_table


def coef(data):
    """The weights of a fit on one thread's or many threads' rows alike."""
    model = papers.RankSVM(C=0.1).fit(data.X, data.y, qid=data.qid)
    return model.coef_.tobytes()


def variants(table, folder):
    """Sources that all hold the table, and how they are read."""
    for ending in ENDINGS:
        yield write_table(table, folder / f"t.{ending}", 777), {}
    names = [name for name in table.column_names if name.startswith("f")]
    rows = np.ascontiguousarray(np.array([table[name] for name in names], np.float32).T)
    lists = pa.FixedSizeListArray.from_arrays(rows.ravel(), len(names))
    others = table.drop_columns(names)
    yield write_table(others.append_column("features", lists), folder / "list.parquet", 777), {}
    shuffled = table.select(np.random.default_rng(3).permutation(table.column_names).tolist())
    for ending in ("parquet", "csv"):
        path = write_table(shuffled, folder / f"shuffled.{ending}")
        yield path, {"features": names}


def check_all(text, table, folder):
    data = linrank.load(text, storage="dense")
    expected = coef(data)
    for source, options in variants(table, folder):
        found = linrank.load(source, **options)
        assert found.X.dtype == np.float32
        assert found.X.tobytes() == data.X.tobytes(), source
        assert coef(found) == expected, source


def test_generated_judgments(tmp_path):
    data = make_ranking(30, 12, 9, random_state=4)
    check_all(write_svmlight(tmp_path / "t.txt", data), as_table(data), tmp_path)


def test_mq2008(tmp_path):
    text = lzma.decompress(real_file("mq2008/S1.txt.xz").read_bytes())
    data = linrank.load(io.BytesIO(text), storage="dense")
    check_all(io.BytesIO(text), as_table(data), tmp_path)
