"""The options of commands: those that all share, and those of a method, made of its parameters."""

from __future__ import annotations

import argparse
import math
import re
import sys
import textwrap
from argparse import Action, ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, NoReturn

from linrank.choices import ALGORITHMS, AUTO, AVERAGES, COLUMN_NAMES, MISSING, PAIR_WEIGHTINGS
from linrank.cli.console import terminal_width
from linrank.errors import nearest
from linrank.methods.base import (
    METHODS,
    Later,
    Method,
    Option,
    defaults_of,
    method_named,
    options_of,
)
from linrank.methods.parameters import PairLosses
from linrank.system.resources import parse_bytes

FORMATS = ("svmlight", "parquet", "arrow", "csv", "tsv")
ROLES = tuple(COLUMN_NAMES)  # of the columns of a table
UNJUDGED = ("zero", "drop", "error")
DTYPES = ("float32", "float64")
STANDARD = "-"  # as a file: standard input or output
NEEDED = ""  # the default of a file that has to be named
INDEX_BASE: dict[str, Any] = {"auto": "auto", "0": True, "1": False}  # whether it is 0

_MOST_VALUES = 1000  # of a grid: more is a slip of the pen

# ---- the parser ---------------------------------------------------------------------------------


class Help(argparse.RawDescriptionHelpFormatter):
    """Help as wide as the terminal, up to 100 columns."""

    def __init__(self, prog: str) -> None:
        width = max(40, min(terminal_width(1) or 80, 100))
        super().__init__(prog, max_help_position=26, width=width)

    def _format_action_invocation(self, action: Action) -> str:
        """``-o, --output FILE``, as Python 3.13 has it, for ``-o FILE, --output FILE``."""
        if not action.option_strings or action.nargs == 0:
            return super()._format_action_invocation(action)
        value = self._format_args(action, action.dest.upper())
        return f"{', '.join(action.option_strings)} {value}"


# Options of earlier versions.
MOVED = {
    "--memory": "is called --memory-limit",
    "--metrics": "is called -m, --metric",
    "--normalizers": "is gone: the scaling is always in the weights; leave it out",
    "--per-query": "is called -o, --output",
    "--plot": "is gone: draw a search in Python, with linrank.PathDisplay or linrank.GridDisplay",
    "--scoring": "is called -m, --metric",
}


@dataclass(frozen=True)
class Rule:
    """That an option needs or excludes others.

    Attributes
    ----------
    option, verb : str
        The option, and "needs" or "excludes".
    others : tuple of str
        Options, or files in capitals, any of which counts.
    values : tuple of str
        Values of the other option that count; all if there are none.
    what, why : str
        The sentence, and the reason or remedy behind it with its sign.
    """

    option: str
    verb: str
    others: tuple[str, ...]
    values: tuple[str, ...]
    what: str
    why: str

    @classmethod
    def parse(cls, line: str) -> Rule:
        """The rule of a line, as `Parser.rules` has it.

        >>> rule = Rule.parse("--stream needs --scale auto or none: others are known at the end")
        >>> rule.option, rule.verb, rule.others, rule.values, rule.why
        ('--stream', 'needs', ('--scale',), ('auto', 'none'), ': others are known at the end')
        """
        what = re.split("[:,]", line)[0]
        option, verb, other, *words = what.replace(" or ", " ").split()
        others = (other, *(word for word in words if word.startswith("-")))
        values = tuple(word for word in words if word.islower() and not word.startswith("-"))
        return cls(option, verb, others, values, what, line.removeprefix(what))


