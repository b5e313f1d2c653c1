"""Expand: correct what is misspelt, and add terms of the vault that are near to the query.

A word that no note has is looked for as the nearest word of the vault. From then on that word
counts as found: its text is embedded, and a passage that has it has the word of the query.

How near a term must be:

    similarity   a fixed cosine, as ragdocs has it; its terms weigh as much as the query's own words
                 and are embedded with them
    percentile   as near as only one in a thousand pairs of the vocabulary. A fixed cosine means
                 something different for every model: with bge-small most pairs of unrelated words
                 are above 0.5. Its terms weigh half

A query that names something exactly is never expanded.

The corpus has the vocabulary and its vectors; here is what is added to the plan.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from ragvault.config.settings import Expand
from ragvault.plan import And, Expansion, KeywordQuery, Or, QueryPlan, Words, leaves
from ragvault.ports import Corpus
from ragvault.query.restate import plan_sentence
from ragvault.text.fold import fold

PERCENTILE = 0.999  # of the pairs of the vocabulary
HALF = 0.5  # the weight of a term by percentile: with more it would outvote a word of the query
_WORD = re.compile(r"[^\W_]+")


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
    corrected = _WORD.sub(lambda word: best.get(fold(word[0]), word[0]), plan.text)
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


def expand(plan: QueryPlan, settings: Expand, corpus: Corpus) -> QueryPlan:
    """The plan with near terms of the corpus. Raises RagvaultError if its model cannot be used."""
    if not may_expand(plan, settings):
        return plan
    near = corpus.near_terms(
        plan.text, settings.terms, percentile=PERCENTILE, exclude=own_words(plan)
    )
    least = least_cosine(settings, near.usual_cosine)
    found = expand_plan(plan, near.terms, settings, least=least)
    return replace(found, parse=plan_sentence(found)) if found.expansions else plan


def may_expand(plan: QueryPlan, settings: Expand) -> bool:
    """Whether to look for terms at all; doing so compares the query with the whole vocabulary."""
    return settings.method != "off" and plan.expandable and plan.keyword_query is not None


def least_cosine(settings: Expand, usual: float) -> float:
    """How near a term must be; `usual` is the cosine at PERCENTILE of all pairs."""
    return settings.similarity if settings.method == "similarity" else usual


def expand_plan(
    plan: QueryPlan, near: Iterable[tuple[str, float]], settings: Expand, *, least: float
) -> QueryPlan:
    """The plan with the nearest terms added, if any. `near` are terms with their cosines."""
    if not may_expand(plan, settings) or plan.keyword_query is None:
        return plan
    found = tuple(_best(plan, near, settings, least))
    if not found:
        return plan
    embedded = settings.method == "similarity"
    return plan.expanded(found, _with_terms(plan.keyword_query, found), embedded)


def own_words(plan: QueryPlan) -> frozenset[str]:
    """The words of the query itself, with and without punctuation; they add nothing."""
    words = plan.text.casefold().split()
    return frozenset([*words, *(word.strip("\"'.,;:!?()[]{}") for word in words)])


def _best(
    plan: QueryPlan, near: Iterable[tuple[str, float]], settings: Expand, least: float
) -> list[Expansion]:
    own = own_words(plan)
    new = {term: cosine for term, cosine in near if term.casefold() not in own and cosine >= least}
    ordered = sorted(new.items(), key=lambda pair: (-pair[1], pair[0]))
    weight = 1.0 if settings.method == "similarity" else HALF
    return [Expansion(term, cosine, weight) for term, cosine in ordered[: settings.terms]]


def _with_terms(query: KeywordQuery, found: Sequence[Expansion]) -> KeywordQuery:
    """The terms as alternatives to what is searched for; what is required or excluded stays."""
    more = tuple(Words(each.term, weight=each.weight) for each in found)
    if isinstance(query, And):
        wanted, *required = query.parts
        return And((Or((wanted, *more)), *required))
    return Or((query, *more))
