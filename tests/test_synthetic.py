"""make_ranking and make_sample: what their docstrings promise, measured."""

import json

import numpy as np
import pytest

import linrank
from linrank import RankSVM, evaluate, make_ranking, make_sample
from linrank.data.rows import CsrRows, as_rows
from peaks import peak_of


def within_query(data):
    """Features less their mean in the query."""
    queries = data.queries
    X = np.asarray(data.X, dtype=np.float64)
    sums = np.add.reduceat(X, queries.offsets[:-1])
    return X - np.repeat(sums / np.diff(queries.offsets)[:, None], np.diff(queries.offsets), axis=0)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("density", [1.0, 0.5])
def test_defaults(density, dtype):
    data = make_ranking(dtype=dtype, density=density, random_state=0)
    assert (data.queries.n_queries, data.n_features) == (100, 20)
    assert (data.rows.is_sparse, data.rows.dtype) == (density < 1, dtype)
    assert data.queries.order is None
    assert set(data.y.tolist()) == {0, 1, 2, 3, 4}
    as_rows(data.X)  # finite, in place


def test_seed_decides():
    rng = np.random.default_rng(0)
    a, b, c, d, e = (make_ranking(5, 3, random_state=seed) for seed in (1, 1, 2, rng, rng))
    np.testing.assert_array_equal(a.X, b.X)
    np.testing.assert_array_equal(a.y, b.y)
    assert (a.X != c.X).any()
    assert (d.X != e.X).any()  # a generator goes on


def test_sizes():
    sizes = np.diff(make_ranking(2000, (5, 40), 2, random_state=0).queries.offsets)
    assert sizes.min() >= 5
    assert sizes.max() <= 40
    assert len(set(sizes.tolist())) > 25
    assert np.mean(sizes) > np.median(sizes)  # skewed to the right
    assert set(np.diff(make_ranking(9, 7, 2, random_state=0).queries.offsets).tolist()) == {7}


@pytest.mark.parametrize("n_levels", [1, 2, 3, 5])
def test_high_grades_are_rare(n_levels):
    share = np.bincount(make_ranking(500, n_levels=n_levels, random_state=0).y.astype(int))
    assert len(share) == n_levels
    np.testing.assert_allclose(share[1:] / share[:-1], 0.4, rtol=0.1)


def test_shares_of_grades_stay_within_one_for_any_number_of_levels():
    """Rounding put the share of the highest grades above 1, for some numbers on some processors."""
    for n_levels in range(2, 300):
        y = make_ranking(n_queries=2, rows_per_query=5, n_levels=n_levels, random_state=0).y
        assert y.min() >= 0
        assert y.max() < n_levels


def test_labels_without_levels_are_distinct():
    queries = make_ranking(50, n_levels=None, random_state=0).queries
    np.testing.assert_array_equal(queries.n_levels, np.diff(queries.offsets))


@pytest.mark.parametrize("n_features", [10, 20, 46, 136])
@pytest.mark.parametrize("seed", range(2))
def test_as_collinear_as_real_data(seed, n_features):
    """Unless it is asked not to be."""
    data = make_ranking(200, (20, 120), n_features, random_state=seed)
    covariance = np.cov(within_query(data).T)
    scale = np.sqrt(np.diag(covariance))
    assert np.linalg.cond(covariance) > 1e4
    assert np.linalg.cond(covariance / np.outer(scale, scale)) > 1e4
    plain = make_ranking(500, n_features=8, correlation=0.0, random_state=seed)
    assert np.linalg.cond(np.corrcoef(within_query(plain).T)) < 5


def test_features_are_long_tailed_and_differ_by_query():
    data = make_ranking(300, (30, 60), 60, random_state=0)
    X = np.asarray(data.X, np.float64)
    skew = np.mean(((X - X.mean(0)) / X.std(0)) ** 3, axis=0)
    assert np.mean(skew > 2) > 0.2  # log-normal, heavy, counts
    assert np.mean(np.abs(skew) < 0.5) > 0.1  # bounded, Gaussian
    assert (np.mean(X == 0, axis=0) > 0.2).any()  # counts with zeros
    between = X.var(0) - within_query(data).var(0)
    assert (between > 0.02 * X.var(0)).mean() > 0.9


def least_squares_accuracy(noise, seed):
    """Share of pairs that a least-squares fit to the labels orders correctly."""
    data = make_ranking(200, noise=noise, random_state=seed)
    offsets, Z = data.queries.offsets, within_query(data)
    sizes = np.diff(offsets)
    middle = np.repeat(np.add.reduceat(data.y, offsets[:-1]) / sizes, sizes)
    scores = Z @ np.linalg.lstsq(Z, data.y - middle, rcond=None)[0]
    return evaluate(data.y, scores, qid=data.qid, metrics="pairwise_accuracy")["pairwise_accuracy"]


@pytest.mark.parametrize(("noise", "expected"), [(0, 0.93), (0.5, 0.87), (1, 0.78), (2, 0.67)])
def test_noise_sets_how_many_pairs_can_be_learnt(noise, expected):
    measured = np.median([least_squares_accuracy(noise, seed) for seed in range(5)])
    np.testing.assert_allclose(measured, expected, atol=0.04)


