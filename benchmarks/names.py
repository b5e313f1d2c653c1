"""Names as people type them: does the note that is the topic come first?

    python -m benchmarks.names                       made from the names of all given vaults
    python -m benchmarks.names --against COMMIT      the same queries in an older state as well
    python -m benchmarks.names --vaults foam-docs,quartz-docs --wrong
    python -m benchmarks.names --speed               what the look-up costs in a large vault

A probe is a name that exactly one note has (title, alias or file name), typed in another form: with
a question around it, in the plural, with or without hyphens, with a curly apostrophe, misspelt,
abbreviated, in part, with its folder. The note must come first. Notes without text (only
frontmatter, or empty) are asked for by a part of their name alone. The questions of
`questions/garden-typed.jsonl` are asked beside them.

Two more forms are words that the text of exactly one note has: as they are, and with one letter
dropped. There the note must be among the first three. Held back are answers that call themselves
"No good match".

Common words are asked, too: titles of one word that many passages have (`index`, `note`). There the
words mean more than the name. They are asked in other forms (`indexes`, `the note`) and beside a
longer name (`index nash equilibrium`). A first result is false if it has the common word as its
title and is first by that alone: without the leg `name` it is not among the first three. A query
that is exactly one note's name is left out: by rule that note comes first.

The vaults are indexed to the tier `static`, unless they have full vectors already.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import partial as partial_call
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import Stemmer

from benchmarks import compare_states, corpora, data, record
from benchmarks.compare_states import State
from ragvault.corpus import LocalCorpus
from ragvault.retrieve.names import Named, exact_notes
from ragvault.search import understand_query
from ragvault.text.names import initials, plain_words, typed_name
from ragvault.types import SearchRequest
from ragvault.vault import Vault

PER_FORM = 20  # probes of each form and vault
PER_VAULT = 30  # queries with a common word
COMMON = 0.05  # share of passages from which on a word is common
FRAMES = (
    "what is {}?",
    "what is a {}",
    "who was {}",
    "how does {} work",
    "notes about {}",
    "quote about {}",
    "tell me about {}",
    "explain {}",
)
WITHOUT = 'retrieve.legs=["vector","keyword","code","graph"]'
WITHOUT_TEXT = "partial, note without text"
FORMS = (
    *("frame", "plural", "hyphen", "curly", "misspelt", "abbreviated", "partial", "folder"),
    WITHOUT_TEXT,
)
WORD, SLIP = "a word that one note has", "a word that one note has, one letter dropped"
LONG = 6  # letters of such a word
NOT_ASKED = re.compile(r'[":()\[\]{}<>#*|\\/@$%&=~`^]|^-|\b(?:AND|OR|NOT)\b|\d{4}')
_BRACKETED = re.compile(r"\(([A-Z][A-Za-z]{1,6})\)")


class Probe(NamedTuple):
    """A query and the note that must come first."""

    form: str
    query: str
    notes: tuple[str, ...]


class Name(NamedTuple):
    """A name that exactly one note has."""

    text: str
    path: str
    has_text: bool = True


# --- Probes ---


def unique_names(index: LocalCorpus) -> tuple[list[Name], dict[str, set[str]]]:
    """Names of one note each, that can be typed as a query; and every word's notes."""
    notes: dict[str, set[str]] = {}
    words: dict[str, set[str]] = {}
    texts: dict[str, Name] = {}
    for row in index.catalogue.names():
        stem = Path(row.path).stem
        passages = index.catalogue.places(index.catalogue.passage_ids_of(row.id))
        has_text = any(each.kind != "properties" for each in passages)
        for text in (row.title, stem, *row.aliases):
            notes.setdefault(typed_name(text), set()).add(row.path)
            for word in plain_words(text):
                words.setdefault(word, set()).add(row.path)
        for text in (row.title, *row.aliases):
            texts.setdefault(typed_name(text), Name(text, row.path, has_text))
    found = [name for key, name in texts.items() if len(notes[key]) == 1 and _is_typed(name.text)]
    return found, words


def _is_typed(text: str) -> bool:
    """Whether somebody would type this: words of letters, not a date, not an operator."""
    words = [word for word in plain_words(text) if word.isalpha()]
    return 0 < len(words) <= 8 and len("".join(words)) > 3 and not NOT_ASKED.search(text)


def probes(index: LocalCorpus, seed: int = 0) -> list[Probe]:
    """At most PER_FORM probes of each form; only such as name one note."""
    names, words = unique_names(index)
    typed = {typed_name(name.text): name.path for name in names}
    abbreviations = _abbreviations(index)
    found: list[Probe] = []
    for form in FORMS:
        chance = random.Random(f"{seed}/{form}")
        some = [
            Probe(form, query, (name.path,))
            for name in names
            if name.has_text == (form != WITHOUT_TEXT)
            for query in _typed(form, name, words, abbreviations, chance)
            if query and query != name.text and typed.get(typed_name(query)) in (None, name.path)
        ]
        chance.shuffle(some)
        found += some[:PER_FORM]
    return found


