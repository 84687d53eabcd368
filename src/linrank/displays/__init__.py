"""Pictures with their data, in the manner of scikit-learn's displays; as SVG for pages, too."""

from linrank.displays.base import Display
from linrank.displays.comparison import ComparisonDisplay
from linrank.displays.fit import ConvergenceDisplay, PathDisplay
from linrank.displays.queries import LabelsDisplay, QueryHistogramDisplay, QueryScatterDisplay
from linrank.displays.svg import THEME_CSS, themed_svg
from linrank.displays.weights import CurvesDisplay, PairExplanationDisplay, WeightsDisplay

__all__ = [
    "THEME_CSS",
    "ComparisonDisplay",
    "ConvergenceDisplay",
    "CurvesDisplay",
    "Display",
    "LabelsDisplay",
    "PairExplanationDisplay",
    "PathDisplay",
    "QueryHistogramDisplay",
    "QueryScatterDisplay",
    "WeightsDisplay",
    "themed_svg",
]
