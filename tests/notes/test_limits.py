"""No single note can make the index large or a search slow: what it may hold of each thing.

The rest of such a note is indexed, and a warning says what was left out.
"""

from __future__ import annotations

import pytest

from ragvault.config import settings as config
from ragvault.notes import parse as limits
from ragvault.notes.chunk import chunk
from ragvault.notes.parse import parse
from ragvault.types import Note


def read(text: str) -> Note:
    return parse("a.md", text, config.Parse(), config.Links())


HUGE = {
    "title": "---\ntitle: " + "a " * 20_000 + "\n---\nrest",
    "aliases": "---\naliases: [" + ", ".join(f"n{i}" for i in range(2000)) + "]\n---\nrest",
    "an alias": "---\naliases: [" + "a" * 1000 + "]\n---\nrest",
    "description": "---\ndescription: " + "a " * 20_000 + "\n---\nrest",
    "properties": "---\n" + "".join(f"k{i}: v\n" for i in range(2000)) + "---\nrest",
    "fields": "".join(f"k{i}:: v\n" for i in range(2000)) + "\nrest",
    "fields of one name": "".join(f"k:: v{i}\n" for i in range(2000)) + "\nrest",
    "value of a field": "k:: " + "v " * 20_000 + "\n\nrest",
    "tags": "".join(f"#t{i} " for i in range(2000)) + "\n\nrest",
    "a tag": "#" + "t" * 1000 + "\n\nrest",
    "links": "[[b]] " * 20_000 + "\n\nrest",
    "headings": "# h\n" * 20_000 + "\n\nrest",
    "language": "```" + "a" * 100_000 + "\ncode\n```\n\nrest",
}


@pytest.mark.parametrize("text", HUGE.values(), ids=HUGE)
def test_a_note_with_too_much_of_one_thing_gets_a_warning_and_keeps_its_text(text):
    note = read(text)

    assert note.warnings
    assert len(note.warnings) == len(set(note.warnings))
    assert note.text == text
    assert chunk(note, config.Chunk())[1][-1].text.rstrip().endswith("rest")


@pytest.mark.parametrize("text", HUGE.values(), ids=HUGE)
def test_what_is_repeated_for_each_result_is_small(text):
    note = read(text)
    values = [
        v for each in note.properties.values() for v in ([each] if isinstance(each, str) else each)
    ]

    assert max(map(len, [note.title, *note.aliases, *note.tags])) <= limits.NAME
    assert max(map(len, [note.description, *values])) <= limits.TEXT
    assert max(map(len, [note.aliases, note.tags, values])) <= limits.WORDS
    assert max(map(len, [note.links, note.headings])) <= limits.LINKS
    for passage in chunk(note, config.Chunk())[1]:
        assert all(len(lang) <= limits.LANGUAGE for lang in passage.lang)


def test_a_note_within_the_limits_is_read_whole_without_a_warning():
    values = "".join(f"k{i}: v\n" for i in range(limits.WORDS - 1))
    note = read(f"---\n{values}title: T\n---\n```py\nx\n```\n" + "[[b]] #t " * limits.LINKS)

    assert (note.warnings, note.excluded) == ((), ())
    assert (len(note.properties), len(note.links)) == (limits.WORDS, limits.LINKS)
