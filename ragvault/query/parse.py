"""Parse: tokens become a tree.

    query  =  part (OR part)*          OR binds less than standing side by side, as in Obsidian
    part   =  item*                    AND may be written and changes nothing
    item   =  -item | (query) | word | "phrase" | name:value | name:(query) | [property]

An OR with nothing on one side of it is the word "or" in capitals; behind a word, that is said.
There is no NOT: what was perhaps meant as one is a word, and that is said too.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from ragvault.query import operators, properties
from ragvault.query.lex import Lexer, Token
from ragvault.query.mistakes import shown, wrong
from ragvault.query.tree import Choice, Condition, Negated, Node, Quote, Together, Vault, Word

MAX_DEPTH = 40  # of parentheses: nobody nests deeper, and the stack is not endless


def parse(query: str, now: datetime) -> tuple[Node, list[str]]:
    """The tree of a query, and what should be said about it. Raises UsageError only."""
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
        self._operator = ""  # whose group is being read: its words are values

    def whole(self) -> Node:
        tree = self._query()
        assert self._at == len(self._tokens)  # the lexer gives no ) without its (
        return tree

    def _query(self) -> Node:
        parts = [self._part()]
        while self._next() is not None and self._is("or"):
            self._at += 1
            parts.append(self._part())
        return parts[0] if len(parts) == 1 else Choice(tuple(parts))

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
                self.warnings.append(f"{token.raw} has nothing behind it and is searched as a word")
            items.append(self._item())
        return items[0] if len(items) == 1 else Together(tuple(items))

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
            return Quote(token.text or "")
        if token.raw == "NOT":
            self._hint_at_minus()
        return Word(token.text or "", token.raw)

    def _hint_at_minus(self) -> None:
        """Behind a NOT stands what was to be left out, unless all of it is shouted: NOT NULL."""
        before, after = self._tokens[: self._at - 1], self._next()
        if after is None or after.kind in ("close", "or", "and", "minus"):
            return
        if _shouts(after) and (not before or _shouts(before[-1])):
            return
        meant = "(…)" if after.kind == "open" else shown(after.raw)
        self.warnings.append(f"NOT is searched as a word; to leave something out write -{meant}")

    def _negated(self) -> Node:
        if (token := self._next()) is None or token.kind == "close":
            return Word("-", "-")
        self._go_deeper()
        part = self._item()
        self._depth -= 1
        return Negated(part)

    def _group(self) -> Node:
        self._go_deeper()
        tree = self._query()
        self._depth -= 1
        self._at += 1  # the closing parenthesis
        return tree

    def _named(self, token: Token) -> Node:
        if self._operator:
            raise wrong(
                f"{token.name}: stands inside {self._operator}:( )",
                f"write it outside of the parentheses of {self._operator}:",
            )
        if token.text is not None:
            return self._built(token.name, token.text, token.quoted)
        self._operator = token.name
        tree = self._item()  # the group that follows
        self._operator = ""
        return tree

    def _built(self, name: str, value: str, quoted: bool) -> Condition | Vault:
        return operators.build(name, value, quoted, self._now)

    def _property(self, token: Token) -> Node:
        if self._operator:
            return self._built(self._operator, token.raw, False)
        return Condition(properties.build(token.text or "", self._now))

    def _go_deeper(self) -> None:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise wrong(
                f"parentheses are nested more than {MAX_DEPTH} deep",
                "write the query with fewer of them",
            )

    def _next(self) -> Token | None:
        return self._tokens[self._at] if self._at < len(self._tokens) else None

    def _is(self, kind: str) -> bool:
        token = self._next()
        return token is not None and token.kind == kind


def _shouts(token: Token) -> bool:
    return token.kind == "word" and token.raw.isupper() and len(token.raw) > 1
