"""Lex: a query becomes tokens.

Signs mean something only where a word begins: 5" and f(x) and well-known are words. What looks
like an operator and cannot be one (http://x, 12:30, `Re: budget`) is a word too, and where it was
perhaps meant as one, a warning says so.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from ragvault.query.hints import strangers, value_of
from ragvault.query.mistakes import near, shown, wrong
from ragvault.query.operators import FOREIGN, OPERATORS
from ragvault.query.properties import is_text, unescaped

Kind = Literal["open", "close", "minus", "or", "and", "word", "phrase", "operator", "property"]

_PHRASE = re.compile(r'"((?:[^"\\]|\\.)*)"', re.DOTALL)
_CURLY = re.compile("“([^“”]*)”")
_BACKTICKS = re.compile(r"`(\s*[^`\s][^`]*)`")  # something stands between them
_WIKILINK = re.compile(r"!?\[\[([^\[\]]+)\]\]")
_OPERATOR = re.compile(r"([^\W\d_][\w-]*):(?!//)")
_SIGN = re.compile(r"(?:<=|>=|<|>|=)(?=[\"“])")
_NEGATED = re.compile(r"-(?=[\w\"“(\[#@`.]|[^\x00-\x7f])")  # not --flag, not ->, not a lone dash
_PROPERTY_BEGUN = re.compile(r"\[[\w -]+:(?!:)")
_SHOUTED = {"OR": "or", "AND": "and"}


@dataclass(frozen=True, slots=True)
class Token:
    """`text` is what it says and `raw` what was typed.

    An operator has its `name`; its `text` is the value, or None where a group follows.
    """

    kind: Kind
    raw: str
    text: str | None = ""
    name: str = ""
    quoted: bool = False


class Lexer:
    """Reads one query from left to right; `warnings` are filled on the way."""

    def __init__(self, query: str) -> None:
        self.query = query
        self.warnings: list[str] = []
        self._strangers: dict[str, str] = {}  # names that are no operators, and their values
        self._closes = _brackets(query)
        self._at = 0
        self._depth = 0

    def tokens(self) -> Iterator[Token]:
        """Every token, in order. Raises UsageError for what is opened and never closed."""
        while self._skip_space():
            start = self._at
            yield self._token()
            assert self._at > start
        self.warnings += strangers(self._strangers)
        if self._depth:
            raise wrong(
                "a parenthesis is opened and never closed",
                "close it with ), or put the text in quotes",
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

    def _take(self, length: int, kind: Kind, text: str | None = "") -> Token:
        raw = self.query[self._at : self._at + length]
        self._at += length
        return Token(kind, raw, text)

    def _phrase(self) -> Token | None:
        """A phrase in straight quotes, which must be closed, or in curly ones, which should be."""
        if curly := _CURLY.match(self.query, self._at):
            return self._take(len(curly[0]), "phrase", curly[1])
        if self.query[self._at] == "“":
            return None
        found = _PHRASE.match(self.query, self._at)
        if found is None:
            rest = shown(self.query[self._at + 1 :])
            raise wrong(
                f'a quote is opened and never closed: "{rest}',
                f'close it: "{rest}"; a quote that is meant itself is written \\"',
            )
        return self._take(len(found[0]), "phrase", unescaped(found[1]))

    def _property(self) -> Token | None:
        """Brackets around a property; None where they are something else."""
        if self.query.startswith("[[", self._at):
            return None
        end = self._closes.get(self._at)
        if end is None:
            if _PROPERTY_BEGUN.match(self.query, self._at):
                begun = shown(self.query[self._at :])
                raise wrong(f"a bracket is opened and never closed: {begun}", "close it with ]")
            return None
        inside = self.query[self._at + 1 : end]
        if is_text(inside) or self.query.startswith("(", end + 1):  # [label](destination)
            return None
        return self._take(end + 1 - self._at, "property", inside)

    def _enclosed(self) -> Token | None:
        """Words that stand together: `some code` and [[a link|its label]]."""
        if code := _BACKTICKS.match(self.query, self._at):
            return self._take(len(code[0]), "word", code[1])
        if link := _WIKILINK.match(self.query, self._at):
            return self._take(len(link[0]), "word", re.sub("[#|]", " ", link[1]))
        return None

    def _operator(self) -> Token | None:
        match = _OPERATOR.match(self.query, self._at)
        if match is None:
            return None
        name, value_at = match[1].lower(), match.end()
        if name not in OPERATORS:
            self._hint(match[1], value_at)
            return None
        if self._nothing_at(value_at):
            self.warnings.append(
                f"“{match[0]}” has nothing behind it and was searched as text; "
                f"an operator takes its value without a space: {OPERATORS[name].example}"
            )
            return None
        start, self._at = self._at, value_at
        text, quoted = self._value()
        return Token("operator", self.query[start : self._at], text, name, quoted)

    def _nothing_at(self, at: int) -> bool:
        """Does nothing stand behind this colon?"""
        following = self.query[at : at + 1]
        return not following.strip() or (following == ")" and self._depth > 0)

    def _hint(self, name: str, value_at: int) -> None:
        if self._nothing_at(value_at):
            return
        if (known := FOREIGN.get(name.lower())) is not None:
            self.warnings.append(f"{name}: was searched as text; {known}")
        elif len(name) > 2 and (meant := near(name, OPERATORS)):
            self.warnings.append(f"{name}: was searched as text; did you mean {meant}:?")
        elif (value := value_of(name, self.query[value_at:])) is not None:
            self._strangers.setdefault(name, value)

    def _value(self) -> tuple[str | None, bool]:
        """What stands behind the colon, and whether in quotes; None where a group follows."""
        if self.query[self._at] == "(" and not self.query.startswith("()", self._at):
            return None, False
        sign = _SIGN.match(self.query, self._at)
        if sign:
            self._at = sign.end()
        if self.query[self._at] in '"“' and (phrase := self._phrase()) is not None:
            return (sign[0] if sign else "") + (phrase.text or ""), True
        if link := _WIKILINK.match(self.query, self._at):
            self._at = link.end()
            return link[0], False
        word = self._word().raw
        return "" if word == "()" else word, False

    def _word(self) -> Token:
        """Everything up to the next space; a closing parenthesis ends it where a group is open."""
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
        return Token(_SHOUTED.get(raw, "word"), raw, raw)  # type: ignore[arg-type]


def _brackets(text: str) -> dict[int, int]:
    """Where each opening bracket closes, for those that do. Inside them, quotes hide brackets."""
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
