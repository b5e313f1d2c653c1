"""Which commands there are, and which one a command line means.

    COMMANDS       every command, with the first line of its help
    SHARED_FILES   which file has a command that has none of its own
    with_command   a bare query becomes a search: `ragvault raft leader`
    check_command  refuses the options of a command whose name is mistyped
    meant_command  the hint at the command that a word may be a typing error of
    instead_of     the search that a command with too many words may have been meant as
    asked_for      the same for a command with a name that nothing has
    picker_vaults  the vaults of the picker, where a command line asks for no query

start.py asks here before every search, so this module imports almost nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

from ragvault.errors import UsageError

COMMANDS = {
    "index": "Index vaults, or update their indexes.",
    "search": "Search your notes with vectors, keywords and links.",
    "open": "Open a note in Obsidian or your editor.",
    "list": "List the tags, folders, properties or notes of a vault.",
    "watch": "Update the index as files change, and keep searches fast.",
    "status": "Show what is indexed, skipped, broken and pending.",
    "doctor": "Check that every part works, and show how to fix what does not.",
    "read": "Print a note, or a section, a block or lines of it.",
    "links": "List the links of a note, in both directions.",
    "related": "Find notes near this one: by links, community and vectors.",
    "forget": "Remove a note from the index, with nothing left behind.",
    "purge": "Remove everything ragvault has written, after listing it.",
    "eval": "Measure search quality, on judged or generated questions.",
    "tune": "Find better ranking weights; keep them only if they help.",
    "config": "Manage settings: create a config file, show or check settings.",
    "vaults": "Manage known vaults: list, remove, set the default.",
    "mcp": "Serve your notes to agents (MCP).",
    "models": "List, fetch and verify models.",
}
# Commands that share a file with others; every other command has a file of its name.
SHARED_FILES = {
    **dict.fromkeys(("read", "open", "links", "related"), "note"),
    **dict.fromkeys(("index", "watch"), "index"),
    **dict.fromkeys(("list", "status", "doctor", "vaults"), "vaults"),
    **dict.fromkeys(("forget", "purge"), "remove"),
    **dict.fromkeys(("eval", "tune"), "quality"),
}
# Commands that take the name of a note, a vault or a file.
TAKE_NAMES = ("read", "open", "links", "related", "forget", "index", "watch", "eval", "tune")
OTHER_NAMES = {"find": "search", "ls": "list"}  # what people try first
OWN_OPTIONS = ("-h", "--help", "--version", "--install-completion", "--show-completion")
OPERATORS_HELP = ["help", "operators"]  # how a query is written
VOLUME = ("-q", "--quiet", "-v", "--verbose")  # also allowed before the command


def with_command(args: Sequence[str]) -> list[str]:
    """The same arguments with a command: `search` where they begin with a query."""
    before, rest = volume_first(args)
    first = rest[0] if rest else ""
    if first == "help" and (len(rest) == 1 or rest[1] in COMMANDS):
        return [*before, *rest[1:], "--help"]
    if rest == OPERATORS_HELP:
        return list(args)
    if not rest or first in COMMANDS or first.partition("=")[0] in OWN_OPTIONS:
        return list(args)
    if first in OTHER_NAMES:
        return [*before, OTHER_NAMES[first], *rest[1:]]
    return [*before, "search", *rest]


def check_command(args: Sequence[str]) -> None:
    """Raise UsageError for an option that is none, and for those of a command that is mistyped:
    `idnex --rebuild`. Without such options words are searched, whatever they are like.
    """
    rest = volume_first(args)[1]
    first = rest[0] if rest else ""
    if len(rest) == 1 and len(first) == 2 and first[0] == "-" and first[1].isalpha():
        if with_command(args) != list(args):
            raise UsageError(f"there is no option {first}", fix="ragvault --help")
        return
    before_words = rest[: rest.index("--")] if "--" in rest else rest
    dashed = {word.partition("=")[0] for word in before_words[1:] if word.startswith("--")}
    if dashed and (meant := _mistyped(args)):
        from ragvault.cli.main import options_of  # it imports the command

        if dashed & (options_of(meant) - options_of("search")):
            raise UsageError(
                f"there is no command “{first}”",
                fix=f"did you mean ragvault {meant}? To search for it: {search_for(rest)}",
            )


def meant_command(args: Sequence[str], code: int) -> str:
    """The hint at a command, if words that were searched begin with a typing error of its name.

    Only if the search found nothing, by its exit code, or if they look like a command: one word, or
    an option after it. Empty for anything else.
    """
    words = volume_first(args)[1]
    looks_like_one = len(words) == 1 or (words[1:2] and words[1].startswith("-"))
    if code == 0 and not looks_like_one:
        return ""
    meant = _mistyped(args)
    return f"there is no command “{words[0]}”; did you mean ragvault {meant}?" if meant else ""


def _mistyped(args: Sequence[str]) -> str:
    """The command of which the first word is a typing error; empty if it is none."""
    rest = volume_first(args)[1]
    first = rest[0] if rest else ""
    if with_command(args) == list(args) or first.startswith("-") or first in OTHER_NAMES:
        return ""
    # `ragvault search …` needs neither.
    from ragvault.text.spelling import STOP_WORDS, misspelt

    # A word that begins many questions is no typing error: which, the, is.
    return "" if first.casefold() in STOP_WORDS else misspelt(first, COMMANDS) or ""


def picker_vaults(args: Sequence[str]) -> list[str] | None:
    """The vaults of a search without a query, which is the picker's; None for anything else."""
    rest = volume_first(args)[1]
    left = iter(rest[1:] if rest[:1] == ["search"] else rest)
    vaults = []
    for each in left:
        option, is_whole, value = each.partition("=")
        vault = value if is_whole else next(left, None)
        if option != "--vault" or vault is None:
            return None
        vaults.append(vault)
    return vaults


def search_for(words: Sequence[str]) -> str:
    """The command that searches for these words, whatever they begin with."""
    import shlex  # only a mistake needs it

    dashed = any(word.startswith("-") for word in words)
    return f"ragvault search {'-- ' if dashed else ''}{shlex.join(words)}"


def instead_of(args: Sequence[str]) -> str:
    """The search that words behind the name of a command may have been meant as: `status of the
    project`. Empty if there is an option among them, or no other word.
    """
    rest = volume_first(args)[1]
    is_plain = len(rest) > 1 and not any(word.startswith("-") for word in rest)
    return search_for(rest) if is_plain and rest[0] in COMMANDS else ""


def asked_for(args: Sequence[str]) -> str:
    """The search that a command with a name that nothing has may have been meant as: `read later`.

    Empty for a command that takes no names, and for what looks more like a name or a path than like
    words: `read Streem`, `index sampel_vault`.
    """
    name, *words = volume_first(args)[1] or [""]
    text = " ".join(words)
    is_plain = text == text.lower() and all(map(str.isalpha, text.replace("'", "").split()))
    return instead_of(args) if name in TAKE_NAMES and is_plain else ""


def volume_first(args: Sequence[str]) -> tuple[list[str], list[str]]:
    """-q and -v before everything else, and the rest."""
    count = 0
    while args[count : count + 1] and args[count] in VOLUME:
        count += 1
    return list(args[:count]), list(args[count:])
