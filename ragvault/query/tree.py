"""The tree of a query, as it was typed: between the parser and the plan."""

from __future__ import annotations

from dataclasses import dataclass

from ragvault.plan import Filter
from ragvault.sought import Sought


@dataclass(frozen=True, slots=True)
class Word:
    """One word of free text. `raw` keeps the backticks or brackets that `text` is without."""

    text: str
    raw: str


@dataclass(frozen=True, slots=True)
class Quote:
    """A phrase in quotes."""

    text: str


@dataclass(frozen=True, slots=True)
class Condition:
    """An operator, or a property in brackets. Some also name words that are searched for."""

    filter: Filter
    text: str = ""
    sought: Sought | None = None


@dataclass(frozen=True, slots=True)
class Vault:
    """in:name, which chooses a vault and says nothing about its notes."""

    name: str


@dataclass(frozen=True, slots=True)
class Together:
    """Parts side by side."""

    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """Parts with OR between them."""

    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Negated:
    """A part behind a minus."""

    part: Node


Node = Word | Quote | Condition | Vault | Together | Choice | Negated
