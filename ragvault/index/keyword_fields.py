"""Which fields there are, at which level each is indexed, and what a note gives to them.

    once a note     title, aliases, tags, keywords, description, author
    once a passage  headers, body

A title repeated in every passage would be read and counted once a passage: with eight fields on
each of 118,000 passages a query took up to 4.7 s.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from ragvault.sought import KeywordNote, KeywordPassage
from ragvault.types import Chunk, Head, Note, Said


@dataclass(frozen=True, slots=True)
class Fields:
    """The fields of one index and their boosts, by level. `main` is the one that tells rarity."""

    note: Mapping[str, float]
    passage: Mapping[str, float]
    main: str

    @property
    def boosts(self) -> dict[str, float]:
        """Every field's boost."""
        return {**self.note, **self.passage}

    def boosted(self, boosts: Mapping[str, float] | None) -> Fields:
        """The same fields with other boosts; those that are not named keep theirs."""
        if not boosts:
            return self
        own = [
            {n: boosts.get(n, b) for n, b in level.items()} for level in (self.note, self.passage)
        ]
        return Fields(own[0], own[1], self.main)

    def names(self) -> list[str]:
        """In the order they are written in."""
        return sorted(self.boosts)


def note_words(id_: int, note: Note | Head) -> KeywordNote:
    """What of a note is looked up. Its file's name always is, whatever its title."""
    stem = PurePosixPath(note.path).stem
    titles = (note.title, stem) if stem.casefold() != note.title.casefold() else (note.title,)
    return KeywordNote(
        id_,
        {
            "title": tuple(filter(None, titles)),
            "aliases": note.aliases,
            "tags": note.tags,
            "keywords": note.keywords,
            "description": (note.description,) if note.description else (),
            "author": (note.author,) if note.author else (),
        },
    )


def passage_words(id_: int, note: int, chunk: Chunk | Said) -> KeywordPassage:
    """What of a passage is looked up."""
    headers = (*chunk.headings, *chunk.subheadings)
    return KeywordPassage(id_, note, {"headers": headers, "body": (chunk.text,)})
