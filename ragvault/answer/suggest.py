"""Suggest: why a query with conditions found nothing, and what was probably meant.

    No notes tagged #frut. Did you mean #fruit (39 notes)?

Each condition that no note of any searched vault meets is named, with the nearest tag, property,
value or note that is there. Nothing is looked up unless a search found nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from ragvault.answer.contents import Counted, properties, property_values, tags
from ragvault.plan import LinkedBy, LinksTo, MatchesWords, Phrase, Property, QueryPlan, Tagged
from ragvault.plan import leaves as leaves_of
from ragvault.text.names import nearest_notes, notes_called
from ragvault.text.spelling import fold_case, nearest
from ragvault.types import Head


@dataclass(frozen=True, slots=True)
class Unmet:
    """A condition that no note of a vault meets, and what is there instead, as it is written."""

    message: str
    near: tuple[Counted, ...] = ()
    written: str = "{}"
    hint: str = ""


def unmet_conditions(plan: QueryPlan, notes: Sequence[Head]) -> list[Unmet]:
    """The conditions of a query that no note meets. Those behind a minus are not looked at."""
    if plan.filter is None:
        return []
    found: list[Unmet] = []
    for leaf in leaves_of(plan.filter, negated=False):
        if isinstance(leaf, Tagged):
            found += _tag(leaf, notes)
        elif isinstance(leaf, Property):
            found += _property(leaf, notes)
        elif isinstance(leaf, (LinksTo, LinkedBy)):
            found += _note(leaf.note, notes)
    # Beside other conditions, notes may contain the phrase and not meet those.
    if isinstance(plan.filter, MatchesWords) and isinstance(plan.filter.query, Phrase):
        message = f"No note contains the phrase “{plan.filter.query.text}”."
        found.append(Unmet(message, hint="Try it without quotes."))
    return list(dict.fromkeys(found))


def suggestions(unmet: Sequence[Sequence[Unmet]]) -> Iterator[str]:
    """One line for each condition that none of the vaults meets."""
    for first in unmet[0] if unmet else ():
        same = [each for vault in unmet for each in vault if each.message == first.message]
        if len(same) == len(unmet):
            yield " ".join(filter(None, (first.message, _did_you_mean(same), first.hint)))


def _did_you_mean(same: Sequence[Unmet]) -> str:
    """The nearest of all vaults; its notes are counted together."""
    near = [each for unmet in same for each in unmet.near]
    if not near:
        return ""
    name = near[0].name
    number = sum(each.notes for each in near if fold_case(each.name) == fold_case(name))
    count = f" ({number:,} note{'' if number == 1 else 's'})" if number else ""
    return f"Did you mean {same[0].written.format(name)}{count}?"


def _tag(leaf: Tagged, notes: Sequence[Head]) -> Iterator[Unmet]:
    known = tags(notes)
    if "*" not in leaf.tag and not _is_there(leaf.tag, known):
        yield Unmet(f"No notes tagged #{leaf.tag}.", _nearest(leaf.tag, known), "#{}")


def _property(leaf: Property, notes: Sequence[Head]) -> Iterator[Unmet]:
    known = properties(notes)
    if not _is_there(leaf.name, known):
        yield Unmet(f"No note has the property {leaf.name}.", _nearest(leaf.name, known), "[{}]")
    elif leaf.test == "=" and leaf.value is not None:
        values = property_values(notes, leaf.name)
        text = leaf.value.text
        if "*" not in text and not _is_there(text, values):
            asked = f"No note has {leaf.name}: {text}."
            yield Unmet(asked, _nearest(text, values), f"[{leaf.name}:{{}}]")


def _note(name: str, notes: Sequence[Head]) -> Iterator[Unmet]:
    if not notes_called(notes, [name]):
        near = tuple(Counted(each, 0) for each in nearest_notes(notes, name).values())
        yield Unmet(f"No note called “{name}”.", near)


def _is_there(name: str, known: Iterable[Counted]) -> bool:
    wanted = fold_case(name)
    return any(fold_case(each.name) == wanted for each in known)


def _nearest(name: str, known: Sequence[Counted]) -> tuple[Counted, ...]:
    spelt = {fold_case(each.name): each for each in reversed(known)}
    return tuple(spelt[near] for near in nearest(name, spelt))
