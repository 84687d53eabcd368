"""The sections of the page: how good the ranking is, the model, its training and its data."""

from __future__ import annotations

import math
import platform
from dataclasses import asdict
from typing import Any

import numpy as np

from linrank import __version__, displays
from linrank.data import Array
from linrank.judging.compare import Cell
from linrank.judging.inspect import Profile
from linrank.metrics import parse
from linrank.models.additive import AdditiveModel
from linrank.reports import html
from linrank.reports.html import clear, figure, interval, paragraph, table, text, value
from linrank.reports.material import WORDS, Material, Training, match_features
from linrank.solvers.result import certified_share, distance_text
from linrank.system import Column, Table, count, resolve

SHIFTED = 5  # queries named at each end
NAMED = 6  # queries that no ranking can order


def header(material: Material, title: str) -> str:
    """Title, verdict and caveats."""
    test = material.test
    rows = count(test.n_rows, "document")
    queries = count(test.queries.n_queries, "query", "queries")
    about = paragraph(f"{text(test.source)}: {rows} of {queries}", "small")
    verdict = paragraph(_verdict(material), "verdict")
    kicker = f'<p class="kicker">linrank report</p>\n<h1>{text(title)}</h1>'
    return "\n".join((kicker, about, verdict, html.notices(material.caveats)))


def _verdict(material: Material) -> str:
    """Two or three sentences that a reader may take away."""
    cell = material.comparison.cells[material.ranking.name, material.scoring]
    scoring = text(material.scoring)
    lines = [
        f"<strong>{text(material.ranking.name)}</strong> reaches <strong class=num>{scoring} "
        f"{value(cell.mean)}</strong> {_ends(cell)}."
    ]
    if (rival := material.against) is not None:
        lines.append(_against(material, rival.name, cell))
    bound = certificate(material)
    if bound is not None:
        lines.append(bound[2])
    return " ".join(lines)


def _ends(cell: Cell) -> str:
    """The interval, or why there is none."""
    ends = interval(cell.low, cell.high)
    if not ends:
        return "(one query, so no interval)" if cell.n_queries == 1 else "(no interval)"
    return f'<span class="num">{ends}</span>'


def _against(material: Material, name: str, cell: Cell) -> str:
    rival = f"<em>{text(name)}</em>"
    verdict = material.comparison.verdict(material.ranking.name, material.scoring)
    sizes = (
        f'<span class="num">{value(cell.difference, "+")}</span>, {html.p_value(cell.p_corrected)}'
    )
    known = value(material.comparison.cells[name, material.scoring].mean)
    if cell.wins == cell.losses == 0:
        return f"On every query it does as well as {rival}, no better and no worse."
    if cell.n_queries == 1:
        return f"{rival} has {known}; one query cannot tell whether the difference is chance."
    if verdict == "better":
        return f"It beats {rival} ({known}): {sizes}, so chance is an unlikely explanation."
    if verdict == "worse":
        return f"It is <strong>worse</strong> than {rival} ({known}): {sizes}."
    return (
        f"It is <strong>not shown to differ</strong> from {rival} ({known}): {sizes}; these "
        "queries cannot tell the two apart."
    )


def certificate(material: Material) -> tuple[str, str, str] | None:
    """Of the fit: a word, a detail, a sentence; None where nothing is known of it."""
    training: Any = {} if material.ranking.model is None else material.ranking.model.training
    objective, gap = training.get("objective"), training.get("gap")
    if not isinstance(objective, float) or not isinstance(gap, (int, float)) or math.isnan(gap):
        return None
    share, converged = certified_share(objective, gap), bool(training.get("converged", True))
    if share is None:
        detail = distance_text(objective, gap, converged)
        return "no", detail, f"Of the objective of the fit, {detail}."
    detail = f"at most {html.power(share)} of the objective above its minimum"
    if not converged:
        return "no", detail, f"The fit stopped before its tolerance: it is {detail}."
    return "yes", detail, f"The fit is certified: {detail}, proven by duality."


