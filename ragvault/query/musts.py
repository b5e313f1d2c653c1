"""Musts: a part of a query as something every result must hold.

Text becomes one question to the keyword index, however it is nested; conditions are joined around
it. A part without a word in it (an arrow, a dash) says nothing here and is None.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from ragvault.plan import Either, Every, Except, Filter, Holds
from ragvault.query.mistakes import wrong
from ragvault.query.tree import Choice, Condition, Negated, Node, Quote, Together, Vault, Word
from ragvault.sought import PICTURES, AllOf, AnyOf, Phrase, Sought, Words

_PICTURE = re.compile(PICTURES)
T = TypeVar("T")


def must(node: Node) -> Filter | None:
    """The filter that keeps what this part asks for. Raises UsageError for in: inside of it."""
    if (sought := words_of(node)) is not None:
        return Holds(sought)
    if isinstance(node, Condition):
        return node.filter
    if isinstance(node, Negated):
        part = must(node.part)
        return part and Except(part)
    if isinstance(node, Vault):
        raise wrong(
            f"in:{node.name} can neither be excluded nor stand beside OR",
            f"write it once, outside of any parentheses: in:{node.name}",
        )
    if isinstance(node, (Together, Choice)):
        return _joined(node)
    return None


def words_of(node: Node) -> Sought | None:
    """What a keyword index is asked for a part that is text only; otherwise None."""
    if isinstance(node, Word):
        return Words(node.text, every=True) if has_words(node.text) else None
    if isinstance(node, Quote):
        return Phrase(node.text) if has_words(node.text) else None
    if isinstance(node, Together):
        return _side_by_side(node)
    if isinstance(node, Choice):
        parts = [words_of(part) for part in node.parts if not _is_mute(part)]
        known = [part for part in parts if part is not None]
        return one(known, AnyOf) if known and len(known) == len(parts) else None
    return None


def texts(node: Node) -> Iterator[Word | Quote | Condition]:
    """The parts that name text to look for, left to right, without those behind a minus."""
    if isinstance(node, (Word, Quote, Condition)):
        yield node
    elif isinstance(node, (Together, Choice)):
        for part in node.parts:
            yield from texts(part)


def has_words(text: str) -> bool:
    """Is there anything that is looked up: a letter or a digit of any script, or an emoji?"""
    return has_letters(text) or _PICTURE.search(text) is not None


def has_letters(text: str) -> bool:
    """Is there a letter or a digit, of any script?"""
    return any(char.isalnum() for char in text)


def one(parts: Sequence[T], join: Callable[[tuple[T, ...]], T]) -> T:
    """A single part as it is, several joined."""
    return parts[0] if len(parts) == 1 else join(tuple(parts))


def _side_by_side(node: Together) -> Sought | None:
    parts = [part for part in node.parts if not _is_mute(part)]
    plain = [part.text for part in parts if isinstance(part, Word)]
    rest = [words_of(part) for part in parts if not isinstance(part, Word)]
    known = [part for part in rest if part is not None]
    if not parts or len(known) < len(rest):
        return None
    together = [Words(" ".join(plain), every=True)] if plain else []
    return one([*together, *known], AllOf)


def _joined(node: Together | Choice) -> Filter | None:
    if isinstance(node, Choice):
        alternatives = dict.fromkeys(
            kept for part in node.parts if (kept := must(part)) is not None
        )
        return one(list(alternatives), Either) if alternatives else None
    # The words of a group are one question, whatever stands between them.
    text = tuple(part for part in node.parts if words_of(part) is not None)
    rest = [kept for part in node.parts if part not in text and (kept := must(part)) is not None]
    sought = words_of(Together(text)) if text else None
    filters: list[Filter] = [*([Holds(sought)] if sought else []), *rest]
    return one(filters, Every) if filters else None


def _is_mute(node: Node) -> bool:
    """Free text without a word in it."""
    if isinstance(node, (Word, Quote)):
        return not has_words(node.text)
    return isinstance(node, (Together, Choice)) and all(map(_is_mute, node.parts))
