"""Any frontmatter is read, or left with a warning: it never costs the note."""

from __future__ import annotations

import datetime as dt

import pytest
from hypothesis import example, given

from ragvault.notes.frontmatter import MAX_DEPTH, MAX_VALUES, split
from ragvault.notes.read import decode
from tests.fuzz_kit import awkward_texts, time_limit

pytestmark = pytest.mark.slow

SEEDS = (
    "title: Bread\ntags: [a, b/c]\naliases:\n  - One\n  - 'Two: three'\n",
    "created: 2024-03-01T09:30:00+02:00\ndue: 2024-3-1\nyes: no\nat: 12:30\nn: 0x1F\nf: -1.5e3\n",
    "a: &x [1, 2]\nb: *x\nc: {d: *x, ? e : f}\n<<: *x\n",
    "text: |\n  one\n   two\n\nfolded: >-\n  three\n\n  four\nend: !!str 5\n",
    "link: \"[[Note#Heading|label]]\"\nnull: ~\nempty:\n\"quoted key\": 'it''s'\n",
    "a: &a [x, x]\nb: &b [*a, *a]\nc: &c [*b, *b]\nd: &d [*c, *c]\n",
)
PIECES = (
    *("a: ", "- ", "? ", ": ", "[", "]", "{", "}", ", ", "&a ", "*a ", "!!str ", "!x ", "|", ">"),
    *("'", '"', "#", "---\n", "...\n", "%YAML 1.2\n", "\n  ", "~", "null", "2024-02-30", ".inf"),
    *("9" * 50, "1e999", "0x", "0o8", "\\u", "\\x0", "@", "`", "<<: ", "1:2", "key:\n"),
)


def plain(value: object) -> bool:
    """Whether a value is one that the index can hold."""
    if isinstance(value, dict):
        return all(isinstance(key, str) and plain(inner) for key, inner in value.items())
    if isinstance(value, list):
        return all(map(plain, value))
    return value is None or isinstance(value, str | int | float | dt.date | dt.datetime)


def depth(value: object) -> int:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return 1 + max(map(depth, inner), default=0)


@given(awkward_texts(SEEDS, PIECES))
@example("- " * 3_000)
@example("? " * 3_000)
@example("a: " + "9" * 5_000 + "\n")
@example("a: 9999-12-31T23:59:59-23:59\n")
def test_frontmatter(source):
    text, _, _ = decode(f"---\n{source}---\nbody\n".encode("utf-8", "surrogatepass"))
    with time_limit():
        front = split(text)

    assert 0 <= front.body <= len(text)
    assert plain(front.properties)
    assert depth(front.properties) <= MAX_DEPTH + 1
    assert len(front.properties) <= MAX_VALUES
    assert not (front.properties and front.warnings)
