"""Which kind of question it is, and which leg it raises."""

from __future__ import annotations

from datetime import datetime

import pytest

from ragvault.config import profiles
from ragvault.config.settings import Query
from ragvault.query.understand import classify, type_weights, understand

NOW = datetime(2024, 3, 13)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("getUserById function", "factual"),  # the seed's own example
        ("How do I configure authentication?", "exploratory"),  # the seed's own example
        ("parseJSON", "factual"),
        ("HTTPResponseError", "factual"),
        ("useState hook", "factual"),
        ("parse_json_data", "factual"),
        ("MAX_RETRIES", "factual"),
        ("the `walk` function", "factual"),
        ("upgrade to v1.2.3", "factual"),
        ("python 3.11", "factual"),
        ("section about locks", "navigational"),
        ("installation guide", "navigational"),
        ("see [[Home]]", "navigational"),
        ("what is a monad", "exploratory"),
        ("why", "exploratory"),
        ("is it true?", "exploratory"),
        ("sourdough starter", "plain"),
        ("", "plain"),
        ("🎉", "plain"),
    ],
)
def test_the_signals_of_each_kind(text, kind):
    assert classify(text) == kind


@pytest.mark.parametrize(
    "text",
    [
        *("APIs", "iPhone battery", "JavaScript", "GitHub", "macOS", "iOS", "YouTube", "LaTeX"),
        *("PhD", "eBay", "McDonald", "OpenAI", "URLs and IDs"),
    ],
)
def test_names_people_write_with_humps_are_no_identifiers(text):
    """The seed's pattern takes most of these for camelCase, and so does the loose setting."""
    assert classify(text) == "plain"


@pytest.mark.parametrize("text", ["APIs", "iPhone battery", "JavaScript"])
def test_the_pattern_of_the_seed_is_a_setting(text):
    assert classify(text, camel_case="loose") == "factual"
    assert understand(text, Query(camel_case="loose"), now=NOW).type == "factual"


@pytest.mark.parametrize(
    ("query", "kind"),
    [
        ("where is the guide to getUserById?", "factual"),
        ("where is the guide to users?", "navigational"),
        ("where are the users?", "exploratory"),
        ('why "cold start"', "factual"),
        ('why -"cold start"', "exploratory"),
        ("title:getUserById users", "plain"),
        ("tag:what users", "plain"),
    ],
)
def test_the_first_match_wins_and_conditions_have_no_say(query, kind):
    assert understand(query, profiles.config("default").query, now=NOW).type == kind


@pytest.mark.parametrize(
    ("kind", "leg", "factor"),
    [("factual", "keyword", 1.5), ("navigational", "graph", 1.5), ("exploratory", "vector", 1.3)],
)
def test_each_kind_raises_one_leg(kind, leg, factor):
    found = type_weights(kind)

    even = dict.fromkeys(("name", "vector", "keyword", "code", "graph"), 1.0)
    assert found == even | {leg: factor}


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("What is a deductible?", "definitions"),
        ("what are quorum rules", "definitions"),
        ("what does net 30 mean", "definitions"),
        ("definition of force majeure", "definitions"),
        ("What is the refund policy?", ""),
        ("What is the current refund policy?", "current"),
        ("latest travel rules", "current"),
        ("how did we originally define churn", "historical"),
        ("history of the travel policy", "historical"),
        ("refund policy", ""),
        ("tag:current refund policy", ""),
    ],
)
def test_words_of_a_query_show_its_use_case(query, found):
    assert understand(query, Query(adaptive_weights=True), now=NOW).use_case == found
    assert understand(query, Query(adaptive_weights=False), now=NOW).use_case == ""


def test_weights_change_only_where_the_setting_allows_it():
    even = understand("why?", Query(adaptive_weights=False), now=NOW)
    raised = understand("why?", Query(adaptive_weights=True), now=NOW)

    assert set(even.weights.values()) == {1.0}
    assert raised.weights["vector"] == 1.3
    assert even.type == raised.type == "exploratory"
