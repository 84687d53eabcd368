"""From clicks to preferences: what was shown where, what was clicked, and how far to trust it."""

from __future__ import annotations

from linrank.clicks.counterfactual import CounterfactualValue, counterfactual_value
from linrank.clicks.impressions import Impressions
from linrank.clicks.preferences import STRATEGIES, click_preferences
from linrank.clicks.propensity import (
    PositionModel,
    click_rates,
    fit_position_model,
    harvest,
    ips_relevance,
    ips_weights,
    power_law,
    simulate_clicks,
)

__all__ = [
    "STRATEGIES",
    "CounterfactualValue",
    "Impressions",
    "PositionModel",
    "click_preferences",
    "click_rates",
    "counterfactual_value",
    "fit_position_model",
    "harvest",
    "ips_relevance",
    "ips_weights",
    "power_law",
    "simulate_clicks",
]
