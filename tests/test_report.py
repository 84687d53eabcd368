"""``linrank.report``: what the page says, that it stands alone, that no name can harm it."""

import itertools
import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest

import linrank
from linrank import Dataset, KernelRankSVM, LinearModel, RankSVM, make_ranking
from linrank.judging.inspect import Overlap
from linrank.reports.html import interval, p_value, percent, power, push, short
from linrank.reports.material import leakage_caveats
from real_data import mq2008

QUICK = {"n_resamples": 500, "Cs": [1e-4, 1e-3, 1e-2]}
VOID = {"meta", "link", "br", "path", "use", "rect", "circle", "line", "image", "stop", "img"}


WHOLE = make_ranking(n_queries=60, n_features=6, random_state=0)
TRAIN, TEST = WHOLE.select(WHOLE.qid < 40), WHOLE.select(WHOLE.qid >= 40)


@pytest.fixture(scope="module")
def page():
    return linrank.report(TEST, train=TRAIN, **QUICK)


class Reader(HTMLParser):
    """Elements with their attributes; complains about tags that do not close."""

    def __init__(self, html):
        super().__init__(convert_charrefs=True)
        self.elements, self.open, self.text = [], [], []
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        if tag not in VOID:
            assert self.open.pop() == tag

    def handle_data(self, data):
        if not {"style", "script"} & set(self.open):
            self.text.append(data)


# WAI-ARIA 1.2, section 6.5: a misspelled name does nothing.
ARIA = """activedescendant atomic autocomplete braillelabel brailleroledescription busy checked
colcount colindex colindextext colspan controls current describedby description details disabled
dropeffect errormessage expanded flowto grabbed haspopup hidden invalid keyshortcuts label
labelledby level live modal multiline multiselectable orientation owns placeholder posinset
pressed readonly relevant required roledescription rowcount rowindex rowindextext rowspan selected
setsize sort valuemax valuemin valuenow valuetext"""


def assert_stands_alone(html):
    """Nothing is loaded and nothing runs, by the elements and by the style sheet."""
    reader = Reader(html)
    for tag, attributes in reader.elements:
        assert tag not in {"script", "iframe", "object", "embed", "base", "form"}
        for name, value in attributes.items():
            assert not name.startswith("on"), (tag, name)
            assert not name.startswith("aria-") or re.search(rf"\b{name[5:]}\b", ARIA), (tag, name)
            if name in {"href", "src", "xlink:href", "action", "srcset", "data", "poster"}:
                assert value.startswith(("#", "data:")), (tag, name, value)
    assert "@import" not in html
    assert not re.search(r"url\((?!#|\"?data:)", html)
    policy = next(a for t, a in reader.elements if a.get("http-equiv") == "Content-Security-Policy")
    assert policy["content"].startswith("default-src 'none'; style-src 'unsafe-inline'")
    return reader


# ---- the page -----------------------------------------------------------------------------------


def test_the_page_stands_alone(page):
    reader = assert_stands_alone(page.to_html())
    assert reader.elements[0] == ("html", {"lang": "en"})
    assert ("meta", {"charset": "utf-8"}) in reader.elements
    assert any(a.get("name") == "viewport" for _, a in reader.elements)
    html = page.to_html()
    assert html.count("<figcaption>") == html.count("<figure>") > 3
    assert "blue ranks up" not in html  # figures have no title


