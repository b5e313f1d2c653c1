"""Search some vaults and return one answer, the same for every caller.

The command line, the resident process and other callers all come here. `search_vaults` prints
nothing and reads neither the current folder nor the environment, so a process that keeps indexes
open gives the same answer as one that opens them for a single search, apart from measured times.

Several vaults become one list. Each vault keeps its own order. The next place goes to the vault
whose next result has the highest confidence: confidence can be compared between vaults, a score
cannot. Without confidence (a profile may turn calibration off) the vaults take turns. Ties go to
the better rank, then to the vault that was named first. Lists by date become one list by date.
A file that is in two of the vaults comes from the one that placed it first. Limit and budget then
apply to the merged list.
"""

from __future__ import annotations

import heapq
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import cache
from math import inf
from pathlib import Path, PurePosixPath
from typing import Any, Literal, Protocol, TypeVar

from ragvault.answer.contents import suggestions, unmet_conditions
from ragvault.answer.match import Match, find_matches, quoted
from ragvault.answer.results import SearchAnswer, SearchResult, VaultAnswer, changed_files
from ragvault.candidate import SAYS_NOTHING, Candidate, Context, Ranked
from ragvault.errors import IndexBehind
from ragvault.ports import Corpus, VaultFacts
from ragvault.rank.budget import budget, fit_budget, token_counter
from ragvault.rank.limit import CLOSEST, result_count
from ragvault.search import search
from ragvault.text.names import plain_words
from ragvault.text.readable import readable
from ragvault.types import SearchRequest

# Vaults up to this size are compared with their index even without --require-fresh. The comparison
# walks the vault: 42 ms for 1,000 notes in a folder each, 95 ms for 2,500, 472 ms for 14,593. A
# search without a watcher takes a second, so this is a twentieth of it.
SMALL_VAULT = 1000  # notes

# Whether to compare the files of a vault with its index: `small` only for a small vault.
ComparePolicy = Literal["always", "small", "never"]


class SearchableVault(Protocol):
    """What `search_vaults` needs of a vault; ragvault.vault.Vault has it."""

    @property
    def name(self) -> str: ...

    @property
    def root(self) -> Path: ...

    def take_in_changes(self, corpus: Any) -> int:
        """Index the files that have changed, if they are few; how many files still wait."""
        ...

    def record_access(self, results: Iterable[Candidate], now: float) -> None: ...


V = TypeVar("V", bound=SearchableVault)
C = TypeVar("C", bound=Corpus)

# Opens the index of a vault for one search, or returns one that stays open.
OpenCorpus = Callable[[V], AbstractContextManager[C]]


def search_vaults(
    vaults: Sequence[V],
    request: SearchRequest,
    open_corpus: OpenCorpus[V, C],
    *,
    compare: ComparePolicy = "small",
    require_fresh: bool = False,
    written: Callable[[SearchAnswer], str] | None = None,
    quotes: bool = False,
) -> SearchAnswer:
    """Search each vault and merge what they return. Raises RagvaultError.

    With `require_fresh`, raises IndexBehind if an index does not cover its whole vault. `written`
    is for output that goes to a model as it is: the token budget then covers all of that text,
    citations included, instead of the passages alone. With `quotes`, a result has only those parts
    of its section that match, and none that is a heading alone.
    """
    policy: ComparePolicy = "always" if require_fresh else compare
    answers = []
    for vault in vaults:
        with open_corpus(vault) as corpus:
            pending, partial = _freshness(vault, corpus, policy)
            if require_fresh and (pending or partial):
                raise IndexBehind(vault.root, changed_files(pending) if pending else partial)
            answers.append(_vault_answer(vault, request, corpus, pending, partial))
    if policy != "never" and not _is_called(request.query, answers):
        likely = any(each.likely for each in answers)
        for at, vault in enumerate(vaults):
            # A small vault was walked before; of a large one that takes as long as the search.
            if answers[at].pending is not None or not likely:
                with open_corpus(vault) as corpus:
                    answers[at] = _with_left_out(answers[at], corpus)

    return merge(answers, request, written, quotes=quotes)


