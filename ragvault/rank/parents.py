"""Parents: show the section a matched passage is in.

Passages of one section become one result, with the place and the score of the best of them. The
result still knows which passage matched. `neighbours` joins that many sections or passages on each
side; a candidate shown as a neighbour is not a result of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from ragvault.candidate import Candidate, Context, Excerpt, Ranked, Removal, Term
from ragvault.rank.limit import result_count


def parents(candidates: Sequence[Candidate], ctx: Context) -> Ranked:
    """Turn passages into sections, each shown once."""
    settings = ctx.settings.parents
    if not settings.enabled:
        return Ranked(tuple(candidates))
    whole = settings.unit == "section"
    known = ctx.sections if whole else ctx.passages
    results: dict[int, Candidate] = {}
    shown_in: dict[int, int] = {}  # section or passage -> the candidate that shows it
    removed: list[Removal] = []
    enough = result_count(ctx) if ctx.settings.limit.enabled else len(candidates)
    for each in candidates:
        unit = each.passage.section if whole else each.id
        if unit in shown_in:
            at = shown_in[unit]
            results[at] = _merged(results[at], each)
            removed.append(Removal(each, _reason(settings.unit, whole), results[at]))
        elif len(results) >= enough:
            shown_in[unit] = each.id
            results[each.id] = each  # `limit` removes it, so its section need not be read
        elif unit not in known:  # the index changed meanwhile: show the passage itself
            results[each.id] = each
        else:
            joined = _around(known[unit], known, settings.neighbours, shown_in)
            shown_in.update(dict.fromkeys((part.id for part in joined), each.id))
            results[each.id] = _shown(each, joined, known[unit])
    return Ranked(tuple(results.values()), tuple(removed))


def _reason(unit: str, whole: bool) -> str:
    return f"its {unit} is already shown" if whole else "shown with its neighbour"


def _merged(result: Candidate, sibling: Candidate) -> Candidate:
    queries = tuple(sorted({*result.queries, *sibling.queries}))
    merged = replace(result, merged=(*result.merged, sibling.id), queries=queries)
    if sibling.score <= result.score:
        return merged
    more = Term("sibling", sibling.score - result.score, why="the best passage of this section")
    return merged.placed("parents", sibling.score, [more])


def _around(
    middle: Excerpt, known: Mapping[int, Excerpt], count: int, taken: Mapping[int, int]
) -> list[Excerpt]:
    """A section or passage with its neighbours, except those a better result already shows."""
    before, after = [middle], [middle]
    for _ in range(count):
        for side, step in ((before, "before"), (after, "after")):
            beside: int | None = getattr(side[-1], step)
            found = known.get(beside) if beside is not None else None
            if found is not None and found.id not in taken:
                side.append(found)
    return [*reversed(before), *after[1:]]


def _shown(candidate: Candidate, parts: Sequence[Excerpt], middle: Excerpt) -> Candidate:
    text = parts[0].text
    for part in parts[1:]:
        text += part.text if text.endswith("\n") else "\n" + part.text
    lines = parts[0].lines[0], parts[-1].lines[1]
    return replace(candidate, shown=replace(middle, text=text, lines=lines))