@pytest.mark.parametrize(
    ("n_features", "density"), [(30, 0.5), (50, 0.05), (2000, 0.01), (100_000, 3e-4), (200, 0.9)]
)
def test_sparse_density_and_zipf_columns(n_features, density):
    data = make_ranking(20, (20, 100), n_features, density=density, random_state=0)
    assert isinstance(data.rows, CsrRows)
    again = as_rows(data.X)  # canonical: used in place
    assert np.shares_memory(again.values, data.rows.values)
    measured = len(data.rows.values) / (data.n_rows * n_features)
    np.testing.assert_allclose(measured, density, rtol=0.15)
    use = np.sort(np.bincount(data.rows.columns, minlength=n_features))[::-1]
    head = use[: max(1, n_features // 10)].sum() / use.sum()
    assert head > 0.2 if density < 0.5 else head > 0.1
    assert data.queries.n_pairs > 0


def test_sparse_memory_is_that_of_the_result():
    found = []
    options = {"density": 4e-4, "random_state": 0}
    peak = peak_of(lambda: found.append(make_ranking(1, 200_000, 100_000, 2, **options)))
    assert peak < 1.5 * found[0].rows.nbytes + 60e6


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_queries": 0}, "n_queries must be >= 1, got 0"),
        ({"n_features": 0}, "n_features must be >= 1, got 0"),
        ({"rows_per_query": (4, 3)}, r"ascending, got \(4, 3\)"),
        ({"rows_per_query": 0}, "rows_per_query must be >= 1"),
        ({"n_levels": 0}, "n_levels must be >= 1"),
        ({"noise": -1}, "noise must be finite and >= 0, got -1"),
        ({"noise": np.nan}, "noise must be finite and >= 0, got nan"),
        ({"correlation": 1}, r"correlation must be in \[0, 1\), got 1"),
        ({"density": 0}, r"density must be in \(0, 1\], got 0"),
        ({"dtype": "int32"}, "dtype must be float32 or float64, got 'int32'"),
        ({"n_informative": 21}, "n_informative must be in 1 .. 20, got 21"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        make_ranking(**arguments)


@pytest.fixture(scope="module")
def sample():
    return make_sample()


def ndcg(data, scores):
    return evaluate(data.y, scores, qid=data.qid, metrics=["ndcg@10"])["ndcg@10"]


def test_it_looks_like_the_data_of_a_shop(sample):
    train = sample["train"]
    assert [data.queries.n_queries for data in sample.values()] == [160, 40, 100]
    assert set(np.unique(train.y)) == {0, 1, 2, 3, 4}
    assert all(" " in query for query in train.qid)
    assert len({docid for data in sample.values() for docid in data.docids}) == 4264
    gaps = np.isnan(train.X).mean(axis=0)
    assert [name for name, gap in zip(train.feature_names, gaps, strict=True) if gap] == ["rating"]
    assert 0.1 < gaps.max() < 0.5


@pytest.mark.parametrize("seed", range(3))
def test_learning_beats_the_best_feature_and_curves_beat_lines(seed):
    sample = make_sample(random_state=seed)
    train, test = sample["train"], sample["test"]
    columns = np.nan_to_num(test.X).T
    single = max(ndcg(test, sign * column) for column in columns for sign in (-1, 1))
    linear = ndcg(test, RankSVM(missing="mean").fit(train).predict(test))
    curved = ndcg(test, RankSVM(missing="mean", curves="quantile").fit(train).predict(test))
    assert linear > single + 0.05
    assert curved > linear + 0.05


def assert_same_sample(found, expected):
    for name in ("X", "qid", "y", "docids", "feature_names"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))


def test_a_seed_is_a_sample_whose_parts_share_no_query(sample):
    again, other = make_sample(random_state=0), make_sample(random_state=1)
    for name, data in sample.items():
        assert_same_sample(again[name], data)
    train, valid, test = ({*data.qid} for data in sample.values())
    assert not train & valid
    assert not test & (train | valid)
    assert train != {*other["train"].qid}


def test_the_files_hold_the_sample(tmp_path, cli, sample):
    pytest.importorskip("pyarrow")
    said, paths = cli("sample", tmp_path, "--json"), [tmp_path / f"{name}.csv" for name in sample]
    assert json.loads(said.out)["files"] == list(map(str, paths))
    assert "2,224 rows, 160 queries, 13 features" in said.err
    for path, data in zip(paths, sample.values(), strict=True):
        assert path.stat().st_size < 250_000
        assert_same_sample(linrank.load(path, missing="keep"), data)


def test_files_that_are_there_stay(tmp_path, cli):
    (tmp_path / "valid.csv").write_text("mine\n")
    err = cli("sample", tmp_path, status=1).err
    assert "valid.csv is there already; --force replaces it" in err
    assert [path.name for path in tmp_path.iterdir()] == ["valid.csv"]
    cli("sample", tmp_path, "--force", "-q")
    first = (tmp_path / "valid.csv").read_text().partition("\n")[0].replace('"', "")
    assert first.startswith("query,url,grade,bm25_title")
