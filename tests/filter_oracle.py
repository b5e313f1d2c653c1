"""Queries made by chance, each with what it means: a test of a note and one of its passages.

Written from docs/searching.md and not from the code: values are compared as Python compares them,
note by note and passage by passage.
"""

from __future__ import annotations

import random
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, timedelta, timezone
from functools import cache
from typing import Any

from filter_vault import ALIASES, HEADINGS, MORE_TAGS, TAGS, WORDS, Piece, Spec

Keeps = Callable[[Spec, Piece], bool]

ZONE = timezone(timedelta(hours=-8))
NOW = datetime(2024, 3, 13, 15, 0, tzinfo=ZONE)  # a Wednesday
# Headings as they are typed behind a link, and how a link ends that leads there.
ANCHORS = [("#METHOD", "#Method"), ("#What's new?", "#whats-new"), ("#Maß", "#API#Maß")]
LANGUAGES = [("py", ("python", "py")), ("JavaScript", ("js",)), ("R", ("r",)), ("cpp", ("c++",))]
PERIODS = {
    "2024": (datetime(2024, 1, 1), datetime(2025, 1, 1)),
    "2024-03": (datetime(2024, 3, 1), datetime(2024, 4, 1)),
    "2024-02-29": (datetime(2024, 2, 29), datetime(2024, 3, 1)),
    '"last week"': (datetime(2024, 3, 4), datetime(2024, 3, 11)),
    "yesterday": (datetime(2024, 3, 12), datetime(2024, 3, 13)),
    '"this month"': (datetime(2024, 3, 1), datetime(2024, 4, 1)),
    '"30 days ago"': (datetime(2024, 2, 12), datetime(2024, 2, 13)),
    "last-monday": (datetime(2024, 3, 11), datetime(2024, 3, 12)),
    "2023-10": (datetime(2023, 10, 1), datetime(2023, 11, 1)),
}


@dataclass(frozen=True)
class Asked:
    """A query and its meaning."""

    text: str
    keeps: Keeps


@cache
def same(text: str) -> str:
    return unicodedata.normalize("NFC", text).casefold()


