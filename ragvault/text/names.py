"""Names: which note is meant, and the words by which names are compared.

A note is called by the name of its file, its title and its aliases. Every door asks here which note
a name means: a search, `read`, `links`, `related`, `open`, `forget`, the filters `link:` and
`linkedby:`, completion, and "did you mean".

    typed_forms   a name as typed: `[[Steam#Doing it]]`, `Steam > Doing it`, `Steam.md:12`
    notes_called  the notes that have this very name
    notes_with    those of which a name has this part
    nearest_notes those with the most similar names

Names and queries also become words:

    Chesterton’s Fence, chestertons fence     chesterton, fenc
    The Mythical Man-Month, man month         the, mythic, man, month
    nash equilibria, Nash equilibrium         nash; equilibria is also equilibrium
    Conflict-free Replicated Data Type (CRDT) the whole, the text before the bracket, CRDT

    plain_words   the words of a text: without case, accents, apostrophes, hyphens
    NameFolder    the keys by which words are compared: stems of the vault's languages, plurals
    name_forms    the forms in which one name may be typed
    without_frame what is left of `what is a …`, `notes about …`, `was ist …`
    vault_languages   which languages a vault is written in, by its commonest words

Folding twice changes nothing: a folded name folds to itself.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import cache, lru_cache
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from ragvault.text.analyze import UNSPACED
from ragvault.text.spelling import fold, nearest, plain_name, stemmer

if TYPE_CHECKING:
    from ragvault.ports import NameKind
    from ragvault.types import Head


# A word, or a run of a script that writes no spaces between words.
_WORD = re.compile(rf"[{UNSPACED}]+|[^\W_{UNSPACED}]+")
_ASCII_WORD = re.compile(r"[a-z0-9]+")
_UNSPACED = re.compile(rf"[{UNSPACED}]")
_APOSTROPHES = re.compile("['’‘`´ʼ＇]")
_POSSESSIVE = re.compile(r"['’‘`´ʼ＇]s\b", re.IGNORECASE)
_HYPHENATED = re.compile(r"(?<=[^\W\d_])[-‐‑‒–](?=[^\W\d_])")
_BRACKETS = re.compile(r"\s*[(\[（]([^()\[\]（）]{2,60})[)\]）]\s*")
_OPENING = re.compile(r"[(\[（]")
_ABBREVIATION = re.compile(r"[^\W\d_][\w&.-]{1,9}s?")
_PARTS = re.compile(r"[\s\-‐‑–]+")
MIN_INITIALS, MAX_INITIALS = 3, 8  # two letters are the initials of too much


def plain_words(text: str) -> tuple[str, ...]:
    """The words of a text in order, without case, accents, apostrophes and hyphens.

    Where a script has no spaces, pairs of characters stand for words.
    """
    if text.isascii():  # most names, and a large vault has 60,000 of them
        small = text.lower()
        if "'" in small or "`" in small:
            small = _APOSTROPHES.sub("", _POSSESSIVE.sub("", small))
        return tuple(_ASCII_WORD.findall(small))
    bare = _APOSTROPHES.sub("", _POSSESSIVE.sub("", text))
    found: list[str] = []
    for run in _WORD.findall(fold_text(bare)):
        if _UNSPACED.match(run) and len(run) > 1:
            found += [run[at : at + 2] for at in range(len(run) - 1)]
        else:
            found.append(run)
    return tuple(found)


def fold_text(text: str) -> str:
    """A text without case and accents; the spaces stay."""
    return " ".join(map(fold, text.split()))


@lru_cache(maxsize=256)
def typed_name(name: str) -> str:
    """A name as it is typed: without case, accents, quotes, apostrophes, hyphens and extra space.

    Other signs stay: `Foo (bar)` and `Foo bar` are two names.
    """
    bare = _QUOTES.sub("", _APOSTROPHES.sub("", fold_text(name)))
    return plain_name(_DASHES.sub(" ", bare))


_QUOTES = re.compile('["“”„«»‹›]')
_DASHES = re.compile("[-‐‑‒–—_]")


# --- Which note is meant ---


class TypedName(NamedTuple):
    """The name of a note as it was typed, and the part of the note that was typed with it."""

    note: str
    heading: str = ""  # with those above it, `A > B` or `A#B`; or a ^block
    lines: str = ""  # 12, 12- or 12-20

    @property
    def last_heading(self) -> str:
        return _BELOW.split(self.heading.replace("#", " > "))[-1].strip()

    @property
    def first_line(self) -> int:
        """Counted from 1; 0 if no lines were typed."""
        return int(self.lines.partition("-")[0] or 0)


_LINES = re.compile(r"(.+?):(\d{1,9}(?:-\d{0,9})?)", re.DOTALL)
_LINK = re.compile(r"!?\[\[(.+?)(?:\|.*)?\]\]")
_HEADING = re.compile(r"(?<=[^\s#])#(?=[^\s#])")  # a title may have the sign: C#, Issue #5
_BELOW = re.compile(r"\s+>\s+")  # as results write it: Steam > Doing it


def typed_forms(typed: str) -> list[TypedName]:
    """What may be meant: the whole text as a name, then without lines, link brackets, heading."""
    forms = [TypedName(unicodedata.normalize("NFC", typed))]
    name, lines = forms[0].note, ""
    if found := _LINES.fullmatch(name.strip()):
        name, lines = found.groups()
        forms.append(TypedName(name, "", lines))
    if link := _LINK.fullmatch(name.strip()):
        forms.append(TypedName(link[1], "", lines))
    note, heading = link_parts(name)
    if not heading:
        note, *below = _BELOW.split(note, 1)
        heading = "".join(below)
    if note and heading:
        forms.append(TypedName(note, heading, lines))
    return forms


def link_parts(text: str) -> tuple[str, str]:
    """The note and the heading that a link names, in its brackets or not: [[Note#Heading|label]]"""
    link = _LINK.fullmatch(text.strip())
    note, *heading = link[1].split("#", 1) if link else _HEADING.split(text, 1)
    return note.strip(), "".join(heading).strip()


def names_of(note: Head) -> tuple[str, ...]:
    """How a note is called: by the name of its file, its title and its aliases."""
    file = note.path.rpartition("/")[2]
    return (file.rpartition(".")[0] or file, note.title, *note.aliases)


def called_by(note: Head, names: Collection[str], fold: Callable[[str], str]) -> NameKind | None:
    """How a note has one of these names, which are folded; None if it has none of them.

    The name of a file may have its suffix and the folders above it.
    """
    path = f"/{fold(note.path)}"
    bare = path.rpartition(".")[0]  # of a dot in a folder, nothing is called so
    if any(path.endswith(f"/{each}") or bare.endswith(f"/{each}") for each in names):
        return "file"
    if fold(note.title) in names:
        return "title"
    return "alias" if any(fold(each) in names for each in note.aliases) else None


def notes_called(
    notes: Iterable[Head], names: Iterable[str], *, signs: bool = False
) -> dict[int, NameKind]:
    """The notes that have one of these names, by their ids.

    Only if no note has this very name, in any case, are apostrophes, hyphens and accents left
    aside; with `signs` they always count.
    """
    known, typed = list(notes), list(names)
    for folded in (plain_name,) if signs else (plain_name, typed_name):
        wanted = {folded(each).removeprefix("/") for each in typed} - {""}
        found = {each.id: by for each in known if (by := called_by(each, wanted, folded))}
        if found:
            return found
    return {}


def notes_with(notes: Iterable[Head], part: str) -> list[int]:
    """The notes of which the path, the title or an alias has this part."""
    wanted = plain_name(part)
    return [
        each.id
        for each in notes
        if wanted
        and any(wanted in plain_name(name) for name in (each.path, each.title, *each.aliases))
    ]


def nearest_notes(
    notes: Iterable[Head], typed: str, count: int = 1, least: float = 0.6
) -> dict[str, str]:
    """The paths of the notes with the most similar names, each with that name.

    “Daily Notes” is daily-notes.md.
    """
    spelt: dict[str, tuple[str, str]] = {}
    for note in notes:
        path = note.path
        for name in (*names_of(note), path, path.rpartition(".")[0], path.rpartition("/")[2]):
            spelt.setdefault(_spaced(name), (path, name))
    found: dict[str, str] = {}
    for near in nearest(_spaced(typed), spelt, 4 * count, least):
        found.setdefault(*spelt[near])
    return dict(islice(found.items(), count))


def _spaced(name: str) -> str:
    return plain_name(name.replace("-", " ").replace("_", " "))


# --- Keys: words that mean the same have one in common ---


class NameFolder:
    """Keys of words, by the stemmers of a vault's languages."""

    def __init__(self, languages: Sequence[str]) -> None:
        self.languages = tuple(languages)
        self._stemmers = list(filter(None, map(stemmer, languages)))
        self.keys = cache(self._keys)

    def _keys(self, word: str) -> tuple[str, tuple[str, ...]]:
        """The key of a word as `plain_words` gives it, and others by which it may be found: other
        languages, odd plurals."""
        if len(word) < 3 or not word.isalpha() or _UNSPACED.match(word):
            return word, ()
        found = [stem(word) for stem in self._stemmers] or [word]
        stems = found if word.isascii() else list(map(fold, found))
        others = dict.fromkeys([*stems[1:], *_odd_plurals(word)])
        others.pop(stems[0], None)
        return stems[0], tuple(others)


# Endings of plurals that no stemmer of English knows, with a common root: criteria, criterion.
_ODD_PLURALS = (
    (("ium", "ia"), "i*"),
    (("um", "on", "ae", "a"), "*"),
    (("us", "i"), "*u"),
    (("ices", "ix", "ex"), "ix*"),
    (("is", "es"), "is*"),
)
_IRREGULAR = {
    "people": "person",
    "children": "child",
    "men": "man",
    "women": "woman",
    "feet": "foot",
    "teeth": "tooth",
    "mice": "mouse",
    "geese": "goose",
}
_MIN_ODD = 5  # letters: shorter words have these endings for other reasons


def _odd_plurals(word: str) -> Iterator[str]:
    """Roots that are never stems: each has a star."""
    if word in _IRREGULAR:
        yield f"{_IRREGULAR[word]}*"
    elif word in _IRREGULAR.values():
        yield f"{word}*"
    if len(word) >= _MIN_ODD:
        for endings, root in _ODD_PLURALS:
            if word.endswith(endings):
                ending = next(each for each in endings if word.endswith(each))
                yield word.removesuffix(ending) + root


# --- The forms of a name ---


def name_forms(name: str) -> Iterator[str]:
    """Other forms in which a name may be typed.

    With hyphens as one word; without the text in brackets; and the text in brackets alone, if it
    is an abbreviation.
    """
    if _HYPHENATED.search(name):
        yield _HYPHENATED.sub("", name)
    if not name.endswith((")", "]", "）")) and not _OPENING.search(name):
        return
    bracketed = _BRACKETS.search(name)
    rest = _BRACKETS.sub(" ", name).strip() if bracketed else ""
    if bracketed and rest:
        yield rest
        if _ABBREVIATION.fullmatch(bracketed[1].strip()):
            yield bracketed[1]


def initials(name: str) -> str:
    """The initials of a name of several words: Network Time Protocol is ntp. Else empty."""
    if _OPENING.search(name):  # the brackets say how it is abbreviated
        return ""
    words = [word for word in _PARTS.split(name) if word[:1].isalpha() and word[0].isascii()]
    if not MIN_INITIALS <= len(words) <= MAX_INITIALS:
        return ""
    telling = [word[0] for word in words if word.lower() not in _SMALL]
    return "".join(telling).lower() if len(telling) >= MIN_INITIALS else ""


_SMALL = frozenset(
    [
        *("a", "an", "and", "as", "at", "by", "for", "from", "in", "of", "on", "or", "the", "to"),
        *("de", "der", "die", "du", "la", "und", "von"),
    ]
)


# --- Questions around a name ---

# Before and behind a name, a language each. What is left must have a word.
_ARTICLES = {
    "english": "a|an|the|my|our|your|some|any",
    "german": "ein|eine|einen|einem|einer|der|die|das|den|dem|mein|meine|unser|unsere",
    "french": "un|une|le|la|les|l|des|du|mon|ma|mes|notre",
    "spanish": "un|una|el|la|los|las|unos|unas|mi|mis|nuestro|nuestra",
}
_BEFORE = {
    "english": (
        r"(?:what|who|where|which|when)(?:\s+(?:is|are|was|were)|['’]?s|['’]?re)(?:\s+(?:meant\s+by|known\s+about))?"
        r"|what\s+do(?:es)?|what\s+did|how\s+(?:do(?:es)?|did)|how\s+to\s+(?:use|do)|how\s+(?:is|are)"
        r"|(?:please\s+)?(?:explain|describe|define|show(?:\s+me)?|find(?:\s+me)?|open|look\s+up|search(?:\s+for)?)"
        r"|(?:please\s+)?tell\s+me\s+(?:about|of)|what\s+about"
        r"|(?:what\s+is\s+)?(?:the\s+)?(?:definitions?|meaning|concept|idea|notion)\s+of"
        r"|(?:what\s+is\s+)?(?:the\s+)?differences?\s+between"
        r"|(?:(?:all|my|the|our|some)\s+)?(?:notes?|quotes?|quotations?|pages?|articles?|posts?|info(?:rmation)?"
        r"|thoughts?|ideas?|docs?|documentation|everything|something|anything)"
        r"\s+(?:about|on|for|from|by|of|regarding|concerning)"
        r"|(?:an?\s+)?(?:introduction|intro|guide)\s+to|(?:an?\s+)?(?:overview|summary)\s+of"
    ),
    "german": (
        r"(?:was|wer|wo|wann|welche[rs]?)\s+(?:ist|sind|war|waren)|was\s+(?:bedeute[tn]|hei(?:ß|ss)t)"
        r"|was\s+versteht\s+man\s+unter|wie\s+(?:funktionier(?:t|en)|geht|macht\s+man|benutzt\s+man)"
        r"|(?:bitte\s+)?(?:erkläre?|erklaere?|beschreibe?|definiere?|zeige?(?:\s+mir)?|suche?(?:\s+nach)?)"
        r"|(?:die\s+)?(?:definition|bedeutung|begriff)\s+(?:von|des|der)"
        r"|(?:der\s+)?unterschied\s+zwischen"
        r"|(?:(?:alle|meine|die)\s+)?(?:notiz(?:en)?|zitate?|seiten?|artikel|gedanken|infos?|alles|etwas)"
        r"\s+(?:über|ueber|zu|zum|zur|von|vom|für|fuer)"
        r"|(?:eine?\s+)?(?:einführung|einfuehrung)\s+in|(?:ein\s+)?überblick\s+über"
    ),
    "french": (
        r"(?:qu['’]\s*est[\s-]+ce\s+(?:que|qu['’])(?:\s*c['’]est\s+que)?|qui\s+(?:est|était|sont)|quelle?s?\s+(?:est|sont))"
        r"|comment\s+(?:fonctionnent?|marchent?|utiliser)|que\s+signifie(?:nt)?"
        r"|(?:définition|signification)\s+d(?:e|u|es|['’])"
        r"|(?:(?:mes|les)\s+)?(?:notes?|citations?|pages?|articles?)\s+(?:sur|de|à\s+propos\s+d(?:e|u|es|['’]))"
    ),
    "spanish": (
        r"¿?\s*(?:qué|que)\s+(?:es|son|significan?)|¿?\s*(?:quién|quien)\s+(?:es|era|fue)"
        r"|¿?\s*(?:cómo|como)\s+(?:funcionan?|usar)|(?:definición|significado)\s+de"
        r"|(?:(?:mis|las|los)\s+)?(?:notas?|citas?|páginas?|artículos?)\s+(?:sobre|de|acerca\s+de)"
    ),
}
_BEHIND = {
    "english": (
        r"works?|worked|means?|mean|about|stands?\s+for|explained|definition|meaning|explanation"
        r"|notes?|again|like|for|used\s+for|(?:note|page|article|file|document)"
    ),
    "german": (
        r"bedeutet|funktioniert|erklärt|heißt|heisst|definition|bedeutung|notiz(?:en)?|nochmal"
    ),
    "french": r"définition|signification|notes?|expliquée?s?",
    "spanish": r"definición|significado|notas?|explicad[oa]s?",
}
LANGUAGES = tuple(_BEFORE)


@lru_cache(maxsize=8)
def _frames(languages: tuple[str, ...]) -> tuple[re.Pattern[str], re.Pattern[str]]:
    known = [each for each in languages if each in _BEFORE]
    before = "|".join(f"(?:{_BEFORE[each]})(?:\\s+(?:{_ARTICLES[each]}))?" for each in known)
    articles = "|".join(_ARTICLES[each] for each in known)
    behind = "|".join(_BEHIND[each] for each in known)
    return (
        re.compile(rf"^\s*(?:{before}|{articles})\s+(?=\S)", re.IGNORECASE),
        re.compile(rf"(?<=\S)\s+(?:{behind})\s*[?!.]*\s*$", re.IGNORECASE),
    )


_MAX_FRAMES = 3  # tell me | what | is: more are nobody's question


@lru_cache(maxsize=256)
def without_frame(query: str, languages: tuple[str, ...]) -> tuple[str, ...]:
    """The query as typed, and what is left of it as question words are removed, one by one.

    A name may have such words itself (`What is art`, `How it works`), so all steps are given.
    """
    before, behind = _frames(tuple(language for language in LANGUAGES if language in languages))
    text = query.strip().rstrip("?!. ").lstrip("¿¡ ")
    steps = [text]
    asked = False
    for _ in range(_MAX_FRAMES):
        found = before.match(text)
        if not found:
            break
        text, asked = text[found.end() :], True
        steps.append(text)
    found = behind.search(text)
    if found and (asked or found.group().split()[0].casefold() not in ("for", "like", "about")):
        steps.append(text[: found.start()])
    return tuple(dict.fromkeys(step for step in steps if plain_words(step)))


# --- The languages of a vault ---

# Words that stand in most paragraphs of one language and in few of any other.
_COMMON = {
    "english": ("the", "and", "of", "with"),
    "german": ("und", "der", "nicht", "ist"),
    "french": ("les", "des", "est", "une"),
    "spanish": ("que", "los", "una", "del"),
    "italian": ("che", "della", "sono", "gli"),
    "portuguese": ("uma", "não", "com", "dos"),
    "dutch": ("het", "een", "niet", "van"),
    "swedish": ("och", "att", "det", "som"),
    "danish": ("og", "det", "ikke", "til"),
    "norwegian": ("og", "det", "ikke", "til"),
    "russian": ("и", "не", "что", "на"),
}
_MAIN_SHARE = 0.2  # of passages, on the average of these words


def vault_languages(shares: Callable[[str], float], stemming: str) -> tuple[str, ...]:
    """English, the language of `keyword.stemming`, and the commonest other one of the vault.

    `shares` says which share of the passages has a word. A vault needs no setting to be asked
    `was ist …`: German is known by how often it says "und".
    """
    found = dict.fromkeys(["english", *([stemming] if stemming != "none" else [])])
    means = {
        language: sum(map(shares, words)) / len(words)
        for language, words in _COMMON.items()
        if language not in found
    }
    other = max(means, key=lambda language: (means[language], language), default="")
    if other and means[other] >= _MAIN_SHARE:
        found[other] = None
    first = [stemming] if stemming in found else []
    return tuple(dict.fromkeys([*first, *found]))
