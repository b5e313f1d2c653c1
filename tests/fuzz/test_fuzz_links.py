"""Any link of any note resolves to a note of the vault, or to none."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ragvault.config import settings as config
from ragvault.notes.links import Resolver
from ragvault.notes.parse import parse
from ragvault.types import Heading, Link
from tests.fuzz_kit import awkward_texts, time_limit

pytestmark = pytest.mark.slow

SEEDS = (
    "[[Note]] [[folder/Note.md#One#Two|label]] ![[image.png|100]] [[#^block]] [[Alias]]",
    "[text](../folder/Note.md#a-slug) [t](<a b.md>) ![i](x.png?y#z) [s](http://a.b) [m](tel:1)",
    "[[label|Target]] [[dendron://vault/Note]] [[ $a == b ]] [[Node.js]] [[a\\|b]] [[Straße]]",
    "[[../Note]] [[./folder]] [[/Note]] [[folder/]] [[index]] [[Note#Heading that is not there]]",
)
PIECES = (
    *(
        "[[",
        "]]",
        "![[",
        "|",
        "\\|",
        "#",
        "#^",
        "^id",
        "/",
        "//",
        "../",
        "./",
        ".",
        "..",
        ".md",
        ".MD",
    ),
    *(
        "Note",
        "note",
        "folder",
        "folder/Note",
        "Alias",
        "index",
        "README",
        "One",
        "Two",
        "a-slug-1",
    ),
    *(
        "[",
        "](",
        ")",
        "<",
        ">",
        "%20",
        "%",
        "%zz",
        "%c3",
        "?",
        "((",
        "dendron://",
        "http:",
        "C:\\a",
    ),
)
HEADINGS = tuple(
    Heading(text, 2, number, 10 * number, path)
    for number, (text, path) in enumerate(
        [("One", ("One",)), ("Two", ("One", "Two")), ("What's new?", ("What's new?",)), ("", ("",))]
    )
)
names = st.lists(st.sampled_from([*PIECES, "É", "E\u0301", "ß", "a b"]), min_size=1, max_size=4)


@given(
    awkward_texts(SEEDS, PIECES),
    st.dictionaries(names.map("".join), names.map("".join), max_size=6),  # path to alias
    st.sampled_from(["target-first", "label-first"]),
)
@example("[[" + "../" * 3_000 + "Note]]", {}, "target-first")
@example("[a](" + "a/../" * 2_000 + "Note)", {}, "target-first")
@example("[[" + "#One" * 3_000 + "]]", {}, "target-first")
def test_links(text, more, order):
    known = ["Note.md", "folder/Note.md", "folder/index.md", "deep/er/Note.md", "Straße.md"]
    notes = [
        SimpleNamespace(path=path, aliases=aliases)
        for path, *aliases in {**dict.fromkeys(known, "Alias"), **more}.items()
    ]
    paths = {note.path for note in notes}
    with time_limit():
        plain = text.encode("utf-8", "replace").decode()
        note = parse("folder/a.md", plain, config.Parse(), config.Links(order=order))
        resolver = Resolver(notes, lambda path: (HEADINGS, {"id": 3}))
        typed = Link("link", "wiki", text, (text,), "", 0, 0)
        targets = [resolver.resolve("folder/Note.md", link) for link in (*note.links, typed)]

    for target in targets:
        assert target.path is None or target.path in paths
        assert (target.path is None) == (target.status == "unresolved")
        assert set(target.others) <= paths - {target.path}
