"""Liveness: how often each signal fires on an exam, and what it moves.

    leg      placed a passage; in every script, keyword placed the note that was wanted
    boost    changed a score
    name     a query that is an alias met its note; near words of the vault were added
    stage    removed or moved a candidate
    filter   kept the note that it was made from

A signal moves an answer when the first ten notes are others without it. One that never fires
although the notes give it cause (material.py) is dead: a table is empty, two tables disagree about
a key, a constant is in another unit. That is what a good mean hides and a search never says.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from msgspec.structs import replace

from ragvault.candidate import Candidate
from ragvault.config.settings import Config
from ragvault.evaluate import scripts
from ragvault.evaluate.ablation import BOOSTS, STAGES
from ragvault.evaluate.material import Material, material
from ragvault.evaluate.metrics import best_passages
from ragvault.evaluate.questions import Question
from ragvault.evaluate.rehearse import Rehearsal
from ragvault.opened import Opened
from ragvault.plan import LEGS
from ragvault.query.understand import understand
from ragvault.rank.pipeline import Outcome
from ragvault.search import Prepared

State = Literal["alive", "idle", "dead", "failed", "off"]
MOVES = 100  # questions on which it is tried what a signal moves
LINKS = 10  # fewer than these make no community
# What each leg knows beside rank and score.
_EVIDENCE = {"keyword": ("coverage", "passage", "note", "title"), "code": ("code",)}
_NAMED = ("title", "alias", "heading", "sentence")  # probes that have the words of their notes


@dataclass(frozen=True, slots=True)
class Signal:
    """One signal: in how many of `asked` questions it fired, and how many answers it moved.

    `lacks` says why its silence is no fault, `failed` why it could not answer.
    """

    name: str
    group: str
    asked: int
    fired: int
    moved: int = 0
    on: bool = True
    lacks: str = ""
    failed: str = ""

    @property
    def state(self) -> State:
        if not self.on:
            return "off"
        if self.failed:
            return "failed"
        if self.fired:
            return "alive"
        return "idle" if self.lacks or not self.asked else "dead"


def liveness(
    index: Opened, questions: Sequence[Question], now: datetime, *, moves: int = MOVES
) -> list[Signal]:
    """Every signal there is, on these questions and on some that give each of them cause."""
    config = index.config
    found = material(index.catalogue, config, now)
    more = [Question(f"cause-{n}", query, (), "cause") for n, query in enumerate(found.queries)]
    counted = _Counted(Rehearsal([*questions, *more], index, now), config, moves)
    return [
        *_legs(counted, index, found),
        *_by_script(counted, config),
        *_boosts(counted, config, found),
        *_names(counted, config, found),
        *_stages(counted, config),
        *_filters(index, found, now),
    ]


class _Counted:
    """What fired and what moved, question by question."""

    def __init__(self, rehearsal: Rehearsal, config: Config, moves: int) -> None:
        self.asked = 0
        self.fired: Counter[str] = Counter()
        self.moved: Counter[str] = Counter()
        self.failed: dict[str, str] = {}
        self.scripts: Counter[str] = Counter()
        self.read: Counter[str] = Counter()  # scripts in which keyword found what was wanted
        self._rehearsal, self._config = rehearsal, config
        for question, prepared, stages in rehearsal.traced(config):
            self.asked += 1
            fired = set(_fired(prepared, stages))
            self.fired.update(fired)
            self.failed |= {leg.leg: leg.failed for leg in prepared.gathered.runs if leg.failed}
            self._read(question, prepared)
            if self.asked <= moves:
                self._move(prepared, stages, fired)

    def _move(self, prepared: Prepared, stages: tuple[Outcome, ...], fired: set[str]) -> None:
        before = _first(stages)
        for name in fired:
            without = _without(name, self._config)
            if without is None:
                continue
            candidates, config = without(prepared.candidates)
            again = self._rehearsal.rank(prepared, candidates, config)
            self.moved[name] += _first(again) != before

    def _read(self, question: Question, prepared: Prepared) -> None:
        if question.kind not in _NAMED:
            return
        wanted = question.grades
        found = any("keyword" in c.ranks and c.note.path in wanted for c in prepared.candidates)
        for script in scripts.of(question.query):
            self.scripts[script] += 1
            self.read[script] += found


def _fired(prepared: Prepared, stages: tuple[Outcome, ...]) -> Iterator[str]:
    """The signals one search shows."""
    if prepared.plan.expansions:
        yield "expansion"
    for each in prepared.candidates:
        # A rank, not a hit: what a leg finds and nobody knows is found for nobody.
        yield from each.ranks
        if each.exact:
            yield each.exact
    before: tuple[int, ...] = ()
    for outcome in stages:
        after = tuple(each.id for each in outcome.ranked)
        if outcome.ranked.removed or (before and after != before):
            yield outcome.stage
        before = after
        if outcome.stage == "boost":
            steps = (s for c in outcome.ranked for s in c.steps if s.stage == "boost")
            yield from (term.name for step in steps for term in step.terms)


def _without(
    name: str, config: Config
) -> Callable[[Sequence[Candidate]], tuple[Sequence[Candidate], Config]] | None:
    """How to rank as if a signal were not there; None for what is no signal of the ranking."""
    if name in LEGS:
        return lambda found: (list(_stripped(found, name)), config)
    if name in BOOSTS:
        off = replace(getattr(config.boost, name), enabled=False)
        quiet = replace(config, boost=replace(config.boost, **{name: off}))
        return lambda found: (found, quiet)
    if name in STAGES:
        left_out = replace(config, **{name: replace(getattr(config, name), enabled=False)})
        return lambda found: (found, left_out)
    return None


def _stripped(candidates: Sequence[Candidate], leg: str) -> Iterator[Candidate]:
    """The candidates as they would be without one leg."""
    own = _EVIDENCE.get(leg, ())
    for each in candidates:
        ranks = {name: rank for name, rank in each.ranks.items() if name != leg}
        if ranks:
            scores = {name: score for name, score in each.scores.items() if name != leg}
            evidence = {name: part for name, part in each.evidence.items() if name not in own}
            yield replace(each, ranks=ranks, scores=scores, evidence=evidence)


def _first(stages: tuple[Outcome, ...]) -> list[str]:
    return best_passages(each.note.path for each in stages[-1].ranked)[:10]


# --- The signals, group by group ---


def _legs(counted: _Counted, index: Opened, found: Material) -> Iterator[Signal]:
    vectors = index.catalogue.model_dims()
    lacks = {
        "vector": "" if vectors else "no passage has a vector yet",
        "keyword": "" if found.notes else "there is no note",
        "code": "" if found.code else "no code has a name of several words in it",
        "graph": _no_neighbours(found, index.config.retrieve.seeds),
    }
    for leg in LEGS:
        on = leg in index.config.retrieve.legs and (leg != "code" or index.config.code.enabled)
        failed = counted.failed.get(leg, "") or index.missing.get(leg, "")
        yield _signal(counted, leg, "leg", on=on, lacks=lacks[leg], failed=failed)


def _no_neighbours(found: Material, seeds: int) -> str:
    if not found.links:
        return "no note links to another by name"
    return "" if found.notes > seeds else "the other legs bring every note of so small a vault"


def _by_script(counted: _Counted, config: Config) -> Iterator[Signal]:
    """Keyword search in every script that is not Latin: an analyzer may be blind to one."""
    on = "keyword" in config.retrieve.legs
    for script, asked in sorted(counted.scripts.items()):
        yield Signal(f"keyword, {script}", "leg", asked, counted.read[script], on=on)


def _boosts(counted: _Counted, config: Config, found: Material) -> Iterator[Signal]:
    lacks = {
        "backlinks": "" if found.links else "no note links to another by name",
        "recency": "" if found.recent else "no note is young enough to be moved",
        "community": "" if len(found.links) >= LINKS else "too few links for a community",
        "importance": "" if found.important else "no note says that it is important",
        "access": "opening notes is not recorded",
        "templates": "" if found.templates else "no note lies in a folder of templates",
        "superseded": "no note was found together with one that replaces it",
    }
    for name in BOOSTS:
        on = config.boost.enabled and getattr(config.boost, name).enabled
        yield _signal(counted, name, "boost", on=on, lacks=lacks[name])


def _names(counted: _Counted, config: Config, found: Material) -> Iterator[Signal]:
    lacks = "" if found.aliases else "no note has an alias"
    fired = counted.fired["alias"]
    yield Signal("aliases", "name", counted.asked, fired, lacks=lacks)
    on = config.query.expand.method != "off"
    lacks = "no word of the vocabulary was near enough to a query"
    yield Signal("expansion", "name", counted.asked, counted.fired["expansion"], on=on, lacks=lacks)


def _stages(counted: _Counted, config: Config) -> Iterator[Signal]:
    for name in STAGES:
        on = getattr(config, name).enabled
        yield _signal(counted, name, "stage", on=on, lacks="no answer gave it cause")


def _signal(
    counted: _Counted, name: str, group: str, *, on: bool, lacks: str, failed: str = ""
) -> Signal:
    fired, moved = counted.fired[name], counted.moved[name]
    return Signal(name, group, counted.asked, fired, moved, on, lacks, failed)


def _filters(index: Opened, found: Material, now: datetime) -> Iterator[Signal]:
    asked: Counter[str] = Counter()
    kept: Counter[str] = Counter()
    cut: Counter[str] = Counter()
    for probe in found.filters:
        tree = understand(probe.query, index.config.query, now=now).filter
        notes = set(index.catalogue.filtered_notes(tree)) if tree is not None else set()
        asked[probe.name] += 1
        kept[probe.name] += index.catalogue.note_id(probe.note) in notes
        cut[probe.name] += 0 < len(notes) < found.notes
    for name in sorted(asked):
        yield Signal(name, "filter", asked[name], kept[name], cut[name])
