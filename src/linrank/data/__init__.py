"""Data: rows, their queries and labels, what is said of their columns, and pairs of them."""
# ruff: noqa: F401  (what the folder offers to all others)
# mypy: implicit-reexport

from linrank.data.bounds import Box, without_rounding
from linrank.data.dataset import Dataset, as_dense, as_sparse, join_datasets, join_rows
from linrank.data.frames import as_array, as_labels, as_weights, column_names, first_true
from linrank.data.missing import Filling, Missing
from linrank.data.preferences import Preferences
from linrank.data.queries import UNSAID, Queries, as_ids, query_weights
from linrank.data.rows import (
    Array,
    ColumnStatistics,
    CsrRows,
    DenseRows,
    Rows,
    StreamedRows,
    as_rows,
)
from linrank.data.scaling import Scaling
from linrank.data.words import Words
