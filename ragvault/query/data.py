"""The filter of a plan as data, for programs: one key a node, named as an operator is.

    {"all": […]}  {"any": […]}  {"not": {…}}        what joins the others
    {"tag": "recipe"}  {"heading": "method"}         an operator and its value
    {"created": {"since": "2024-03-01", "before": "2024-04-01"}}
    {"property": {"name": "rating", "test": ">", "value": "3", "number": 3.0}}
    {"words": "rye"}  {"phrase": "cold start"}       what must be there

Times are on the clock of whoever asked. What words.py says in a sentence is here for a script.
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
    Moment,
    Named,
    Property,
    Tagged,
    Task,
    Under,
    Value,
    Written,
)
from ragvault.query.dates import stamp
from ragvault.sought import AllOf, AnyOf, Not, Phrase, Sought

_TASKS = {"any": "task", "todo": "task-todo", "done": "task-done"}


def filters(tree: Filter | None) -> dict[str, Any]:
    """The filter as JSON has it. Empty when there is none."""
    if tree is None:
        return {}
    if isinstance(tree, Every):
        return {"all": [filters(part) for part in tree.parts]}
    if isinstance(tree, Either):
        return {"any": [filters(part) for part in tree.parts]}
    if isinstance(tree, Except):
        return {"not": filters(tree.part)}
    return _LEAVES[type(tree)](tree)


def _property(leaf: Property) -> dict[str, Any]:
    """A range has its two ends; any other comparison one value."""
    said: dict[str, Any] = {"name": leaf.name, "test": leaf.test}
    if leaf.value is not None and leaf.last is not None:
        said |= {"from": _value(leaf.value), "to": _value(leaf.last)}
    elif leaf.value is not None:
        said |= _value(leaf.value)
    return {"property": said}


def _value(value: Value) -> dict[str, Any]:
    """As typed, and the number and the stretch of time it can be read as."""
    number = {} if value.number is None else {"number": value.number}
    return {"value": value.text, **number, **_stretch(value.since, value.until)}


def _stretch(since: Moment | None, before: Moment | None) -> dict[str, str]:
    ends = {"since": since, "before": before}
    return {key: stamp(end.day).replace(" ", "T") for key, end in ends.items() if end is not None}


def _holds(leaf: Holds) -> dict[str, Any]:
    return _sought(leaf.sought)


def _sought(sought: Sought) -> dict[str, Any]:
    if isinstance(sought, Not):
        return {"not": _sought(sought.part)}
    if isinstance(sought, (AllOf, AnyOf)):
        joint = "all" if isinstance(sought, AllOf) else "any"
        return {joint: [_sought(part) for part in sought.parts]}
    # In one field: content: and code:.
    field = {"body": "content"}.get(sought.field, sought.field)
    return {field or ("phrase" if isinstance(sought, Phrase) else "words"): sought.text}


_LEAVES: dict[type, Callable[[Any], dict[str, Any]]] = {
    Tagged: lambda leaf: {"tag": leaf.tag},
    Named: lambda leaf: {leaf.where: leaf.text},
    LinksTo: lambda leaf: {"linkto": str(leaf)},
    LinkedBy: lambda leaf: {"linkedby": leaf.note},
    Property: _property,
    Dated: lambda leaf: {leaf.date: _stretch(leaf.since, leaf.until)},
    Under: lambda leaf: {"heading": leaf.heading},
    Written: lambda leaf: {"lang": leaf.languages[0]},
    Has: lambda leaf: {"has": leaf.part},
    Task: lambda leaf: {_TASKS[leaf.state]: leaf.text},
    Holds: _holds,
}
