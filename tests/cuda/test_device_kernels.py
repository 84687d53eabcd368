"""Kernels on a device: the numbers and the models of the host, whatever part of Q is stored."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

import linrank
from linrank.data import device_queries
from linrank.data.dataset import Dataset
from linrank.data.rows import as_rows
from linrank.kernels import device_kernel as there
from linrank.kernels.device_kernel import DeviceMatrix
from linrank.kernels.functions import Kernel
from linrank.kernels.landmarks import Landmarks, OnLandmarks
from linrank.kernels.matrices import StoredMatrix, kernel_matrix
from linrank.kernels.train import KernelResult, train_kernel
from linrank.losses import device_pairs as losses
from linrank.ranksvm.train import Problem
from linrank.solvers.conjugate import by_cholesky

KERNELS = (
    Kernel("rbf", gamma=0.3),
    Kernel("poly", gamma=0.2, degree=5, coef0=1.0),
    Kernel("poly", gamma=0.2, degree=2, coef0=0.5),
    Kernel("sigmoid", gamma=0.1, coef0=0.2),
    Kernel("linear"),
)
RBF = Kernel("rbf", gamma=0.05)


@pytest.fixture(autouse=True)
def few_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """What queries tell is added up by two blocks: there are few queries, and 64 take a second."""
    monkeypatch.setattr(losses, "_BLOCKS", 2)


def draw_rows(n: int, n_columns: int, storage: str = "float64") -> Any:
    X = np.random.default_rng(n).normal(size=(n, n_columns)).round(2)
    if storage == "csr":
        return as_rows(csr_array(np.where(X > 0.8, X, 0.0)))
    return as_rows(X.astype(storage))


def matrices(kernel: Kernel, rows: Any, device: Any) -> tuple[StoredMatrix, DeviceMatrix]:
    """The same on both sides, unchecked: a sigmoid need not be definite."""
    return StoredMatrix(kernel.matrix(rows, rows)), DeviceMatrix.of(kernel, rows, device)


def close(found: Any, expected: Any, tol: float = 1e-12) -> None:
    scale = max(float(np.abs(expected).max()), 1e-300)
    np.testing.assert_allclose(found, expected, rtol=0, atol=tol * scale)


# ---- the matrix ----------------------------------------------------------------------------------


@pytest.mark.parametrize("storage", ["float64", "float32", "csr"])
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: f"{kernel.name}{kernel.degree}")
def test_the_matrix_is_that_of_the_host(kernel: Kernel, storage: str, device: Any) -> None:
    rows = draw_rows(131, 11, storage)
    ours, here = matrices(kernel, rows, device)
    Q = device.get(here.values)
    close(Q, ours.values)
    close(here.diagonal, ours.diagonal)
    close(Q.diagonal(), ours.diagonal)
    assert np.array_equal(Q, Q.T)
    if kernel.name == "rbf":
        assert (Q.diagonal() == 1.0).all()
    v, index = np.random.default_rng(0).normal(size=131), np.array([130, 3, 64, 63])
    close(here.product(v), ours.product(v))
    assert np.array_equal(device.get(here.columns(index)), Q[:, index])
    assert np.array_equal(here.entries(index, np.array([5, 1])), Q[np.ix_(index, [5, 1])])
    assert np.array_equal(here.entries(index, None), Q[index])
    part = here.submatrix(index)
    assert np.array_equal(device.get(part.values), Q[np.ix_(index, index)])
    close(part.product(v[:4]), Q[np.ix_(index, index)] @ v[:4])


@pytest.mark.parametrize("n_stored", [0, 70, 200])
@pytest.mark.parametrize("kernel", KERNELS[:2], ids=lambda kernel: kernel.name)
def test_products_do_not_depend_on_what_is_stored(
    kernel: Kernel, n_stored: int, device: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = draw_rows(200, 9)
    whole = DeviceMatrix.of(kernel, rows, device)
    v, index = np.random.default_rng(0).normal(size=200), np.arange(0, 200, 3)
    expected, columns = whole.product(v), device.get(whole.columns(index))
    monkeypatch.setattr(there, "_WORK", 64 * 200 * 41)  # a tile of rows in a launch
    monkeypatch.setattr(there, "_PIECE", 2000)
    needed = 8 * 200 * (9 + 9 + 64) + rows.nbytes
    some = DeviceMatrix.of(kernel, rows, device, memory_limit=needed + 8 * 200 * n_stored)
    assert len(some.values) == n_stored
    close(some.product(v), expected, 1e-14)
    assert np.array_equal(device.get(some.columns(index)), columns)
    close(some.submatrix(index).product(v[index]), columns[index] @ v[index], 1e-14)


@pytest.mark.parametrize("storage", ["float32", "csr"])
def test_wide_and_many_rows(storage: str, device: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(there, "_MOST_BLOCKS", 3)
    monkeypatch.setattr(there, "_COLUMNS", 4)
    ours, here = matrices(RBF, draw_rows(300, 11, storage), device)
    close(device.get(here.values), ours.values)


def test_a_matrix_that_is_given_goes_up_as_it_is(device: Any) -> None:
    Q = RBF.matrix(*2 * [draw_rows(60, 5)])
    v = np.random.default_rng(0).normal(size=60)

    def kernel(A: Any, B: Any) -> Any:
        return A @ B.T

    for function, rows in ((Kernel("precomputed"), as_rows(Q)), (Kernel.of(kernel), as_rows(Q))):
        ours, here = (kernel_matrix(function, rows, device=one) for one in (None, device))
        assert np.array_equal(device.get(here.values), ours.values)
        close(here.product(v), ours.product(v))
        part = np.array([4, 9])
        assert np.array_equal(device.get(here.columns(part)), ours.columns(part))
        assert np.array_equal(here.diagonal, ours.diagonal)


def test_of_a_matrix_that_is_given_the_upper_half_counts(
    device: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(there, "_PIECE", 8 * 60 * 7)
    rows = draw_rows(60, 5)
    upper = RBF.matrix(rows, rows)
    v = np.random.default_rng(0).normal(size=60)
    given = as_rows(np.triu(upper) + 0.999_999_9 * np.tril(upper, -1))
    ours, here = (kernel_matrix(Kernel("precomputed"), given, device=one) for one in (None, device))
    assert np.array_equal(device.get(here.values), upper)
    close(here.product(v), ours.product(v), 1e-14)


def test_what_is_no_kernel_is_refused(device: Any) -> None:
    rows = draw_rows(40, 3)
    with pytest.raises(ValueError, match=r"kernel 'sigmoid' .* must be positive semidefinite"):
        kernel_matrix(Kernel("sigmoid", gamma=2.0, coef0=-1.0), rows, device=device)
    asymmetric = as_rows(np.arange(16.0).reshape(4, 4))
    with pytest.raises(ValueError, match="must be symmetric"):
        kernel_matrix(Kernel("precomputed"), asymmetric, device=device)
    large = as_rows(1e200 * np.ones((3, 2)) * np.arange(1, 4)[:, None])
    with pytest.raises(ValueError, match=r"kernel 'linear' overflows .*scale='standard'"):
        kernel_matrix(Kernel("linear"), large, device=device)


def test_what_does_not_fit_is_refused_before_it_is_made(
    device: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = draw_rows(50, 7, "csr")
    with pytest.raises(MemoryError, match=r"50 rows takes .* 7 features, dense .*memory_limit"):
        DeviceMatrix.of(RBF, rows, device, memory_limit=20_000)
    monkeypatch.setattr(type(device), "free_bytes", 20_000)
    with pytest.raises(MemoryError, match=r"50 rows takes 20\.0 kB on cuda:0, their matrix"):
        DeviceMatrix.of(Kernel("precomputed"), as_rows(np.eye(50)), device)


# ---- training ------------------------------------------------------------------------------------


def test_landmarks_are_those_of_the_host(device: Any) -> None:
    ours, here = matrices(RBF, draw_rows(150, 4), device)
    expected, found = Landmarks.of(ours, 100), Landmarks.of(here, 100)
    assert len(found) == 100
    assert np.array_equal(found.rows, expected.rows)
    close(device.get(found.coordinates), expected.coordinates, 1e-6)
    close(device.get(found.back), expected.back, 1e-6)
    function = np.random.default_rng(0).normal(size=(2, 150))
    t = expected.along(function)
    close(device.get(found.along(function)), t, 1e-6)
    close(found.add(device.put(t), function.copy()), expected.add(t, function.copy()), 1e-6)
    assert len(Landmarks.of(here, 100, enough=1e9)) == 0


def test_a_hessian_that_rounding_made_indefinite_is_lifted(device: Any) -> None:
    H = np.diag([4.0, 1e-3, -1e-9, 0.0])
    landmarks = Landmarks(np.arange(4), device.put(np.eye(4)), device.put(np.eye(4)), device)
    preconditioner = OnLandmarks(landmarks, patience=6)
    r = np.array([1.0, 2.0, 3.0, 4.0])
    solve = by_cholesky(device.put(H), preconditioner._factor_there)
    close(device.get(solve(device.put(r))), by_cholesky(H)(r), 1e-9)
    with pytest.raises(ValueError, match="the Hessian overflows"):
        by_cholesky(device.put(np.full((4, 4), np.inf)), preconditioner._factor_there)


def check_fit(data: Dataset, **how: Any) -> KernelResult:
    """Train here and there."""
    ours = train_kernel(data, kernel=RBF, tol=1e-9, **how)
    found = train_kernel(data, kernel=RBF, tol=1e-9, device="cuda", **how)
    close(found.w, ours.w, 1e-8)
    close(found.scores, ours.scores, 1e-8)
    assert abs(found.value - ours.value) <= 1e-10 * ours.value
    return ours


@pytest.mark.parametrize("path", ["short", "long"])
def test_a_fit_is_that_of_the_host(
    path: str, device: Any, cupy: Any, is_real: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if path == "long":
        for module in (device_queries, losses):
            monkeypatch.setattr(module, "SHORT", 8)
        monkeypatch.setattr(device_queries, "_SIZES", (8,))
        monkeypatch.setattr(device_queries, "_THREADS", {8: 32})
    data = linrank.make_ranking(1, (50, 50), 6, random_state=1)
    best = check_fit(data, C=1.0)
    if not is_real:
        cupy.n_launches.clear()
    rough = train_kernel(data, kernel=RBF, C=1.0, tol=1e-3, device="cuda")
    assert rough.converged
    assert rough.gap <= 1e-3 * rough.value
    # The certificate, by numbers of the host.
    close(rough.scores, RBF.matrix(data.rows, data.rows) @ rough.w)
    (loss,) = Problem.of(data, 1.0).losses()
    value = 0.5 * rough.w @ rough.scores + loss.at(rough.scores).value
    assert abs(rough.value - value) <= 1e-12 * value
    assert value - rough.gap <= best.value <= value + 1e-12 * value
    if not is_real:  # the landmarks of a Hessian are swept by one launch
        sweeps = cupy.n_launches["combine_rows" if path == "long" else "multiply_queries"]
        assert rough.n_hvp < sweeps < rough.n_hvp + rough.n_landmarks


def test_queries_in_any_order_with_weights(device: Any) -> None:
    data = linrank.make_ranking(3, (4, 20), 6, random_state=2)
    rng = np.random.default_rng(0)
    mixed = data.select(rng.permutation(data.n_rows))
    how = {"query_normalization": "pairs", "pair_weighting": "gain_diff"}
    check_fit(mixed, C=30.0, **how)
    check_fit(mixed, C=0.1, pairs="adjacent")
    assert check_fit(mixed, C=1e-6).n_landmarks == 0


def test_listed_pairs_are_swept_on_the_host(device: Any) -> None:
    data = linrank.make_ranking(2, (15, 15), 6, random_state=3)
    listed = linrank.Preferences.of([(0, 9), (5, 2), (7, 1)], n_rows=data.n_rows)
    check_fit(data, C=1.0, preferences=listed)
    check_fit(data, C=1.0, pairs="closest", n_closest=40)


def test_the_hinge(device: Any) -> None:
    data = linrank.make_ranking(2, (15, 15), 6, random_state=4)
    how: dict[str, Any] = {"kernel": RBF, "C": 1.0, "loss": "hinge"}
    ours, found = train_kernel(data, **how), train_kernel(data, device="cuda", **how)
    assert found.converged
    assert ours.value - ours.gap <= found.value <= ours.value + found.gap
    best = train_kernel(data, tol=1e-6, **how)
    assert found.value - found.gap <= best.value <= found.value


def test_a_fit_whose_matrix_is_computed_for_every_product(device: Any) -> None:
    data = linrank.make_ranking(1, (40, 40), 6, random_state=1)
    how: dict[str, Any] = {"kernel": RBF, "C": 1.0, "tol": 1e-9}
    ours = train_kernel(data, **how)
    matrix = DeviceMatrix.of(RBF, data.rows, device, memory_limit=29_000)
    assert 0 < len(matrix.values) < 30
    found = train_kernel(data, matrix=matrix, **how)
    close(found.w, ours.w, 1e-8)


# ---- models --------------------------------------------------------------------------------------


def test_the_estimator_and_rows_on_a_device(device: Any) -> None:
    data = linrank.make_ranking(2, (10, 20), 6, random_state=5)
    given = {"y": data.y, "qid": data.qid}
    settings: dict[str, Any] = {"gamma": 0.1, "C": 1.0, "tol": 1e-9, "scale": "standard"}
    ours = linrank.KernelRankSVM(**settings).fit(data.X, **given)
    found = linrank.KernelRankSVM(**settings, device="cuda").fit(data.X, **given)
    expected = ours.predict(data.X)
    close(found.predict(data.X), expected, 1e-8)
    close(found.model_.predict(device.put(data.X)), expected, 1e-8)
    assert "device" not in found.model_.training
    there = linrank.KernelRankSVM(**settings).fit(device.put(data.X), **given)
    close(there.predict(data.X), expected, 1e-8)
    close(there.predict(device.put(data.X)), expected, 1e-8)
    assert there.get_params()["device"] == "cpu"
    sparse = linrank.KernelRankSVM(**settings).fit(csr_array(data.X), **given)
    close(sparse.model_.predict(device.put(data.X)), expected, 1e-6)


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
def test_scores_of_rows_on_a_device(
    kernel: Kernel, device: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(there, "_BLOCK_BYTES", 8 * 5 * 64)  # of rows: a tile at a time
    support, rows = draw_rows(40, 5), draw_rows(150, 5).values
    coef = np.random.default_rng(0).normal(size=40)
    model = linrank.KernelModel(support.values, coef, kernel)
    close(model.predict(device.put(rows)), model.predict(rows))
    rows[100, 2] = np.nan
    with pytest.raises(ValueError, match="NaN or infinity in rows 64 to 127"):
        model.predict(device.put(rows))


def test_scores_that_only_the_host_has(device: Any) -> None:
    rows = draw_rows(20, 5)
    Q = RBF.matrix(rows, rows)
    model = linrank.KernelModel(None, [1.0, -2.0], Kernel("precomputed"), [3, 7], 20)
    close(model.predict(device.put(Q)), model.predict(Q))
    by_query = linrank.data.scaling.Scaling("query")
    model = linrank.KernelModel(rows.values[:2], [1.0, -2.0], RBF, scaling=by_query)
    qid = np.repeat([0, 1], 10)
    there = model.predict(device.put(rows.values), qid=qid)
    assert np.array_equal(there, model.predict(rows.values, qid=qid))
    nothing = linrank.KernelModel(rows.values[:0], [], RBF)
    assert not nothing.predict(device.put(rows.values)).any()


@pytest.mark.parametrize("scale", ["none", "standard"])
def test_a_search_chooses_the_model_of_the_host(scale: str, device: Any) -> None:
    data = linrank.make_ranking(6, (8, 12), 4, random_state=6)
    settings: dict[str, Any] = {"Cs": [0.1, 10.0], "gammas": [0.01, 0.2], "cv": 2, "scale": scale}
    given = {"y": data.y, "qid": data.qid}
    ours = linrank.KernelRankSVMCV(**settings, tol=1e-8).fit(data.X, **given)
    found = linrank.KernelRankSVMCV(**settings, tol=1e-8, device="cuda").fit(data.X, **given)
    assert (found.C_, found.gamma_) == (ours.C_, ours.gamma_)
    close(found.cv_results_["mean_test_score"], ours.cv_results_["mean_test_score"])
    close(found.predict(data.X), ours.predict(data.X), 1e-6)


def test_a_search_on_a_matrix_and_on_validation_rows(device: Any) -> None:
    data = linrank.make_ranking(6, (8, 12), 4, random_state=6)
    Q = RBF.matrix(data.rows, data.rows)
    X = data.X
    valid = (X[:10] + 0.1, data.y[:10], data.qid[:10])
    for rows, settings in (
        (Q, {"kernel": "precomputed", "cv": 2, "scale": "none"}),
        (X, {"gammas": [0.05], "cv": valid, "scale": "none"}),
    ):
        how: dict[str, Any] = {"Cs": [0.1, 10.0], "tol": 1e-8, **settings}
        ours, found = (
            linrank.KernelRankSVMCV(**how, device=device).fit(rows, data.y, qid=data.qid)
            for device in ("cpu", "cuda")
        )
        assert found.C_ == ours.C_
        close(found.cv_results_["mean_test_score"], ours.cv_results_["mean_test_score"])


def test_a_device_has_a_name() -> None:
    X, y = np.random.default_rng(0).normal(size=(20, 2)), np.arange(20) % 2
    for estimator in (linrank.KernelRankSVM, linrank.KernelRankSVMCV):
        with pytest.raises(ValueError, match=r"device must be 'cpu', 'cuda' or .*, got 'gpu'"):
            estimator(device="gpu", scale="none").fit(X, y, qid=np.arange(20) // 4)
    approximate = linrank.KernelRankSVM(approximation="nystroem", device="cuda", scale="none")
    with pytest.raises(ValueError, match="device='cuda' trains exact models"):
        approximate.fit(X, y, qid=np.arange(20) // 4)