class Asker:
    """Makes queries by chance, over the notes of a vault."""

    def __init__(self, notes: list[Spec], chance: random.Random) -> None:
        self.notes = notes
        self.chance = chance
        self.called = {note.path: _names(note) for note in notes}

    def query(self) -> Asked:
        """Several conditions side by side, and sometimes words that filter nothing."""
        asked = self.together(depth=2)
        if self.chance.random() < 0.3:
            return Asked(f"{asked.text} {self.chance.choice(WORDS)}", asked.keeps)
        return asked

    def together(self, depth: int) -> Asked:
        parts = [self.item(depth) for _ in range(self.chance.choice([1, 1, 2, 2, 3]))]
        text = f" {self.chance.choice(['', 'AND '])}".join(part.text for part in parts)
        return Asked(text, lambda n, p: all(part.keeps(n, p) for part in parts))

    def item(self, depth: int) -> Asked:
        kind = self.chance.random()
        if depth and kind < 0.15:
            return self.negated(self.item(depth - 1))
        if depth and kind < 0.2:
            return self.negated(self.word())
        if depth and kind < 0.4:
            return self.choice(depth - 1)
        return self.chance.choice(self.LEAVES)(self)

    def negated(self, part: Asked) -> Asked:
        if part.text.startswith("-"):
            return part
        return Asked(f"-{part.text}", lambda n, p: not part.keeps(n, p))

    def choice(self, depth: int) -> Asked:
        """At least one side is a condition, so that the words of the others are musts too."""
        parts = [self.chance.choice(self.CONDITIONS)(self)]
        parts += [
            self.word() if self.chance.random() < 0.3 else self.together(depth)
            for _ in range(self.chance.randint(1, 2))
        ]
        self.chance.shuffle(parts)
        text = " OR ".join(part.text for part in parts)
        return Asked(f"({text})", lambda n, p: any(part.keeps(n, p) for part in parts))

    # Leaves: what is typed, and what it means.

    def word(self) -> Asked:
        word = self.chance.choice(WORDS)
        return Asked(word, lambda n, p: word in p.text.split())

    def phrase(self) -> Asked:
        first, second = self.chance.choices(WORDS, k=2)
        wanted = f" {first} {second} "
        return Asked(f'"{first} {second}"', lambda n, p: wanted in f" {' '.join(p.text.split())} ")

    def content(self) -> Asked:
        word = self.chance.choice(WORDS)
        return Asked(f"content:{word}", lambda n, p: word in p.text.split())

    def tag(self) -> Asked:
        tag = self.chance.choice([*TAGS, *MORE_TAGS, "RECIPE", "Été", "nothing"])
        sign = self.chance.choice(["", "#"])
        return Asked(f"tag:{sign}{tag}", lambda n, p: _tagged(n, tag))

    def path(self) -> Asked:
        part = self.chance.choice(["journal", "RECIPES/", "/journal", "crits", "école", "2024/b"])
        return Asked(f"path:{part}", lambda n, p: same(part) in "/" + same(n.path))

    def file(self) -> Asked:
        part = self.chance.choice(["bread", "STRASSE", "7.md", "naïve", "rye 1"])
        text = f'file:"{part}"' if " " in part else f"file:{part}"
        return Asked(text, lambda n, p: same(part) in same(n.path.rpartition("/")[2]))

    def title(self) -> Asked:
        part = self.chance.choice(["sourdough", "GRÜSSE", "budget 2024", "x", "sour*er"])
        left, _, right = same(part).partition("*")
        return Asked(
            f'title:"{part}"',
            lambda n, p: (
                left in same(n.title) and right in same(n.title).partition(left)[2]
                if right
                else left in same(n.title)
            ),
        )

    def alias(self) -> Asked:
        part = self.chance.choice([*ALIASES, "bread"])
        return Asked(f'alias:"{part}"', lambda n, p: any(same(part) in same(a) for a in n.aliases))

    def heading(self) -> Asked:
        part = self.chance.choice([*HEADINGS, "ingr", "über", "new?", "mass"])
        return Asked(f'heading:"{part}"', lambda n, p: any(same(part) in same(h) for h in p.heads))

    def lang(self) -> Asked:
        asked, names = self.chance.choice(LANGUAGES)
        return Asked(f"lang:{asked}", lambda n, p: not p.lang.isdisjoint(names))

    def has(self) -> Asked:
        part = self.chance.choice(["code", "table", "task", "image"])
        return Asked(f"has:{part}", lambda n, p: part in p.has)

    def task(self) -> Asked:
        name, marks = self.chance.choice([("task", " x-"), ("task-todo", " "), ("task-done", "x-")])
        said = self.chance.choice(["call", "FLOUR", "", "review budget"])
        return Asked(
            f'{name}:"{said}"',
            lambda n, p: any(m in marks and same(said) in same(line) for m, line in p.tasks),
        )

    def link(self) -> Asked:
        name = self._name()
        heading, ends = self.chance.choice([("", "")] * 3 + ANCHORS)
        return Asked(
            f'{self.chance.choice(["link", "linkto"])}:"{name}{heading}"',
            lambda n, p: any(
                self._leads_to(said, path, name) and said.endswith(ends)
                for said, path in n.links
                if path != n.path
            ),
        )

    def _leads_to(self, said: str, path: str | None, name: str) -> bool:
        if path:
            return self._is(path, name)
        return same(_bare(f"/{said.partition('#')[0]}")).endswith(f"/{same(name)}")

    def linkedby(self) -> Asked:
        name = self._name()
        targets = {
            path
            for note in self.notes
            if self._is(note.path, name)
            for _, path in note.links
            if path != note.path
        }
        return Asked(f'linkedby:"{name}"', lambda n, p: n.path in targets)

    def _name(self) -> str:
        note = self.chance.choice(self.notes[:60])
        stem = note.path.rpartition("/")[2].removesuffix(".md")
        return self.chance.choice(
            [stem, stem.upper(), note.path, _bare(note.path), "Future", *ALIASES[:2], "Home"]
        )

    def _is(self, path: str, name: str) -> bool:
        return same(name) in self.called[path]

    # Properties: (what is typed, a test of one value).

    def field(self) -> Asked:
        name, test, typed = self.chance.choice(PROPERTY_TESTS)
        return Asked(
            typed,
            lambda n, p: any(test(value) for key, value in _values(n) if same(key) == same(name)),
        )

    # Dates.

    def dated(self) -> Asked:
        field = self.chance.choice(["created", "modified", "date"])
        typed, (first, last) = self.chance.choice(sorted(PERIODS.items()))
        sign, since, until = self.chance.choice(
            [
                ("", first, last),
                (">=", first, None),
                (">", last, None),
                ("<", None, first),
                ("<=", None, last),
            ]
        )
        return Asked(f"{field}:{sign}{typed}", _between(field, since, until))

    def since(self) -> Asked:
        typed, (first, _) = self.chance.choice(sorted(PERIODS.items()))
        name = self.chance.choice(["since", "before"])
        ends = (first, None) if name == "since" else (None, first)
        return Asked(f"{name}:{typed}", _between("date", *ends))

    def span(self) -> Asked:
        return Asked(
            "created:2023-10..2024-03",
            _between("created", datetime(2023, 10, 1), datetime(2024, 4, 1)),
        )

    def tag_group(self) -> Asked:
        one, two = self.chance.sample(TAGS, 2)
        return Asked(f"tag:({one} OR {two})", lambda n, p: _tagged(n, one) or _tagged(n, two))

    CONDITIONS = (
        *(tag, path, file, title, alias, heading, lang, has, task, link, linkedby),
        *(field, field, dated, dated, since, span, tag_group),
    )
    LEAVES = (*CONDITIONS, phrase, content)