def summary_dict(material: Material) -> dict[str, Any]:
    """What the top of the page says, as plain values, ready for JSON."""
    bound, test = certificate(material), material.test
    sizes = {"rows": test.n_rows, "queries": test.queries.n_queries, "pairs": test.queries.n_pairs}
    model, against = (
        None if one is None else {"name": one.name, "about": one.about}
        for one in (material.ranking, material.against)
    )
    worst = []
    for one in material.worst:
        numbers = {"value": one.value, "pairs": one.n_pairs, "wrong": one.n_wrong}
        worst.append({"id": one.id, **numbers})
    return {
        "model": model,
        "against": against,
        "test": {"source": test.source, **sizes},
        "scoring": material.scoring,
        "C": None if material.training is None else material.training.tuning.C,
        "certified": None if bound is None else bound[0] == "yes",
        "comparison": material.comparison.to_dict(),
        "worst_queries": worst,
        "caveats": [asdict(caveat) for caveat in material.caveats],
    }


def measures(material: Material) -> tuple[str, ...]:
    """All measures in a table."""
    comparison, name, rival = material.comparison, material.ranking.name, material.against
    level = f"{100 * comparison.confidence:g}% interval"
    headings = [f"mean [{level}]", "queries"]
    if rival is not None:
        headings += ["against", f"difference [{level}]", "p", "won · tied · lost"]
    rows = []
    for metric in comparison.metrics:
        cell = comparison.cells[name, metric]
        arrow = "" if comparison.higher_is_better(metric) else " (lower is better)"
        mean = f"{value(cell.mean)} {interval(cell.low, cell.high)}"
        row = [metric + arrow, mean, f"{cell.n_queries:,}"]
        if rival is not None:
            ends = interval(cell.difference_low, cell.difference_high, "+")
            row += [value(comparison.cells[rival.name, metric].mean)]
            row += [f"{value(cell.difference, '+')} {ends}"]
            row += [html.p_value(cell.p_corrected).removeprefix("p ").removeprefix("= ")]
            row += [f"{cell.wins:,} · {cell.ties:,} · {cell.losses:,}"]
        rows.append(row)
    content = Table([Column("measure", "left"), *map(Column, headings)], rows, "", _notes(material))
    return _lede(material), table(content)


def _lede(material: Material) -> str:
    if material.against is None:
        return (
            "Every measure, with the interval that other queries of the same kind would have given."
        )
    name, comparison = material.ranking.name, material.comparison
    verdicts = [comparison.verdict(name, metric) for metric in comparison.metrics]
    better, worse = verdicts.count("better"), verdicts.count("worse")
    rival = f"<em>{text(material.against.name)}</em>"
    if better or worse:
        rest = f", worse by {worse}" if worse else ""
        said = f"It is better than {rival} by {better} of {len(verdicts)} measures{rest}."
    else:
        said = f"By none of the {len(verdicts)} measures can it be told from {rival}."
    return f"{said} A p of 0.05 or less says that chance alone would seldom do this."


def _notes(material: Material) -> list[str]:
    notes, queries = material.comparison.legend(), material.test.queries
    n_flat = int(np.count_nonzero(queries.n_levels == 1))
    if n_flat:
        have = "has" if n_flat == 1 else "have"
        which = f"{n_flat:,} of {count(queries.n_queries, 'query', 'queries')} {have}"
        notes.append(f"{which} one label only: no ranking can do better or worse on them.")
    told = [note for note in notes if not note.startswith("verdict")]  # the lede has that
    return [clear(html.typeset(note)) for note in told]


def by_query(material: Material) -> tuple[str, ...]:
    """The scatter of two rankings, the histogram, and the queries that moved most."""
    scoring, rival = material.scoring, material.against
    own = material.evaluation.per_query[scoring]
    is_flat = material.test.queries.n_levels == 1
    spread = None
    if not np.isnan(own).all():
        spread = displays.QueryHistogramDisplay(own, scoring, is_flat=is_flat)
    gray = _name_flat_queries(material, own, is_flat)
    told = f"How {text(scoring)} is spread over the queries.{gray}"
    histogram = figure(spread, told) or html.MISSING
    if rival is None:
        how = "Compared with nothing: <code>--against</code> a model or scores, or "
        how += "<code>--train</code> data, of which the best single feature is taken, adds the "
        how = paragraph(f"{how}picture of both.", "absent")
        lede = "A mean hides what single queries get. Look for a heap at the low end."
        return lede, html.columns(histogram), how
    lede = (
        "A mean hides what single queries get: a change that helps many a little may ruin a few. "
        "Points above the diagonal are queries that the model serves better."
    )
    other = material.evaluations[rival.name].per_query[scoring]
    names, ids = (material.ranking.name, rival.name), material.test.queries.ids
    both, open_ = None, np.where(is_flat, np.nan, own)
    if not np.isnan(open_ + other).all():
        both = displays.QueryScatterDisplay(open_, other, names, scoring, ids)
    caption = (
        f"Each point is a test query: {text(scoring)} of <em>{text(rival.name)}</em> to the right, "
        f"of <strong>{text(material.ranking.name)}</strong> upwards; large points are several "
        "queries."
    )
    lost, won = _largest_changes(material, own, other)
    return lede, html.columns(figure(both, caption) + lost, histogram + won)


