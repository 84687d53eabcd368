"""Pictures with their data, in the manner of scikit-learn's displays; as SVG for pages, too.

Matplotlib is imported when a picture is asked for: ``pip install matplotlib``.
"""

from linrank.displays.base import THEME_CSS, Display, themed_svg
from linrank.displays.fit import (
    ConvergenceDisplay,
    GridDisplay,
    InductionDisplay,
    PathDisplay,
    RankProfileDisplay,
    SupportDistributionDisplay,
)
from linrank.displays.per_query import (
    ComparisonDisplay,
    LabelsDisplay,
    QueryHistogramDisplay,
    QueryScatterDisplay,
)
from linrank.displays.weights import CurvesDisplay, PairExplanationDisplay, WeightsDisplay

__all__ = [
    "THEME_CSS",
    "ComparisonDisplay",
    "ConvergenceDisplay",
    "CurvesDisplay",
    "Display",
    "GridDisplay",
    "InductionDisplay",
    "LabelsDisplay",
    "PairExplanationDisplay",
    "PathDisplay",
    "QueryHistogramDisplay",
    "QueryScatterDisplay",
    "RankProfileDisplay",
    "SupportDistributionDisplay",
    "WeightsDisplay",
    "themed_svg",
]