def record_access(vaults: Sequence[SearchableVault], answer: SearchAnswer, now: float) -> None:
    """Count the notes of an answer that is handed to a model, where access.record is on."""
    for vault, own in zip(vaults, answer.answers, strict=True):
        vault.record_access((each.candidate for each in answer.results if each.answer is own), now)


def _freshness(
    vault: SearchableVault, corpus: Corpus, policy: ComparePolicy
) -> tuple[int | None, str]:
    """How many files wait to be indexed, and which part of the index does not cover all notes.

    A few of them may be taken in first: results must not depend on what is shown beside them, so
    a small vault is compared for that even if nobody asks how fresh its index is.
    """
    corpus.check_files()
    wanted = policy == "small" or corpus.config.search.update != "off"
    small = wanted and corpus.facts.notes <= SMALL_VAULT
    if policy != "always" and not small:
        return None, ""
    pending = vault.take_in_changes(corpus)
    with corpus.snapshot():
        return pending, _partial(corpus.facts)


def _partial(facts: VaultFacts) -> str:
    for part, why in facts.missing.items():
        if part != "access":  # access counts are not part of the index
            return f"{part}: {why}"
    return facts.behind


def _vault_answer(
    vault: SearchableVault,
    request: SearchRequest,
    corpus: Corpus,
    pending: int | None,
    partial: str,
) -> VaultAnswer:
    with corpus.snapshot():
        found = search(request, corpus)
        # Before the budget: vaults share one budget, which may keep more of this one.
        shown = found.stage("limit").kept
        matches = _matches(shown, found, corpus)
        found_nothing = not found.results and found.plan.filter is not None
        unmet = unmet_conditions(found.plan, corpus.heads()) if found_nothing else []
    return replace(
        found,
        vault=vault.name,
        root=vault.root,
        pending=pending,
        partial=partial,
        matches=matches,
        count_tokens=None if found.plan.listing else corpus.count_tokens(),
        unmet=tuple(unmet),
    )


def _is_called(query: str, answers: Sequence[VaultAnswer]) -> bool:
    """Whether the title or the file name of a result has every word of the query."""
    words = {*plain_words(query)}
    notes = {each.note for answer in answers for each in answer.results}
    names = ((each.title, PurePosixPath(each.path).stem) for each in notes)
    return any(words <= {*plain_words(f"{title} {stem}")} for title, stem in names)


def _with_left_out(answer: VaultAnswer, corpus: Corpus) -> VaultAnswer:
    """With a warning if a query is the name of a file that is not indexed. Walks the vault."""
    plans = answer.plans or (answer.plan,)
    lines = filter(None, (corpus.left_out(plan.query) for plan in plans))
    return replace(answer, warnings=(*answer.warnings, *lines))


def _matches(shown: Sequence[Candidate], answer: VaultAnswer, corpus: Corpus) -> dict[int, Match]:
    """Where each result matches the first query that found it."""
    found: dict[int, Match] = {}
    for plan in answer.plans or (answer.plan,):
        own = [each for each in shown if answer.plan_of(each) is plan]
        found |= find_matches(own, plan, corpus)
    return found


# --- Merging ---


def merge(
    answers: Sequence[VaultAnswer],
    request: SearchRequest,
    written: Callable[[SearchAnswer], str] | None = None,
    *,
    quotes: bool = False,
) -> SearchAnswer:
    """The results of all vaults in one order, cut to the limit and the budget of the first.

    If no answer is likely to answer, only the closest few are kept, unless all are asked for.
    `written` and `quotes` are those of `search_vaults`.
    """
    if len(answers) == 1 and written is None:
        (only,) = answers
        left_out = sum(len(only.stage(name).removed) for name in ("limit", "budget"))
        return _answer(answers, _of(only, only.results), left_out, only.warnings)
    # As they were before the budget, which applies to all vaults together.
    listed = len(answers) > 1 and all(each.plan.listing for each in answers)
    join = by_date if listed else interleaved
    order = join([_of(each, each.stage("limit").kept) for each in answers])
    unlisted = [
        SearchResult(each, removal.candidate)
        for each in answers
        for removal in each.stage("limit").removed
    ]
    found = len(without_copies([*order, *unlisted]))
    order = without_copies(order)
    config = answers[0].config
    context = Context(settings=config, limit=request.limit, count_tokens=answers[0].count_tokens)
    most = result_count(context)
    if not request.all_matches and not any(each.likely for each in answers):
        most = min(most, CLOSEST)
    first = order[:most]
    if quotes:
        first = [quote for each in first if (quote := _quote(each))] or first
    fits = _fitting(first, answers, context, written)
    kept = [replace(of, candidate=each) for of, each in zip(first, fits.kept, strict=False)]
    warnings = _labelled(answers, fits.warnings)
    return _answer(answers, kept, found - len(kept), warnings)


