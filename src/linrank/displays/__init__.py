"""Pictures with their data, in the manner of scikit-learn's displays; as SVG for pages, too.

Matplotlib is imported when a picture is asked for: ``pip install matplotlib``.
"""

from linrank.displays.base import THEME_CSS as THEME_CSS
from linrank.displays.base import Display as Display
from linrank.displays.base import themed_svg as themed_svg
from linrank.displays.fit import ConvergenceDisplay as ConvergenceDisplay
from linrank.displays.fit import GridDisplay as GridDisplay
from linrank.displays.fit import InductionDisplay as InductionDisplay
from linrank.displays.fit import PathDisplay as PathDisplay
from linrank.displays.fit import RankProfileDisplay as RankProfileDisplay
from linrank.displays.fit import SupportDistributionDisplay as SupportDistributionDisplay
from linrank.displays.per_query import ComparisonDisplay as ComparisonDisplay
from linrank.displays.per_query import LabelsDisplay as LabelsDisplay
from linrank.displays.per_query import QueryHistogramDisplay as QueryHistogramDisplay
from linrank.displays.per_query import QueryScatterDisplay as QueryScatterDisplay
from linrank.displays.weights import CurvesDisplay as CurvesDisplay
from linrank.displays.weights import PairExplanationDisplay as PairExplanationDisplay
from linrank.displays.weights import WeightsDisplay as WeightsDisplay
