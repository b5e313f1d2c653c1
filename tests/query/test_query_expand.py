"""When terms of the vocabulary are added to a query, and how much they weigh."""

from __future__ import annotations

from datetime import datetime

import pytest

from ragvault.config import profiles
from ragvault.config.settings import Expand, Query
from ragvault.plan import And, Not, Or, Words
from ragvault.query.understand import add_near_terms, may_expand, understand

NOW = datetime(2024, 3, 13)
SEED = Expand(method="similarity")  # top 3 at cosine >= 0.5
# The seed's own example, with a word of the query and one too far away.
NEAR = [
    *(("query", 0.62), ("indexing", 0.68), ("performance", 0.58), ("storage", 0.55)),
    *(("database", 0.9), ("bread", 0.49)),
]


def plan(query):
    return understand(query, profiles.config("default").query, now=NOW)


class Vocabulary:
    """A corpus with these terms, of which a pair usually has a cosine of 0.6."""

    def __init__(self, near=NEAR):
        self.near = near

    def near_terms(self, text, count, *, percentile, exclude):
        terms = [each for each in self.near if each[0] not in exclude]
        return sorted(terms, key=lambda each: -each[1])[:count], 0.6


def expanded(query, settings=SEED, near=NEAR):
    return add_near_terms(plan(query), settings, Vocabulary(near))


def test_the_seeds_example_adds_the_three_nearest_terms():
    found = expanded("database optimization")

    assert [each.term for each in found.expansions] == ["indexing", "query", "performance"]
    # The seed's expanded query, letter for letter.
    assert found.embed == "database optimization indexing query performance"


@pytest.mark.parametrize(("method", "weight"), [("similarity", 1.0), ("percentile", 0.5)])
def test_terms_by_percentile_weigh_less_than_the_querys_own_words(method, weight):
    found = expanded("database optimization", Expand(method=method))

    assert isinstance(found.keyword_query, Or)
    own, *more = found.keyword_query.parts
    assert own == Words("database optimization")
    assert {part.weight for part in more} == {weight}
    assert (found.embed == found.text) == (method == "percentile")


def test_what_must_not_be_there_stays_a_must():
    found = expanded("database optimization -storage")

    assert isinstance(found.keyword_query, And)
    assert found.keyword_query.parts[1:] == (Not(Words("storage", every=True)),)
    assert isinstance(found.keyword_query.parts[0], Or)


def test_by_percentile_near_is_what_the_vocabulary_says():
    found = expanded("optimization", Expand(method="percentile"))

    assert [each.term for each in found.expansions] == ["database", "indexing", "query"]


@pytest.mark.parametrize(
    "query",
    ['"database optimization"', "getUserById", "max_retries", "`walk`", "v1.2.3", "tag:x", "🎉"],
)
def test_phrases_identifiers_and_listings_are_left_as_they_are(query):
    assert not may_expand(plan(query), SEED)
    assert expanded(query) == plan(query)


@pytest.mark.parametrize("camel_case", ["identifier", "loose"])
@pytest.mark.parametrize(
    "name", ["PIO-1384", "C++", "C#", "@scope/pkg", "Node.js", "v1.2.3", "walk()", "std::string"]
)
def test_names_with_signs_in_them_are_expanded_under_no_setting(name, camel_case):
    found = understand(f"why is {name} slow", Query(camel_case=camel_case), now=NOW)

    assert not may_expand(found, SEED)


def test_what_a_setting_takes_for_an_identifier_is_not_expanded_under_it():
    query = "iPhone battery APIs"

    assert not may_expand(understand(query, Query(camel_case="loose"), now=NOW), SEED)
    assert may_expand(understand(query, Query(camel_case="identifier"), now=NOW), SEED)


@pytest.mark.parametrize(
    "query",
    ["bread, e.g. rye.", "U.S. flour and/or salt", "issue #5 of 80%", "a well-known 5-a-day"],
)
def test_signs_of_ordinary_text_make_no_identifier(query):
    assert may_expand(plan(query), SEED)


def test_a_hypothesis_is_never_expanded():
    given_text = understand(
        "database", profiles.config("default").query, now=NOW, hypothesis="indexes are fast"
    )

    assert add_near_terms(given_text, SEED, Vocabulary()) == given_text


def test_expansion_is_off_unless_asked_for():
    assert profiles.config("default").query.expand.method == "off"
    assert expanded("database optimization", Expand()) == plan("database optimization")


def test_nothing_near_changes_nothing():
    assert expanded("database", near=[("bread", 0.2)]) == plan("database")
