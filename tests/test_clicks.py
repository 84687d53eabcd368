"""Clicks: logs joined by names, preferences of every strategy, propensities, and the command."""

from __future__ import annotations

import json
import re
import warnings
from collections import Counter

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import linrank
from linrank import NoPairsError
from linrank.clicks import (
    STRATEGIES,
    Impressions,
    click_preferences,
    click_rates,
    fit_position_model,
    harvest,
    ips_relevance,
    ips_weights,
    power_law,
    simulate_clicks,
)
from linrank.clicks.impressions import join_log

# ---- preferences --------------------------------------------------------------------------------


def pairs_of_list(rows, clicked, strategy):
    """The definition: (place of the click, place passed by) for one list, top first."""
    places = range(len(rows))
    clicks = [k for k in places if clicked[k]]
    if strategy.startswith("last"):
        clicks = clicks[-1:]
    allowed = {
        "clicked_over_skipped": lambda k, m: not clicked[m],
        "clicked_over_others": lambda k, m: m != k,
        "clicked_over_next_skipped": lambda k, m: m == k + 1 and not clicked[m],
        "clicked_over_skipped_above": lambda k, m: m < k and not clicked[m],
        "last_clicked_over_skipped_above": lambda k, m: m < k and not clicked[m],
    }[strategy]
    return [(k, m) for k in clicks for m in places if allowed(k, m)]


@st.composite
def logs(draw):
    """Lists of distinct rows with positions that may have gaps, and how often each was shown."""
    lists = []
    for _ in range(draw(st.integers(1, 6))):
        rows = draw(st.permutations(range(6)))[: draw(st.integers(1, 6))]
        positions = sorted(draw(st.permutations(range(1, 9)))[: len(rows)])
        clicked = draw(st.lists(st.booleans(), min_size=len(rows), max_size=len(rows)))
        lists.append((rows, positions, clicked, draw(st.sampled_from([1, 1, 2, 5]))))
    return lists


def impressions_of(lists, shuffle=None):
    """The columns of a log, its records in any order."""
    records = [
        (position, click, row, f"list {k}", count)
        for k, (rows, positions, clicks, count) in enumerate(lists)
        for row, position, click in zip(rows, positions, clicks, strict=True)
    ]
    if shuffle is not None:
        shuffle.shuffle(records)
    position, clicked, row, session, count = map(list, zip(*records, strict=True))
    return Impressions.of(position, clicked, row=row, session=session, count=count)


@pytest.mark.parametrize("strategy", STRATEGIES)
@given(lists=logs(), random=st.randoms(use_true_random=False), weighted=st.booleans())
def test_preferences_equal_the_definition(strategy, lists, random, weighted):
    propensity = 0.9 ** np.arange(8)
    truth: Counter[tuple[int, int]] = Counter()
    for rows, positions, clicked, count in lists:
        for k, m in pairs_of_list(rows, clicked, strategy):
            inverse = min(1 / propensity[positions[k] - 1], 1.5) if weighted else 1.0
            truth[rows[k], rows[m]] += count * inverse
    log = impressions_of(lists, random)
    options = {"propensity": propensity, "max_weight": 1.5} if weighted else {}
    if not truth:
        with pytest.raises(NoPairsError, match="express no preference"):
            click_preferences(log, strategy, **options)
        return
    found = click_preferences(log, strategy, **options)
    assert [tuple(pair) for pair in found.pairs.tolist()] == sorted(truth)
    assert_allclose(found.weight, [truth[pair] for pair in sorted(truth)], rtol=1e-12)


# ---- weights ------------------------------------------------------------------------------------


def test_weights_are_inverse_and_bounded():
    assert_allclose(ips_weights([1, 2, 4], power_law(4, 2.0)), [1, 4, 16])
    assert ips_weights([1, 2, 4], power_law(4, 2.0), max_weight=5).tolist() == [1, 4, 5]
    assert power_law(3, 0).tolist() == [1.0, 1.0, 1.0]


def simulate(attractiveness=0.5, **options):
    return simulate_clicks([attractiveness], ["q"], [0.0], [1.0], **{"n_lists": 1, **options})


def preferences(columns, **options):
    return click_preferences(Impressions.of([1, 2], [0, 1], **columns), **options)


