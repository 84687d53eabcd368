"""The C++ core of linrank."""

from collections.abc import Callable, Sequence
from typing import Annotated, Any, overload

import numpy
from numpy.typing import NDArray


class Rows:
    """A view of a row-major matrix, dense or CSR."""

    @property
    def shape(self) -> tuple[int, int]: ...

@overload
def dense_rows(x: Annotated[NDArray[numpy.float32], dict(shape=(None, None), device='cpu', writable=False)]) -> Rows: ...

@overload
def dense_rows(x: Annotated[NDArray[numpy.float64], dict(shape=(None, None), device='cpu', writable=False)]) -> Rows: ...

@overload
def csr_rows(values: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], columns: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], offsets: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], n_columns: int, n_checked: int = 0) -> Rows: ...

@overload
def csr_rows(values: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], columns: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], offsets: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], n_columns: int, n_checked: int = 0) -> Rows:
    """
    n_checked: rows at the start that an earlier view has checked, and nobody has changed.
    """

@overload
def interleave_columns(columns: list, valid: list, first_bit: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], out: Annotated[NDArray[numpy.float32], dict(shape=(None, None), device='cpu')], n_threads: int = 1) -> tuple[bool, bool]: ...

@overload
def interleave_columns(columns: list, valid: list, first_bit: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], out: Annotated[NDArray[numpy.float64], dict(shape=(None, None), device='cpu')], n_threads: int = 1) -> tuple[bool, bool]:
    """
    Columns into the rows of `out`, NaN where a bit of `valid` is 0: whether any is NaN, and whether any is infinite.
    """

def first_non_finite(rows: Rows, n_threads: int = 1) -> tuple[int, int] | None:
    """(row, column) of the first NaN or infinity, or None."""

def columns_increase(rows: Rows, n_threads: int = 1) -> bool:
    """Whether the column indices of every row increase strictly."""

def scan_columns(rows: Rows, weight: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, n_threads: int) -> dict:
    """
    Moments, ranges, norms and counts of every column, absent entries being 0, and the checksum of the rows.
    """

def find_strays(rows: Rows, floor: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], ceiling: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], n_threads: int) -> dict:
    """Values of every column below its floor, above its ceiling, or missing."""

def scale_queries(rows: Rows, offsets: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], order: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, n_threads: int) -> object:
    """
    The stored entries, each divided by the range of its column within its query.
    """

def crc32c(bytes: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)], before: int = 0) -> int:
    """CRC-32C of the bytes, which continues that of what came before."""

def factorize(ids: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> tuple[Annotated[NDArray[numpy.int64], dict(shape=(None,))], Annotated[NDArray[numpy.int64], dict(shape=(None,))]]:
    """
    (codes, first): ids numbered by first appearance, and the row of each first appearance.
    """

def group_rows(codes: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], n_queries: int) -> tuple[Annotated[NDArray[numpy.int64], dict(shape=(None,))], Annotated[NDArray[numpy.int64], dict(shape=(None,))], bool]:
    """
    (order, offsets, is_identity): a stable counting sort; order is empty if the identity.
    """

def rank_levels(labels: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], offsets: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], order: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, n_threads: int = 1) -> tuple[Annotated[NDArray[numpy.int32], dict(shape=(None,))], Annotated[NDArray[numpy.int32], dict(shape=(None,))]]:
    """(levels, n_levels): dense ranks of the labels of each query."""

def count_pairs(levels: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], offsets: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], n_levels: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> Annotated[NDArray[numpy.int64], dict(shape=(None,))]:
    """Pairs (i above j) of each query."""

class Piece:
    """What was read from one block of lines."""

    @property
    def n_rows(self) -> int: ...

    @property
    def n_entries(self) -> int: ...

    @property
    def n_lines(self) -> int: ...

    @property
    def has_query(self) -> bool: ...

    @property
    def lowest(self) -> int:
        """Smallest feature index, -1 without entries."""

    @property
    def highest(self) -> int:
        """Largest feature index, -1 without entries."""

    @property
    def n_bytes(self) -> int: ...

    @property
    def has_weight(self) -> bool: ...

    @property
    def n_comment_bytes(self) -> int: ...

    @property
    def highest_place(self) -> tuple[int, int]: ...

    @property
    def fault(self) -> tuple[int, int, str] | None:
        """(line, column, message) of the first fault."""

    def query_fault(self, before: bool) -> tuple[int, int, str] | None:
        """The fault if rows before have (or lack) query ids and these do not."""

