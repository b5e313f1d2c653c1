"""Search results as text, paths, grep lines, Markdown and context. docs/output.md has the formats.

JSON is that of answer/results.py. Escape codes for colour and links are written here and
nowhere else: importing Rich takes longer than a whole search that a watcher answers.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from ragvault.answer.match import LINES as SNIPPET_LINES
from ragvault.answer.match import MORE
from ragvault.answer.results import (
    SearchAnswer,
    SearchResult,
    VaultAnswer,
    respond,
    system_may_open,
)
from ragvault.candidate import Candidate, Ranked, Step, Term
from ragvault.cli.start import Caller
from ragvault.text.printable import columns_of, encode, harmless, one_line, printable, wrapped
from ragvault.types import Date

INDENT = "    "
NO_MATCH = "No good match. Closest notes:"
MAX_ALSO = 4  # sections named below a result
DAY = 86400  # seconds
# From how many days on an age is given in which unit, and the length of the unit in days.
UNITS = ((730, "year", 365), (60, "month", 30), (14, "week", 7), (2, "day", 1))
BOLD, FAINT, GREEN, YELLOW, CYAN = "1", "2", "32", "33", "36"
MATCH = "1;33"
UNLIKELY = "unlikely"  # the lowest band
LEAST_SHOWN = 0.00005  # an amount below this is printed as 0.0000
LEAST = 3  # results that a terminal shows, however low it is
BANDS = {"excellent": GREEN, "good": GREEN, "moderate": YELLOW}


class Page(NamedTuple):
    """An answer, and how it is to be printed."""

    answer: SearchAnswer
    caller: Caller
    explain: bool = False
    all_matches: bool = False
    lines: int = 0  # of the screen that text may fill; 0 shows every result

    @property
    def is_held_back(self) -> bool:
        """Whether these are only the closest notes, and none of them a good match."""
        return bool(self.answer.results) and not self.answer.likely

    @property
    def matches(self) -> tuple[SearchResult, ...]:
        """What a pipe may take for matches: nothing that is held back, and of the others the first
        and all that are not unlikely; everything if asked."""
        if self.all_matches:
            return self.answer.results
        found = () if self.is_held_back else self.answer.results
        return tuple(
            each
            for place, each in enumerate(found)
            if place == 0 or each.candidate.band != UNLIKELY
        )

    def place(self, result: SearchResult) -> str:
        """A path that works in the caller's folder."""
        here = Path(self.caller.cwd)
        inside = result.path.is_relative_to(here)
        return str(result.path.relative_to(here) if inside else result.path)


def formatted(page: Page, format_: str) -> str:
    """An answer in one of the formats, with its last line ended."""
    text = FORMATS[format_](page)
    if format_ != "text":  # that has colours and links of our own, around what is printable
        text = harmless(text)
    return f"{text}\n" if text else ""


def nul_paths(page: Page) -> str:
    """Paths that end in NUL, for `xargs -0`: what a pipe gets is the name of a file as it is."""
    safe = printable if page.caller.terminal else str
    return "".join(f"{safe(path)}\0" for path in _paths(page))


# --- for people ---


def as_text(page: Page) -> str:
    """Results with a blank line between them; with --explain, how they were found."""
    answer = page.answer
    links = all(each.config.output.links for each in answer.answers)
    style = _roomy(page, style_for(page.caller, links))
    shown = answer.results[: _fitting(page, style)]
    column = _band_column(page, shown, style)
    parts = [_result(page, rank, each, style, column) for rank, each in enumerate(shown, 1)]
    lines = [*_understood(answer), ""] if page.explain else []
    lines += [NO_MATCH, ""] if page.is_held_back else []
    lines += chain.from_iterable((*part, "") for part in parts)
    if folded := answer.results[len(shown) :]:
        lines.append(style.styled(_folded(folded, len(answer.results)), FAINT))
    if page.explain:
        for each in answer.answers:
            lines += [f"{each.vault}:"] if answer.several else []
            lines += (wrapped(printable(line), style.width) for line in _trace(each))
    return "\n".join(lines).rstrip()