class Parser(ArgumentParser):
    """Says what is wrong in one line, without a screen of usage before it.

    Attributes
    ----------
    owners : dict
        Of options that it lacks, what they belong to.
    output : tuple
        What the command writes, as the help calls it, and where to by default; see `declare`.
    rules : str
        Which options do not go together: lines of ``ONE needs OTHER``, ``ONE excludes OTHER``,
        ``ONE needs OTHER value or value``, ``ONE needs OTHER or ANOTHER``; the reason or the remedy
        stands behind a colon or a comma. A line is the message of the error.
    assumed : dict
        Values of options that are not given, where the help does not hold them.
    """

    def __init__(self, *, rules: str = "", **options: Any) -> None:
        super().__init__(**options, formatter_class=Help, allow_abbrev=False)
        self.owners: dict[str, str] = {}
        self.output: tuple[str, str | None] | None = None
        self.rules = rules
        self.assumed: dict[str, Any] = {}

    def parse_args(self, args: Any = None, namespace: Any = None) -> Namespace:  # type: ignore[override]
        given = list(sys.argv[1:] if args is None else args)
        # First of all: argparse would complain of what a misspelled option leaves for others.
        for argument in given[: given.index("--")] if "--" in given else given:
            name = argument.partition("=")[0]
            if name.startswith("--") and name not in self._option_string_actions:
                self.error(self._unknown(name))
        found: Namespace
        # Options may stand between files: `train DATA -c 1 MODEL`, where MODEL need not be there.
        # Behind -- there are files alone, which argparse does not know when it looks twice.
        parse = self.parse_known_args if "--" in given else self.parse_known_intermixed_args
        found, unknown = parse(given, namespace)
        if unknown:
            self.error(self._unknown(unknown[0]))
        if self.output is not None:
            self._resolve_output(found, *self.output)
        return found

    def check_rules(self, args: Namespace) -> None:
        """Fail on options that do not go together."""
        for rule in map(Rule.parse, filter(None, self.rules.splitlines())):
            others = [self._name_of_value(other) for other in rule.others]
            if not find_given(args, [self._name_of_value(rule.option)]):
                continue
            value = getattr(args, others[0], None)
            value = self.assumed.get(others[0]) if value is None else value
            if rule.values:
                has_other = value in rule.values
            else:
                has_other = any(getattr(args, name) != NONE for name in find_given(args, others))
            if has_other == (rule.verb == "excludes"):
                found = f", not {value}" if rule.values and rule.verb == "needs" else ""
                self.error(f"{rule.what}{found}{rule.why}")

    def _name_of_value(self, option: str) -> str:
        """The name of what was given for an option, or for a file in capitals."""
        action = self._option_string_actions.get(option)
        return action.dest if action is not None else option.lower()

    def _resolve_output(self, args: Namespace, metavar: str, default: str | None) -> None:
        """Let ``args.output`` be the file of ``-o``, or the last of those named without it."""
        last = vars(args).pop("last", None)
        if last is not None and args.output is not None:
            self.error(
                f"-o {args.output} and {last} both name {metavar}, the file to write; give one"
            )
        args.output = args.output or last or default
        if args.output == NEEDED:
            self.error(f"say where to write {metavar}: -o {metavar}")
        if args.output == STANDARD and getattr(args, "json", False):
            self.error(
                f"--json and {metavar} would both be written to standard output (-), and exclude "
                f"each other; name a file with -o"
            )

    def _unknown(self, name: str) -> str:
        if not name.startswith("-"):
            return f"one argument too many: {name}"
        if name in self.owners:
            return f"{name} belongs to {self.owners[name]}"
        if name in MOVED:
            return f"{name} {MOVED[name]}"
        known = [*self._option_string_actions, *self.owners]
        near = nearest(name, known) if name.startswith("--") else None
        return f"unknown option {name}" + (f"; did you mean {near}?" if near else "")

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: error: {message}\n")


# ---- kinds of values ----------------------------------------------------------------------------


def number(
    is_fine: Callable[[float], bool],
    what: str,
    *words: str,
    of: Callable[[str], float] = float,
    hint: str = "",
) -> Callable[[str], Any]:
    """The kind that takes numbers of which a predicate holds, and a few words."""

    def convert(text: str) -> float | str:
        if text in words:
            return text
        try:
            value = of(text)
        except (ValueError, OverflowError):
            value = math.nan
        if not is_fine(value):
            raise ArgumentTypeError(f"must be {what}, got {text!r}{hint}")
        return value

    return convert


def integer(text: str) -> float:
    """An integer, which may be written as ``1e6``; NaN for any other number."""
    try:
        return int(text)
    except ValueError:
        value = float(text)
        return int(value) if value.is_integer() else math.nan


