"""Fixtures that several test modules share, and how Hypothesis behaves on a busy machine."""

from cli_files import files
from hypothesis import HealthCheck, settings

__all__ = ["files"]

# How long an example takes says nothing of the code where other programs run beside the tests.
settings.register_profile("linrank", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("linrank")