class QueryTable:
    """Query ids numbered by first appearance."""

    def __init__(self) -> None: ...

    def runs(self, piece: Piece) -> tuple[Annotated[NDArray[numpy.int64], dict(shape=(None,))], Annotated[NDArray[numpy.int64], dict(shape=(None,))]]:
        """(query, rows) of rows of a piece that follow one another with one id."""

    def number(self, id: bytes) -> int:
        """The number of an id; a new one gets the next."""

    def integers(self, first: int, last: int) -> Annotated[NDArray[numpy.int64], dict(shape=(None,))]: ...

    def tokens(self, first: int, last: int) -> list[bytes]:
        """Ids as bytes: they may be in any encoding."""

    def __len__(self) -> int: ...

    @property
    def all_integers(self) -> bool: ...

    @property
    def n_bytes(self) -> int: ...

MAX_FEATURE: int = 2147483646

class TextParser32:
    def __init__(self, lowest: int, highest: int) -> None: ...

    def parse(self, text: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> Piece:
        """Read a block of whole lines; may be called from several threads."""

@overload
def fill_dense(pieces: Sequence[Piece], x: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu')], base: int, n_threads: int) -> None: ...

@overload
def fill_dense(pieces: Sequence[Piece], x: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu')], base: int, n_threads: int) -> None: ...

@overload
def fill_csr(pieces: Sequence[Piece], values: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')], columns: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu')], offsets: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu')], n_columns: int, base: int, n_threads: int) -> None: ...

@overload
def fill_csr(pieces: Sequence[Piece], values: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], columns: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu')], offsets: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu')], n_columns: int, base: int, n_threads: int) -> None: ...

class TextParser64:
    def __init__(self, lowest: int, highest: int) -> None: ...

    def parse(self, text: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> Piece:
        """Read a block of whole lines; may be called from several threads."""

def fill_labels(pieces: Sequence[Piece], labels: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> None: ...

def fill_weights(pieces: Sequence[Piece], weights: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> None: ...

def fill_integer_queries(pieces: Sequence[Piece], ids: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu')]) -> bool: ...

def fill_query_codes(pieces: Sequence[Piece], codes: NDArray[numpy.int64]) -> list[bytes]: ...

def fill_comments(pieces: Sequence[Piece], text: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu')], offsets: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu')]) -> None: ...

def gather_spans(source: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)], width: int, offsets: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], order: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], to: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu')]) -> None:
    """Copy rows of different lengths in an order: elements of `width` bytes."""

def svmlight_text(rows: Rows, labels: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], weights: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, ids: tuple[Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)], Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)]] | None, comments: tuple[Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)], Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)]] | None, base: int, names_ends: bool, n_threads: int) -> Annotated[NDArray[numpy.uint8], dict(shape=(None,))]:
    """
    Lines of SVMlight text, as bytes; ids and comments are words, one a row.
    """

class TrecReader:
    """Reads judgments, or runs, block by block."""

    def __init__(self, is_run: bool) -> None: ...

    def read(self, text: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> tuple[int, str] | None:
        """Read whole lines; (line, message) of the first fault, or None."""

    def take(self) -> tuple[Annotated[NDArray[numpy.int64], dict(shape=(None,))], tuple[Annotated[NDArray[numpy.uint8], dict(shape=(None,))], Annotated[NDArray[numpy.int64], dict(shape=(None,))]], tuple[Annotated[NDArray[numpy.uint8], dict(shape=(None,))], Annotated[NDArray[numpy.int64], dict(shape=(None,))]], Annotated[NDArray[numpy.float64], dict(shape=(None,))], Annotated[NDArray[numpy.int64], dict(shape=(None,))], bytes]:
        """
        (query by row, ids of the queries, documents by row, values, lines, tag of a run); words as text and offsets.
        """

def repeated_document(query: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], documents: tuple[Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)], Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)]]) -> tuple[int, int] | None:
    """
    (row, earlier row) of a query and a document that are named twice, or None.
    """