def integer_from(least: int, *words: str, hint: str = "") -> Callable[[str], Any]:
    """The kind that takes integers from a least one on, and a few words."""
    what = " or ".join([f"an integer ≥ {least}", *words])
    return number(lambda value: value >= least, what, *words, of=integer, hint=hint)


def above_zero(*words: str) -> Callable[[str], Any]:
    """The kind that takes finite numbers > 0, and a few words."""
    what = " or ".join(["finite and > 0", *words])
    return number(lambda value: 0 < value < math.inf, what, *words)


nonnegative = number(lambda value: 0 <= value < math.inf, "a finite number ≥ 0")
share = number(lambda value: 0 < value <= 1, "a number > 0 and ≤ 1")
n_folds = integer_from(2, hint="; for files, one per fold, say compare --fold-files")
n_jobs = number(
    lambda value: not math.isnan(value) and value != 0,
    "an integer ≥ 1, or -1 for all cores",
    of=integer,
)


def size_in_bytes(text: str) -> int:
    """The bytes of a size such as ``2GB`` or ``512MiB``; a bare number counts MB, as it always did.

    >>> size_in_bytes("1.5GB"), size_in_bytes("64")
    (1500000000, 64000000)
    """
    try:
        return parse_bytes(f"{text}MB" if text.isdecimal() else text)
    except ValueError:
        raise ArgumentTypeError(f"must be a size such as 2GB or 512MiB, got {text!r}") from None


def margin(text: str) -> float | tuple[str, float, float]:
    """A number, or ``log`` or ``linear`` with up to two constants: ``log:1,2.7``."""
    name, colon, rest = text.partition(":")
    try:
        constants = [float(part) for part in rest.split(",")] if colon else []
        if name in ("log", "linear") and len(constants) <= 2:
            k1, k2 = constants + [1.0, 0.0][len(constants) :]
            if math.isfinite(k1) and math.isfinite(k2):
                return name, k1, k2
        elif not colon and math.isfinite(float(text)):
            return float(text)
    except ValueError:
        pass
    raise ArgumentTypeError(
        f"must be a finite number, linear[:K1[,K2]] or log[:K1[,K2]], got {text!r}"
    )


def grid(text: str) -> list[float]:
    """``LOW:HIGH[:FACTOR]`` or ``C,C,...``; a number may be written as a power, ``2^-3``."""
    parts = text.split(":")
    if len(parts) == 1:
        return [_power(part) for part in text.split(",")]
    if len(parts) > 3:
        raise ArgumentTypeError(f"must be LOW:HIGH[:FACTOR] or a list, got {text!r}")
    low, high, factor = (*map(_power, parts), *([2.0] if len(parts) == 2 else []))
    if low > high or factor <= 1:
        raise ArgumentTypeError(f"needs LOW ≤ HIGH and FACTOR > 1, got {text!r}")
    n_steps = math.floor((math.log(high) - math.log(low)) / math.log(factor) + 1e-9)
    if n_steps >= _MOST_VALUES:
        raise ArgumentTypeError(
            f"{text!r} has {n_steps + 1:,} values, at most {_MOST_VALUES:,} are tried; "
            "use a larger FACTOR"
        )
    return [low * factor**k for k in range(n_steps + 1)]


def _power(text: str) -> float:
    base, power, exponent = text.partition("^")
    try:
        value = float(base) ** float(exponent) if power else float(text)
    except (ValueError, OverflowError, ZeroDivisionError):
        raise ArgumentTypeError(f"must be a number > 0, got {text!r}") from None
    if base.strip().startswith("-") or not (value > 0 and math.isfinite(value)):
        raise ArgumentTypeError(f"must be finite and > 0, got {text}")
    return value


def algorithms(text: str) -> tuple[str, ...]:
    """Names of algorithms, separated by commas."""
    return tuple(one_of(ALGORITHMS)(name) for name in text.split(","))


class Bounds(dict[str, tuple[float, float]]):
    """Bounds by feature, and the text that they were given as."""

    text: str


def bounds(text: str) -> Bounds:
    """Bounds by feature: entries separated by commas, or in the lines of ``@FILE``."""
    from linrank.cli.files import read_text
    from linrank.data.bounds import parse_bounds

    try:
        found = Bounds(parse_bounds(read_text(text[1:]) if text.startswith("@") else text))
    except ValueError as error:
        raise ArgumentTypeError(str(error)) from None
    found.text = text
    return found


