"""Explain: why a result stands where it does, in one sentence.

    First because its title matches, and it is near in meaning; moved up one by 12 backlinks

Everything in it is read from what the stages returned; nothing is computed again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ragvault.answer.results import Response, SearchResult
from ragvault.candidate import Candidate, Ranked, Term

SHARE = 0.15  # of what all legs gave a result; a leg that gave less is not worth a word
ORDINALS = ("First", "Second", "Third")
NUMBERS = ("no place", "one", "two", "three")
NAMES = {"title": "its title is the query", "alias": "the query is another name of it"}
PHRASE = "it contains the phrase"
# Legs in the order in which people want to hear of them, each with what a hit means.
LEGS = {
    "name": "its name matches",
    "keyword": "it contains your words",
    "vector": "it is near in meaning",
    "code": "its code contains your words",
    "graph": "it is linked with other results",
}
# What a boost is called; the boosts that only limit others are not named.
BOOSTS = {
    "recency": "its date",
    "community": "notes of its group near the top",
    "importance": "its importance",
    "access": "how often you open it",
    "templates": "being a template",
    "superseded": "a newer note that replaces it",
}


def why_sentence(rank: int, result: SearchResult) -> str:
    """Why a result has its place."""
    candidate, response = result.candidate, result.answer.response
    place = ORDINALS[rank - 1] if rank <= len(ORDINALS) else f"{rank}th"
    reasons = list(_reasons(result))
    if not reasons:
        if response.plan.listing:
            return f"{place} by date: the query has only conditions"
        return f"{place} because it passes the conditions"
    text = f"{place} because {_joined(reasons)}"
    return "; ".join([text, *_moves(candidate, response)])


def _reasons(result: SearchResult) -> Iterator[str]:
    candidate = result.candidate
    if candidate.exact == "phrase":
        yield PHRASE
    elif candidate.exact:
        yield NAMES[candidate.exact]
    elif result.match.in_title:
        yield "its title matches"
    legs = _telling_legs(candidate)
    if candidate.exact or result.match.in_title:
        legs -= {"name"}
    yield from (reason for leg, reason in LEGS.items() if leg in legs)


def _telling_legs(candidate: Candidate) -> set[str]:
    """The legs that found it, without those that gave it next to nothing."""
    terms = {term.name: term.amount for step in candidate.steps[:1] for term in step.terms}
    given = {leg: terms[leg] for leg in LEGS if terms.get(leg, 0.0) > 0}
    least = SHARE * sum(given.values())
    return {leg for leg, amount in given.items() if amount >= least} or set(candidate.ranks)


def _joined(clauses: Sequence[str]) -> str:
    """a; a, and b; a, b, and c."""
    *first, last = clauses
    return f"{', '.join(first)}, and {last}" if first else last


def _moves(candidate: Candidate, response: Response) -> Iterator[str]:
    """How boosts, and the reranker, changed its place."""
    places = {each.stage: each.ranked for each in response.stages}
    steps = {step.stage: step for step in candidate.steps}
    if "fuse" in places and "boost" in places and "boost" in steps:
        risen = _rise(candidate, places["fuse"], places["boost"])
        causes = [_cause(term) for term in steps["boost"].terms if _counts(term, risen)]
        if risen and causes:
            yield f"moved {_direction(risen)} by {' and '.join(causes)}"
    if "rerank" in steps and "diversify" in places:
        risen = _rise(candidate, places["diversify"], places["rerank"])
        if risen:
            yield f"moved {_direction(risen)} by the reranker"


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
    return f"{way} {NUMBERS[count] if count < len(NUMBERS) else count}"


def _counts(term: Term, risen: int) -> bool:
    known = term.name in BOOSTS or term.name == "backlinks"
    return known and (term.amount > 0) == (risen > 0) and term.amount != 0


def _cause(term: Term) -> str:
    if term.name == "backlinks":
        count = term.why.split(" ", 1)[0]
        return f"{count} backlink{'' if count == '1' else 's'}"
    return BOOSTS[term.name]
