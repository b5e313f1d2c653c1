"""Understand: query text becomes a QueryPlan.

    parse       a tree of words, phrases and conditions            parse, operators, dates
    sort        what to search for, and what is required           below
    classify    the type of query, and which leg it favours        below
    restate     the plan as a sentence

What to search for, and what is required:

    words                   searched for: each makes a passage better, none is required
    "phrases"               searched for and, with query.phrases = "must", required
    conditions              required
    -anything               excluded
    words next to OR        required if the other side is a condition, otherwise searched for

So `bread tag:recipe -rye` keeps passages of notes with that tag that do not contain rye, and
orders them by bread.

The type is the first of these that fits. It multiplies the weight of one leg:

    factual       names something exactly: an identifier, `code`, a version, a "phrase"    keyword
    navigational  wants a place: guide, section, docs, [[a link]]                          graph
    exploratory   is a question: what, how, why, ?                                         vector
    plain         none of these

`query.camel_case` says what a camelCase identifier is: "identifier" is what programmers write,
"loose" is the pattern of ragdocs, which also takes APIs, iPhone and JavaScript for identifiers.

So far nothing looks at a note. Then the vault's own words change the plan:

    correct          a word that no note has is looked for as the nearest word of the vault. From
                     then on that word counts as found: its text is embedded, and a passage that has
                     it has the word of the query
    add_near_terms   terms of the vocabulary that are near the query, unless it names something
                     exactly. How near is a setting:
        similarity   a fixed cosine, as ragdocs has it; its terms weigh as much as the query's own
                     words and are embedded with them
        percentile   as near as only one in a thousand pairs of the vocabulary. A fixed cosine means
                     something different for every model: with bge-small most pairs of unrelated
                     words are above 0.5. Its terms weigh half
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Literal, TypeVar

from ragvault.config.settings import Expand, Query
from ragvault.errors import UsageError
from ragvault.plan import (
    LEGS,
    PICTURES,
    And,
    Expansion,
    Filter,
    KeywordQuery,
    MatchesWords,
    Not,
    Or,
    Phrase,
    QueryPlan,
    QueryType,
    UseCase,
    Words,
    leaves,
)
from ragvault.ports import Corpus
from ragvault.query.operators import Condition, VaultName, shorten
from ragvault.query.parse import Node, TypedText, check_length, parse_query
from ragvault.query.restate import plan_sentence
from ragvault.text.markup import WIKILINK
from ragvault.text.printable import valid_unicode
from ragvault.text.spelling import fold

MAX_CONDITIONS = 100  # SQLite takes a limited number of values in one statement
MAX_ALTERNATIVES = 250  # words and phrases next to OR: each is looked up by itself
_PICTURE = re.compile(PICTURES)
T = TypeVar("T")

CamelCase = Literal["identifier", "loose"]

_LOOSE = re.compile(r"[a-z][A-Z]|[A-Z]{2,}[a-z]")
# getUserById, parseJSON and HTTPResponseError; not iPhone, macOS, APIs, GitHub or LaTeX. Its runs
# have a limit: without one, thousands of capitals take seconds.
_IDENTIFIER = re.compile(
    r"\b(?:[a-z]{2,}(?:[A-Z][a-z]|[A-Z]{2,}\b(?<!OS))"
    r"|[A-Z]{1,30}[a-z0-9]{0,60}(?:[A-Z]{1,30}[a-z0-9]{1,60}){2}"
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
_WORD_OR_NUMBER = re.compile(r"[^\W_]+")
PERCENTILE = 0.999  # of the pairs of the vocabulary
HALF = 0.5  # the weight of a term by percentile: with more it would outvote a word of the query

NAVIGATIONAL = {
    *("section", "chapter", "guide", "tutorial", "documentation", "docs"),
    *("manual", "handbook", "reference", "appendix"),
}
QUESTIONS = {
    *("what", "how", "why", "when", "where", "which", "who", "whom", "whose"),
    *("explain", "describe", "compare"),
}
# What ragdocs multiplies the weight of one leg by.
_RAISED: dict[QueryType, dict[str, float]] = {
    "factual": {"keyword": 1.5},
    "navigational": {"graph": 1.5},
    "exploratory": {"vector": 1.3},
}
_USE_CASES: dict[UseCase, re.Pattern[str]] = {
    "historical": re.compile(
        r"\b(histor(?:y|ic|ical|ically)|original(?:ly)?|former(?:ly)?|previous(?:ly)?|predecessors?"
        r"|used to|in the past|back then)\b",
        re.IGNORECASE,
    ),
    "current": re.compile(
        r"\b(current(?:ly)?|latest|newest|most recent|today|now|nowadays|still|up[- ]to[- ]date)\b",
        re.IGNORECASE,
    ),
    "definitions": re.compile(
        r"\b(defin(?:e|ed|es|ition|itions)|terminology|glossary|meaning of|stands? for)\b"
        r"|^what(?: is| are|'s) (?:an? )?(?!the |my |our |your )\S+(?: \S+){0,2}$"
        r"|^what do(?:es)? .{1,100} mean\b",
        re.IGNORECASE,
    ),
}


def understand(
    query: str, settings: Query, *, now: datetime, hypothesis: str | None = None
) -> QueryPlan:
    """The plan for a query. Raises UsageError, and nothing else, if it makes no sense.

    `now` is the clock, in the caller's zone (the machine's if it names none). A `hypothesis` is
    embedded as it is, in place of the query.
    """
    if hypothesis is not None and not hypothesis.strip():
        raise UsageError(
            "the hypothesis is empty", fix="give the text of a likely answer, or leave it out"
        )
    check_length("hypothesis", hypothesis or "")
    tree, warnings = parse_query(valid_unicode(query), now)
    parts = _QueryParts(tree, phrases_required=settings.phrases == "must")
    _check(parts, hypothesis)
    plan = _plan(query, parts, settings, hypothesis or "")
    warnings += parts.warnings
    if plan.text and not _has_words(plan.text):
        warnings.append("the query contains no word, so only vectors can find something")
    return replace(plan, parse=plan_sentence(plan), warnings=tuple(dict.fromkeys(warnings)))


def _plan(query: str, parts: _QueryParts, settings: Query, hypothesis: str) -> QueryPlan:
    raw, quoted = " ".join(parts.raw), bool(parts.phrases)
    kind = classify(raw, quoted=quoted, camel_case=settings.camel_case)
    exact = quoted or is_literal(raw, settings.camel_case)
    return QueryPlan(
        query,
        kind,
        text=" ".join(" ".join(parts.text).split()),
        keyword_query=parts.keyword_query(),
        filter=_joined(parts.filters, And) if parts.filters else None,
        phrases=tuple(dict.fromkeys(parts.phrases)),
        vaults=tuple(dict.fromkeys(parts.vaults)),
        weights=type_weights(kind if settings.adaptive_weights else "plain"),
        use_case=use_case(raw) if settings.adaptive_weights else "",
        hypothesis=hypothesis,
        expandable=_has_letters(raw) and not exact and not hypothesis,
        listing=not parts.text and not hypothesis,
    )


def _check(parts: _QueryParts, hypothesis: str | None) -> None:
    if not (parts.text or parts.filters or parts.vaults) and hypothesis is None:
        raise UsageError(
            "there is nothing to search for",
            fix='type some words or a filter: ragvault search "bread tag:recipe"',
        )
    if sum(1 for tree in parts.filters for _ in leaves(tree)) > MAX_CONDITIONS:
        raise UsageError(
            f"the query has more than {MAX_CONDITIONS} conditions",
            fix="leave some out, or put text that is not meant as a query in quotes",
        )
    query = parts.keyword_query()
    if query is not None and sum(1 for _ in leaves(query)) > MAX_ALTERNATIVES:
        raise UsageError(
            f"the query has more than {MAX_ALTERNATIVES} words or phrases next to OR",
            fix="leave some out, or write the words without OR",
        )


class _QueryParts:
    """The parts of a tree, read from left to right: text to search for, filters, vaults."""

    def __init__(self, tree: Node, *, phrases_required: bool) -> None:
        self.text: list[str] = []  # what is searched for, in words
        self.raw: list[str] = []  # the same as typed
        self.phrases: list[str] = []
        self.filters: list[Filter] = []
        self.vaults: list[str] = []
        self.warnings: list[str] = []
        self._phrases_required = phrases_required
        self._words: list[str] = []  # side by side, none of them required
        self._scored: list[KeywordQuery] = []
        self._required: list[KeywordQuery] = []
        self._read(tree)
        self.filters = list(dict.fromkeys(self.filters))

    def keyword_query(self) -> KeywordQuery | None:
        """The keyword query: what is searched for, with what is required and excluded."""
        words: list[KeywordQuery] = [Words(" ".join(self._words))] if self._words else []
        scored = list(dict.fromkeys([*words, *self._scored]))  # repeating a word adds nothing
        if not scored:
            return None
        required = [each for each in dict.fromkeys(self._required) if scored != [each]]
        searched = _joined(scored, Or)
        return And((searched, *required)) if required else searched

    def _read(self, node: Node) -> None:
        if isinstance(node, And):
            for part in node.parts:
                self._read(part)
        elif isinstance(node, Or):
            self._alternatives(node)
        elif isinstance(node, Not):
            self._excluded(node.part)
        elif isinstance(node, VaultName):
            self.vaults.append(node.name)
        elif isinstance(node, Condition):
            self.filters.append(node.filter)
            self._search_for(node)
        elif node.quoted:
            self._phrase(node)
        else:
            self._free_text(node.text, node.raw)

    def _phrase(self, phrase: TypedText) -> None:
        if not _has_words(phrase.text):
            if phrase.text.strip():
                text = shorten(phrase.text)
                self.warnings.append(f"“{text}” contains no word, so it is not required")
                self._free_text(phrase.text, phrase.text)
            return
        self._search_for(phrase)
        if self._phrases_required:
            self._required.append(Phrase(phrase.text))
            self.filters.append(MatchesWords(Phrase(phrase.text)))

    def _excluded(self, part: Node) -> None:
        unwanted = _required_filter(part)
        if unwanted is None:
            self.warnings.append("a minus was ignored, because no word follows it")
            return
        self.filters.append(Not(unwanted))
        if isinstance(unwanted, MatchesWords) and unwanted.index == "keyword":
            self._required.append(Not(unwanted.query))

    def _alternatives(self, node: Or[Node]) -> None:
        if vaults := _only_vaults(node):
            self.vaults += vaults
            return
        found = list(_searchable(node))
        query = _keyword_query(node)
        phrases = any(isinstance(each, TypedText) and each.quoted for each in found)
        if query is not None and not (self._phrases_required and phrases):
            for each in found:
                self._add_text(each)
            self._scored.append(query)
            return
        for each in found:
            self._search_for(each)
        if (required := _required_filter(node)) is not None:
            self.filters.append(required)

    def _search_for(self, node: TypedText | Condition) -> None:
        """Search for a word, a phrase, or the words that an operator names."""
        if node.query is not None:
            self._add_text(node)
            self._scored.append(node.query)

    def _free_text(self, text: str, raw: str) -> None:
        self.text.append(text)
        self.raw.append(raw)
        self._words.append(text)

    def _add_text(self, node: TypedText | Condition) -> None:
        self.text.append(node.text)
        self.raw.append(node.raw if isinstance(node, TypedText) else node.text)
        if isinstance(node, TypedText) and node.quoted:
            self.phrases.append(node.text)


# --- Parts of a tree as filters and keyword queries ---


def _required_filter(node: Node) -> Filter | None:
    """The filter that keeps what this part asks for; None for a part without a word (→, -).

    Text becomes one question to the keyword index, however it is nested. Raises UsageError for in:,
    which cannot be part of a filter.
    """
    if (query := _keyword_query(node)) is not None:
        return MatchesWords(query)
    if isinstance(node, Condition):
        return node.filter
    if isinstance(node, Not):
        part = _required_filter(node.part)
        return part and Not(part)
    if isinstance(node, VaultName):
        raise UsageError(
            f"in:{node.name} cannot be excluded, or be next to OR with anything but a vault",
            fix=f"write vaults by themselves: (in:{node.name} OR in:other) words",
        )
    if isinstance(node, Or):
        alternatives = dict.fromkeys(
            kept for part in node.parts if (kept := _required_filter(part)) is not None
        )
        return _joined(list(alternatives), Or) if alternatives else None
    if isinstance(node, And):
        return _side_by_side_filter(node)
    return None


def _side_by_side_filter(node: And[Node]) -> Filter | None:
    # The words of a group are one keyword query, whatever is between them.
    text: list[Node] = []
    others: list[Node] = []
    for part in node.parts:
        (others if _keyword_query(part) is None else text).append(part)
    query = _keyword_query(And(tuple(text))) if text else None
    filters: list[Filter] = [MatchesWords(query)] if query else []
    filters += [kept for part in others if (kept := _required_filter(part)) is not None]
    return _joined(filters, And) if filters else None


def _keyword_query(node: Node) -> KeywordQuery | None:
    """The keyword query for a part that is only text; otherwise None."""
    if isinstance(node, TypedText):
        query = node.query if node.quoted else Words(node.text, every=True)
        return query if _has_words(node.text) else None
    if isinstance(node, And):
        return _side_by_side_query(node)
    if isinstance(node, Or):
        parts = [_keyword_query(part) for part in node.parts if not _is_wordless(part)]
        known = [part for part in parts if part is not None]
        return _joined(known, Or) if known and len(known) == len(parts) else None
    return None


def _side_by_side_query(node: And[Node]) -> KeywordQuery | None:
    parts = [part for part in node.parts if not _is_wordless(part)]
    words: list[str] = []
    known: list[KeywordQuery] = []
    for part in parts:
        if isinstance(part, TypedText) and not part.quoted:
            words.append(part.text)
        elif (query := _keyword_query(part)) is not None:
            known.append(query)
        else:
            return None
    if not parts:
        return None
    together: list[KeywordQuery] = [Words(" ".join(words), every=True)] if words else []
    return _joined([*together, *known], And)


def _only_vaults(node: Node) -> list[str]:
    """The names of a part that is only vaults; empty for any other part."""
    if isinstance(node, VaultName):
        return [node.name]
    if not isinstance(node, (And, Or)):
        return []
    parts = [_only_vaults(part) for part in node.parts]
    return [name for part in parts for name in part] if parts and all(parts) else []


def _searchable(node: Node) -> Iterator[TypedText | Condition]:
    """The parts that name text to search for, left to right, without what is excluded."""
    if isinstance(node, (TypedText, Condition)):
        yield node
    elif isinstance(node, (And, Or)):
        for part in node.parts:
            yield from _searchable(part)


def _is_wordless(node: Node) -> bool:
    """Whether this is free text without a word in it."""
    if isinstance(node, TypedText):
        return not _has_words(node.text)
    return isinstance(node, (And, Or)) and all(map(_is_wordless, node.parts))


def _has_words(text: str) -> bool:
    """Whether the keyword index can look something up: a letter, a digit or an emoji."""
    return _has_letters(text) or _PICTURE.search(text) is not None


def _has_letters(text: str) -> bool:
    """Whether there is a letter or a digit, of any script."""
    return any(char.isalnum() for char in text)


def _joined(parts: Sequence[T], join: Callable[[tuple[T, ...]], T]) -> T:
    """A single part as it is, several joined."""
    return parts[0] if len(parts) == 1 else join(tuple(parts))


# --- The type of a query ---


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


def use_case(text: str) -> UseCase:
    """What a query is for, by its words: the first use case that fits, none for most queries.

    A question about the past or the present may also ask what something is, so these come first.
    """
    return next((name for name, pattern in _USE_CASES.items() if pattern.search(text)), "")


def type_weights(kind: QueryType) -> dict[str, float]:
    """What each leg's weight is multiplied by for this type of query."""
    return {**dict.fromkeys(LEGS, 1.0), **_RAISED.get(kind, {})}


