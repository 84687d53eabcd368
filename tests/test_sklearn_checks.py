"""The checks of scikit-learn: once for each estimator, and where slow with other parameters."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

import papers
from linrank import PivotedTfidf, QueryScaler

# Checks set max_iter to 1 or 2, and separable rows have no minimum without a penalty.
pytestmark = pytest.mark.filterwarnings("ignore")

TINY = 1e-13  # a tolerance below what rounding allows: scores are compared to seven digits
WEIGHTS = [f"check_sample_weight_equivalence_on_{kind}_data" for kind in ("dense", "sparse")]
UNWEIGHTED = {
    "SGDRanker": "pairs are drawn at random: a weight is a probability, not a repetition",
    # Checks set n_components=1, which is too odd.
    "FactorizedRankSVM": "the same problem from another start: the objective is not convex",
    # A weight of 2 doubles the bound of a dual variable; a row that comes twice has two of them,
    # and the penalties of the matrix are others.
    "RegularizedRankSVM": "repeating a row is another matrix",
}


def expected_failures(estimator):
    name, failures = type(estimator).__name__, {}
    if isinstance(estimator, QueryScaler):
        return {"check_methods_subset_invariance": "rows are scaled by the rows they come with"}
    if name.removesuffix("CV") in UNWEIGHTED:
        failures = dict.fromkeys(WEIGHTS, UNWEIGHTED[name.removesuffix("CV")])
    if name == "SGDRanker" and estimator.scale != "none":
        names = ("check_fit_score_takes_y", "check_n_features_in_after_fitting")
        failures |= dict.fromkeys(names, "partial_fit refuses a scaling that needs all rows")
    if name != "KernelRankSVM":
        return failures
    if estimator.approximation == "nystroem":
        return dict.fromkeys(WEIGHTS, "landmarks are drawn, and repeated rows are others to draw")
    if estimator.kernel == "precomputed":
        names = ("check_positive_only_tag_during_fit", "check_estimators_dtypes")
        return dict.fromkeys(names, "it passes a matrix with eigenvalues far below 0")
    if estimator.loss == "hinge":
        return dict.fromkeys(WEIGHTS, "the hinge is smoothed as little as tol demands: 7 digits")
    return {}


CS = [0.001, 0.01, 0.1]
BY_PAIRS = {"cv": 2, "scoring": "pairwise_accuracy"}


@parametrize_with_checks(
    [
        papers.RankSVM(),
        papers.SGDRanker(n_steps=2000),
        papers.DominationRanker(tol=1e-8),  # weights and repetitions take other ways to the optimum
        papers.FactorizedRankSVM(2),
        papers.RegularizedRankSVM(tol=1e-7),
        papers.KernelRankSVM(tol=TINY),
        papers.KernelRankSVM("precomputed", tol=TINY),  # input of another kind
        papers.RankSVMCV([0.01, 0.1, 1.0], selection="one_se", **BY_PAIRS),
        papers.FactorizedRankSVMCV(CS, max_iter=50, **BY_PAIRS),
        papers.DominationRankerCV(cv=2, n_alphas=4),
        papers.SGDRankerCV([0.1, 0.01, 0.001], n_steps=500, **BY_PAIRS),
        papers.KernelRankSVMCV(Cs=[0.1, 1.0], gammas=[0.1, 1.0], random_state=0, **BY_PAIRS),
        QueryScaler("range"),
        PivotedTfidf(),
    ],
    expected_failed_checks=expected_failures,
)
def test_of_every_estimator(estimator, check):
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks(
    [
        papers.RankSVM(solver="tron"),
        papers.RankSVM(scale="standard"),
        papers.RankSVM(query_normalization="pairs"),
        papers.SGDRanker("hybrid", n_steps=2000, average=True, scale="standard"),
        papers.SGDRanker(n_steps=2000, warm_start=True, record="exact"),
        papers.DominationRanker("none", max_iter=20),
        papers.DominationRanker("l2", solver="coordinate"),
        papers.DominationRanker(scale="standard", warm_start=True),
        papers.FactorizedRankSVM(2, constraint="ball", scale="standard"),
        papers.FactorizedRankSVM(1, query_normalization="pairs", keep_factors=True),
        papers.RegularizedRankSVM(gamma=0.3, scale="standard", query_normalization="pairs"),
        papers.KernelRankSVM("poly", degree=2, coef0=1.0, loss="hinge"),
        papers.KernelRankSVM(scale="standard", query_normalization="pairs", tol=TINY),
        papers.KernelRankSVM(approximation="nystroem", tol=TINY),
        QueryScaler("minmax"),
        QueryScaler("standard"),
        PivotedTfidf(slope=1.0, min_count=2),
    ],
    expected_failed_checks=expected_failures,
)
def test_of_other_parameters(estimator, check):
    check(estimator)