def impressions(**columns):
    return Impressions.of(**{"position": [1, 2], "clicked": [0, 1], **columns})


STUCK = Impressions.of([1, 2, 3, 1, 2], [1, 1, 1, 0, 0], row=[0, 1, 2, 1, 0])
TOTALS = Impressions.of([1, 2], [1, 0], count=[1, 7])
LISTED = {"row": [0, 1], "session": [0, 0]}
TWICE = {"position": [2, 2], "session": ["a", "a"]}
OTHER_COUNTS = {"session": ["a", "a"], "count": [1, 2]}
REFUSED = [
    (lambda: preferences({"row": [0, 1]}), "pass session"),
    (
        lambda: preferences({"session": [0, 0]}),
        "click_preferences needs the row of each impression",
    ),
    (lambda: preferences(LISTED, strategy="best"), "got 'best'"),
    (lambda: preferences(LISTED, max_weight=2.0), "pass propensity"),
    (lambda: preferences(LISTED, propensity=[1.0]), "position 2 occurs, but"),
    (
        lambda: preferences({"row": [5, 5], "session": [0, 0]}),
        "row 5 was shown at positions 1 and 2 of one li",
    ),
    (lambda: impressions(position=[1, 0]), "position of impression 1 is 0; it counts from 1"),
    (lambda: impressions(position=[1.0, 2.0]), "position must hold integers, got dtype float64"),
    (lambda: impressions(position=[], clicked=[]), "there are no impressions"),
    (lambda: impressions(clicked=[0, 2]), "clicked of impression 1 is 2; it must be 0 or 1"),
    (lambda: impressions(clicked=[0, np.nan]), "clicked of impression 1 is nan"),
    (lambda: impressions(row=[0, -1]), "row of impression 1 is -1; it counts from 0"),
    (lambda: impressions(session=["a"]), "position has 2 rows but session has 1"),
    (lambda: impressions(count=[1, 0]), "count of impression 1 is 0; it must be finite and > 0"),
    (lambda: impressions(**TWICE), "list 'a' has position 2 twice"),
    (lambda: impressions(**OTHER_COUNTS), "list 'a' has different counts, from posit"),
    (lambda: ips_weights([1], [1.0, 0.0]), r"propensity of position 2 is 0; .* lie in \(0, 1\]"),
    (lambda: ips_weights([1], [1.5]), "propensity of position 1 is 1.5"),
    (lambda: ips_weights([1], [-0.5]), "is -0.5"),
    (lambda: ips_weights([1], []), "propensity is empty"),
    (lambda: ips_weights([1], [1.0], max_weight=0.5), r"max_weight must be >= 1, .* got 0\.5"),
    (lambda: ips_weights([0], [1.0]), "integers >= 1"),
    (lambda: power_law(3, -1.0), "eta must be finite and >= 0"),
    (lambda: power_law(3, np.inf), "eta must be finite and >= 0"),
    (lambda: power_law(0), "n_positions must be an integer >= 1, got 0"),
    (lambda: power_law(10, 1e6), "lower eta or n_positions"),
    (lambda: simulate(noise=-1), "noise must be >= 0, got -1"),
    (lambda: simulate(2.0), r"attractiveness must lie in \[0, 1\]"),
    (lambda: simulate(n_lists=0), "n_lists must be an integer >= 1, got 0"),
    (lambda: fit_position_model(STUCK), "no row links position 3 with position 1"),
    (lambda: harvest(STUCK), "0 rows were shown at both positions 2 and 3"),
    (lambda: click_rates(Impressions.of([1, 3], [1, 1])), "nothing .* position 2, but at 3"),
    (lambda: click_rates(Impressions.of([1, 10**12], [1, 1])), "2, but at 1000000000000"),
    (lambda: click_rates(TOTALS), "position 2 was not clicked in 7 showings"),
    (lambda: fit_position_model(Impressions.of([1], [0], row=[0])), "there is no click"),
    (lambda: harvest(Impressions.of([1], [0])), "harvest needs the row"),
]


@pytest.mark.parametrize(("call", "message"), REFUSED)
def test_what_makes_no_sense_is_refused(call, message):
    with pytest.raises((TypeError, ValueError), match=message):
        call()


