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

import unicodedata
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from math import inf
from pathlib import Path, PurePosixPath
from typing import Any, Literal, NamedTuple, Protocol, TypeVar

from ragvault.answer.match import Match, find_matches, quoted
from ragvault.answer.results import (
    CorpusResponse,
    SearchAnswer,
    SearchResult,
    VaultAnswer,
    changed_files,
)
from ragvault.answer.suggest import suggestions, unmet_conditions
from ragvault.candidate import SAYS_NOTHING, Candidate, Context, Ranked
from ragvault.errors import IndexBehind
from ragvault.ports import Corpus
from ragvault.rank.budget import budget, fit_budget, token_counter
from ragvault.rank.limit import result_count
from ragvault.search import search
from ragvault.text.names import plain_words
from ragvault.text.readable import readable
from ragvault.types import SearchRequest

MergedResult = tuple[int, Candidate]  # the position of its response, and the result
TextOf = Callable[[Sequence[MergedResult]], str]

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
        likely = any(each.response.likely for each in answers)
        for at, vault in enumerate(vaults):
            # A small vault was walked before; of a large one that takes as long as the search.
            if answers[at].pending is not None or not likely:
                with open_corpus(vault) as corpus:
                    answers[at] = _with_left_out(answers[at], corpus)

    def text_of(results: Sequence[MergedResult]) -> str:
        assert written is not None
        return written(SearchAnswer(_of_vaults(results, answers), tuple(answers)))

    def quote_of(of: int, candidate: Candidate) -> Candidate | None:
        return _quote(answers[of], candidate)

    merged = merge_responses(
        answers,
        request.limit,
        text_of if written else None,
        quote_of if quotes else None,
        all_matches=request.all_matches,
    )
    results = _of_vaults(merged.results, answers)
    meant = () if results else tuple(suggestions([each.unmet for each in answers]))
    warnings = _labelled(merged.warnings, answers)
    return SearchAnswer(results, tuple(answers), merged.left_out, warnings, meant)


def _labelled(warnings: Iterable[str], answers: Sequence[VaultAnswer]) -> tuple[str, ...]:
    """The warnings of an answer; one that not all vaults have begins with their names."""
    lines = []
    for line in warnings:
        of = [each.vault for each in answers if line in each.response.warnings]
        lines.append(f"{', '.join(of)}: {line}" if 0 < len(of) < len(answers) else line)
    return tuple(lines)


def record_access(vaults: Sequence[SearchableVault], answer: SearchAnswer, now: float) -> None:
    """Count the notes of an answer that is handed to a model, where access.record is on."""
    for vault, own in zip(vaults, answer.answers, strict=True):
        vault.record_access((each.candidate for each in answer.results if each.answer is own), now)


def _quote(answer: VaultAnswer, candidate: Candidate) -> Candidate | None:
    """What is quoted of a result; None if it is only a heading."""
    quote = quoted(candidate, answer.matches[candidate.id], answer.response.stages)
    is_listed = answer.response.plan.listing  # then it is there for its name, whatever it says
    return quote if is_listed or readable(quote.text).has_body else None


def _of_vaults(
    results: Sequence[MergedResult], answers: Sequence[VaultAnswer]
) -> tuple[SearchResult, ...]:
    return tuple(SearchResult(answers[at], candidate) for at, candidate in results)


def _freshness(
    vault: SearchableVault, corpus: Corpus, policy: ComparePolicy
) -> tuple[int | None, str]:
    """How many files wait to be indexed, and which part of the index does not cover all notes.

    A few of them may be taken in first: results must not depend on what is shown beside them, so
    a small vault is compared for that even if nobody asks how fresh its index is.
    """
    corpus.check_files()
    wanted = policy == "small" or corpus.config.search.update != "off"
    small = wanted and corpus.note_count() <= SMALL_VAULT
    if policy != "always" and not small:
        return None, ""
    corpus.refresh()
    return vault.take_in_changes(corpus), _partial(corpus)


def _partial(corpus: Corpus) -> str:
    for part, why in corpus.missing.items():
        if part != "access":  # access counts are not part of the index
            return f"{part}: {why}"
    return corpus.behind


def _vault_answer(
    vault: SearchableVault,
    request: SearchRequest,
    corpus: Corpus,
    pending: int | None,
    partial: str,
) -> VaultAnswer:
    corpus.refresh()  # not in the snapshot, in which nothing can be opened again
    with corpus.snapshot():
        response = search(request, corpus)
        # Before the budget: vaults share one budget, which may keep more of this one.
        shown = response.stage("limit").kept
        matches = _matches(shown, response, corpus)
        # Paths in the index are NFC; names on disk need not be.
        unusual = {each.note.path for each in shown if not each.note.path.isascii()}
        disk_names = {path: corpus.disk_path(path) for path in unusual}
        found_nothing = not response.results and response.plan.filter is not None
        unmet = unmet_conditions(response.plan, corpus.heads()) if found_nothing else []
    return VaultAnswer(
        vault=vault.name,
        root=vault.root,
        config=corpus.config,
        response=response,
        pending=pending,
        partial=partial,
        remedy=corpus.remedy if pending else "",
        unfinished="" if response.results else corpus.unfinished,
        matches=matches,
        copied=corpus.copied(),
        count_tokens=None if response.plan.listing else corpus.count_tokens(),
        disk_names=disk_names,
        unmet=tuple(unmet),
    )


def _is_called(query: str, answers: Sequence[VaultAnswer]) -> bool:
    """Whether the title or the file name of a result has every word of the query."""
    words = {*plain_words(query)}
    notes = {each.note for answer in answers for each in answer.response.results}
    names = ((each.title, PurePosixPath(each.path).stem) for each in notes)
    return any(words <= {*plain_words(f"{title} {stem}")} for title, stem in names)