def find_documents(query: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], documents: tuple[Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)], Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)]], wanted_query: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], wanted: tuple[Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)], Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)]]) -> Annotated[NDArray[numpy.int64], dict(shape=(None,))]:
    """
    The row that has each of the wanted queries and documents, -1 where none has.
    """

def document_order(offsets: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], rows: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], documents: tuple[Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)], Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)]], n_threads: int) -> Annotated[NDArray[numpy.int64], dict(shape=(None,))]:
    """The place of each document in the order of the ids of its query."""

def scores(rows: Rows, w: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], order: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, n_threads: int) -> Annotated[NDArray[numpy.float64], dict(shape=(None,))]:
    """X w, by position."""

def gradient(rows: Rows, r: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], order: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, n_threads: int) -> Annotated[NDArray[numpy.float64], dict(shape=(None,))]:
    """Transposed X times r, r by position."""

def longest_sums(rows: Rows) -> tuple[int, int]:
    """Terms of the longest sums that scores, and slopes in w, are made of."""

def cholesky_factor(matrix: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], n: int) -> Annotated[NDArray[numpy.float64], dict(shape=(None,))] | None:
    """The factor, or None if not positive definite."""

def cholesky_solve(factor: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], n: int, b: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> Annotated[NDArray[numpy.float64], dict(shape=(None,))]: ...

def add_scaled(x: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], a: float, y: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], n_threads: int) -> Annotated[NDArray[numpy.float64], dict(shape=(None,))]:
    """x + a y."""

def add_to(y: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], a: float, x: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], n_threads: int) -> None:
    """y += a x."""

def dot(x: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], y: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], n_threads: int = 1) -> float:
    """Inner product, the same bits whatever BLAS does."""

LONG_QUERY: int = 131072

def instruction_set() -> str:
    """The vector kernels in use."""

class KernelFunction:
    """k(a, b) of two rows."""

def kernel_function(name: str, gamma: float, degree: int, coef0: float) -> KernelFunction:
    """name: rbf, poly, sigmoid or linear."""

def kernel_matrix(function: KernelFunction, a: Rows, b: Rows, n_threads: int) -> Annotated[NDArray[numpy.float64], dict(shape=(None,))]:
    """K(A, B), flattened; half is computed where b is a."""

def kernel_product(function: KernelFunction, a: Rows, b: Rows, v: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], n_threads: int) -> Annotated[NDArray[numpy.float64], dict(shape=(None,))]:
    """K(A, B) v without the matrix; half is computed where b is a."""

def kernel_diagonal(function: KernelFunction, rows: Rows, n_threads: int) -> Annotated[NDArray[numpy.float64], dict(shape=(None,))]:
    """k(a, a) of every row."""

def symmetric_product(q: Annotated[NDArray[numpy.float64], dict(shape=(None, None), device='cpu', writable=False)], v: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], n_threads: int) -> Annotated[NDArray[numpy.float64], dict(shape=(None,))]:
    """Q v; only the triangle above the diagonal is read."""

class Curves:
    """Functions of one feature each, linear between knots."""

    def __init__(self, feature: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], offsets: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], knots: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], values: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], slopes: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None: ...

    def columns(self, rows: Rows, n_threads: int) -> object:
        """All functions of all rows, row by row, in the type of the rows."""

    def sums(self, rows: Rows, n_threads: int) -> Annotated[NDArray[numpy.float64], dict(shape=(None,))]:
        """The sum of all functions, for every row."""

class Pieces:
    """Dense rows, and the piece of each function that every one is in."""

    def __init__(self, curves: Curves, rows: Rows, n_threads: int) -> None: ...

    def scores(self, values: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], slopes: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], lines: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], order: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, n_threads: int) -> Annotated[NDArray[numpy.float64], dict(shape=(None,))]:
        """
        The sum of functions with these pieces, and of lines, for every position.
        """

    def slopes(self, r: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], order: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, n_threads: int) -> Annotated[NDArray[numpy.float64], dict(shape=(None,))]:
        """
        Sums of r over the positions in each piece, their first moments, and those of features.
        """