def test_headings_go_down_one_step_at_a_time_and_links_lead_somewhere(page):
    reader = Reader(page.to_html())
    levels = [int(tag[1]) for tag, _ in reader.elements if re.fullmatch(r"h[1-6]", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 2 for before, after in itertools.pairwise(levels))
    ids = [a["id"] for _, a in reader.elements if "id" in a]
    assert len(ids) == len(set(ids))
    targets = [a["href"][1:] for tag, a in reader.elements if tag == "a"]
    assert targets
    assert set(targets) <= set(ids)
    names = " ".join(a.get("aria-labelledby", "") for _, a in reader.elements).split()
    assert set(names) <= set(ids)
    assert len(names) > 3


def test_the_summary_has_the_numbers_of_evaluate_and_compare(page):
    material = page.material
    best = linrank.RankSVMCV(QUICK["Cs"], cv=5, scale="standard")
    with pytest.warns(UserWarning, match="largest of the grid"):
        best.fit(TRAIN.X, TRAIN.y, qid=TRAIN.qid)
    assert material.training.tuning.C == best.C_
    scores = RankSVM(C=best.C_, scale="standard", tol=1e-9).fit(TRAIN.X, TRAIN.y, qid=TRAIN.qid)
    truth = linrank.evaluate(TEST.y, scores.decision_function(TEST.X), qid=TEST.qid)
    assert material.evaluation["ndcg@10"] == pytest.approx(truth["ndcg@10"], abs=1e-6)
    told = page.to_dict()
    json.dumps(told)
    assert told["scoring"] == "ndcg@10"
    assert told["certified"] is True
    assert told["C"] == best.C_
    cell = material.comparison.cells[material.ranking.name, "ndcg@10"]
    text = " ".join(Reader(page.to_html()).text)
    for number in (f"{cell.mean:.3f}", f"[{cell.low:.3f}, {cell.high:.3f}]", "proven by duality"):
        assert number in text
    assert f"{cell.wins} · {cell.ties} · {cell.losses}" in text
    assert "No test query is among the training queries" in text


def test_it_is_saved_whole_and_shown_in_a_frame(page, tmp_path):
    path = tmp_path / "report.html"
    path.write_text("old")
    page.save(path)
    assert path.read_text(encoding="utf-8") == page.to_html()
    assert [p.name for p in tmp_path.iterdir()] == ["report.html"]
    with pytest.raises(FileNotFoundError):
        page.save(tmp_path / "nowhere" / "report.html")
    assert page._repr_html_().startswith('<iframe sandbox srcdoc="&lt;!doctype html&gt;')
    assert "ndcg@10" in repr(page)


@pytest.mark.usefixtures("plain")
def test_without_matplotlib_the_page_says_what_is_missing(page):
    html = replace(page).to_html()
    assert "<svg" not in html
    assert "pip install matplotlib" in html
    assert_stands_alone(html)


# ---- what is judged -----------------------------------------------------------------------------


def fitted(ranker):
    return ranker.fit(TRAIN.X, TRAIN.y, qid=TRAIN.qid)


GIVEN = {  # what is judged, what it is compared with, and what the page says
    "a model": (
        lambda: (fitted(RankSVM(C=0.01)), None),
        ("<code>--train</code> without <code>--model</code> trains", "Compared with nothing"),
    ),
    "a kernel": (
        lambda: (fitted(KernelRankSVM(kernel="rbf", C=0.1)), TEST.X[:, 0]),
        ("A kernel model (rbf) has no weights", "does not fall apart into", "Wrong pair 1"),
    ),
    "scores": (lambda: (TEST.X[:, 0], TEST.X[:, 1]), ("Scores were given",)),
    "zeros": (lambda: (LinearModel(np.zeros(6)), None), ("All weights are 0",)),
    "other width": (
        lambda: (LinearModel(np.ones(4)), None),
        ("model knows 4 features, the test data have 6",),
    ),
}


@pytest.mark.usefixtures("plain")
@pytest.mark.parametrize("kind", GIVEN)
def test_what_is_given_is_judged(kind):
    make, words = GIVEN[kind]
    model, against = make()
    page = linrank.report(TEST, model=model, against=against, n_resamples=200)
    html = page.to_html()
    for said in words:
        assert said in html
    assert page.material.training is None
    assert page.to_dict()["certified"] == {"a model": True, "a kernel": True}.get(kind)
    assert "Features that mislead most" not in html or kind not in ("zeros", "scores", "a kernel")
    assert_stands_alone(html)


@pytest.mark.usefixtures("plain")
def test_features_get_their_names():
    names = ["bm25", "age", "clicks", "length", "titles", "links"]
    html = linrank.report(TEST, train=TRAIN, feature_names=names, **QUICK).to_html()
    assert "clicks" in html
    assert "feature 2" not in html
    with pytest.raises(ValueError, match="2 feature names for 6 features"):
        linrank.report(TEST, train=TRAIN, feature_names=names[:2], **QUICK)


@pytest.mark.usefixtures("plain")
def test_rows_without_ids_are_one_query():
    train, test = (replace(part, qid=None) for part in (TRAIN, TEST))
    train, test = (Dataset.of(part.X, part.y) for part in (train, test))
    html = linrank.report(test, train=train, n_folds=2, **QUICK).to_html()
    assert "All rows" in html
    assert "one query, so no interval" in html
    assert "– to –" not in html
    assert_stands_alone(html)


@pytest.mark.parametrize(
    ("factor", "shift", "convention", "scoring"),
    [
        (20.0, 0.0, "linrank", "pairwise_accuracy"),  # too large for 2^y - 1
        (20.0, 0.0, "sklearn", "ndcg@10"),
        (1.0, -1.0, "linrank", "pairwise_accuracy"),
    ],
)
def test_labels_that_are_no_grades_are_judged_by_pairs(factor, shift, convention, scoring):
    train, test = (replace(part, labels=factor * part.labels + shift) for part in (TRAIN, TEST))
    page = linrank.report(test, train=train, convention=convention, **QUICK)
    assert page.material.scoring == scoring
    assert shift == 0 or not any("ndcg" in name for name in page.material.evaluation)


@pytest.mark.usefixtures("plain")
def test_an_error_is_shown_as_one():
    page = linrank.report(TEST, train=TRAIN, scoring="all_pairs_error", **QUICK)
    text = " ".join(Reader(page.to_html()).text)
    assert "all_pairs_error (lower is better)" in text
    values = [one.value for one in page.material.worst]
    assert values == sorted(values, reverse=True)


# ---- caveats ------------------------------------------------------------------------------------


def codes(page):
    return {caveat.code: caveat for caveat in page.material.caveats}


@pytest.mark.usefixtures("plain")
def test_test_queries_among_the_training_queries_are_told():
    leaked = TRAIN.select(TRAIN.qid < 5)
    both = Dataset.of(
        np.vstack((TEST.X, leaked.X)), np.r_[TEST.y, leaked.y], qid=np.r_[TEST.qid, leaked.qid]
    )
    page = linrank.report(both, train=TRAIN, **QUICK)
    found = codes(page)["leakage"]
    assert found.grave
    assert "5 of the 25 queries of the test data are in the training data too, row" in found.message
    html = page.to_html()
    assert "<strong>Warning.</strong> 5 of the 25" in html
    assert "Test queries are among the training queries." in html


def test_ids_that_are_only_numbered_anew_are_no_accusation():
    page = linrank.report(replace(TEST, qid=TEST.qid - 40), train=TRAIN, **QUICK)
    found = codes(page)["shared-ids"]
    assert not found.grave
    assert "20 of the 20 query ids of the test data also occur in the training" in found.message
    assert "of the grid" in codes(page)["edge-of-grid"].message
    assert "There are 20 test queries" in codes(page)["few-queries"].message
    (found,) = leakage_caveats({("valid", "train"): Overlap(9, 2, 2, "q7")})
    told = "2 of the 9 queries of the validation data are in the training data too, row by row"
    assert found.message.startswith(f"{told}, such as q7: ")
    assert "choice of C" in found.message


def test_findings_of_all_parts_are_told_once():
    train, test = (
        replace(part, rows=Dataset.of(np.c_[part.X, part.qid], part.y).rows)
        for part in (TRAIN, TEST)
    )
    page = linrank.report(test, train=train, n_worst=1, **QUICK)
    messages = [c.message for c in page.material.caveats if c.code == "constant-in-query"]
    assert len(messages) == 1
    assert messages[0].startswith("Test data: feature 6: the same value")
    assert "So it is in the training data" in messages[0]


# ---- strangers ----------------------------------------------------------------------------------

EVIL = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>&amp;\x00\x1b[31m"


class Ids:
    """Comments whose document ids come from a stranger."""

    def __init__(self, n):
        self.n = n

    def __len__(self):
        return self.n

    def docid(self, i):
        return f"{EVIL}{i}"

    def select(self, index):
        return Ids(len(np.arange(self.n)[index]))


def test_names_of_strangers_are_text():
    names = [f"{EVIL}{j}" for j in range(TEST.n_features)]
    ids = np.array([f"{EVIL}{q}" for q in TEST.qid])
    test = replace(TEST, qid=ids, comments=Ids(TEST.n_rows), source=EVIL)
    train = replace(TRAIN, qid=np.array([f"t{q}" for q in TRAIN.qid]), source=EVIL)
    names[0] = "n" * 10_000
    given = {"feature_names": names, "title": EVIL, "model_name": EVIL + "\udc80"}
    given |= {"against": test.X[:, 0], "against_name": EVIL + "T" * 9000}
    page = linrank.report(test, train=train, **given, **QUICK)
    html = page.to_html()
    html.encode()
    assert not re.search("n{200}|T{200}", html)
    reader = assert_stands_alone(html)
    assert not any(tag == "img" for tag, _ in reader.elements)
    assert "<script>alert(1)" in "".join(reader.text)  # as text it is there
    assert "\x00" not in html
    assert "\x1b" not in html
    frame = Reader(f"<div>{page._repr_html_()}</div>")
    assert [tag for tag, _ in frame.elements] == ["div", "iframe"]


# ---- refusals -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"test": "test.txt"}, r"test must be a Dataset, got str; linrank\.load"),
        ({}, "give a model, or training data"),
        ({"valid": True, "model": [1.0]}, "it needs train"),
        ({"model": [1.0, 2.0, 3.0]}, r"scores of shape \(3,\)"),
        ({"model": np.full(387, np.nan)}, "score of row 0 of model is NaN"),
        ({"model": {}}, "must be a model, a fitted estimator or scores, got dict"),
        ({"test": 4, "train": True}, r"has 4 features, .* 6; test and training data"),
    ],
)
def test_what_is_wrong_is_told(options, message):
    narrow = Dataset.of(TEST.X[:, :4], TEST.y, qid=TEST.qid)
    given = {"test": TEST} | options
    given |= {name: TRAIN for name in ("train", "valid") if name in given}
    given["test"] = narrow if given["test"] == 4 else given["test"]
    with pytest.raises((TypeError, ValueError), match=message):
        linrank.report(**given)


