"""Every method, place of the data and storage gives the numbers that it gave before."""

from __future__ import annotations

import json

import pytest

from golden_fits import CASES, TABLE, bench, deviations, fitted

EXPECTED = json.loads(TABLE.read_text())

# Shares, as `deviations` measures them. Between processors, sums of products differ by rounding:
# that moves an optimum by less than 1e-7, and where a fit stops at its tolerance, the gap.
SHARES = {"coef": 1e-6, "scores": 1e-6, "objective": 1e-9, "gap": 1e-6, "loss": 1e-9, "n_iter": 1}
EXACT = 1e-12  # all else: counts, grids, and scores of rankings


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    with bench(tmp_path_factory.mktemp("golden")) as made:
        yield made


def test_the_table_has_every_case():
    assert list(EXPECTED) == list(CASES)


@pytest.mark.parametrize("name", CASES)
def test_a_fit_gives_the_numbers_of_the_table(name, data):
    if "cluster" in name:
        pytest.importorskip("distributed")
    found = fitted(name, data)
    apart = deviations(found, EXPECTED[name])
    wrong = {key: apart[key] for key in apart if apart[key] > SHARES.get(key, EXACT)}
    assert not wrong, f"{name}: {wrong}\n{found}\n{EXPECTED[name]}"
