"""Parse: tokens become a tree.

    query  =  part (OR part)*          OR binds less tightly than a space, as in Obsidian
    part   =  item*                    AND may be written and changes nothing
    item   =  -item | (query) | word | "phrase" | name:value | name:(query) | [property]

An OR with nothing on one side is searched as a word, and so is NOT, which is not an operator. Where
either was probably meant as one, a warning says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from ragvault.errors import UsageError
from ragvault.plan import AllOf, AnyOf, Not
from ragvault.query.lex import Lexer, Token
from ragvault.query.operators import (
    Condition,
    VaultName,
    operator_condition,
    property_filter,
    shorten,
)

MAX_DEPTH = 40  # of parentheses: nobody nests deeper, and the stack is limited


@dataclass(frozen=True, slots=True)
class TypedWord:
    """One word of free text. `raw` keeps the backticks or brackets that `text` is without."""

    text: str
    raw: str


@dataclass(frozen=True, slots=True)
class TypedPhrase:
    """A phrase in quotes."""

    text: str


# AllOf are parts side by side, AnyOf parts with OR between them, Not a part behind a minus.
Node = TypedWord | TypedPhrase | Condition | VaultName | AllOf["Node"] | AnyOf["Node"] | Not["Node"]


def parse_query(query: str, now: datetime) -> tuple[Node, list[str]]:
    """The tree of a query, and warnings about it. Raises UsageError and nothing else."""
    lexer = Lexer(query)
    parser = _Parser(list(lexer.tokens()), now)
    return parser.whole(), [*lexer.warnings, *parser.warnings]


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
        while self._next() is not None and self._is("or"):
            self._at += 1
            parts.append(self._part())
        return parts[0] if len(parts) == 1 else AnyOf(tuple(parts))

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
        return items[0] if len(items) == 1 else AllOf(tuple(items))

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
        if token.kind == "phrase":
            return TypedPhrase(token.text or "")
        if token.raw == "NOT":
            self._warn_not()
        return TypedWord(token.text or "", token.raw)

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
            return TypedWord("-", "-")
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

    def _is(self, kind: str) -> bool:
        token = self._next()
        return token is not None and token.kind == kind


def _in_capitals(token: Token) -> bool:
    return token.kind == "word" and token.raw.isupper() and len(token.raw) > 1