def test_relevance_is_the_weighted_mean():
    log = Impressions.of([1, 2, 2, 2], [1, 1, 0, 0], row=[0, 0, 0, 2], count=[1, 2, 1, 4])
    relevance, shown = ips_relevance(log, [1.0, 0.5], n_rows=4)
    assert relevance.tolist() == [(1 + 2 * 2) / 4, 0, 0, 0]
    assert shown.tolist() == [4, 0, 4, 0]
    with pytest.raises(ValueError, match="row 2 was shown, but n_rows is 2"):
        ips_relevance(log, [1.0, 0.5], n_rows=2)


# ---- propensities from a log --------------------------------------------------------------------

TRUTH = power_law(6, 1.0)


def shown(noise):
    """The better half on top, or with noise in any order."""
    attractiveness = np.random.default_rng(0).uniform(0.05, 0.95, 60)
    given = attractiveness, np.repeat(np.arange(10), 6), attractiveness, TRUTH
    return simulate_clicks(*given, n_lists=60_000, noise=noise, random_state=1)


def test_estimates_separate_position_from_relevance():
    """Click rates mislead, and rows that moved do not, but where the order was random."""
    assert_allclose(click_rates(shown(np.inf)), TRUTH, rtol=0.06)  # 5000 clicks: 1.4 % each
    log = shown(0.3)
    assert abs(click_rates(log) / TRUTH - 1).max() > 0.3
    for found in (harvest(log), fit_position_model(log).propensity):
        assert_allclose(found, TRUTH, rtol=0.1)


def test_the_position_model_finds_the_maximum_of_the_likelihood():
    """Exact frequencies of a model are its own maximum, attractiveness included."""
    p, a = np.array([0.8, 0.4, 0.2]), np.array([0.9, 0.5, 0.25, 0.1])
    row, k = map(np.ravel, np.meshgrid(np.arange(4), np.arange(3), indexing="ij"))
    chance, n = p[k] * a[row], np.random.default_rng(0).integers(100, 5000, 12)
    own = {"row": np.tile(10 * row, 2), "count": np.append(n * chance, n * (1 - chance))}
    log = Impressions.of(np.tile(k + 1, 2), np.repeat([1, 0], 12), **own)
    model = fit_position_model(log, tol=1e-10, max_iter=20_000)
    assert model.converged
    assert_allclose(model.propensity, p / 0.8, rtol=1e-5)
    assert_allclose(model.attractiveness, 0.8 * a, rtol=1e-5)
    assert model.rows.tolist() == [0, 10, 20, 30]
    most = n @ (chance * np.log(chance) + (1 - chance) * np.log(1 - chance))
    assert_allclose(model.log_likelihood, most, rtol=1e-9)
    assert not fit_position_model(log, max_iter=2).converged
    assert_allclose(harvest(log), p / 0.8, rtol=1e-12)


# ---- simulation ---------------------------------------------------------------------------------


def test_simulated_clicks_follow_the_model():
    attractiveness = np.array([0.2, 0.9, 0.5, 0.7, 0.1])
    qid, scores = ["a", "b", "a", "b", "a"], [3.0, 1.0, 1.0, 2.0, 2.0]
    log = simulate_clicks(attractiveness, qid, scores, [1.0, 0.5], n_lists=40_000, random_state=0)
    assert len(log.offsets) == 40_001
    shown = {(int(r), int(k)) for r, k in zip(log.row, log.position, strict=True)}
    assert shown == {(0, 1), (4, 2), (3, 1), (1, 2)}
    for row, rate in ((0, 0.2), (4, 0.05), (3, 0.7), (1, 0.45)):
        assert abs(log.clicked[log.row == row].mean() - rate) < 0.015
    again = simulate_clicks(attractiveness, qid, scores, [1.0, 0.5], n_lists=40_000, random_state=0)
    assert_array_equal(log.clicked, again.clicked)


QUERIES = ["red shoes", "blå sko", "7"]
URLS = [f"https://shop.example/{k}" for k in range(5)]


