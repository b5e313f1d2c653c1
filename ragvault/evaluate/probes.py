"""Probes: the exam a vault writes for itself, without a judge and without a model.

    title      the title of a note must find it
    alias      another name of it as well
    heading    a heading must find the note below it
    sentence   a sentence, word for word
    typo       the title with one letter wrong
    link       the sentence around [[X]], without the link, must find X; the note it is from is out
    nonsense   words that no note has must not be answered with confidence

The same vault and seed make the same exam. Sources are the notes' own texts (plain.py) and not the
tables a search asks, so that an empty table is noticed. A name that several notes share is
answered by each of them.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ragvault.evaluate import plain
from ragvault.evaluate.questions import Judged, Question
from ragvault.store.catalogue import Catalogue
from ragvault.store.keys import fold

KINDS = ("title", "alias", "heading", "sentence", "typo", "link", "nonsense")
SHARED = 3  # notes; a heading that more of them have ("Method") asks for none of them
READ = 3000  # notes that an exam is made of; drawn from a vault that has more
NONSENSE = 10  # one probe in so many
MADE_UP = 1000  # nonsense queries, of three words at most; the syllables make 13,824 words
_SYLLABLES = (
    *("bra", "cle", "dro", "fim", "gru", "hux", "jol", "kre", "lup", "mez", "nog", "plu"),
    *("qua", "rib", "sko", "tev", "ulm", "vix", "wob", "yaz", "zed", "tro", "fle", "gix"),
)
_ASKING = ("how do I {} the {}", "what is a {}", "{} {}", "{} {} {}", "why does {} need {}")


@dataclass(frozen=True, slots=True)
class _Probe:
    """One question before it has a number. `asked` compares probes that ask the same."""

    query: str
    note: str
    heading: str = ""
    without: str = ""

    @property
    def asked(self) -> str:
        return fold(self.query)


def probes(catalogue: Catalogue, count: int = 500, *, seed: int = 0) -> list[Question]:
    """An exam of at most `count` questions; fewer where the vault has no more to ask."""
    pools = _pools(catalogue, seed)
    chosen = _share_out({kind: pools[kind] for kind in KINDS[:-1]}, count - count // NONSENSE, seed)
    exam = [question for kind, some in chosen.items() for question in _questions(kind, some)]
    made_up = _nonsense(pools.words, count // NONSENSE, seed) if exam else []
    return exam + [
        Question(f"nonsense-{place:03}", query, (), "nonsense")
        for place, query in enumerate(made_up, 1)
    ]


class _Pools(dict[str, list[_Probe]]):
    """All that could be asked, by kind, and every word there is."""

    def __init__(self) -> None:
        super().__init__((kind, []) for kind in KINDS)
        self.words: set[str] = set()


def _pools(catalogue: Catalogue, seed: int) -> _Pools:
    pools = _Pools()
    names = catalogue.names()
    by_name = named(names)
    paths = [path for path, _, _ in names]
    for path in sorted(random.Random(seed).sample(paths, min(READ, len(paths)))):
        note = catalogue.note(path)
        text = plain.body(note.text, note.body)
        pools.words.update(fold(text).split())
        pools["title"] += _asked([note.title], path)
        pools["alias"] += _asked(note.aliases, path)
        pools["typo"] += _asked([_misspelt(note.title, f"{seed}/{path}")], path)
        headings = [heading.text for heading in note.headings if heading.level > 1]
        pools["heading"] += [
            _Probe(query, path, heading)
            for heading in headings
            if len((query := plain.query(heading)).split()) > 1 or plain.is_dense(query)
        ]
        for sentence in plain.sentences(text):
            pools["sentence"] += _asked([sentence.text], path)
            pools["link"] += _around_links(sentence, path, by_name)
    return pools


def named(names: Iterable[tuple[str, str, tuple[str, ...]]]) -> dict[str, str]:
    """What a link may call a note -> its path, for names that mean one note."""
    paths: dict[str, set[str]] = {}
    for path, stem, aliases in names:
        for name in {stem, path, *_endings(path.rpartition(".")[0]), *aliases}:
            paths.setdefault(fold(name), set()).add(path)
    return {name: next(iter(of)) for name, of in paths.items() if len(of) == 1}


def _endings(path: str) -> list[str]:
    """a/b/c, b/c and c: a link may leave out the first folders."""
    parts = path.split("/")
    return ["/".join(parts[at:]) for at in range(len(parts))]


def _asked(texts: Iterable[str], path: str) -> list[_Probe]:
    queries = (plain.query(text) for text in texts)
    return [_Probe(query, path) for query in queries if plain.says_something(query)]


def _around_links(
    sentence: plain.Sentence, path: str, by_name: Mapping[str, str]
) -> Iterator[_Probe]:
    for target, left in sentence.without_links():
        found = by_name.get(fold(target))
        query = plain.query(left)
        if found and found != path and plain.is_sentence(query):
            yield _Probe(query, found, without=path)


def _misspelt(title: str, seed: str) -> str:
    """One letter of the longest word left out, doubled, or in its neighbour's place."""
    word = max(title.split(), key=len, default="")
    if len(word) < 5 or not word.isalpha() or not word.isascii():
        return ""
    chance = random.Random(seed)
    at = chance.randrange(1, len(word) - 2)
    wrong = chance.choice(
        (
            word[:at] + word[at + 1 :],
            word[:at] + word[at] + word[at:],
            word[:at] + word[at + 1] + word[at] + word[at + 2 :],
        )
    )
    return title.replace(word, wrong, 1) if wrong != word else ""


def _share_out(
    pools: Mapping[str, list[_Probe]], count: int, seed: int
) -> dict[str, list[list[_Probe]]]:
    """As much of each kind as of the others, as far as there is so much of it.

    Probes that ask the same stay together: they are one question with several answers.
    """
    waiting = {kind: _shuffled(pool, f"{seed}/{kind}") for kind, pool in pools.items()}
    chosen: dict[str, list[list[_Probe]]] = {kind: [] for kind in pools}
    while count > 0 and any(waiting.values()):
        for kind, left in waiting.items():
            if left and count > 0:
                chosen[kind].append(left.pop())
                count -= 1
    return chosen


def _shuffled(pool: Sequence[_Probe], seed: str) -> list[list[_Probe]]:
    groups: dict[str, list[_Probe]] = {}
    for each in pool:
        groups.setdefault(each.asked, []).append(each)
    kept = [group for group in groups.values() if len({p.note for p in group}) <= SHARED]
    random.Random(seed).shuffle(kept)
    return kept


def _questions(kind: str, groups: Sequence[Sequence[_Probe]]) -> Iterator[Question]:
    for place, group in enumerate(groups, 1):
        relevant = {each.note: Judged(each.note, 3, each.heading) for each in group}
        left_out = {each.without for each in group if each.without} - relevant.keys()
        yield Question(
            f"{kind}-{place:03}",
            group[0].query,
            tuple(relevant.values()),
            kind,
            tuple(sorted(left_out)),
        )


def _nonsense(words: set[str], count: int, seed: int) -> list[str]:
    """Questions made of words that nobody has, no word twice."""
    chance = random.Random(f"{seed}/nonsense")
    used = set(words)

    def word() -> str:
        while (made := "".join(chance.choices(_SYLLABLES, k=3))) in used:
            pass
        used.add(made)
        return made

    forms = chance.choices(_ASKING, k=min(count, MADE_UP))
    return [form.format(*(word() for _ in range(form.count("{}")))) for form in forms]