def features(text: str) -> tuple[str, ...]:
    """Names or numbers of features, separated by commas."""
    return tuple(name.strip() for name in text.split(",") if name.strip())


def metrics(text: str) -> list[str]:
    """Names of metrics, separated by commas: not by those in parentheses, as in p(rel=2,...)@5."""
    found = [name for name in re.split(r",(?![^(]*\))", text) if name.strip()]
    if not found:
        raise ArgumentTypeError("needs the name of a metric, as ndcg@10")
    return found


def one_of(values: Sequence[Any]) -> Callable[[str], str]:
    """The kind that takes a few names; - and _ are one."""
    names = [value for value in values if value is not None]

    def choice(text: str) -> str:
        for name in names:
            if text.replace("-", "_") == name.replace("-", "_"):
                return str(name)
        near = nearest(text, names)
        hint = f"; did you mean {near}?" if near else ""
        if text in METHODS and not near:
            hint = f"; did you mean --method {text}?"
        raise ArgumentTypeError(f"must be one of {', '.join(names)}, got {text!r}{hint}")

    return choice


def device(text: str) -> str:
    """The processor, or a device by its name."""
    from linrank.system.device import check_device  # it takes NumPy, and few need it

    try:
        check_device(text)
    except ValueError as error:
        raise ArgumentTypeError(str(error).removeprefix("device ")) from None
    return text


def pair_weighting(text: str) -> str:
    """A way of weighting pairs by their labels, or a measure."""
    plain = text.replace("-", "_")
    if plain in (AUTO, *PAIR_WEIGHTINGS):
        return plain
    from linrank.losses.swaps import swap_measure  # it takes NumPy, and few need it

    try:
        swap_measure(text)
    except ValueError as error:
        raise ArgumentTypeError(str(error)) from None
    return text


# What values an option takes, by the kind of a parameter; see `linrank.methods.base.Option`.
# Beside them "flag" takes none, "choice" and "average" one of the choices of the parameter.
KINDS: dict[str, Callable[[str], Any]] = {
    "finite": number(math.isfinite, "a finite number"),
    "positive": above_zero(),
    "nonnegative": nonnegative,
    "share": share,
    "weight": above_zero("auto"),
    "width": above_zero("scale", "auto"),  # γ of a kernel
    "count": integer_from(1),
    "natural": integer_from(0),
    "steps": integer_from(1),
    "size": integer_from(1, "auto"),
    "size_in_bytes": size_in_bytes,
    "margin": margin,
    "grid": grid,
    "algorithms": algorithms,
    "bounds": bounds,
    "weighting": pair_weighting,
    "features": features,
    "device": device,
}
# Of options that are no parameters of a method.
_KINDS_OF_COMMANDS: dict[str, Any] = {
    "folds": n_folds,
    "jobs": n_jobs,
    "metrics": metrics,
    "formats": FORMATS,
    "unjudged": UNJUDGED,
    "dtype": DTYPES,
    "base": INDEX_BASE,
}

# ---- tables of options --------------------------------------------------------------------------

# A row of a table: an option as it is typed, what it takes, and what it is for; see `declare`.
_ROW = re.compile(
    r"""
    (?:(?P<short>-\w),[ ])?
    (?P<name>[][.\w-]+)
    (?P<repeated>\*?)
    (?:@(?P<dest>\w+))?
    (?:[ ](?P<metavar>[^\s:]+) (?: :(?P<kind>\w*) (?: =(?P<default>\S*) )? )? )?
    (?:[ ]{2,}(?P<help>.+))?
    """,
    re.VERBOSE,
)


