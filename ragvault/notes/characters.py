"""Characters: the parser counts bytes of UTF-8, and all the rest of us counts characters."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from ragvault.types import Block

if TYPE_CHECKING:
    from ragvault.notes.markdown import Parsed


def to_characters(text: str, parsed: Parsed) -> None:
    """Count everything that was found in a text in its characters."""
    at = _character_of(text, parsed)
    for spans in (parsed.code, parsed.math, parsed.html):
        spans[:] = [(at(start), at(end)) for start, end in spans]
    parsed.blocks[:] = [
        Block(b.kind, at(b.start), at(b.end), b.level, tuple(map(at, b.cuts)))
        for b in parsed.blocks
    ]
    parsed.held[:] = [h._replace(start=at(h.start), end=at(h.end)) for h in parsed.held]
    for link in parsed.links:
        link.start, link.end = at(link.start), at(link.end)
    parsed.headings[:] = [(at(start), level, text) for start, level, text in parsed.headings]
    parsed.marks[:] = [(at(start), mark) for start, mark in parsed.marks]


def _character_of(text: str, parsed: Parsed) -> Callable[[int], int]:
    """A map from byte offsets to character offsets, made for the offsets that occur."""
    raw = text.encode("utf-8", "replace")
    at, characters, known = 0, 0, {}
    for offset in sorted(set(_offsets(parsed))):
        characters += len(raw[at:offset].decode("utf-8", "replace"))
        known[offset] = characters
        at = offset
    return known.__getitem__


def _offsets(parsed: Parsed) -> Iterator[int]:
    for spans in (parsed.code, parsed.math, parsed.html):
        for span in spans:
            yield from span
    for held in parsed.held:
        yield from (held.start, held.end)
    for block in parsed.blocks:
        yield from (block.start, block.end, *block.cuts)
    for link in parsed.links:
        yield from (link.start, link.end)
    yield from (start for start, _, _ in parsed.headings)
    yield from (start for start, _ in parsed.marks)