def rare_words(index: LocalCorpus, seed: int = 0) -> list[Probe]:
    """Words that the text of one note has in any of their forms; and with one letter dropped."""
    stem = Stemmer.Stemmer("english").stemWord
    notes: dict[str, set[str]] = {}
    typed: set[str] = set()
    for row in index.catalogue.names():
        note = index.catalogue.note(row.path)
        for text in (row.title, *row.aliases, row.path, note.text):
            for word in re.findall(r"[^\W\d_]+", text):
                notes.setdefault(stem(word.lower()), set()).add(row.path)
        written = re.findall(r"[^\W\d_]+", note.text[note.body :])
        typed |= {
            word.lower()
            for word in written
            if len(word) >= LONG and (word.islower() or word.istitle())
        }
    own = sorted(word for word in typed if len(notes[stem(word)]) == 1)
    chance = random.Random(f"{seed}/{WORD}")
    found: list[Probe] = []
    for word in chance.sample(own, min(PER_FORM, len(own))):
        at = chance.randrange(1, len(word) - 1)
        slip = word[:at] + word[at + 1 :]
        if stem(slip) not in notes:
            paths = tuple(notes[stem(word)])
            found += [Probe(WORD, word, paths), Probe(SLIP, slip, paths)]
    return found


def _typed(
    form: str,
    name: Name,
    words: Mapping[str, set[str]],
    abbreviations: Mapping[str, set[str]],
    chance: random.Random,
) -> Iterator[str]:
    text = name.text
    if form == "frame":
        yield chance.choice(FRAMES).format(text)
    elif form == "plural":
        yield plural(text)
    elif form == "hyphen":
        yield text.replace("-", " ") if "-" in text else text.replace(" ", "-", 1)
    elif form == "curly":
        if "'" in text:
            yield text.replace("'", "’")
            yield text.replace("'", "")
        elif "’" in text:
            yield text.replace("’", "'")
            yield text.replace("’", "")
    elif form == "misspelt":
        yield misspelt(text, chance)
    elif form == "abbreviated":
        for letters in _letters(text):
            if abbreviations.get(letters.lower()) == {name.path} and letters.lower() not in words:
                yield letters
    elif form == "partial":
        yield partial(text, words)
    elif form == WITHOUT_TEXT:
        # `book` means Books and not Book Template.
        word = partial(text, words)
        yield "" if plural(word or "-") in words else word
    elif form == "folder" and "/" in name.path:
        yield f"{Path(name.path).parent.name} {text}".lower()


def plural(text: str) -> str:
    """The last word in the plural, or in the singular if it ends like a plural."""
    word = text.split()[-1]
    if len(word) < 4 or not word.isascii() or not word.isalpha() or word.isupper():
        return ""
    if re.search(r"[^sui]s$", word):
        other = re.sub(r"ies$", "y", word) if word.endswith("ies") else word[:-1]
    elif re.search(r"[^aeiou]y$", word):
        other = word[:-1] + "ies"
    else:
        other = word + ("es" if re.search(r"(s|x|z|ch|sh)$", word) else "s")
    return text[: -len(word)] + other


def misspelt(text: str, chance: random.Random) -> str:
    """One slip in each of the two longest words."""
    long = sorted((w for w in set(text.split()) if len(w) > 4 and w.isalpha()), key=len)[-2:]
    for word in long if text.isascii() else ():
        at = chance.randrange(1, len(word) - 2)
        wrong = chance.choice(
            (
                word[:at] + word[at + 1 :],
                word[:at] + word[at] + word[at:],
                word[:at] + word[at + 1] + word[at] + word[at + 2 :],
            )
        )
        text = text.replace(word, wrong, 1)
    return text if long else ""


def _letters(text: str) -> Iterator[str]:
    bracketed = _BRACKETED.search(text)
    if bracketed:
        yield bracketed[1]
    elif letters := initials(text):
        yield letters.upper()


def _abbreviations(index: LocalCorpus) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for row in index.catalogue.names():
        for text in (row.title, Path(row.path).stem, *row.aliases):
            for letters in _letters(text):
                found.setdefault(letters.lower(), set()).add(row.path)
    return found


def partial(text: str, words: Mapping[str, set[str]]) -> str:
    """The longest word of the name that no other note has in a name."""
    own = [word for word in plain_words(text) if len(words[word]) == 1 and len(word) > 3]
    return max(own, key=len) if own and len(plain_words(text)) > 1 else ""


