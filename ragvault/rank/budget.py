"""Budget: keep the results that fit into a number of tokens, best first.

The first result that does not fit is cut at the end of a sentence, or dropped, and nothing after it
is kept: a worse result must not get in because it is shorter. Tokens are counted by the loaded
tokenizer, otherwise estimated from characters. A caller that knows its whole output (citations and
headings too) passes its own measure. A warning says what was dropped.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from math import ceil

from msgspec.structs import replace

from ragvault.candidate import Candidate, Context, Excerpt, Ranked, Removal
from ragvault.config.settings import Budget
from ragvault.text.spans import sentence_ends
from ragvault.types import DERIVED_TEXT

CHARS_PER_TOKEN = 4.0  # where no tokenizer is loaded: policy's estimate, about right for English
LEAST = 20  # tokens: a shorter part of a result says nothing
_LINES = re.compile(r"\n+")
_HEADINGS = re.compile(r"(?:\s*#{1,6}(?:[ \t][^\n]*)?(?:\n|$))*\s*")
# The tokens of some results, best first, as the caller writes them.
Size = Callable[[Sequence[Candidate]], int]


def budget(candidates: Sequence[Candidate], ctx: Context) -> Ranked:
    """Keep the best results whose texts fit."""
    return fit_budget(candidates, ctx, _text_size(token_counter(ctx)))


def fit_budget(candidates: Sequence[Candidate], ctx: Context, size: Size) -> Ranked:
    """Keep the best results that fit, by the caller's measure."""
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
    return _reported(kept, candidates[len(kept) :], settings.tokens)


def _part(
    candidate: Candidate, kept: Sequence[Candidate], settings: Budget, size: Size
) -> list[Candidate]:
    """The first result that does not fit, cut so that it does; empty if nothing useful fits."""
    room = settings.tokens - size(kept)
    if room < LEAST:
        return []
    return _cut(candidate, lambda part: size([*kept, part]) <= settings.tokens)


def token_counter(ctx: Context) -> Callable[[str], int]:
    """Counts the tokens of a text: the loaded tokenizer, or an estimate by characters."""
    return ctx.count_tokens or (lambda text: ceil(len(text) / CHARS_PER_TOKEN))


def _text_size(count: Callable[[str], int]) -> Size:
    known: dict[str, int] = {}  # each text is measured several times

    def size(candidates: Sequence[Candidate]) -> int:
        for each in candidates:
            if each.text not in known:
                known[each.text] = count(each.text)
        return sum(known[each.text] for each in candidates)

    return size


def _reported(kept: list[Candidate], dropped: Sequence[Candidate], tokens: int) -> Ranked:
    reason = f"does not fit into {tokens} tokens"
    warnings = []
    if dropped:
        results = "1 result" if len(dropped) == 1 else f"{len(dropped)} results"
        warnings.append(f"{results} left out: the {tokens}-token budget is used up")
    if kept and kept[-1].cut:
        warnings.append("the last result is cut to fit the budget")
    return Ranked(tuple(kept), tuple(Removal(each, reason) for each in dropped), tuple(warnings))


def _cut(candidate: Candidate, fits: Callable[[Candidate], bool]) -> list[Candidate]:
    """The candidate up to the last sentence that fits; empty if not one does."""
    text = candidate.text
    ends = sorted({*sentence_ends(text), *(found.end() for found in _LINES.finditer(text))})
    low, high = 0, len(ends)
    while low < high:  # the first end that is too far
        middle = (low + high) // 2
        part = _shortened(candidate, text[: ends[middle]])
        low, high = (middle + 1, high) if fits(part) else (low, middle)
    for end in reversed(ends[:low]):
        part = _shortened(candidate, text[:end].rstrip())
        # Counted again: a tokenizer may count a shorter text as more.
        if fits(part):
            # A heading alone says nothing.
            return [] if _HEADINGS.fullmatch(part.text) else [part]
    return []


def _shortened(candidate: Candidate, part: str) -> Candidate:
    (first, last), text = candidate.lines, candidate.text
    # Comments in a note take up lines but are not shown, and where they are is not known here. So
    # the reported lines include all of the part, and perhaps as many more as there are comments.
    unseen = max(0, last - first - text.count("\n") + text.endswith("\n"))
    derived = candidate.note.path.lower().endswith(DERIVED_TEXT)
    lines = first, last if derived else min(last, first + part.count("\n") + unseen)
    shown = candidate.shown or Excerpt(candidate.id, "", lines, candidate.headings)
    return replace(candidate, shown=replace(shown, text=part, lines=lines), cut=True)