# --- The words of the vault ---


def correct(plan: QueryPlan, corpus: Corpus) -> QueryPlan:
    """The plan with the vault's own words in place of misspelt ones, and a warning for each."""
    if plan.keyword_query is None or plan.listing:
        return plan
    query = corpus.corrected(plan.keyword_query)
    found: dict[str, dict[str, None]] = {}
    for leaf in leaves(query, negated=False):
        for typed, word, _ in leaf.spellings if isinstance(leaf, Words) else ():
            found.setdefault(typed, {})[corpus.written(word)] = None
    if not found:
        return plan
    best = {typed: next(iter(words)) for typed, words in found.items()}
    corrected = _WORD_OR_NUMBER.sub(lambda word: best.get(fold(word[0]), word[0]), plan.text)
    warnings = (
        f"{typed!r} is found nowhere; looked for {', '.join(words)} instead"
        for typed, words in found.items()
    )
    return replace(
        plan,
        keyword_query=query,
        corrected=corrected,
        warnings=(*plan.warnings, *warnings),
    )


def may_expand(plan: QueryPlan, settings: Expand) -> bool:
    """Whether to look for terms at all; doing so compares the query with the whole vocabulary."""
    return settings.method != "off" and plan.expandable and plan.keyword_query is not None


def add_near_terms(plan: QueryPlan, settings: Expand, corpus: Corpus) -> QueryPlan:
    """The plan with near terms of the vocabulary. Raises RagvaultError if its model is unusable."""
    query = plan.keyword_query
    if query is None or not may_expand(plan, settings):
        return plan
    words = plan.text.casefold().split()
    own = frozenset([*words, *(word.strip("\"'.,;:!?()[]{}") for word in words)])
    near, usual = corpus.near_terms(plan.text, settings.terms, percentile=PERCENTILE, exclude=own)
    is_fixed = settings.method == "similarity"
    least, weight = (settings.similarity, 1.0) if is_fixed else (usual, HALF)
    found = tuple(
        Expansion(term, cosine, weight)
        for term, cosine in near
        if cosine >= least and term.casefold() not in own
    )
    if not found:
        return plan
    more = tuple(Words(each.term, weight=each.weight) for each in found)
    if isinstance(query, And):  # what is required or excluded stays
        wanted, *required = query.parts
        query = And((Or((wanted, *more)), *required))
    else:
        query = Or((query, *more))
    expanded = replace(plan, expansions=found, keyword_query=query, embed_expansions=is_fixed)
    return replace(expanded, parse=plan_sentence(expanded))
