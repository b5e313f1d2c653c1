"""Expanded: a query with words of the vault's own vocabulary, where settings want them.

The policy is query/expand.py's, the words and their vectors are the catalogue's, and what is near
is said by the model that made those vectors. Without a vocabulary, or without that model, the query
stays as it is; the second is said.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ragvault.errors import RagvaultError
from ragvault.index.vocabulary import expand as nearest
from ragvault.index.vocabulary import usual_cosine
from ragvault.plan import QueryPlan
from ragvault.query.expand import expand_plan, least_cosine, may_expand, own_words
from ragvault.query.restate import plan_sentence

if TYPE_CHECKING:
    from ragvault.opened import Opened


def expanded(plan: QueryPlan, index: Opened) -> tuple[QueryPlan, dict[str, str]]:
    """The plan with the nearest terms, and why it has none where that is a failure."""
    settings = index.config.query.expand
    if not may_expand(plan, settings):
        return plan, {}
    known = index.vocabulary()
    if not known.terms:
        return plan, {}
    try:
        query = index.engines.embedder(known.model, offline=True).embed([plan.text], "query")[0]
    except RagvaultError as error:
        return plan, {"expand": f"{error}; {error.fix}"}
    usual = usual_cosine(known.matrix, 100 * settings.percentile)
    least = least_cosine(settings, usual)
    own = own_words(plan)
    near = nearest(query, known.terms, known.matrix, top=settings.terms, min_cosine=least, own=own)
    found = expand_plan(plan, near, settings, least=least)
    return replace(found, parse=plan_sentence(found)), {}