def _name_flat_queries(material: Material, own: Array, is_flat: Array) -> str:
    """What the gray part of the histogram is, by name."""
    found = np.flatnonzero(is_flat & ~np.isnan(own))
    ids = material.test.queries.ids
    if not len(found) or ids is None:
        return ""
    shown = ", ".join(f"<em>{text(ids[q])}</em>" for q in found[:NAMED].tolist())
    more = f" and {len(found) - NAMED:,} more" if len(found) > NAMED else ""
    return (
        f" Gray: {count(len(found), 'query', 'queries')} whose documents all have the same label, "
        f"so that no ranking can order them: {shown}{more}."
    )


def _largest_changes(material: Material, own: Array, other: Array) -> list[str]:
    """Tables of the queries with the largest losses, and of those with the largest gains."""
    gain = (own - other) * (1.0 if parse(material.scoring).higher_is_better else -1.0)
    known = np.flatnonzero(~np.isnan(gain) & (np.abs(gain) > 1e-9))
    order = known[np.argsort(gain[known], kind="stable")]
    queries = material.test.queries
    ids, sizes = queries.ids, np.diff(queries.offsets)
    headings = ("documents", "model", "against", "difference")
    tables = []
    for sign, title, told in (
        (-1, "Largest losses", "of the queries lose; these lose most. Look at them first."),
        (1, "Largest gains", "of the queries gain; these gain most."),
    ):
        n = int(np.count_nonzero(sign * gain[known] > 0))
        rows = []
        for q in order[::-sign][: min(SHIFTED, n)].tolist():
            name, values = "all rows" if ids is None else clear(ids[q]), (own[q], other[q])
            difference = value(own[q] - other[q], "+")
            rows.append([name, f"{sizes[q]:,}", *map(value, values), difference])
        said = paragraph(f"{html.percent(n, len(gain))} {told}", "small")
        content = Table([Column("query", "left"), *map(Column, headings)], rows)
        tables.append(f"<h3>{title}</h3>{said}{table(content)}" if rows else "")
    return tables


# ---- the model, its training and its data ----------------------------------------------------


DRAWN = 25  # weights in the picture at most
LISTED = 200  # weights in the table at most
NOISE = 1e-9  # of the largest


def weights(material: Material) -> tuple[str, ...]:
    """The section on weights."""
    additive, model = material.ranking.model, material.ranking.linear
    if isinstance(additive, AdditiveModel):
        told = "What the features that matter most add to a score, by their value."
        names = material.names[: additive.n_features]
        return told, figure(displays.CurvesDisplay.from_estimator(additive, names=names), told)
    if model is None:
        why = paragraph(text(material.ranking.why_unexplained), "absent")
        return "Which features move documents up and down.", why
    data = match_features(material.test, model)
    rows = model.scaling.transform(data.rows, data.queries)
    deviation = np.sqrt(rows.scan(None, resolve(None)).statistics.variance)
    moved = model.coef * deviation
    order = np.argsort(-np.abs(moved), kind="stable")
    # Rounding leaves traces of weights on features that no pair tells apart.
    order = order[np.abs(moved[order]) > NOISE * np.abs(moved).max()]
    if not order.size:
        return ("All weights are 0: the model gives every document the same score.",)
    verb = "counts" if len(order) == 1 else "count"
    lede = (
        f"{len(order):,} of {count(model.n_features, 'feature')} {verb}. The bars are "
        "weight × standard deviation of the feature in the test data, what it typically moves a "
        f"score by; the largest is <strong>{text(material.names[int(order[0])])}</strong>. Among "
        "features that say the same, weights can be split in any way: a small bar does not make a "
        "feature useless."
    )
    names, n_drawn = material.names[: model.n_features], min(DRAWN, len(order))
    told = "To the right: more of the feature moves a document up; to the left: down."
    shown = displays.WeightsDisplay(model.coef, names, n_drawn, deviation)
    drawn = figure(shown, told, width=6.0)
    listed = []
    for j in order[:LISTED].tolist():
        listed.append([clear(material.names[j]), *map(html.short, (model.coef[j], moved[j]))])
    n_left = len(order) - len(listed)
    notes = [f"{n_left:,} smaller ones are left out."] if n_left else []
    what = "The weight" if len(listed) == 1 else f"All {len(listed)} weights"
    what = f"The {len(listed)} largest weights" if n_left else what
    headings = [Column("feature", "left"), Column("weight"), Column("weight × deviation")]
    numbers = table(Table(headings, listed, notes=notes))
    return lede, drawn or html.MISSING, html.details(f"{what} as numbers", numbers)


