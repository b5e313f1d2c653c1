"""Restate: a plan as a sentence for people, and its filter as JSON for programs.

    sourdough, in passages tagged #recipe, modified since 2024-03-01, without rye

The sentence shows how a query was understood. It speaks of notes if all conditions are on notes,
otherwise of passages. In the JSON, each node has one key, named like an operator:

    {"all": […]}  {"any": […]}  {"not": {…}}         And, Or, Not
    {"tag": "recipe"}  {"heading": "method"}         an operator and its value
    {"created": {"since": "2024-03-01", "before": "2024-04-01"}}
    {"property": {"name": "rating", "test": ">", "value": "3", "number": 3.0}}
    {"words": "rye"}  {"phrase": "cold start"}       required text

Times in both are in the caller's local time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ragvault.plan import (
    And,
    Comparison,
    Dated,
    Filter,
    HasPart,
    HasTask,
    InLanguage,
    KeywordQuery,
    LinkedBy,
    LinksTo,
    MatchesWords,
    Moment,
    NameContains,
    Not,
    Or,
    Phrase,
    Property,
    QueryPlan,
    Tagged,
    UnderHeading,
    Value,
    Words,
    of_notes,
)
from ragvault.query.dates import iso_time, range_in_words

# --- The plan as a sentence ---

_PARTS = {"code": "code", "table": "a table", "task": "a task", "image": "an image"}
_PLACES = {"path": "the path", "file": "the file name", "title": "the title", "alias": "an alias"}
_PLACE = {"body": " in their text"}
_TASKS = {"any": "a task", "todo": "an open task", "done": "a finished task"}
_SIGNS = {"<": "less than", "<=": "at most", ">": "more than", ">=": "at least", "=": "", "..": ""}


def plan_sentence(plan: QueryPlan) -> str:
    """The whole plan in one sentence."""
    required, excluded = _required_and_excluded(plan.filter)
    conditions = [_clause(part) for part in required]
    conditions += [f"without {_text(query)}" for query in excluded]
    subject = "notes" if not excluded and all(map(of_notes, required)) else "passages"
    vaults = [f"in the vault {' or '.join(plan.vaults)}"] if plan.vaults else []
    parts = [*conditions, *vaults]
    about = "" if required and _text_of(required) == plan.text else _about(plan)
    if about and conditions:
        parts[0] = f"in {subject} {parts[0]}"
    elif parts and not about:
        parts[0] = f"{subject} {parts[0]}"
    if about:
        parts.insert(0, about)
    if plan.listing:
        parts.append("newest first")
    if plan.hypothesis:
        parts.append(f"like this text: {plan.hypothesis}")
    return ", ".join(parts)


def _text_of(required: Sequence[Filter]) -> str:
    """The text of a single condition that is on text: the query searches for it too."""
    only = required[0] if len(required) == 1 else None
    if isinstance(only, MatchesWords) and isinstance(only.query, (Words, Phrase)):
        return only.query.text
    return only.text if isinstance(only, HasTask) else ""


def _required_and_excluded(tree: Filter | None) -> tuple[list[Filter], list[KeywordQuery]]:
    """The conditions, and the words and phrases that are excluded."""
    parts = tree.parts if isinstance(tree, And) else () if tree is None else (tree,)
    required: list[Filter] = []
    excluded: list[KeywordQuery] = []
    for part in parts:
        if isinstance(part, Not) and isinstance(part.part, MatchesWords):
            excluded.append(part.part.query)
        else:
            required.append(part)
    return required, excluded


def _about(plan: QueryPlan) -> str:
    """The text to search for, as typed, and the words that expansion has added.

    Next to OR, words that belong together are in parentheses.
    """
    tree, text = plan.keyword_query, plan.text
    searched = tree.parts[0] if isinstance(tree, And) else tree
    if plan.expansions and isinstance(searched, Or):
        searched = searched.parts[0]  # the added terms follow it
    if isinstance(searched, Or) and any(map(_is_alternative, searched.parts)):
        text = _choice(searched)
    elif isinstance(searched, Or) and any(isinstance(each, Or) for each in searched.parts):
        text = ", ".join(map(_choice, searched.parts))
    more = " ".join(each.term for each in plan.expansions)
    return f"{text} (or similar words: {more})" if more else text


def _is_alternative(query: KeywordQuery) -> bool:
    """Whether this is next to OR: only there must words without an operator occur together."""
    return isinstance(query, And) or (isinstance(query, Words) and query.every and not query.field)


def _choice(query: KeywordQuery) -> str:
    if isinstance(query, Or):
        return " or ".join(map(_alternative, query.parts))
    return _text(query)


def _alternative(query: KeywordQuery) -> str:
    together = isinstance(query, Words) and " " in query.text
    return f"({_text(query)})" if together else _text(query)


def _clause(tree: Filter) -> str:
    """One part of a filter, as it would follow "notes" or "passages"."""
    if isinstance(tree, And):
        return " and ".join(_nested(part) for part in tree.parts)
    if isinstance(tree, Or):
        return " or ".join(_nested(part) for part in tree.parts)
    if isinstance(tree, Not):
        return f"not {_nested(tree.part)}"
    return _CLAUSES[type(tree)](tree)


def _nested(tree: Filter) -> str:
    clause = _clause(tree)
    return f"({clause})" if isinstance(tree, (And, Or)) else clause


def _property_clause(leaf: Property) -> str:
    if leaf.test == "there":
        return f"with the property {leaf.name}"
    if leaf.test == "empty":
        return f"where {leaf.name} is empty"
    assert leaf.value is not None
    return f"where {leaf.name} is {_compared(leaf, leaf.value, leaf.last or leaf.value)}"


def _compared(leaf: Property, value: Value, last: Value) -> str:
    """As a number or a text and as a date, if it can be read as both."""
    typed = f"from {value.text} to {last.text}" if leaf.test == ".." else value.text
    typed = f"{_SIGNS[leaf.test]} {typed}".strip()
    if value.since is None or last.until is None:
        return typed
    date = _compared_date(leaf.test, value.since.day, last.until.day)
    if leaf.test != "=" and value.number is None:
        return date
    return typed if date == f"on {typed}" else f"{typed} or {date}"


def _compared_date(test: Comparison, since: float, until: float) -> str:
    """Before a range is before its first moment, after it is from its end on."""
    if test in ("=", ".."):
        return range_in_words(since, until)
    bound = iso_time(since if test in ("<", ">=") else until)
    return f"before {bound}" if test in ("<", "<=") else f"from {bound} on"


def _dated_clause(leaf: Dated) -> str:
    verb = {"date": "dated"}.get(leaf.date, leaf.date)
    if leaf.since is None or leaf.until is None:
        bound, word = (leaf.since, "since") if leaf.since else (leaf.until, "before")
        return f"{verb} {word} {iso_time(bound.day)}" if bound else f"{verb} at any time"
    return f"{verb} {range_in_words(leaf.since.day, leaf.until.day)}"


def _task_clause(leaf: HasTask) -> str:
    return f"with {_TASKS[leaf.state]}" + (f" containing “{leaf.text}”" if leaf.text else "")


def _words_clause(leaf: MatchesWords) -> str:
    verb = "with code containing" if leaf.index == "code" else "containing"
    return f"{verb} {_text(leaf.query)}"


def _text(query: KeywordQuery) -> str:
    if isinstance(query, Words):
        return query.text + _PLACE.get(query.field, "")
    if isinstance(query, Phrase):
        return f"“{query.text}”" + _PLACE.get(query.field, "")
    if isinstance(query, Not):
        return f"not {_text(query.part)}"
    joint = " and " if isinstance(query, And) else " or "
    return f"({joint.join(map(_text, query.parts))})"


_CLAUSES: dict[type, Callable[[Any], str]] = {
    Tagged: lambda leaf: f"tagged #{leaf.tag}",
    NameContains: lambda leaf: f"with “{leaf.text}” in {_PLACES[leaf.where]}",
    LinksTo: lambda leaf: f"linking to “{leaf}”",
    LinkedBy: lambda leaf: f"linked from “{leaf.note}”",
    Property: _property_clause,
    Dated: _dated_clause,
    UnderHeading: lambda leaf: f"under a heading with “{leaf.heading}”",
    InLanguage: lambda leaf: f"with code in {leaf.languages[0]}",
    HasPart: lambda leaf: f"with {_PARTS[leaf.part]}",
    HasTask: _task_clause,
    MatchesWords: _words_clause,
}


# --- The filter as JSON ---

_JOINS: dict[type, str] = {And: "all", Or: "any"}
_TASK_KEYS = {"any": "task", "todo": "task-todo", "done": "task-done"}


def filter_json(tree: Filter | KeywordQuery | None) -> dict[str, Any]:
    """The filter as JSON; empty if there is none."""
    if tree is None:
        return {}
    if isinstance(tree, Not):
        return {"not": filter_json(tree.part)}
    if isinstance(tree, (And, Or)):
        return {_JOINS[type(tree)]: [filter_json(part) for part in tree.parts]}
    return _JSON[type(tree)](tree)


def _property_json(leaf: Property) -> dict[str, Any]:
    """A range has its two ends; any other comparison one value."""
    test: dict[str, Any] = {"name": leaf.name, "test": leaf.test}
    if leaf.value is not None and leaf.last is not None:
        test |= {"from": _value_json(leaf.value), "to": _value_json(leaf.last)}
    elif leaf.value is not None:
        test |= _value_json(leaf.value)
    return {"property": test}


def _value_json(value: Value) -> dict[str, Any]:
    """As typed, and the number and the range of time it can be read as."""
    number = {} if value.number is None else {"number": value.number}
    return {"value": value.text, **number, **_range_json(value.since, value.until)}


def _range_json(since: Moment | None, before: Moment | None) -> dict[str, str]:
    ends = {"since": since, "before": before}
    return {
        key: iso_time(end.day).replace(" ", "T") for key, end in ends.items() if end is not None
    }


def _text_json(leaf: Words | Phrase) -> dict[str, Any]:
    # Words in one field have its operator as their key: content: and code:.
    field = {"body": "content"}.get(leaf.field, leaf.field)
    return {field or ("phrase" if isinstance(leaf, Phrase) else "words"): leaf.text}


_JSON: dict[type, Callable[[Any], dict[str, Any]]] = {
    Tagged: lambda leaf: {"tag": leaf.tag},
    NameContains: lambda leaf: {leaf.where: leaf.text},
    LinksTo: lambda leaf: {"linkto": str(leaf)},
    LinkedBy: lambda leaf: {"linkedby": leaf.note},
    Property: _property_json,
    Dated: lambda leaf: {leaf.date: _range_json(leaf.since, leaf.until)},
    UnderHeading: lambda leaf: {"heading": leaf.heading},
    InLanguage: lambda leaf: {"lang": leaf.languages[0]},
    HasPart: lambda leaf: {"has": leaf.part},
    HasTask: lambda leaf: {_TASK_KEYS[leaf.state]: leaf.text},
    MatchesWords: lambda leaf: filter_json(leaf.query),
    Words: _text_json,
    Phrase: _text_json,
}
