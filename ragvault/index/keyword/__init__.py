"""The keyword index: one port, two engines.

    whoosh    pure Python, for small vaults
    tantivy   Rust, for large vaults; needs Python 3.11

`keyword.engine = "auto"` chooses by the amount of text and the language (`choose_engine`).
"""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from ragvault.config.settings import Keyword
from ragvault.errors import ConfigError
from ragvault.text.analyze import VERSION

if TYPE_CHECKING:
    from ragvault.index.keyword.index import Index
    from ragvault.ports import KeywordWriter

FORMAT = 3  # of our documents: fields, kinds and keys
EngineName = Literal["whoosh", "tantivy"]
# Passages from which a vault gets tantivy, and below which it goes back: not at every edit. Whoosh
# needs three seconds for a first index of so many, and tantivy one (docs/decisions.md).
UP, DOWN = 2_000, 1_400
TANTIVY_LANGUAGES = (
    "arabic", "danish", "dutch", "english", "finnish", "french", "german", "greek", "hungarian",
    "italian", "norwegian", "portuguese", "romanian", "russian", "spanish", "swedish", "tamil",
    "turkish",
)  # fmt: skip


def choose_engine(
    settings: Keyword, passages: int, current: str = "", *, tantivy: bool | None = None
) -> EngineName:
    """The engine for a vault of so many passages, which has `current` now.

    `tantivy`: whether it can be imported. Raises ConfigError when it is wanted and cannot, or
    cannot stem the language.
    """
    able = find_spec("tantivy") is not None if tantivy is None else tantivy
    if settings.engine == "whoosh":
        return "whoosh"
    if settings.engine == "tantivy":
        if not able:
            raise ConfigError(
                'keyword.engine = "tantivy", and tantivy cannot be imported',
                fix='set keyword.engine = "auto", or on Python 3.11 and later: pip install tantivy',
            )
        check_stemming(settings)
        return "tantivy"
    large = passages >= (DOWN if current == "tantivy" else UP)
    return "tantivy" if large and able and tantivy_stems(settings.stemming) else "whoosh"


def tantivy_stems(language: str) -> bool:
    """Whether tantivy can stem a language; "none" needs no stemming."""
    return language in ("none", *TANTIVY_LANGUAGES)


def check_stemming(settings: Keyword) -> None:
    """Raise ConfigError for a language that tantivy cannot stem."""
    if not tantivy_stems(settings.stemming):
        raise ConfigError(
            f'keyword.stemming = "{settings.stemming}" is no language that tantivy can stem',
            fix=f'set keyword.engine = "whoosh", or one of: {", ".join(TANTIVY_LANGUAGES)}',
        )


def lacks_tantivy(settings: Keyword, passages: int) -> bool:
    """Whether `auto` would choose tantivy for so many passages if it were installed.

    Never before Python 3.11, for which there is none.
    """
    wanted = settings.engine == "auto" and sys.version_info >= (3, 11)
    absent = wanted and find_spec("tantivy") is None
    return absent and choose_engine(settings, passages, tantivy=True) == "tantivy"


def keyword_recipe(engine: str, settings: Keyword) -> str:
    """All that an index depends on: one with another recipe has to be rebuilt."""
    return f"{engine} {FORMAT} words-{VERSION} {settings.stemming}"


def open_index(folder: Path, engine: str, settings: Keyword) -> Index:
    """The index in this folder, to search. Raises CacheBroken when it cannot be read."""
    from ragvault.index.keyword.index import Index

    if engine == "tantivy":
        from ragvault.index.keyword import tantivy

        return Index(tantivy.open_tantivy(folder, settings), settings)
    from ragvault.index.keyword import whoosh

    return Index(whoosh.open_whoosh(folder, settings), settings)


def open_writer(folder: Path, engine: str, settings: Keyword) -> KeywordWriter:
    """A writer of the index in this folder; creates it where the folder is empty or absent."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if engine == "tantivy":
        from ragvault.index.keyword.tantivy import TantivyWriter

        return TantivyWriter(folder, settings)
    from ragvault.index.keyword.whoosh import WhooshWriter

    return WhooshWriter(folder, settings)
