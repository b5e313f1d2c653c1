"""Parse: a query becomes tokens, and the tokens become a tree.

    query  =  part (OR part)*          OR binds less tightly than a space, as in Obsidian
    part   =  item*                    AND may be written and changes nothing
    item   =  -item | (query) | word | "phrase" | name:value | name:(query) | [property] | #tag

Signs have a meaning only at the start of a word: 5" and f(x) and well-known are words. Text that
looks like an operator and cannot be one (http://x, 12:30, `Re: budget`) is a word too, and so are
the options of a pasted command (docker run -d nginx). An OR with nothing on one side is searched as
a word, and so is NOT, which is not an operator. If something was
probably meant as an operator, a warning says what to type.

A query has a limited length and depth, so that each can be answered in reasonable time.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from ragvault.errors import UsageError
from ragvault.plan import And, Not, Or, Phrase, Words
from ragvault.query.operators import (
    FOREIGN,
    OPERATORS,
    Condition,
    VaultName,
    may_be_property,
    operator_condition,
    property_filter,
    shorten,
    unescape,
)
from ragvault.text.markup import match_wikilink
from ragvault.text.spelling import misspelt

MAX_LENGTH = 10_000  # characters: a page of text, and more than anybody types
MAX_DEPTH = 40  # of parentheses: nobody nests deeper, and the stack is limited

# --- Tokens ---

TokenKind = Literal["open", "close", "minus", "or", "and", "word", "phrase", "operator", "property"]

_PHRASE = re.compile(r'"((?:[^"\\]|\\.)*)"', re.DOTALL)
_CURLY = re.compile("“([^“”]*)”")
_BACKTICKS = re.compile(r"`(\s*[^`\s][^`]*)`")  # with something between them
_OPERATOR = re.compile(r"([^\W\d_][\w-]*):(?!//)")
_SIGN = re.compile(r"(?:<=|>=|<|>|=)(?=[\"“])")
_NEGATED = re.compile(r"-(?=[\w\"“(\[#@`.]|[^\x00-\x7f])")  # not --flag, not ->, not a lone dash
# A pasted command: it has --flag, one letter behind a dash or a lone dot, or begins with a prompt
# or sudo. What is behind its dashes is text.
_COMMAND = re.compile(r"(?:^|\s)(?:--[A-Za-z]|-[A-Za-z0-9](?=\s|$)|\.(?=\s|$))|^\s*(?:\$|sudo)\s")
_OPTION = re.compile(r"-[A-Za-z0-9][\w.=/-]*(?=\s|$)", re.ASCII)
# Programs whose names are no other words; behind one of them a few letters are options: ls -la.
_PROGRAM = re.compile(
    r"\s*(?:ls|rm|mv|cp|ln|ps|df|du|ssh|scp|git|tar|grep|rg|sed|awk|xargs|chmod|chown|mkdir|rsync"
    r"|curl|wget|docker|podman|kubectl|npm|npx|pip|apt|apt-get|systemctl|journalctl|ffmpeg|gcc)\s"
)
_LETTERS = re.compile(r"-[A-Za-z]{2,4}(?=\s|$)")
_OPEN_PROPERTY = re.compile(r"\[[\w -]+:(?!:)")
# As in a note: not #12, which is a number, and not #: alone.
_HASHTAG = re.compile(r"#(?=[\d/_-]*[^\W\d_])[\w/-]+(?=[\s)]|$)")
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
        options = (_COMMAND.search, _OPTION), (_PROGRAM.match, _LETTERS)
        self._option = next((option for is_command, option in options if is_command(query)), None)
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
            option = self._option.match(self.query, self._at) if self._option else None
            if option is None:
                return self._take(1, "minus")
            self.warnings.append(f"“{shorten(option[0])}” was searched as part of a command")
        if char in '"“' and (phrase := self._phrase()) is not None:
            return phrase
        if char == "[" and (found := self._property()) is not None:
            return found
        return self._enclosed() or self._hashtag() or self._operator() or self._word()

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

    def _hashtag(self) -> Token | None:
        """#tag means tag:tag."""
        found = _HASHTAG.match(self.query, self._at)
        if found is None:
            return None
        self._at = found.end()
        return Token("operator", found[0], found[0], "tag")

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
        elif len(name) > 2 and (meant := misspelt(name, OPERATORS, long=7)):
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


# --- The tree ---


@dataclass(frozen=True, slots=True)
class TypedText:
    """A word, or a phrase in quotes. `raw` keeps backticks and brackets that `text` is without."""

    text: str
    raw: str
    quoted: bool = False

    @property
    def query(self) -> Words | Phrase:
        return Phrase(self.text) if self.quoted else Words(self.text)


