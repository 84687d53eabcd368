"""Fixtures that several test modules share, and how Hypothesis behaves on a busy machine."""

from hypothesis import HealthCheck, settings

from cli_files import files

__all__ = ["files"]

# How long an example takes says nothing of the code where other programs run beside the tests.
settings.register_profile("linrank", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("linrank")