def declare(parser: Any, table: str, **kinds: Any) -> None:
    """Declare the options of a table, which belong to a parser or to a group of one.

    ``  -n, --name METAVAR:kind=default  help``: a row begins with two blanks and goes on in lines
    that are indented farther. Without a METAVAR it is a flag, ``--[no-]name`` one that can be
    denied; without dashes it is a file that has to be named, or may be if it is in brackets.
    ``METAVAR...`` takes several values, ``{a,b}`` one of these; ``--name*`` may be repeated, and
    its kind makes lists, which are joined. A ``kind`` is one of `KINDS` or of ``kinds``, where it
    may also be the values to choose from. An empty default means that the option has to be given.
    ``--name@value`` keeps what was given under another name. Without help an option is not shown.
    A line that is not indented begins a group of that title.

    The kinds of ``--output`` are "output" and "last": of these, it may also be the last of the
    files that are named without an option.
    """
    group: Any = parser
    for line in re.sub(r"\n {3,}(?=\S)", " ", table).splitlines():
        if not line.startswith("  "):
            group = parser.add_argument_group(line.removesuffix(":")) if line else group
            continue
        row = _ROW.fullmatch(line.strip())
        assert row is not None, line
        short, name, repeated, dest, metavar, kind, default, about = row.groups()
        how: dict[str, Any] = {"help": about or argparse.SUPPRESS}
        if repeated:
            how["action"] = "extend"
        if dest:
            how["dest"] = dest
        if not name.startswith("-"):
            metavar = name
            name = name.strip("[].").lower()
        if "[" in name:
            name = name.replace("[no-]", "")
            how["action"] = argparse.BooleanOptionalAction
        elif metavar is None:
            how["action"] = "store_true"
        elif metavar.startswith("{"):
            how["choices"] = tuple(metavar[1:-1].split(","))
        else:
            how["metavar"] = re.sub(r"\[|\]|\b\.\.\.", "", metavar)
            is_optional = metavar.startswith("[")
            if re.fullmatch(r"\[?\w+\.\.\.\]?", metavar):
                how |= {"nargs": "*" if is_optional else "+", "default": []}
            elif is_optional:
                how["nargs"] = "?"
        of = {**KINDS, **_KINDS_OF_COMMANDS, **kinds}.get(kind)
        if of is not None:
            how["type" if callable(of) else "choices"] = of
        if kind in ("output", "last"):
            parser.output = metavar, default
            if kind == "last":
                parser.add_argument("last", metavar=metavar, nargs="?", help=argparse.SUPPRESS)
        elif default == NEEDED:
            how["required"] = True
        elif default is not None:
            how["default"] = of(default) if callable(of) else default
        group.add_argument(*([short] if short else []), name, **how)


def flags_in(table: str) -> list[str]:
    """The options of a table."""
    return re.findall(r"^  (--[\w-]+)", table, re.MULTILINE)


# ---- the options of a method --------------------------------------------------------------------


def add_method(
    parser: Parser,
    arguments: Sequence[str],
    parameters: Mapping[str, type],
    groups: Mapping[str, str],
) -> None:
    """Declare DATA, --method, and the options of the method that the arguments name, or the first.

    Nothing else in the arguments is looked at. The description gets a list of the methods, and the
    parser learns whose the options are that this method lacks.

    Parameters
    ----------
    parameters : mapping of str to type
        The dataclass of the parameters of each method that the command takes.
    groups : mapping of str to str
        Tables of what only some methods can do: learn from listed pairs ("preferences"), or from
        other places than memory. All options but the first of a group need it.
    """
    method, is_asked = _choose_method(parser, arguments, parameters)
    default = next(iter(parameters))
    rows = [f"`{parser.prog} --method NAME --help` has the options of each method:"]
    for name in [method.name] if is_asked else parameters:
        row = f"  {name:<12}{METHODS[name].summary}"
        rows += textwrap.wrap(row, 80, subsequent_indent=" " * 14)
    parser.description = (parser.description or "").format(methods="\n".join(rows))
    declare(parser, f"  DATA\n  --method NAME:str={method.name}  (default: {default})")
    add_parameters(parser, parameters[method.name], f"options of {method.name}")
    owners: dict[str, list[str]] = {}
    for name, own in parameters.items():
        tables = [table for title, table in groups.items() if _offers(METHODS[name], title)]
        flags = [flags_of(*option) for option in options_of(own).items()]
        for spelling in chain(*flags, *map(flags_in, tables)):
            owners.setdefault(spelling, []).append(name)
    for title, table in groups.items():
        if _offers(method, title):
            declare(parser, title + table)
            first = table.strip().partition("  ")[0]  # with what it takes
            needs = "".join(f"{name} needs {first}\n" for name in flags_in(table)[1:])
            parser.rules = needs + parser.rules  # first of all: the other rules are of the group
    parser.owners = {
        name: f"--method {' or '.join(filter(None, (', '.join(names[:-1]), names[-1])))}"
        for name, names in owners.items()
        if name not in parser._option_string_actions
    }


