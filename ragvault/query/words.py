"""Words: a plan restated in a sentence, and its filter as data.

    notes tagged #recipe (or below it), modified since 2024-03-01, about: sourdough; not: rye

Whoever wonders why something was found or not can read here what was understood.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ragvault.plan import (
    Dated,
    Either,
    Every,
    Except,
    Filter,
    Has,
    Holds,
    LinkedBy,
    LinksTo,
    Named,
    Property,
    QueryPlan,
    Tagged,
    Task,
    Under,
    Written,
    of_notes,
)
from ragvault.query.dates import days_of, stamp
from ragvault.sought import AllOf, Not, Phrase, Sought, Words

_PARTS = {"code": "code", "table": "a table", "task": "a task", "image": "an image"}
_PLACES = {"path": "the path", "file": "the file name", "title": "the title", "alias": "an alias"}
_PLACE = {"body": " in their text"}
_TASKS = {"any": "a task", "todo": "an open task", "done": "a finished task"}
_SIGNS = {
    "=": "is",
    "<": "is less than",
    "<=": "is at most",
    ">": "is more than",
    ">=": "is at least",
}


def words(plan: QueryPlan) -> str:
    """The whole plan in one sentence."""
    musts, unwanted = _sorted(plan.filter)
    parts = [clause(must) for must in musts]
    if plan.vaults:
        parts.append(f"in the vault {' or '.join(plan.vaults)}")
    if plan.text:
        parts.append(f"about: {plan.text}")
    if plan.expansions:
        parts.append(f"or near it: {' '.join(each.term for each in plan.expansions)}")
    if plan.hypothesis:
        parts.append(f"like this text: {plan.hypothesis}")
    if plan.listing:
        parts.append("newest first")
    subject = "notes" if all(map(of_notes, musts)) else "passages"
    not_these = f"; not: {', '.join(map(_sought, unwanted))}" if unwanted else ""
    return f"{subject} {', '.join(parts)}{not_these}"


def _sorted(tree: Filter | None) -> tuple[list[Filter], list[Sought]]:
    """What must be, and the words and phrases that must not."""
    parts = tree.parts if isinstance(tree, Every) else () if tree is None else (tree,)
    musts: list[Filter] = []
    unwanted: list[Sought] = []
    for part in parts:
        if isinstance(part, Except) and isinstance(part.part, Holds):
            unwanted.append(part.part.sought)
        else:
            musts.append(part)
    return musts, unwanted


def clause(tree: Filter) -> str:
    """One part of a filter, as it would follow "notes" or "passages"."""
    if isinstance(tree, Every):
        return " and ".join(_nested(part) for part in tree.parts)
    if isinstance(tree, Either):
        return " or ".join(_nested(part) for part in tree.parts)
    if isinstance(tree, Except):
        return f"not {_nested(tree.part)}"
    return _CLAUSES[type(tree)](tree)


def _nested(tree: Filter) -> str:
    said = clause(tree)
    return f"({said})" if isinstance(tree, (Every, Either)) else said


def _property(leaf: Property) -> str:
    if leaf.test == "there":
        return f"with the property {leaf.name}"
    if leaf.test == "empty":
        return f"where {leaf.name} is empty"
    assert leaf.value is not None
    if leaf.test == "..":
        return f"where {leaf.name} is from {leaf.value.text} to {leaf.last and leaf.last.text}"
    return f"where {leaf.name} {_SIGNS[leaf.test]} {leaf.value.text}"


def _dated(leaf: Dated) -> str:
    verb = {"date": "dated"}.get(leaf.date, leaf.date)
    if leaf.since is None or leaf.until is None:
        bound, word = (leaf.since, "since") if leaf.since else (leaf.until, "before")
        return f"{verb} {word} {stamp(bound.day)}" if bound else f"{verb} at any time"
    first, last = days_of(leaf.since.day, leaf.until.day)
    return f"{verb} on {first}" if first == last else f"{verb} from {first} to {last}"


def _task(leaf: Task) -> str:
    return f"with {_TASKS[leaf.state]}" + (f" saying “{leaf.text}”" if leaf.text else "")


def _holds(leaf: Holds) -> str:
    place = "with code holding" if leaf.index == "code" else "holding"
    return f"{place} {_sought(leaf.sought)}"


def _sought(sought: Sought) -> str:
    if isinstance(sought, Words):
        return sought.text + _PLACE.get(sought.field, "")
    if isinstance(sought, Phrase):
        return f"“{sought.text}”" + _PLACE.get(sought.field, "")
    if isinstance(sought, Not):
        return f"not {_sought(sought.part)}"
    joint = " and " if isinstance(sought, AllOf) else " or "
    return f"({joint.join(map(_sought, sought.parts))})"


_CLAUSES: dict[type, Callable[[Any], str]] = {
    Tagged: lambda leaf: f"tagged #{leaf.tag} (or below it)",
    Named: lambda leaf: f"with “{leaf.text}” in {_PLACES[leaf.where]}",
    LinksTo: lambda leaf: f"linking to “{leaf.note}”",
    LinkedBy: lambda leaf: f"linked to by “{leaf.note}”",
    Property: _property,
    Dated: _dated,
    Under: lambda leaf: f"under a heading with “{leaf.heading}”",
    Written: lambda leaf: f"with code in {leaf.languages[0]}",
    Has: lambda leaf: f"with {_PARTS[leaf.part]}",
    Task: _task,
    Holds: _holds,
}


# --- The filter as data, for --json ---


def filters(tree: Filter | None) -> dict[str, Any]:
    """The filter as JSON has it: one key a node. Empty when there is none."""
    if tree is None:
        return {}
    if isinstance(tree, Every):
        return {"all": [filters(part) for part in tree.parts]}
    if isinstance(tree, Either):
        return {"any": [filters(part) for part in tree.parts]}
    if isinstance(tree, Except):
        return {"not": filters(tree.part)}
    return _DATA[type(tree)](tree)


def _property_data(leaf: Property) -> dict[str, Any]:
    given = {"value": leaf.value, "last": leaf.last}
    values = {key: value.text for key, value in given.items() if value is not None}
    return {"property": leaf.name, "test": leaf.test, **values}


def _dated_data(leaf: Dated) -> dict[str, Any]:
    ends = {"since": leaf.since, "before": leaf.until}
    return {leaf.date: {key: stamp(end.day) for key, end in ends.items() if end is not None}}


_DATA: dict[type, Callable[[Any], dict[str, Any]]] = {
    Tagged: lambda leaf: {"tag": leaf.tag},
    Named: lambda leaf: {leaf.where: leaf.text},
    LinksTo: lambda leaf: {"linkto": leaf.note},
    LinkedBy: lambda leaf: {"linkedby": leaf.note},
    Property: _property_data,
    Dated: _dated_data,
    Under: lambda leaf: {"heading": leaf.heading},
    Written: lambda leaf: {"lang": leaf.languages[0]},
    Has: lambda leaf: {"has": leaf.part},
    Task: lambda leaf: {"task": leaf.text, "state": leaf.state},
    Holds: lambda leaf: {"code" if leaf.index == "code" else "text": _sought(leaf.sought)},
}
