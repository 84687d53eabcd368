"""What a fit on many machines costs: rounds, messages, bytes and seconds, from measured constants.

`predict` is for rows that lie in the memory of workers, `predict_passes` for rows that one machine
reads anew in every pass, `predict_giant` for one query whose rows lie on workers. They are pure
functions: `scale.py` measures the constants and sets predictions against fits, `scale_page.py`
writes the tables of docs/scale.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

GROUP = 8  # results that one task on the cluster adds
AT_CLIENT = 8 << 20  # bytes of results, chunk by chunk, up to which the client adds them
INLINE = 1 << 16  # bytes of an argument that travels with every task, of a result with each
STATE_OF_A_ROW = 40  # bytes in addition to its features: sorted scores and results of the sweep
ROW_BESIDE = 24  # label, level, place in the order
GIANT_VECTORS = 18  # of 8 bytes per row, at the client, during a fit (benchmarks/giant.py)


@dataclass(frozen=True)
class Constants:
    """Seconds, of one core where work is meant; in the order of the table of the page.

    Attributes
    ----------
    round, task
        A round of tasks on one worker that does nothing; each further task of it.
    sent, reply, fetched
        A byte of an argument on its way to a worker, of a result on its way to the client, of
        anything between two workers.
    product_row, product_entry, sparse_product_row, sparse_product_entry
        A Hessian product, by row and by entry of a row, its state at hand; dense and sparse.
    point_row, point_entry, sparse_point_row, sparse_point_entry
        Value, gradient and state at a new ``w``.
    feature
        A feature of the vectors of a chunk: made, cleared, compared, added, whatever the rows.
    hessian
        An explicit Hessian, by row and by square of a feature.
    crowding
        How much longer two cores take that work side by side in one memory: 1 to 2.
    disk, loaded
        A byte read past the cache; a byte of a chunk read from the cache and made ready.
    sample
        A row of the sample that gives the start, solved at the client.
    sweep_product, sweep_point
        A row of a giant query, all threads of the client, without its features.
    """

    round: float
    task: float
    sent: float
    reply: float
    fetched: float
    product_row: float
    product_entry: float
    point_row: float
    point_entry: float
    sparse_product_row: float
    sparse_product_entry: float
    sparse_point_row: float
    sparse_point_entry: float
    feature: float
    hessian: float
    crowding: float
    disk: float
    loaded: float
    sample: float
    sweep_product: float
    sweep_point: float

    @classmethod
    def names(cls) -> list[str]:
        return [field.name for field in fields(cls)]


@dataclass(frozen=True)
class Data:
    """Rows with ``entries`` features each, or as many non-zeros where they are sparse; float32."""

    n_rows: float
    n_features: int
    entries: int
    is_sparse: bool = False

    @property
    def row_bytes(self) -> int:
        return 8 * self.entries + 8 if self.is_sparse else 4 * self.entries

    @property
    def n_bytes(self) -> float:
        return self.n_rows * self.row_bytes

    @property
    def vector(self) -> int:
        """Bytes of a vector of weights."""
        return 8 * self.n_features


@dataclass(frozen=True)
class Cluster:
    """Workers of one machine each, or processes of one machine.

    Attributes
    ----------
    n_threads : int
        Of a worker.
    n_chunks : int
        Partitions.
    network : float or None
        Bytes per second between any two machines; None on one machine.
    is_shared : bool
        Whether all workers are in one memory, so that they crowd each other.
    """

    n_workers: int
    n_threads: int
    n_chunks: int
    network: float | None = None
    is_shared: bool = False

    def slowdown(self, crowding: float) -> float:
        """Of a core while all others of its machine work: measured for two, no better for more."""
        n_busy = self.n_threads * (self.n_workers if self.is_shared else 1)
        return crowding if n_busy > 1 else 1.0


@dataclass(frozen=True)
class Rounds:
    """Passes of a fit by kind, and rows of its sample; what the data decide, not the machines."""

    points: int
    hessians: int
    products: int
    sample: int = 0

    @property
    def before(self) -> int:
        """Rounds before the solver begins: for the sizes, and for the sample."""
        return 2 if self.sample else 1

    @property
    def n(self) -> int:
        return self.before + self.points + self.hessians + self.products


@dataclass(frozen=True)
class Prediction:
    """A round of one kind, or a fit.

    Attributes
    ----------
    work, latency, traffic : float
        Seconds of the slowest worker; of the scheduler; in which vectors travel.
    n_bytes : float
        That travel.
    n_messages : float
        Tasks and their answers: four per task.
    """

    work: float = 0.0
    latency: float = 0.0
    traffic: float = 0.0
    n_bytes: float = 0.0
    n_messages: float = 0.0

    @property
    def seconds(self) -> float:
        return self.work + self.latency + self.traffic

    def __add__(self, other: Prediction) -> Prediction:
        return Prediction(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))

    def times(self, n: float) -> Prediction:
        return Prediction(*(n * getattr(self, f.name) for f in fields(self)))


def row_seconds(data: Data, kind: str, c: Constants) -> float:
    """One row on one core: ``kind`` is product, point or hessian."""
    storage = "sparse_" if data.is_sparse else ""
    if kind == "hessian":  # the pass that gives it gives value and gradient too
        return row_seconds(data, "point", c) + c.hessian * data.n_features**2
    by_row, by_entry = (getattr(c, f"{storage}{kind}_{unit}") for unit in ("row", "entry"))
    return float(by_row + by_entry * data.entries)


def predict_round(data: Data, cluster: Cluster, kind: str, c: Constants) -> Prediction:
    """One round: the vectors go out, every worker passes over its rows, sums come back."""
    n_held = math.ceil(cluster.n_chunks / cluster.n_workers)
    share = n_held / cluster.n_chunks * data.n_rows
    work = share * row_seconds(data, kind, c) + n_held * data.n_features * c.feature
    work *= cluster.slowdown(c.crowding) / cluster.n_threads
    result = data.vector * (data.n_features if kind == "hessian" else 1)
    # A product sends ``w`` and ``v``, unless they are large: then ``w`` is there already.
    n_arguments = 2 if kind == "product" and data.vector <= INLINE else 1
    out = _sent(data.vector, cluster, c).times(n_arguments)
    return Prediction(work) + out + _sum_cost(result, cluster, c)


def predict(data: Data, cluster: Cluster, rounds: Rounds, c: Constants) -> Prediction:
    """A fit: the sample and its solution at the client, then rounds of each kind."""
    total = Prediction(work=rounds.sample * c.sample, latency=rounds.before * c.round)
    total += _reply_cost(rounds.sample * data.row_bytes, cluster, c)
    for kind, n in (
        ("point", rounds.points),
        ("hessian", rounds.hessians),
        ("product", rounds.products),
    ):
        total += predict_round(data, cluster, kind, c).times(n)
    return total


def predict_loading(data: Data, cluster: Cluster, c: Constants) -> float:
    """Seconds until a store on shared disk, or one disk per worker, is chunks in memory."""
    share = data.n_bytes / cluster.n_workers
    ready = c.loaded * cluster.slowdown(c.crowding) / cluster.n_threads
    return share * max(c.disk, ready) + c.task * 3 * cluster.n_chunks


def predict_passes(
    data: Data, n_threads: int, memory: float, rounds: Rounds, c: Constants
) -> tuple[Prediction, float]:
    """A fit on one machine with so much memory, and the bytes that each pass reads.

    State is kept before features, and what is kept is not read: a pass takes what reading the
    rest or working on all of it takes, whichever is longer.
    """
    state = min(1.0, 0.75 * memory / (2 * STATE_OF_A_ROW * data.n_rows))
    free = max(0.0, 0.75 * memory - 2 * STATE_OF_A_ROW * data.n_rows)
    n_read = max(0.0, data.n_bytes - free)
    slow = c.crowding if n_threads > 1 else 1.0
    first = data.n_bytes * max(c.disk, c.loaded)  # every chunk is checked and made ready
    again = (rounds.before - 1) * n_read * c.disk
    total = Prediction(rounds.sample * c.sample + first + again, n_bytes=data.n_bytes)
    kinds = (("point", rounds.points), ("hessian", rounds.hessians), ("product", rounds.products))
    for kind, n in kinds:
        work = data.n_rows * row_seconds(data, kind, c)
        if kind == "product":  # where the state is not kept, it is computed again
            work += (1.0 - state) * data.n_rows * row_seconds(data, "point", c)
        work *= slow / n_threads
        total += Prediction(max(work, n_read * c.disk), n_bytes=n_read).times(n)
    return total, n_read


def predict_giant(data: Data, cluster: Cluster, kind: str, c: Constants) -> Prediction:
    """A round on one query over all workers: scores come, the sweep is made, slopes go."""
    there = predict_round(data, cluster, kind, c)
    travels = 8.0 * data.n_rows
    sweep = data.n_rows * (c.sweep_product if kind == "product" else c.sweep_point)
    both = _reply_cost(travels, cluster, c)
    both += Prediction(traffic=travels * _byte(c.sent, cluster), n_bytes=travels)
    return there + Prediction(work=sweep, latency=there.latency) + both


def memory_of_worker(data: Data, cluster: Cluster) -> float:
    """Bytes: rows, state, and the vectors of a round."""
    share = math.ceil(cluster.n_chunks / cluster.n_workers) / cluster.n_chunks * data.n_rows
    n_results = GROUP + 2
    return share * (data.row_bytes + STATE_OF_A_ROW + ROW_BESIDE) + n_results * data.vector


def least_for(efficiency: float, data: Data, n_workers: int, c: Constants) -> float:
    """Bytes of rows per single-threaded worker at which a product spends that share on them."""
    cluster = Cluster(n_workers, 1, n_workers)
    idle = predict_round(Data(0, data.n_features, data.entries, data.is_sparse), cluster,
                         "product", c).seconds  # fmt: skip
    n_rows = efficiency / (1.0 - efficiency) * idle / row_seconds(data, "product", c)
    return n_rows * data.row_bytes


def _byte(seconds: float, cluster: Cluster) -> float:
    """What a byte takes: copies and serialization, as measured, and the wire where there is one."""
    return seconds + (0.0 if cluster.network is None else 1.0 / cluster.network)


def _reply_cost(n_bytes: float, cluster: Cluster, c: Constants) -> Prediction:
    return Prediction(traffic=n_bytes * _byte(c.reply, cluster), n_bytes=n_bytes)


def _sent(n_bytes: int, cluster: Cluster, c: Constants) -> Prediction:
    """A vector to all workers: with the tasks, or to one, from whom it spreads by doubling."""
    n = cluster.n_workers
    one = n_bytes * _byte(c.sent, cluster)
    if n_bytes <= INLINE:
        return Prediction(traffic=n * one, n_bytes=n * n_bytes)
    spread = math.ceil(math.log2(n)) * n_bytes * _byte(c.fetched, cluster) if n > 1 else 0.0
    return Prediction(latency=c.round / 2, traffic=one + spread, n_bytes=n * n_bytes)


def _sum_cost(n_bytes: int, cluster: Cluster, c: Constants) -> Prediction:
    """Results added: chunk by chunk at the client where they are small, else on the cluster."""
    n, n_chunks = cluster.n_workers, cluster.n_chunks
    if n_bytes <= INLINE or n_chunks * n_bytes <= AT_CLIENT:
        n_tasks = min(n, n_chunks)
        latency = c.round + c.task * (n_tasks - 1)
        replies = _reply_cost(n_chunks * n_bytes, cluster, c)
        return replies + Prediction(latency=latency, n_messages=4 * n_tasks)
    n_tasks, moved, seconds, n_parts = n_chunks, 0.0, 0.0, n_chunks
    while n_parts > 1:
        n_groups = math.ceil(n_parts / GROUP)
        n_moved = min(GROUP, n_parts) - 1 if n > 1 else 0
        seconds += math.ceil(n_groups / n) * n_moved * n_bytes * _byte(c.fetched, cluster)
        moved += n_groups * n_moved * n_bytes
        n_tasks, n_parts = n_tasks + n_groups, n_groups
    added = Prediction(traffic=seconds, n_bytes=moved, n_messages=4 * n_tasks)
    return added + _reply_cost(n_bytes, cluster, c) + Prediction(latency=c.round + c.task * n_tasks)
