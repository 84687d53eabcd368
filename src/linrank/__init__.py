"""linrank: learning to rank from preferences, at any scale."""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False  # that of typing, which takes 15 ms to import
if TYPE_CHECKING:
    from typing import Any

    from linrank.check_findings import CheckFinding, Findings
    from linrank.checking import check
    from linrank.comparison import Comparison, compare, compare_evaluations
    from linrank.contest.contest import compare_methods
    from linrank.contest.result import Contest
    from linrank.converting.convert import convert
    from linrank.data.dataset import Dataset
    from linrank.data.preference_text import load_preferences
    from linrank.data.preferences import Preferences
    from linrank.data.trec import Qrels, Run, load_qrels, load_run, write_qrels, write_run
    from linrank.datasets import make_ranking
    from linrank.displays import (
        ComparisonDisplay,
        ConvergenceDisplay,
        LabelsDisplay,
        PairExplanationDisplay,
        PathDisplay,
        QueryHistogramDisplay,
        QueryScatterDisplay,
        WeightsDisplay,
        themed_svg,
    )
    from linrank.domination.path import domination_path
    from linrank.domination.path_result import DominationPathResult
    from linrank.domination_ranker import DominationRanker
    from linrank.domination_ranker_cv import DominationRankerCV
    from linrank.duals.closeness import SupportDistribution, support_distribution
    from linrank.duals.matrix import DualMatrix
    from linrank.duals.of_model import dual_matrix
    from linrank.duals.profile import RankProfile, rank_profile
    from linrank.errors import (
        ConvergenceWarning,
        DataFormatError,
        ExportWarning,
        ModelFormatError,
        NoPairsError,
        TooFewPairsError,
    )
    from linrank.estimators import RankSVM
    from linrank.factorized_ranksvm import FactorizedRankSVM
    from linrank.kernel_model import KernelModel
    from linrank.kernel_ranksvm import KernelRankSVM
    from linrank.kernel_ranksvm_cv import KernelRankSVMCV
    from linrank.loading import load
    from linrank.metrics.evaluate import evaluate
    from linrank.metrics.runs import evaluate_run
    from linrank.metrics.survival import ConcordanceResult, concordance_index
    from linrank.model import LinearModel, load_model
    from linrank.model_selection import QueryKFold, ranking_scorer
    from linrank.path import PathResult
    from linrank.paths import ranksvm_path
    from linrank.per_query_ranker import PerQueryRanker
    from linrank.query_scaler import QueryScaler
    from linrank.ranker import RankerMixin
    from linrank.ranksvm_cv import RankSVMCV
    from linrank.regularized_ranksvm import RegularizedRankSVM
    from linrank.reporting.build import Report, report
    from linrank.sgd_ranker import SGDRanker
    from linrank.sgd_ranker_cv import SGDRankerCV
    from linrank.store.store import Store
    from linrank.text_features import PivotedTfidf

__version__ = "0.1.0"

__all__ = [
    "CheckFinding",
    "CheckpointError",
    "ClusterError",
    "Comparison",
    "ComparisonDisplay",
    "ConcordanceResult",
    "Contest",
    "ConvergenceDisplay",
    "ConvergenceWarning",
    "DataFormatError",
    "Dataset",
    "DominationPathResult",
    "DominationRanker",
    "DominationRankerCV",
    "DualMatrix",
    "ExportWarning",
    "FactorizedRankSVM",
    "Findings",
    "KernelModel",
    "KernelRankSVM",
    "KernelRankSVMCV",
    "LabelsDisplay",
    "LinearModel",
    "ModelFormatError",
    "NoPairsError",
    "PairExplanationDisplay",
    "PathDisplay",
    "PathResult",
    "PerQueryRanker",
    "PivotedTfidf",
    "Preferences",
    "Qrels",
    "QueryHistogramDisplay",
    "QueryKFold",
    "QueryScaler",
    "QueryScatterDisplay",
    "RankProfile",
    "RankSVM",
    "RankSVMCV",
    "RankerMixin",
    "RegularizedRankSVM",
    "Report",
    "Run",
    "SGDRanker",
    "SGDRankerCV",
    "Store",
    "SupportDistribution",
    "TooFewPairsError",
    "WeightsDisplay",
    "check",
    "compare",
    "compare_evaluations",
    "compare_methods",
    "concordance_index",
    "convert",
    "domination_path",
    "dual_matrix",
    "evaluate",
    "evaluate_run",
    "load",
    "load_model",
    "load_preferences",
    "load_qrels",
    "load_run",
    "make_ranking",
    "rank_profile",
    "ranking_scorer",
    "ranksvm_path",
    "report",
    "support_distribution",
    "themed_svg",
    "write_qrels",
    "write_run",
]

