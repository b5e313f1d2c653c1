"""Rows: a note and its parts as the tables hold them, and back without loss.

Translations between `ragvault.types` and tuples in the order of the column lists below; the
statements that use them are in notes.py, passages.py and links.py. The second half has the forms of
single values:

    lists           JSON
    properties      JSON; dates, sets and odd keys are wrapped as {"!": type, "is": …}
    text            text; bytes where it holds half of a surrogate pair (a broken file name, a
                    careless escape in YAML), which SQLite refuses
    a note's text   zlib
"""

from __future__ import annotations

import json
import re
import zlib
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime, timezone
from functools import lru_cache
from typing import Any

from ragvault.store.keys import fold_case, link_key
from ragvault.text.spans import Span, back, cut
from ragvault.types import Heading, Link, Note, Passage, Section, Target

Text = str | bytes
Field = tuple[Text | None, float | None, float | None]  # text, number, date

INT64 = 2**63 - 1
ZLIB_LEVEL = 4  # notes shrink to 1/2.05; 1/1.97 at level 1, 1/2.06 at level 6
DATE = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d)?)?")

NOTE = (
    "encoding, title, description, author, importance, aliases, tags, keywords, supersedes,"
    " properties, warnings, length"
)
BODY = "text, body, excluded, headings, blocks"
SECTION = "ordinal, headings, start, stop, line_first, line_last"
PASSAGE = (  # `lang`: the languages, with spaces between them
    "ordinal, section, headings, kind, lang, has, start, stop, line_first, line_last,"
    " column_first, column_last, overlap, text, subheadings, text_hash"
)
LINK = "kind, form, target, anchor, text, line, start"
TARGET = "status, via, target_start, anchor_found, others"


def note_row(note: Note) -> tuple[Any, ...]:
    """Columns NOTE."""
    scalars = (note.encoding, note.title, note.description, note.author, note.importance)
    lists = (note.aliases, note.tags, note.keywords, note.supersedes)
    return (
        *map(to_sql, scalars),
        *map(to_json, lists),
        value_to_json(note.properties) if note.properties else "{}",
        to_json(note.warnings),
        len(note.text),
    )


def body_row(note: Note) -> tuple[Any, ...]:
    """Columns BODY."""
    headings = [(h.text, h.level, h.line, h.start, h.path) for h in note.headings]
    return (
        compress(note.text),
        note.body,
        json.dumps(note.excluded) if note.excluded else "[]",
        json.dumps(headings),
        json.dumps(dict(note.blocks)) if note.blocks else "{}",
    )


def section_row(section: Section) -> tuple[Any, ...]:
    """Columns SECTION."""
    headings = to_json(section.headings)
    return (section.ordinal, headings, section.start, section.end, *section.lines)


def passage_row(passage: Passage, note: Note, text_hash: bytes) -> tuple[Any, ...]:
    """Columns PASSAGE. The text is stored only where it cannot be cut out of the note's text."""
    own = passage.text == cut_passage(
        note.text, passage.start, passage.end, passage.overlap, note.excluded
    )
    return (
        passage.ordinal,
        passage.section,
        to_json(passage.headings),
        passage.kind,
        to_spaced(passage.lang),
        to_json(tuple(sorted(passage.has))),
        passage.start,
        passage.end,
        *passage.lines,
        *passage.columns,
        passage.overlap,
        None if own else to_sql(passage.text),
        to_json(passage.subheadings),
        text_hash,
    )


def link_row(link: Link) -> tuple[Any, ...]:
    """Columns LINK and target_key."""
    return (
        link.kind,
        link.form,
        to_sql(link.target),
        to_json(link.anchor),
        to_sql(link.text),
        link.line,
        link.start,
        to_sql(link_key(link.target)),
    )


