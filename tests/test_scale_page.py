"""The cost model of the benchmarks: its laws, and the page that shows what it predicts."""

import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

ROOT = Path(__file__).resolve().parent.parent
FOLDER = str(ROOT / "benchmarks")
sys.path.append(FOLDER)
try:
    import costs
    import scale_page
finally:
    sys.path.remove(FOLDER)

PAGE = (ROOT / "docs" / "scale.md").read_text()
UNITS = dict.fromkeys(costs.Constants.names(), 1e-9)
CONSTANTS = costs.Constants(**{**UNITS, "round": 0.01, "task": 0.001, "crowding": 1.2})
SHAPES = st.builds(
    costs.Data,
    st.floats(1e4, 1e10),
    st.sampled_from([10, 136, 10**6]),
    st.sampled_from([10, 100]),
    st.booleans(),
)
ROUNDS = costs.Rounds(5, 1, 20, 1000)


@pytest.mark.parametrize("name", sorted(scale_page.PREDICTED))
def test_the_page_shows_what_the_model_gives_for_its_constants(name):
    shown = scale_page.block(PAGE, name).strip()
    assert shown == scale_page.PREDICTED[name](PAGE).strip()


def test_a_table_of_other_constants_is_another_one():
    """Otherwise the comparison above could not fail."""
    row = next(line for line in PAGE.splitlines() if line.startswith("| `product_entry`"))
    other = PAGE.replace(row, "| `product_entry` | 1e-6 | s | |")
    for name in ("checks", "dense", "out-of-core", "regimes", "giant"):
        assert scale_page.PREDICTED[name](other) != scale_page.PREDICTED[name](PAGE)


def test_results_replace_what_the_page_shows():
    """Constants and fits of a run go into the page, and all that follows from them changes."""
    constants = [[name, "2e-9", "s"] for name in costs.Constants.names()]
    columns = scale_page.cells("|x|\n|-|\n" + scale_page.block(PAGE, "checks").strip())[0]
    fits = [["cluster", 1000, 136, 136, 2, 4, 50, 3, 1, 7, "1.5", "1", "1"],
            ["cluster", 1000, 10**6, 100, 2, 4, 0, 3, 0, 9, "1.5", "1", "1"]]  # fmt: skip
    environment = {"date": "2026-01-02T", "machine": "M", "cores": 2, "python": "3",
                   "load_average": [0.0]}  # fmt: skip
    measured = {"tables": [{"rows": constants}, {"rows": fits, "columns": columns}]}
    result = {"measured": measured, "environment": environment, "quick": False}
    text = scale_page.write_tables(PAGE, {"scale": result})
    assert set(vars(scale_page.constants_of(text)).values()) == {2e-9}
    assert scale_page.rounds_of(text, False, 1e9).products == 7
    assert scale_page.rounds_of(text, True).products == 9
    assert "Measured 2026-01-02 on M" in text
    assert scale_page.write_tables(text) == text


@given(SHAPES, st.integers(1, 100), st.integers(1, 8), st.integers(1, 2000))
def test_the_slowest_worker_has_at_least_its_share(data, n_workers, n_threads, n_chunks):
    cluster = costs.Cluster(n_workers, n_threads, n_chunks)
    one = costs.predict_round(data, cluster, "product", CONSTANTS)
    share = data.n_rows * costs.row_seconds(data, "product", CONSTANTS) / (n_workers * n_threads)
    assert one.work >= share * (1 - 1e-12)
    assert one.latency >= CONSTANTS.round
    assert one.n_bytes >= data.vector


@given(SHAPES, st.integers(1, 100))
def test_twice_the_rows_are_twice_the_work_and_the_same_traffic(data, n_workers):
    cluster = costs.Cluster(n_workers, 1, n_workers)
    double = costs.Data(2 * data.n_rows, data.n_features, data.entries, data.is_sparse)
    one, two = (costs.predict(d, cluster, ROUNDS, CONSTANTS) for d in (data, double))
    none = costs.Data(0, data.n_features, data.entries, data.is_sparse)
    fixed = costs.predict(none, cluster, ROUNDS, CONSTANTS).work
    assert two.work - fixed == pytest.approx(2 * (one.work - fixed), rel=1e-9)
    assert (two.latency, two.traffic, two.n_bytes) == (one.latency, one.traffic, one.n_bytes)


@given(SHAPES, st.floats(0, 1e12), st.floats(1, 100))
def test_more_memory_never_makes_a_pass_longer(data, memory, factor):
    times = [
        costs.predict_passes(data, 2, m, ROUNDS, CONSTANTS)[0].seconds
        for m in (memory, factor * memory)
    ]
    assert times[1] <= times[0] * (1 + 1e-12)


@given(SHAPES, st.floats(0.1, 0.95), st.integers(1, 64))
def test_least_for_is_where_the_share_is_reached(data, share, n_workers):
    n_bytes = costs.least_for(share, data, n_workers, CONSTANTS)
    n_rows = n_workers * n_bytes / data.row_bytes
    whole = costs.Data(n_rows, data.n_features, data.entries, data.is_sparse)
    cluster = costs.Cluster(n_workers, 1, n_workers)
    one = costs.predict_round(whole, cluster, "product", CONSTANTS)
    on_rows = n_bytes / data.row_bytes * costs.row_seconds(data, "product", CONSTANTS)
    assert on_rows / one.seconds == pytest.approx(share, rel=1e-6)
