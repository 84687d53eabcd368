"""How many examples Hypothesis tries: few and always the same ones by default, or many new ones.

``pytest --hypothesis-profile=thorough``, as ``make test-all`` runs it, tries the latter.
"""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, settings

__all__ = ["examples", "register_profiles"]

USUAL = 100  # of a law that does not say how many it needs
QUICK, THOROUGH = 0.2, 5


def register_profiles() -> None:
    """Make both known, and the quick one the default."""
    # How long an example takes says nothing of the code where other programs run beside the tests.
    patient: dict[str, Any] = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
    n_quick, n_thorough = round(USUAL * QUICK), round(USUAL * THOROUGH)
    settings.register_profile(
        "quick", max_examples=n_quick, derandomize=True, database=None, **patient
    )
    settings.register_profile("thorough", max_examples=n_thorough, **patient)
    settings.load_profile("quick")


def examples(n: int, **options: Any) -> settings:
    """So many examples of a law where the profile has USUAL, in proportion where it has others."""
    return settings(max_examples=max(1, round(n * settings().max_examples / USUAL)), **options)