def _choose_method(
    parser: Parser, arguments: Sequence[str], methods: Collection[str]
) -> tuple[Method, bool]:
    """The method that the arguments name, or the first; and whether they do."""
    first = Parser(prog=parser.prog, add_help=False)
    first.add_argument("--method", metavar="NAME")
    first.add_argument("--auto", dest="method", action="store_const", const="auto")
    name: str | None = first.parse_known_args(list(arguments))[0].method
    try:
        method = method_named(next(iter(methods)) if name is None else name)
    except ValueError as error:
        parser.error(f"--method: {error}")
    if method.name not in methods:
        parser.error(f"--method {name} has no grid; tune takes {', '.join(methods)}")
    return method, name is not None


def _offers(method: Method, group: str) -> bool:
    """Whether a method has a group of options; listed pairs need a loss of a pair."""
    if group == "preferences":
        return issubclass(method.parameters, PairLosses)
    return group in method.places


def load(function: Callable[..., Any]) -> None:
    """Import a function of a method now rather than when it is called."""
    if isinstance(function, Later):
        function.load()


NONE = "none"


def flags_of(name: str, option: Option) -> tuple[str, ...]:
    """How a parameter is spelled on the command line."""
    return option.flags or (flag(name),)


def flag(name: str) -> str:
    """An option as it is typed."""
    return f"--{name.replace('_', '-')}"


def in_flags(message: str, parameters: type) -> str:
    """What the library says, with parameters as they are typed: ``max_iter`` is ``--max-iter``.

    >>> from linrank.methods.parameters import SGDParameters
    >>> in_flags("above tol·F; raise n_steps or tol", SGDParameters)
    'above tol·F; raise --n-steps or --tol'
    """
    for name, option in options_of(parameters).items():
        if "_" in name or name == "tol":  # others are words as well
            message = re.sub(rf"\b{name}\b(?!·)", flags_of(name, option)[-1], message)
    return message


def add_parameters(parser: Parser, parameters: type, title: str) -> None:
    """Declare the options of a method; their values stay None where they are not given."""
    group, defaults = parser.add_argument_group(title), defaults_of(parameters)
    options = options_of(parameters)
    # First those with a letter of their own, which are asked for most.
    for name in sorted(options, key=lambda name: len(flags_of(name, options[name])) == 1):
        option, told = options[name], options[name].told
        if told is None and not isinstance(defaults[name], bool) and defaults[name] is not None:
            told = str(defaults[name]).removesuffix(".0")
        about = option.help
        how: dict[str, Any] = {"dest": name, "metavar": option.metavar}
        if option.kind == "flag":
            how = {"dest": name, "action": "store_true", "default": None}
        elif option.choices:
            # None is what is not given, unless the default is another: then it has a name.
            shown = [value or NONE for value in option.choices[1:]]
            names = [str(value) for value in (option.choices[0], *shown) if value is not None]
            about, told = f"{about}: {_list_choices(names, told)}", None if told in names else told
            how["type"] = one_of(names)
            if option.kind == "average":
                how |= {"nargs": "?", "const": AVERAGES[0]}
        else:
            how["type"] = KINDS[option.kind]
        group.add_argument(
            *flags_of(name, option), **how, help=about + (f" (default: {told})" if told else "")
        )
        spelling, parser.assumed = flags_of(name, option)[-1], defaults
        others = [f"excludes {flags_of(other, options[other])[-1]}" for other in option.excludes]
        if option.needs and option.needs[0] in options:
            other, values = option.needs
            others.append(f"needs {flags_of(other, options[other])[-1]} {' or '.join(values)}")
        parser.rules += "".join(f"\n{spelling} {other}".rstrip() for other in others)


def _list_choices(names: Sequence[str], default: str | None) -> str:
    return ", ".join(f"{name} (default)" if name == default else name for name in names)


