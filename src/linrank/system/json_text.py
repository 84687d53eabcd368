"""JSON that may be damaged, foreign or hostile: what it would make is counted before it is made."""

from __future__ import annotations

import json
import re
from typing import Any, NoReturn

MAX_BRACKETS = 64  # no document of linrank has more lists and objects, nor nests deeper
MAX_NUMBER_LENGTH = 64
# Where a number begins, so that the places inside one are not tried again.
_LONG_NUMBER = re.compile(rb"(?<![-+.0-9eE])[-+.0-9eE]{%d}" % (MAX_NUMBER_LENGTH + 1))

_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")


class MalformedJSON(ValueError):
    """The text is no JSON, or no JSON that has one meaning; the message says where and why."""


class TooMuchJSON(MalformedJSON):
    """The text would make more than the document can hold."""


def parse(content: bytes, max_values: int) -> Any:
    """The value of a JSON text of at most that many values, lists and objects.

    Time and memory are linear in the text: a value can take 25 times the memory of its text, so
    values are counted first, by counting and cutting alone. NaN, infinities by name and keys that
    come twice are refused, and so are strings that are no text.

    Examples
    --------
    >>> parse(b'{"a": [1, 2.5]}', max_values=10)
    {'a': [1, 2.5]}
    >>> parse(b"[" * 1000, max_values=10)
    Traceback (most recent call last):
        ...
    linrank.system.json_text.TooMuchJSON: more lists and objects than 64
    """
    _check_bulk(content, max_values)
    try:
        found = json.loads(
            content.decode(), object_pairs_hook=_distinct, parse_constant=_reject_constant
        )
        if _SURROGATE.search(content):  # two of them are a letter, one alone is none
            json.dumps(found, ensure_ascii=False).encode()
        return found
    except UnicodeEncodeError:
        raise MalformedJSON("a string has half of a surrogate pair, which is no letter") from None
    except UnicodeDecodeError as error:
        raise MalformedJSON(f"not a text file (byte {error.start} is not UTF-8)") from None
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise MalformedJSON(f"not JSON at {where} ({error.msg})") from None


def _check_bulk(content: bytes, max_values: int) -> None:
    # Without escaped characters, each quote begins or ends a string: every second piece between
    # quotes lies in one. A string that does not end goes to the end of the text.
    plain = content.replace(b"\\\\", b"").replace(b'\\"', b"")
    if plain.count(b'"') > 2 * max_values:
        raise TooMuchJSON(f"more than {max_values} values")
    skeleton = b"".join(plain.split(b'"')[::2])
    if skeleton.count(b"[") + skeleton.count(b"{") > MAX_BRACKETS:
        raise TooMuchJSON(f"more lists and objects than {MAX_BRACKETS}")
    if skeleton.count(b",") > max_values:
        raise TooMuchJSON(f"more than {max_values} values")
    if _LONG_NUMBER.search(skeleton):
        raise TooMuchJSON(f"a number of more than {MAX_NUMBER_LENGTH} characters")


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise MalformedJSON(f"the key {key[:80]!r} occurs twice")
        found[key] = value
    return found


def _reject_constant(name: str) -> NoReturn:
    raise MalformedJSON(f"holds {name}, which is not a finite number")


class Invalid(Exception):
    """What is wrong with some contents, before it is said which file they came from.

    ``remedy`` is what to do about it, where that is not what is always to be done.
    """

    def __init__(self, problem: str, remedy: str | None = None) -> None:
        super().__init__(problem)
        self.problem, self.remedy = problem, remedy


def take(holder: dict[str, Any], key: str, types: tuple[type, ...], where: str = "") -> Any:
    """The value of a key that has to be there, of one of the types."""
    if key not in holder:
        raise Invalid(f"the key {where + key!r} is missing")
    value = holder[key]
    if type(value) not in types:  # not isinstance: True is no number here
        expected = " or ".join("null" if t is type(None) else t.__name__ for t in types)
        raise Invalid(f"{where + key!r} is a {type(value).__name__}, expected {expected}")
    return value