class PairProblem:
    """Queries, levels and weights of a pair loss."""

def pair_problem(offsets: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], levels: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], n_levels: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], row_weight: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, query_weight: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, gain: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, adjacent: bool) -> PairProblem: ...

class PairPoint:
    """A pair loss at given scores."""

    @property
    def value(self) -> float: ...

    @property
    def sum_of_slacks(self) -> float: ...

    @property
    def n_violations(self) -> float: ...

    @property
    def gradient(self) -> Annotated[NDArray[numpy.float64], dict(shape=(None,), writable=False)]: ...

    @property
    def inner_slacks(self) -> float: ...

    @property
    def total_curvature(self) -> float: ...

    @property
    def value_error(self) -> float: ...

    @property
    def slacks_error(self) -> float: ...

    @property
    def dual_error(self) -> float: ...

    @property
    def gradient_error(self) -> float: ...

    def multiply(self, v: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], n_threads: int = 1) -> Annotated[NDArray[numpy.float64], dict(shape=(None,))]: ...

@overload
def hessian_matrix(rows: Rows, order: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, point: PairPoint, n_threads: int) -> Annotated[NDArray[numpy.float64], dict(shape=(None,))]: ...

@overload
def hessian_matrix(rows: Rows, order: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, point: PreferencePoint, n_threads: int) -> Annotated[NDArray[numpy.float64], dict(shape=(None,))]: ...

@overload
def hessian_matrix(rows: Rows, order: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, point: SwapPoint, n_threads: int) -> Annotated[NDArray[numpy.float64], dict(shape=(None,))]: ...

@overload
def hessian_matrix(rows: Rows, order: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, point: DominationPoint, n_threads: int) -> Annotated[NDArray[numpy.float64], dict(shape=(None,))]:
    """H in full, flattened."""

@overload
def hessian_diagonal(rows: Rows, order: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, point: PairPoint, n_threads: int) -> Annotated[NDArray[numpy.float64], dict(shape=(None,))]: ...

@overload
def hessian_diagonal(rows: Rows, order: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, point: PreferencePoint, n_threads: int) -> Annotated[NDArray[numpy.float64], dict(shape=(None,))]: ...

@overload
def hessian_diagonal(rows: Rows, order: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, point: SwapPoint, n_threads: int) -> Annotated[NDArray[numpy.float64], dict(shape=(None,))]: ...

@overload
def hessian_diagonal(rows: Rows, order: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, point: DominationPoint, n_threads: int) -> Annotated[NDArray[numpy.float64], dict(shape=(None,))]:
    """The diagonal of H, or an estimate."""

def pair_point(problem: PairProblem, loss: str, epsilon: float, z: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], near: PairPoint | None, n_threads: int) -> PairPoint: ...

def hessian_product(rows: Rows, order: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, point: PairPoint, v: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], n_threads: int) -> tuple[Annotated[NDArray[numpy.float64], dict(shape=(None,))], Annotated[NDArray[numpy.float64], dict(shape=(None,))]]:
    """(H v, X v) in one pass over the rows."""

class PreferenceList:
    """Preferences by winner, loser and weight."""

    def __len__(self) -> int: ...

def preference_list(winners: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], losers: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], weight: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, n_rows: int) -> PreferenceList: ...

class PreferencePoint:
    """Loss of listed preferences at given scores."""

    @property
    def value(self) -> float: ...

    @property
    def sum_of_slacks(self) -> float: ...

    @property
    def n_violations(self) -> float: ...

    @property
    def gradient(self) -> Annotated[NDArray[numpy.float64], dict(shape=(None,), writable=False)]: ...

    @property
    def inner_slacks(self) -> float: ...

    @property
    def total_curvature(self) -> float: ...

    @property
    def value_error(self) -> float: ...

    @property
    def slacks_error(self) -> float: ...

    @property
    def dual_error(self) -> float: ...

    @property
    def gradient_error(self) -> float: ...

    def multiply(self, v: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], n_threads: int = 1) -> Annotated[NDArray[numpy.float64], dict(shape=(None,))]: ...