# Where each public name lives. They are imported on first use (PEP 562): the command line must not
# wait for scikit-learn and SciPy, which only the estimators need.
_HOME = {
    "CheckFinding": "linrank.check_findings",
    "CheckpointError": "linrank.errors",
    "Findings": "linrank.check_findings",
    "check": "linrank.checking",
    "ClusterError": "linrank.errors",
    "ConcordanceResult": "linrank.metrics",
    "Comparison": "linrank.comparison",
    "ComparisonDisplay": "linrank.displays",
    "ConvergenceDisplay": "linrank.displays",
    "Contest": "linrank.contest.result",
    "ConvergenceWarning": "linrank.errors",
    "DataFormatError": "linrank.errors",
    "Dataset": "linrank.data.dataset",
    "DominationPathResult": "linrank.domination.path_result",
    "DominationRanker": "linrank.domination_ranker",
    "DominationRankerCV": "linrank.domination_ranker_cv",
    "DualMatrix": "linrank.duals.matrix",
    "ExportWarning": "linrank.errors",
    "FactorizedRankSVM": "linrank.factorized_ranksvm",
    "KernelRankSVM": "linrank.kernel_ranksvm",
    "KernelRankSVMCV": "linrank.kernel_ranksvm_cv",
    "KernelModel": "linrank.kernel_model",
    "LabelsDisplay": "linrank.displays",
    "LinearModel": "linrank.model",
    "ModelFormatError": "linrank.errors",
    "NoPairsError": "linrank.errors",
    "PairExplanationDisplay": "linrank.displays",
    "PathDisplay": "linrank.displays",
    "PathResult": "linrank.path",
    "PerQueryRanker": "linrank.per_query_ranker",
    "PivotedTfidf": "linrank.text_features",
    "Preferences": "linrank.data.preferences",
    "Qrels": "linrank.data.trec",
    "QueryHistogramDisplay": "linrank.displays",
    "QueryKFold": "linrank.model_selection",
    "QueryScaler": "linrank.query_scaler",
    "QueryScatterDisplay": "linrank.displays",
    "RankProfile": "linrank.duals.profile",
    "RankSVM": "linrank.estimators",
    "RankSVMCV": "linrank.ranksvm_cv",
    "RankerMixin": "linrank.ranker",
    "RegularizedRankSVM": "linrank.regularized_ranksvm",
    "Report": "linrank.reporting.build",
    "Run": "linrank.data.trec",
    "SGDRanker": "linrank.sgd_ranker",
    "SGDRankerCV": "linrank.sgd_ranker_cv",
    "Store": "linrank.store.store",
    "SupportDistribution": "linrank.duals.closeness",
    "TooFewPairsError": "linrank.errors",
    "WeightsDisplay": "linrank.displays",
    "concordance_index": "linrank.metrics",
    "compare": "linrank.comparison",
    "compare_evaluations": "linrank.comparison",
    "compare_methods": "linrank.contest.contest",
    "convert": "linrank.converting.convert",
    "domination_path": "linrank.domination.path",
    "dual_matrix": "linrank.duals.of_model",
    "evaluate": "linrank.metrics",
    "evaluate_run": "linrank.metrics",
    "load": "linrank.loading",
    "load_model": "linrank.model",
    "load_preferences": "linrank.data.preference_text",
    "load_qrels": "linrank.data.trec",
    "load_run": "linrank.data.trec",
    "make_ranking": "linrank.datasets",
    "rank_profile": "linrank.duals.profile",
    "ranking_scorer": "linrank.model_selection",
    "ranksvm_path": "linrank.paths",
    "report": "linrank.reporting.build",
    "support_distribution": "linrank.duals.closeness",
    "write_qrels": "linrank.data.trec",
    "write_run": "linrank.data.trec",
    "themed_svg": "linrank.displays",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'linrank' has no attribute {name!r}")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
