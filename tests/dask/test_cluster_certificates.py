"""The law of certificates on a cluster; see `tests/test_certificates.py`."""

from __future__ import annotations

import pytest

from law import cases, judge

pytestmark = pytest.mark.skipif(
    not judge.is_able(), reason="no compiler, or long doubles are no longer than doubles"
)


def check(client, numbers):
    _, n_refused, faults = cases.run("cluster", 1, numbers, client=client)
    assert n_refused < len(numbers) / 2
    assert [fault[:4] for fault in faults] == []


def test_no_certificate_is_false(client):
    check(client, range(4))


@pytest.mark.slow
@pytest.mark.time_limit(1800)
@pytest.mark.parametrize("first", range(0, 500, 100))
def test_no_certificate_is_false_of_many(client, first):
    check(client, range(first, first + 100))
