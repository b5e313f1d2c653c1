"""Obsidian: the settings of a vault that change what its notes are.

    .obsidian/app.json           userIgnoreFilters, the excluded files
    .obsidian/daily-notes.json   folder and format of daily notes

Both may be missing, broken or hostile: then there is a sentence for `status` and the usual
behaviour, and never an error. Nothing else of Obsidian's is read.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from unicodedata import normalize

from ragvault.notes.dates import Daily
from ragvault.notes.read import read_small

# A regex with more open repeats than this can be made to take seconds on one long path.
MAX_REPEATS = 3


def filters(root: str | Path) -> tuple[Filters | None, list[str]]:
    """The excluded files of this vault, or None, and what could not be used of them."""
    app, warnings = _settings(root, "app.json")
    listed = app.get("userIgnoreFilters")
    wanted = [text for text in listed if isinstance(text, str)] if isinstance(listed, list) else []
    if not wanted:
        return None, warnings
    found = Filters(wanted)
    warnings += [
        f".obsidian/app.json: the filter {text} cannot be used safely and was left out"
        for text in found.refused
    ]
    return found, warnings


def daily(root: str | Path) -> tuple[Daily, list[str]]:
    """Where the daily notes of this vault are and how they are named."""
    settings, warnings = _settings(root, "daily-notes.json")
    folder, form = settings.get("folder"), settings.get("format")
    return Daily(
        folder.strip("/") if isinstance(folder, str) else "",
        form if isinstance(form, str) and form.strip() else Daily().format,
    ), warnings


def _settings(root: str | Path, name: str) -> tuple[dict[str, Any], list[str]]:
    try:
        text = read_small(Path(root, ".obsidian", name))
        settings = json.loads(text) if text else {}
    except (OSError, ValueError, RecursionError) as error:
        return {}, [f".obsidian/{name} cannot be read and was left out: {error}"]
    return (settings if isinstance(settings, dict) else {}), []


class Filters:
    """Excluded files: a path prefix or a /regex/, both without regard to case."""

    def __init__(self, wanted: Iterable[str]) -> None:
        self._wanted = tuple(wanted)
        prefixes: list[str] = []
        self._regexes: list[re.Pattern[str]] = []
        self.refused: list[str] = []  # as written
        for text in filter(None, (text.strip() for text in self._wanted)):
            if len(text) > 2 and text.startswith("/") and text.endswith("/"):
                self._add_regex(text)
            else:
                prefixes.append(normalize("NFC", text).lower())
        self._prefixes = tuple(prefixes)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Filters) and self._wanted == other._wanted

    def __hash__(self) -> int:
        return hash(self._wanted)

    def _add_regex(self, text: str) -> None:
        source = re.sub(r"\(\?<(?![=!])", "(?P<", text[1:-1])  # a named group in JavaScript
        try:
            if not is_tame(source):
                raise ValueError
            self._regexes.append(re.compile(source, re.IGNORECASE))
        except (ValueError, OverflowError, RecursionError, re.error):
            self.refused.append(text)

    def decide(self, path: str, name: str, folder: bool) -> bool | None:
        """As ignore.Rules. Obsidian knows no way to ask a path back."""
        if (f"{path}/" if folder else path).lower().startswith(self._prefixes):
            return True
        # An expression speaks of files: one that matches a folder may still miss what is in it.
        if not folder and any(regex.search(path) for regex in self._regexes):
            return True
        return None


def is_tame(regex: str) -> bool:
    """Whether an expression surely ends soon: no repeated group, no reference, few repeats."""
    bare = re.sub(r"\\.|\[(?:\\.|[^\]\\])*\]", "x", regex, flags=re.DOTALL)
    repeats = re.findall(r"[*+]|\{\d*,\d*\}", bare)
    references = re.search(r"\\[1-9k]|\(\?P=", regex)
    return not references and not re.search(r"\)[*+{]", bare) and len(repeats) <= MAX_REPEATS
