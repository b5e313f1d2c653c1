"""Probes: test questions that a vault makes of its own notes, without a judge and without a model.

    title      the title of a note must find it
    alias      so must another name of it
    heading    a heading must find the note that has it
    sentence   a sentence, word for word
    typo       the title with one letter wrong
    link       the sentence around [[X]], without the link, must find X; its own note is left out
    nonsense   words that no note has must not get a confident answer

The same vault and seed make the same probes. They come from the notes' own text and not from the
tables that a search uses, so an empty table is noticed. If several notes share a name, each of them
is a right answer.

Markdown is not parsed here: whatever is no plain sentence (code, tables, lists of links) is left
out, and one sentence more or less does not matter.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from ragvault.evaluate.questions import Judged, Question
from ragvault.store.catalogue import Catalogue
from ragvault.store.links import file_stem
from ragvault.text.spelling import fold_case
from ragvault.types import Head

KINDS = ("title", "alias", "heading", "sentence", "typo", "link", "nonsense")
MAX_SHARED = 3  # notes; a heading that more notes have ("Method") is no question
MAX_NOTES = 3000  # of a larger vault, this many notes are drawn
NONSENSE_EVERY = 10  # one probe in ten is nonsense
MAX_NONSENSE = 1000  # queries of at most three words; the syllables make 13,824 words
_SYLLABLES = (
    *("bra", "cle", "dro", "fim", "gru", "hux", "jol", "kre", "lup", "mez", "nog", "plu"),
    *("qua", "rib", "sko", "tev", "ulm", "vix", "wob", "yaz", "zed", "tro", "fle", "gix"),
)
_ASKING = ("how do I {} the {}", "what is a {}", "{} {}", "{} {} {}", "why does {} need {}")

SENTENCE_WORDS = (6, 30)
SENTENCE_LETTERS = (12, 80)  # in scripts without spaces

_LINK = re.compile(r"(?<!!)\[\[([^\[\]|#\n]+)(?:#[^\[\]|\n]*)?(?:\\?\|([^\[\]\n]*))?\]\]")
_FENCE = re.compile(r"^(```|~~~).*?^\1\s*$", re.M | re.S)
_COMMENT = re.compile(r"%%.*?%%|<!--.*?-->", re.S)
_MARKDOWN = re.compile(r"!?\[([^\[\]]*)\]\([^()\s]*(?:\s[^()]*)?\)")
_NOT_PROSE = re.compile(r"^\s*(?:[#|>]|[-*+]\s|\d+[.)]\s|!\[\[|:\s|\[\^|\$\$|={3,}|-{3,}|\S+::)")
_END = re.compile(r"(?<=[.!?])[\"'\u201d\u2019)\]*_]*\s+|(?<=[\u3002\uff01\uff1f])")
# What a query parser treats as an operator; an apostrophe or hyphen inside a word stays.
_OPERATORS = re.compile(r"[^\w\s'\u2019.\-\u0300-\u036f]+|(?<!\w)[-'.]+|[-'.]+(?!\w)|_{2,}")
_LOGIC = re.compile(r"\b(?:OR|AND|NOT)\b")
_UNSPACED_LETTER = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\u0e00-\u0e7f]")


class _Probe(NamedTuple):
    """One question before it has an id. Probes with equal words are the same question."""

    query: str
    note: str
    heading: str = ""
    without: str = ""


def probes(catalogue: Catalogue, count: int = 500, *, seed: int = 0) -> list[Question]:
    """At most `count` questions; fewer if the vault has no more."""
    pools, words = _pools(catalogue, seed)
    nonsense = count // NONSENSE_EVERY
    chosen = _share_out(pools, count - nonsense, seed)
    asked = [question for kind, some in chosen.items() for question in _questions(kind, some)]
    made_up = _nonsense(words, nonsense, seed) if asked else []
    return asked + [
        Question(f"nonsense-{place:03}", query, (), "nonsense")
        for place, query in enumerate(made_up, 1)
    ]


def _pools(catalogue: Catalogue, seed: int) -> tuple[dict[str, list[_Probe]], set[str]]:
    """All possible probes by kind, and every word of the notes."""
    pools: dict[str, list[_Probe]] = {kind: [] for kind in KINDS[:-1]}
    words: set[str] = set()
    names = catalogue.names()
    by_name = notes_by_name(names)
    paths = [row.path for row in names]
    for path in sorted(random.Random(seed).sample(paths, min(MAX_NOTES, len(paths)))):
        note = catalogue.note(path)
        text = _COMMENT.sub(" ", _FENCE.sub("", note.text[note.body :]))
        words.update(fold_case(text).split())
        pools["title"] += _asked([note.title], path)
        pools["alias"] += _asked(note.aliases, path)
        pools["typo"] += _asked([_misspelt(note.title, f"{seed}/{path}")], path)
        headings = [heading.text for heading in note.headings if heading.level > 1]
        pools["heading"] += [
            _Probe(query, path, heading)
            for heading in headings
            if len((query := typed_query(heading)).split()) > 1 or is_unspaced(query)
        ]
        for sentence in prose_sentences(text):
            pools["sentence"] += _asked([link_words(sentence)], path)
            pools["link"] += _around_links(sentence, path, by_name)
    return pools, words


def notes_by_name(names: Iterable[Head]) -> dict[str, str]:
    """Every name that a link may use -> the path of the note, for names that mean one note."""
    paths: dict[str, set[str]] = {}
    for row in names:
        spellings = _endings(row.path.rpartition(".")[0])
        for name in {file_stem(row.path), row.path, *spellings, *row.aliases}:
            paths.setdefault(fold_case(name), set()).add(row.path)
    return {name: next(iter(of)) for name, of in paths.items() if len(of) == 1}


def _endings(path: str) -> list[str]:
    """a/b/c, b/c and c: a link may omit leading folders."""
    parts = path.split("/")
    return ["/".join(parts[at:]) for at in range(len(parts))]


def _asked(texts: Iterable[str], path: str) -> list[_Probe]:
    queries = (typed_query(text) for text in texts)
    return [_Probe(query, path) for query in queries if is_searchable(query)]


def _around_links(sentence: str, path: str, by_name: Mapping[str, str]) -> Iterator[_Probe]:
    for target, left in without_links(sentence):
        found = by_name.get(fold_case(target))
        query = typed_query(left)
        if found and found != path and is_sentence(query):
            yield _Probe(query, found, without=path)


def _misspelt(title: str, seed: str) -> str:
    """The title with one letter of its longest word missing, doubled or swapped."""
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
    """Equal numbers of each kind, as far as there are enough.

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
        groups.setdefault(fold_case(each.query), []).append(each)
    kept = [group for group in groups.values() if len({p.note for p in group}) <= MAX_SHARED]
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
    """Queries of made-up words that no note has, no word twice."""
    chance = random.Random(f"{seed}/nonsense")
    used = set(words)

    def word() -> str:
        while (made := "".join(chance.choices(_SYLLABLES, k=3))) in used:
            pass
        used.add(made)
        return made

    forms = chance.choices(_ASKING, k=min(count, MAX_NONSENSE))
    return [form.format(*(word() for _ in range(form.count("{}")))) for form in forms]


