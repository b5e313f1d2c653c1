"""What is shown: the answers of one search, ready to be written in any format.

Everything that needs an open index or a file is asked here; the formats (results.py,
results_text.py) only write.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

from ragvault.answer.snippet import Snippet, snippet
from ragvault.candidate import Candidate
from ragvault.cli import render
from ragvault.cli.around import Surroundings
from ragvault.config.settings import Config
from ragvault.opened import Opened
from ragvault.search import Response


@dataclass(frozen=True, slots=True)
class Answer:
    """What one vault answered. `pending` is None where the vault was not walked for it."""

    vault: str
    root: Path
    config: Config
    response: Response
    pending: int | None
    partial: str  # what of the index cannot answer for all notes
    unfinished: str  # why notes may be missing that have never been indexed yet
    snippets: Mapping[int, tuple[Snippet, int]]  # passage -> the snippet, and its line in the file
    count_tokens: Callable[[str], int] | None = None
    disks: Mapping[str, str] = field(default_factory=dict)  # path -> how the disk spells it

    @property
    def fresh(self) -> bool | None:
        """Whether the index holds all that the vault does; None where that was not looked at."""
        return None if self.pending is None else not self.pending and not self.partial


@dataclass(frozen=True, slots=True)
class Found:
    """One result: a candidate, and the vault it is of."""

    answer: Answer
    each: Candidate

    @property
    def path(self) -> Path:
        path = self.each.note.path
        return self.answer.root / self.answer.disks.get(path, path)

    @property
    def snippet(self) -> Snippet:
        return self.answer.snippets[self.each.id][0]

    @property
    def line(self) -> int:
        """Where the snippet stands in the file."""
        return self.answer.snippets[self.each.id][1]

    @property
    def stale(self) -> bool:
        return self.each.id in self.answer.response.stale

    @property
    def uri(self) -> str:
        """The link that opens the note: as its owner set it, else Obsidian's, else the file's."""
        path = quote(self.path.as_posix())
        template = self.answer.config.output.editor
        if template:
            for name, value in self._parts(path).items():
                template = template.replace(f"{{{name}}}", value)
            return template
        if (self.answer.root / ".obsidian").is_dir():
            return f"obsidian://open?path={quote(str(self.path), safe='')}"
        return f"file://{path}"

    def _parts(self, path: str) -> dict[str, str]:
        note, vault = quote(self.each.note.path), quote(self.answer.vault, safe="")
        return {"path": path, "line": str(self.line), "vault": vault, "note": note}


@dataclass(frozen=True, slots=True)
class Shown:
    """All of it: the results in their order, and the answers they were taken from."""

    results: tuple[Found, ...]
    answers: tuple[Answer, ...]
    left_out: int
    said: tuple[str, ...]
    around: Surroundings
    explain: bool = False

    @property
    def several(self) -> bool:
        return len(self.answers) > 1

    def place(self, found: Found) -> str:
        """The path of a result that works from where the search was typed."""
        here = Path(self.around.cwd)
        inside = found.path.is_relative_to(here)
        return str(found.path.relative_to(here) if inside else found.path)


def snippets(response: Response, index: Opened) -> dict[int, tuple[Snippet, int]]:
    """The snippet of every result, and the line it stands in."""
    # Those before the budget: several vaults share one, which may take more of this one.
    results = response.stages[-2].ranked.kept
    return {each.id: _snippet(each, response, index) for each in results}


def disks(response: Response, index: Opened) -> dict[str, str]:
    """How the disk spells the names of notes: a path of ours is composed, a file's need not be."""
    paths = {each.note.path for each in response.stages[-2].ranked.kept}
    odd = (path for path in paths if not path.isascii())
    return {path: index.catalogue.stored(path).file.disk for path in odd}


def _snippet(each: Candidate, response: Response, index: Opened) -> tuple[Snippet, int]:
    plan, passage = response.plan, each.passage
    marks: list[tuple[int, int]] = []
    if plan.sought is not None and index.keyword is not None:
        marks = index.keyword.highlight(passage.text, plan.sought)
    found = snippet(passage.text, marks, plan.hypothesis or plan.text)
    return found, _line(each, found, index)


def _line(each: Candidate, found: Snippet, index: Opened) -> int:
    """The line of the file where a snippet begins.

    Counted in the passage, and looked up in the note: a comment that is not indexed has lines too.
    """
    passage = each.passage
    first, last = passage.lines
    counted = min(first + passage.text.count("\n", 0, found.at), last)
    said = passage.text[: found.at].rpartition("\n")[2]
    said += passage.text[found.at :].partition("\n")[0]
    if passage.id < 0:  # of a note that has changed: it is not in the catalogue
        return counted
    lines = index.catalogue.text(passage.note.id).split("\n")[first - 1 : last]
    near = [first + at for at, line in enumerate(lines) if said.strip() in line]
    return min(near, key=lambda line: abs(line - counted)) if near else counted


def said(shown: Shown) -> Iterator[str]:
    """What must be told beside the results: on stderr, in every format."""
    for answer in shown.answers:
        label = f"{answer.vault}: " if shown.several else ""
        for part, why in answer.response.failed.items():
            yield f"{label}{part} did not answer: {why}"
        if answer.pending:
            files = render.counted(answer.pending, "file")
            yield f"{label}{files} changed since; to bring the index up to date: ragvault index"
    yield from shown.said
    if not shown.results:
        yield f"nothing found for {shown.answers[0].response.plan.parse}"
        for answer in shown.answers:
            if answer.unfinished:
                yield f"{answer.vault}: {answer.unfinished}"
    elif all(found.each.band == "noise" for found in shown.results):
        yield "nothing here is likely to answer that; this is what comes nearest"
