"""Understand: text becomes a QueryPlan.

    lex -> parse        a tree of words, phrases, conditions           operators, properties, dates
    wanted              what is searched for and what is a must        musts
    classify            the kind of question, and which leg it favours
    words               all of it restated in a sentence

So `bread tag:recipe -rye` keeps the passages of notes with that tag that do not hold rye, and
orders them by bread. Nothing here looks at a note: expansion, which needs the vault's vocabulary,
is added to a plan by expand.py.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from ragvault.config.settings import Query
from ragvault.plan import Every, QueryPlan, leaves
from ragvault.query.classify import classify, is_literal, weights
from ragvault.query.mistakes import wrong
from ragvault.query.musts import has_letters, has_words, one
from ragvault.query.parse import parse
from ragvault.query.wanted import Wanted
from ragvault.query.words import words

MAX_CONDITIONS = 100  # SQLite takes a limited number of values in one statement


def understand(
    query: str, settings: Query, *, now: datetime, hypothesis: str | None = None
) -> QueryPlan:
    """The plan for a query. Raises UsageError, and nothing else, for one that cannot be meant.

    `now` is the clock, in the zone of whoever asks (the machine's where it names none). A
    `hypothesis` is embedded as it is, in place of the query.
    """
    if hypothesis is not None and not hypothesis.strip():
        raise wrong("the hypothesis is empty", "give the text of a likely answer, or leave it out")
    if hypothesis is not None and not settings.hypothesis:
        raise wrong("query.hypothesis is off", "leave the hypothesis out, or set query.hypothesis")
    tree, warnings = parse(query, now)
    wanted = Wanted(tree, phrases_are_musts=settings.phrases == "must")
    _check(wanted, hypothesis)
    plan = _plan(query, wanted, settings, hypothesis or "")
    said = (*warnings, *wanted.warnings, *_about(plan))
    return replace(plan, parse=words(plan), warnings=tuple(dict.fromkeys(said)))


def _plan(query: str, wanted: Wanted, settings: Query, hypothesis: str) -> QueryPlan:
    raw, quoted = " ".join(wanted.raw), bool(wanted.phrases)
    kind = classify(raw, quoted=quoted, camel_case=settings.camel_case)
    exact = quoted or is_literal(raw, settings.camel_case)
    return QueryPlan(
        query,
        kind,
        text=" ".join(" ".join(wanted.text).split()),
        sought=wanted.sought(),
        filter=one(wanted.filters, Every) if wanted.filters else None,
        phrases=tuple(dict.fromkeys(wanted.phrases)),
        vaults=tuple(dict.fromkeys(wanted.vaults)),
        weights=weights(kind if settings.adaptive_weights else "plain", settings.weights),
        hypothesis=hypothesis,
        expandable=has_letters(raw) and not exact and not hypothesis,
        listing=not wanted.text and not hypothesis,
    )


def _check(wanted: Wanted, hypothesis: str | None) -> None:
    if not (wanted.text or wanted.filters or wanted.vaults) and hypothesis is None:
        raise wrong(
            "there is nothing to search for",
            'name some words or a condition: ragvault search "bread tag:recipe"',
        )
    if sum(1 for tree in wanted.filters for _ in leaves(tree)) > MAX_CONDITIONS:
        raise wrong(
            f"the query has more than {MAX_CONDITIONS} conditions",
            "leave some out; text that is not meant as a query can be put in quotes",
        )


def _about(plan: QueryPlan) -> list[str]:
    if plan.text and not has_words(plan.text):
        return ["the query has no word in it: only its meaning can be searched"]
    return []
