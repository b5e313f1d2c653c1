"""Words: a plan restated in a sentence.

    passages tagged #recipe (or below it), modified since 2024-03-01, about: sourdough; not: rye

Whoever wonders why something was found or not can read here what was understood. What is asked of
notes alone is said of notes; one condition on passages, and passages are what is kept or left out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ragvault.plan import (
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
    Named,
    Property,
    QueryPlan,
    Tagged,
    Task,
    Under,
    Value,
    Written,
    of_notes,
)
from ragvault.query.dates import span, stamp
from ragvault.sought import AllOf, AnyOf, Not, Phrase, Sought, Words

_PARTS = {"code": "code", "table": "a table", "task": "a task", "image": "an image"}
_PLACES = {"path": "the path", "file": "the file name", "title": "the title", "alias": "an alias"}
_PLACE = {"body": " in their text"}
_TASKS = {"any": "a task", "todo": "an open task", "done": "a finished task"}
_SIGNS = {"<": "less than", "<=": "at most", ">": "more than", ">=": "at least", "=": "", "..": ""}


def words(plan: QueryPlan) -> str:
    """The whole plan in one sentence."""
    musts, unwanted = _sorted(plan.filter)
    parts = [clause(must) for must in musts]
    if plan.vaults:
        parts.append(f"in the vault {' or '.join(plan.vaults)}")
    if plan.text:
        parts.append(f"about: {_about(plan)}")
    if plan.expansions:
        parts.append(f"or near it: {' '.join(each.term for each in plan.expansions)}")
    if plan.hypothesis:
        parts.append(f"like this text: {plan.hypothesis}")
    if plan.listing:
        parts.append("newest first")
    subject = "notes" if not unwanted and all(map(of_notes, musts)) else "passages"
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


def _about(plan: QueryPlan) -> str:
    """What is wanted, as typed; beside an OR, what belongs together stands in parentheses."""
    wanted = plan.sought.parts[0] if isinstance(plan.sought, AllOf) else plan.sought
    if plan.expansions and isinstance(wanted, AnyOf):
        wanted = wanted.parts[0]  # the terms that were added stand behind it
    if not isinstance(wanted, AnyOf):
        return plan.text
    if any(map(_is_alternative, wanted.parts)):
        return _choice(wanted)
    choices = [each for each in wanted.parts if isinstance(each, AnyOf)]
    return ", ".join(map(_choice, wanted.parts)) if choices else plan.text


def _is_alternative(sought: Sought) -> bool:
    """Only beside an OR do words without an operator have to be there together."""
    return isinstance(sought, AllOf) or (
        isinstance(sought, Words) and sought.every and not sought.field
    )


def _choice(sought: Sought) -> str:
    if isinstance(sought, AnyOf):
        return " or ".join(map(_alternative, sought.parts))
    return _sought(sought)


def _alternative(sought: Sought) -> str:
    together = isinstance(sought, Words) and " " in sought.text
    return f"({_sought(sought)})" if together else _sought(sought)


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
    return f"where {leaf.name} is {_compared(leaf, leaf.value, leaf.last or leaf.value)}"


def _compared(leaf: Property, value: Value, last: Value) -> str:
    """As a number or a text and as a date, where it can be read as both."""
    typed = f"from {value.text} to {last.text}" if leaf.test == ".." else value.text
    typed = f"{_SIGNS[leaf.test]} {typed}".strip()
    if value.since is None or last.until is None:
        return typed
    date = _compared_date(leaf.test, value.since.day, last.until.day)
    if leaf.test != "=" and value.number is None:
        return date
    return typed if date == f"on {typed}" else f"{typed} or {date}"


def _compared_date(test: Comparison, since: float, until: float) -> str:
    """Before a stretch is before its first moment, after it from its last on."""
    if test in ("=", ".."):
        return span(since, until)
    bound = stamp(since if test in ("<", ">=") else until)
    return f"before {bound}" if test in ("<", "<=") else f"from {bound} on"


def _dated(leaf: Dated) -> str:
    verb = {"date": "dated"}.get(leaf.date, leaf.date)
    if leaf.since is None or leaf.until is None:
        bound, word = (leaf.since, "since") if leaf.since else (leaf.until, "before")
        return f"{verb} {word} {stamp(bound.day)}" if bound else f"{verb} at any time"
    return f"{verb} {span(leaf.since.day, leaf.until.day)}"


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
    LinksTo: lambda leaf: f"linking to “{leaf}”",
    LinkedBy: lambda leaf: f"linked to by “{leaf.note}”",
    Property: _property,
    Dated: _dated,
    Under: lambda leaf: f"under a heading with “{leaf.heading}”",
    Written: lambda leaf: f"with code in {leaf.languages[0]}",
    Has: lambda leaf: f"with {_PARTS[leaf.part]}",
    Task: _task,
    Holds: _holds,
}