def training(material: Material) -> tuple[str, ...]:
    """The section on training."""
    training, scoring = material.training, material.scoring
    if training is None:
        how = (
            "<code>--train</code> without <code>--model</code> trains a model here, and shows the "
            "regularization path, the choice of C and the convergence."
        )
        return _describe_given_model(material), paragraph(how, "absent")
    tuning, result, scale = training.tuning, training.result, training.model.scaling.kind
    bound, scaled = certificate(material), f"features scaled ({scale})"
    fit = (
        f"Linear RankSVM, squared hinge on all {training.model.training['n_pairs']:,} pairs, "
        f"{'features as they are' if scale == 'none' else scaled}: objective <span class=num>"
        f"{result.value:.8g}</span> after {count(result.n_iter, 'Newton step')}. "
        + ("" if bound is None else bound[2])
    )
    lede = (
        f"Of {count(len(tuning.path), 'value')} of C, from strong to weak regularization, "
        f"C = {tuning.C:.4g} ranks the queries of {text(training.judged_on)} best "
        f"({text(scoring)} {value(float(tuning.mean_scores[tuning.chosen]))}). {_shape(training)}"
    )
    sign = 1.0 if parse(scoring).higher_is_better else -1.0
    band = ", with one standard error over the folds" if len(tuning.scores) > 1 else ""
    told = f"{text(scoring)} on unseen queries by C{band}. Dashed: the C that was taken."
    shown = displays.PathDisplay(tuning.path, sign * tuning.scores, tuning.C, scoring)
    path = figure(shown, told, width=6.0) or html.MISSING
    told = "How far the objective of the chosen fit is from its minimum at most, step by step: "
    told += "both curves are proven bounds."
    steps = figure(displays.ConvergenceDisplay(training.result.history), told)
    numbers = html.details("The path as numbers", table(_path_table(material, training)))
    details = html.details("How the fit converged", steps) if steps else ""
    return lede, path, paragraph(fit), numbers, details


def _shape(training: Training) -> str:
    """Whether the choice matters, in a sentence."""
    means = training.tuning.mean_scores
    near = training.tuning.Cs[means >= means.max() - 0.005]
    if len(near) == len(means):
        return "All are within 0.005 of each other: the choice hardly matters."
    if len(near) == 1:
        return "No other value of the grid comes within 0.005 of it: a finer grid may do better."
    matters = "hardly matters" if near.max() >= 8 * near.min() else "matters"
    return f"From {near.min():.4g} to {near.max():.4g} all are within 0.005: the choice {matters}."


def _path_table(material: Material, training: Training) -> Table:
    tuning, path, many = training.tuning, training.tuning.path, len(training.tuning.scores) > 1
    columns = {
        "C": [f"{C:.6g}" for C in tuning.Cs],
        material.scoring: [value(abs(mean)) for mean in tuning.mean_scores],
    }
    if many:
        columns["deviation"] = [value(one) for one in tuning.scores.std(axis=0, ddof=1)]
    columns |= {
        "objective": [f"{objective:.6g}" for objective in path.objectives],
        "gap / objective": [f"{share:.1e}" for share in path.gaps / path.objectives],
        "norm": [html.short(norm) for norm in path.norms],
        "": ["← taken" if k == tuning.chosen else "" for k in range(len(path))],
    }
    where = "over folds" if many else "on the validation data"
    rows = [*zip(*columns.values(), strict=True)]
    return Table([*map(Column, columns)], rows, notes=[f"{material.scoring} {where}."])


