"""Fuse: several ranked lists become one score.

    rrf        the sum over the legs of weight / (k + rank); a leg that missed adds nothing
    evidence   cosine, and keyword scores measured against the most this query could get
    weighted   raw scores (legacy.py)
    features   similarity, recency, hierarchy, adjacency (features.py)
    union      the lists one after the other, as a baseline

RRF needs no unit, and forgets how good a hit is: a keyword list made of stray words outvotes what
the vector leg alone knew. Evidence keeps it, because a score divided by its bound means the same in
every query. What is far below the wanted results goes no further (`keep`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ragvault.candidate import Candidate, Context, Ranked, Removal, Term, key, total
from ragvault.rank import weights
from ragvault.rank.features import features
from ragvault.rank.legacy import weighted
from ragvault.rank.limit import wanted
from ragvault.rank.note_level import by_note

_Terms = list[list[Term]]
# What the keyword leg knows, by the names in `Candidate.evidence`.
_WORDS = ("passage", "note", "title", "coverage")


def fuse(candidates: Sequence[Candidate], ctx: Context) -> Ranked:
    """Score every candidate by what the legs know of it, best first."""
    settings = ctx.settings.fuse
    method = _METHODS[settings.method]
    terms = method(candidates, ctx)
    if settings.level == "note":
        terms = by_note(candidates, terms, method, ctx)
    if settings.exact:
        terms = _exact_first(candidates, terms, settings.exact)
    scores = [total(0.0, each) for each in terms]
    order = sorted(range(len(scores)), key=lambda at: key(candidates[at], scores[at]))
    most = settings.keep * max(wanted(ctx), ctx.settings.limit.n) or len(order)
    kept = (candidates[at].placed("fuse", scores[at], terms[at], before=0.0) for at in order[:most])
    reason = f"not among the best {most}"
    return Ranked(tuple(kept), tuple(Removal(candidates[at], reason) for at in order[most:]))


def rrf(candidates: Sequence[Candidate], ctx: Context) -> _Terms:
    """weight / (k + rank) of every leg that found it."""
    k, _ = weights.damping(ctx.settings.fuse, ctx.note_length)
    of_leg = weights.of_legs(candidates, ctx)
    return [
        [
            Term(leg, 1 / (k + rank), of_leg.get(leg, 1.0), why=f"rank {rank}")
            for leg, rank in sorted(each.ranks.items())
        ]
        for each in candidates
    ]


def evidence(candidates: Sequence[Candidate], ctx: Context) -> _Terms:
    """What each leg knows, on scales that mean the same in every query."""
    settings, factors = ctx.settings.fuse.evidence, weights.factors(candidates, ctx)
    words = [(name, getattr(settings, name) * factors["keyword"]) for name in _WORDS]
    code = settings.code * factors["code"]
    vector, graph = settings.vector * factors["vector"], settings.graph * factors["graph"]
    k = ctx.settings.fuse.k

    def of(each: Candidate) -> list[Term]:
        known = each.evidence
        terms = [Term("vector", weights.cosine(each), vector)]
        # One stray word of a question that is found is no evidence that the rest is answered.
        trust = known.get("coverage", 1.0) ** settings.trust
        terms += [Term(name, known[name], w * trust) for name, w in words if w and known.get(name)]
        if code and known.get("code"):
            terms.append(Term("code", known["code"], code))
        if graph and "graph" in each.ranks:
            rank = each.ranks["graph"]
            terms.append(Term("graph", (k + 1) / (k + rank), graph, why=f"rank {rank}"))
        return terms

    return [of(each) for each in candidates]


def union(candidates: Sequence[Candidate], ctx: Context) -> _Terms:
    """The lists one after the other, each passage where it comes first: 1 / place."""
    order = ctx.settings.fuse.order

    def first(at: int) -> tuple[int, int, tuple[float, str, int, int]]:
        each = candidates[at]
        for list_, leg in enumerate(order):
            if leg in each.ranks:
                return list_, each.ranks[leg], key(each, 0.0)
        return len(order), min(each.ranks.values(), default=0), key(each, 0.0)

    places = {at: place for place, at in enumerate(sorted(range(len(candidates)), key=first), 1)}
    return [[Term("place", 1 / places[at])] for at in range(len(candidates))]


_METHODS: dict[str, Callable[[Sequence[Candidate], Context], _Terms]] = {
    "rrf": rrf,
    "evidence": evidence,
    "weighted": weighted,
    "features": features,
    "union": union,
}


def _exact_first(candidates: Sequence[Candidate], terms: _Terms, lift: float) -> _Terms:
    """Exact hits pass everything else, in their own order, and names pass phrases.

    A title or an alias names a note and not a passage, so only its best passage is lifted so far.
    """
    if not any(each.exact for each in candidates):
        return terms
    scores = [total(0.0, each) for each in terms]
    chosen = _lifted(candidates, scores)
    above = lift + max(scores, default=0.0) - min(scores, default=0.0)
    return [
        [*each, Term("exact", above, chosen[at], why=f"the {candidates[at].exact} itself")]
        if at in chosen
        else each
        for at, each in enumerate(terms)
    ]


def _lifted(candidates: Sequence[Candidate], scores: Sequence[float]) -> dict[int, float]:
    """How often each is lifted over all others: a name twice where phrases are lifted, too.

    Other passages of a note that is called by a phrase stand with those the phrase is in.
    """
    exact = [at for at, each in enumerate(candidates) if each.exact]
    quoted = any(each.exact == "phrase" for each in candidates)
    named: set[int] = set()
    chosen: dict[int, float] = {}
    for at in sorted(exact, key=lambda i: key(candidates[i], scores[i])):
        each = candidates[at]
        if each.exact != "phrase" and each.note.id not in named:
            named.add(each.note.id)
            chosen[at] = 2.0 if quoted else 1.0
        elif quoted:
            chosen[at] = 1.0
    return chosen
