"""The parse restated in words, and as data."""

from __future__ import annotations

import json
from datetime import datetime, timezone
from types import SimpleNamespace

import pytest

from ragvault.config import profiles
from ragvault.config.settings import Expand
from ragvault.query.restate import filter_json, plan_sentence
from ragvault.query.understand import add_near_terms, understand

NOW = datetime(2024, 3, 13, 15, 0, tzinfo=timezone.utc)


def plan(query, **given):
    return understand(query, profiles.config("default").query, now=NOW, **given)


@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        (
            "sourdough tag:recipe since:2024-03-01 -rye",
            "sourdough, in passages tagged #recipe, dated since 2024-03-01, without rye",
        ),
        ("sourdough starter", "sourdough starter"),
        ("tag:inbox", "notes tagged #inbox, newest first"),
        ("-tag:inbox", "notes not tagged #inbox, newest first"),
        ("-rye", "passages without rye, newest first"),
        ('"cold start"', "passages containing “cold start”"),
        ("x lang:py", "x, in passages with code in python"),
        ("x (tag:a OR [b])", "x, in notes tagged #a or with the property b"),
        ("x has:image", "x, in passages with an image"),
        ('task-todo:""', "passages with an open task, newest first"),
        ("task-done:call", "passages with a finished task containing “call”"),
        ("code:walk", "passages with code containing walk"),
        ("content:flour", "passages containing flour in their text"),
        ("heading:method", "passages under a heading with “method”, newest first"),
        ("path:a -title:b", "notes with “a” in the path, not with “b” in the title, newest first"),
        ("link:Home", "notes linking to “Home”, newest first"),
        ("link:Home#Part", "notes linking to “Home#Part”, newest first"),
        ("linkedby:Home", "notes linked from “Home”, newest first"),
        ("[a] [b:null]", "notes with the property a, where b is empty, newest first"),
        ("[a:>5] [b:x]", "notes where a is more than 5, where b is x, newest first"),
        ("[a:1..5]", "notes where a is from 1 to 5, newest first"),
        ("created:2024-03-01", "notes created on 2024-03-01, newest first"),
        ('modified:"last week"', "notes modified from 2024-03-04 to 2024-03-10, newest first"),
        (
            "created:2024-03-01T09:30",
            "notes created from 2024-03-01 09:30 until 2024-03-01 09:31, newest first",
        ),
        (
            'modified:"2 hours ago"',
            "notes modified from 2024-03-13 13:00 until 2024-03-13 14:00, newest first",
        ),
        (
            "created:2024-03-01T09:30:05",
            "notes created from 2024-03-01 09:30:05 until 2024-03-01 09:30:06, newest first",
        ),
        ("since:2024-03-01T09:30", "notes dated since 2024-03-01 09:30, newest first"),
        ('[due:<"last week"]', "notes where due is before 2024-03-04, newest first"),
        ("[due:<=yesterday]", "notes where due is before 2024-03-13, newest first"),
        ("[due:>=2024-03]", "notes where due is from 2024-03-01 on, newest first"),
        ("[due:2024-03-01]", "notes where due is 2024-03-01, newest first"),
        (
            "[due:march]",
            "notes where due is march or from 2024-03-01 to 2024-03-31, newest first",
        ),
        ("[a:<2024]", "notes where a is less than 2024 or before 2024-01-01, newest first"),
        (
            "[due:2024-01..2024-03]",
            "notes where due is from 2024-01-01 to 2024-03-31, newest first",
        ),
        ("new york paris", "new york paris"),
        ("(new york) OR paris", "(new york) or paris"),
        ("best pizza (new york OR paris)", "best pizza, (new york) or paris"),
        ('x "cold start"', "x cold start, in passages containing “cold start”"),
        ("x (a OR b) -rye", "x, a or b, in passages without rye"),
        ("date:<2024", "notes dated before 2024-01-01, newest first"),
        ("bread in:notes", "bread, in the vault notes"),
        ("bread tag:a in:notes", "bread, in notes tagged #a, in the vault notes"),
        ("in:notes", "notes in the vault notes, newest first"),
        ('"cold start" -rye', "passages containing “cold start”, without rye"),
    ],
)
def test_a_query_is_restated_in_a_sentence(query, sentence):
    assert plan(query).parse == sentence


