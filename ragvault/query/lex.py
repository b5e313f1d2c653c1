"""Lex: a query becomes tokens.

Signs have a meaning only at the start of a word: 5" and f(x) and well-known are words. Text that
looks like an operator and cannot be one (http://x, 12:30, `Re: budget`) is a word too. If it may
have been meant as an operator, a warning says what to type.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from ragvault.errors import UsageError
from ragvault.query.operators import FOREIGN, OPERATORS, may_be_property, shorten, unescape
from ragvault.text.wikilinks import match_wikilink

TokenKind = Literal["open", "close", "minus", "or", "and", "word", "phrase", "operator", "property"]

_PHRASE = re.compile(r'"((?:[^"\\]|\\.)*)"', re.DOTALL)
_CURLY = re.compile("“([^“”]*)”")
_BACKTICKS = re.compile(r"`(\s*[^`\s][^`]*)`")  # with something between them
_OPERATOR = re.compile(r"([^\W\d_][\w-]*):(?!//)")
_SIGN = re.compile(r"(?:<=|>=|<|>|=)(?=[\"“])")
_NEGATED = re.compile(r"-(?=[\w\"“(\[#@`.]|[^\x00-\x7f])")  # not --flag, not ->, not a lone dash
_OPEN_PROPERTY = re.compile(r"\[[\w -]+:(?!:)")
_CONNECTIVES = {"OR": "or", "AND": "and"}
# What may follow a colon as a value: not a path, not another colon.
_UNKNOWN_VALUE = re.compile(r'[<>=]*(?:"[^"]*"|[^\s()\[\]"/\\:][^\s()\[\]"]*)')
# Names before a colon that are plainly not meant as operators.
_SCHEMES = frozenset(
    ("mailto", "tel", "sms", "urn", "data", "doi", "isbn", "arxiv", "localhost", "javascript")
)
WARNED_NAMES = 3  # of unknown names in one warning: pasted text may have many


@dataclass(frozen=True, slots=True)
class Token:
    """`text` is its meaning and `raw` what was typed.

    An operator has its `name`; its `text` is the value, or None if a group follows.
    """

    kind: TokenKind
    raw: str
    text: str | None = ""
    name: str = ""
    quoted: bool = False


class Lexer:
    """Reads one query from left to right and collects `warnings`."""

    def __init__(self, query: str) -> None:
        self.query = query
        self.warnings: list[str] = []
        self._unknown: dict[str, str] = {}  # name:value where the name is no operator
        self._closes = _brackets(query)
        self._at = 0
        self._depth = 0

    def tokens(self) -> Iterator[Token]:
        """Every token, in order. Raises UsageError for a quote, bracket or group left open."""
        while self._skip_space():
            start = self._at
            yield self._token()
            assert self._at > start
        if self._unknown:
            self.warnings.append(_unknown_operators(self._unknown))
        if self._depth:
            raise UsageError(
                "an opening parenthesis is never closed",
                fix="close it with ), or put the text in quotes",
            )

    def _skip_space(self) -> bool:
        while self._at < len(self.query) and self.query[self._at].isspace():
            self._at += 1
        return self._at < len(self.query)

    def _token(self) -> Token:
        char = self.query[self._at]
        if char == "(" and not self.query.startswith("()", self._at):
            self._depth += 1
            return self._take(1, "open")
        if char == ")" and self._depth:
            self._depth -= 1
            return self._take(1, "close")
        if _NEGATED.match(self.query, self._at):
            return self._take(1, "minus")
        if char in '"“' and (phrase := self._phrase()) is not None:
            return phrase
        if char == "[" and (found := self._property()) is not None:
            return found
        return self._enclosed() or self._operator() or self._word()

    def _take(self, length: int, kind: TokenKind, text: str | None = "") -> Token:
        raw = self.query[self._at : self._at + length]
        self._at += length
        return Token(kind, raw, text)

    def _phrase(self) -> Token | None:
        """A phrase in straight quotes, which must be closed, or in curly ones."""
        if curly := _CURLY.match(self.query, self._at):
            return self._take(len(curly[0]), "phrase", curly[1])
        if self.query[self._at] == "“":
            return None
        found = _PHRASE.match(self.query, self._at)
        if found is None:
            rest = shorten(self.query[self._at + 1 :])
            raise UsageError(
                f'an opening quote is never closed: "{rest}',
                fix=f'close it: "{rest}"; to search for a quote itself, write \\"',
            )
        return self._take(len(found[0]), "phrase", unescape(found[1]))

    def _property(self) -> Token | None:
        """Brackets around a property; None if they are something else."""
        if self.query.startswith("[[", self._at):
            return None
        end = self._closes.get(self._at)
        if end is None:
            if _OPEN_PROPERTY.match(self.query, self._at):
                rest = shorten(self.query[self._at :])
                raise UsageError(
                    f"an opening bracket is never closed: {rest}", fix="close it with ]"
                )
            return None
        inside = self.query[self._at + 1 : end]
        if not may_be_property(inside) or self.query.startswith("(", end + 1):  # [label](address)
            return None
        return self._take(end + 1 - self._at, "property", inside)

    def _enclosed(self) -> Token | None:
        """Words that belong together: `some code` and [[a link|its label]]."""
        if code := _BACKTICKS.match(self.query, self._at):
            return self._take(len(code[0]), "word", code[1])
        if link := match_wikilink(self.query, self._at):
            return self._take(len(link[0]), "word", re.sub("[#|]", " ", link["inside"]))
        return None

    def _operator(self) -> Token | None:
        match = _OPERATOR.match(self.query, self._at)
        if match is None:
            return None
        name, value_at = match[1].lower(), match.end()
        if name not in OPERATORS:
            self._warn_unknown(match[1], value_at)
            return None
        if self._nothing_at(value_at):
            self.warnings.append(
                f"“{match[0]}” has no value and was searched as text; "
                f"write the value without a space: {OPERATORS[name].example}"
            )
            return None
        start, self._at = self._at, value_at
        text, quoted = self._value()
        return Token("operator", self.query[start : self._at], text, name, quoted)

    def _nothing_at(self, at: int) -> bool:
        """Whether nothing follows this colon."""
        following = self.query[at : at + 1]
        return not following.strip() or (following == ")" and self._depth > 0)

    def _warn_unknown(self, name: str, value_at: int) -> None:
        """Note `name:value` with a name that is no operator, if it may have been meant as one."""
        if self._nothing_at(value_at):
            return
        if (known := FOREIGN.get(name.lower())) is not None:
            self.warnings.append(f"{name}: was searched as text; {known}")
        elif len(name) > 2 and (meant := _nearest_name(name, OPERATORS)):
            self.warnings.append(f"{name}: was searched as text; did you mean {meant}:?")
        elif (value := _unknown_value(name, self.query[value_at:])) is not None:
            self._unknown.setdefault(name, value)

    def _value(self) -> tuple[str | None, bool]:
        """The value after the colon, and whether it is in quotes; None if a group follows."""
        if self.query[self._at] == "(" and not self.query.startswith("()", self._at):
            return None, False
        sign = _SIGN.match(self.query, self._at)
        if sign:
            self._at = sign.end()
        if self.query[self._at] in '"“' and (phrase := self._phrase()) is not None:
            return (sign[0] if sign else "") + (phrase.text or ""), True
        if link := match_wikilink(self.query, self._at):
            self._at = link.end()
            return link[0], False
        word = self._word().raw
        return "" if word == "()" else word, False

    def _word(self) -> Token:
        """Everything up to the next space, or to the parenthesis that closes an open group."""
        start, inner = self._at, 0
        while self._at < len(self.query) and not self.query[self._at].isspace():
            char = self.query[self._at]
            if char == "(":
                inner += 1
            elif char == ")" and inner:
                inner -= 1
            elif char == ")" and self._depth and self._at > start:
                break
            self._at += 1
        raw = self.query[start : self._at]
        return Token(_CONNECTIVES.get(raw, "word"), raw, raw)  # type: ignore[arg-type]


def _brackets(text: str) -> dict[int, int]:
    """Where each opening bracket closes, for those that do. Brackets in quotes do not count."""
    closes: dict[int, int] = {}
    opened: list[int] = []
    at = 0
    while found := re.compile(r'[\[\]"]' if opened else r"\[").search(text, at):
        at = found.end()
        if found[0] == "[":
            opened.append(found.start())
        elif found[0] == "]":
            closes[opened.pop()] = found.start()
        elif quoted := _PHRASE.match(text, found.start()):
            at = quoted.end()
    return closes


# --- Names that are no operators ---


def _unknown_value(name: str, rest: str) -> str | None:
    """The value of an unknown `name:value`, for a warning; None if it is plainly something else.

    `rest` is what follows the colon: an address, a path, a port or a name in code needs no warning.
    """
    if len(name) == 1 or name.lower() in _SCHEMES:  # C:notes, mailto:me
        return None
    if rest.startswith("(") and not rest.startswith("()"):
        return "…"  # a group, which is not repeated
    found = _UNKNOWN_VALUE.match(rest)
    if found is None or not any(map(str.isalnum, found[0])):  # std::string, src:/x, note:)
        return None
    if name[-1].isdigit() and found[0][0].isdigit():  # web1:8080
        return None
    return found[0]


def _unknown_operators(values: dict[str, str]) -> str:
    """One warning for all unknown names; the first has an example of a property."""
    names = [f"“{shorten(name)}:”" for name in values]
    name, value = next(iter(values.items()))
    more = " …" if len(names) > WARNED_NAMES else ""
    are = "is not an operator and was" if len(names) == 1 else "are not operators and were"
    fix = f"for a property, write [{shorten(name)}:{shorten(value)}]"
    return f"{', '.join(names[:WARNED_NAMES])}{more} {are} searched as text; {fix}"


def _nearest_name(name: str, known: Iterable[str]) -> str:
    """The known name with one typing error (two in a long name); empty if there is none."""
    from ragvault.text.spelling import edit_distances  # brings numpy, and only a mistake needs it

    allowed = 1 if len(name) < 7 else 2
    names = list(known)
    distances = zip(edit_distances(name.lower(), names).tolist(), names, strict=True)
    return min((pair for pair in distances if pair[0] <= allowed), default=(0, ""))[1]
