"""The top of a page: what was judged, how good it is, against what, and what to beware of."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from linrank.metrics import parse
from linrank.reports.html import notices, paragraph, text, tiles
from linrank.reports.pictures import count, interval, p_value, power, signed, value

if TYPE_CHECKING:
    from linrank.judging.compare import Cell
    from linrank.reports.material import Material

LOOSE = 0.01  # a proven bound wider than this share of F says little


def header(material: Material, title: str) -> str:
    """Title, verdict, key figures and caveats."""
    test = material.test
    rows = count(test.n_rows, "document")
    queries = count(test.queries.n_queries, "query", "queries")
    return "\n".join(
        (
            '<p class="kicker">linrank report</p>',
            f"<h1>{text(title)}</h1>",
            paragraph(f"{text(test.source)}: {rows} of {queries}", "small"),
            paragraph(_verdict(material), "verdict"),
            tiles(_figures(material)),
            notices(material.caveats),
        )
    )


def _cell(material: Material) -> Cell:
    return material.comparison.cells[material.ranking.name, material.scoring]


def _verdict(material: Material) -> str:
    """Two or three sentences that a reader may take away."""
    cell, scoring = _cell(material), text(material.scoring)
    lines = [
        f"<strong>{text(material.ranking.name)}</strong> reaches <strong class=num>{scoring} "
        f"{value(cell.mean)}</strong> ({_interval_text(material, cell.low, cell.high)})."
    ]
    if material.against is not None:
        lines.append(_against(material, cell))
    bound = certificate(material)
    if bound is not None:
        lines.append(bound[2])
    return " ".join(lines)


def _interval_text(
    material: Material, low: float, high: float, *, difference: bool = False, sep: str = " "
) -> str:
    """The interval with its level, or why there is none."""
    if math.isnan(low) or math.isnan(high):
        return "one query, so no interval" if _cell(material).n_queries == 1 else "no interval"
    level = f"{100 * material.comparison.confidence:g} % interval"
    return f'{level}{sep}<span class="num">{interval(low, high, difference=difference)}</span>'


def _against(material: Material, cell: Cell) -> str:
    if material.against is None:
        return ""
    rival = f"<em>{text(material.against.name)}</em>"
    verdict = material.comparison.verdict(material.ranking.name, material.scoring)
    sizes = f'<span class="num">{signed(cell.difference)}</span>, {p_value(cell.p_corrected)}'
    known = value(material.comparison.cells[material.against.name, material.scoring].mean)
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
    share = gap / objective if objective > 0 else 0.0
    detail = f"at most {power(share)} of the objective above its minimum"
    if not training.get("converged", True):
        return "no", detail, f"The fit stopped before its tolerance: it is {detail}."
    if share > LOOSE:
        sentence = f"The solver has converged; what is proven is weaker, {detail}."
        return "loosely", detail, sentence
    return "yes", detail, f"The fit is certified: {detail}, proven by duality."


def _figures(material: Material) -> list[tuple[str, str, str]]:
    cell, comparison = _cell(material), material.comparison
    better = "higher" if parse(material.scoring).higher_is_better else "lower"
    shown = [
        (
            f"{text(material.scoring)} ({better} is better)",
            value(cell.mean),
            f"{_interval_text(material, cell.low, cell.high, sep='<br>')}<br>over "
            f"{count(cell.n_queries, 'query', 'queries')}, rules of "
            f"{text(comparison.convention.name)}",
        )
    ]
    if material.against is not None:
        ends = _interval_text(
            material, cell.difference_low, cell.difference_high, difference=True, sep="<br>"
        )
        tested = f"<br>{p_value(cell.p_corrected)}, {_test(comparison.test)}"
        shown += [
            (
                f"Against {text(material.against.name)}",
                signed(cell.difference),
                ends + (tested if cell.n_queries > 1 else ""),
            ),
            (
                "Queries won, tied, lost",
                f"{cell.wins:,} · {cell.ties:,} · {cell.losses:,}",
                f"by {text(material.scoring)} of each query",
            ),
        ]
    bound = certificate(material)
    if bound is not None:
        shown.append(("Fit certified", bound[0], bound[1]))
    return shown


def _test(name: str) -> str:
    return {"t": "paired t test", "bootstrap": "bootstrap test"}.get(name, f"{name} test")


def summary_dict(material: Material) -> dict[str, Any]:
    """What the top of the page says, as plain values, ready for JSON."""
    bound = certificate(material)
    return {
        "model": {"name": material.ranking.name, "about": material.ranking.about},
        "against": None
        if material.against is None
        else {"name": material.against.name, "about": material.against.about},
        "test": {
            "source": material.test.source,
            "rows": material.test.n_rows,
            "queries": material.test.queries.n_queries,
            "pairs": material.test.queries.n_pairs,
        },
        "scoring": material.scoring,
        "C": None if material.training is None else material.training.C,
        "certified": None if bound is None else bound[0] == "yes",
        "comparison": material.comparison.to_dict(),
        "worst_queries": [
            {"id": one.id, "value": one.value, "pairs": one.n_pairs, "wrong": one.n_wrong}
            for one in material.worst
        ],
        "caveats": [
            {"code": one.code, "message": one.message, "grave": one.grave}
            for one in material.caveats
        ],
    }
