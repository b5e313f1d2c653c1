"""Laws of the catalogue: nothing is lost in it, and its history does not show."""

from __future__ import annotations

import tempfile
from contextlib import contextmanager
from dataclasses import replace
from datetime import date, datetime, timezone
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from store_builders import cut_by_line, dates, digest, file, link, look_up, note, put
from store_builders import passages as stored_passages

from ragvault.store.catalogue import Catalogue
from ragvault.store.notes import note_rows
from ragvault.text.spans import back, cut
from ragvault.types import File, Heading, Link, Note, Passage, Section

# Neither half a surrogate pair nor NUL: the walk and the readers of notes let none of them through.
words = st.text(st.sampled_from("abÄ\u0308é笔😀\n\"'/\\ "), max_size=8)
names = st.tuples(words).map(lambda parts: parts[0] + ".md")
langs = st.text(st.sampled_from("abÄé笔😀\"'/\\"), min_size=1, max_size=8)
tuples = st.lists(words, max_size=3).map(tuple)
numbers = st.integers(0, 10**6)
scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**18), 10**18),
    st.floats(allow_nan=False),
    words,
    st.dates(date(1, 1, 1)),
    st.datetimes(datetime(1, 1, 2), timezones=st.sampled_from([None, timezone.utc])),
)
values = st.recursive(  # all that frontmatter and Dataview fields can have
    scalars,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(words, inner)),
    max_leaves=6,
)


@contextmanager
def fresh():
    with tempfile.TemporaryDirectory() as folder, Catalogue.open(Path(folder), write=True) as made:
        yield made


@st.composite
def spans(draw, size):
    edges = sorted(draw(st.sets(st.integers(0, size), max_size=8)))
    return tuple(zip(edges[::2], edges[1::2], strict=False))


@st.composite
def notes(draw):
    text = draw(st.text(st.sampled_from("ab\n笔%"), max_size=40))
    headings = st.builds(Heading, words, st.integers(1, 6), numbers, numbers, tuples)
    kinds, forms = st.sampled_from(["link", "embed", "property"]), st.sampled_from(["wiki"])
    links = st.builds(Link, kinds, forms, words, tuples, words, numbers, numbers)
    return Note(
        draw(names),
        text,
        draw(numbers),
        *(draw(words), draw(words), draw(tuples), draw(tuples), draw(words)),
        *(draw(tuples), draw(words), draw(words), draw(tuples)),
        draw(st.dictionaries(words, values, max_size=4)),
        tuple(draw(st.lists(headings, max_size=3))),
        draw(st.dictionaries(words, numbers, max_size=3)),
        tuple(draw(st.lists(links, max_size=3))),
        draw(spans(len(text))),
        draw(tuples),
    )


@st.composite
def passages(draw, note):
    """Cut anywhere, with any overlap; now and then with a text the note does not hold."""
    found = []
    for i, (start, end) in enumerate(draw(spans(len(note.text)))):
        overlap = draw(st.integers(0, 9))
        said = cut(note.text, back(start, overlap, note.excluded), end, note.excluded)
        text = draw(st.one_of(st.just(said), words))
        has = draw(st.frozensets(st.sampled_from(["code", "table", "task"])))
        place = (draw(st.tuples(numbers, numbers)), draw(st.tuples(numbers, numbers)))
        kind, lang = draw(st.sampled_from(["prose", "code"])), draw(st.frozensets(langs))
        passage = Passage(
            i, i // 2, draw(tuples), kind, lang, has, start, end, *place, text, overlap
        )
        found.append(passage)
    return found


@given(st.data())
def test_what_is_put_is_what_is_read(data):
    given_note = data.draw(notes())
    given_passages = data.draw(passages(given_note))
    sections = st.builds(Section, st.none(), tuples, numbers, numbers, st.tuples(numbers, numbers))
    given_sections = [
        replace(section, ordinal=i)
        for i, section in enumerate(data.draw(st.lists(sections, max_size=3)))
    ]
    given_file = File(given_note.path, data.draw(words), data.draw(numbers), data.draw(numbers))
    hashes = [digest(passage.text) for passage in given_passages]
    read = {"file": given_file, "digest": b"d", "read_ns": 7}
    rows = note_rows(given_note, given_sections, given_passages, hashes, **read)

    with fresh() as catalogue:
        note_id = catalogue.put(rows, dates(), recipe="r")

        assert catalogue.note(given_note.path) == given_note
        for section in given_sections:
            assert catalogue.sections_near(note_id, section.ordinal)[section.ordinal] == section
        read = stored_passages(catalogue, given_note.path)
        assert [(p.text, p.headings, p.subheadings, p.kind) for p in read] == [
            (p.text, p.headings, p.subheadings, p.kind) for p in given_passages
        ]
        assert [(set(p.lang), set(p.has), p.hash) for p in read] == [
            (p.lang, p.has, key) for p, key in zip(given_passages, hashes, strict=True)
        ]
        places = catalogue.places([passage.id for passage in read])
        assert [(p.ordinal, p.section, p.lines, p.span, p.overlap) for p in places] == [
            (p.ordinal, p.section, p.lines, (p.start, p.end), p.overlap) for p in given_passages
        ]
        assert catalogue.stored(given_note.path).file == given_file
        assert catalogue.text(note_id) == given_note.text
        assert [found for found, _ in catalogue.outgoing(given_note.path)] == [*given_note.links]


