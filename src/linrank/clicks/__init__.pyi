"""The names that linrank.clicks offers, and where each lives."""

from linrank.clicks.counterfactual import CounterfactualValue as CounterfactualValue
from linrank.clicks.counterfactual import counterfactual_value as counterfactual_value
from linrank.clicks.impressions import Impressions as Impressions
from linrank.clicks.propensity import STRATEGIES as STRATEGIES
from linrank.clicks.propensity import PositionModel as PositionModel
from linrank.clicks.propensity import click_preferences as click_preferences
from linrank.clicks.propensity import click_rates as click_rates
from linrank.clicks.propensity import fit_position_model as fit_position_model
from linrank.clicks.propensity import harvest as harvest
from linrank.clicks.propensity import ips_relevance as ips_relevance
from linrank.clicks.propensity import ips_weights as ips_weights
from linrank.clicks.propensity import power_law as power_law
from linrank.clicks.propensity import simulate_clicks as simulate_clicks
