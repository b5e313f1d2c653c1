"""Classify: the type of a query. The first of these that fits:

    factual       names something exactly: an identifier, `code`, a version, a "phrase"
    navigational  asks for a place: guide, section, docs, [[a link]]
    exploratory   asks a question: what, how, why, ?
    plain         none of these

The type multiplies the weight of one leg: keyword, graph or vector. `query.camel_case` decides what
a camelCase identifier is: "identifier" wants it as programmers write it, "loose" is the pattern of
ragdocs, which also takes APIs, iPhone and JavaScript for identifiers.
"""

from __future__ import annotations

import re
from typing import Literal

from ragvault.config.settings import TypeWeights
from ragvault.plan import LEGS, QueryType
from ragvault.text.wikilinks import WIKILINK

CamelCase = Literal["identifier", "loose"]

_LOOSE = re.compile(r"[a-z][A-Z]|[A-Z]{2,}[a-z]")
# getUserById, parseJSON and HTTPResponseError; not iPhone, macOS, APIs, GitHub or LaTeX.
_IDENTIFIER = re.compile(
    r"\b(?:[a-z]{2,}(?:[A-Z][a-z]|[A-Z]{2,}\b(?<!OS))"
    r"|[A-Z]+[a-z0-9]*(?:[A-Z]+[a-z0-9]+){2}"
    r"|[A-Z]{2,}[A-Z][a-z]{2,})"
)
_SNAKE_CASE = re.compile(r"\b[A-Za-z]+_[A-Za-z_]+\b")
_BACKTICKS = re.compile(r"`[^`]+`")
_VERSION = re.compile(r"\b[vV]?\d+\.\d+(?:\.\d+)?(?:-\w+)?\b")
# Names that contain signs: PIO-1384, C++, C#, @scope/pkg, Node.js, walk(), std::string.
_SIGNED = re.compile(
    r"\b[A-Z][A-Z0-9]+-\d+\b"
    r"|(?<!\w)\w+(?:\+\+|#)(?![\w#])"
    r"|(?<![\w.])@[\w.-]+/[\w.-]+"
    r"|\b\w{2,}\.[a-z]\w{0,4}\b"
    r"|\w\(\)|\w::\w"
)
_WIKILINK = re.compile(WIKILINK)
_WORD = re.compile(r"[^\W\d_]+")

NAVIGATIONAL = {
    *("section", "chapter", "guide", "tutorial", "documentation", "docs"),
    *("manual", "handbook", "reference", "appendix"),
}
QUESTIONS = {
    *("what", "how", "why", "when", "where", "which", "who", "whom", "whose"),
    *("explain", "describe", "compare"),
}


def classify(text: str, *, quoted: bool = False, camel_case: CamelCase = "identifier") -> QueryType:
    """The type of a query by its free text, as typed; `quoted`: it contains a phrase."""
    if quoted or names_exactly(text, camel_case):
        return "factual"
    words = {word.lower() for word in _WORD.findall(text)}
    if words & NAVIGATIONAL or _WIKILINK.search(text):
        return "navigational"
    if words & QUESTIONS or "?" in text:
        return "exploratory"
    return "plain"


def names_exactly(text: str, camel_case: CamelCase = "identifier") -> bool:
    """Whether the text contains an identifier, code or a version."""
    camel = _LOOSE if camel_case == "loose" else _IDENTIFIER
    return any(each.search(text) for each in (camel, _SNAKE_CASE, _BACKTICKS, _VERSION))


def is_literal(text: str, camel_case: CamelCase = "identifier") -> bool:
    """Whether the text names something letter by letter, so that it must not be expanded.

    Wider than `names_exactly`, which decides about weights and is tuned on judged questions:
    someone who types PIO-1384 wants that and nothing near it.
    """
    return names_exactly(text, camel_case) or _SIGNED.search(text) is not None


def type_weights(kind: QueryType, factors: TypeWeights) -> dict[str, float]:
    """What each leg's weight is multiplied by for this type of query."""
    raised = {
        "factual": {"keyword": factors.factual_keyword},
        "navigational": {"graph": factors.navigational_graph},
        "exploratory": {"vector": factors.exploratory_vector},
    }
    return {**dict.fromkeys(LEGS, 1.0), **raised.get(kind, {})}