def catalogue():
    """Rows of all queries and all but one url, the queries mixed."""
    pairs = [(q, u) for u in URLS[:4] for q in QUERIES]
    table = pd.DataFrame(pairs, columns=["query", "url"])
    return table.assign(bm25=np.arange(12.0), price=1.0, label=np.arange(12) % 3)


@pytest.fixture(scope="module")
def data():
    return linrank.load(catalogue(), qid="query", docid="url")


def log_of(records):
    return pd.DataFrame(records, columns=["session", "query", "url", "position", "clicked"])


RECORDS = st.tuples(
    st.integers(0, 4),
    st.sampled_from([*QUERIES, "unknown"]),
    st.sampled_from([*URLS, "elsewhere"]),
    st.integers(1, 9),
    st.booleans(),
)


@given(st.lists(RECORDS, min_size=1, max_size=30, unique_by=lambda r: (r[0], r[1], r[3])))
def test_the_join_is_a_loop_over_records(records):
    table = catalogue()
    data = linrank.load(table, qid="query", docid="url")
    known = {key: i for i, key in enumerate(zip(table["query"], table["url"], strict=True))}
    expected, lost = {}, 0
    for session, query, url, position, clicked in records:
        if (query, url) in known:
            shown = expected.setdefault((str(session), query), [])
            shown.append((position, known[query, url], clicked))
        else:
            lost += 1
    if not expected:
        with pytest.raises(ValueError, match="none of its"):
            join_log(log_of(records), data)
        return
    joined = join_log(log_of(records), data)
    found, lists = joined.impressions, {}
    assert joined.n_lost == lost
    list_of = np.repeat(np.arange(len(found.lists)), np.diff(found.offsets))
    for k, *record in zip(list_of, found.position, found.row, found.clicked, strict=True):
        lists.setdefault((found.lists[k], table["query"][record[1]]), []).append(tuple(record))
    assert lists == {key: sorted(shown) for key, shown in expected.items()}
    assert joined.n_other_queries == sum(record[1] == "unknown" for record in records)


FEW = [
    ("a", "red shoes", URLS[1], 1, 0),
    ("a", "red shoes", URLS[0], 2, 1),
    ("b", "7", URLS[2], 1, 1),
    ("b", "7", URLS[3], 2, 0),
]


@pytest.mark.parametrize("form", ["pandas", "polars", "pyarrow", "dict", "parquet", "csv", "tsv"])
def test_a_log_may_be_any_table(form, data, tmp_path):
    log, path = log_of(FEW).rename(columns={"position": "Rank", "clicked": "click"}), tmp_path / "l"
    given = {
        "pandas": lambda: log,
        "polars": lambda: pl.from_pandas(log),
        "pyarrow": lambda: pa.Table.from_pandas(log),
        "dict": lambda: log.to_dict("list"),
        "parquet": lambda: log.to_parquet(path.with_suffix(".parquet")),
        "csv": lambda: log.to_csv(path.with_suffix(".csv"), index=False),
        "tsv": lambda: log.to_csv(path.with_suffix(".tsv"), index=False, sep="\t"),
    }[form]()
    found = Impressions.from_frame(path.with_suffix(f".{form}") if given is None else given, data)
    assert found.row.tolist() == [3, 0, 8, 11]
    assert found.clicked.tolist() == [False, True, True, False]
    assert found.lists.tolist() == ["a", "b"]


def test_numbers_are_the_same_ids_in_log_and_data(tmp_path):
    ids = np.array([2**60 + 1, 2**60 + 2])
    table = pd.DataFrame({"qid": [1, 1], "docid": ids, "x": [0.0, 1.0]})
    data = linrank.load(table, label=False)
    log = pd.DataFrame({"sid": ids[[0, 0]], "qid": [1.0, 1.0], "doc": ids, "rank": [1, 2]})
    log["clicked"] = [True, False]
    log.astype({"qid": int}).to_csv(tmp_path / "log.csv", index=False)
    for table in (log, tmp_path / "log.csv"):
        assert Impressions.from_frame(table, data).row.tolist() == [0, 1]


