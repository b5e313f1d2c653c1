"""Parents: show the section a matched passage is in, and one row for each note.

Passages of one section become one result, with the place and the score of the best of them. The
result still knows which passage matched. `neighbours` joins that many sections or passages on each
side; a candidate shown as a neighbour is not a result of its own.

Of each note `per_note` results are shown (0: any number). Its other sections that would have been
among the results are named in `also`. A section that says something else than those shown gets a
row all the same: one that is less alike to each of them than ALIKE, on the scale of evidence, on
which unrelated texts have 0 and equal texts 1. If all that was found is in one note, its sections
are the results.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from ragvault.candidate import (
    Candidate,
    Context,
    Excerpt,
    Ranked,
    Removal,
    SectionPlace,
    Term,
    cosine_evidence,
)
from ragvault.rank.limit import result_count

# Of the pairs of sections of one note in the first ten places, that is one in ten in a vault of
# essays and none in a manual.
ALIKE = 0.4


def parents(candidates: Sequence[Candidate], ctx: Context) -> Ranked:
    """Turn passages into sections, each shown once, and a note into one row."""
    settings = ctx.settings.parents
    if not settings.enabled:
        return Ranked(tuple(candidates))
    whole = settings.unit == "section"
    known = ctx.sections if whole else ctx.passages
    results: dict[int, Candidate] = {}
    per_note = settings.per_note if len({each.note.id for each in candidates}) > 1 else 0
    rows: dict[int, list[int]] = {}  # note -> the candidates that show it
    shown_in: dict[int, int] = {}  # section or passage -> the candidate that shows or names it
    removed: list[Removal] = []
    enough = result_count(ctx)
    for each in candidates:
        unit, of_note = each.passage.section if whole else each.id, rows.get(each.note.id, [])
        if unit in shown_in:
            at = shown_in[unit]
            results[at] = _merged(results[at], each)
            removed.append(Removal(each, _reason(settings.unit, whole), results[at]))
            continue
        if per_note and _is_folded([results[at] for at in of_note], each, ctx):
            at = of_note[0]
            if len(shown_in) < enough and unit in known:
                results[at] = _naming(results[at], each, known[unit])
            shown_in[unit] = at
            results[at] = _joined(results[at], each)
            removed.append(Removal(each, "its note is already shown", results[at]))
            continue
        rows[each.note.id] = [*of_note, each.id]
        if len(results) >= enough:
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


def _joined(result: Candidate, other: Candidate) -> Candidate:
    """The result, which another passage is shown with."""
    queries = tuple(sorted({*result.queries, *other.queries}))
    return replace(result, merged=(*result.merged, other.id), queries=queries)


def _merged(result: Candidate, sibling: Candidate) -> Candidate:
    merged = _joined(result, sibling)
    if sibling.score <= result.score:
        return merged
    more = Term("sibling", sibling.score - result.score, why="the best passage of this section")
    return merged.placed("parents", sibling.score, [more])


# --- One row per note ---


def _is_folded(rows: Sequence[Candidate], each: Candidate, ctx: Context) -> bool:
    """Whether the rows of its note stand for this candidate too."""
    enough = len(rows) >= ctx.settings.parents.per_note
    return enough and not all(_differ(row, each, ctx) for row in rows)


def _differ(one: Candidate, other: Candidate, ctx: Context) -> bool:
    """Whether two passages say different things; without vectors nobody can tell."""
    if one.id not in ctx.vectors or other.id not in ctx.vectors:
        return False
    cosine = float(ctx.vectors[one.id] @ ctx.vectors[other.id])
    return cosine_evidence(cosine, ctx.unrelated) < ALIKE


def _naming(result: Candidate, other: Candidate, section: Excerpt) -> Candidate:
    """The result with one more section named below it, as precisely as its headings can."""
    headings = (*section.headings, *other.passage.subheadings[:1])
    return replace(result, also=(*result.also, SectionPlace(headings, section.lines)))


# --- The text that is shown ---


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
