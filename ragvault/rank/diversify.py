"""Diversify: results that differ from each other, and at most a few passages of one note.

    per_note   at most so many passages of one note; with `relax`, more if too few are left
    mmr        maximal marginal relevance, greedy:
               lambda * relevance - (1 - lambda) * similarity to the nearest one already chosen

For MMR, relevance and similarity must be on one scale, 0..1. Relevance is the score scaled to 0..1
or the cosine to the query; similarity is a cosine, at least 0.

With `order = "score"`, MMR chooses which results are shown, and they are shown in the order of
their score: the first `limit.n` that it chooses, then the next `limit.n`. With `order = "mmr"` they
are shown in the order in which MMR chose them, and the MMR value becomes the score. Exact hits that
`fuse` put first stay first and count as chosen.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import inf
from typing import TYPE_CHECKING

from ragvault.candidate import Candidate, Context, Ranked, Removal, Term, best_first
from ragvault.rank.fuse import cosine
from ragvault.rank.limit import result_count

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def diversify(candidates: Sequence[Candidate], ctx: Context) -> Ranked:
    """Choose passages that differ, a few per note."""
    settings = ctx.settings.diversify
    if not settings.enabled:
        return Ranked(tuple(candidates))
    few = Ranked(tuple(candidates))
    if settings.per_note:
        few = _per_note(candidates, settings.per_note)
    few = Ranked(_chosen(few.kept, ctx), few.removed)
    return _filled_up(few, result_count(ctx)) if settings.relax and few.kept else few


def _chosen(candidates: Sequence[Candidate], ctx: Context) -> tuple[Candidate, ...]:
    """The candidates as MMR chooses them, in the order that the settings ask for."""
    first = [each for each in candidates if each.lifted]
    others = [each for each in candidates if not each.lifted]
    chosen = mmr(others, ctx, first)
    if ctx.settings.diversify.order == "score":
        chosen = _in_order_of_score(chosen, ctx.settings.limit.n, others)
    return (*first, *chosen)


def mmr(
    candidates: Sequence[Candidate], ctx: Context, before: Sequence[Candidate] = ()
) -> list[Candidate]:
    """All candidates, in the order in which MMR chooses them after those in `before`."""
    import numpy as np

    share, count = ctx.settings.diversify.mmr_lambda, len(candidates)
    relevance, every = _relevance(candidates, ctx), _similarities([*candidates, *before], ctx)
    alike = every[:count, :count]
    nearest = every[count:, :count].max(axis=0, initial=0.0)
    left = np.ones(count, bool)
    chosen = []
    for _ in candidates:
        values = np.where(left, share * relevance - (1 - share) * nearest, -np.inf)
        at = int(values.argmax())  # the first of equals: the better one
        left[at] = False
        terms = [
            Term("relevance", float(relevance[at]), share, why=ctx.settings.diversify.relevance),
            Term("similarity", float(nearest[at]), share - 1, why="to the nearest result above"),
        ]
        chosen.append(candidates[at].after("diversify", terms, before=0.0))
        nearest = np.maximum(nearest, alike[at])
    return chosen


def _in_order_of_score(
    chosen: Sequence[Candidate], block: int, scored: Sequence[Candidate]
) -> list[Candidate]:
    """The first `block` that MMR chose by their scores, then the next, each with its score.

    In blocks, so that whoever asks for thirty results gets the same first ten as everybody else.
    """
    own = {each.id: each for each in scored}
    ordered: list[Candidate] = []
    for start in range(0, len(chosen), block):
        for each in best_first(own[c.id] for c in chosen[start : start + block]):
            above = ordered[-1].score if ordered else inf
            held = each.score > above
            ordered.append(_behind(each, above, "more like the results above") if held else each)
    return ordered


def _relevance(candidates: Sequence[Candidate], ctx: Context) -> NDArray[np.float64]:
    import numpy as np

    if ctx.settings.diversify.relevance == "vector":
        found = np.array([cosine(each) for each in candidates], float)
    else:
        found = np.array([each.score for each in candidates], float)
        spread = np.ptp(found) if len(found) else 0.0
        found = (found - found.min()) / spread if spread else np.ones(len(found))
    clipped: NDArray[np.float64] = np.clip(found, 0.0, 1.0)
    return clipped


def _similarities(candidates: Sequence[Candidate], ctx: Context) -> NDArray[np.float64]:
    """The cosine of each pair; 0 if one has no vector."""
    import numpy as np

    similarities = np.zeros((len(candidates), len(candidates)))
    known = [at for at, each in enumerate(candidates) if each.id in ctx.vectors]
    if known:
        matrix = np.stack([ctx.vectors[candidates[at].id] for at in known]).astype(float)
        cosines = np.einsum("ik,jk->ij", matrix, matrix)  # BLAS would wait for its threads
        similarities[np.ix_(known, known)] = np.clip(cosines, 0.0, 1.0)
    return similarities


def _per_note(candidates: Sequence[Candidate], most: int) -> Ranked:
    seen: Counter[int] = Counter()
    kept, removed = [], []
    first: dict[int, Candidate] = {}
    for each in candidates:
        seen[each.note.id] += 1
        if seen[each.note.id] <= most:
            first.setdefault(each.note.id, each)
            kept.append(each)
        else:
            reason = f"{most} passages of this note rank above it"
            removed.append(Removal(each, reason, first[each.note.id]))
    return Ranked(tuple(kept), tuple(removed))


def _filled_up(few: Ranked, enough: int) -> Ranked:
    """If fewer than `enough` sections are left, add further sections at the end, each once."""
    shown = {each.passage.section for each in few.kept}
    behind: dict[int, Candidate] = {}
    for each in (removal.candidate for removal in few.removed):
        if len(shown) >= enough:
            break
        if each.passage.section not in shown:
            shown.add(each.passage.section)
            behind[each.id] = _behind(each, few.kept[-1].score, "more of a note that ranks above")
    left = tuple(removal for removal in few.removed if removal.candidate.id not in behind)
    return Ranked((*few.kept, *behind.values()), left)


def _behind(candidate: Candidate, last: float, why: str) -> Candidate:
    return candidate.after("diversify", [Term("behind", min(0.0, last - candidate.score), why=why)])
