"""The hybrid: passive-aggressive steps first, Pegasos after; and the length of a first step.

Pegasos' steps ``1/(λt)`` are far too long at first: with ``R² = mean ‖x_i - x_j‖²`` the first is
``κ = R²/λ`` times ``1/R²``, the step that gives a pair of margin 0 the margin 1. After t steps they
are still ``κ/t`` times that. Passive-aggressive steps are never too long, but their length does not
fall. So the plan for n steps is

1. ``min(κ, n/4)`` passive-aggressive steps, none longer than ``1/R²``. Up to κ steps neither method
   feels the term ``λ/2 ‖w‖²``; beyond, the passive-aggressive one goes on to ignore it.
2. Pegasos from the last iterate, its t counted from ``t₀ = κ √(1 + min(n, κ)/300)``. With few
   steps the one at the switch is ``1/R²`` again. With more it is shorter, by the root that is best
   for n steps of one length, averaged. More than about κ steps do not stay of one length: they fall
   as ``1/(λt)``, as they must, and there is nothing to gain from a start that is shorter still.

The constants 4 and 300 were chosen on real sets, where a factor of 3 in them hardly counts; see
docs/decisions/0025.
"""

from __future__ import annotations

import math

__all__ = ["switch_plan"]

_SHARE = 4  # a quarter of the steps is passive-aggressive, at most
_NO_PLAN = (0, 1.0, 1.0)  # where the squares of the features leave the range of numbers
_SHORT = 300  # steps from which on those after the switch are shorter than 1/R²


def switch_plan(mean_square: float, alpha: float, n_steps: int) -> tuple[int, float, float]:
    """(passive-aggressive steps, `first_step` of Pegasos, aggressiveness) for so many steps in all.

    Parameters
    ----------
    mean_square : float
        R². If it is 0, rows that are compared are equal, and any plan is as good; so it is if the
        numbers overflow.
    alpha : float
        λ.
    n_steps : int
        Steps in all.

    Examples
    --------
    >>> switch_plan(4.0, 1 / 225, 100_000)
    (900, 1800.0, 0.25)
    >>> switch_plan(4.0, 1 / 225, 900)
    (225, 1800.0, 0.25)
    """
    if not 0.0 < mean_square < math.inf:
        return _NO_PLAN
    whole = mean_square / alpha  # κ
    first_step = max(1.0, whole * math.sqrt(1.0 + min(n_steps, whole) / _SHORT))
    eager = 1.0 / mean_square
    if not (math.isfinite(first_step) and math.isfinite(eager)):
        return _NO_PLAN
    return int(min(whole, n_steps / _SHARE)), first_step, eager