# ---- numbers ------------------------------------------------------------------------------------


def test_numbers_in_words():
    told = [p_value(p) for p in (0.5, 0.0123, 5e-5, float("nan"))]
    assert told == ["p = 0.50", "p = 0.012", "p < 0.0001", "p undefined"]
    assert power(9.96e-8).startswith('<span class="num">1.0 × 10<sup>−7')
    assert "1.0 × 10<sup>−15" in power(0.0)  # what rounding lets anyone know
    assert [push(x, 0.0334) for x in (-0.0334, 8.3e-5)] == ["−0.0334", "+0.0001"]
    assert [push(x) for x in (1234.5, -0.5, 2e-9)] == ["+1,234", "−0.500", "+2.00e−09"]
    assert interval(float("nan"), float("nan")) == ""
    assert interval(0.6921, 0.7629) == "[0.692, 0.763]"
    assert interval(-0.0312, 0.04, "+") == "[−0.031, +0.040]"
    assert (percent(1, 8), percent(1, 80), percent(1, 0)) == ("12%", "1.2%", "–")
    assert (short(55540.0), short(-0.25)) == ("55,540", "−0.25")


# ---- real data ----------------------------------------------------------------------------------


def test_mq2008_fits_a_mail():
    page = linrank.report(mq2008(5), train=mq2008(1, 2, 3), valid=mq2008(4), **QUICK)
    assert len(page.to_html().encode()) < 3_000_000
    assert page.to_dict()["certified"] is True
    assert "leakage" not in codes(page)
    assert 0.46 < page.material.evaluation["ndcg@10"] < 0.50
    # Uniform pairs reach 0.827: the weights of NDCG, which are the default, look at the top.
    assert page.material.evaluation["pairwise_accuracy"] == pytest.approx(0.82, abs=0.004)
    assert_stands_alone(page.to_html())