# --- The words of a note, as a user would type them ---


def link_words(sentence: str) -> str:
    """A sentence with its links replaced by their words."""
    return _LINK.sub(lambda link: link[2] or link[1], sentence)


def without_links(sentence: str) -> Iterator[tuple[str, str]]:
    """The target of each link in a sentence, with the words of the sentence without that link."""
    for link in _LINK.finditer(sentence):
        left = sentence[: link.start()] + " " + sentence[link.end() :]
        yield link[1].strip(), link_words(left)


def prose_sentences(text: str) -> Iterator[str]:
    """The sentences of plain paragraphs that have a normal length, with their links as written."""
    for paragraph in re.split(r"\n\s*\n", text):
        lines = paragraph.strip("\n").split("\n")
        if not lines[0].strip() or any(map(_NOT_PROSE.match, lines)) or lines[0][:4].isspace():
            continue
        for sentence in _END.split(" ".join(lines)):
            if is_sentence(typed_query(link_words(sentence.strip()))):
                yield sentence.strip()


def typed_query(text: str) -> str:
    """The words of a text as a user would type them, without query operators."""
    text = _MARKDOWN.sub(r"\1", text)
    text = _OPERATORS.sub(" ", re.sub(r"https?://\S+", " ", text))
    return " ".join(_LOGIC.sub(lambda found: found[0].lower(), text).split())


def is_sentence(text: str) -> bool:
    """Whether a text is as long as a normal sentence."""
    if is_unspaced(text):
        return SENTENCE_LETTERS[0] <= len(text) <= SENTENCE_LETTERS[1]
    return SENTENCE_WORDS[0] <= len(text.split()) <= SENTENCE_WORDS[1]


def is_unspaced(text: str) -> bool:
    """Whether a text is mostly in a script without spaces, and longer than a word."""
    return len(_UNSPACED_LETTER.findall(text)) * 2 > max(len(text), 3)


def is_searchable(text: str) -> bool:
    """Whether a text has enough letters to search for."""
    return sum(letter.isalnum() for letter in text) > 2 or is_unspaced(text)
