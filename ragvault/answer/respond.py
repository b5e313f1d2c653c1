"""Respond: search some vaults and return one answer, the same for every caller.

The command line, the resident process and other callers all come here. `respond` prints nothing
and reads neither the current folder nor the environment, so a process that keeps indexes open
gives the same answer as one that opens them for a single search, apart from measured times.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Literal, Protocol, TypeVar

from ragvault.answer import freshness
from ragvault.answer.merge import MergedResult, merge_responses
from ragvault.answer.results import SearchAnswer, SearchResult, VaultAnswer, changed_files
from ragvault.answer.snippet import Snippet, best_snippet
from ragvault.candidate import Candidate
from ragvault.errors import IndexBehind
from ragvault.models.load import ModelPool
from ragvault.opened import Opened
from ragvault.search import Asked, Response
from ragvault.store.lock import lock_owner

# Vaults up to this size are compared with their index even if nobody asked for it. The comparison
# walks the vault: 42 ms for 1,000 notes in a folder each, 95 ms for 2,500, 472 ms for 14,593. A
# search without a watcher takes a second, so this is a twentieth of it.
SMALL_VAULT = 1000  # notes

# Whether to compare the files of a vault with its index: `small` only for a small vault.
ComparePolicy = Literal["always", "small", "never"]


class SearchableVault(Protocol):
    """What `respond` needs of a vault; ragvault.vault.Vault has it."""

    @property
    def name(self) -> str: ...

    @property
    def root(self) -> Path: ...

    @property
    def folder(self) -> Path: ...

    def reading(self, *, kit: ModelPool | None = None) -> Opened: ...

    def answer(self, asked: Asked, index: Opened) -> Response: ...

    def handed_over(self, results: Iterable[Candidate], now: float) -> None: ...


V = TypeVar("V", bound=SearchableVault)
V_contra = TypeVar("V_contra", bound=SearchableVault, contravariant=True)


class OpenIndex(Protocol[V_contra]):
    """Opens the index of a vault for one search, or hands out one that stays open."""

    def __call__(self, vault: V_contra, /) -> AbstractContextManager[Opened]: ...


class CountPending(Protocol[V_contra]):
    """Counts the files that wait to be indexed: by a walk, or from what a watcher knows."""

    def __call__(self, vault: V_contra, index: Opened, /) -> int: ...


def open_once() -> OpenIndex[SearchableVault]:
    """Open each index for one search; a model that several vaults need is loaded once."""
    kit = ModelPool()
    return lambda vault: vault.reading(kit=kit)


def count_by_walk(vault: SearchableVault, index: Opened) -> int:
    """Compare every file of the vault with the index by size and time; reads none of them."""
    return sum(freshness.waiting(vault.root, index.catalogue, index.config))


def respond(
    vaults: Sequence[V],
    asked: Asked,
    open_index: OpenIndex[V],
    count_pending: CountPending[V] = count_by_walk,
    *,
    compare: ComparePolicy = "small",
    require_fresh: bool = False,
    written: Callable[[SearchAnswer], str] | None = None,
) -> SearchAnswer:
    """Search each vault and merge what they return. Raises RagvaultError.

    With `require_fresh`, raises IndexBehind if an index does not cover its whole vault. `written`
    is for output that goes to a model as it is: the token budget then covers all of that text,
    citations included, instead of the passages alone.
    """
    policy: ComparePolicy = "always" if require_fresh else compare
    answers = []
    for vault in vaults:
        with open_index(vault) as index:
            pending, partial = _freshness(vault, index, count_pending, policy)
            if require_fresh and (pending or partial):
                raise IndexBehind(vault.root, changed_files(pending) if pending else partial)
            answers.append(_vault_answer(vault, asked, index, pending, partial))

    def text_of(results: Sequence[MergedResult]) -> str:
        assert written is not None
        return written(SearchAnswer(_of_vaults(results, answers), tuple(answers)))

    merged = merge_responses(
        [each.response for each in answers],
        answers[0].config,
        asked.limit,
        answers[0].count_tokens,
        text_of if written else None,
    )
    results = _of_vaults(merged.results, answers)
    return SearchAnswer(results, tuple(answers), merged.left_out, merged.warnings)


def record_access(vaults: Sequence[SearchableVault], answer: SearchAnswer, now: float) -> None:
    """Count the notes of an answer that is handed to a model, where access.record is on."""
    for vault, own in zip(vaults, answer.answers, strict=True):
        vault.handed_over((each.candidate for each in answer.results if each.answer is own), now)


def _of_vaults(
    results: Sequence[MergedResult], answers: Sequence[VaultAnswer]
) -> tuple[SearchResult, ...]:
    return tuple(SearchResult(answers[at], candidate) for at, candidate in results)


def _freshness(
    vault: V, index: Opened, count_pending: CountPending[V], policy: ComparePolicy
) -> tuple[int | None, str]:
    """How many files wait to be indexed, and which part of the index does not cover all notes."""
    freshness.check_vault(vault.root, index.catalogue)
    small = policy == "small" and index.catalogue.note_count() <= SMALL_VAULT
    if policy != "always" and not small:
        return None, ""
    index.refresh()
    return count_pending(vault, index), _partial(index)


def _partial(index: Opened) -> str:
    for part, why in index.missing.items():
        if part != "access":  # access counts are not part of the index
            return f"{part}: {why}"
    return index.behind


def _vault_answer(
    vault: SearchableVault, asked: Asked, index: Opened, pending: int | None, partial: str
) -> VaultAnswer:
    with index.catalogue.snapshot():
        response = vault.answer(asked, index)
        # Before the budget: vaults share one budget, which may keep more of this one.
        shown = response.stage("limit").kept
        snippets = {each.id: _snippet(each, response, index) for each in shown}
        disk_names = _disk_names(shown, index)
    return VaultAnswer(
        vault=vault.name,
        root=vault.root,
        config=index.config,
        response=response,
        pending=pending,
        partial=partial,
        unfinished="" if response.results else _unfinished(vault, index),
        snippets=snippets,
        count_tokens=None if response.plan.listing else index.count_tokens(),
        disk_names=disk_names,
    )


def _unfinished(vault: SearchableVault, index: Opened) -> str:
    if index.catalogue.last_run():
        return ""
    if lock_owner(vault.folder):
        return "still being indexed; search again when it is done (see: ragvault status)"
    return "its first index run did not finish; to continue: ragvault index"


def _disk_names(candidates: Iterable[Candidate], index: Opened) -> dict[str, str]:
    """Spellings on disk. Paths in the catalogue are NFC; names on disk need not be."""
    unusual = {each.note.path for each in candidates if not each.note.path.isascii()}
    return {path: index.catalogue.stored(path).file.disk for path in unusual}


def _snippet(candidate: Candidate, response: Response, index: Opened) -> tuple[Snippet, int]:
    """The snippet of a candidate, and the line of the file in which it begins."""
    plan, text = response.plan, candidate.passage.text
    marks: list[tuple[int, int]] = []
    if plan.keyword_query is not None and index.keyword is not None:
        marks = index.keyword.highlight(text, plan.keyword_query)
    snippet = best_snippet(text, marks, plan.hypothesis or plan.text)
    return snippet, _snippet_line(candidate, snippet, index)


def _snippet_line(candidate: Candidate, snippet: Snippet, index: Opened) -> int:
    """The line of the file: counted in the passage, then looked up in the note.

    A comment that is not indexed has lines too, so the count alone may be too low.
    """
    passage = candidate.passage
    first, last = passage.lines
    counted = min(first + passage.text.count("\n", 0, snippet.at), last)
    if passage.id < 0:  # from a changed note: the catalogue has another text
        return counted
    line = snippet.line_in(passage.text)
    lines = index.catalogue.text(passage.note.id).split("\n")[first - 1 : last]
    near = [first + at for at, each in enumerate(lines) if line in each]
    return min(near, key=lambda number: abs(number - counted)) if near else counted
