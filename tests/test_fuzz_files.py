"""Damaged model files, manifests and preferences: read or refused, whatever is in them."""

import random

import pytest
from hypothesis import settings

from fuzz_files import FUZZERS, corpus, mutate, words


@pytest.mark.parametrize("name", FUZZERS)
def test_inputs_that_were_found(name):
    outcomes = [FUZZERS[name](content) for content in corpus(name)]
    assert any(outcomes)
    assert not all(outcomes)


@pytest.mark.parametrize("name", FUZZERS)
def test_random_damage(name):
    rng, inputs, dictionary = random.Random(20261115), corpus(name), words(name)
    outcomes = [
        FUZZERS[name](mutate(rng, rng.choice(inputs), dictionary))
        for _ in range(20 * settings().max_examples)
    ]
    assert any(outcomes)  # some edits only touch a digit or a name
    assert not all(outcomes)
