"""The nearest passages, proved: look at all in whole numbers, at some as stored, at few in truth.

A stored vector is at most `error` away from the true one, so the true score of a unit query is at
most the stored score plus `error`; in whole numbers it is a little further away. Candidates are
read from the catalogue in the order of that upper bound until the last place of the answer is
better than anything unread could be. On 118,000 passages the proof for 10 answers needs about 14
reads, for 100 about 130.

In segments with lists the proof holds for the lists that were probed; what the others hold is what
makes the answer approximate.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ragvault.index.vector_segment import Look, Segment
from ragvault.index.vector_state import Part, settled
from ragvault.ports import Allowed, FetchVectors

Ids = NDArray[np.int64]
Scores = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Bounds:
    """Candidates by falling upper bound; `rest` bounds everything that is not among them."""

    ids: Ids
    upper: Scores
    rest: float


class Scan:
    """All candidates of some parts for one query. Can be asked again for more."""

    def __init__(
        self,
        parts: Sequence[Part],
        query: NDArray[np.float32],
        allowed: Allowed,
        *,
        probe: float,
        threads: int,
    ) -> None:
        ready = settled(allowed)
        self._parts = [(part.segment, part.keep(ready)) for part in parts]
        self._query, self._probe, self._threads = query, probe, threads
        self._length = float(np.linalg.norm(query))  # 1, but for rounding
        self._looks: dict[int, Look] = {}

    def __call__(self, width: int, above: float = -np.inf) -> Bounds:
        """So many of each part; what cannot reach the score `above` is not of interest."""
        self._look(width, above)
        found = [(segment, self._looks[at]) for at, (segment, _) in enumerate(self._parts)]
        enough = max(above, _enough(found, width // 2, self._length))
        ids, upper, rest = [np.empty(0, np.int64)], [np.empty(0)], -np.inf
        for segment, look in found:
            highest = look.highest(self._length)
            near = int(np.count_nonzero(highest >= enough))  # they fall
            sharp = segment.sharpened(look, near)
            ids.append(segment.ids[sharp.rows])
            upper.append(sharp.highest(self._length))
            unread = highest[near:] if near < len(highest) or not look.more else highest[-1:]
            rest = max([rest, *unread[:1].tolist()])
        order = ranked(np.concatenate(ids), np.concatenate(upper))
        return Bounds(np.concatenate(ids)[order], np.concatenate(upper)[order], rest)

    def _look(self, width: int, above: float) -> None:
        """Look into each part, again only where something that was not seen may matter."""
        probe, threads = self._probe, self._threads
        for at, (segment, keep) in enumerate(self._parts):
            known = self._looks.get(at)
            if known is None or (known.more and known.highest(self._length)[-1] >= above):
                self._looks[at] = segment.scan(
                    self._query, width, keep, probe=probe, threads=threads
                )


def _enough(found: Sequence[tuple[Segment, Look]], wanted: int, length: float) -> float:
    """A score that so many surely reach: who cannot is not among the best of that many."""
    every = np.concatenate([np.empty(0), *(look.scores for _, look in found)])
    if len(every) <= wanted:
        return -np.inf
    edge = np.partition(every, -wanted)[-wanted]
    best = (
        segment.sharpened(look, int(np.count_nonzero(look.scores >= edge)))
        for segment, look in found
    )
    return min(float((look.scores - look.slack * length).min()) for look in best if len(look.rows))


def best(
    scan: Callable[[int, float], Bounds], truth: Callable[[Ids], Scores], limit: int, parts: int
) -> tuple[Ids, Scores]:
    """The `limit` best by true score; one whose true score is NaN is gone, and left out."""
    # Near enough to matter are some four times as many. Of many parts each has its share of them;
    # in one or two they are all, and a second scan would cost more than a wide first one.
    width, last = max(2 * limit, 16 * limit // max(1, parts)) + 32, -np.inf
    while True:
        found = scan(width, last)
        scores = _read(found, truth, limit)
        last = _last(scores, limit)
        if found.rest == -np.inf or found.rest < last:
            break
        width *= 4  # many passages are alike here: look further down
    known = ~np.isnan(scores)
    ids, scores = found.ids[: len(scores)][known], scores[known]
    order = ranked(ids, scores)[:limit]
    return ids[order], scores[order]


def cosines(query: NDArray[np.float32], fetch: FetchVectors) -> Callable[[Ids], Scores]:
    """True scores by id, each read once.

    Summed row by row: a matrix product rounds by the size of the batch.
    """
    wide = query.astype(np.float64)

    read: dict[int, float] = {}

    def truth(ids: Ids) -> Scores:
        new = np.array([id_ for id_ in ids.tolist() if id_ not in read], np.int64)
        if len(new):
            scores = (fetch(new).astype(np.float64) * wide).sum(axis=1)
            read.update(zip(new.tolist(), scores.tolist(), strict=True))
        return np.array([read[id_] for id_ in ids.tolist()])

    return truth


def ranked(ids: Ids, scores: Scores) -> NDArray[np.intp]:
    """Best first; equal scores by id."""
    return np.lexsort((ids, -scores))


def _read(found: Bounds, truth: Callable[[Ids], Scores], limit: int) -> Scores:
    """True scores of the candidates from the top, as many as may matter."""
    scores = np.empty(0)
    while len(scores) < len(found.ids):
        done = len(scores)
        if found.upper[done] < _last(scores, limit):
            break
        step = limit + limit // 2 + 16 if not done else max(32, done // 2)
        scores = np.concatenate([scores, truth(found.ids[done : done + step])])
    return scores


def _last(scores: Scores, limit: int) -> float:
    """The score at the last place of the answer; as low as can be while there are free places."""
    known = scores[~np.isnan(scores)]
    return float(np.partition(known, -limit)[-limit]) if len(known) >= limit else -np.inf