def _roomy(page: Page, style: Style) -> Style:
    """The style in which as many of the closest notes as there are fit the screen: none of them is
    likely, so that all are seen is worth more than what each says."""
    if not (page.lines and page.is_held_back):
        return style
    fewer = (style._replace(snippet=lines) for lines in range(SNIPPET_LINES, 0, -1))
    return next((s for s in fewer if _fitting(page, s) == len(page.answer.results)), style)


def _fitting(page: Page, style: Style) -> int:
    """How many results to show: those that fit the screen, and no unlikely ones."""
    results = page.answer.results
    if not page.lines:
        return len(results)
    likely = [each for each in results if each.candidate.band != UNLIKELY]
    wanted = len(results) if page.is_held_back or page.all_matches else len(likely) or len(results)
    plain = Style(width=style.width, snippet=style.snippet)
    room = page.lines - (2 if page.is_held_back else 0)
    for rank, each in enumerate(results[:wanted], 1):
        room -= sum(_rows(line, style.width) for line in _result(page, rank, each, plain))
        # The last result needs no line for those that are folded.
        if rank > LEAST and room < (0 if rank == len(results) else 2):
            return rank - 1
        room -= 1  # the blank line behind it
    return wanted


def _folded(results: Sequence[SearchResult], total: int) -> str:
    count = len(results)
    kind = "weaker" if results[0].candidate.band == UNLIKELY else "more"
    return f"{count} {kind} {'result' if count == 1 else 'results'}: -n {total}"


def _band_column(page: Page, results: Sequence[SearchResult], style: Style) -> int:
    """How wide titles are before the bands, which stand below each other on a terminal."""
    if not style.width:
        return 0
    room = style.width - len(INDENT)
    room -= max((columns_of(_facts(page, each, Style())) for each in results), default=0)
    titles = [columns_of(_title(each)) for each in results]
    return max((title for title in titles if title <= room), default=0)