def _tagged(note: Spec, wanted: str) -> bool:
    return any(f"{same(tag)}/".startswith(f"{same(wanted)}/") for tag in note.tags)


def _names(note: Spec) -> set[str]:
    """All that a person might call a note: its title, its aliases, its path and every end of it."""
    parts = note.path.split("/")
    ends = ["/".join(parts[i:]) for i in range(len(parts))]
    return {same(name) for name in (note.title, *note.aliases, *ends, *map(_bare, ends))}


def _bare(path: str) -> str:
    return path.removesuffix(".md")


def _between(field: str, since: datetime | None, until: datetime | None) -> Keeps:
    def keeps(note: Spec, piece: Piece) -> bool:
        at = getattr(note, field)
        utc = datetime.fromtimestamp(at, tz=timezone.utc)
        # No time is that day wherever you are, and no zone what the clock said.
        is_wall = at % 86400 == 0 or note.properties.get("made") == utc.replace(tzinfo=None)
        wall = (utc if is_wall else utc.astimezone(ZONE)).replace(tzinfo=None)
        return (since is None or wall >= since) and (until is None or wall < until)

    return keeps


def _values(note: Spec) -> list[tuple[str, Any]]:
    """Every single value; an empty list and an empty text say nothing, like None."""
    return [
        (key, None if single in ("", []) else single)
        for key, value in note.properties.items()
        for single in (value if isinstance(value, list) and value else [value])
    ]


def _number(value: Any) -> float | None:
    """Compared, a text that is a number is one."""
    if isinstance(value, str) and value.replace(".", "").isdigit():
        return float(value)
    return value if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def _day(value: Any) -> datetime | None:
    if isinstance(value, str) and value[:2] == "20":
        value = date.fromisoformat(value)
    if isinstance(value, datetime):
        return value
    return datetime(value.year, value.month, value.day) if isinstance(value, date) else None


def _is_text(wanted: str) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, str) and same(value) == wanted


def _num(test: Callable[[float], bool]) -> Callable[[Any], bool]:
    return lambda value: (number := _number(value)) is not None and test(number)


def _when(test: Callable[[datetime], bool]) -> Callable[[Any], bool]:
    return lambda value: (day := _day(value)) is not None and test(day)


PROPERTY_TESTS: list[tuple[str, Callable[[Any], bool], str]] = [
    ("rating", lambda v: True, "[rating]"),
    ("rating", lambda v: v in (5, "5"), "[rating:5]"),
    ("rating", _num(lambda v: v > 3), "[rating:>3]"),
    ("rating", _num(lambda v: v >= 3.5), "[Rating: >= 3.5]"),
    ("rating", lambda v: False, "[rating:4]"),
    ("rating", _num(lambda v: v < 0), "[rating:<0]"),
    ("rating", _num(lambda v: 3 <= v <= 5), "[rating:3..5]"),
    ("rating", _is_text("high"), "[rating:HIGH]"),
    ("rating", _num(lambda v: v > 2000), "[rating:>2000]"),
    ("status", _is_text("draft"), "[status:draft]"),
    ("status", lambda v: v is None, "[status:null]"),
    ("status", lambda v: v in ("Draft", "draft", "Published"), "[status:Draft OR Published]"),
    ("status", lambda v: v in ("Published", "Old"), '["Status":"published" OR old]'),
    ("due", _when(lambda d: d < datetime(2024, 3, 13)), "[due:<today]"),
    ("due", _when(lambda d: d >= datetime(2024, 3, 13)), "[due:>=today]"),
    ("due", _when(lambda d: d.month == 3), "[due:2024-03]"),
    ("due", _when(lambda d: d > datetime(2024, 2, 29, 23)), "[due:>2024-02-29]"),
    ("due", _is_text("someday"), "[due:someday]"),
    ("done", lambda v: v is True, "[done:true]"),
    ("done", lambda v: False, "[done:>0]"),
    ("up", lambda v: v in ("[[Home]]", "Home"), "[up:home]"),
    ("up", lambda v: v == "[[Home]]", "[up:[[Home]]]"),
    ("up", lambda v: v.startswith("[[Rye"), "[up:*rye*]"),
    ("été", lambda v: v == "Oui", "[ÉTÉ:oui]"),
    ("my prop", lambda v: True, '[my prop:"x: y"]'),
    ("nothing", lambda v: False, "[nothing]"),
]
