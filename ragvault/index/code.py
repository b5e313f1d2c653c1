"""The code index: blocks of code, looked up by the names in them.

    getUserById         getUserById, getuserbyid, get, user, by, id
    parse_json_data     parse_json_data, parsejsondata, parse, json, data
    HTTPResponseError   HTTPResponseError, httpresponseerror, http, response, error

A name is found as it is written, by its parts, and by its parts joined, so that getUserById finds
get_user_by_id. There are no stop words and no stems in code: `for`, `is` and `tests` are meant.
The same engines keep it (keyword_open.py); the languages of a passage are a field to filter by,
each under one name however its fence calls it (fences.py).
"""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path
from string import ascii_lowercase
from typing import TYPE_CHECKING

import msgspec

from ragvault.config.settings import Code, Keyword
from ragvault.fences import language
from ragvault.index.analyze import VERSION, Analyzer, Entry
from ragvault.index.cjk import UNSPACED
from ragvault.index.keyword_fields import Fields
from ragvault.index.keyword_open import engine
from ragvault.index.keyword_words import MAX_LENGTH, UNSPACED_RUN, Part, split
from ragvault.index.word import Place, Word
from ragvault.sought import AllOf, AnyOf, KeywordPassage, Sought, Words
from ragvault.types import Chunk, Said

if TYPE_CHECKING:
    from ragvault.ports import KeywordIndex

FIELDS = Fields(note={}, passage={"code": 1.0, "language": 0.0}, main="code")
_NAME = re.compile(rf"[{UNSPACED}]+|[^\W\d{UNSPACED}][^\W{UNSPACED}]*|\d+(?:\.\d+)*")
PART_WEIGHT = 0.5


class CodeAnalyzer(Analyzer):
    """Names in place of words; everything else as for words."""

    def __init__(self) -> None:
        super().__init__("none")
        self.name = f"code-{VERSION}"
        self.word = lru_cache(4096)(self._word)

    def chunks(self, text: str) -> re.Pattern[str]:
        return _NAME

    def _entry(self, chunk: str) -> Entry:
        word = self._word(chunk)
        return word.width, word.tokens

    def _word(self, chunk: str) -> Word:
        if UNSPACED_RUN.match(chunk):
            return super()._word(chunk)
        whole_part = [Part(chunk, 0, len(chunk))]
        parts = whole_part if chunk[0].isdigit() else split(chunk, glue=False)[0] or whole_part
        small = [part.text.casefold()[:MAX_LENGTH] for part in parts]
        written, joined = chunk[:MAX_LENGTH], "".join(small)[:MAX_LENGTH]
        tokens: list[Place] = [(written, 0), (written.casefold(), 0), (joined, 0)]
        tokens += [(text, at) for at, text in enumerate(small)]
        alone = len(parts) == 1
        own = () if alone else tuple((t, PART_WEIGHT) for t in dict.fromkeys(small))
        whole = frozenset((written, written.casefold(), joined))
        spans = [(0, len(chunk), whole)]
        spans += [
            (part.start, part.end, frozenset((text,)))
            for part, text in zip(parts, small, strict=True)
        ]
        return Word(
            tokens=tuple(sorted(dict.fromkeys(tokens), key=lambda token: token[1])),
            width=len(parts),
            main=((joined, 1.0), *own),
            exact=(written,) if written != joined else (),
            groups=((joined,),) if alone else ((joined,), tuple(dict.fromkeys(small))),
            phrase=((written.casefold(), 0),),
            spans=tuple(spans),
            typos=((joined, joined),) if joined.isalpha() else (),
        )


def open_code(folder: Path, keyword: Keyword, code: Code) -> KeywordIndex:
    """The code index in this folder, on the engine that is set for keywords."""
    settings = msgspec.structs.replace(keyword, k1=code.k1, b=code.b)
    return engine(folder, FIELDS, CodeAnalyzer(), settings)


def code_words(id_: int, note: int, chunk: Chunk | Said) -> KeywordPassage:
    """What of a passage with code is looked up."""
    languages = tuple(sorted({_language(name) for name in chunk.lang}))
    return KeywordPassage(id_, note, {"code": (chunk.text,), "language": languages})


def sought_code(text: str, languages: tuple[str, ...] = ()) -> Sought:
    """Code by the names in a text, in any of these languages if some are given."""
    names = Words(text, field="code")
    if not languages:
        return names
    wanted = tuple(Words(_language(name), field="language", every=True) for name in languages)
    return AllOf((names, AnyOf(wanted)))


def _language(name: str) -> str:
    """The term of a language: letters only, so that it has no parts and c never finds objective-c.

    Any other sign is written as letters, four bits each.
    """
    signs = (sign if sign in ascii_lowercase else _spelt(ord(sign)) for sign in language(name))
    return "".join(signs)


def _spelt(number: int) -> str:
    return "".join(ascii_lowercase[int(digit, 16)] for digit in f"{number:x}")
