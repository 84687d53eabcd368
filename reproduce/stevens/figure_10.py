"""Figures 6, 7 and 10: how sparse the models are, and what that costs."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from reproduce.page import Claim, Page, laid_out, table
from reproduce.stevens import text
from reproduce.stevens.text import INDUCTION, PAMIR, SEQUENTIAL

Values = Mapping[str, Mapping[str, float]]

LITTLE = 0.02  # of the average precision of the sequential model: 0.014 and 0.010 in the thesis
FEWER = 5.0  # times fewer weights
# Of the thesis: Corel-Small-Easy (Figures 6 and 7) and Google's images (Figure 10).
THESIS: dict[str, Values] = {
    "Corel": {
        PAMIR: {"AP": 0.4522, "all-pairs error": 0.0935, "weight density": 0.6282},
        INDUCTION: {"AP": 0.438, "all-pairs error": 0.1114, "weight density": 0.4332},
        SEQUENTIAL: {"AP": 0.444, "all-pairs error": 0.1059, "weight density": 0.7468},
    },
    "Google": {
        PAMIR: {"AP": 0.0506, "all-pairs error": 0.2344, "weight density": 0.9663},
        INDUCTION: {"AP": 0.0495, "all-pairs error": 0.2367, "weight density": 0.0568},
        SEQUENTIAL: {"AP": 0.0500, "all-pairs error": 0.2132, "weight density": 0.9856},
    },
}
QUANTITIES: dict[str, Callable[[Values], str]] = {
    "AP, PAMIR": lambda v: f"{v[PAMIR]['AP']:.4f}",
    "AP, sequential": lambda v: f"{v[SEQUENTIAL]['AP']:.4f}",
    "AP, induction": lambda v: f"{v[INDUCTION]['AP']:.4f}",
    "AP, induction by sequential": lambda v: f"{loss(v):+.1%}",
    "AP, induction less PAMIR": lambda v: f"{v[INDUCTION]['AP'] - v[PAMIR]['AP']:+.4f}",
    "weight density, PAMIR": lambda v: f"{v[PAMIR]['weight density']:.4f}",
    "weight density, sequential": lambda v: f"{v[SEQUENTIAL]['weight density']:.4f}",
    "weight density, induction": lambda v: f"{v[INDUCTION]['weight density']:.4f}",
    "weights, PAMIR by induction": lambda v: f"{ratio(v):.3g}",
    "all-pairs error, PAMIR": lambda v: f"{v[PAMIR]['all-pairs error']:.4f}",
    "all-pairs error, induction": lambda v: f"{v[INDUCTION]['all-pairs error']:.4f}",
}


def reproduce(quick: bool) -> Page:
    found = text.found(quick)
    ours = {name: text.values(found, name) for name in text.names_of(found)}
    columns = {**ours, **{f"thesis, {name}": v for name, v in THESIS.items()}}
    return Page(
        "Figures 6, 7 and 10: sparsity and its price",
        claims(ours),
        [
            table(
                "Precision and weights",
                ["quantity", *columns],
                [[name, *(show(v) for v in columns.values())] for name, show in QUANTITIES.items()],
                [
                    "the sets have no counterpart in each other, so that there is no difference to "
                    "take: what is compared is the sign and the size of the effects",
                    "PAMIR of the thesis: 10^6 steps on Corel, 10^9 on Google's images, where "
                    "after 10^8 it had a higher average precision, 0.0552",
                ],
            ),
            *(laid_out(one) for one in found.tables if ": test measures" in one.title),
        ],
        text.PROTOCOL,
        found.pictures,
    )


def claims(ours: Mapping[str, Values]) -> list[Claim]:
    losses = {name: loss(v) for name, v in ours.items()}
    ratios = {name: ratio(v) for name, v in ours.items()}
    errors = {
        name: v[INDUCTION]["all-pairs error"] - v[PAMIR]["all-pairs error"]
        for name, v in ours.items()
    }
    return [
        Claim(
            "Feature induction costs little average precision against training every feature.",
            all(value > -LITTLE for value in losses.values()),
            ", ".join(f"{name} {value:+.1%}" for name, value in losses.items())
            + f" (thesis: Corel {loss(THESIS['Corel']):+.1%}, Google "
            f"{loss(THESIS['Google']):+.1%}).",
        ),
        Claim(
            "Its models have far fewer weights than PAMIR's.",
            all(value > FEWER for value in ratios.values()),
            ", ".join(f"{name} {value:.0f} times fewer" for name, value in ratios.items())
            + f" (thesis: Corel {ratio(THESIS['Corel']):.1f}, Google "
            f"{ratio(THESIS['Google']):.0f}).",
        ),
        Claim(
            "PAMIR, which trains pairs, has the lower all-pairs error.",
            all(value > 0 for value in errors.values()),
            "induction less PAMIR: "
            + ", ".join(f"{name} {value:+.4f}" for name, value in errors.items())
            + ".",
        ),
    ]


def loss(values: Values) -> float:
    """What induction changes in average precision, relative to every feature."""
    return values[INDUCTION]["AP"] / values[SEQUENTIAL]["AP"] - 1


def ratio(values: Values) -> float:
    """Weights of PAMIR by those of induction."""
    return values[PAMIR]["weight density"] / values[INDUCTION]["weight density"]