def _with_left_out(answer: VaultAnswer, corpus: Corpus) -> VaultAnswer:
    """With a warning if a query is the name of a file that is not indexed. Walks the vault."""
    response = answer.response
    plans = response.plans or (response.plan,)
    lines = filter(None, (corpus.left_out(plan.query) for plan in plans))
    return replace(answer, response=replace(response, warnings=(*response.warnings, *lines)))


def _matches(
    shown: Sequence[Candidate], response: CorpusResponse, corpus: Corpus
) -> dict[int, Match]:
    """Where each result matches the first query that found it."""
    found: dict[int, Match] = {}
    for plan in response.plans or (response.plan,):
        own = [each for each in shown if response.plan_of(each) is plan]
        found |= find_matches(own, plan, corpus)
    return found


# --- Merging ---


class Merged(NamedTuple):
    """One list of results, how many limit and budget left out, and warnings for the reader."""

    results: tuple[MergedResult, ...]
    left_out: int
    warnings: tuple[str, ...] = ()


def merge_responses(
    answers: Sequence[VaultAnswer],
    limit: int | None,
    text_of: TextOf | None = None,
    quote: Callable[[int, Candidate], Candidate | None] | None = None,
    *,
    all_matches: bool = False,
) -> Merged:
    """The results of all vaults in one order, cut to the limit and the budget of the first.

    If no answer is likely to answer, only the closest few are kept, unless `all_matches`.

    `text_of` gives the text that results will be written as; then citations count as tokens too.
    `quote` gives what is quoted of a result, None for one to leave out if there are others.
    """
    responses = [each.response for each in answers]
    if len(responses) == 1 and text_of is None:
        (only,) = responses
        return Merged(tuple((0, each) for each in only.results), left_out(only), only.warnings)
    # As they were before the budget, which applies to all vaults together.
    listed = len(responses) > 1 and all(response.plan.listing for response in responses)
    join = by_date if listed else interleaved
    order = join([response.stage("limit").kept for response in responses])
    unlisted = [
        (of, removal.candidate)
        for of, response in enumerate(responses)
        for removal in response.stage("limit").removed
    ]
    roots = [each.root.resolve() for each in answers]
    found = len(without_copies([*order, *unlisted], roots))
    order = without_copies(order, roots)
    config = answers[0].config
    context = Context(settings=config, limit=limit, count_tokens=answers[0].count_tokens)
    most = result_count(context) if config.limit.enabled else len(order)
    if not all_matches and not any(response.likely for response in responses):
        most = min(most, config.limit.closest)
    first = order[:most]
    if quote is not None:
        quotes = ((of, quote(of, each)) for of, each in first)
        first = [(of, each) for of, each in quotes if each is not None] or first
    fits = _fitting(first, context, text_of)
    kept = [(of, each) for (of, _), each in zip(first, fits.kept, strict=False)]
    warnings = [line for response in responses for line in _warnings(response)]
    return Merged(
        tuple(kept),
        found - len(kept),
        tuple(dict.fromkeys((*warnings, *fits.warnings))),
    )


def _fitting(results: Sequence[MergedResult], context: Context, text_of: TextOf | None) -> Ranked:
    candidates = [each for _, each in results]
    if text_of is None:
        return budget(candidates, context)
    count = token_counter(context)

    def size(some: Sequence[Candidate]) -> int:
        pairs = zip(results, some, strict=False)  # a result that is cut keeps its place
        return count(text_of([(of, each) for (of, _), each in pairs]))

    return fit_budget(candidates, context, size)


def interleaved(answers: Sequence[Sequence[Candidate]]) -> list[MergedResult]:
    """All results by confidence; those whose exact name is the query come first."""
    order: list[MergedResult] = []
    at = [0] * len(answers)

    def place(of: int) -> tuple[bool, float, int]:
        head = answers[of][at[of]]
        return not head.lifted, -(head.confidence or 0.0), at[of]

    while waiting := [of for of, results in enumerate(answers) if at[of] < len(results)]:
        of = min(waiting, key=place)
        order.append((of, answers[of][at[of]]))
        at[of] += 1
    return order


def by_date(answers: Sequence[Sequence[Candidate]]) -> list[MergedResult]:
    """All results, newest first, equal dates in their given order.

    Exact names come first, and notes that say nothing last.
    """
    each = [(of, result) for of, results in enumerate(answers) for result in results]
    return sorted(each, key=lambda pair: _place_by_date(pair[1]))


def _place_by_date(result: Candidate) -> tuple[bool, bool, float]:
    at = result.note.date.at if result.note.date else -inf
    return not result.exact, result.score == SAYS_NOTHING, -at


def without_copies(results: Iterable[MergedResult], roots: Sequence[Path]) -> list[MergedResult]:
    """The results, a file only from the vault that placed it first: vaults may contain others."""
    first: dict[str, int] = {}

    def file(of: int, result: Candidate) -> str:
        return unicodedata.normalize("NFC", f"{roots[of]}/{result.note.path}")

    return [(of, each) for of, each in results if first.setdefault(file(of, each), of) == of]


def left_out(response: CorpusResponse) -> int:
    """How many results limit and budget left out."""
    return sum(len(response.stage(name).removed) for name in ("limit", "budget"))


def _warnings(response: CorpusResponse) -> list[str]:
    """The warnings of one response, without those of its own budget."""
    return [line for line in response.warnings if line not in response.stage("budget").warnings]
