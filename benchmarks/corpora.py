"""Vaults with judged questions, and BEIR collections made into vaults.

    sample               sample_vault and its ten questions, which are part of this repository
    NAME                 a vault of RAGVAULT_BENCH_DATA/vaults with questions/NAME.jsonl, there or
                         here: those here were written by reading notes, before any was searched for
    garden-typed         the garden with other questions, as people type them
    ir/NAME              a collection in BEIR layout: each document becomes a note
    ir/NAME@2500         so many of its documents: all that are judged, others by chance (seed 0)

A document becomes a note with its title as heading, and goes through the real write and read paths.
Indexes are stored in RAGVAULT_BENCH_HOME.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from pathlib import Path

from benchmarks import data, record
from benchmarks.beir import Collection, Document, read_beir
from ragvault.evaluate.questions import Judged, Question, read_questions
from ragvault.evaluate.report import ScoredAnswer, score
from ragvault.evaluate.run import Replay, run_questions
from ragvault.vault import Vault

HERE = Path(__file__).parent
NOW = datetime(2026, 11, 1, tzinfo=timezone.utc)  # one clock for all runs
# On a busy machine a leg may be late, and an answer without it says nothing about quality.
PATIENT = "retrieve.seconds=60"
JUDGED = ("obsidian-tasks", "jackyzha0-garden")
VAULTS = (*JUDGED, "foam-docs", "quartz-docs", "logseq-docs", "dendron-site", "kepano-obsidian")
VAULT_OF = {"garden-typed": "jackyzha0-garden"}  # of questions that are not named as their vault


@dataclass(frozen=True)
class Corpus:
    """A vault on disk, its questions, and from which grade on a note counts as relevant."""

    name: str
    root: Path
    questions: Sequence[Question]
    relevant: int = 2

    def ask(self, *flags: str) -> list[ScoredAnswer]:
        """Search for every question. Exits if a leg failed: that says nothing about quality."""
        with self.vault(*flags).corpus() as index:
            found = self.scored(run_questions(self.questions, index, NOW))
        failed = sorted({part for each in found for part in each.failed})
        if failed:
            cure = f"RAGVAULT_HOME={record.home()} ragvault models pull"
            raise SystemExit(
                f"{self.name}: {', '.join(failed)} failed; if models are missing: {cure}"
            )
        return found

    def scored(self, answers: Iterable[ScoredAnswer]) -> list[ScoredAnswer]:
        """Answers scored from this grade on."""
        return [
            replace(
                each,
                scores=each.scores
                | score(each.notes, each.question.grades, relevant=self.relevant),
            )
            for each in answers
        ]

    def replay(self, *flags: str) -> Replay:
        """The questions, to be answered under many settings. The caller closes it."""
        return Replay(self.vault(*flags), self.questions, NOW)

    def vault(self, *flags: str) -> Vault:
        return Vault.open(self.root, flags=[PATIENT, *flags])

    def index(self, *flags: str) -> Vault:
        """Update the index; embeds only new text."""
        vault = self.vault(*flags)
        vault.index()
        return vault


def available() -> bool:
    return bool(os.environ.get("RAGVAULT_BENCH_DATA"))


def corpus(name: str, limit: int = 0) -> Corpus:
    """A corpus by name; of a BEIR collection with `limit`, the first so many questions."""
    os.environ["RAGVAULT_HOME"] = str(record.home())
    if name == "sample":
        questions = read_questions(HERE / "questions" / "sample_vault.jsonl")
        return Corpus(name, HERE.parent / "sample_vault", questions)
    if name.startswith("ir/"):
        return _beir(name.removeprefix("ir/"), limit)
    own = HERE / "questions" / f"{name}.jsonl"
    questions = read_questions(own if own.exists() else data.folder("questions", f"{name}.jsonl"))
    return Corpus(name, data.folder("vaults", VAULT_OF.get(name, name)), questions)


def _beir(name: str, limit: int) -> Corpus:
    plain, _, size = name.partition("@")
    folder = data.folder("ir", plain)
    collection = read_beir(folder)
    names = {each.id: f"{place:06}.md" for place, each in enumerate(collection.documents)}
    root = record.home() / "beir" / name
    _write(_part(collection, int(size)) if size else collection.documents, names, root)
    left_out = _excluded(folder, names)
    asked = [
        Question(
            each.id,
            each.query,
            tuple(Judged(names.get(j.note, j.note), j.grade) for j in each.relevant),
            without=left_out.get(each.id, ()),
        )
        for each in collection.questions
    ]
    return Corpus(f"ir/{name}", root, asked[: limit or None], relevant=1)


def _part(collection: Collection, size: int) -> list[Document]:
    """Every judged document, and as many of the others as there is room for."""
    judged = {j.note for each in collection.questions for j in each.relevant}
    others = [each for each in collection.documents if each.id not in judged]
    room = max(0, size - (len(collection.documents) - len(others)))
    chosen = {each.id for each in random.Random(0).sample(others, min(room, len(others)))}
    return [each for each in collection.documents if each.id in judged | chosen]


def _write(documents: Sequence[Document], names: dict[str, str], root: Path) -> None:
    """One note a document; one that is there already is the same."""
    root.mkdir(parents=True, exist_ok=True)
    for each in documents:
        path = root / names[each.id]
        if not path.exists():
            title = " ".join(each.title.split())
            path.write_text((f"# {title}\n\n" if title else "") + each.text + "\n", "utf-8")


def _excluded(folder: Path, names: dict[str, str]) -> dict[str, tuple[str, ...]]:
    """Documents that are left out before scoring: question, tab, document."""
    path = folder / "exclude.tsv"
    found: dict[str, tuple[str, ...]] = {}
    for line in path.read_text("utf-8").splitlines() if path.exists() else ():
        question, _, document = line.partition("\t")
        if document in names:
            found[question] = (*found.get(question, ()), names[document])
    return found
