"""Findings: one thing that was looked at, how it is, and what cures it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

State = Literal["fine", "note", "behind", "broken"]

# What a script is told: 3 the index is behind, 4 something cannot be used.
EXIT: dict[State, int] = {"fine": 0, "note": 0, "behind": 3, "broken": 4}


@dataclass(frozen=True, slots=True)
class Finding:
    """`part` is one or two words. `note` is nothing wrong, but worth knowing."""

    part: str
    state: State
    said: str
    cure: str = ""


def fine(part: str, said: str) -> Finding:
    return Finding(part, "fine", said)


def exit_code(findings: Iterable[Finding]) -> int:
    """The worst of them."""
    return max((EXIT[each.state] for each in findings), default=0)
