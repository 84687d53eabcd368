"""Sizes as users write them."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linrank.cli.options import size_in_bytes
from linrank.system import resources as memory
from linrank.system.resources import allowed, available, parse_bytes, too_small

UNITS = {"": 1, "B": 1, "M": 10**6, "Gi": 2**30, "EiB": 2**60}
UNITS |= {f"{prefix}B": 1000 ** (1 + i) for i, prefix in enumerate("kMGT")}
UNITS |= {f"{prefix}iB": 1024 ** (1 + i) for i, prefix in enumerate("KMG")}


@given(
    n=st.integers(1, 10**6),
    decimals=st.integers(0, 3),
    unit=st.sampled_from(sorted(UNITS)),
    space=st.sampled_from(["", " "]),
    case=st.sampled_from([str, str.lower, str.upper]),
)
def test_a_size_is_its_number_times_its_unit(n, decimals, unit, space, case):
    """In integers: n / 10^decimals units, rounded down, 1 byte at least."""
    text = f"{n // 10**decimals}.{n % 10**decimals:0{decimals}d}" if decimals else str(n)
    assert parse_bytes(case(f" {text}{space}{unit}")) == max(1, n * UNITS[unit] // 10**decimals)


@given(size=st.one_of(st.integers(1, 2**60), st.floats(1.0, 1e18)))
def test_numbers_are_bytes(size):
    assert parse_bytes(size) == int(size)
    assert allowed(size) == int(size)


@pytest.mark.parametrize(
    "size",
    ["", "GB", "0", "0.0MB", ".", "-1GB", "1 lot", "1e9", "1GBB", "1 G B", "inf", "9" * 5000],
)
def test_what_is_no_size_is_refused_with_examples(size):
    with pytest.raises(ValueError, match=r"limit must be .*'512MiB' or '1\.5GB', and > 0; got"):
        parse_bytes(size, "limit")


@pytest.mark.parametrize("size", [0, -1, float("nan"), float("inf"), True, None, b"1GB"])
def test_what_is_no_number_of_bytes_is_refused(size):
    with pytest.raises(ValueError, match="limit must be a finite number > 0, got"):
        parse_bytes(size, "limit")


def test_allowed_reads_sizes_and_names_the_option():
    assert allowed("1.5GB") == 1_500_000_000
    with pytest.raises(ValueError, match=r"memory_limit must be .*, or None, and > 0; got 'half'"):
        allowed("half")


def test_the_command_line_takes_megabytes_or_a_unit():
    found = [size_in_bytes(size) for size in ("5", "2GB", "512MiB")]
    assert found == [5 * 10**6, 2 * 10**9, 2**29]


@given(st.integers(1, 10**18))
def test_a_limit_too_small_names_one_that_is_not(needed):
    told = str(too_small(1, "a fit", needed, "use less"))
    least = parse_bytes(re.search(r"allow (\S+), or use less", told)[1])
    assert needed <= least <= max(1.01 * needed, needed + 1)
    assert "memory_limit=1, 1 B, is too small: a fit takes" in told


def test_what_a_container_has_cached_is_free(tmp_path, monkeypatch):
    """Else a process that reads much would be told that there is no memory."""
    monkeypatch.setattr(memory, "_GROUP", str(tmp_path))
    (tmp_path / "memory.max").write_text("1000000\n")
    (tmp_path / "memory.current").write_text("990000\n")
    assert available() == 10_000
    (tmp_path / "memory.stat").write_text("anon 90000\ninactive_file 700000\nactive_file 200000\n")
    assert available() == 910_000
    (tmp_path / "memory.max").write_text("max\n")
    assert available() != 910_000
