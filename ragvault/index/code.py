"""The code index: blocks of code, looked up by the names in them.

    getUserById         getUserById, getuserbyid, get, user, by, id
    parse_json_data     parse_json_data, parsejsondata, parse, json, data
    HTTPResponseError   HTTPResponseError, httpresponseerror, http, response, error

A name is found as it is written, by its parts, and by its parts joined, so that getUserById finds
get_user_by_id. There are no stop words and no stems in code: `for`, `is` and `tests` are meant.
The same engines keep it (keyword_open.py); the language of a block is a field to filter by.
"""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from ragvault.config import Code, Keyword
from ragvault.index.analyze import VERSION, Analyzer, Entry, Place, Word
from ragvault.index.cjk import UNSPACED
from ragvault.index.keyword_fields import Fields
from ragvault.index.keyword_open import engine
from ragvault.index.keyword_words import MAX_LENGTH, UNSPACED_RUN, Part, split
from ragvault.sought import AllOf, AnyOf, KeywordPassage, Sought, Words
from ragvault.types import Chunk, Said

if TYPE_CHECKING:
    from ragvault.ports import KeywordIndex

FIELDS = Fields(note={}, passage={"code": 1.0, "language": 0.0}, main="code")
_NAME = re.compile(rf"[{UNSPACED}]+|[^\W\d{UNSPACED}][^\W{UNSPACED}]*|\d+(?:\.\d+)*")
PART_WEIGHT = 0.5

# Names that are written in several ways.
_LANGUAGES = {
    "js": "javascript", "mjs": "javascript", "jsx": "javascript", "node": "javascript",
    "ts": "typescript", "tsx": "typescript", "py": "python", "python3": "python", "rb": "ruby",
    "rs": "rust", "sh": "shell", "bash": "shell", "zsh": "shell", "console": "shell",
    "shell-session": "shell", "yml": "yaml", "md": "markdown", "c++": "cpp", "cs": "csharp",
    "c#": "csharp", "golang": "go", "kt": "kotlin", "ps1": "powershell", "hs": "haskell",
}  # fmt: skip


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
            typo=joined if joined.isalpha() else "",
        )


def open_code(folder: Path, keyword: Keyword, code: Code) -> KeywordIndex:
    """The code index in this folder, on the engine that is set for keywords."""
    settings = msgspec.structs.replace(keyword, k1=code.k1, b=code.b)
    return engine(folder, FIELDS, CodeAnalyzer(), settings)


def code_words(id_: int, note: int, chunk: Chunk | Said) -> KeywordPassage:
    """What of a block of code is looked up."""
    return KeywordPassage(id_, note, {"code": (chunk.text,), "language": (language(chunk.lang),)})


def sought_code(text: str, languages: tuple[str, ...] = ()) -> Sought:
    """Code by the names in a text, in any of these languages if some are given."""
    names = Words(text, field="code")
    if not languages:
        return names
    wanted = tuple(Words(language(name), field="language", every=True) for name in languages)
    return AllOf((names, AnyOf(wanted)))


def language(name: str) -> str:
    """One name for a language, however a fence calls it; one word, so that it is one term."""
    small = name.strip().casefold()
    return re.sub(r"\W+", "_", _LANGUAGES.get(small, small))