def common_words(index: LocalCorpus, seed: int = 0) -> list[Probe]:
    """Titles of one word that many passages have: in another form, and beside a longer name.

    `notes` are those that have the title.
    """
    titled: dict[str, set[str]] = {}
    for row in index.catalogue.names():
        words = plain_words(row.title)
        if len(words) == 1 and words[0].isalpha() and index.words.share(words[0]) >= COMMON:
            titled.setdefault(words[0], set()).add(row.path)
    found: dict[str, Probe] = {}
    for word, paths in titled.items():
        for query in (word, plural(word), f"the {word}", f"some {plural(word)}"):
            if plural(word) and not exact_notes(query, index):
                found[query] = Probe("common", query, tuple(paths))
    chance = random.Random(f"{seed}/common")
    names = [each for each in unique_names(index)[0] if len(plain_words(each.text)) > 1]
    for word, paths in titled.items() if names else ():
        name = chance.choice(names)
        if word not in plain_words(name.text):
            query = f"{word} {name.text}".lower()
            found[query] = Probe("common", query, tuple(paths))
    return chance.sample(list(found.values()), min(PER_VAULT, len(found)))


# --- Asking ---


class Asked(NamedTuple):
    """A probe with the notes that were found, best first, and whether an answer is likely."""

    probe: Probe
    notes: list[str]
    likely: bool

    def within(self, count: int) -> bool:
        return not set(self.probe.notes).isdisjoint(self.notes[:count])


def ask(root: Path, asked: Sequence[Probe], tree: Path, flags: Sequence[str]) -> list[Asked]:
    """What one state of the code finds."""
    queries = [each.query for each in asked]
    settings = [corpora.PATIENT, *flags]
    task = {"root": str(root), "flags": settings, "queries": queries, "limit": 10, "timed": False}
    state = State(tree, task)
    try:
        answers = (state(at) for at in range(len(asked)))
        return [Asked(p, a["notes"], a["likely"]) for p, a in zip(asked, answers, strict=True)]
    finally:
        state.close()


def indexed(name: str) -> Vault:
    """A vault with an index of the tier static at least."""
    os.environ["RAGVAULT_HOME"] = str(record.home())
    vault = Vault.open(data.folder("vaults", name), flags=[corpora.PATIENT])
    with_vectors = vault.folder.exists() and _tier(vault) == "full"
    vault.index("full" if with_vectors else "static")
    return vault


def _tier(vault: Vault) -> str:
    with vault.corpus() as index:
        return index.facts.tier


def typed_questions() -> list[Probe]:
    questions = corpora.corpus("garden-typed").questions
    return [
        Probe("typed questions", each.query, tuple(n for n, g in each.grades.items() if g >= 2))
        for each in questions
    ]


