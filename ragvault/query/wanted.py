"""Wanted: what a tree asks for, sorted into what is searched for and what is a must.

conditions, -anything   a must
words                   wanted: each makes a passage better, none is a must
"phrases"               wanted and, unless a setting says otherwise, a must
words beside OR         a must where the other side is one, otherwise wanted
"""

from __future__ import annotations

from ragvault.plan import Except, Filter, Holds
from ragvault.query.mistakes import shown
from ragvault.query.musts import has_words, must, one, texts, words_of
from ragvault.query.tree import Choice, Condition, Negated, Node, Quote, Together, Vault, Word
from ragvault.sought import AllOf, AnyOf, Not, Phrase, Sought, Words


class Wanted:
    """Filled by reading a tree from left to right."""

    def __init__(self, tree: Node, *, phrases_are_musts: bool) -> None:
        self.text: list[str] = []  # in words, in order
        self.raw: list[str] = []  # the same as typed
        self.phrases: list[str] = []
        self.filters: list[Filter] = []
        self.vaults: list[str] = []
        self.warnings: list[str] = []
        self._strict = phrases_are_musts
        self._words: list[str] = []  # side by side, none of them a must
        self._scored: list[Sought] = []
        self._required: list[Sought] = []
        self._read(tree)
        self.filters = list(dict.fromkeys(self.filters))

    def sought(self) -> Sought | None:
        """What a keyword index is asked: what is wanted, and what must or must not be there."""
        words: list[Sought] = [Words(" ".join(self._words))] if self._words else []
        scored = list(dict.fromkeys([*words, *self._scored]))  # said twice is wanted once
        if not scored:
            return None
        required = [each for each in dict.fromkeys(self._required) if scored != [each]]
        wanted = one(scored, AnyOf)
        return AllOf((wanted, *required)) if required else wanted

    def _read(self, node: Node) -> None:
        if isinstance(node, Together):
            for part in node.parts:
                self._read(part)
        elif isinstance(node, Choice):
            self._choice(node)
        elif isinstance(node, Negated):
            self._negated(node)
        elif isinstance(node, Vault):
            self.vaults.append(node.name)
        elif isinstance(node, Condition):
            self.filters.append(node.filter)
            self._search_for(node)
        elif isinstance(node, Quote):
            self._quote(node)
        else:
            self._say(node.text, node.raw)
            self._words.append(node.text)

    def _quote(self, quote: Quote) -> None:
        if not has_words(quote.text):
            self._without_words(quote)
            return
        self._search_for(quote)
        if self._strict:
            self._required.append(Phrase(quote.text))
            self.filters.append(Holds(Phrase(quote.text)))

    def _without_words(self, quote: Quote) -> None:
        if quote.text.strip():
            self.warnings.append(f"“{shown(quote.text)}” has no word in it that could be a must")
            self._say(quote.text, quote.text)
            self._words.append(quote.text)

    def _negated(self, node: Negated) -> None:
        unwanted = must(node.part)
        if unwanted is None:
            self.warnings.append("there is a minus before something without a word in it")
            return
        self.filters.append(Except(unwanted))
        if isinstance(unwanted, Holds) and unwanted.index == "keyword":
            self._required.append(Not(unwanted.sought))

    def _choice(self, choice: Choice) -> None:
        found = list(texts(choice))
        sought = words_of(choice)
        strict = self._strict and any(isinstance(each, Quote) for each in found)
        if sought is not None and not strict:
            for each in found:
                self._name(each)
            self._scored.append(sought)
            return
        for each in found:
            self._search_for(each)
        if (kept := must(choice)) is not None:
            self.filters.append(kept)

    def _search_for(self, node: Word | Quote | Condition) -> None:
        """Text that is wanted: a word, a phrase, or what an operator looks for."""
        if isinstance(node, Condition):
            sought = node.sought
        else:
            sought = Phrase(node.text) if isinstance(node, Quote) else Words(node.text)
        if sought is not None:
            self._name(node)
            self._scored.append(sought)

    def _name(self, node: Word | Quote | Condition) -> None:
        self._say(node.text, node.raw if isinstance(node, Word) else node.text)
        if isinstance(node, Quote):
            self.phrases.append(node.text)

    def _say(self, text: str, raw: str) -> None:
        self.text.append(text)
        self.raw.append(raw)
