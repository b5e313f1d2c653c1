"""Any text is a note, and its passages lie inside it."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ragvault.config import settings as config
from ragvault.notes.chunk import chunk, embedding_text
from ragvault.notes.parse import parse
from ragvault.notes.read import decode
from tests.fuzz_kit import awkward_texts, time_limit

pytestmark = pytest.mark.slow

SEEDS = (
    "# One\n\nSome text with *stress*, `code` and [[A link#There|label]].\n\n## Two\n\n- [ ] a\n",
    "> [!note]+ Title\n> quoted\n> > deeper\n\n| a | b |\n|---|---|\n| c | d\\|e |\n\n^block-id\n",
    "```python\ndef f():\n    return '```'\n```\n\n~~~\nx\n~~~\n\n    indented\n\nk:: v\n(k:: v)\n",
    "Text[^1] and ![alt](a%20b.png \"t\") <a href='x'>y</a> %%h%% <!-- c --> $$m$$ ==h== #t/u\n"
    "\n[^1]: A note.\n\n[ref]: <a b> 'c'\n\nUnderlined\n===\n\n***\n1) one\n   2) two\n",
    "---\ntags: [x]\n---\n# T\n\n"
    + "A sentence of some words. " * 40
    + "\n\n<div>\n\n*in*\n\n</div>\n",
    "---\nexcalidraw-plugin: parsed\n---\n# Text Elements\nBox ^abc\n%%\n# Drawing\n```\n{}\n```\n",
)
PIECES = (
    *(
        "# ",
        "## ",
        "> ",
        "> [!note] ",
        "- ",
        "- [ ] ",
        "1. ",
        "```",
        "~~~",
        "    ",
        "|",
        "|-|",
        "\n\n",
    ),
    *(
        "[[",
        "]]",
        "![[",
        "[",
        "](",
        ")",
        "<",
        ">",
        "<!--",
        "-->",
        "%%",
        "$$",
        "$",
        "==",
        "*",
        "**",
        "_",
    ),
    *(
        "`",
        "``",
        "\\",
        "&amp;",
        "&#0;",
        "&#x110000;",
        "^id",
        "[^1]",
        "[^1]: ",
        "#tag",
        "a:: b",
        "[k:: v]",
    ),
    *("---\n", "===\n", "***\n", "<div>", "</div>", "http://a.b/c?d#e", "a. ", "word ", "A" * 400),
)


SMALL = config.Chunk(
    parent_min=60, parent_max=120, child_min=10, child_target=40, child_max=80, overlap=15
)


@given(awkward_texts(SEEDS, PIECES), st.sampled_from([config.Chunk(), SMALL]))
@example("\r", SMALL)
@example("[[" * 3_000 + "]]" * 3_000, SMALL)
def test_markdown(written, sizes):
    text, encoding, _ = decode(written.encode("utf-8", "surrogatepass"))
    with time_limit():
        note = parse("folder/a.md", text, config.Parse(), config.Links(), encoding=encoding)
        sections, passages = chunk(note, sizes)
        embedded = [embedding_text(passage) for passage in passages]

    assert all(0 <= each.start <= each.end <= len(note.text) for each in (*sections, *passages))
    assert [each.ordinal for each in passages] == list(range(len(passages)))
    assert all(embedded)
    assert all(0 <= link.start <= len(note.text) for link in note.links)