def measure(
    vaults: Sequence[str], states: Mapping[str, Path], flags: Sequence[str], *, wrong: bool
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """One row for each form, all vaults together; and the vaults one by one."""
    found: dict[str, list[Asked]] = {state: [] for state in states}
    of_vaults: list[dict[str, Any]] = []
    common: dict[str, tuple[int, int]] = dict.fromkeys(states, (0, 0))
    for name in vaults:
        vault = indexed(name)
        with vault.corpus() as index:
            asked, words = probes(index) + rare_words(index), common_words(index)
        if name == "jackyzha0-garden":
            asked += typed_questions()
        row: dict[str, Any] = {"vault": name, "probes": sum(e.form in FORMS for e in asked)}
        for state, tree in states.items():
            print(f"{name}: {len(asked)} queries in {state}", file=sys.stderr, flush=True)
            answers = ask(vault.root, asked, tree, flags)
            found[state] += answers
            own = [each for each in answers if each.probe.form in FORMS]
            row[state] = _share(own, 1)
            false = false_firsts(vault.root, words, tree, flags, show=wrong)
            common[state] = (common[state][0] + len(words), common[state][1] + false)
            if wrong and state == list(states)[-1]:
                _show(answers)
        of_vaults.append(row)
    rows = [_row(form, found) for form in ("all forms", *FORMS, WORD, SLIP, "typed questions")]
    rows.append(
        {
            "form": "common words: false firsts",
            "n": next(iter(common.values()))[0],
            **{
                state: {"first": count, "three": None, "held": None}
                for state, (_, count) in common.items()
            },
        }
    )
    return [row for row in rows if row["n"]], of_vaults


def _row(form: str, found: Mapping[str, Sequence[Asked]]) -> dict[str, Any]:
    row: dict[str, Any] = {"form": form}
    for state, answers in found.items():
        wanted = FORMS if form == "all forms" else (form,)
        own = [each for each in answers if each.probe.form in wanted]
        row["n"] = len(own)
        held = sum(not each.likely for each in own) / max(1, len(own))
        row[state] = {"first": _share(own, 1), "three": _share(own, 3), "held": held}
    return row


def _share(answers: Sequence[Asked], count: int) -> float:
    return sum(each.within(count) for each in answers) / max(1, len(answers))


def false_firsts(
    root: Path, words: Sequence[Probe], tree: Path, flags: Sequence[str], *, show: bool
) -> int:
    """How many queries with a common word have a note first that only has it as its title.

    A state before the leg is compared with itself without its rule for exact names.
    """
    has_leg = (tree / "ragvault" / "index" / "names.py").exists()
    off = (WITHOUT,) if has_leg else ("fuse.exact=0",)
    with_names = ask(root, words, tree, flags)
    without = ask(root, words, tree, (*flags, *off))
    false = [
        (each.probe.query, each.notes[0], other.notes[:3])
        for each, other in zip(with_names, without, strict=True)
        if each.within(1) and each.notes[0] not in other.notes[:3]
    ]
    for query, first, others in false if show else ():
        print(f"  false first: {query!r} {first}, without the leg {others}")
    return len(false)


def _show(answers: Sequence[Asked]) -> None:
    for each in answers:
        if not each.within(1):
            at = next((p for p, n in enumerate(each.notes, 1) if n in each.probe.notes), 0)
            print(f"  {each.probe.form}: {each.probe.query!r} {each.probe.notes} at {at or '-'}, "
                  f"first {each.notes[:1]}")  # fmt: skip


# --- Speed ---


def speed(notes: int) -> list[dict[str, Any]]:
    """CPU milliseconds of the look-up alone: warm, for the first time, and after a change.

    It runs in one thread, so this is what a search waits for on an idle machine.
    """
    os.environ["RAGVAULT_HOME"] = str(record.home())
    root = data.part(notes, Path(record.home(), f"notes-{notes}")) if notes else data.scale()
    vault = Vault.open(root)
    vault.index("static")
    with vault.corpus() as index:
        cold = _timed(lambda: index.names().keys("word"))
        again = _timed(index._read_names)
        asked = [each.query for each in probes(index)]
        requests = [SearchRequest(query, corpora.NOW) for query in asked]
        plans = [understand_query(each, index, {}) for each in requests]
        for plan in plans[:20]:
            Named(plan, index, 20)
        warm = [_timed(partial_call(Named, plan, index, 20)) for plan in plans]
        count = index.facts.notes
    spread = {f"p{p}": float(np.percentile(warm, p)) for p in (50, 95, 99)}
    row = {"notes": count, "queries": len(warm), **spread, "first": cold, "after a change": again}
    return [row]


def _timed(work: Callable[[], object]) -> float:
    began = time.process_time()
    work()
    return 1000 * (time.process_time() - began)


# --- Tables ---


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    states = [key for key in rows[0] if key not in ("form", "n")]
    head = ["form", "n", *(f"{state}: first | in three | held back" for state in states)]
    lines = [f"| {' | '.join(head)} |", f"|---|---:|{'---:|---:|---:|' * len(states)}"]
    for row in rows:
        parts = ("first", "three", "held")
        cells = [_cell(row[state][part]) for state in states for part in parts]
        lines.append(f"| {row['form']} | {row['n']} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _cell(value: float | None) -> str:
    if value is None:
        return "–"
    return str(value) if isinstance(value, int) else f"{value:.1%}"


def speed_table(rows: Sequence[Mapping[str, Any]]) -> str:
    head = list(rows[0])
    lines = [f"| {' | '.join(head)} |", f"|{'---:|' * len(head)}"]
    lines += [
        f"| {' | '.join(f'{v:.2f}' if isinstance(v, float) else f'{v:,}' for v in row.values())} |"
        for row in rows
    ]
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--vaults", default="", help="names, with commas between")
    parser.add_argument("--against", default="", metavar="COMMIT", help="an older state")
    parser.add_argument("--wrong", action="store_true", help="print what is not first")
    parser.add_argument("--speed", action="store_true", help="time the look-up in a large vault")
    parser.add_argument("--notes", type=int, default=0, help="of the large corpus; 0 is all")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    args = parser.parse_args(arguments)
    if args.speed:
        rows = speed(args.notes)
        print(speed_table(rows), flush=True)
        record.save("names-speed", rows)
        return
    folder = data.folder("vaults")
    vaults = args.vaults.split(",") if args.vaults else sorted(p.name for p in folder.iterdir())
    with ExitStack() as stack:
        states = {"now": corpora.HERE.parent}
        if args.against:
            tree = stack.enter_context(compare_states.checkout(args.against))
            states = {"before": tree, **states}
        rows, of_vaults = measure(vaults, states, args.set, wrong=args.wrong)
    print(table(rows), flush=True)
    for row in of_vaults:
        shares = (f"{state} {row[state]:.1%}" for state in states)
        print(f"{row['vault']}: {row['probes']} probes, {', '.join(shares)} first")
    if not args.set and not args.vaults:
        record.save("names", rows, vaults=of_vaults, against=args.against)


if __name__ == "__main__":
    main()
