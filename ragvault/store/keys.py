"""Keys: names in the form in which they are compared.

A link and the note it means share a key, however they are spelled: letter case, composed or
decomposed accents, the folder before the name, `.md` after it. Keys only choose which links are
looked up again: two names with the same key cost a look-up and never give a wrong result.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from ragvault.text.fold import fold_case as fold_case

EXTENSIONS = (".md", ".markdown")
FOLDER_PAGES = {"index", "readme", "_index"}  # what a link to a folder opens
UPWARDS = ("/", ".", "..")  # `[up](..)` names a folder without saying its name


@lru_cache(maxsize=4096)  # a vault links to the same few names over and over
def link_key(name: str) -> str:
    """The last part of a path, link target or alias, folded, without a Markdown extension.

    The vault's own folder is `/`; an empty name, which is a link into its own note, stays empty.
    """
    key = fold_case(name).replace("\\", "/").strip("/ ").rpartition("/")[2].strip()
    if key.endswith(EXTENSIONS):
        return key.rpartition(".")[0]
    return key or ("/" if name else "")


def file_stem(path: str) -> str:
    """The file name of a note without its extension, whatever that is."""
    name = path.rpartition("/")[2]
    return name.rpartition(".")[0] or name


def link_keys(path: str, aliases: Iterable[str]) -> set[str]:
    """Every key under which a link could mean this note, which may be the page of its folder."""
    folder = path.rpartition("/")[0] or "/"
    own = {link_key(path), link_key(file_stem(path)), *map(link_key, aliases)}
    return own | {link_key(folder), *UPWARDS} if own & FOLDER_PAGES else own
