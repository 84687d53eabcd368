"""Fixtures that several test modules share, and a start that is the same on every machine."""

import importlib.util
import signal
from collections.abc import Iterator

import pytest

from cli_files import cli, files
from hypothesis_profiles import register_profiles

__all__ = ["cli", "files"]

register_profiles()

# A shell ignores Ctrl-C for what it runs in the background, and nohup a lost terminal; all programs
# that the tests start would ignore them too, and none could be interrupted. What a handler does is
# not passed on: they start with the default, while nohup keeps its promise to the tests themselves.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
for number in (signal.SIGHUP, signal.SIGTERM):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, lambda number, frame: None)


@pytest.fixture
def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages without pictures, which take most of the time."""
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "matplotlib" else find(name)
    )


@pytest.fixture
def routing() -> Iterator[None]:
    """scikit-learn passes query ids on to those that ask for them."""
    import sklearn

    with sklearn.config_context(enable_metadata_routing=True):
        yield
