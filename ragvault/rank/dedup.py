"""Dedup: remove candidates that repeat a better one.

    hash     the same text
    ngram    nearly the same characters: Jaccard similarity of the sets of character n-grams
    cosine   nearly the same vector

The checks run one after the other, each on what the one before kept. Of several copies the best one
stays, or with `keep = "newest"` the newest, which then takes the place and the score of the best.
What was asked for by its very name always stays: a note is not denied because another has its text.
Candidates are checked until `reach` times the wanted number of results are left.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from math import ceil, inf
from typing import Any

from msgspec.structs import replace

from ragvault.candidate import Candidate, Context, Ranked, Removal, Term, best_first, prefetch
from ragvault.rank.limit import result_count

# Of candidates that repeat earlier ones: position -> the earlier positions, and how alike they are.
Copies = dict[int, dict[int, str]]
N = 3  # characters of an n-gram, as ragdocs has it
Check = Callable[[Sequence[Candidate]], Copies]


def dedup(candidates: Sequence[Candidate], ctx: Context) -> Ranked:
    """Remove what repeats a candidate that stays."""
    settings = ctx.settings.dedup
    if not settings.enabled:
        return Ranked(tuple(candidates))
    enough = _enough(len(candidates), ctx)
    kept: list[Candidate] = []
    removed: list[Removal] = []
    rest, checks = list(candidates), _checks(ctx)
    while rest and len(kept) < enough:
        more = enough - len(kept)
        kept, copies = _distinct([*kept, *rest[:more]], checks, settings.keep == "newest")
        removed += copies
        rest = rest[more:]
    return Ranked((*kept, *rest), tuple(removed))


def _enough(count: int, ctx: Context) -> int:
    reach, rerank = ctx.settings.dedup.reach, ctx.settings.rerank
    return reach * max(result_count(ctx), rerank.n if rerank.enabled else 0) or count


def _checks(ctx: Context) -> list[Check]:
    settings = ctx.settings.dedup
    return [
        same_text,
        SimilarNgrams(N, settings.jaccard),
        lambda kept: similar_vectors(kept, ctx.vectors, settings.similarity),
    ]


def _distinct(
    candidates: list[Candidate], checks: Sequence[Check], newest: bool
) -> tuple[list[Candidate], list[Removal]]:
    kept, removed = candidates, []
    for check in checks:
        order = sorted(kept, key=_newest_first) if newest else kept
        copies = check(order)
        if copies:
            kept, gone = _without_copies(order, copies, newest)
            removed += gone
    return kept, removed


def _without_copies(
    order: list[Candidate], copies: Copies, newest: bool
) -> tuple[list[Candidate], list[Removal]]:
    """The first of each group of copies; the others as removals that name it."""
    kept: dict[int, Candidate] = {}
    repeats: list[tuple[int, int, str]] = []
    for at, each in enumerate(order):
        first = next((before for before in sorted(copies.get(at, ())) if before in kept), None)
        if first is None or each.lifted:
            kept[at] = each
        else:
            repeats.append((at, first, copies[at][first]))
    for at, first, _ in repeats if newest else ():
        kept[first] = _in_place_of(kept[first], order[at])
    removed = [Removal(order[at], why, kept[first]) for at, first, why in repeats]
    return best_first(kept.values()) if newest else list(kept.values()), removed


def _newest_first(candidate: Candidate) -> tuple[bool, float]:
    """Newest first, but exact hits before all: they never give way to a copy."""
    return not candidate.lifted, -candidate.note.date.at if candidate.note.date else inf


def _in_place_of(newest: Candidate, copy: Candidate) -> Candidate:
    """The newest copy, with the score and the confidence of a better one."""
    if copy.score <= newest.score:
        return newest
    why = f"in place of an older copy in {copy.note.path}"
    raised = newest.placed("dedup", copy.score, [Term("copy", copy.score - newest.score, why=why)])
    return replace(raised, confidence=copy.confidence, band=copy.band)


# --- The checks ---


def same_text(candidates: Sequence[Candidate]) -> Copies:
    """Candidates with the same text."""
    first: dict[str, int] = {}
    copies: Copies = {}
    for at, each in enumerate(candidates):
        text = each.passage.text.strip()
        before = first.setdefault(text, at)
        if before != at and text:
            copies[at] = {before: "the same text"}
    return copies


class SimilarNgrams:
    """Candidates whose sets of character n-grams are nearly the same.

    It remembers the n-grams of every candidate. Called again, it compares pairs with a new
    candidate only: copies among those it has seen were removed the last time.
    """

    def __init__(self, n: int, threshold: float) -> None:
        self._n, self._threshold = n, threshold
        self._ngrams: dict[int, frozenset[str]] = {}

    def __call__(self, candidates: Sequence[Candidate]) -> Copies:
        seen = [each.id in self._ngrams for each in candidates]
        for each in candidates:
            if each.id not in self._ngrams:
                self._ngrams[each.id] = ngrams(each.passage.text, self._n)
        known = [self._ngrams[each.id] for each in candidates]
        copies: Copies = {}
        for at, before in self._possible_copies(known):
            if seen[at] and seen[before]:
                continue
            if (alike := jaccard(known[at], known[before])) >= self._threshold:
                why = f"{alike:.2f} of the {self._n}-grams are the same"
                copies.setdefault(at, {})[before] = why
        return copies

    def _possible_copies(self, known: Sequence[frozenset[str]]) -> Iterator[tuple[int, int]]:
        """Pairs, the later first, that neither their sizes nor a sample of n-grams rules out.

        Sets with a Jaccard of t share t / (1 + t) of the sum of their sizes, and no more than the
        smaller one has. Few pairs pass, which saves 15 ms of a search for 30 results.
        """
        share = self._threshold / (1 + self._threshold)
        sizes = [len(each) for each in known]
        for at, (own, size) in enumerate(zip(known, sizes, strict=True)):
            sample = frozenset(islice(own, ceil(2 * (1 - 2 * share) * size)))
            unsampled = size - len(sample)
            for before in range(at):
                shared = share * (size + sizes[before]) - 1e-6  # for rounding
                if size < shared or sizes[before] < shared:
                    continue
                if unsampled + len(sample & known[before]) >= shared:
                    yield at, before


def ngrams(text: str, n: int) -> frozenset[str]:
    """The character n-grams of a text."""
    return frozenset(text[at : at + n] for at in range(len(text) - n + 1))


def jaccard(a: frozenset[str], b: frozenset[str]) -> float:
    """What two sets share, divided by what either has; two empty sets share nothing."""
    shared = len(a & b)
    return shared / (len(a) + len(b) - shared) if shared else 0.0


def similar_vectors(
    candidates: Sequence[Candidate], vectors: Mapping[int, Any], threshold: float
) -> Copies:
    """Candidates whose vectors are nearly the same."""
    import numpy as np

    prefetch(vectors, [each.id for each in candidates])
    found = [
        (at, row) for at, each in enumerate(candidates) if (row := vectors.get(each.id)) is not None
    ]
    copies: Copies = {}
    if len(found) < 2:
        return copies
    positions = [at for at, _ in found]
    matrix = np.stack([row for _, row in found])
    cosines = np.einsum("ik,jk->ij", matrix, matrix)  # few rows: BLAS would wait for its threads
    for i, j in np.argwhere(np.tril(cosines >= threshold, -1)).tolist():
        copies.setdefault(positions[i], {})[positions[j]] = f"cosine {cosines[i, j]:.3f}"
    return copies
