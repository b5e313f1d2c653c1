"""Contents: what a vault holds, counted, a page at a time.

    tags         with the notes that have the tag or one below it, as `tag:` finds them
    folders      with the notes in them and below; / is the whole vault
    properties   with the notes that have them, and their most frequent values
    notes        with their titles and dates

A filter is a query: its words must all be in the name of what is listed, and its conditions choose
the notes that count. Counts come first where there are some, then names.

A search that found nothing asks here too: `unmet_conditions` are those that no note meets, each
with the nearest tag, property, value or note that is there.

    No notes tagged #frut. Did you mean #fruit (39 notes)?
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, Literal, get_args

from ragvault.errors import UsageError
from ragvault.plan import LinkedBy, LinksTo, MatchesWords, Phrase, Property, QueryPlan, Tagged
from ragvault.plan import leaves as leaves_of
from ragvault.text.dates import iso_utc
from ragvault.text.names import nearest_notes, notes_called
from ragvault.text.spelling import fold_case, nearest

if TYPE_CHECKING:
    from ragvault.types import Head

Kind = Literal["tags", "folders", "properties", "notes"]
KINDS: tuple[Kind, ...] = get_args(Kind)
VALUES = 5  # of a property: its most frequent ones


@dataclass(frozen=True, slots=True)
class Counted:
    """A tag, folder or property, and how many notes have it. `values` are those of a property."""

    name: str
    notes: int
    values: tuple[Counted, ...] = ()


@dataclass(frozen=True, slots=True)
class ListedNote:
    """A note. `date` is its own, as lists are ordered by."""

    note: str
    title: str
    date: str | None  # YYYY-MM-DD


@dataclass(frozen=True, slots=True)
class Contents:
    """One page. `total` counts all pages; `next` is the cursor of the next one, None at the end."""

    kind: Kind
    items: tuple[Counted | ListedNote, ...]
    total: int
    next: str | None = None
    vault: str = ""

    def __repr__(self) -> str:
        return f"<Contents of {self.vault}: {len(self.items)} of {self.total} {self.kind}>"

    def to_dict(self) -> dict[str, Any]:
        """The page as `--json` has it. Only properties have values."""
        items = []
        for item in self.items:
            plain = asdict(item)
            if isinstance(item, Counted) and self.kind != "properties":
                del plain["values"]
            for value in plain.get("values", ()):
                del value["values"]
            items.append({k: list(v) if isinstance(v, tuple) else v for k, v in plain.items()})
        return {
            "vault": self.vault,
            "kind": self.kind,
            "items": items,
            "total": self.total,
            "next": self.next,
        }


def contents(
    kind: Kind,
    notes: Sequence[Head],
    dates: Mapping[int, float],
    *,
    words: str = "",
    limit: int | None = None,
    cursor: str | None = None,
) -> Contents:
    """What these notes hold of one kind. `dates` are those of notes, by id.

    Raises UsageError for a cursor that no page has given.
    """
    start, wanted = _start(cursor), fold_case(words).split()
    every = [each for each in _list(kind, notes, dates) if _has(wanted, _name(each))]
    stop = len(every) if limit is None else start + limit
    return Contents(
        kind, tuple(every[start:stop]), len(every), str(stop) if stop < len(every) else None
    )


def _list(
    kind: Kind, notes: Sequence[Head], dates: Mapping[int, float]
) -> Sequence[Counted | ListedNote]:
    if kind == "notes":
        days = {note.id: (iso_utc(dates.get(note.id)) or "")[:10] or None for note in notes}
        listed = [ListedNote(note.path, note.title, days[note.id]) for note in notes]
        return sorted(listed, key=lambda each: each.note)
    return {"tags": tags, "folders": folders, "properties": properties}[kind](notes)


def _start(cursor: str | None) -> int:
    if cursor is None:
        return 0
    if not cursor.isascii() or not cursor.isdigit():
        raise UsageError(f"“{cursor}” is not a cursor", fix="use the `next` of the page before")
    return int(cursor)


def _has(words: Iterable[str], name: str) -> bool:
    folded = fold_case(name)
    return all(word in folded for word in words)


def _name(item: Counted | ListedNote) -> str:
    return item.name if isinstance(item, Counted) else f"{item.note} {item.title}"


# --- what is counted ---


def tags(notes: Iterable[Head]) -> list[Counted]:
    """Every tag and the tags above it; a note counts once for each."""
    return _by_count(_parents(note.tags) for note in notes)


def folders(notes: Iterable[Head]) -> list[Counted]:
    """Every folder with a note in or below it, by name."""
    counted = Counter(folder for note in notes for folder in _folders(note.path))
    return [Counted(name, number) for name, number in sorted(counted.items())]


def properties(notes: Iterable[Head]) -> list[Counted]:
    """Every property, and how often its most frequent values occur."""
    held: dict[str, list[tuple[str, set[str]]]] = {}
    for note in notes:
        for name, value in note.properties.items():
            held.setdefault(fold_case(str(name)), []).append((str(name), set(_texts(value))))
    found = [
        Counted(
            Counter(name for name, _ in each).most_common(1)[0][0],
            len(each),
            tuple(_by_count(values for _, values in each)[:VALUES]),
        )
        for each in held.values()
    ]
    return sorted(found, key=_order)


def property_values(notes: Iterable[Head], name: str) -> list[Counted]:
    """Every value of one property, in whatever case the name is."""
    wanted = fold_case(name)
    return _by_count(
        set(_texts(value))
        for note in notes
        for key, value in note.properties.items()
        if fold_case(str(key)) == wanted
    )


def _by_count(held: Iterable[Iterable[str]]) -> list[Counted]:
    """How many of the collections hold each name; one entry for all cases of a name."""
    counts: Counter[str] = Counter()
    spellings: dict[str, Counter[str]] = {}
    for names in held:
        once = {fold_case(name): name for name in names}
        counts.update(once.keys())
        for key, name in once.items():
            spellings.setdefault(key, Counter())[name] += 1
    found = [Counted(spellings[key].most_common(1)[0][0], n) for key, n in counts.items()]
    return sorted(found, key=_order)


def _order(item: Counted) -> tuple[int, str, str]:
    return -item.notes, fold_case(item.name), item.name


def _parents(own: Sequence[str]) -> Iterator[str]:
    for tag in own:
        parts = tag.split("/")
        yield from ("/".join(parts[: at + 1]) for at in range(len(parts)))


def _folders(path: str) -> Iterator[str]:
    yield from ("/" if str(each) == "." else f"{each}/" for each in PurePosixPath(path).parents)


def _texts(value: Any) -> Iterator[str]:
    """The values of a property as text, those of a list one by one."""
    if isinstance(value, (list, tuple, set, frozenset)):
        for each in value:
            yield from _texts(each)
    elif isinstance(value, bool):
        yield str(value).lower()
    elif value is not None and value != "":
        yield " ".join(str(value).split())


# --- why a query with conditions found nothing, and what was probably meant ---


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
