"""The names that the options of training take, the default of each first.

Apart from all else, so that the command line can list them without loading NumPy.
"""

from __future__ import annotations

# Options beside C that go to the training as they are, and into the summary of a model: estimators
# and commands have them all, under these names.
_OF_PAIRS = ("loss", "pairs", "n_closest", "n_random", "pair_weighting")
_ENDING = ("tol", "max_iter", "query_normalization")
TRAINING = (*_OF_PAIRS, "n_rounds", "solver", *_ENDING)

AUTO = "auto"  # what the data are to decide
# The problem of the papers: pairs of raw features, all of the same weight.
PAPERS = {"C": 1.0, "scale": "none", "pair_weighting": "uniform", "query_normalization": None}
N_FOLDS = 5  # of the queries, where models are chosen and nobody says how many
SCORING = "ndcg@10"  # the measure by which models are judged on rows they have not seen
LOSSES = ("squared_hinge", "hinge")
MISSING = ("error", "zero", "mean", "indicator")  # what happens to values that are not there
SELECTED_PAIRS = ("closest", "pruned")  # those that take n_closest, n_random and a seed
PAIRS = ("all", "adjacent", *SELECTED_PAIRS)
QUERY_NORMALIZATIONS = (None, "pairs")  # what divides the weight of a query
PAIR_WEIGHTINGS = ("uniform", "grade_diff", "gain_diff")
PUBLISHED = ("tron", "prsvm", "prsvm+")  # the trust-region method on published oracles
SCALES = ("auto", "none", "standard", "minmax", "query")
CURVES = (None, "quantile", "spline", "step")  # of features, in place of weights alone
SELECTIONS = ("best", "one_se")  # of a model by its measure on several folds
SOLVERS = ("newton", "bundle", *PUBLISHED)
COUNTED = ("tron", "bundle")  # solvers that may count as published
# How they may count violated pairs, tron's default first, with the cost for l rows and k levels.
COUNTINGS = (
    "selection-tree",  # Lee & Lin's complete binary tree over the levels, O(l log k)
    "fenwick",  # a Fenwick tree over the levels, O(l log k)
    "red-black",  # balanced search trees keyed by label, O(l log k)
    "avl",
    "aa",
    "red-black-score",  # a search tree keyed by score, swept by label, O(l log l)
    "wavelet",  # a wavelet matrix over the bits of the levels, O(l log k)
    "direct",  # a sum for each level, O(l k)
    "prefix-table",  # running sums of every level, O(l k) in time and in memory
    "two-pointers",  # PRSVM+: a problem of two levels for each level, O(l k)
)

# ---- stochastic pairwise descent ----------------------------------------------------------------

ALGORITHMS = ("pegasos", "sgd-svm", "pa", "romma", "logistic", "hybrid")
SAMPLINGS = ("pairs", "query", "query-level", "roc", "rejection")
STREAM_SAMPLINGS = ("pairs", "query", "roc")  # those that need not know all rows
AVERAGES = ("weighted", "uniform")  # of the iterates, if they are averaged at all
RECORDS = ("exact", "sampled")  # objectives on the way, if any is computed

# As TRAINING: options beside λ that go to the descent as they are.
DESCENT = ("algorithm", "aggressiveness", "n_steps", "sampling", "average", "tol", "record")


# ---- domination rank ----------------------------------------------------------------------------

PENALTIES = ("l1", "l2", "none")
LAYERS = ("labels", "binary")  # or a function of the labels
DOMINATION_SOLVERS = ("auto", "coordinate", "newton")

# As TRAINING: options beside alpha that go to the training as they are.
DOMINATION = (
    *("penalty", "layers", "margin", "pooled", "solver", "feature_induction", "negative_sampling"),
    *("tol", "max_iter"),
)
DOMINATION_PATH = tuple(name for name in DOMINATION if name != "feature_induction")

# ---- low-rank duals -----------------------------------------------------------------------------

CONSTRAINTS = ("box", "ball")  # of the factors

# As TRAINING: options beside C that go to the training as they are.
FACTORIZED = ("n_components", "constraint", *_ENDING)
REGULARIZED = ("gamma", "lam", *_ENDING, "memory_limit")

# ---- kernels ------------------------------------------------------------------------------------

# The parameters that each kernel has.
KERNEL_PARAMETERS = {
    "rbf": ("gamma",),
    "poly": ("gamma", "degree", "coef0"),
    "sigmoid": ("gamma", "coef0"),
    "linear": (),
    "precomputed": (),
}
KERNELS = tuple(KERNEL_PARAMETERS)
WITH_GAMMA = tuple(name for name, own in KERNEL_PARAMETERS.items() if "gamma" in own)
APPROXIMATIONS = (None, "nystroem")  # of the kernel, by the features of a linear model

# As TRAINING: options beside C that go to the training as they are.
KERNEL = (*_OF_PAIRS, *_ENDING, "memory_limit", "device")

# ---- columns of tables --------------------------------------------------------------------------

# Names, in lower case, by which a column has a role. Of several for documents, the first counts.
COLUMN_NAMES: dict[str, tuple[str, ...]] = {
    "label": ("label", "y", "relevance", "rel", "grade", "target"),
    "qid": (
        *("qid", "query_id", "queryid", "group", "group_id", "groupid", "query"),
        *("query_column", "group_column"),
    ),
    "docid": (
        *("docid", "doc_id", "docno", "document_id", "documentid", "doc_url", "document_url"),
        *("url", "product_id", "item_id", "article_id", "passage_id", "sku", "asin"),
    ),
    "weight": ("sample_weight",),
    "position": ("position",),
}
UNCLEAR_NAMES = {"weight": "weight", "rank": "position"}  # a role, or a feature: asked for
