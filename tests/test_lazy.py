"""cached_property: computed once, and by several threads at a time for different objects."""

from __future__ import annotations

import threading

from linrank.system.resources import cached_property


class Meeting:
    def __init__(self, barrier):
        self.barrier, self.n_calls = barrier, 0

    @cached_property
    def place(self):
        """Comes back only while another thread computes the same property of another object."""
        self.n_calls += 1
        return self.barrier.wait(timeout=300.0)


def test_two_threads_compute_at_the_same_time():
    barrier = threading.Barrier(2)
    meetings = [Meeting(barrier) for _ in range(2)]
    places = []
    threads = [
        threading.Thread(target=lambda one=one: places.append(one.place)) for one in meetings
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(places) == [0, 1]
    assert sorted(one.place for one in meetings) == [0, 1]
    assert [one.n_calls for one in meetings] == [1, 1]
