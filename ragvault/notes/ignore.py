"""Ignore: whether a path of the vault is ignored, and by which rules.

    .ragignore            nested: the nearest file wins
    .gitignore            nested as well, unless walk.gitignore is off
    userIgnoreFilters     of .obsidian/app.json, unless walk.obsidian_ignore is off
    walk.exclude          the settings

The list is in order of precedence: the first that has a rule for a path decides. Ignore files above
the vault are not read.

A verdict is True (ignored), False (included again with `!`) or None (no rule matches). Rules are
applied from the top of the vault downwards, one entry at a time, and never inside an ignored
folder. So a line has to match the entry itself, and a note in an ignored folder cannot be included
again, as in git.

A vault may come from anywhere, so no line may take long: a glob becomes a regular expression that
does not backtrack over a star.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from itertools import count, groupby
from pathlib import Path
from typing import NamedTuple
from unicodedata import normalize
from warnings import catch_warnings, simplefilter

from ragvault.config import settings as config
from ragvault.notes.read import read_obsidian_settings, read_small
from ragvault.text.printable import printable

STAR, DEEP, SEP = "*", "**", "/"
NEVER = "(?!)"
POSIX_CLASSES = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "blank": r" \t",
    "cntrl": r"\x00-\x1f\x7f",
    "digit": "0-9",
    "graph": r"\x21-\x7e",
    "lower": "a-z",
    "print": r"\x20-\x7e",
    "punct": r"!-/:-@\[-`{-~",
    "space": r" \t\n\r\f\v",
    "upper": "A-Z",
    "xdigit": "0-9A-Fa-f",
}


# Whether a line ignores, is about folders only, and is about names: without a slash, those in every
# folder below.
RuleKind = tuple[bool, bool, bool]


class Rules:
    """The lines of one ignore file; the last one that matches decides."""

    def __init__(self, lines: Iterable[str]) -> None:
        groups = count()  # one name for each group of the joined expression
        read = [line for text in lines if (line := read_line(text, groups))]
        # Adjacent lines of one kind become one expression; the order of lines stays.
        self._steps: list[tuple[bool, bool, bool, Callable[[str], object]]] = [
            (*kind, _joined(regex for _, regex in same))
            for kind, same in groupby(reversed(read), key=lambda line: line[0])
        ]

    def decide(self, path: str, name: str, folder: bool) -> bool | None:
        """True: the entry is ignored. False: included again. None: no line matches."""
        for ignored, folders_only, by_name, matches in self._steps:
            if (folder or not folders_only) and matches(name if by_name else path):
                return ignored
        return None


def read_line(text: str, groups: Iterator[int]) -> tuple[RuleKind, str] | None:
    """A line of gitignore grammar as its kind and an expression; None for a blank or a comment."""
    glob = _without_trailing_spaces(normalize("NFC", text.rstrip("\r\n")))
    if not glob or glob.startswith("#"):
        return None
    ignored = not glob.startswith("!")
    glob = glob if ignored else glob[1:]
    folders_only = glob.endswith("/")
    glob = glob[:-1] if folders_only else glob
    if not glob:
        return None
    by_name = "/" not in glob
    tokens = tokenise(glob[1:] if glob.startswith("/") else glob)
    if tokens is None:
        return (ignored, folders_only, by_name), NEVER
    if by_name:
        tokens = [STAR if token == DEEP else token for token in tokens]
    return (ignored, folders_only, by_name), _path_regex(tokens, groups)


def _without_trailing_spaces(glob: str) -> str:
    bare = glob.rstrip(" ")
    # An odd number of backslashes before the first of those spaces keeps that one.
    escaped = (len(bare) - len(bare.rstrip("\\"))) % 2 == 1
    return glob[: len(bare) + 1] if escaped else bare


def tokenise(glob: str) -> list[str] | None:
    """STAR, DEEP, SEP, or an expression for one character; None for a glob that matches nothing."""
    tokens: list[str] = []
    at = 0
    while at < len(glob):
        token, after = _token(glob, at, at == 0 or tokens[-1] == SEP)
        if token is None:
            return None
        tokens.append(token)
        at = after
    return tokens


def _token(glob: str, at: int, opens: bool) -> tuple[str | None, int]:
    """The token at `at` and where the next one begins; `opens` at the start of a path segment."""
    character = glob[at]
    if character == "*":
        after = at + len(glob[at:]) - len(glob[at:].lstrip("*"))
        closes = after == len(glob) or glob.startswith(("/", "\\/"), after)
        return (DEEP if after - at > 1 and opens and closes else STAR), after
    if character == "?":
        return "[^/]", at + 1
    if character == "[":
        return _class(glob, at + 1)
    if character == "\\":
        at += 1
        if at == len(glob):
            return None, at
    return re.escape(glob[at]), at + 1


def _class(glob: str, at: int) -> tuple[str | None, int]:
    """The text between `[` and `]`, as an expression that never matches a slash."""
    negated = glob[at : at + 1] in ("!", "^")
    at += negated
    items: list[str] = []
    first = at
    while at < len(glob) and (glob[at] != "]" or at == first):
        item, at = _class_item(glob, at)
        if item is None:
            return None, at
        items.append(item)
    if at >= len(glob):
        return None, at
    inside = "".join(items)
    if negated:
        return f"[^/{inside}]", at + 1
    return (f"(?!/)[{inside}]" if inside else NEVER), at + 1


def _class_item(glob: str, at: int) -> tuple[str | None, int]:
    """One character, one range or one [:name:] of a class."""
    end = glob.find("]", at + 2)
    if glob.startswith("[:", at) and end > at + 2 and glob[end - 1] == ":":
        return POSIX_CLASSES.get(glob[at + 2 : end - 1]), end + 1
    low, at = _class_character(glob, at)
    if low is None or not (glob.startswith("-", at) and glob[at + 1 : at + 2] not in ("", "]")):
        return (low and re.escape(low)), at
    high, at = _class_character(glob, at + 1)
    if high is None:
        return None, at
    return (f"{re.escape(low)}-{re.escape(high)}" if low <= high else re.escape(low)), at


def _class_character(glob: str, at: int) -> tuple[str | None, int]:
    at += glob.startswith("\\", at)
    return (glob[at], at + 1) if at < len(glob) else (None, at)


def _path_regex(tokens: list[str], groups: Iterator[int]) -> str:
    """The expression for a whole path. DEEP means any number of folders."""
    head, *rest = _split_tokens(tokens, DEEP)
    if not rest:
        return _segments(head, groups) + r"\Z"
    *middle, tail = rest
    regex = _segments(head, groups)
    for block in middle:
        if len(block) > 1:  # only a slash: two DEEP side by side
            regex += _first("(?:[^/]+/)*?" + _segments(block[1:], groups), groups)
    # Nothing after the last DEEP: everything inside, and at least something.
    return regex + ("." if not tail else "(?:[^/]+/)*?" + _segments(tail[1:], groups) + r"\Z")


def _segments(tokens: list[str], groups: Iterator[int]) -> str:
    return SEP.join(_segment(segment, groups) for segment in _split_tokens(tokens, SEP))


def _segment(tokens: list[str], groups: Iterator[int]) -> str:
    head, *rest = ("".join(part) for part in _split_tokens(tokens, STAR))
    if not rest:
        return head
    *middle, tail = rest
    stops = (_first(f"[^/]*?{part}", groups) for part in middle if part)
    return head + "".join(stops) + f"[^/]*{tail}"


def _first(regex: str, groups: Iterator[int]) -> str:
    """The first place `regex` matches, and no other: a later one can never match more.

    A lookahead is not entered twice, so this is the atomic group that Python 3.10 does not have.
    """
    name = f"g{next(groups)}"
    return f"(?=(?P<{name}>{regex}))(?P={name})"


def _split_tokens(tokens: list[str], at: str) -> list[list[str]]:
    """As str.split, for tokens."""
    parts: list[list[str]] = [[]]
    for token in tokens:
        if token == at:
            parts.append([])
        else:
            parts[-1].append(token)
    return parts


def _joined(regexes: Iterable[str]) -> Callable[[str], object]:
    return re.compile("|".join(regexes), re.DOTALL).match


# --- Obsidian's excluded files ---

MAX_REGEX = 300  # characters
MAX_CHOICES = 64  # ways to match at one place: alternatives and optional parts, multiplied
MAX_PATH = 1024  # characters; a longer path is not compared with expressions


def _obsidian_filters(root: str) -> tuple[ObsidianFilters | None, list[str]]:
    """The filters of this vault, or None, and a warning for each that cannot be used."""
    app, warnings = read_obsidian_settings(root, "app.json")
    listed = app.get("userIgnoreFilters")
    wanted = [text for text in listed if isinstance(text, str)] if isinstance(listed, list) else []
    if not wanted:
        return None, warnings
    filters = ObsidianFilters(wanted)
    warnings += [
        f".obsidian/app.json: the filter {printable(text[:MAX_REGEX])} is ignored, because it is"
        " not a valid expression or could take very long"
        for text in filters.refused
    ]
    return filters, warnings


class ObsidianFilters:
    """Excluded files: a path prefix or a /regex/, both without regard to case.

    A vault may come from anyone, and Python's `re` can take minutes for a short expression. So an
    expression is used only if it is surely fast (`is_fast`), and refused otherwise.
    """

    def __init__(self, wanted: Iterable[str]) -> None:
        prefixes: list[str] = []
        self._regexes: list[re.Pattern[str]] = []
        self.refused: list[str] = []  # as written
        for text in filter(None, (text.strip() for text in wanted)):
            if len(text) > 2 and text.startswith("/") and text.endswith("/"):
                self._add_regex(text)
            else:
                prefixes.append(normalize("NFC", text).lower())
        self._prefixes = tuple(prefixes)

    def _add_regex(self, text: str) -> None:
        # `.*` at either end changes nothing for a search, and would cost a repeat.
        source = re.sub(r"^\^?(?:\.\*)+|(?<!\\)(?:\.\*)+\$?$", "", text[1:-1])
        source = re.sub(r"\(\?<(?![=!])", "(?P<", source)  # a named group in JavaScript
        try:
            if not is_fast(source):
                raise ValueError
            with catch_warnings():  # on a class such as [[a], which JavaScript allows
                simplefilter("ignore")
                self._regexes.append(re.compile(source, re.IGNORECASE))
        except (ValueError, OverflowError, RecursionError, re.error):
            self.refused.append(text)

    def decide(self, path: str, name: str, folder: bool) -> bool | None:
        """As Rules.decide. Obsidian has no way to include a path again."""
        if (f"{path}/" if folder else path).lower().startswith(self._prefixes):
            return True
        # An expression is about files: one that matches a folder may not match what is in it.
        if folder or len(path) > MAX_PATH:
            return None
        return True if any(regex.search(path) for regex in self._regexes) else None


def is_fast(regex: str) -> bool:
    """Whether an expression surely takes milliseconds: at most one repeat and few choices.

    Lookarounds, references and repeated groups are refused.
    """
    if len(regex) > MAX_REGEX or re.search(r"\\[1-9k]|\(\?(?!:|P<)", regex):
        return False
    bare = re.sub(r"\\.|\[(?:\\.|[^\]\\])*\]", "x", regex, flags=re.DOTALL)
    bare = bare.replace("(?:", "(").replace("(?P", "(")
    repeats = re.findall(r"[*+]|\{\d*,\d*\}", bare)
    if len(repeats) > 1 or re.search(r"\)[*+{]", bare):
        return False
    choices: int = 2 ** len(re.findall(r"(?<![*+}])\?", bare))
    while group := re.search(r"\([^()]*\)", bare):
        choices *= 1 + group[0].count("|")
        bare = bare[: group.start()] + "x" + bare[group.end() :]
    return choices * (1 + bare.count("|")) <= MAX_CHOICES


# --- Who decides in a folder, the strongest first ---

GITIGNORE, RAGIGNORE = ".gitignore", ".ragignore"
EXCLUDE, OBSIDIAN = "walk.exclude", "Obsidian's settings"


class Layer(NamedTuple):
    """Rules, and how many characters of a path lie above the folder that contains them.

    `source` is where they are written, for a person who looks for a note.
    """

    above: int
    rules: Rules | ObsidianFilters
    source: str


Layers = tuple[Layer, ...]  # what decides in one folder, the strongest first


def ignored_by(layers: Layers, path: str, name: str, *, folder: bool) -> str:
    """Where it is written that an entry is ignored; empty if it is not."""
    for above, rules, source in layers:
        verdict = rules.decide(path[above:], name, folder)
        if verdict is not None:
            return source if verdict else ""
    return ""


def base_layers(root: str, settings: config.Walk) -> tuple[Layers, list[str]]:
    """What is decided for the vault as a whole, and sentences on what could not be used."""
    excluded = Layer(0, Rules(settings.exclude), EXCLUDE)
    filters, warnings = _obsidian_filters(root) if settings.obsidian_ignore else (None, [])
    return ((Layer(0, filters, OBSIDIAN), excluded) if filters else (excluded,)), warnings


@lru_cache(maxsize=1)
def default_rules() -> Rules:
    """What is ignored unless the settings say otherwise: nobody looks for a note in `.git`."""
    return Rules(config.DEFAULT_EXCLUDES)


def ignore_line(path: str) -> str:
    """The line of .ragignore that means this note, or this folder if it ends in `/`."""
    line = re.sub(r"([\\*?\[])", r"\\\1", path)
    return f"/{line[:-1]}\\ " if line.endswith(" ") else f"/{line}"


def ignore_files(settings: config.Walk) -> frozenset[str]:
    """The names of the files that contain rules."""
    return frozenset((RAGIGNORE, GITIGNORE) if settings.gitignore else (RAGIGNORE,))


def with_file(layers: Layers, file: Path, folder: str) -> Layers:
    """The layers of a folder that has this ignore file. Raises OSError where it cannot be read."""
    rules = Rules((read_small(file) or "").split("\n"))
    own = Layer(len(folder), rules, printable(folder + file.name))
    # Those of .gitignore come after all of .ragignore.
    stronger = sum(layer.source.endswith(RAGIGNORE) for layer in layers)
    at = 0 if file.name == RAGIGNORE else stronger
    return (*layers[:at], own, *layers[at:])
