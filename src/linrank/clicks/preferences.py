"""Preferences that clicks express: what was clicked over what was passed by."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from linrank.clicks.impressions import Impressions
from linrank.clicks.propensity import ips_weights
from linrank.data.preferences import Preferences
from linrank.errors import NoPairsError, check_one_of

Array = NDArray[Any]

STRATEGIES = (
    "clicked_over_skipped",
    "clicked_over_others",
    "clicked_over_next_skipped",
    "clicked_over_skipped_above",
    "last_clicked_over_skipped_above",
)


def click_preferences(
    impressions: Impressions,
    strategy: str = "clicked_over_skipped",
    *,
    propensity: Any = None,
    max_weight: float | None = None,
) -> Preferences:
    """Preferences between rows of the same list, for `RankSVM.fit_pairs`.

    Each pair weighs ``count / p(position of the click)``; weights of a pair of rows that comes up
    in several lists are added.

    Parameters
    ----------
    impressions : Impressions
        With rows and lists.
    strategy : str
        Which pairs a list makes; "skipped" means shown and not clicked:

        - ``"clicked_over_skipped"`` (default): over everything skipped, above and below;
        - ``"clicked_over_others"``: over everything else in the list. Between two clicks both
          directions count. With propensities this is the unbiased estimate of Joachims,
          Swaminathan and Schnabel (2017);
        - ``"clicked_over_next_skipped"``: over what comes right after the click, if skipped;
        - ``"clicked_over_skipped_above"``: over everything skipped at a higher rank, which was
          surely looked at, since people read downwards (Joachims 2002);
        - ``"last_clicked_over_skipped_above"``: the same, of the lowest click only.

        The last two never agree with the ranking that was shown: trained on them alone, a ranker
        learns to turn a good ranking upside down. Use them beside labels or other preferences.
    propensity : array (n_positions,), optional
        Chance in (0, 1] that each rank is looked at. None: every click weighs the same, and what
        was shown on top wins by being seen. For the first two strategies.
    max_weight : float, optional
        Bound of ``1 / p``, >= 1.

    Returns
    -------
    Preferences
        Every pair of rows once.

    Examples
    --------
    >>> from linrank.clicks import Impressions, click_preferences
    >>> log = Impressions.of([1, 2, 3], [0, 0, 1], row=[4, 7, 5], session=["s", "s", "s"])
    >>> found = click_preferences(log, propensity=[1.0, 0.5, 0.25])
    >>> found.pairs.tolist(), found.weight.tolist()
    ([[5, 4], [5, 7]], [4.0, 4.0])
    """
    check_one_of("strategy", strategy, STRATEGIES)
    row = impressions.rows_needed("click_preferences")
    if impressions.offsets is None:
        raise ValueError("click_preferences needs to know the lists; pass session")
    if max_weight is not None and propensity is None:
        raise ValueError("max_weight bounds the inverse propensities; pass propensity")
    click, other = _pairs(impressions, impressions.offsets, strategy)
    if len(click) == 0:
        raise NoPairsError(
            f"the {int(impressions.clicked.sum())} clicks in {len(impressions.offsets) - 1} lists "
            f"express no preference by {strategy!r}"
        )
    same = row[click] == row[other]
    if same.any():
        t = int(np.argmax(same))
        a, b = sorted(impressions.position[[click[t], other[t]]].tolist())
        raise ValueError(
            f"row {row[click[t]]} was shown at positions {a} and {b} of one list; a row is one "
            "item for one query, shown once in a list"
        )
    weight = impressions.count[click]
    if propensity is not None:
        position = impressions.position[click]
        weight = weight * ips_weights(position, propensity, max_weight=max_weight)
    return Preferences(row[click], row[other], weight).merged()


def _pairs(impressions: Impressions, offsets: Array, strategy: str) -> tuple[Array, Array]:
    """Records (clicked, passed by) of the pairs that a strategy makes."""
    clicked = impressions.clicked
    click = np.flatnonzero(clicked)
    list_of = np.searchsorted(offsets, click, side="right") - 1
    begin, end = offsets[list_of], offsets[list_of + 1]
    if strategy == "clicked_over_next_skipped":
        begin, end = click + 1, np.minimum(click + 2, end)
    elif strategy.endswith("skipped_above"):
        end = click
    if strategy.startswith("last"):
        is_last = np.append(list_of[1:] != list_of[:-1], True)[: len(click)]
        click, begin, end = click[is_last], begin[is_last], end[is_last]
    # Record begin[k] + 0, 1, ... of each click k, in one vector.
    n = end - begin
    winner = np.repeat(click, n)
    other = np.arange(n.sum()) + np.repeat(begin - (np.cumsum(n) - n), n)
    is_pair = other != winner if strategy == "clicked_over_others" else ~clicked[other]
    return winner[is_pair], other[is_pair]