def _rows(line: str, width: int) -> int:
    """How many rows of a terminal a line takes."""
    return max(-(-columns_of(line) // width), 1) if width else 1


def _title(result: SearchResult) -> str:
    return printable(" > ".join(_headings(result)))


def _result(
    page: Page, rank: int, result: SearchResult, style: Style, column: int = 0
) -> Iterator[str]:
    title = _title(result)
    yield (
        f"{style.styled(f'{rank:2}', FAINT)}  {style.styled(title, BOLD)}"
        f"{' ' * (column - columns_of(title))}{_facts(page, result, style)}".rstrip()
    )
    place = printable(f"{page.place(result)}:{result.line}")
    uri = result.uri if system_may_open(result.path) else ""
    yield INDENT + style.linked(style.styled(place, CYAN), uri)
    if result.snippet.text:
        yield from style.marked(same_length(result.snippet.text), result.snippet.marks, INDENT)
    if result.candidate.also:
        yield INDENT + style.styled(f"also: {printable(_also(result.candidate))}", FAINT)
    if page.explain:
        yield from style.marked(printable(why_sentence(rank, result)), (), "      ")
        reasons = (f"      {printable(line)}" for line in _reasons(result.candidate))
        yield from (wrapped(line, style.width) for line in reasons)


def _headings(result: SearchResult) -> list[str]:
    """The title and the headings below it, without a first heading that repeats the title."""
    title = result.candidate.note.title or result.candidate.note.path
    headings = list(result.headings)
    return [title, *(headings[1:] if headings[:1] == [title] else headings)]


def _also(candidate: Candidate) -> str:
    """The other sections of the note that matched, by their own heading or else their lines."""
    known = {candidate.note.title, *candidate.headings}  # on the row already
    names = [
        next((each for each in reversed(place.headings) if each not in known), "")
        or f"lines {place.lines[0]}-{place.lines[1]}"
        for place in candidate.also
    ]
    shown = list(dict.fromkeys(names))
    more = len(shown) - MAX_ALSO
    return ", ".join(shown[:MAX_ALSO]) + (f" and {more} more" if more > 0 else "")


def _facts(page: Page, result: SearchResult, style: Style) -> str:
    candidate, facts = result.candidate, []
    if candidate.confidence is not None:
        number = f" {candidate.confidence:.2f}" if page.explain else ""
        facts.append(style.styled(f"{candidate.band}{number}", BANDS.get(candidate.band, FAINT)))
    if result.date is not None:
        facts.append(style.styled(_age(result.date, page.caller.now), FAINT))
    if page.answer.several:
        facts.append(printable(result.answer.vault))
    if result.stale:
        facts.append("changed since it was indexed")
    if candidate.queries:
        places = ", ".join(str(place + 1) for place in candidate.queries)
        facts.append(f"{'query' if len(candidate.queries) == 1 else 'queries'} {places}")
    return "  " + ", ".join(facts) if facts else ""


def _age(date: Date, now: float) -> str:
    """A file from the future counts as today: clocks differ. A note may be dated ahead."""
    age = now - date.at
    return age_in_words(max(0.0, age) if date.source == "mtime" else age)


def age_in_words(seconds: float) -> str:
    """How long ago, or how far ahead."""
    days = int(seconds // DAY)
    if days < -1:
        return f"in {-days} days"
    for least, name, length in UNITS:
        if days >= least:
            return f"{days // length} {name}s ago"
    return "yesterday" if days == 1 else "today"


def same_length(text: str) -> str:
    """Printable lines, with one character for each one, so that marks stay in place."""
    return "".join(char if char.isprintable() or char == "\n" else "\ufffd" for char in text)


# --- --explain ---


def _reasons(candidate: Candidate) -> Iterator[str]:
    """Every reason for a score, in the order of the stages."""
    legs = ", ".join(f"{leg} {rank}" for leg, rank in sorted(candidate.ranks.items()))
    yield f"found by: {legs or 'the filter'}"  # without a leg it is in a list by filter alone
    for step in candidate.steps:
        # A cap that takes nothing that could be seen is no reason.
        shown = (term for term in step.terms if term.name != "bound" or term.amount < -LEAST_SHOWN)
        terms = " ".join(map(_term, shown))
        why = " ".join(part for part in (terms, step.why) if part)
        yield f"{step.stage:9} {step.score:.4f}  {why}".rstrip()


def _term(term: Term) -> str:
    amount = f"x{1 + term.amount:.3f}" if term.how == "multiply" else f"{term.amount:+.4f}"
    return f"{term.name} {amount}{f' ({term.why})' if term.why else ''}"


def _understood(answer: SearchAnswer) -> Iterator[str]:
    """How the query was understood, once if all vaults agree."""
    plans = (plan for each in answer.answers for plan in each.plans or (each.plan,))
    parses = dict.fromkeys(plan.parse for plan in plans)
    yield from (printable(f"Understood as: {parse}") for parse in parses)


def _trace(response: VaultAnswer) -> Iterator[str]:
    """What each leg found and when, and what each stage kept."""
    for run in response.runs:
        what = run.failed or f"{run.hits} {'hit' if run.hits == 1 else 'hits'}"
        yield f"{run.leg:9} {run.start * 1000:6.1f} to {run.end * 1000:6.1f} ms  {what}"
    for outcome in response.stages:
        removed = f", {len(outcome.ranked.removed)} removed" if outcome.ranked.removed else ""
        yield f"{outcome.stage:9} {len(outcome.ranked)} kept{removed}"


# --- why a result has its place ---

#     First because its title matches, and it is near in meaning; moved up one by 12 backlinks
#
# Everything in the sentence is read from what the stages returned; nothing is computed again.

_SHARE = 0.15  # of what all legs gave a result; a leg that gave less is not worth a word
_ORDINALS = ("First", "Second", "Third")
_NUMBERS = ("no place", "one", "two", "three")
_NAMES = {"title": "its name is the query", "alias": "the query is another name of it"}
_PHRASE = "it contains the phrase"
# Legs in the order in which people want to hear of them, each with what a hit means.
_LEGS = {
    "name": "its name matches",
    "keyword": "it contains your words",
    "vector": "it is near in meaning",
    "code": "its code contains your words",
    "graph": "it is linked with other results",
}
# What a boost is called; the boosts that only limit others are not named.
_BOOSTS = {
    "recency": "its date",
    "community": "notes of its group near the top",
    "importance": "its importance",
    "access": "how often you open it",
    "templates": "being a template",
    "superseded": "a newer note that replaces it",
}


def why_sentence(rank: int, result: SearchResult) -> str:
    """Why a result has its place."""
    candidate, response = result.candidate, result.answer
    place = _ORDINALS[rank - 1] if rank <= len(_ORDINALS) else f"{rank}th"
    reasons = list(_why(result))
    if not reasons:
        if response.plan.listing:
            return f"{place} by date: the query has only conditions"
        return f"{place} because it passes the conditions"
    text = f"{place} because {_listed(reasons)}"
    return "; ".join([text, *_moves(candidate, response)])


def _why(result: SearchResult) -> Iterator[str]:
    candidate = result.candidate
    if candidate.exact == "phrase":
        yield _PHRASE
    elif candidate.exact:
        yield _NAMES[candidate.exact]
    elif result.match.in_title:
        yield "its title matches"
    legs = _telling_legs(candidate)
    if candidate.exact or result.match.in_title:
        legs -= {"name"}
    yield from (reason for leg, reason in _LEGS.items() if leg in legs)


def _telling_legs(candidate: Candidate) -> set[str]:
    """The legs that found it, without those that gave it next to nothing."""
    terms = {term.name: term.amount for step in candidate.steps[:1] for term in step.terms}
    given = {leg: terms[leg] for leg in _LEGS if terms.get(leg, 0.0) > 0}
    least = _SHARE * sum(given.values())
    return {leg for leg, amount in given.items() if amount >= least} or set(candidate.ranks)


def _listed(clauses: Sequence[str]) -> str:
    """a; a, and b; a, b, and c."""
    *first, last = clauses
    return f"{', '.join(first)}, and {last}" if first else last


def _moves(candidate: Candidate, response: VaultAnswer) -> Iterator[str]:
    """How boosts, and the reranker, changed its place."""
    places = {each.stage: each.ranked for each in response.stages}
    steps = {step.stage: step for step in candidate.steps}
    if "fuse" in places and "boost" in places and "boost" in steps:
        risen = _rise(candidate, places["fuse"], places["boost"])
        causes = list(_causes(candidate, steps["boost"], response, risen))
        if risen and causes:
            yield f"moved {_direction(risen)} by {' and '.join(causes)}"
    if "rerank" in steps and "diversify" in places:
        risen = _rise(candidate, places["diversify"], places["rerank"])
        if risen:
            yield f"moved {_direction(risen)} by the reranker"


def _causes(candidate: Candidate, step: Step, response: VaultAnswer, risen: int) -> Iterator[str]:
    """The boosts that moved it up or down, as it was moved."""
    by_notes = response.config.boost.backlinks.count == "notes"
    links = candidate.note.linkers if by_notes else candidate.note.links
    names = {"backlinks": f"{links} backlink{'' if links == 1 else 's'}", **_BOOSTS}
    for term in step.terms:
        if term.name in names and term.amount and (term.amount > 0) == (risen > 0):
            yield names[term.name]


def _rise(candidate: Candidate, before: Ranked, after: Ranked) -> int:
    """How many places up, among the candidates that both stages kept."""
    ids = [each.id for each in after]
    left = set(ids)
    was = [each.id for each in before if each.id in left]
    if candidate.id not in left or candidate.id not in was:
        return 0
    return was.index(candidate.id) - ids.index(candidate.id)


def _direction(risen: int) -> str:
    way, count = ("up", risen) if risen > 0 else ("down", -risen)
    return f"{way} {_NUMBERS[count] if count < len(_NUMBERS) else count}"


# --- for pipes, editors and prompts ---


def as_paths(page: Page) -> str:
    """Every note once, best first."""
    safe = printable if page.caller.terminal else one_line
    return "\n".join(map(safe, _paths(page)))


def _paths(page: Page) -> list[str]:
    return list(dict.fromkeys(page.place(each) for each in page.matches))


def as_grep(page: Page) -> str:
    """`path:line: text`, with the line in which the snippet begins."""
    safe = printable if page.caller.terminal else one_line
    return "\n".join(
        f"{safe(page.place(each))}:{each.line}: {printable(each.match.line_text)}"
        for each in page.matches
    )


def as_markdown(page: Page) -> str:
    """Sections, each under a heading with its place."""
    parts = [f"{NO_MATCH}\n"] if page.is_held_back else []
    for each in page.answer.results:
        title = one_line(each.candidate.note.title or each.candidate.note.path)
        text = each.candidate.text.strip()  # empty for a note that is all frontmatter
        parts.append(f"## {title} ({_citation(page, each)})\n" + (f"\n{text}\n" if text else ""))
    return "\n".join(parts).rstrip("\n")


def as_context(page: Page) -> str:
    """Sections with numbered citations, ready for a model's prompt."""
    parts = [f"{NO_MATCH}\n"] if page.is_held_back else []
    for number, each in enumerate(page.answer.results, 1):
        heading = one_line(" > ".join(_headings(each)))
        head = f"[{number}] {_citation(page, each)} | {heading}"
        parts.append(f"{head}\n{each.candidate.text.strip()}".rstrip() + "\n")
    return "\n".join(parts).rstrip("\n")


def _citation(page: Page, result: SearchResult) -> str:
    first, last = result.candidate.lines
    vault = f"{result.answer.vault}: " if page.answer.several else ""
    # On one line, whatever the name: the text begins on the next one.
    return one_line(f"{vault}{result.candidate.note.path}:{first}-{last}")


def _json(page: Page) -> str:
    return respond(page.answer, explain=page.explain).to_json()


def _jsonl(page: Page) -> str:
    """The objects of `results`, one per line, each with `likely` of the answer."""
    found = respond(page.answer, explain=page.explain)
    return "\n".join(encode({**each.to_dict(), "likely": found.likely}) for each in found)


FORMATS: Mapping[str, Callable[[Page], str]] = {
    "text": as_text,
    "json": _json,
    "jsonl": _jsonl,
    "paths": as_paths,
    "grep": as_grep,
    "markdown": as_markdown,
    "context": as_context,
}


# --- colour and links ---


class Style(NamedTuple):
    """What the terminal supports; `width` 0 means that lines are not wrapped.

    `snippet` is how many lines of each result's text are shown.
    """

    colour: bool = False
    links: bool = False
    width: int = 0
    snippet: int = SNIPPET_LINES

    def styled(self, text: str, style: str) -> str:
        return f"\x1b[{style}m{text}\x1b[0m" if self.colour and text else text

    def linked(self, text: str, uri: str) -> str:
        return f"\x1b]8;;{uri}\x1b\\{text}\x1b]8;;\x1b\\" if self.links and uri else text

    def marked(self, text: str, marks: Sequence[tuple[int, int]], indent: str) -> list[str]:
        """Wrapped lines of the text with its marks highlighted, as many as a snippet has."""
        at, lines = 0, []
        wrapped = [part for line in text.split("\n") for part in self._wrapped(line, len(indent))]
        for line in wrapped[: self.snippet]:
            at = text.index(line, at)
            lines.append(indent + self._highlighted(line, at, marks))
            at += len(line)
        if len(wrapped) > self.snippet and not lines[-1].endswith(MORE):
            lines[-1] += f" {MORE}"
        return lines

    def _wrapped(self, text: str, indent: int) -> list[str]:
        if not self.width:
            return [text]
        # Not below 20: nobody reads a window that narrow.
        room = max(self.width - indent - len(MORE) - 1, 20)
        return textwrap.wrap(text, room, break_long_words=False, break_on_hyphens=False) or [""]

    def _highlighted(self, line: str, at: int, marks: Sequence[tuple[int, int]]) -> str:
        done, parts = 0, []
        for start, end in marks:
            first, last = max(start - at, 0), min(end - at, len(line))
            if first < last:
                parts += [line[done:first], self.styled(line[first:last], MATCH)]
                done = last
        return "".join([*parts, line[done:]])


def style_for(caller: Caller, links: bool) -> Style:
    """Colour and links on a terminal; nothing in a pipe."""
    if not caller.terminal:
        return Style()
    dumb = caller.environ.get("TERM") == "dumb"
    return Style(caller.colour, links and not dumb, caller.columns)