def _of(answer: VaultAnswer, candidates: Iterable[Candidate]) -> list[SearchResult]:
    return [SearchResult(answer, each) for each in candidates]


def _answer(
    answers: Sequence[VaultAnswer],
    results: Sequence[SearchResult],
    left_out: int,
    warnings: Sequence[str],
) -> SearchAnswer:
    meant = () if results else tuple(suggestions([each.unmet for each in answers]))
    return SearchAnswer(tuple(results), tuple(answers), left_out, tuple(warnings), meant)


def _labelled(answers: Sequence[VaultAnswer], of_budget: Sequence[str]) -> list[str]:
    """The warnings of all answers, without those of their own budgets, and of the common budget.

    One that not all vaults have begins with their names.
    """
    vaults: dict[str, list[str]] = {}
    for answer in answers:
        own = answer.stage("budget").warnings
        for line in dict.fromkeys(each for each in answer.warnings if each not in own):
            vaults.setdefault(line, []).append(answer.vault)
    every = len(answers)
    lines = [f"{', '.join(of)}: {line}" if len(of) < every else line for line, of in vaults.items()]
    return [*lines, *(line for line in of_budget if line not in vaults)]


def _quote(result: SearchResult) -> SearchResult | None:
    """What is quoted of a result; None if it is only a heading."""
    quote = quoted(result.candidate, result.match, result.answer.stages)
    is_listed = result.answer.plan.listing  # then it is there for its name, whatever it says
    if is_listed or readable(quote.text).has_body:
        return replace(result, candidate=quote)
    return None


def _fitting(
    results: Sequence[SearchResult],
    answers: Sequence[VaultAnswer],
    context: Context,
    written: Callable[[SearchAnswer], str] | None,
) -> Ranked:
    candidates = [each.candidate for each in results]
    if written is None:
        return budget(candidates, context)
    count = token_counter(context)

    def size(some: Sequence[Candidate]) -> int:
        pairs = zip(results, some, strict=False)  # a result that is cut keeps its place
        shown = tuple(replace(of, candidate=each) for of, each in pairs)
        return count(written(SearchAnswer(shown, tuple(answers))))

    return fit_budget(candidates, context, size)


def interleaved(answers: Sequence[Sequence[SearchResult]]) -> list[SearchResult]:
    """All results by confidence; those whose exact name is the query come first."""
    order: list[SearchResult] = []
    at = [0] * len(answers)

    def place(of: int) -> tuple[bool, float, int]:
        head = answers[of][at[of]].candidate
        return not head.lifted, -(head.confidence or 0.0), at[of]

    while waiting := [of for of, results in enumerate(answers) if at[of] < len(results)]:
        of = min(waiting, key=place)
        order.append(answers[of][at[of]])
        at[of] += 1
    return order


def by_date(answers: Sequence[Sequence[SearchResult]]) -> list[SearchResult]:
    """All results, newest first; each vault's own order, which is by date, stays.

    Exact names come first, and notes that say nothing last.
    """
    return list(heapq.merge(*answers, key=_place_by_date))


def _place_by_date(result: SearchResult) -> tuple[bool, bool, float]:
    each = result.candidate
    at = each.note.date.at if each.note.date else -inf
    return not each.exact, each.score == SAYS_NOTHING, -at


def without_copies(results: Iterable[SearchResult]) -> list[SearchResult]:
    """The results, a file only from the vault that placed it first: vaults may contain others."""
    resolved = cache(Path.resolve)
    first: dict[str, VaultAnswer] = {}
    kept = []
    for each in results:
        root = resolved(each.answer.root)
        file = unicodedata.normalize("NFC", f"{root}/{each.candidate.note.path}")
        if first.setdefault(file, each.answer) is each.answer:
            kept.append(each)
    return kept
