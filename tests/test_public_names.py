"""The names of the package: all there, found by dir(), imported on first use."""

from __future__ import annotations

import subprocess
import sys

import pytest

import linrank


@pytest.mark.parametrize("name", linrank.__all__)
def test_every_public_name_is_there(name):
    assert getattr(linrank, name).__name__.removeprefix("linrank.") == name
    assert name in dir(linrank)


def test_dir_shows_the_public_names_and_nothing_else():
    assert sorted(dir(linrank)) == sorted([*linrank.__all__, "__version__"])


MODULES = [
    "clicks",
    "dask",
    "displays",
    "export",
    "kernels",
    "metrics",
    "onnx",
    "pairs",
    "published",
]


@pytest.mark.parametrize("name", MODULES)
def test_modules_are_attributes_that_nobody_imported(name):
    code = f"import linrank; print(linrank.{name}.__name__, {name!r} in dir(linrank))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.split() == [f"linrank.{name}", "True"]


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="module 'linrank' has no attribute 'RankSVN'"):
        linrank.RankSVN  # noqa: B018
