"""Signals: how often each part of a search runs, whether it changes an answer, and which are dead.

A signal fires if it does something in a search:

    leg      placed a passage; for each script, the keyword leg found the wanted note
    boost    changed a score
    name     an alias matched its note; a query was expanded with near words of the vault
    stage    removed or moved a candidate
    filter   kept the note that it was made from

It moves an answer if the first ten notes, or their order, differ without it; a filter if it leaves
out a note. Only a signal that moved an answer is alive. One that fires and moves none has state
"same order": it works, and for these questions it is of no use. A signal is dead if it never fires
although the notes give it cause: a table is empty, the keys of two tables do not match, or a
constant is in the wrong unit. An average score hides that, and no search reports it.

Whether a signal has cause is read from the text of the notes and from their files, not from the
tables that a search uses: an empty table of links must not excuse the graph.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from dataclasses import replace as changed
from datetime import datetime, timedelta, timezone
from typing import Literal

from msgspec.structs import replace

from ragvault.candidate import Candidate, NoteFacts
from ragvault.config.ranking import Recency
from ragvault.config.settings import Config
from ragvault.corpus import LocalCorpus
from ragvault.evaluate.metrics import unique_notes
from ragvault.evaluate.probes import (
    MAX_NOTES,
    is_searchable,
    note_prose,
    notes_by_name,
    typed_query,
    wikilink_targets,
)
from ragvault.evaluate.questions import Question
from ragvault.evaluate.run import PreparedSearch, Replay
from ragvault.plan import LEGS
from ragvault.ports import NoProgress, Progress
from ragvault.query.dates import YEARS
from ragvault.query.understand import understand
from ragvault.rank.boost import note_age, template_folder, tier_factor
from ragvault.rank.fuse import KEYWORD_PARTS
from ragvault.rank.pipeline import Outcome, outcome_of
from ragvault.store.catalogue import Catalogue
from ragvault.text.fold import fold_case
from ragvault.types import Note

BOOSTS = (
    *("backlinks", "recency", "community", "importance", "access"),
    *("templates", "superseded"),
)
# Stages that are optional. `limit` and `budget` only shorten an answer.
OPTIONAL_STAGES = ("calibrate", "dedup", "diversify", "rerank", "parents")
MAX_MOVES = 100  # questions: 500 take minutes, and tell no more
SignalState = Literal["alive", "same order", "idle", "dead", "failed", "off"]
MIN_LINKS = 10  # fewer links make no community
# Evidence that belongs to one leg.
_EVIDENCE = {
    "name": ("name",),
    "keyword": (*KEYWORD_PARTS, "telling"),
    "code": ("code",),
}
_NAMED = ("title", "alias", "heading", "sentence")  # kinds of probes that use words of their note
PER_SIGNAL = 3  # probes: one note may be unusual, three hardly
_FENCE = re.compile(r"^(?:```|~~~) *([A-Za-z+#]+)?[^\n]*\n(.*?)^(?:```|~~~)", re.M | re.S)
_NAME = re.compile(r"\b[A-Za-z_]+_[A-Za-z0-9_]+\b|\b[a-z]+[A-Z][A-Za-z0-9]+\b")
_TASK = re.compile(r"^\s*[-*+] \[[ x]\] \S", re.M)
_TABLE = re.compile(r"^\|[^\n]+\|\n\|[ :|-]+\|$", re.M)
_IMAGE = re.compile(r"!\[\[[^\]\n]+\.(?:png|jpe?g|gif|svg|webp)\b|!\[[^\]\n]*\]\([^)\s]+\)")
_SCRIPTS = {
    "Japanese": re.compile(r"[\u3040-\u30ff]"),
    "Korean": re.compile(r"[\uac00-\ud7af]"),
    "Chinese": re.compile(r"[\u3400-\u9fff\uf900-\ufaff]"),
    "Cyrillic": re.compile(r"[\u0400-\u04ff]"),
    "Greek": re.compile(r"[\u0370-\u03ff]{2}"),  # one letter is a formula
    "Arabic": re.compile(r"[\u0600-\u06ff]"),
    "Hebrew": re.compile(r"[\u0590-\u05ff]"),
    "Thai": re.compile(r"[\u0e00-\u0e7f]"),
    "Devanagari": re.compile(r"[\u0900-\u097f]"),
}


@dataclass(frozen=True, slots=True)
class Signal:
    """One signal: in how many of `asked` questions it fired, and how many answers it moved.

    `tried` counts the questions that were ranked again without it; `moved` is of those. `lacks`
    says why not firing is no fault; `failed` says why a leg could not answer.
    """

    name: str
    group: str
    asked: int
    fired: int
    moved: int = 0
    tried: int = 0
    on: bool = True
    lacks: str = ""
    failed: str = ""

    @property
    def state(self) -> SignalState:
        if not self.on:
            return "off"
        if self.failed:
            return "failed"
        if self.fired:
            return "alive" if self.moved else "same order"
        return "idle" if self.lacks or not self.asked else "dead"


def count_signals(
    index: LocalCorpus,
    questions: Sequence[Question],
    now: datetime,
    *,
    moves: int = MAX_MOVES,
    progress: Progress | None = None,
) -> list[Signal]:
    """Count every signal on these questions, and on a few that give each of them cause.

    The first `moves` questions are ranked again without each signal that fired in them, all others
    without those that have not moved an answer yet: whether a signal is alive depends on them all.
    """
    config = index.config
    causes = find_causes(index.catalogue, config, now)
    more = [Question(f"cause-{n}", query, (), "cause") for n, query in enumerate(causes.queries)]
    progress = progress or NoProgress()
    asked = [*questions, *more]
    replay = Replay(asked, index, now, progress=progress)
    counts = _Counts(replay, config, now, moves, progress, len(asked))
    return [
        *_legs(counts, index, causes),
        *_by_script(counts, config),
        *_boosts(counts, config, causes),
        *_names(counts, config, causes),
        *_stages(counts, config),
        *_filters(index, causes, now),
    ]


class _Counts:
    """How often each signal fired and moved an answer."""

    def __init__(
        self,
        replay: Replay,
        config: Config,
        now: datetime,
        moves: int,
        progress: Progress,
        total: int,
    ) -> None:
        self.asked = 0
        self.fired: Counter[str] = Counter()
        self.moved: Counter[str] = Counter()
        self.tried: Counter[str] = Counter()  # ranked again without it
        self.failed: dict[str, str] = {}
        self.scripts: Counter[str] = Counter()
        self.found: Counter[str] = Counter()  # scripts in which the keyword leg found the note
        self.moved_scripts: Counter[str] = Counter()  # in which it moved an answer
        self.tried_scripts: Counter[str] = Counter()
        self._replay, self._config, self._now = replay, config, now
        for question, prepared, stages in replay.traces(config):
            self.asked += 1
            progress.step("counting signals", self.asked, total)
            fired = set(_fired(prepared, stages))
            self.fired.update(fired)
            self.failed |= {leg.leg: leg.failed for leg in prepared.runs if leg.failed}
            before = _first(stages)
            scripts = self._count_scripts(question, prepared)
            for name in fired:
                own = scripts if name == "keyword" else []
                known = self.moved[name] and all(self.moved_scripts[each] for each in own)
                if self.asked > moves and known:
                    continue
                first = self._first_without(name, question, prepared)
                if first is not None:
                    self.tried[name] += 1
                    self.moved[name] += first != before
                    self.tried_scripts.update(own)
                    self.moved_scripts.update(own if first != before else [])

    def _first_without(
        self, name: str, question: Question, prepared: PreparedSearch
    ) -> list[str] | None:
        """The first notes as if a signal were absent; None if it is not part of the ranking."""
        if name == "expansion":
            prepared = self._replay.unexpanded(question, self._now)
            return _first(self._replay.rank(prepared, prepared.candidates, self._config))
        without = _without(name, self._config)
        if without is None:
            return None
        candidates, config = without(prepared.candidates)
        return _first(self._replay.rank(prepared, candidates, config))

    def _count_scripts(self, question: Question, prepared: PreparedSearch) -> list[str]:
        """The scripts of a question with words of its note."""
        if question.kind not in _NAMED:
            return []
        wanted = question.grades
        found = any("keyword" in c.ranks and c.note.path in wanted for c in prepared.candidates)
        scripts = non_latin_scripts(question.query)
        for script in scripts:
            self.scripts[script] += 1
            self.found[script] += found
        return scripts


def _fired(prepared: PreparedSearch, stages: tuple[Outcome, ...]) -> Iterator[str]:
    """The signals that fired in one search."""
    if prepared.plan.expansions:
        yield "expansion"
    # Candidates, not hits: a hit that matches no passage is of no use. Nor does a rank tell: a leg
    # may also rank what only others found.
    yield from (run.leg for run in prepared.runs if run.candidates)
    for each in prepared.candidates:
        yield from each.ranks.keys() - set(LEGS)
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
    """How to rank as if a signal were absent; None if it is not part of the ranking."""
    if name in LEGS:
        return lambda found: (list(_stripped(found, name)), config)
    if name == "alias":
        return lambda found: (list(_without_aliases(found)), config)
    if name in BOOSTS:
        off = replace(getattr(config.boost, name), enabled=False)
        quiet = replace(config, boost=replace(config.boost, **{name: off}))
        return lambda found: (found, quiet)
    if name in OPTIONAL_STAGES:
        left_out = replace(config, **{name: replace(getattr(config, name), enabled=False)})
        return lambda found: (found, left_out)
    return None


def _stripped(candidates: Sequence[Candidate], leg: str) -> Iterator[Candidate]:
    """The candidates without what one leg contributed."""
    own = _EVIDENCE.get(leg, ())
    for each in candidates:
        ranks = {name: rank for name, rank in each.ranks.items() if name != leg}
        if ranks:
            scores = {name: score for name, score in each.scores.items() if name != leg}
            evidence = {name: part for name, part in each.evidence.items() if name not in own}
            exact = "" if leg == "name" and each.exact in ("title", "alias") else each.exact
            yield replace(each, ranks=ranks, scores=scores, evidence=evidence, exact=exact)


def _without_aliases(candidates: Sequence[Candidate]) -> Iterator[Candidate]:
    """The candidates as if no note had an alias: one that only its alias found is left out."""
    for each in candidates:
        if each.exact != "alias":
            yield each
        elif each.ranks:
            yield replace(each, exact="")


def _first(stages: tuple[Outcome, ...]) -> list[str]:
    return unique_notes(each.note.path for each in outcome_of("budget", stages))[:10]


# --- The signals, group by group ---


def _legs(counts: _Counts, index: LocalCorpus, causes: Causes) -> Iterator[Signal]:
    vectors = index.catalogue.model_dims()
    lacks = {
        "name": "" if causes.names else "no note has a title of three letters or more",
        "vector": "" if vectors else "no passage has a vector yet",
        "keyword": "" if causes.notes else "there is no note",
        "code": "" if causes.code else "no code block contains a name of several words",
        "graph": _no_neighbours(causes, index.config.retrieve.seeds),
    }
    for leg in LEGS:
        on = leg in index.config.retrieve.legs and (leg != "code" or index.config.code.enabled)
        failed = counts.failed.get(leg, "") or index.missing.get(leg, "")
        yield _signal(counts, leg, "leg", on=on, lacks=lacks[leg], failed=failed)


def _no_neighbours(causes: Causes, seeds: int) -> str:
    if not causes.links:
        return "no note links to another by name"
    return (
        "" if causes.notes > seeds else "the vault is so small that the other legs find every note"
    )


def _by_script(counts: _Counts, config: Config) -> Iterator[Signal]:
    """The keyword leg in each script but Latin: an analyzer may not handle one of them."""
    on = "keyword" in config.retrieve.legs
    for script, asked in sorted(counts.scripts.items()):
        found, moved = counts.found[script], counts.moved_scripts[script]
        tried = counts.tried_scripts[script]
        yield Signal(f"keyword, {script}", "leg", asked, found, moved, tried, on=on)


def _boosts(counts: _Counts, config: Config, causes: Causes) -> Iterator[Signal]:
    lacks = {
        "backlinks": "" if causes.links else "no note links to another by name",
        "recency": "" if causes.recent else "no note is recent enough to be boosted",
        "community": "" if len(causes.links) >= MIN_LINKS else "too few links for a community",
        "importance": "" if causes.important else "unused (no note has an importance property)",
        "access": "access counts are not recorded",
        "templates": "" if causes.templates else "no note is in a templates folder",
        "superseded": "no note was found together with one that supersedes it",
    }
    for name in BOOSTS:
        on = config.boost.enabled and getattr(config.boost, name).enabled
        yield _signal(counts, name, "boost", on=on, lacks=lacks[name])


def _names(counts: _Counts, config: Config, causes: Causes) -> Iterator[Signal]:
    lacks = "" if causes.aliases else "no note has an alias"
    yield changed(_signal(counts, "alias", "name", on=True, lacks=lacks), name="aliases")
    on = config.query.expand.method != "off"
    lacks = "no word of the vocabulary was near enough to a query"
    yield _signal(counts, "expansion", "name", on=on, lacks=lacks)


def _stages(counts: _Counts, config: Config) -> Iterator[Signal]:
    for name in OPTIONAL_STAGES:
        on = getattr(config, name).enabled
        yield _signal(counts, name, "stage", on=on, lacks="no answer needed it")


def _signal(
    counts: _Counts, name: str, group: str, *, on: bool, lacks: str, failed: str = ""
) -> Signal:
    fired, moved = counts.fired[name], counts.moved[name]
    return Signal(name, group, counts.asked, fired, moved, counts.tried[name], on, lacks, failed)


def _filters(index: LocalCorpus, causes: Causes, now: datetime) -> Iterator[Signal]:
    asked: Counter[str] = Counter()
    kept: Counter[str] = Counter()
    cut: Counter[str] = Counter()
    for probe in causes.filters:
        tree = understand(probe.query, index.config.query, now=now).filter
        notes = set(index.catalogue.filtered_notes(tree)) if tree is not None else set()
        asked[probe.name] += 1
        kept[probe.name] += index.catalogue.note_id(probe.note) in notes
        cut[probe.name] += 0 < len(notes) < causes.notes
    for name in sorted(asked):
        yield Signal(name, "filter", asked[name], kept[name], cut[name], asked[name])


def non_latin_scripts(text: str) -> list[str]:
    """The scripts of a text besides Latin; Chinese characters in Japanese count as Japanese."""
    found = [name for name, letters in _SCRIPTS.items() if letters.search(text)]
    return [name for name in found if name != "Chinese" or "Japanese" not in found]


# --- What should make signals fire ---


@dataclass(frozen=True, slots=True)
class FilterProbe:
    """A filter and the note that it must keep."""

    name: str
    query: str
    note: str


@dataclass(slots=True)
class Causes:
    """What the notes contain that should make each signal fire."""

    notes: int = 0
    names: list[str] = field(default_factory=list)
    links: list[tuple[str, str, str]] = field(default_factory=list)  # source, target, written name
    code: list[str] = field(default_factory=list)
    aliases: list[str] = field(default_factory=list)
    important: list[str] = field(default_factory=list)
    recent: list[str] = field(default_factory=list)
    superseding: list[str] = field(default_factory=list)
    templates: list[str] = field(default_factory=list)
    filters: list[FilterProbe] = field(default_factory=list)

    @property
    def queries(self) -> list[str]:
        """A few queries for each signal that ordinary probes may miss."""
        found = (
            self.names,
            *(self.code, self.aliases, self.important, self.recent),
            *(self.superseding, self.templates),
        )
        asked = (typed_query(text) for some in found for text in some[:PER_SIGNAL])
        return list(dict.fromkeys(filter(is_searchable, asked)))


def find_causes(catalogue: Catalogue, config: Config, now: datetime, *, seed: int = 0) -> Causes:
    """Read the notes; of a large vault, MAX_NOTES of them."""
    names = catalogue.names()
    by_name = notes_by_name(names)
    found = Causes(notes=len(names))
    recent = _recent(catalogue, config.boost.recency, now)
    template = template_folder(config.boost.templates)
    paths = [row.path for row in names]
    some = random.Random(seed).sample(paths, min(MAX_NOTES, len(paths)))
    filters: dict[str, list[FilterProbe]] = {}
    for path in [*recent[:PER_SIGNAL], *sorted(set(some) - set(recent[:PER_SIGNAL]))]:
        note = catalogue.note(path)
        text = note_prose(note.text, note.body)
        links = _links(text, path, by_name)
        found.links += [(path, target, name) for target, name in links]
        found.code += _names_in_code(note)
        found.aliases += note.aliases
        if is_searchable(typed_query(note.title)):
            found.names.append(note.title)
        if note.importance in config.boost.importance.levels:
            found.important.append(note.title)
        if note.supersedes:
            found.superseding.append(note.title)
        if template(path) and text.strip():
            found.templates.append(note.title)
        if path in recent:
            found.recent.append(note.title)
        for probe in (
            *_note_filters(note),
            *_link_filters(note, links),
            *_text_filters(note, text),
        ):
            if '"' not in probe.note and len(filters.setdefault(probe.name, [])) < PER_SIGNAL:
                filters[probe.name].append(probe)
    dates = list(_date_filters(catalogue))
    found.filters = [probe for some in filters.values() for probe in some] + dates[:PER_SIGNAL]
    return found


def _recent(catalogue: Catalogue, settings: Recency, now: datetime) -> list[str]:
    """Notes that the recency boost should move, the newest first."""
    ages = []
    for each in catalogue.stored_notes():
        at = each.file.mtime_ns / 1e9
        note = NoteFacts(each.id, each.file.path, date=each.dates.date, file_time=at)
        found = note_age(note, settings.date, now.timestamp())
        if found and (settings.shape == "half-life" or tier_factor(found.days, settings) != 1):
            ages.append((found.days, each.file.path))
    return [path for _, path in sorted(ages)]


def _links(text: str, path: str, by_name: dict[str, str]) -> list[tuple[str, str]]:
    """The paths of the notes that a text links to by an unambiguous name, with that name."""
    written = ((fold_case(name), name) for name in wikilink_targets(text))
    found = [(by_name[key], name) for key, name in written if key in by_name]
    return [(target, name) for target, name in found if target != path]


def _names_in_code(note: Note) -> list[str]:
    """Names that occur only in code: several words written as one."""
    blocks = [block for _, block in _FENCE.findall(note.text)]
    return [max(names, key=len) for block in blocks if (names := _NAME.findall(block))]


def _note_filters(note: Note) -> Iterator[FilterProbe]:
    """Filters on the note itself."""
    path = note.path
    folder, _, file = path.rpartition("/")
    values = [
        *(("tag", tag) for tag in note.tags[:1]),
        *(("alias", alias) for alias in note.aliases[:1]),
        *(("heading", heading.text) for heading in note.headings[-1:]),
        ("path", folder),
        ("file", file.rpartition(".")[0]),
        ("title", note.title),
    ]
    for name, value in values:
        # `*` is a pattern, and a quote ends the value.
        if value.strip() and not set(value) & set('"*`\\\n'):
            yield FilterProbe(name, f'{name}:"{value}"', path)
    for key in list(note.properties)[:1]:
        if re.fullmatch(r"[A-Za-z]+", key):
            yield FilterProbe("property", f"[{key}]", path)


def _link_filters(note: Note, links: list[tuple[str, str]]) -> Iterator[FilterProbe]:
    stem = note.path.rpartition("/")[2].rpartition(".")[0]
    for target, name in links[:1]:
        if '"' not in name + stem:
            yield FilterProbe("link", f'link:"{name}"', note.path)
            yield FilterProbe("linkedby", f'linkedby:"{stem}"', target)


def _text_filters(note: Note, text: str) -> Iterator[FilterProbe]:
    """Filters on the content of passages."""
    path = note.path
    languages = [language for language, _ in _FENCE.findall(note.text) if language]
    if _FENCE.search(note.text):
        yield FilterProbe("has:code", "has:code", path)
    for language in languages[:1]:
        yield FilterProbe("lang", f"lang:{language}", path)
    for part, pattern in (("table", _TABLE), ("task", _TASK), ("image", _IMAGE)):
        if pattern.search(text):
            yield FilterProbe(f"has:{part}", f"has:{part}", path)


def _date_filters(catalogue: Catalogue) -> Iterator[FilterProbe]:
    for each in catalogue.stored_notes():
        if each.dates.date is None:
            continue
        day = datetime.fromtimestamp(each.dates.date.at, timezone.utc)
        if day.year not in YEARS:
            continue
        around = [(day + timedelta(days=shift)).date().isoformat() for shift in (-1, 1)]
        yield FilterProbe("date", "date:" + "..".join(around), each.file.path)