# And are parts side by side, Or parts with OR between them, Not a part behind a minus.
Node = TypedText | Condition | VaultName | And["Node"] | Or["Node"] | Not["Node"]


def parse_query(query: str, now: datetime) -> tuple[Node, list[str]]:
    """The tree of a query, and warnings about it. Raises UsageError and nothing else."""
    check_length("query", query)
    lexer = Lexer(query)
    parser = _Parser(list(lexer.tokens()), now)
    return parser.whole(), [*lexer.warnings, *parser.warnings]


def check_length(name: str, text: str) -> None:
    """Raise UsageError for a text that is too long to search for."""
    if len(text) > MAX_LENGTH:
        raise UsageError(
            f"the {name} is too long: {len(text):,} characters, and the limit is {MAX_LENGTH:,}",
            fix="search for the words or sentences that matter most",
        )


class _Parser:
    def __init__(self, tokens: Sequence[Token], now: datetime) -> None:
        self.warnings: list[str] = []
        self._tokens = tokens
        self._now = now
        self._at = 0
        self._depth = 0
        self._operator = ""  # whose group is being read: words in it are its values

    def whole(self) -> Node:
        tree = self._query()
        assert self._at == len(self._tokens)  # the lexer emits no ) without its (
        return tree

    def _query(self) -> Node:
        parts = [self._part()]
        while (token := self._next()) is not None and token.kind == "or":
            self._at += 1
            parts.append(self._part())
        return parts[0] if len(parts) == 1 else Or(tuple(parts))

    def _part(self) -> Node:
        items: list[Node] = []
        while (token := self._next()) is not None and token.kind != "close":
            joins = token.kind in ("or", "and") and bool(items)
            if joins and self._has_right_side():
                if token.kind == "or":
                    break
                self._at += 1
                continue
            if joins:
                self.warnings.append(f"nothing follows {token.raw}: it is searched as a word")
            items.append(self._item())
        return items[0] if len(items) == 1 else And(tuple(items))

    def _has_right_side(self) -> bool:
        following = self._tokens[self._at + 1 : self._at + 2]
        return bool(following) and following[0].kind not in ("or", "and", "close")

    def _item(self) -> Node:
        token = self._tokens[self._at]
        self._at += 1
        if token.kind == "minus":
            return self._negated()
        if token.kind == "open":
            return self._group()
        if token.kind == "property":
            return self._property(token)
        if token.kind == "operator":
            return self._named(token)
        if self._operator:
            return self._built(self._operator, token.text or "", token.kind == "phrase")
        text = token.text or ""
        if token.kind == "phrase":
            return TypedText(text, text, quoted=True)
        if token.raw == "NOT":
            self._warn_not()
        return TypedText(text, token.raw)

    def _warn_not(self) -> None:
        """Warn about NOT before something, unless both are in capitals: NOT NULL."""
        before, after = self._tokens[: self._at - 1], self._next()
        if after is None or after.kind in ("close", "or", "and", "minus"):
            return
        if _in_capitals(after) and (not before or _in_capitals(before[-1])):
            return
        meant = "(…)" if after.kind == "open" else shorten(after.raw)
        self.warnings.append(f"NOT is searched as a word; to exclude something, write -{meant}")

    def _negated(self) -> Node:
        if (token := self._next()) is None or token.kind == "close":
            return TypedText("-", "-")
        self._go_deeper()
        part = self._item()
        self._depth -= 1
        return Not(part)

    def _group(self) -> Node:
        self._go_deeper()
        tree = self._query()
        self._depth -= 1
        self._at += 1  # the closing parenthesis
        return tree

    def _named(self, token: Token) -> Node:
        if self._operator and token.raw.startswith("#"):
            return self._built(self._operator, token.raw, False)
        if self._operator:
            raise UsageError(
                f"{token.name}: cannot be used inside {self._operator}:( )",
                fix=f"write it outside the parentheses of {self._operator}:",
            )
        if token.text is not None:
            return self._built(token.name, token.text, token.quoted)
        self._operator = token.name
        tree = self._item()  # the group that follows
        self._operator = ""
        return tree

    def _built(self, name: str, value: str, quoted: bool) -> Condition | VaultName:
        return operator_condition(name, value, quoted, self._now)

    def _property(self, token: Token) -> Node:
        if self._operator:
            return self._built(self._operator, token.raw, False)
        return Condition(property_filter(token.text or "", self._now))

    def _go_deeper(self) -> None:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise UsageError(
                f"parentheses are nested more than {MAX_DEPTH} deep",
                fix="write the query with fewer of them",
            )

    def _next(self) -> Token | None:
        return self._tokens[self._at] if self._at < len(self._tokens) else None


def _in_capitals(token: Token) -> bool:
    return token.kind == "word" and token.raw.isupper() and len(token.raw) > 1
