"""Simulated clicks, to see what an estimate or a ranker makes of a known truth."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from linrank.clicks.impressions import Impressions
from linrank.clicks.propensity import as_propensity
from linrank.data.frames import as_array
from linrank.data.queries import Queries

Array = NDArray[Any]


def simulate_clicks(
    attractiveness: Any,
    qid: Any,
    scores: Any,
    propensity: Any,
    *,
    n_lists: int,
    noise: float = 0.0,
    random_state: int | None = None,
) -> Impressions:
    """Show rankings to readers who click by the position-based model.

    Each list is of a random query: its rows by descending ``score + noise·N(0, 1)``, cut behind the
    last position that has a propensity. A result is clicked with the probability
    ``propensity(position) · attractiveness(row)``.

    Parameters
    ----------
    attractiveness : array (n_rows,)
        Chance of a click when looked at, in [0, 1].
    qid : array (n_rows,)
        Query of each row.
    scores : array (n_rows,)
        What the ranker shown to the readers goes by.
    propensity : array (n_positions,)
        Chance in (0, 1] that each rank is looked at.
    n_lists : int
        Lists to show, >= 1.
    noise : float, default=0.0
        Disorder of the rankings; ``inf`` for a random order.
    random_state : int, optional
        Seed.

    Returns
    -------
    Impressions
        With rows and lists.

    Examples
    --------
    >>> log = simulate_clicks([1, 0, 0], ["q"] * 3, [3, 2, 1], [1, 0.5], n_lists=4, random_state=0)
    >>> log.row.tolist(), log.clicked.tolist()
    ([0, 1, 0, 1, 0, 1, 0, 1], [True, False, True, False, True, False, True, False])
    """
    p = as_propensity(propensity)
    attractive = as_array(attractiveness, "attractiveness").astype(np.float64)
    if not ((attractive >= 0) & (attractive <= 1)).all():
        raise ValueError("attractiveness must lie in [0, 1]")
    if n_lists < 1:
        raise ValueError(f"n_lists must be >= 1, got {n_lists}")
    if not noise >= 0.0:
        raise ValueError(f"noise must be >= 0, got {noise}")
    rng = np.random.default_rng(random_state)
    queries = Queries.of(np.zeros(len(attractive)), qid)
    by_position = queries.gather(as_array(scores, "scores").astype(np.float64))
    times = rng.multinomial(n_lists, np.full(queries.n_queries, 1.0 / queries.n_queries))
    rows, ranks, lengths = [], [], []
    for q in np.flatnonzero(times).tolist():
        begin, end = int(queries.offsets[q]), int(queries.offsets[q + 1])
        n = min(end - begin, len(p))
        disorder = rng.standard_normal((int(times[q]), end - begin))
        keys = disorder if np.isinf(noise) else by_position[begin:end] + noise * disorder
        top = np.argsort(-keys, axis=1, kind="stable")[:, :n]
        rows.append(begin + top.ravel())
        ranks.append(np.tile(np.arange(1, n + 1), int(times[q])))
        lengths.append(np.full(int(times[q]), n))
    positions = np.concatenate(rows)
    row = positions if queries.order is None else queries.order[positions]
    rank = np.concatenate(ranks)
    clicked = rng.random(len(row)) < p[rank - 1] * attractive[row]
    size = np.concatenate(lengths)
    return Impressions.of(rank, clicked, row=row, session=np.repeat(np.arange(len(size)), size))
