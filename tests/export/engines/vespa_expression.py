"""Vespa's ranking expressions: tokens, grammar and values, as far as scalars go.

Rules: numbers, rank features such as ``bm25(title)`` and ``fieldMatch(title).completeness``,
operators in the documented order of precedence (``^ % / * - + && ||``, then comparisons), ``if``,
and the documented functions of numbers. All values are doubles. The value of a feature of a
document that lacks it is NaN, and NaN goes through every operation, except ``isNan``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from engines.rules import Refused, require

_TOKEN = re.compile(
    r"(?P<space>[ \n\r\t]+|\#[^\n\r]*)"
    r"|(?P<word>[A-Za-z0-9_@][A-Za-z0-9_@$]*)"
    r"|(?P<string>\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*')"
    r"|(?P<sign><=|>=|==|!=|~=|&&|\|\||[-+*/%^()\[\]{},.:$!<>])"
)
# Longer than the word with which it starts only when it has a point or a signed exponent.
_NUMBER = re.compile(r"[0-9]+(\.[0-9]*)?([eE][-+]?[0-9]+)?(?![A-Za-z0-9_@$])")

_PRECEDENCE = {"||": 1, "&&": 2, "+": 3, "-": 4, "*": 5, "/": 6, "%": 7, "^": 8}
_COMPARISONS = ("<=", ">=", "==", "!=", "~=", "<", ">")
_OPERATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": np.divide,
    "%": np.fmod,
    "^": np.power,
    "&&": lambda a, b: ((a != 0) & (b != 0)) * 1.0,
    "||": lambda a, b: ((a != 0) | (b != 0)) * 1.0,
    "<=": lambda a, b: (a <= b) * 1.0,
    ">=": lambda a, b: (a >= b) * 1.0,
    "==": lambda a, b: (a == b) * 1.0,
    "!=": lambda a, b: (a != b) * 1.0,
    "<": lambda a, b: (a < b) * 1.0,
    ">": lambda a, b: (a > b) * 1.0,
    "~=": lambda a, b: (np.abs(a - b) < 1e-6) * 1.0,
}
_UNARY: dict[str, Callable[[Any], Any]] = {
    **{name: getattr(np, name) for name in ("ceil", "cos", "exp", "fabs", "floor", "log", "log10")},
    **{name: getattr(np, name) for name in ("sin", "sqrt", "tan", "tanh")},
    "abs": np.abs,
    "isNan": lambda x: np.isnan(x) * 1.0,
    "relu": lambda x: np.maximum(x, 0.0),
    "sigmoid": lambda x: 1.0 / (1.0 + np.exp(-x)),
}
_BINARY: dict[str, Callable[[Any, Any], Any]] = {
    **{"fmod": np.fmod, "max": np.maximum, "min": np.minimum, "pow": np.power},
}

Value = Any  # a double, or an array of doubles, one for each document
Environment = Callable[[str], Value]
Node = Callable[[Environment], Value]


def evaluate(text: str, environment: Environment) -> Value:
    """The value of an expression, given the values of the features that it names."""
    parser = _Parser(_tokens(text))
    node = parser.expression()
    parser.end()
    with np.errstate(all="ignore"):
        return node(environment)


def canonical(reference: str) -> str:
    """A feature in the form in which the environment is asked for it."""
    parser = _Parser(_tokens(reference))
    name = parser.reference()
    parser.end()
    return name


def by_name(values: Mapping[str, Value], others: Environment) -> Environment:
    """The values of these features; all else is asked of `others`."""
    known = {canonical(name): value for name, value in values.items()}
    return lambda name: known[name] if name in known else others(name)


def unknown(name: str) -> Value:
    raise Refused(f"rank feature {name} is not there")


@dataclass(frozen=True)
class _Token:
    kind: str
    text: str


def _tokens(text: str) -> list[_Token]:
    tokens, at = [], 0
    while at < len(text):
        number = _NUMBER.match(text, at)
        match = number or _TOKEN.match(text, at)
        require(match, f"an expression has no {text[at : at + 1]!r}: {text[at : at + 30]!r}")
        kind = "number" if number else match.lastgroup
        at = match.end()
        if kind != "space":
            tokens.append(_Token(kind, match.group()))
    return tokens


class _Parser:
    def __init__(self, tokens: list[_Token]) -> None:
        self._tokens = tokens
        self._at = 0

    def end(self) -> None:
        require(self._at == len(self._tokens), f"text after the end: {self._peek()!r}")

    def expression(self) -> Node:
        node = self._arithmetic(0)
        while self._peek() in _COMPARISONS:
            node = _applied(_OPERATIONS[self._take()], node, self._arithmetic(0))
        return node

    def reference(self) -> str:
        """A feature: a name, perhaps with arguments, perhaps with outputs."""
        require(self._kind() == "word", f"a feature cannot start with {self._peek()!r}")
        name = self._take()
        if self._peek() == "(":
            name += f"({','.join(self._list(self._argument))})"
        while self._peek() == ".":
            self._take()
            require(self._kind() in ("word", "number"), "an output after the point")
            name += "." + self._take()
        return name

    def _arithmetic(self, least: int) -> Node:
        node = self._value()
        while _PRECEDENCE.get(self._peek(), -1) > least:
            operation = self._take()
            right = self._arithmetic(_PRECEDENCE[operation])
            node = _applied(_OPERATIONS[operation], node, right)
        return node

    def _value(self) -> Node:
        if self._peek() == "!":
            self._take()
            return _applied(lambda x: (x == 0) * 1.0, self._value())
        if self._peek() == "-":
            self._take()
            return _applied(np.negative, self._value())
        if self._peek() == "(":
            (node,) = self._list(self.expression)
            return node
        if self._kind() == "number":
            number = float(self._take())
            require(np.isfinite(number), "a constant beyond the doubles")
            return lambda environment: np.float64(number)
        return self._named()

    def _named(self) -> Node:
        name, called = self._peek(), self._peek(1) == "("
        if called and name == "if":
            self._take()
            arguments = self._list(self.expression)
            require(len(arguments) in (3, 4), "if has a condition and two values")
            condition, yes, no = arguments[:3]
            return lambda e: np.where(condition(e) != 0, yes(e), no(e))
        for table, arity in ((_UNARY, 1), (_BINARY, 2)):
            if called and name in table:
                self._take()
                arguments = self._list(self.expression)
                require(len(arguments) == arity, f"{name} takes {arity} arguments")
                return _applied(table[name], *arguments)
        feature = self.reference()
        return lambda environment: environment(feature)

    def _argument(self) -> str:
        """A constant, a feature or a name, as text."""
        if self._kind() in ("number", "string"):
            return self._take()
        return self.reference()

    def _list(self, item: Callable[[], Any]) -> list[Any]:
        self._expect("(")
        items = [] if self._peek() == ")" else [item()]
        while self._peek() == ",":
            self._take()
            items.append(item())
        self._expect(")")
        return items

    def _peek(self, ahead: int = 0) -> str:
        at = self._at + ahead
        return self._tokens[at].text if at < len(self._tokens) else ""

    def _kind(self) -> str:
        return self._tokens[self._at].kind if self._at < len(self._tokens) else "end"

    def _take(self) -> str:
        require(self._at < len(self._tokens), "the expression ends too early")
        self._at += 1
        return self._tokens[self._at - 1].text

    def _expect(self, text: str) -> None:
        require(self._peek() == text, f"expected {text!r}, found {self._peek()!r}")
        self._at += 1


def _applied(operation: Callable[..., Any], *nodes: Node) -> Node:
    return lambda environment: operation(*(node(environment) for node in nodes))
