"""Hints: `word:value` that is no operator was searched as text, and that is said in one line.

Not where it is plainly something else: an address, a place on a disk, a port, a name in code.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from ragvault.query.mistakes import shown

NAMED = 3  # of these words in one line: text that was pasted has many
ADDRESSES = frozenset(
    ("mailto", "tel", "sms", "urn", "data", "doi", "isbn", "arxiv", "localhost", "javascript")
)
_VALUE = re.compile(r'[<>=]*(?:"[^"]*"|[^\s()\[\]"/\\:][^\s()\[\]"]*)')


def value_of(name: str, rest: str) -> str | None:
    """The value this name was perhaps given, as far as it can be shown; None where it has none.

    `rest` is what stands behind the colon. A group has a value that is not shown.
    """
    if len(name) == 1 or name.lower() in ADDRESSES:  # C:notes, mailto:me
        return None
    if rest.startswith("(") and not rest.startswith("()"):
        return "…"
    found = _VALUE.match(rest)
    if found is None or not any(map(str.isalnum, found[0])):  # std::string, src:/x, note:)
        return None
    if name[-1].isdigit() and found[0][0].isdigit():  # web1:8080
        return None
    return found[0]


def strangers(values: Mapping[str, str]) -> list[str]:
    """What is said about names that are no operators, each with its value: one line, or none."""
    if not values:
        return []
    named = [f"“{shown(name)}:”" for name in values]
    name, value = next(iter(values.items()))
    many = " …" if len(named) > NAMED else ""
    are = "is no operator and was" if len(named) == 1 else "are no operators and were"
    cure = f"for a property write [{shown(name)}:{shown(value)}]"
    return [f"{', '.join(named[:NAMED])}{many} {are} searched as text; {cure}"]
