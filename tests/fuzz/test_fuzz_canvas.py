"""Any .canvas file is a note, and its lines are lines of the file."""

from __future__ import annotations

import json

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
    '{"nodes":[\n{"id":"a","type":"text","text":"# One\\n[[Two]] #tag","x":0,"y":0},\n'
    '{"id":"b","type":"file","file":"Two.md","subpath":"#H","x":9,"y":9,"width":5,"height":5},\n'
    '{"id":"g","type":"group","label":"All","x":-9,"y":-9,"width":99,"height":99}],\n'
    '"edges":[\n{"id":"e","fromNode":"a","toNode":"b","label":"leads to"}]}\n',
    '{"nodes":[{"id":"l","type":"link","url":"https://a.b/c d"},{"type":"text","text":"```x"}]}',
)
PIECES = (
    *('{"nodes":[', "]}", '"edges":[', '{"id":"a",', '"type":"text",', '"text":"', '"},', "null"),
    *(
        '"type":"group","label":"',
        '"type":"file","file":"',
        '"x":',
        "1e999",
        "-0",
        "NaN",
        "[[",
        "{",
    ),
    *(
        "\\ud800",
        "\\u0000",
        "\\n",
        "\\\\",
        '\\"',
        "%%",
        "<!--",
        "```",
        "---",
        "]]",
        "true",
        "9" * 5000,
    ),
)
cards = st.dictionaries(
    st.sampled_from(["id", "type", "text", "file", "label", "url", "x", "y", "width", "subpath"]),
    st.one_of(
        st.sampled_from(["text", "file", "group", "link", "a", "b"]),
        st.text(max_size=20),
        st.floats(),
        st.none(),
    ),
)
canvases = st.fixed_dictionaries(
    {"nodes": st.lists(cards, max_size=8), "edges": st.lists(cards, max_size=3)}
).map(lambda canvas: json.dumps(canvas, indent=1))


@given(awkward_texts(SEEDS, PIECES) | canvases)
@example("[" * 100_000)
@example('{"nodes":' * 50_000)
@example('{"nodes":[' + ",".join(['{"type":"group","label":"g"}'] * 300) + "]}")
def test_canvas(source):
    text, encoding, _ = decode(source.encode("utf-8", "surrogatepass"))
    with time_limit():
        note = parse("a.canvas", text, config.Parse(), config.Links(), encoding=encoding)
        sections, passages = chunk(note, config.Chunk())

    lines = text.count("\n") + 1
    note.text.encode()  # can be stored
    assert note.title == "a"
    assert all(1 <= link.line <= lines for link in note.links)
    assert all(1 <= heading.line <= lines for heading in note.headings)
    assert all(1 <= a <= b <= lines for a, b in (part.lines for part in (*sections, *passages)))
    assert all(embedding_text(passage).strip() for passage in passages)
