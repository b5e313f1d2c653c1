"""Open: the keyword index a vault's settings ask for."""

from __future__ import annotations

import errno
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from ragvault.config.settings import Keyword
from ragvault.errors import ConfigError, refused
from ragvault.index.analyze import Analyzer
from ragvault.index.keyword_fields import Fields

if TYPE_CHECKING:
    from ragvault.ports import KeywordIndex

TANTIVY_K1, TANTIVY_B = 1.2, 0.75  # compiled into it


def open_keyword(folder: Path, settings: Keyword) -> KeywordIndex:
    """The keyword index in this folder, made if it is not there.

    Raises CacheBroken when it must be made again: `wipe` it, open it, and put everything in.
    """
    boosts = msgspec.structs.asdict(settings.boosts)
    passage = {name: boosts.pop(name) for name in ("headers", "body")}
    fields = Fields(note=boosts, passage=passage, main="body")
    return engine(folder, fields, Analyzer(settings.stemming), settings)


def engine(folder: Path, fields: Fields, analyzer: Analyzer, settings: Keyword) -> KeywordIndex:
    """The engine that is set, with these fields."""
    if settings.engine == "whoosh":
        from ragvault.index.keyword import WhooshIndex

        return WhooshIndex(folder / "whoosh", fields, analyzer, settings)
    check_tantivy(settings)
    from ragvault.index.tantivy_engine import TantivyIndex

    return TantivyIndex(folder / "tantivy", fields, analyzer, settings)


def check_tantivy(settings: Keyword) -> None:
    """Refuse what tantivy cannot do, before anything is written."""
    if (settings.k1, settings.b) != (TANTIVY_K1, TANTIVY_B):
        raise ConfigError(
            f"tantivy's k1 and b are fixed at {TANTIVY_K1} and {TANTIVY_B}, "
            f"not {settings.k1} and {settings.b}",
            fix='leave keyword.k1 and keyword.b as they are, or set keyword.engine = "whoosh"',
        )
    try:
        from tantivy import PreTokenizedString  # noqa: F401
    except ImportError:
        old = sys.version_info < (3, 11)
        raise ConfigError(
            'keyword.engine = "tantivy" needs the package tantivy, 0.27 or newer',
            fix='set keyword.engine = "whoosh"'
            if old
            else "pip install 'ragvault[tantivy]', or set keyword.engine = \"whoosh\"",
        ) from None


def wipe(folder: Path) -> None:
    """Delete a keyword index of either engine, so that it can be made again, or whatever else is
    in its place."""
    try:
        for each in (folder, folder / "whoosh", folder / "tantivy"):
            if each.is_symlink() or each.is_file():
                each.unlink(missing_ok=True)
            for path in sorted(each.rglob("*"), reverse=True) if each != folder else ():
                _delete(path)
    except OSError as error:
        raise refused(folder, error) from error


def _delete(path: Path) -> None:
    """A file, or a folder that is empty by now but for a lock."""
    if path.is_symlink() or not path.is_dir():
        path.unlink(missing_ok=True)
        return
    try:
        path.rmdir()
    except OSError as error:
        # Whoever still has tantivy's index open looks at it now and then, and makes a lock for it.
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOENT):
            raise