def test_terms_that_were_added_are_said_beside_what_was_typed():
    corpus = SimpleNamespace(near_terms=lambda *_, **__: ([("spelt", 0.9)], 1.0))
    for query, about in (("rye", "rye"), ("rye OR (old bread)", "rye or (old bread)")):
        found = add_near_terms(plan(query), Expand(method="similarity"), corpus)
        assert found.parse == plan_sentence(found) == f"{about} (or similar words: spelt)"


def test_a_hypothesis_is_part_of_the_sentence():
    assert plan("tag:a", hypothesis="like so").parse.endswith("like this text: like so")


@pytest.mark.parametrize(
    ("query", "data"),
    [
        ("bread", {}),
        ("tag:a", {"tag": "a"}),
        ("tag:a -has:code", {"all": [{"tag": "a"}, {"not": {"has": "code"}}]}),
        ("path:a OR file:b", {"any": [{"path": "a"}, {"file": "b"}]}),
        (
            "[a:1..5]",
            {
                "property": {
                    "name": "a",
                    "test": "..",
                    "from": {"value": "1", "number": 1.0},
                    "to": {"value": "5", "number": 5.0},
                }
            },
        ),
        ("[a]", {"property": {"name": "a", "test": "there"}}),
        ("[a:x]", {"property": {"name": "a", "test": "=", "value": "x"}}),
        (
            '[due:<"last week"]',
            {
                "property": {
                    "name": "due",
                    "test": "<",
                    "value": "last week",
                    "since": "2024-03-04",
                    "before": "2024-03-11",
                }
            },
        ),
        ("created:2024-03", {"created": {"since": "2024-03-01", "before": "2024-04-01"}}),
        ("since:2024", {"date": {"since": "2024-01-01"}}),
        ("before:2024-03-01T09:30", {"date": {"before": "2024-03-01T09:30"}}),
        ("link:A", {"linkto": "A"}),
        ("link:A#B", {"linkto": "A#B"}),
        ("linkedby:A", {"linkedby": "A"}),
        ("heading:A lang:py", {"all": [{"heading": "A"}, {"lang": "python"}]}),
        ("task-todo:x", {"task-todo": "x"}),
        ("-rye", {"not": {"words": "rye"}}),
        ('"cold start"', {"phrase": "cold start"}),
        ("content:flour", {"content": "flour"}),
        ("-(rye OR old bread)", {"not": {"any": [{"words": "rye"}, {"words": "old bread"}]}}),
        ("code:walk", {"code": "walk"}),
    ],
)
def test_a_filter_is_data_too(query, data):
    assert filter_json(plan(query).filter) == data
    assert json.loads(json.dumps(data)) == data


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("tag:a tag:b", "tag:a AND tag:b"),
        ("tag:(a OR b)", "tag:a OR tag:b"),
        ("since:2024", "date:>=2024"),
        ("before:2024-03-13", "date:<today"),
        ("link:X", 'linkto:"X"'),
        ("[a:x OR y]", "[a:x] OR [a:y]"),
        ("-(-tag:a)", "-(-(tag:a))"),
    ],
)
def test_what_means_the_same_is_said_the_same(one, other):
    assert plan(one).parse == plan(other).parse
    assert plan(one).filter == plan(other).filter


def test_what_means_something_else_is_said_otherwise():
    queries = ["tag:a tag:b", "tag:a OR tag:b", "tag:a -tag:b", "-tag:a tag:b", "-(tag:a tag:b)"]
    queries += ["-(tag:a OR tag:b)", "path:a", "file:a", "[a]", "[a:b]", "since:2024", "date:2024"]

    assert len({plan(query).parse for query in queries}) == len(queries)
