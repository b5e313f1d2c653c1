"""How good the returned sections are as context, from judgements and without a language model.

    context_precision   RAGAS: the mean of precision@k over the places k that hold a useful section
    context_recall      RAGAS: the share of what was wanted that some returned section holds

What RAGAS asks a language model, a judge has said already: a section is useful when its note was
judged to answer, and where the judge named a heading, when that heading is above it or in it. What
was wanted is each (note, heading) that was judged so.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from ragvault.candidate import Candidate
from ragvault.evaluate.metrics import RELEVANT, Scores
from ragvault.evaluate.questions import Judged, Question


def context(
    sections: Sequence[Candidate], question: Question, *, relevant: int = RELEVANT
) -> Scores:
    """Both numbers of one answer; none where nothing was judged to answer."""
    wanted = [each for each in question.relevant if each.grade >= relevant]
    if not wanted:
        return {}
    held = [[_holds(section, each) for each in wanted] for section in sections]
    return {
        "context_precision": precision([any(row) for row in held]),
        "context_recall": sum(map(any, zip(*held, strict=True))) / len(wanted) if held else 0.0,
    }


def precision(useful: Sequence[bool]) -> float:
    """The mean of precision@k over the places that hold something useful; 0 where none does."""
    found = 0
    shares = []
    for place, yes in enumerate(useful, 1):
        if yes:
            found += 1
            shares.append(found / place)
    return sum(shares) / len(shares) if shares else 0.0


def _holds(section: Candidate, wanted: Judged) -> bool:
    if section.note.path != wanted.note:
        return False
    heading = _plain(wanted.heading)
    return not heading or heading in map(_plain, (*section.headings, *_inside(section.text)))


def _inside(text: str) -> list[str]:
    """The headings that stand in a section; one short section may hold several."""
    lines = text.split("\n")
    under = [above for above, line in pairwise(lines) if _is_rule(line)]
    return [line for line in lines if line.startswith("#")] + under


def _is_rule(line: str) -> bool:
    """What makes a heading of the line above it."""
    return len(line) > 1 and set(line.rstrip()) in ({"="}, {"-"})


def _plain(heading: str) -> str:
    return " ".join(heading.strip("# \t").casefold().split())