def _describe_given_model(material: Material) -> str:
    model = material.ranking.model
    if model is None:
        return "Scores were given: how they came to be is not known here."
    known = {key: item for key, item in model.training.items() if item is not None}
    words = {"C": "C = {}", "loss": "loss {}", "solver": "solver {}"}
    words |= {"n_rows": "{:,} training documents", "n_queries": "{:,} queries"}
    words["n_pairs"] = "{:,} pairs"
    told = [words[key].format(known[key]) for key in words if key in known]
    return "The model was given. Its file says: " + (text(", ".join(told)) or "nothing") + "."


SHOWN_LABELS = 8  # more distinct labels than this are summarized


def data(material: Material) -> tuple[str, ...]:
    """The section on data."""
    headings = [Column("", "left"), *(Column(WORDS[name], "left") for name in material.parts)]
    by_part = [_facts(profile) for profile in material.profiles.values()]
    rows = [[fact, *(facts[fact] for facts in by_part)] for fact in by_part[0]]
    told = "Test data. How many documents have each label, and how many documents a query has."
    drawn = figure(displays.LabelsDisplay.from_dataset(material.test), told)
    return _data_lede(material), table(Table(headings, rows)), drawn or html.MISSING


def _data_lede(material: Material) -> str:
    overlap = material.overlaps.get(("test", "train"))
    if "train" not in material.parts:
        told = "<code>--train</code> adds the training data, and looks for test queries among them."
    elif overlap is None:
        told = "No test query is among the training queries, neither by its id nor by its rows."
    elif overlap.n_rows:
        told = "<strong>Test queries are among the training queries.</strong>"
    else:
        told = "Test and training queries share ids, but no rows."
    return f"What the numbers rest on. {told}"


def _facts(profile: Profile) -> dict[str, str]:
    data, sizes = profile.data, profile.rows_per_query
    queries, n_useless = data.queries, int(np.count_nonzero(~profile.columns.varies_in_query))
    return {
        "source": clear(data.source),
        "queries": f"{queries.n_queries:,}" + ("" if data.qid is not None else " (no qid)"),
        "documents": f"{data.n_rows:,}",
        "documents per query": f"{sizes.min():,} to {sizes.max():,}, median {np.median(sizes):,g}",
        "features": f"{data.n_features:,}",
        "features without use": f"{n_useless:,}",
        "pairs of different labels": f"{queries.n_pairs:,}",
        "queries without a pair": f"{int(np.count_nonzero(queries.n_levels == 1)):,}",
        "labels": _labels(profile),
    }


def _labels(profile: Profile) -> str:
    values, counts = profile.labels
    if len(values) > SHOWN_LABELS:
        return f"{len(values):,} distinct, {values[0]:g} to {values[-1]:g}"
    shares = 100.0 * counts / counts.sum()
    return ", ".join(f"{v:g}: {share:.0f}%" for v, share in zip(values, shares, strict=True))


def method(material: Material) -> tuple[str, ...]:
    """The section that says how to read and repeat the page."""
    comparison = material.comparison
    ranking = material.ranking
    words = [f"<strong>Judged:</strong> {text(ranking.name)}, {text(ranking.about)}."]
    if (rival := material.against) is not None:
        words.append(f"<strong>Against:</strong> {text(rival.name)}, {text(rival.about)}.")
    words += [
        f"<strong>Measures:</strong> {text(html.typeset(comparison.convention.describe()))}.",
        "<strong>Worst queries:</strong> by the first measure, then by wrong pairs. The wrong "
        "pairs shown cost most DCG, (2<sup>y</sup> − 1 of one less that of the other) × (discount "
        "of one place less that of the other), no document twice; labels below 0 or above 30 count "
        "as y itself. The score of a linear model is a "
        "sum over features, so the difference of two scores is the sum of weight × "
        "difference of values.",
        f"<strong>Seeds:</strong> resampling {comparison.seed}. The same files and options "
        "give the same numbers.",
    ]
    lede = "What was computed, so that it can be checked and repeated."
    return lede, *map(paragraph, words)


def footer(material: Material, date: str) -> str:
    """Version, date, size."""
    n_queries = count(material.test.queries.n_queries, "test query", "test queries")
    return (
        f"Made by linrank {text(__version__)} with Python {platform.python_version()} on "
        f"{text(date)} from {n_queries}. This file is complete: it loads nothing, runs no script."
    )