def preference_point(list: PreferenceList, loss: str, epsilon: float, z: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], n_threads: int) -> PreferencePoint: ...

class SwapProblem:
    """Gains and places of the rows of a ranking."""

def swap_problem(offsets: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], depth: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], gain: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], first: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], second: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], factor: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], weight: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None) -> SwapProblem: ...

def swap_totals(problem: SwapProblem, n_threads: int) -> tuple[Annotated[NDArray[numpy.float64], dict(shape=(None,))], Annotated[NDArray[numpy.int64], dict(shape=(None,))]]:
    """Sum of the weights of each query, and how many of its pairs have one."""

class SwapPoint:
    """Loss of the pairs of a ranking at given scores."""

    @property
    def value(self) -> float: ...

    @property
    def sum_of_slacks(self) -> float: ...

    @property
    def n_violations(self) -> float: ...

    @property
    def gradient(self) -> Annotated[NDArray[numpy.float64], dict(shape=(None,), writable=False)]: ...

    @property
    def inner_slacks(self) -> float: ...

    @property
    def total_curvature(self) -> float: ...

    @property
    def value_error(self) -> float: ...

    @property
    def slacks_error(self) -> float: ...

    @property
    def dual_error(self) -> float: ...

    @property
    def gradient_error(self) -> float: ...

    def multiply(self, v: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], n_threads: int = 1) -> Annotated[NDArray[numpy.float64], dict(shape=(None,))]: ...

def swap_point(problem: SwapProblem, loss: str, epsilon: float, z: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], n_threads: int) -> SwapPoint: ...

class PublishedPoint:
    """Pair loss at given scores by a published way of counting."""

    @property
    def value(self) -> float: ...

    @property
    def sum_of_slacks(self) -> float: ...

    @property
    def n_violations(self) -> float: ...

    @property
    def gradient(self) -> Annotated[NDArray[numpy.float64], dict(shape=(None,), writable=False)]: ...

    def multiply(self, v: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> Annotated[NDArray[numpy.float64], dict(shape=(None,))]: ...

    @property
    def hinge_gradient(self) -> Annotated[NDArray[numpy.float64], dict(shape=(None,), writable=False)]:
        """A sub-gradient of sum_of_slacks."""

def published_point(problem: PairProblem, z: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], counting: str) -> PublishedPoint: ...

def explicit_pairs(problem: PairProblem) -> PreferenceList:
    """All pairs of a problem, written down."""

class Layering:
    """Layers, margins and weights of a domination loss."""

def layering(offsets: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], levels: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], n_levels: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], shift: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, row_weight: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, query_weight: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, table: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, n_grades: int, grades: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)] | None) -> Layering: ...

class DominationPoint:
    """The domination loss at given scores."""

    @property
    def value(self) -> float: ...

    @property
    def total_curvature(self) -> float: ...

    @property
    def value_error(self) -> float: ...

    @property
    def slope_error(self) -> float: ...

    @property
    def gradient_error(self) -> float: ...

    @property
    def slope(self) -> float:
        """The gradient times the scores."""

    @property
    def gradient(self) -> Annotated[NDArray[numpy.float64], dict(shape=(None,), writable=False)]: ...

    @property
    def rho(self) -> Annotated[NDArray[numpy.float64], dict(shape=(None,), writable=False)]: ...

    def multiply(self, v: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], n_threads: int = 1) -> Annotated[NDArray[numpy.float64], dict(shape=(None,))]: ...

    def dual(self, t: float, n_threads: int) -> float: ...

def domination_point(layering: Layering, z: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], n_threads: int) -> DominationPoint: ...

class Columns:
    """A matrix by columns, a copy."""

    @property
    def n_rows(self) -> int: ...

    def take(self, features: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> object: ...

    def products(self, wanted: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], r: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], n_threads: int) -> Annotated[NDArray[numpy.float64], dict(shape=(None,))]: ...