def to_note(path: str, row: Sequence[Any], body: Sequence[Any], links: tuple[Link, ...]) -> Note:
    """A note from columns NOTE and BODY."""
    encoding, title, description, author, importance = map(from_sql, row[:5])
    aliases, tags, keywords, supersedes = map(from_json, row[5:9])
    whole, begins, excluded, headings, blocks = body
    return Note(
        path,
        decompress(whole),
        begins,
        encoding,
        title,
        aliases,
        tags,
        description,
        keywords,
        author,
        importance,
        supersedes,
        value_from_json(row[9]),
        to_headings(headings),
        json.loads(blocks),
        links,
        to_spans(excluded),
        from_json(row[10]),
    )


def to_headings(stored: str) -> tuple[Heading, ...]:
    """The headings of column `headings`."""
    return tuple(
        Heading(said, level, line, start, tuple(path))
        for said, level, line, start, path in json.loads(stored)
    )


def to_spans(stored: str) -> tuple[Span, ...]:
    """The spans of column `excluded`."""
    return tuple((first, last) for first, last in json.loads(stored)) if stored != "[]" else ()


def to_section(row: Sequence[Any]) -> Section:
    """A section from columns SECTION."""
    ordinal, headings, start, end, first, last = row
    return Section(ordinal, from_json(headings), start, end, (first, last))


def to_passage(row: Sequence[Any], whole: str, excluded: Sequence[Span]) -> Passage:
    """A passage from columns PASSAGE and its note's text."""
    ordinal, section, headings, kind, lang, has, start, end, *places, overlap, own, below, _ = row
    said = from_sql(own) if own is not None else cut_passage(whole, start, end, overlap, excluded)
    return Passage(
        ordinal,
        section,
        from_json(headings),
        kind,
        frozenset(from_spaced(lang)),
        frozenset(from_json(has)),
        start,
        end,
        (places[0], places[1]),
        (places[2], places[3]),
        said,
        overlap,
        from_json(below),
    )


def to_link(row: Sequence[Any]) -> Link:
    """A link from columns LINK."""
    kind, form, target, anchor, said, line, start = row
    return Link(kind, form, from_sql(target), from_json(anchor), from_sql(said), line, start)


def to_target(path: str | bytes | None, row: Sequence[Any]) -> Target | None:
    """The target of a link, from its note's path and columns TARGET; None if not looked up yet."""
    status, via, start, anchor_found, others = row
    if status is None:
        return None
    where = None if path is None else from_sql(path)
    return Target(status, where, via, start, bool(anchor_found), from_json(others or "[]"))


def cut_passage(whole: str, start: int, end: int, overlap: int, excluded: Sequence[Span]) -> str:
    """The text of a passage, cut out of its note's text."""
    return cut(whole, back(start, overlap, excluded) if overlap else start, end, excluded)


# --- Values ---


def to_sql(text: str) -> Text:
    """A string in a form that SQLite accepts."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")
    return text


def from_sql(value: Text) -> str:
    """The string that `to_sql` was given."""
    return value if isinstance(value, str) else value.decode("utf-8", "surrogatepass")


def clamped(number: int) -> int:
    """A number that SQLite can hold: file systems may claim times centuries away."""
    return max(-INT64, min(INT64, number))


def compress(whole: str) -> bytes:
    """A note's text, compressed."""
    return zlib.compress(whole.encode("utf-8", "surrogatepass"), ZLIB_LEVEL)


def decompress(blob: bytes) -> str:
    """The text that `compress` was given."""
    return zlib.decompress(blob).decode("utf-8", "surrogatepass")


@lru_cache(maxsize=4096)  # the passages of a section share their headings
def to_json(parts: tuple[str, ...]) -> str:
    """A tuple of strings as JSON; `from_json` gives it back."""
    return json.dumps(parts) if parts else "[]"


@lru_cache(maxsize=4096)
def from_json(stored: str) -> tuple[str, ...]:
    """The tuple that `to_json` was given."""
    return tuple(json.loads(stored))


def to_spaced(names: Iterable[str]) -> Text:
    """Names without spaces as one text, with spaces between them."""
    return to_sql(" ".join(sorted(names)))


