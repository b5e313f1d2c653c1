"""Restate: a plan as a sentence for people, and its filter as JSON for programs.

    passages tagged #recipe (or below it), modified since 2024-03-01, about: sourdough; not: rye

The sentence shows how a query was understood. It speaks of notes if every condition is about notes,
otherwise of passages. In the JSON, each node has one key, named like an operator:

    {"all": […]}  {"any": […]}  {"not": {…}}         joins of other nodes
    {"tag": "recipe"}  {"heading": "method"}         an operator and its value
    {"created": {"since": "2024-03-01", "before": "2024-04-01"}}
    {"property": {"name": "rating", "test": ">", "value": "3", "number": 3.0}}
    {"words": "rye"}  {"phrase": "cold start"}       text that is required

Times in both are in the caller's local time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ragvault.plan import (
    AllOf,
    AnyOf,
    Comparison,
    Dated,
    Either,
    Every,
    Except,
    Filter,
    Has,
    Holds,
    LinkedBy,
    LinksTo,
    Moment,
    Named,
    Not,
    Phrase,
    Property,
    QueryPlan,
    Sought,
    Tagged,
    Task,
    Under,
    Value,
    Words,
    Written,
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
    parts = [_clause(part) for part in required]
    if plan.vaults:
        parts.append(f"in the vault {' or '.join(plan.vaults)}")
    if plan.text:
        parts.append(f"about: {_about(plan)}")
    if plan.expansions:
        parts.append(f"or similar words: {' '.join(each.term for each in plan.expansions)}")
    if plan.hypothesis:
        parts.append(f"like this text: {plan.hypothesis}")
    if plan.listing:
        parts.append("newest first")
    subject = "notes" if not excluded and all(map(of_notes, required)) else "passages"
    without = f"; not: {', '.join(map(_text, excluded))}" if excluded else ""
    return f"{subject} {', '.join(parts)}{without}"


def _required_and_excluded(tree: Filter | None) -> tuple[list[Filter], list[Sought]]:
    """The conditions, and the words and phrases that are excluded."""
    parts = tree.parts if isinstance(tree, Every) else () if tree is None else (tree,)
    required: list[Filter] = []
    excluded: list[Sought] = []
    for part in parts:
        if isinstance(part, Except) and isinstance(part.part, Holds):
            excluded.append(part.part.sought)
        else:
            required.append(part)
    return required, excluded


def _about(plan: QueryPlan) -> str:
    """What is searched for, as typed; next to OR, words that belong together in parentheses."""
    searched = plan.sought.parts[0] if isinstance(plan.sought, AllOf) else plan.sought
    if plan.expansions and isinstance(searched, AnyOf):
        searched = searched.parts[0]  # the added terms follow it
    if not isinstance(searched, AnyOf):
        return plan.text
    if any(map(_is_alternative, searched.parts)):
        return _choice(searched)
    choices = [each for each in searched.parts if isinstance(each, AnyOf)]
    return ", ".join(map(_choice, searched.parts)) if choices else plan.text


def _is_alternative(sought: Sought) -> bool:
    """Whether this stands next to OR: only there must words without an operator occur together."""
    return isinstance(sought, AllOf) or (
        isinstance(sought, Words) and sought.every and not sought.field
    )


def _choice(sought: Sought) -> str:
    if isinstance(sought, AnyOf):
        return " or ".join(map(_alternative, sought.parts))
    return _text(sought)


def _alternative(sought: Sought) -> str:
    together = isinstance(sought, Words) and " " in sought.text
    return f"({_text(sought)})" if together else _text(sought)


def _clause(tree: Filter) -> str:
    """One part of a filter, as it would follow "notes" or "passages"."""
    if isinstance(tree, Every):
        return " and ".join(_nested(part) for part in tree.parts)
    if isinstance(tree, Either):
        return " or ".join(_nested(part) for part in tree.parts)
    if isinstance(tree, Except):
        return f"not {_nested(tree.part)}"
    return _CLAUSES[type(tree)](tree)


def _nested(tree: Filter) -> str:
    clause = _clause(tree)
    return f"({clause})" if isinstance(tree, (Every, Either)) else clause


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


def _task_clause(leaf: Task) -> str:
    return f"with {_TASKS[leaf.state]}" + (f" saying “{leaf.text}”" if leaf.text else "")


def _holds_clause(leaf: Holds) -> str:
    verb = "with code containing" if leaf.index == "code" else "containing"
    return f"{verb} {_text(leaf.sought)}"


def _text(sought: Sought) -> str:
    if isinstance(sought, Words):
        return sought.text + _PLACE.get(sought.field, "")
    if isinstance(sought, Phrase):
        return f"“{sought.text}”" + _PLACE.get(sought.field, "")
    if isinstance(sought, Not):
        return f"not {_text(sought.part)}"
    joint = " and " if isinstance(sought, AllOf) else " or "
    return f"({joint.join(map(_text, sought.parts))})"


_CLAUSES: dict[type, Callable[[Any], str]] = {
    Tagged: lambda leaf: f"tagged #{leaf.tag} (or below it)",
    Named: lambda leaf: f"with “{leaf.text}” in {_PLACES[leaf.where]}",
    LinksTo: lambda leaf: f"linking to “{leaf}”",
    LinkedBy: lambda leaf: f"linked to by “{leaf.note}”",
    Property: _property_clause,
    Dated: _dated_clause,
    Under: lambda leaf: f"under a heading with “{leaf.heading}”",
    Written: lambda leaf: f"with code in {leaf.languages[0]}",
    Has: lambda leaf: f"with {_PARTS[leaf.part]}",
    Task: _task_clause,
    Holds: _holds_clause,
}


# --- The filter as JSON ---

_TASK_KEYS = {"any": "task", "todo": "task-todo", "done": "task-done"}


def filter_json(tree: Filter | None) -> dict[str, Any]:
    """The filter as JSON; empty if there is none."""
    if tree is None:
        return {}
    if isinstance(tree, Every):
        return {"all": [filter_json(part) for part in tree.parts]}
    if isinstance(tree, Either):
        return {"any": [filter_json(part) for part in tree.parts]}
    if isinstance(tree, Except):
        return {"not": filter_json(tree.part)}
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


def _sought_json(sought: Sought) -> dict[str, Any]:
    if isinstance(sought, Not):
        return {"not": _sought_json(sought.part)}
    if isinstance(sought, (AllOf, AnyOf)):
        joint = "all" if isinstance(sought, AllOf) else "any"
        return {joint: [_sought_json(part) for part in sought.parts]}
    # Words in one field have its operator as their key: content: and code:.
    field = {"body": "content"}.get(sought.field, sought.field)
    return {field or ("phrase" if isinstance(sought, Phrase) else "words"): sought.text}


_JSON: dict[type, Callable[[Any], dict[str, Any]]] = {
    Tagged: lambda leaf: {"tag": leaf.tag},
    Named: lambda leaf: {leaf.where: leaf.text},
    LinksTo: lambda leaf: {"linkto": str(leaf)},
    LinkedBy: lambda leaf: {"linkedby": leaf.note},
    Property: _property_json,
    Dated: lambda leaf: {leaf.date: _range_json(leaf.since, leaf.until)},
    Under: lambda leaf: {"heading": leaf.heading},
    Written: lambda leaf: {"lang": leaf.languages[0]},
    Has: lambda leaf: {"has": leaf.part},
    Task: lambda leaf: {_TASK_KEYS[leaf.state]: leaf.text},
    Holds: lambda leaf: _sought_json(leaf.sought),
}
