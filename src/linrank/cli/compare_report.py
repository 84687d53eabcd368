"""What ``linrank compare`` says: on the way, on standard output, in a file."""

from __future__ import annotations

import argparse
import json
import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from linrank.cli.console import seconds, terminal_width
from linrank.cli.streams import STANDARD, check_writable, show_standard, write_lines, write_standard

if TYPE_CHECKING:
    from linrank.cli.console import Console
    from linrank.judging.compare import Comparison
    from linrank.judging.contest.result import Contest

FORMATS = (".txt", ".md", ".html", ".json")

_PAGE = """\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>linrank compare</title>
<style>
:root {{ color-scheme: light dark; }}
body {{ font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 76rem; }}
</style>
</head>
<body>
<h1>Which method to ship</h1>
{body}
</body>
</html>
"""


def check_output(path: str, parser: argparse.ArgumentParser) -> None:
    """Fail on a file that could not be written, or whose format its name does not tell."""
    if path == STANDARD:
        parser.error("-o needs the name of a file; the tables are on standard output anyway")
    if not path.lower().endswith(FORMATS):
        parser.error(f"--output {path}: the name must end in {', '.join(FORMATS)}")
    check_writable(path)


@contextmanager
def say_warnings(console: Console) -> Iterator[None]:
    """Warnings of the library as lines of the console."""
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = lambda message, *_, **__: console.warn(str(message))
        yield


def contest_progress(console: Console) -> Callable[[dict[str, Any]], None]:
    """What is shown of a contest on its way."""

    def show_state(state: dict[str, Any]) -> None:
        done = f"{state['n_done']} of {state['n_total']} fits"
        if state["event"] == "running":
            left = state["seconds_left"]
            estimate = "" if left is None else f"  about {duration(left)} left"
            console.status(_fitted(f"{done}{estimate}  ", state["running"], terminal_width(2)))
            return
        name = f"{state['method']}, fold {state['fold']}"
        if state["status"] == "done":
            score = f"{state['scoring']} {abs(state['score']):.4f} on validation"
            console.detail(f"{done}  {name}: {score} in {seconds(state['seconds'])}")
        else:
            console.say(state["status"], f" {name}: {state['why']}")

    return show_state


def _fitted(beginning: str, names: Sequence[str], width: int | None) -> str:
    """As many names as fit in a line: one that wraps could not be redrawn in place.

    Examples
    --------
    >>> _fitted("2 of 9 fits  ", ["forest", "gbdt", "kernel"], 40)
    '2 of 9 fits  forest, gbdt, kernel'
    >>> _fitted("2 of 9 fits  ", ["forest", "gbdt", "kernel"], 33)
    '2 of 9 fits  forest and 2 more'
    """
    for n in range(len(names), 0, -1):
        more = "" if n == len(names) else f" and {len(names) - n} more"
        line = beginning + ", ".join(names[:n]) + more
        if width is None or len(line) < width:
            return line
    return beginning.rstrip()[: width and width - 1]


def duration(left: float) -> str:
    """A time to wait, no finer than it is known: ``40 s``, ``5 min``.

    Examples
    --------
    >>> duration(3.2), duration(44), duration(290), duration(7000)
    ('5 s', '45 s', '5 min', '1 h 57 min')
    """
    if left < 57.5:
        return f"{max(5, 5 * round(left / 5))} s"
    minutes = max(1, round(left / 60))
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def show(result: Contest | Comparison, args: argparse.Namespace, console: Console) -> None:
    """The result on standard output, and in the file that was asked for."""
    if args.output is not None:
        write_lines(args.output, [_in_format(result, os.path.splitext(args.output)[1].lower())])
        console.say("saved", args.output)
    if args.json:
        write_standard(_json(result))
    else:
        show_standard(result.to_text(terminal_width(1)) + "\n")


def _in_format(result: Contest | Comparison, extension: str) -> str:
    if extension == ".json":
        return _json(result)
    if extension == ".html":
        return _PAGE.format(body=result.to_html())
    return (result.to_markdown() if extension == ".md" else result.to_text()) + "\n"


def _json(result: Contest | Comparison) -> str:
    from linrank import __version__

    report = {"command": "compare", "linrank": __version__, **result.to_dict()}
    return json.dumps(report, ensure_ascii=False, allow_nan=False) + "\n"


def show_methods(as_json: bool) -> None:
    """All methods, and whether their packages are here."""
    from linrank.judging.contest.methods import METHODS
    from linrank.system.tables import Column, Table

    if as_json:
        known = [
            {
                "name": method.name,
                "family": method.family,
                "description": method.description,
                "grid": method.grid,
                "installed": not method.is_missing,
            }
            for method in METHODS.values()
        ]
        write_standard(json.dumps(known, ensure_ascii=False) + "\n")
        return
    columns = [Column(name, "left") for name in ("method", "by", "what it is", "candidates")]
    rows = [
        [
            method.name,
            method.family + (" (not installed)" if method.is_missing else ""),
            method.description,
            method.grid,
        ]
        for method in METHODS.values()
    ]
    show_standard(Table(columns, rows).to_text(terminal_width(1)) + "\n")
