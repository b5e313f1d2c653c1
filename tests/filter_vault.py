"""A vault of 2,000 small notes for filters, made without the parser, and known by heart.

`Spec` and `Piece` are what an oracle looks at: plain Python values. The catalogue is filled with
the same notes through its own door.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from datetime import date, datetime, timezone
from typing import Any

from store_builders import digest

from ragvault.store.notes import note_rows
from ragvault.types import Date, Dates, File, Heading, Link, Note, Passage, Section, Target

FOLDERS = ("", "journal/", "journal/2024/", "Recipes/", "work/Projects/", "Écrits/")
NAMES = ("bread", "Rye", "Meeting notes", "Home", "Straße", "plan", "2024-03-01", "naïve", "API")
TAGS = ("recipe", "recipe/bread", "Recipe/Bread/rye", "inbox", "inbox/to-read", "myjob/work")
MORE_TAGS = ("work", "été", "2024/review", "recipes")
ALIASES = ("JFK", "The Bread", "naïveté", "Rye", "Plan B")
HEADINGS = ("Ingredients", "Method", "What's new?", "Ingrédients", "Über uns", "Maß", "API")
WORDS = ("flour", "water", "salt", "rye", "starter", "deadline", "budget", "alpha", "beta", "été")
LANGS = ("python", "py", "js", "rust", "r", "c++")
TASKS = ("call Bob", "buy Flour", "review budget")
LINES = 3  # words to a line, so that phrases occur


@dataclass
class Piece:
    """A passage: its lines, and what is in it."""

    text: str
    start: int
    kind: str
    lang: set[str]
    has: set[str]
    tasks: list[tuple[str, str]]  # (what stands in the brackets, the rest of the line)
    heads: set[str]  # every heading a line of it stands under
    id: int = 0

    @property
    def end(self) -> int:
        return self.start + len(self.text)


@dataclass
class Spec:
    """A note as the oracle knows it. Dates are seconds since 1970."""

    path: str
    title: str
    aliases: tuple[str, ...]
    tags: tuple[str, ...]
    properties: dict[str, Any]
    created: float
    modified: float
    date: float
    links: list[tuple[str, str | None]]  # (as written, with its anchor; the path it means)
    pieces: list[Piece] = field(default_factory=list)
    headings: list[Heading] = field(default_factory=list)
    id: int = 0

    @property
    def text(self) -> str:
        return "".join(piece.text for piece in self.pieces)


def specs(count: int, seed: int = 5) -> list[Spec]:
    """The same notes for the same seed."""
    chance = random.Random(seed)
    paths = [
        f"{chance.choice(FOLDERS)}{chance.choice(NAMES)} {number}.md"
        if number % 5
        else f"{FOLDERS[number % 6]}{NAMES[number % 9]} x{number % 40}/{NAMES[number % 7]}.md"
        for number in range(count)
    ]
    paths = list(dict.fromkeys(paths))
    return [_spec(path, paths, chance) for path in paths]


def _spec(path: str, paths: list[str], chance: random.Random) -> Spec:
    stem = path.rpartition("/")[2].removesuffix(".md")
    spec = Spec(
        path,
        chance.choice([stem, "Sourdough starter", "Grüße", "Budget 2024"]),
        tuple(chance.sample(ALIASES, chance.choice([0, 0, 1, 2]))),
        tuple(chance.sample(TAGS + MORE_TAGS, chance.randint(0, 3))),
        _properties(chance),
        *(_moment(chance) for _ in range(3)),
        links=[
            _anchored(*_link(path, paths, chance), chance)
            for _ in range(chance.choice([0, 1, 1, 2]))
        ],
    )
    _fill(spec, chance)
    if chance.random() < 0.3:  # made when the clock on the wall said so, wherever that was
        spec.created = float(int(spec.created))
        spec.properties["made"] = datetime.fromtimestamp(spec.created, timezone.utc).replace(
            tzinfo=None
        )
    return spec


def _moment(chance: random.Random) -> float:
    """A day without a time, or an instant, from 2023 to 2024."""
    day = datetime(2023, 1, 1, tzinfo=timezone.utc).timestamp() + 86400 * chance.randint(0, 730)
    return day if chance.random() < 0.4 else day + chance.uniform(1, 86399)


def _properties(chance: random.Random) -> dict[str, Any]:
    every = {
        "rating": chance.choice([1, 3, 3.5, 5, 10, -2, "5", "4.0", "high", 2024]),
        "Status": chance.choice(["Draft", "draft", "Published", ["Draft", "Old"], None, "", []]),
        "due": chance.choice(
            [
                date(2024, 3, 1),
                date(2024, 3, 13),
                datetime(2024, 2, 29, 9, 30),
                "2024-03-13",
                "someday",
            ]
        ),
        "done": chance.choice([True, False]),
        "up": chance.choice(["[[Home]]", "[[Rye|the rye]]", "Home"]),
        "Été": chance.choice(["Oui", "Non"]),
        "my prop": "x: y",
    }
    names = chance.sample(sorted(every), chance.randint(0, 5))
    return {name: every[name] for name in names}


def _link(own: str, paths: list[str], chance: random.Random) -> tuple[str, str | None]:
    """To no note, to itself, or to another note, one of the first for preference."""
    if chance.random() < 0.3:
        return chance.choice(["Future", "plans/Future", "Nowhere.md"]), None
    path = (
        own
        if chance.random() < 0.2
        else chance.choice(paths[:60] if chance.random() < 0.7 else paths)
    )
    return path.rpartition("/")[2].removesuffix(".md"), path


def _anchored(said: str, path: str | None, chance: random.Random) -> tuple[str, str | None]:
    return f"{said}{chance.choice(['', '', '#Method', '#whats-new', '#API#Maß'])}", path


def _fill(spec: Spec, chance: random.Random) -> None:
    """Passages end to end, headings among them."""
    open_heads: list[tuple[int, str]] = []
    at = 0
    for _ in range(chance.choice([1, 1, 2, 3, 4])):
        piece = Piece("", at, "prose", set(), set(), [], {text for _, text in open_heads})
        for _ in range(chance.randint(1, 3)):
            _add_line(spec, piece, open_heads, chance)
        if chance.random() < 0.3:
            piece.kind, piece.lang = "code", set(chance.sample(LANGS, chance.randint(0, 3)))
            piece.has.add("code")
        piece.has |= {chance.choice(["table", "image"])} if chance.random() < 0.2 else set()
        spec.pieces.append(piece)
        at = piece.end


def _add_line(
    spec: Spec, piece: Piece, open_heads: list[tuple[int, str]], chance: random.Random
) -> None:
    kind = chance.random()
    if kind < 0.35:
        level, said = chance.randint(1, 3), chance.choice(HEADINGS)
        if not piece.text:  # nothing of this passage stands under the headings it closes
            piece.heads = {text for depth, text in open_heads if depth < level}
        open_heads[:] = [each for each in open_heads if each[0] < level] + [(level, said)]
        spec.headings.append(Heading(said, level, 1, piece.end, (said,)))
        piece.heads.add(said)
        piece.text += f"{'#' * level} {said}\n"
    elif kind < 0.55:
        mark, said = chance.choice([" ", "x", "-"]), chance.choice(TASKS)
        piece.tasks.append((mark, said))
        piece.has.add("task")
        piece.text += f"- [{mark}] {said}\n"
    else:
        piece.text += " ".join(chance.choices(WORDS, k=LINES)) + "\n"


def store(catalogue: Any, notes: list[Spec]) -> None:
    """Put the notes into a catalogue, look their links up, and learn their ids."""
    by_path = {spec.path: spec for spec in notes}
    with catalogue.batch():
        for spec in notes:
            spec.id = _put(catalogue, spec)
    catalogue.set_targets(
        (link_id, _target(by_path[path].links[link_id[1]][1]))
        for link_id, path, _ in list(catalogue.links_to_resolve())
    )
    by_id = {spec.id: spec for spec in notes}
    for ref in catalogue._db.execute("SELECT id, note_id, ordinal FROM passages").fetchall():
        by_id[ref[1]].pieces[ref[2]].id = ref[0]


def _put(catalogue: Any, spec: Spec) -> int:
    note = Note(
        spec.path,
        spec.text,
        title=spec.title,
        aliases=spec.aliases,
        tags=spec.tags,
        properties=spec.properties,
        headings=tuple(spec.headings),
        links=tuple(
            Link("link", "wiki", target, tuple(anchor), said, 1, 0)
            for said, _ in spec.links
            for target, *anchor in [said.split("#")]
        ),
    )
    rows = note_rows(
        note,
        [Section(0, (), 0, len(spec.text), (1, 1))],
        [_chunk(number, piece) for number, piece in enumerate(spec.pieces)],
        [digest(f"{spec.path} {number}") for number in range(len(spec.pieces))],
        file=File(spec.path, spec.path, 1, 1),
        digest=digest(spec.path),
        read_ns=1,
    )
    return catalogue.put(
        rows, Dates(Date(spec.date, "mtime"), spec.created, spec.modified), recipe="r"
    )


def _chunk(number: int, piece: Piece) -> Passage:
    span, has = (piece.start, piece.end), frozenset(piece.has)
    return Passage(
        number,
        0,
        (),
        piece.kind,
        frozenset(piece.lang),
        has,
        *span,
        (1, 1),
        (1, 1),
        piece.text,  # type: ignore[arg-type]
    )


def _target(path: str | None) -> Target:
    return Target("resolved", path, "name") if path else Target("unresolved")
