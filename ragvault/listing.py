"""Listing: a filter alone gives its notes by date, each as its first passage that is kept.

A note without a passage, which is all frontmatter or empty, is listed as well: as one that says
nothing and has all of its lines. What is asked of passages no such note can meet (filters.py).
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from functools import cache

from ragvault.candidate import Candidate, PassageFacts
from ragvault.opened import Opened
from ragvault.plan import QueryPlan
from ragvault.retrieve.gather import Gathered
from ragvault.store.filters import Matching

SPARE = 3  # times what was asked for: a note whose file is gone is replaced by the next


def listing(plan: QueryPlan, index: Opened, limit: int | None, matching: Matching) -> Gathered:
    """The notes a filter keeps, newest first: as many as are wanted, and some to spare."""
    wanted = limit or index.config.limit.n
    words = cache(matching)  # asked for passages and for notes, and read once
    notes = index.catalogue.filtered_notes(plan.filter, words)
    kept = index.catalogue.filtered_passages(plan.filter, words)
    permitted = None if kept is None else set(kept.tolist())
    passages = _firsts(notes, index, permitted, wanted * SPARE)
    listed = [Candidate(passage, score=1 / rank) for rank, passage in enumerate(passages, 1)]
    more = [f"the newest {wanted} of {len(notes)} notes"] if wanted < len(notes) else []
    return Gathered(listed, tiers=tiers_of(passages, index), said=more)


def _firsts(
    notes: Sequence[int], index: Opened, permitted: Container[int] | None, most: int
) -> list[PassageFacts]:
    """The first passage of each note that is kept, or the note itself where it has none."""
    library = index.library()
    firsts: dict[int, int | None] = {}
    for note in notes:
        passages = library.passage_ids(note)
        kept = [id_ for id_ in passages if permitted is None or id_ in permitted]
        if kept or not passages:
            firsts[note] = kept[0] if kept else None
        if len(firsts) == most:
            break
    return library.firsts(firsts)


def tiers_of(passages: Sequence[PassageFacts], index: Opened) -> dict[int, str]:
    """The tier of each passage; a note without one waits for none."""
    import numpy as np

    from ragvault.index.ids import among

    tiers = {each.id: index.tier if each.id < 0 else "keyword" for each in passages}
    ids = np.array(list(tiers), np.int64)
    for tier, held in index.tiers.members().items():
        tiers.update(dict.fromkeys(ids[among(ids, held)].tolist(), tier))
    return tiers
