"""Plain: the words of a note as somebody would type them, without markup and operators.

For probes only. Markdown is not parsed here: what is no plain sentence (code, tables, lists of
links) is left out, and one sentence more or less makes no exam better.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

WORDS = (6, 30)  # of a sentence that is typed
DENSE = (12, 80)  # letters of one in a script that writes no spaces

_LINK = re.compile(r"(?<!!)\[\[([^\[\]|#\n]+)(?:#[^\[\]|\n]*)?(?:\\?\|([^\[\]\n]*))?\]\]")
_FENCE = re.compile(r"^(```|~~~).*?^\1\s*$", re.M | re.S)
_COMMENT = re.compile(r"%%.*?%%|<!--.*?-->", re.S)
_MARKDOWN = re.compile(r"!?\[([^\[\]]*)\]\([^()\s]*(?:\s[^()]*)?\)")
_NOT_PROSE = re.compile(r"^\s*(?:[#|>]|[-*+]\s|\d+[.)]\s|!\[\[|:\s|\[\^|\$\$|={3,}|-{3,}|\S+::)")
_END = re.compile(r"(?<=[.!?])[\"'\u201d\u2019)\]*_]*\s+|(?<=[\u3002\uff01\uff1f])")
# What a query parser reads as more than a word; an apostrophe or hyphen inside one stays.
_OPERATORS = re.compile(r"[^\w\s'\u2019.\-\u0300-\u036f]+|(?<!\w)[-'.]+|[-'.]+(?!\w)|_{2,}")
_LOGIC = re.compile(r"\b(?:OR|AND|NOT)\b")
_DENSE_LETTER = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\u0e00-\u0e7f]")


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence as it is written, links and all."""

    written: str

    @property
    def text(self) -> str:
        """With the words of its links."""
        return _LINK.sub(lambda link: link[2] or link[1], self.written)

    def without_links(self) -> Iterator[tuple[str, str]]:
        """Each link's target, and the sentence with nothing in its place."""
        for link in _LINK.finditer(self.written):
            left = self.written[: link.start()] + " " + self.written[link.end() :]
            yield link[1].strip(), Sentence(left).text


def body(text: str, start: int = 0) -> str:
    """What a note says, without frontmatter, code and comments."""
    return _COMMENT.sub(" ", _FENCE.sub("", text[start:]))


def sentences(text: str) -> Iterator[Sentence]:
    """The sentences of its paragraphs that are neither short nor endless."""
    for paragraph in re.split(r"\n\s*\n", text):
        lines = paragraph.strip("\n").split("\n")
        if not lines[0].strip() or any(map(_NOT_PROSE.match, lines)) or lines[0][:4].isspace():
            continue
        for written in _END.split(" ".join(lines)):
            sentence = Sentence(written.strip())
            if is_sentence(query(sentence.text)):
                yield sentence


def links(text: str) -> list[str]:
    """What the wikilinks of a text call the notes they lead to."""
    return [link[1].strip() for link in _LINK.finditer(text)]


def query(text: str) -> str:
    """The words of a text, with nothing that a query parser takes for an operator."""
    text = _MARKDOWN.sub(r"\1", text)
    text = _OPERATORS.sub(" ", re.sub(r"https?://\S+", " ", text))
    return " ".join(_LOGIC.sub(lambda found: found[0].lower(), text).split())


def is_sentence(text: str) -> bool:
    """Neither a few words nor half a page."""
    if is_dense(text):
        return DENSE[0] <= len(text) <= DENSE[1]
    return WORDS[0] <= len(text.split()) <= WORDS[1]


def is_dense(text: str) -> bool:
    """Whether most of it is in a script without spaces, and more than a word."""
    return len(_DENSE_LETTER.findall(text)) * 2 > max(len(text), 3)


def says_something(text: str) -> bool:
    return sum(letter.isalnum() for letter in text) > 2 or is_dense(text)
