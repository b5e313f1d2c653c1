"""The tools that agents see: names, descriptions and arguments, and the check of arguments.

Names and meanings are frozen (docs/agents.md). A model reads all of this before it asks anything,
so it is short: a test keeps all of it below 9,000 characters. An argument that is unknown or wrong
is refused with a sentence that a model can act on.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from ragvault.errors import UsageError
from ragvault.text.spelling import nearest

MAX_QUERY = 10_000  # characters, as in a search that is typed
MAX_NAME = 1000
MAX_QUERIES = 4
MAX_BUDGET = 8000  # tokens

Schema = Mapping[str, Any]


class Tool(NamedTuple):
    """A tool as agents see it."""

    name: str
    title: str
    description: str
    properties: Mapping[str, Schema]
    required: tuple[str, ...] = ()

    @property
    def schema(self) -> dict[str, Any]:
        """The JSON schema of its arguments."""
        found: dict[str, Any] = {
            "type": "object",
            "properties": dict(self.properties),
            "additionalProperties": False,
        }
        return found | ({"required": list(self.required)} if self.required else {})


def _text(description: str, most: int = MAX_NAME, **more: Any) -> Schema:
    return {"type": "string", "description": description, "maxLength": most, **more}


def _number(description: str, default: int, most: int) -> Schema:
    return {
        "type": "integer",
        "description": description,
        "default": default,
        "minimum": 1,
        "maximum": most,
    }


def _words(description: str, most: int, length: int = MAX_NAME) -> Schema:
    return {
        "type": "array",
        "description": description,
        "items": {"type": "string", "maxLength": length},
        "minItems": 1,
        "maxItems": most,
    }


NOTE = _text("Path, title or vault/path of a note, as search prints it")

TOOLS = (
    Tool(
        "search",
        "Search notes",
        "Search the user's Markdown notes by meaning, keywords and links. The first line says "
        "whether an answer is likely and whether the index is up to date; then each result as "
        "[n] vault/note:from-to | headings | band, and the text, quoted with >. Cite results as "
        "vault/note:from-to. Operators narrow a query: tag:x, path:folder, title:x, heading:x, "
        '"exact phrase", -word, a OR b, [property:value], since:2024-03, has:code, in:vault. A '
        "query of operators alone lists notes by date.",
        {
            "query": _text("What to look for: a question, or keywords, with operators", MAX_QUERY),
            "queries": _words(
                "Instead of query: the same question in up to 4 wordings, the best first",
                MAX_QUERIES,
                MAX_QUERY,
            ),
            "hypothesis": _text("A likely answer; its meaning is searched for", MAX_QUERY),
            "vaults": _words("Only these vaults; default: all", 50),
            "limit": _number("Most results", 8, 30),
            "budget": _number("Most tokens of the answer", 1500, MAX_BUDGET),
            "detail": {
                "enum": ["lines", "passages", "sections"],
                "default": "passages",
                "description": "How much of each: a line or two, the passage, its whole section",
            },
            "min_confidence": {
                "type": "number",
                "minimum": 0,
                "maximum": 1,
                "description": "Leave out results below this confidence (0 to 1)",
            },
            "require_fresh": {
                "type": "boolean",
                "default": False,
                "description": "Fail if files have changed since they were indexed",
            },
        },
    ),
    Tool(
        "search_with_hypothesis",
        "Search by a likely answer",
        "Find passages near to a text that you write as a likely answer (HyDE). Use it when the "
        "question shares no words with the notes. Answers like search.",
        {
            "hypothesis": _text("A paragraph that would answer the question", MAX_QUERY),
            "top_n": _number("Most results", 5, 30),
        },
        ("hypothesis",),
    ),
    Tool(
        "read",
        "Read a note",
        "Read a note, or a section or lines of it, from the file as it is now. The text is quoted "
        "with >. Says how many links lead out and in, and which lines are left if it was cut.",
        {
            "note": NOTE,
            "heading": _text("Only this section: a heading, “A > B”, or a block ^id"),
            "lines": _text("Only these lines, such as 40-80", 30),
            "budget": _number("Most tokens of the answer", 4000, MAX_BUDGET),
        },
        ("note",),
    ),
    Tool(
        "related",
        "Related notes",
        "Notes near a note, with the reasons: links, community, similar content.",
        {"note": NOTE, "limit": _number("Most notes", 10, 50)},
        ("note",),
    ),
    Tool(
        "links",
        "Links of a note",
        "Links from and to a note with their lines, and broken ones; or, with `to`, the shortest "
        "path of links between two notes.",
        {
            "note": NOTE,
            "direction": {
                "enum": ["out", "in", "both"],
                "default": "both",
                "description": "Which links",
            },
            "to": _text("Another note: show how the two are connected"),
        },
        ("note",),
    ),
    Tool(
        "list",
        "List a vault's vocabulary",
        "The tags, folders, properties or vaults that exist, with counts; or the notes that a "
        "filter keeps. In pages: pass `next` as cursor.",
        {
            "filter": _text("Operators, such as tag:recipe path:journal in:vault", MAX_QUERY),
            "what": {
                "enum": ["tags", "folders", "properties", "vaults", "notes"],
                "description": "Default: notes with a filter, else vaults",
            },
            "limit": _number("Most items of a page", 50, 200),
            "cursor": _text("`next` of the page before", 50),
        },
    ),
    Tool(
        "status",
        "State of the index",
        "Vaults, how far they are indexed, what is pending, the model and its language, warnings.",
        {},
    ),
)
BY_NAME = {tool.name: tool for tool in TOOLS}


def checked_arguments(tool: Tool, arguments: Mapping[str, Any] | None) -> dict[str, Any]:
    """The arguments with defaults filled in. Raises UsageError that says what is wrong."""
    given = {name: value for name, value in (arguments or {}).items() if value is not None}
    for name in given:
        if name not in tool.properties:
            near = nearest(name, tool.properties)
            known = ", ".join(tool.properties) or "none"
            raise UsageError(
                f"{tool.name} has no argument “{name[:50]}”",
                fix=f"did you mean {near[0]}?" if near else f"its arguments are: {known}",
            )
    for name in tool.required:
        if name not in given:
            raise UsageError(f"{tool.name} needs “{name}”", fix=f"pass {name}")
    for name, value in given.items():
        _check(name, value, tool.properties[name])
    defaults = {n: each["default"] for n, each in tool.properties.items() if "default" in each}
    return {**dict.fromkeys(tool.properties), **defaults, **given}


def _check(name: str, value: Any, schema: Schema) -> None:
    if "enum" in schema:
        if value not in schema["enum"]:
            raise _wrong(name, value, f"one of {', '.join(schema['enum'])}")
        return
    kind = schema["type"]
    if kind == "string":
        _check_text(name, value, schema["maxLength"])
    elif kind == "boolean":
        if not isinstance(value, bool):
            raise _wrong(name, value, "true or false")
    elif kind == "array":
        if not isinstance(value, list) or not 1 <= len(value) <= schema["maxItems"]:
            raise _wrong(name, value, f"a list of 1 to {schema['maxItems']} texts")
        for each in value:
            _check_text(name, each, schema["items"]["maxLength"])
    else:
        numbers = (int,) if kind == "integer" else (int, float)
        low, high = schema["minimum"], schema["maximum"]
        if isinstance(value, bool) or not isinstance(value, numbers) or not low <= value <= high:
            what = "a whole number" if kind == "integer" else "a number"
            raise _wrong(name, value, f"{what} from {low} to {high}")


def _check_text(name: str, value: Any, most: int) -> None:
    if not isinstance(value, str):
        raise _wrong(name, value, "a text")
    if len(value) > most:
        raise UsageError(
            f"{name} has {len(value):,} characters", fix=f"make it shorter than {most:,} characters"
        )
    if not value.strip():
        raise UsageError(f"{name} is empty", fix=f"leave {name} out, or write something")


def _wrong(name: str, value: Any, wanted: str) -> UsageError:
    shown = repr(value)
    shown = shown if len(shown) <= 60 else f"{shown[:60]}…"
    return UsageError(f"{name} cannot be {shown}", fix=f"{name} is {wanted}")
