"""Budget: what fits into so many tokens, best first.

The first result that does not fit is cut at the end of a sentence, or left out, and nothing after
it is taken: a worse result must not be there because it is shorter. Tokens are counted by the
tokenizer that is loaded, otherwise by the characters: those of the texts, or of all that is
written, where the caller knows what that is. What was left out is said.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from math import ceil

from msgspec.structs import replace

from ragvault.candidate import Candidate, Context, Ranked, Removal, Stretch
from ragvault.config.ranking import Budget

_END = re.compile(r"[.!?\u2026][\"'\u201d\u2019)\]*_]*(?=\s)|[\u3002\uff01\uff1f]|\n+")


# The tokens of some results, the best first, as they are written.
Size = Callable[[Sequence[Candidate]], int]


def budget(candidates: Sequence[Candidate], ctx: Context) -> Ranked:
    """The best ones that fit."""
    return fitting(candidates, ctx, _of_texts(counter(ctx)))


def fitting(candidates: Sequence[Candidate], ctx: Context, size: Size) -> Ranked:
    """The best ones that fit, by a size of the caller's own."""
    settings = ctx.settings.budget
    if not settings.enabled:
        return Ranked(tuple(candidates))
    whole, most = 0, len(candidates)
    while whole < most:
        middle = (whole + most + 1) // 2
        fits = size(candidates[:middle]) <= settings.tokens
        whole, most = (middle, most) if fits else (whole, middle - 1)
    kept = list(candidates[:whole])
    kept += _part(candidates[whole], kept, settings, size) if whole < len(candidates) else ()
    return _said(kept, candidates[len(kept) :], settings.tokens)


def _part(
    candidate: Candidate, kept: Sequence[Candidate], settings: Budget, size: Size
) -> list[Candidate]:
    """What is shown of the first that does not fit as a whole."""
    room = settings.tokens - size(kept)
    if settings.last == "leave" or room < max(1, settings.least):
        return []
    return _cut(candidate, lambda part: size([*kept, part]) <= settings.tokens)


def counter(ctx: Context) -> Callable[[str], int]:
    """How tokens are counted."""
    a_token = ctx.settings.budget.chars_per_token
    return ctx.count_tokens or (lambda text: ceil(len(text) / a_token))


def _of_texts(count: Callable[[str], int]) -> Size:
    known: dict[str, int] = {}  # each is asked for several times

    def size(candidates: Sequence[Candidate]) -> int:
        for each in candidates:
            if each.text not in known:
                known[each.text] = count(each.text)
        return sum(known[each.text] for each in candidates)

    return size


def _said(kept: list[Candidate], left: Sequence[Candidate], tokens: int) -> Ranked:
    reason = f"does not fit into {tokens} tokens"
    said = [f"{len(left)} results left out: a budget of {tokens} tokens is full"] if left else []
    if kept and kept[-1].cut:
        said.append("the last result is cut to fit the budget")
    return Ranked(tuple(kept), tuple(Removal(each, reason) for each in left), tuple(said))


def _cut(candidate: Candidate, fits: Callable[[Candidate], bool]) -> list[Candidate]:
    """The candidate up to the last sentence that fits; nothing where not one does."""
    text = candidate.text
    ends = [found.end() for found in _END.finditer(text)]
    low, high = 0, len(ends)
    while low < high:  # the first end that is too far
        middle = (low + high) // 2
        part = _shortened(candidate, text[: ends[middle]])
        low, high = (middle + 1, high) if fits(part) else (low, middle)
    for end in reversed(ends[:low]):
        part = _shortened(candidate, text[:end].rstrip())
        # Counted again: a tokenizer may count a shorter text as more.
        if part.text and fits(part):
            return [part]
    return []


def _shortened(candidate: Candidate, part: str) -> Candidate:
    (first, last), text = candidate.lines, candidate.text
    # Comments are not shown and have lines too. Where they stand is not known here, so that the
    # lines told hold all of the part, and at most those of the comments besides.
    unseen = max(0, last - first - text.count("\n") + text.endswith("\n"))
    lines = first, min(last, first + part.count("\n") + unseen)
    shown = candidate.shown or Stretch(candidate.id, "", lines, candidate.headings)
    return replace(candidate, shown=replace(shown, text=part, lines=lines), cut=True)
