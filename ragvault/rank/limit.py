"""Limit: which results are shown, and how sure they may look.

    n                the first n: the caller's n, else that of `fuse.mode`, else `limit.n`
    falling numbers  no result is shown as more likely than the one above it
    min_confidence   results below it are not shown
    CLOSEST          if not even the first is likely to answer, only so many are shown

The rank is evidence too: where evidence and order disagree, the lower number is nearer to what
judges say (docs/decisions.md). A list by a filter alone has no confidence and is never cut short.
Nor is an answer with an exact name, a quoted phrase or all words of the query in one of its first
results: whoever types a word that is in the vault must find it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from msgspec.structs import replace

from ragvault.candidate import Candidate, Context, Ranked, Removal, Step
from ragvault.config.settings import Bands, Config, Fuse

JUST_WEAK = 0.01  # above the bound of the band
CLOSEST = 5  # results where none is likely to answer: enough to see what the vault has instead
# k and the number of results of each mode of LightRAG, and of `auto` in a vault of short notes.
MODES = {"speed": (40, 2), "balanced": (60, 3), "quality": (80, 3), "short": (80, 2)}
SHORT_NOTE = 500  # characters of the median note


def limit(candidates: Sequence[Candidate], ctx: Context) -> Ranked:
    """Keep the first n that are likely enough, with numbers that fall."""
    settings = ctx.settings.limit
    falling = falling_confidence(_not_below_likely(candidates, ctx), ctx.settings.calibrate.bands)
    least = settings.min_confidence
    kept = [each for each in falling if each.confidence is None or each.confidence >= least]
    low = [each for each in falling if each.confidence is not None and each.confidence < least]
    n = result_count(ctx)
    reason = f"not among the first {n}"
    if not ctx.all_matches and not is_likely(kept, ctx.settings):
        n, reason = min(n, CLOSEST), "not among the closest, and none is likely to answer"
    removed = [Removal(each, reason) for each in kept[n:]]
    removed += [Removal(each, f"its confidence is below {least:g}") for each in low]
    warnings = _none_sure_enough(low, least) if not kept else ()
    return Ranked(tuple(kept[:n]), tuple(removed), warnings)


def is_likely(results: Sequence[Candidate], settings: Config) -> bool:
    """Whether something here is likely to answer."""
    first = results[0].confidence if results else 0.0
    if first is None or first >= settings.calibrate.likely:
        return True
    return any(map(_has_all_words, results[:CLOSEST]))


def _has_all_words(result: Candidate) -> bool:
    return bool(result.exact) or result.evidence.get("coverage", 0.0) >= 1


def _not_below_likely(candidates: Sequence[Candidate], ctx: Context) -> list[Candidate]:
    """The candidates; down to one that has all words, none is called unlikely.

    Such an answer is not held back, so its words must not say that nothing in it is likely.
    """
    calibrate = ctx.settings.calibrate
    if calibrate.source != "evidence":
        return list(candidates)
    closest = candidates[:CLOSEST]
    last = max((at for at, each in enumerate(closest) if _has_all_words(each)), default=-1)
    least = max(calibrate.likely, calibrate.bands.weak)
    floor = least + JUST_WEAK
    why = f"{floor:.3f}: it or a result below it has every word of the query"
    raised = []
    for at, each in enumerate(candidates):
        if at <= last and each.confidence is not None and each.confidence < least:
            each = replace(
                each,
                confidence=floor,
                band=calibrate.bands.name(floor),
                steps=(*each.steps, Step("limit", each.score, each.score, why=why)),
            )
        raised.append(each)
    return raised


def falling_confidence(candidates: Sequence[Candidate], bands: Bands) -> list[Candidate]:
    """The candidates, none with a higher confidence than the one before it."""
    falling: list[Candidate] = []
    least = 1.0
    for each in candidates:
        if each.confidence is not None and each.confidence > least:
            why = f"{least:.3f}: no more likely than the result above ({each.confidence:.3f})"
            step = Step("limit", each.score, each.score, why=why)
            each = replace(
                each, confidence=least, band=bands.name(least), steps=(*each.steps, step)
            )
        least = least if each.confidence is None else each.confidence
        falling.append(each)
    return falling


def _none_sure_enough(low: Sequence[Candidate], least: float) -> tuple[str, ...]:
    if not low:
        return ()
    return (f"no result has a confidence of {least:g}; the highest is {low[0].confidence:.2f}",)


def result_count(ctx: Context) -> int:
    """How many results to return."""
    if ctx.limit is not None:
        return ctx.limit
    return rank_mode(ctx.settings.fuse, ctx.note_length).results or ctx.settings.limit.n


class RankMode(NamedTuple):
    """k of rank fusion, and how many results go with it; None leaves that to `limit`."""

    k: int
    results: int | None


def rank_mode(fuse: Fuse, note_length: float | None = None) -> RankMode:
    """The k and the number of results of the mode; `note_length` is the vault's median."""
    if fuse.mode == "off":
        return RankMode(fuse.k, None)
    if fuse.mode == "auto":
        short = note_length is not None and note_length < SHORT_NOTE
        return RankMode(*MODES["short" if short else "balanced"])
    return RankMode(*MODES[fuse.mode])