PATHS = ["a.md", "b.md", "sub/a.md", "sub/C.md", "x/a.md", "sub/index.md", "index.markdown"]
LINES = ["#H", "#I", "one", "two", "three"]
NAMES = ["a", "B", "sub/a", "c.md", "index", "alias", "", "sub/", ".", "nowhere"]
paths = st.sampled_from(PATHS)
small_notes = st.builds(
    lambda path, lines, links, aliases, tags: note(
        path, "\n".join(lines), *links, aliases=aliases, tags=tags, properties={"k": list(tags)}
    ),
    paths,
    st.lists(st.sampled_from(LINES), max_size=5),
    st.lists(st.builds(link, st.sampled_from(NAMES), st.sampled_from(["H", "I"])), max_size=3),
    st.lists(st.sampled_from(["alias", "a", "x/C"]), max_size=2, unique=True).map(tuple),
    st.lists(st.sampled_from(["t", "T", "u"]), max_size=2).map(tuple),
)
steps = st.one_of(
    st.tuples(st.just("put"), small_notes, st.integers(1, 3)),
    st.tuples(st.just("move"), paths, paths),
    st.tuples(st.just("touch"), paths, st.integers(4, 6)),
    st.tuples(st.just("remove"), paths, st.none()),
    st.tuples(st.just("look up"), st.none(), st.none()),
)


def take(catalogue, state, step):
    """Do one step to the catalogue and to a dictionary: path -> (note, time)."""
    do, what, how = step
    if do == "put":
        put(catalogue, what, mtime_ns=how, at=float(how))
        state[what.path] = (what, how)
    elif do == "move" and what in state:
        moved, _ = state.pop(what)
        moved = replace(moved, path=how)
        put(catalogue, moved, mtime_ns=9, at=9.0, was=what)
        state[how] = (moved, 9)
    elif do == "touch" and what in state:
        catalogue.touch(file(what, how), dates(float(how)), indexed_ns=7)
        state[what] = (state[what][0], how)
    elif do == "remove":
        assert catalogue.remove(what) == (state.pop(what, None) is not None)
    elif do == "look up":
        look_up(catalogue)


def ids_of(catalogue, path):
    return catalogue.passage_ids_of(catalogue.note_id(path))


def texts_since(catalogue, revision):
    found = catalogue.passage_texts(catalogue.passages_since(revision))
    return {passage.id: passage.hash for passage in found}


def view(catalogue):
    """Everything a reader can see, without ids and revisions."""
    stored = [replace(s, id=0) for s in catalogue.stored_notes()]
    found = {s.file.path: s for s in stored}
    by_id = {s.id: s.file.path for s in catalogue.stored_notes()}
    ask = ("note", "outgoing", "incoming", "anchors")
    parts = {p: [getattr(catalogue, name)(p) for name in ask] for p in found}
    passages = {p: [c[2:] for c in stored_passages(catalogue, p)] for p in found}
    places = {p: sorted(c[2:] for c in catalogue.places(ids_of(catalogue, p))) for p in found}
    edges = [(by_id[e[0]], by_id[e[1]], *e[2:]) for e in catalogue.link_rows()]
    counts = replace(catalogue.counts(), bytes={}, revision=0)
    edges.sort(key=repr)
    return (
        found,
        parts,
        passages,
        places,
        edges,
        counts,
        [row[1:] for row in catalogue.names()],
        catalogue.files(),
        raw(catalogue),
    )


def raw(catalogue):
    """The tables that filters ask, and any row whose note is gone."""
    db = catalogue._db
    tags = "SELECT path, key, tag FROM tags JOIN notes ON id = note_id ORDER BY 1, 2"
    fields = "SELECT path, ordinal, key, text FROM fields JOIN notes ON id = note_id ORDER BY 1, 2"
    parts = ("bodies", "tags", "fields", "sections", "passages", "links", "waiting")
    orphans = [
        db.execute(f"SELECT * FROM {t} WHERE note_id NOT IN (SELECT id FROM notes)").fetchall()
        for t in parts
    ]
    return db.execute(tags).fetchall(), db.execute(fields).fetchall(), orphans


@given(st.lists(steps, max_size=14))
def test_any_history_ends_where_a_fresh_index_begins(history):
    state = {}
    with fresh() as edited, fresh() as scratch:
        for step in history:
            take(edited, state, step)
        for kept, at in state.values():
            put(scratch, kept, mtime_ns=at, at=float(at))
        look_up(edited)
        look_up(scratch)

        assert view(edited) == view(scratch)
        assert not any(raw(edited)[2])


@given(st.lists(steps, max_size=12))
def test_a_cache_catches_up_from_any_revision_and_a_kept_id_keeps_its_text(history):
    state, seen = {}, [(0, {})]
    with fresh() as catalogue:
        for step in history:
            take(catalogue, state, step)
            seen.append((catalogue.revision, texts_since(catalogue, 0)))
        now = seen[-1][1]
        for revision, cache in seen:
            assert all(cache[i] == now[i] for i in cache.keys() & now.keys())
            caught_up = cache | texts_since(catalogue, revision)
            for gone in catalogue.removed_since(revision):
                caught_up.pop(gone, None)
            assert caught_up == now


@given(small_notes, st.lists(st.sampled_from(LINES), max_size=5))
def test_a_keyword_cache_that_rereads_changed_notes_misses_nothing(first, lines):
    with fresh() as catalogue:
        put(catalogue, first)
        put(catalogue, note("other.md"))
        before = catalogue.revision
        second = replace(note(first.path, "\n".join(lines)), title="new")
        put(catalogue, second, **cut_by_line(second))

        assert [path for _, path in catalogue.notes_since(before)] == [first.path]


@given(values)
def test_the_date_of_a_note_and_its_properties_survive_together(value):
    with fresh() as catalogue:
        given_note = note("a.md", properties={"k": value})
        put(catalogue, given_note, at=2.5)

        assert catalogue.note("a.md").properties == {"k": value}
        assert catalogue.stored("a.md").dates == dates(2.5)