def from_spaced(stored: Text) -> tuple[str, ...]:
    """The names that `to_spaced` was given, sorted."""
    return tuple(from_sql(stored).split())


def value_to_json(value: Any) -> str:
    """Any value that YAML can give, as JSON."""
    return json.dumps(_wrapped(value))


def value_from_json(stored: str) -> Any:
    """The value that `value_to_json` was given."""
    return json.loads(stored, object_hook=_unwrapped)


def property_rows(properties: Mapping[str, Any]) -> Iterator[tuple[Text, Field]]:
    """Properties as filters compare them: folded, one row a value."""
    for name, value in properties.items():
        key = to_sql(fold_case(str(name)))
        for single in _singles(value):
            yield key, _field(single)


def _wrapped(value: Any) -> Any:
    if value is None or isinstance(value, (bool, float, str)):
        return value
    if isinstance(value, int):
        # Beyond 64 bits Python may refuse to spell a number in decimal.
        return value if abs(value) <= INT64 else {"!": "int", "is": hex(value)}
    if isinstance(value, list):
        return [_wrapped(part) for part in value]
    if isinstance(value, Mapping):
        return _wrapped_mapping(value)
    return _wrapped_other(value)


def _wrapped_mapping(value: Mapping[Any, Any]) -> dict[str, Any]:
    if "!" not in value and all(type(key) is str for key in value):
        return {key: _wrapped(part) for key, part in value.items()}
    return {"!": "dict", "is": [[_wrapped(key), _wrapped(part)] for key, part in value.items()]}


def _wrapped_other(value: Any) -> Any:
    if isinstance(value, (datetime, date)):  # a datetime is also a date
        return {"!": type(value).__name__, "is": value.isoformat()}
    if isinstance(value, (tuple, set, frozenset)):
        parts = value if isinstance(value, tuple) else sorted(value, key=repr)
        return {"!": type(value).__name__, "is": [_wrapped(part) for part in parts]}
    if isinstance(value, bytes):
        return {"!": "bytes", "is": b64encode(value).decode()}
    return str(value)


_UNWRAP: dict[str, Callable[[Any], Any]] = {
    "int": lambda value: int(value, 16),
    "dict": lambda pairs: {_hashable(key): part for key, part in pairs},
    "date": date.fromisoformat,
    "datetime": datetime.fromisoformat,
    "tuple": tuple,
    "set": lambda parts: {_hashable(part) for part in parts},
    "frozenset": frozenset,
    "bytes": b64decode,
}


def _unwrapped(stored: dict[str, Any]) -> Any:
    return _UNWRAP[stored["!"]](stored["is"]) if "!" in stored else stored


def _hashable(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _singles(value: Any) -> Iterator[Any]:
    """The values of a list one by one; None for an empty list."""
    if not isinstance(value, (list, tuple, set, frozenset)):
        yield value
    elif not value:
        yield None
    else:
        for part in value:
            yield from _singles(part)


def _field(value: Any) -> Field:
    if value is None or value == "":
        return None, None, None
    if isinstance(value, bool):
        return str(value).lower(), float(value), None
    if isinstance(value, (int, float)):
        return json.dumps(_wrapped(value)), float(value) if abs(value) <= INT64 else None, None
    if isinstance(value, date):
        return value.isoformat(), None, _timestamp(value.isoformat())
    if isinstance(value, str):
        at = _timestamp(value) if DATE.fullmatch(value) else None
        return to_sql(fold_case(value)), None, at
    return to_sql(fold_case(value_to_json(value))), None, None


def _timestamp(iso: str) -> float | None:
    """Seconds since 1970 of an ISO date; UTC where it names no zone."""
    try:
        at = datetime.fromisoformat(iso)
        return (at if at.tzinfo else at.replace(tzinfo=timezone.utc)).timestamp()
    except (ValueError, OverflowError):
        return None
