"""Material: what there is in the notes' own text for each signal to go by.

A signal that never fires is dead only where it had cause to. Whether it had is read from the text
of the notes and from their files, not from the tables that a search asks: an empty table of links
must not excuse the graph. Also makes one probe for each filter that the notes give cause to.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone

from ragvault.candidate import NoteFacts
from ragvault.config.ranking import Recency
from ragvault.config.settings import Config
from ragvault.evaluate import plain
from ragvault.evaluate.probes import READ, named
from ragvault.rank.boost import template_folder
from ragvault.rank.recency import note_age, tier_factor
from ragvault.store.catalogue import Catalogue
from ragvault.store.keys import fold
from ragvault.types import Note

EACH = 3  # probes a filter or a signal: one note may be odd, three hardly
_FENCE = re.compile(r"^(?:```|~~~) *([A-Za-z+#]+)?[^\n]*\n(.*?)^(?:```|~~~)", re.M | re.S)
_NAME = re.compile(r"\b[A-Za-z_]+_[A-Za-z0-9_]+\b|\b[a-z]+[A-Z][A-Za-z0-9]+\b")
_TASK = re.compile(r"^\s*[-*+] \[[ x]\] \S", re.M)
_TABLE = re.compile(r"^\|[^\n]+\|\n\|[ :|-]+\|$", re.M)
_IMAGE = re.compile(r"!\[\[[^\]\n]+\.(?:png|jpe?g|gif|svg|webp)\b|!\[[^\]\n]*\]\([^)\s]+\)")


@dataclass(frozen=True, slots=True)
class FilterProbe:
    """A filter, and the note that it must keep."""

    name: str
    query: str
    note: str


@dataclass(slots=True)
class Material:
    """What was found, each with the note it was found in; `queries` give signals their cause."""

    notes: int = 0
    links: list[tuple[str, str, str]] = field(default_factory=list)  # source, target, its name
    code: list[str] = field(default_factory=list)
    aliases: list[str] = field(default_factory=list)
    important: list[str] = field(default_factory=list)
    recent: list[str] = field(default_factory=list)
    superseding: list[str] = field(default_factory=list)
    templates: list[str] = field(default_factory=list)
    filters: list[FilterProbe] = field(default_factory=list)

    @property
    def queries(self) -> list[str]:
        """A few for each signal that a plain exam may miss."""
        found = (
            *(self.code, self.aliases, self.important, self.recent),
            *(self.superseding, self.templates),
        )
        asked = (plain.query(text) for some in found for text in some[:EACH])
        return list(dict.fromkeys(filter(plain.says_something, asked)))


def material(catalogue: Catalogue, config: Config, now: datetime, *, seed: int = 0) -> Material:
    """Read the notes, or so many of a large vault."""
    names = catalogue.names()
    by_name = named(names)
    found = Material(notes=len(names))
    recent = _recent(catalogue, config.boost.recency, now)
    template = template_folder(config.boost.templates)
    paths = [path for path, _, _ in names]
    some = random.Random(seed).sample(paths, min(READ, len(paths)))
    filters: dict[str, list[FilterProbe]] = {}
    for path in [*recent[:EACH], *sorted(set(some) - set(recent[:EACH]))]:
        note = catalogue.note(path)
        text = plain.body(note.text, note.body)
        links = _links(text, path, by_name)
        found.links += [(path, target, name) for target, name in links]
        found.code += _names_in_code(note)
        found.aliases += note.aliases
        if note.importance in config.boost.importance.levels:
            found.important.append(note.title)
        if note.supersedes:
            found.superseding.append(note.title)
        if template(path):
            found.templates.append(note.title)
        if path in recent:
            found.recent.append(note.title)
        for probe in (*_of_note(note), *_of_links(note, links), *_of_text(note, text)):
            if '"' not in probe.note and len(filters.setdefault(probe.name, [])) < EACH:
                filters[probe.name].append(probe)
    dates = list(_dates(catalogue))
    found.filters = [probe for some in filters.values() for probe in some] + dates[:EACH]
    return found


def _recent(catalogue: Catalogue, settings: Recency, now: datetime) -> list[str]:
    """Notes that the recency boost has cause to move, the newest first."""
    ages = []
    for each in catalogue.all_stored():
        note = NoteFacts(each.id, each.file.path, date=each.date, modified=each.modified)
        found = note_age(note, settings.date, now.timestamp())
        if found and (settings.shape == "half-life" or tier_factor(found.days, settings) != 1):
            ages.append((found.days, each.file.path))
    return [path for _, path in sorted(ages)]


def _links(text: str, path: str, by_name: dict[str, str]) -> list[tuple[str, str]]:
    """The notes a text links to by a name that means one note: their paths, and the names."""
    written = ((fold(name), name) for name in plain.links(text))
    found = [(by_name[key], name) for key, name in written if key in by_name]
    return [(target, name) for target, name in found if target != path]


def _names_in_code(note: Note) -> list[str]:
    """Names that only code has: those of several words written as one."""
    blocks = [block for _, block in _FENCE.findall(note.text)]
    return [max(names, key=len) for block in blocks if (names := _NAME.findall(block))]


def _of_note(note: Note) -> Iterator[FilterProbe]:
    """Filters on what a note is."""
    path = note.path
    folder, _, file = path.rpartition("/")
    values = [
        *(("tag", tag) for tag in note.tags[:1]),
        *(("alias", alias) for alias in note.aliases[:1]),
        *(("heading", heading.text) for heading in note.headings[-1:]),
        ("path", folder),
        ("file", file.rpartition(".")[0]),
        ("title", note.title),
    ]
    for name, value in values:
        # `*` is a pattern, and a quote ends the value.
        if value.strip() and not set(value) & set('"*`\\\n'):
            yield FilterProbe(name, f'{name}:"{value}"', path)
    for key in list(note.properties)[:1]:
        if re.fullmatch(r"[A-Za-z]+", key):
            yield FilterProbe("property", f"[{key}]", path)


def _of_links(note: Note, links: list[tuple[str, str]]) -> Iterator[FilterProbe]:
    stem = note.path.rpartition("/")[2].rpartition(".")[0]
    for target, name in links[:1]:
        if '"' not in name + stem:
            yield FilterProbe("link", f'link:"{name}"', note.path)
            yield FilterProbe("linkedby", f'linkedby:"{stem}"', target)


def _of_text(note: Note, text: str) -> Iterator[FilterProbe]:
    """Filters on what a passage holds."""
    path = note.path
    languages = [language for language, _ in _FENCE.findall(note.text) if language]
    if _FENCE.search(note.text):
        yield FilterProbe("has:code", "has:code", path)
    for language in languages[:1]:
        yield FilterProbe("lang", f"lang:{language}", path)
    for part, pattern in (("table", _TABLE), ("task", _TASK), ("image", _IMAGE)):
        if pattern.search(text):
            yield FilterProbe(f"has:{part}", f"has:{part}", path)


def _dates(catalogue: Catalogue) -> Iterator[FilterProbe]:
    for each in catalogue.all_stored():
        day = datetime.fromtimestamp(each.date.at, timezone.utc)
        around = [(day + timedelta(days=shift)).date().isoformat() for shift in (-1, 1)]
        yield FilterProbe("date", "date:" + "..".join(around), each.file.path)
