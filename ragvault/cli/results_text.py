"""Results for people: title, place, the words that matched, how sure we are and how old it is."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from ragvault.cli import explain, render
from ragvault.cli.paint import BANDS, BOLD, CYAN, FAINT, Paint, paint_for
from ragvault.cli.shown import Found, Shown

INDENT = "    "
DAY = 86400  # seconds
# From how many days on an age is told in which unit, and how many days that has.
UNITS = ((730, "year", 365), (60, "month", 30), (14, "week", 7), (2, "day", 1))


def as_text(shown: Shown) -> str:
    """Results with a blank line between them, then, on request, what was done to find them."""
    links = all(answer.config.output.links for answer in shown.answers)
    paint = paint_for(shown.around, links)
    parts = [_result(shown, rank, each, paint) for rank, each in enumerate(shown.results, 1)]
    lines = list(chain.from_iterable((*part, "") for part in parts))
    if shown.explain:
        for answer in shown.answers:
            lines += [f"{answer.vault}:"] if shown.several else []
            lines += map(render.printable, explain.trace(answer.response))
    return "\n".join(lines).rstrip()


def _result(shown: Shown, rank: int, found: Found, paint: Paint) -> Iterator[str]:
    each = found.each
    title = render.printable(" > ".join(_headings(found)))
    head = f"{paint.styled(f'{rank:2}', FAINT)}  {paint.styled(title, BOLD)}"
    yield head + _about(shown, found, paint)
    place = render.printable(f"{shown.place(found)}:{found.line}")
    yield INDENT + paint.linked(paint.styled(place, CYAN), found.uri)
    if found.snippet.text:  # a note that is all frontmatter says nothing
        yield from paint.marked(_printable(found.snippet.text), found.snippet.marks, INDENT)
    if shown.explain:
        yield from (f"      {render.printable(line)}" for line in explain.why(each))


def _headings(found: Found) -> list[str]:
    """The title and the headings below it; a first heading that repeats the title is left out."""
    each = found.each
    title, headings = each.note.title or each.note.path, list(each.headings)
    return [title, *(headings[1:] if headings[:1] == [title] else headings)]


def _about(shown: Shown, found: Found, paint: Paint) -> str:
    each, facts = found.each, []
    if each.confidence is not None:
        sure = f"{each.band} {each.confidence:.2f}"
        facts.append(paint.styled(sure, BANDS.get(each.band, FAINT)))
    if each.note.modified is not None:
        facts.append(paint.styled(age(shown.around.now - each.note.modified), FAINT))
    if shown.several:
        facts.append(render.printable(found.answer.vault))
    if found.stale:
        facts.append("changed since it was indexed")
    return "  " + ", ".join(facts) if facts else ""


def age(seconds: float) -> str:
    """How long ago, in words. A file from the future is from today: clocks differ."""
    days = int(seconds // DAY)
    for least, name, length in UNITS:
        if days >= least:
            return f"{days // length} {name}s ago"
    return "yesterday" if days == 1 else "today"


def _printable(text: str) -> str:
    """One character for one, so that marks stay where they are."""
    return "".join(char if char.isprintable() else "\ufffd" for char in text)