def test_what_has_no_row_is_counted_in_a_warning(data):
    log = log_of([*FEW, ("c", "red shoes", "gone", 1, 1), ("c", "hats", URLS[0], 2, 0)])
    told = r"2 of 6 records \(33.3 %\) have no row in the data and are left out: 1 of a query that "
    with pytest.warns(UserWarning, match=told + "it lacks, 1 of a document that it") as caught:
        assert len(Impressions.from_frame(log, data)) == 4
    assert caught[0].filename == __file__


WRONG = {
    "no click": (log_of(FEW).drop(columns="clicked"), {}, r"no column is the clicked .*clicked="),
    "misspelt": (log_of(FEW), {"document": "ulr"}, r"document='ulr' names no column.*'url'"),
    "two roles": (log_of(FEW), {"query": "url"}, "one column cannot have two roles"),
    "from 0": (log_of(FEW).assign(position=[0, 1, 0, 1]), {}, "it counts from 1"),
    "half": (log_of(FEW).assign(position=[0.5, 1, 1, 2]), {}, r"record 0 .* is 0.5; .*whole"),
    "null": (log_of(FEW).assign(url=[None, "a", "b", "c"]), {}, "document of record 0 .* missing"),
    "many": (log_of(FEW).assign(clicked=[2, 0, 1, 0]), {}, "clicked of impression 0 is 2"),
    "empty": (log_of([]).astype({"position": int}), {}, "no record"),
    "again": (
        log_of([FEW[0], FEW[0], *FEW[1:]]),
        {},
        r"records 0 and 1 both have position 1 of the session 'a' and the query 'red shoes'",
    ),
    "other names": (
        log_of([("a", "Red Shoes", "https://shop.example/0/", 1, 0)]),
        {},
        r"'Red Shoes' in record 0 .* 'red shoes' in row 0",
    ),
    "a text": (__file__, {}, "a log is a table"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_log_is_told(name, data):
    log, columns, message = WRONG[name]
    with pytest.raises(ValueError, match=message):
        Impressions.from_frame(log, data, **columns)


def test_data_without_ids_are_told():
    table = catalogue()
    for lacking, message in (
        (linrank.load(table, qid="query", docid=False), "no document ids.*docid="),
        (linrank.load(table.drop(columns="query"), qid=False, docid="url"), "no query ids.*qid="),
    ):
        with pytest.raises(ValueError, match=message):
            Impressions.from_frame(log_of(FEW), lacking)
    with pytest.raises(TypeError, match=r"as linrank\.load reads them; got DataFrame"):
        Impressions.from_frame(log_of(FEW), table)
    twice = linrank.load(pd.concat([table, table[:1]]), qid="query", docid="url")
    with pytest.raises(ValueError, match=r"record 1 .*in several rows of the query 'red shoes'"):
        Impressions.from_frame(log_of(FEW), twice)


def test_totals_need_no_session(data):
    log = log_of(FEW).drop(columns="session").assign(count=[3, 3, 2, 2])
    with pytest.raises(ValueError, match="session=False for totals without lists"):
        Impressions.from_frame(log, data)
    found = Impressions.from_frame(log, data, session=False)
    assert found.offsets is None
    assert found.count.tolist() == [3.0, 3.0, 2.0, 2.0]


def test_the_top_of_lists_is_the_log_of_the_top():
    rng = np.random.default_rng(0)
    session, position = np.repeat(np.arange(20), 6), np.tile(np.arange(1, 7), 20)
    kept = (rng.random(120) < 0.7) & ~((session == 3) & (position <= 2))
    columns = session[kept], position[kept], rng.random(kept.sum()) < 0.3, np.arange(kept.sum())
    whole = Impressions.of(columns[1], columns[2], row=columns[3], session=columns[0])
    top = columns[1] <= 2
    cut = [column[top] for column in columns]
    expected = Impressions.of(cut[1], cut[2], row=cut[3], session=cut[0])
    for name in ("position", "clicked", "row", "offsets", "lists", "count"):
        np.testing.assert_array_equal(getattr(whole.top(2), name), getattr(expected, name))


# ---- the command --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Features, and a log of a tenth more results than these: with urls, by a biased ranker."""
    folder, rng = tmp_path_factory.mktemp("clicks"), np.random.default_rng(5)
    n, qid = 600, np.repeat([f"query {q}" for q in range(50)], 12)
    X = rng.normal(size=(n, 3))
    attractive = 1.0 / (1.0 + np.exp(-2.0 * X[:, 1] - X[:, 2]))
    shown = simulate_clicks(
        attractive, qid, X[:, 0], power_law(6), n_lists=4000, noise=1.0, random_state=1
    )
    url = np.array([f"u{i}" for i in range(n)], dtype=object)
    table = pd.DataFrame(X, columns=["a", "b", "c"]).assign(qid=qid, docid=url, idf=1.0)
    table["label"] = np.digitize(attractive, [0.3, 0.7])
    table[url != "u5"].to_parquet(folder / "features.parquet")
    session = np.repeat(np.arange(len(shown.offsets) - 1), np.diff(shown.offsets))
    log = {"visit": session, "q": qid[shown.row], "url": url[shown.row]}
    log = pd.DataFrame(log | {"rank": shown.position, "click": shown.clicked})
    log.to_csv(folder / "log.csv", index=False)
    return folder


def command(files, *more):
    log, features = str(files / "log.csv"), str(files / "features.parquet")
    columns = ["--log-columns", "session=visit,query=q"]
    return ["clicks", log, "--features", features, "-o", str(files / "m.json"), *columns, *more]


def test_the_command_does_what_the_library_does(files, cli):
    parts = [str(files / "p.txt"), str(files / "pairs.txt")]
    asked = ["--write-propensities", parts[0], "--write-preferences", parts[1], "--json"]
    out, told = cli(*command(files, *asked, "--valid", str(files / "features.parquet")))
    data = linrank.load(files / "features.parquet")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        shown = Impressions.from_frame(files / "log.csv", data, session="visit", query="q")
    propensity = harvest(shown)
    preferences = click_preferences(shown, propensity=propensity, max_weight=20)
    ranker = linrank.RankSVM(C="auto", scale="standard").fit_pairs(data, preferences)
    model = linrank.load_model(files / "m.json")
    np.testing.assert_allclose(model.coef, ranker.coef_, rtol=1e-12)
    assert model.coef[list(model.feature_names).index("idf")] == 0.0
    np.testing.assert_array_equal(np.loadtxt(parts[0]), propensity)
    written = linrank.load_preferences(parts[1])
    np.testing.assert_array_equal(written.pairs, preferences.pairs)
    np.testing.assert_array_equal(written.weight, preferences.weight)
    report = json.loads(out)
    assert report["log"]["propensity"] == propensity.tolist()
    assert report["log"]["records_of_other_documents"] > 0
    assert report["valid"]["metrics"]["ndcg@10"] > 0.85
    assert re.search(r"joined .* of 24,000 records, .* clicks, 4,000 lists", told)
    assert re.search(r"looks +by harvest, from position 1 on: 1 0\.\d+", told)
    assert "looks depend on the position alone" in told
    assert "have no row in the data and are left out" in told
    cli(*command(files, "--propensity", parts[0], "-q"))
    np.testing.assert_array_equal(linrank.load_model(files / "m.json").coef, model.coef)


@pytest.mark.parametrize("how", ["position-model", "click-rates", "power-law", "none"])
def test_every_way_to_propensities_trains(how, files, cli):
    told = cli(*command(files, "--propensity", how, "--positions", "5", "-c", "0.01")).err
    assert re.search(r"looks +(by \S+, from position 1 on:( \d\S*){5} |none: every click)", told)
    assert linrank.load_model(files / "m.json").training["C"] == 0.01


def test_a_log_that_cannot_tell_propensities_names_the_ways_out(files, tmp_path, cli):
    log = pd.read_csv(files / "log.csv").drop_duplicates(["q", "rank"])  # no row has moved
    log = log.drop_duplicates(["q", "url"])
    log.to_csv(tmp_path / "log.csv", index=False)
    wrong = command(files)
    wrong[1] = str(tmp_path / "log.csv")
    nix = [*wrong[:-1], "session=visit,query=q,document=nix"]
    assert "--log-columns document='nix' names no column" in cli(*nix, status=1).err
    told = cli(*wrong, status=1).err
    assert "--propensity harvest: " in told
    assert "--positions N leaves out lower positions, --propensity power-law guesses" in told
