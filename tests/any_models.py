"""Models of every kind that a file can hold, and what it means that two are the same."""

import numpy as np
from hypothesis import strategies as st
from scipy import sparse

from linrank import KernelModel, LinearModel
from linrank.data.scaling import Scaling
from linrank.kernels.functions import Kernel

finite = st.floats(allow_nan=False, allow_infinity=False)
scalars = st.none() | st.booleans() | st.integers(-(2**70), 2**70) | finite | st.text()
numbers = st.floats(-1e6, 1e6)
SCALES = ("none", "standard", "minmax", "query")


def assert_same(a, b):
    """Equal bit for bit in all that a file holds."""
    assert type(a) is type(b)
    one, two = a.contents, b.contents
    assert one.keys() == two.keys()
    for name, value in one.items():
        if isinstance(value, np.ndarray):
            assert (value.dtype, value.shape) == (two[name].dtype, two[name].shape)
            assert value.tobytes() == two[name].tobytes()
        else:
            assert value == two[name]


@st.composite
def linear_models(draw):
    n = draw(st.integers(1, 6))
    vector = st.lists(finite, min_size=n, max_size=n).map(np.array)
    names = draw(st.none() | st.lists(st.text(), min_size=n, max_size=n))
    kind = draw(st.sampled_from(SCALES))
    factors = np.abs(draw(vector)) if kind in ("standard", "minmax") else None
    training = draw(st.dictionaries(st.text(), scalars, max_size=4))
    return LinearModel(draw(vector), names, Scaling(kind, factors), training, draw(st.text()))


@st.composite
def sparse_models(draw):
    """Mostly zeros, few of them negative ones, denormals and both ends of the array too."""
    n = draw(st.integers(1, 400))
    coef = np.zeros(n)
    tiny = st.sampled_from([-0.0, 5e-324, -5e-324, 2.2e-308, 1.7976931348623157e308])
    for j in draw(st.lists(st.integers(0, n - 1), max_size=8)):
        coef[j] = draw(tiny | finite)
    scaled = draw(st.booleans())
    factors = np.where(coef == 0, 0.0, 1.0) if scaled else None
    names = [f"f{j}" for j in range(n)] if draw(st.booleans()) else None
    return LinearModel(coef, names, Scaling("minmax" if scaled else "none", factors))


@st.composite
def kernel_models(draw):
    """Dense and sparse rows of both types, none of them too; every kernel and scaling."""
    n, n_features = draw(st.integers(0, 5)), draw(st.integers(1, 4))
    name = draw(st.sampled_from(("rbf", "poly", "sigmoid", "linear", "precomputed")))
    kernel = Kernel(name, draw(st.floats(1e-3, 10.0)), draw(st.integers(1, 4)), draw(numbers))
    coef = np.array(draw(st.lists(numbers, min_size=n, max_size=n)))
    n_train = n + draw(st.integers(1, 3))
    support = draw(st.permutations(range(n_train)))[:n]
    training = draw(st.dictionaries(st.text(), scalars, max_size=4))
    options = {"support": support, "n_train": n_train, "training": training}
    if name == "precomputed":
        return KernelModel(None, coef, kernel, **options)
    values = draw(st.lists(numbers, min_size=n * n_features, max_size=n * n_features))
    X = np.array(values, dtype=draw(st.sampled_from([np.float32, np.float64])))
    X = X.reshape(n, n_features)
    kind = draw(st.sampled_from(SCALES))
    factors = np.linspace(0, 2, n_features) if kind in ("standard", "minmax") else None
    options["scaling"] = Scaling(kind, factors)
    if draw(st.booleans()):
        options["feature_names"] = [f"ü{j}" for j in range(n_features)]
    if draw(st.booleans()):
        options |= {"support": None, "n_train": draw(st.none() | st.just(n_train))}
    rows = sparse.csr_array(X) if n and draw(st.booleans()) else X
    return KernelModel(rows, coef, kernel, **options)
