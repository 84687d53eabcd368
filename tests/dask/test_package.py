"""linrank.dask as a package: light until used, and clear about what it needs."""

import subprocess
import sys

import pytest

import linrank.dask


@pytest.mark.parametrize("name", linrank.dask.__all__)
def test_every_public_name_is_there(name):
    assert getattr(linrank.dask, name).__name__ == name
    assert name in dir(linrank.dask)
    assert (getattr(linrank.dask, name).__doc__ or "").strip()


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match=r"module 'linrank\.dask' has no attribute 'RankSVN'"):
        linrank.dask.RankSVN  # noqa: B018


def test_without_dask_the_error_names_what_to_install():
    code = (
        "import sys; sys.modules['distributed'] = None\n"
        "import importlib.util as util; found = util.find_spec\n"
        "util.find_spec = lambda name, *a: None if name == 'distributed' else found(name, *a)\n"
        "import linrank.dask"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert run.returncode == 1
    assert "pip install 'dask[array,dataframe]' distributed" in run.stderr.splitlines()[-1]