def columns(rows: Rows, order: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, n_threads: int) -> Columns: ...

class Coordinates:
    """The domination loss, ready to move along columns."""

    def sweep(self, w: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], features: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], penalty: str, alpha: float, curvature: str) -> tuple[float, int]: ...

    def measure(self, features: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], curvature: str, n_threads: int) -> tuple[Annotated[NDArray[numpy.float64], dict(shape=(None,))], Annotated[NDArray[numpy.float64], dict(shape=(None,))], Annotated[NDArray[numpy.float64], dict(shape=(None,))], Annotated[NDArray[numpy.float64], dict(shape=(None,))]]: ...

    def restart(self, w: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None: ...

    def scores(self) -> Annotated[NDArray[numpy.float64], dict(shape=(None,))]: ...

def coordinates(columns: Columns, layering: Layering, factors: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None) -> Coordinates: ...

def sparse_quadratic(hessian: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], gradient: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], w: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], alpha: float, enough: float, n_sweeps: int) -> Annotated[NDArray[numpy.float64], dict(shape=(None,))]: ...

def coordinate_steps(gradient: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], hessian: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], bound: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], range: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], w: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], penalty: str, alpha: float) -> tuple[Annotated[NDArray[numpy.float64], dict(shape=(None,))], Annotated[NDArray[numpy.float64], dict(shape=(None,))]]: ...

class FactorDescent:
    """Duals of low rank on their way down."""

    def epoch(self, momentum: float, n_threads: int) -> float: ...

    def accept(self) -> None: ...

    def reject(self) -> None: ...

    def shrink(self) -> None: ...

    def value(self) -> float: ...

    def factors(self) -> Annotated[NDArray[numpy.float64], dict(shape=(None,))]: ...

    def weights(self) -> Annotated[NDArray[numpy.float64], dict(shape=(None,))]: ...

    def linear_decrease(self, n_threads: int) -> float: ...

def factor_descent(rows: Rows, order: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, offsets: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], levels: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], n_levels: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], scale: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, bound: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], constraint: str, n_factors: int, factors: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], seed: int) -> FactorDescent: ...

def factor_start(rows: Rows, order: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, problem: PairProblem, largest: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], V: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu')], beta: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> float:
    """
    beta = sum of <v_i, v_j> (x_i - x_j) over the pairs; returns the sum of <v_i, v_j>.
    """

def factor_epoch(rows: Rows, order: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, problem: PairProblem, largest: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], V: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu')], beta: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], work: str, rate: float) -> float:
    """
    A projected step of every query, V and beta in place; returns the sum of <v_i, v_j>.
    """

class Rectangles:
    """Where the dual variables of pairs lie in a flat buffer."""

    @property
    def upper(self) -> Annotated[NDArray[numpy.int64], dict(shape=(None,), writable=False)]:
        """Positions of the rows of all rectangles."""

    @property
    def lower(self) -> Annotated[NDArray[numpy.int64], dict(shape=(None,), writable=False)]:
        """Positions of the columns of all rectangles."""

    @property
    def n_pairs(self) -> Annotated[NDArray[numpy.int64], dict(shape=(None,), writable=False)]:
        """Pairs of each row: a prefix of the columns."""

    @property
    def first_row(self) -> Annotated[NDArray[numpy.int64], dict(shape=(None,), writable=False)]: ...

    @property
    def first_column(self) -> Annotated[NDArray[numpy.int64], dict(shape=(None,), writable=False)]: ...

    @property
    def offsets(self) -> Annotated[NDArray[numpy.int64], dict(shape=(None,), writable=False)]:
        """Where each rectangle begins, and the end."""

    def loss(self, z: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], y: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], rho: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], n_threads: int) -> tuple[float, float, Annotated[NDArray[numpy.float64], dict(shape=(None,))]]:
        """
        (value, curvature, gradient by position) of the loss that is a maximum over alpha.
        """

    def curvature(self, z: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], y: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], rho: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], v: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], n_threads: int) -> Annotated[NDArray[numpy.float64], dict(shape=(None,))]: ...

    def point(self, z: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], y: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], rho: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], alpha: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], n_threads: int) -> None:
        """Writes the maximizer into alpha."""

    def coefficients(self, alpha: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], n_threads: int) -> Annotated[NDArray[numpy.float64], dict(shape=(None,))]:
        """Row sums less column sums, by position."""

    def relax(self, alpha: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], a: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], y: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], over: float, n_threads: int) -> Annotated[NDArray[numpy.float64], dict(shape=(None,))]: ...

    def squared_norms(self, values: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], n_threads: int) -> Annotated[NDArray[numpy.float64], dict(shape=(None,))]: ...

    def settle(self, rectangle: int, s: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, a_of_m: float, a_of_s: float, y_of_m: float, y_of_s: float, a: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], y: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> float: ...

    def sums(self, z: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], alpha: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], a: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], y: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], rho: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], n_threads: int) -> tuple[Annotated[NDArray[numpy.float64], dict(shape=(None,))], Annotated[NDArray[numpy.float64], dict(shape=(None,))], Annotated[NDArray[numpy.float64], dict(shape=(None,))], Annotated[NDArray[numpy.float64], dict(shape=(None,))], Annotated[NDArray[numpy.float64], dict(shape=(None,))], Annotated[NDArray[numpy.float64], dict(shape=(None,))]]: ...

