"""Damaged model files, manifests and preferences: read or refused, whatever is in them."""

from __future__ import annotations

import random
import time

import pytest

from fuzz_files import FUZZERS, corpus, mutate, words


@pytest.mark.parametrize("name", FUZZERS)
def test_inputs_that_were_found(name):
    outcomes = [FUZZERS[name](content) for content in corpus(name)]
    assert any(outcomes)
    assert not all(outcomes)


@pytest.mark.parametrize("name", FUZZERS)
def test_random_damage(name):
    rng, inputs, dictionary = random.Random(20261115), corpus(name), words(name)
    deadline = time.monotonic() + 5
    outcomes = []
    while len(outcomes) < 4000 and time.monotonic() < deadline:
        outcomes.append(FUZZERS[name](mutate(rng, rng.choice(inputs), dictionary)))
    assert len(outcomes) >= 200
    assert any(outcomes)  # some edits only touch a digit or a name
    assert not all(outcomes)
