"""Budget: what fits into so many tokens, best first.

The first result that does not fit is cut at the end of a sentence, or left out, and nothing after
it is taken: a worse result must not be there because it is shorter. Tokens are counted by the
tokenizer that is loaded, otherwise by the characters. What was left out is said.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from math import ceil

from msgspec.structs import replace

from ragvault.candidate import Candidate, Context, Ranked, Removal, Stretch

_END = re.compile(r"[.!?\u2026][\"'\u201d\u2019)\]*_]*(?=\s)|[\u3002\uff01\uff1f]|\n+")


def budget(candidates: Sequence[Candidate], ctx: Context) -> Ranked:
    """The best ones that fit."""
    settings = ctx.settings.budget
    if not settings.enabled:
        return Ranked(tuple(candidates))
    count = counter(ctx)
    kept: list[Candidate] = []
    room = settings.tokens
    for each in candidates:
        size = count(each.text)
        if size > room:
            if settings.last == "cut" and room >= max(1, settings.least):
                kept += _cut(each, room, count)
            break
        kept.append(each)
        room -= size
    return _said(kept, candidates[len(kept) :], settings.tokens)


def counter(ctx: Context) -> Callable[[str], int]:
    """How tokens are counted."""
    a_token = ctx.settings.budget.chars_per_token
    return ctx.count_tokens or (lambda text: ceil(len(text) / a_token))


def _said(kept: list[Candidate], left: Sequence[Candidate], tokens: int) -> Ranked:
    reason = f"does not fit into {tokens} tokens"
    said = [f"{len(left)} results left out: a budget of {tokens} tokens is full"] if left else []
    if kept and kept[-1].cut:
        said.append("the last result is cut to fit the budget")
    return Ranked(tuple(kept), tuple(Removal(each, reason) for each in left), tuple(said))


def _cut(candidate: Candidate, room: int, count: Callable[[str], int]) -> list[Candidate]:
    """The candidate up to the last sentence that fits; nothing where not one does."""
    text = candidate.text
    ends = [found.end() for found in _END.finditer(text)]
    low, high = 0, len(ends)
    while low < high:  # the first end that is too far
        middle = (low + high) // 2
        low, high = (middle + 1, high) if count(text[: ends[middle]]) <= room else (low, middle)
    for end in reversed(ends[:low]):
        part = text[:end].rstrip()
        # Counted again: a tokenizer may count a shorter text as more.
        if part and count(part) <= room:
            return [_shortened(candidate, part)]
    return []


def _shortened(candidate: Candidate, part: str) -> Candidate:
    (first, last), text = candidate.lines, candidate.text
    # Comments are not shown and have lines too. Where they stand is not known here, so that the
    # lines told hold all of the part, and at most those of the comments besides.
    unseen = max(0, last - first - text.count("\n") + text.endswith("\n"))
    lines = first, min(last, first + part.count("\n") + unseen)
    shown = candidate.shown or Stretch(candidate.id, "", lines, candidate.headings)
    return replace(candidate, shown=replace(shown, text=part, lines=lines), cut=True)