def rectangles(offsets: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], levels: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], n_levels: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], chosen: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], row_weight: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, query_weight: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, C: float) -> Rectangles: ...

class Random:
    """xoshiro256++, seeded by splitmix64."""

    def __init__(self, seed: int) -> None: ...

    @property
    def state(self) -> Annotated[NDArray[numpy.uint64], dict(shape=(None,))]:
        """Four words, not all zero."""

    @state.setter
    def state(self, state: Annotated[NDArray[numpy.uint64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None: ...

    def numbers(self, n: int) -> Annotated[NDArray[numpy.uint64], dict(shape=(None,))]:
        """The next n numbers of 64 bits."""

class PairSampler:
    """A distribution over pairs of rows."""

    def draw(self, random: Random, n: int) -> tuple[Annotated[NDArray[numpy.int64], dict(shape=(None,))], Annotated[NDArray[numpy.int64], dict(shape=(None,))]]:
        """(winners, losers) of the next n pairs."""

    @property
    def n_rows(self) -> int:
        """One more than the largest row that may be drawn."""

def cell_sampler(rows: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], winner_first: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], n_winners: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], loser_first: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], n_losers: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], weights: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], row_weights: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None = None, restarts: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None = None) -> PairSampler:
    """A cell by weight, its winner and its loser from two ranges of rows."""

def level_sampler(offsets: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], order: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, levels: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], n_levels: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], query_weight: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, row_weight: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None = None) -> PairSampler:
    """P(i, j) proportional to c_q u_i u_j."""

def query_level_sampler(offsets: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], order: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, levels: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], n_levels: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], query_weight: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, row_weight: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None = None) -> PairSampler:
    """A query by weight, two of its levels, a row of each."""

def rejection_sampler(offsets: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], order: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, levels: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], n_levels: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], query_weight: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, row_weight: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None = None) -> PairSampler:
    """Two rows until they make a pair."""

class Descent:
    """Models that learn from one stream of pairs."""

    def __init__(self, n_columns: int, learners: Sequence[Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]], average: int) -> None: ...

    @property
    def n_columns(self) -> int: ...

    @property
    def n_models(self) -> int: ...

    @property
    def n_steps(self) -> int: ...

    @n_steps.setter
    def n_steps(self, arg: int, /) -> None: ...

    def run(self, rows: Rows, sampler: PairSampler, random: Random, n_steps: int, n_threads: int = 1) -> None: ...

    def step(self, rows: Rows, winners: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], losers: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], n_threads: int = 1) -> None: ...

    def weights(self, model: int) -> Annotated[NDArray[numpy.float64], dict(shape=(None,))]: ...

    def become(self, model: int, learner: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], w: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None: ...

    def grow(self, n_columns: int) -> None: ...

    def kept(self, model: int) -> tuple[Annotated[NDArray[numpy.float64], dict(shape=(None,))], Annotated[NDArray[numpy.float64], dict(shape=(None,))], Annotated[NDArray[numpy.float64], dict(shape=(None,))]]:
        """(scalars, v, z) of a model, for `restore`."""

    def restore(self, model: int, learner: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], v: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], z: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None: ...