def parameters_of(args: Namespace, parameters: type) -> Any:
    """The parameters with the values that were given."""
    options = options_of(parameters)
    given = {name: getattr(args, name) for name in options if getattr(args, name) is not None}
    for name, value in given.items():
        choices = options[name].choices
        given[name] = None if value == NONE and choices and NONE not in choices else value
    made = parameters(**given)
    if "random_state" in options and "random_state" not in given:
        made.random_state = 0
    made.n_jobs = args.jobs
    return made


# ---- options that commands share ----------------------------------------------------------------


def find_given(args: Namespace, names: Sequence[str]) -> list[str]:
    """The options, by the names of their values, that were on the command line.

    A command may lack some.
    """
    values = {name: getattr(args, name, None) for name in names}
    # By identity: a number that is 0 was given, and equals False.
    return [name for name, value in values.items() if value is not None and value is not False]


def fill_in(args: Namespace, defaults: Mapping[str, object]) -> None:
    """Give options that were not on the command line their values; a command may lack some."""
    for name, default in defaults.items():
        if getattr(args, name, default) is None:
            setattr(args, name, default)


_READING = f"""
  --format NAME:formats     {", ".join(FORMATS)} (default: by content and name)
  --no-sidecars             ignore FILE.query, .group, .weight, .position"""
_JUDGMENTS = """
  --qrels FILE              labels by query and document, as TREC has them
  --unjudged HOW:unjudged   rows without a judgment: zero (default), drop, error"""
_MISSING = f"""
  --missing {{{",".join(MISSING)}}}  what a missing value (NaN, null) of a table means: an error
      (default), 0, or the mean of the feature; a model scores by what it was trained with"""
_VALUES = """
  --dtype TYPE:dtype        float32 (default of text) or float64 in memory; a table or store has its
                            own
  --index-base N:base=auto  number of the first feature: 0, 1 or auto (default)
  -j, --jobs N:jobs         {jobs} (default: all cores available)"""


def add_common(
    parser: ArgumentParser,
    *,
    judgments: bool = True,
    missing: bool = True,
    features: str = "--features",
    jobs: str = "threads",
    json: bool = True,
) -> None:
    """How data files are read, how many threads (or other ``jobs``) there are; and `add_reporting`.

    Without ``judgments``, labels are those of the files: the command has a --qrels of its own;
    without ``missing``, what happens to missing values is a matter of the method. ``features`` is
    the name of the option that chooses columns.
    """
    group = parser.add_argument_group(
        "reading",
        "--label, --qid, --docid, --weight, --position COLUMN\n"
        "                        roles of the columns of a table; 'none' for none\n"
        "                        (default: known by name, as label, qid, relevance)",
    )
    tables = [f"\n  --{role} COLUMN" for role in ROLES]
    about = "as 'bm25*,!bm25_url' (default: all other numbers, or what a model knows)"
    tables += [f"\n  {features}@features COLUMNS  {about}", _READING]
    tables += [_JUDGMENTS] * judgments + [_MISSING] * missing + [_VALUES.format(jobs=jobs)]
    declare(group, "".join(tables))
    add_reporting(parser, json=json)


def add_reporting(parser: ArgumentParser, *, json: bool = True) -> None:
    """How much is said on standard error, and whether a program reads standard output."""
    if json:
        declare(parser, "  --json  one JSON object on standard output")
    volume = parser.add_mutually_exclusive_group()
    declare(volume, "  -q, --quiet  only errors and warnings")
    declare(volume, "  -v, --verbose  every step; a traceback with an error")


def metric_options(default: str, selects: str | None = None) -> str:
    """The table of the metrics and their convention; ``selects`` says what the first of them does.

    It is "alone" where there is one metric only.
    """
    several = "; several with commas or repeated" if selects != "alone" else ""
    several += f"; the first {selects}" if selects not in (None, "alone") else ""
    return f"""
  -m, --metric*@metrics METRIC:metrics  e.g. ndcg@10, map, p@5, err@10{several} (default: {default})
  --convention NAME:str=linrank  rules for gains, ties: linrank (default), letor, mslr, trec_eval
      (of runs), sklearn, lightgbm, xgboost
"""