class StreamIndex:
    """Which rows of a stream are kept, and the pairs that new ones make."""

    def __init__(self, rows_per_level: int, rows_per_query: int) -> None: ...

    def add(self, ids: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], labels: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], sizes: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> tuple[Annotated[NDArray[numpy.int64], dict(shape=(None,))], Annotated[NDArray[numpy.int64], dict(shape=(None,))], Annotated[NDArray[numpy.int64], dict(shape=(None,))], Annotated[NDArray[numpy.int64], dict(shape=(None,))], Annotated[NDArray[numpy.int64], dict(shape=(None,))], Annotated[NDArray[numpy.int64], dict(shape=(None,))], int]:
        """
        (order, winner_begin, winner_end, loser_begin, loser_end, query, n_pairs): the cells of the pairs with at least one of the rows.
        """

    def reserve(self, n_rows: int) -> None: ...

    def touch(self, ids: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None:
        """Mark queries as seen now."""

    def evict(self, max_rows: int, max_size: int) -> None:
        """
        Forget the queries seen least recently until the rest is within both bounds.
        """

    def compact(self) -> Annotated[NDArray[numpy.int64], dict(shape=(None,))]:
        """Close the gaps; the old positions of the rows that are left."""

    @property
    def n_rows(self) -> int: ...

    @property
    def n_queries(self) -> int: ...

    @property
    def size(self) -> int: ...

    @property
    def n_used(self) -> int:
        """Positions in use, gaps included."""

    @property
    def n_forgotten(self) -> int: ...

    def state(self) -> tuple[Annotated[NDArray[numpy.int64], dict(shape=(None,))], Annotated[NDArray[numpy.float64], dict(shape=(None,))], Annotated[NDArray[numpy.int64], dict(shape=(None,))], Annotated[NDArray[numpy.int64], dict(shape=(None,))], int]:
        """(ids, labels, sizes, recency, n_forgotten), without gaps only."""

    def restore(self, ids: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], labels: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], sizes: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], recency: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], n_forgotten: int) -> None:
        """What `state` told of another."""

class Measure:
    """A measure with every convention decided."""

    def __init__(self, kind: str, k: int, gain: str, discount: str, relevant_from: float, y_max: float, empty: float, short_is_zero: bool, reachable: bool, step_precision: bool, persistence: float) -> None: ...

def evaluate_queries(labels: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], scores: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], offsets: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], order: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, levels: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], n_levels: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], docid: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, n_ranked: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, measures: Sequence[Measure], ties: str, with_pairs: bool, with_rows: bool, n_threads: int = 1) -> tuple[Annotated[NDArray[numpy.float64], dict(shape=(None,))], Annotated[NDArray[numpy.float64], dict(shape=(None,))], Annotated[NDArray[numpy.int64], dict(shape=(None,))], Annotated[NDArray[numpy.int64], dict(shape=(None,))]]:
    """
    (values by measure and query, means, pair counts, row counts by query), each flat.
    """

def ranks_within_queries(scores: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], offsets: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], order: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, n_threads: int = 1) -> Annotated[NDArray[numpy.int64], dict(shape=(None,))]:
    """Rank of each row in its query, from 1."""

def weighted_concordance(offsets: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], levels: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], scores: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], weight: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> tuple[float, float, float]:
    """
    Total weight of the pairs in the right order, in the wrong one, and tied.
    """

def censored_concordance(offsets: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], event: Annotated[NDArray[numpy.bool_], dict(shape=(None,), order='C', device='cpu', writable=False)], time: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], risk: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], tolerance: float) -> tuple[int, int, int, int]:
    """Comparable pairs: concordant, discordant, tied in risk, in time."""

def keep_threads(work: Callable[[], Any]) -> Any:
    """
    work(), in which all calls from this thread share the threads they start.
    """
