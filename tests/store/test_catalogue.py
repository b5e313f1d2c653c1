"""The catalogue: what was put is what is read, and a change touches no more than it must."""

from __future__ import annotations

from dataclasses import replace

import pytest
from store_builders import cut_by_line, dates, file, link, look_up, move, note, passages, put

from ragvault.errors import IndexUnusable
from ragvault.store.catalogue import Catalogue
from ragvault.store.database import Facts
from ragvault.store.schema import FORMAT, compress
from ragvault.types import Date, Dates, File, Head, Skipped, Target


@pytest.fixture
def catalogue(tmp_path):
    with Catalogue.open(tmp_path, write=True) as opened:
        yield opened


def ids(catalogue, path="a.md"):
    return catalogue.passage_ids_of(catalogue.note_id(path))


def rows(catalogue, query):
    return catalogue._db.execute(query).fetchall()


def test_a_file_is_seen_as_it_was_put(catalogue):
    put(catalogue, note("a.md"), mtime_ns=5)
    (seen,) = catalogue.files().values()
    assert (seen.size, seen.mtime_ns, seen.indexed_ns, seen.recipe) == (10, 5, 7, "r1")


def test_a_time_centuries_away_is_stored(catalogue):
    put(catalogue, note("a.md"), mtime_ns=2**70)
    assert catalogue.files()["a.md"].mtime_ns == 2**63 - 1


def test_files_that_were_written_within_minutes_were_copied(catalogue):
    assert catalogue.copied() is None
    minute = 60_000_000_000
    put(catalogue, note("a.md"), mtime_ns=100 * minute)
    assert catalogue.copied() is None  # one note says nothing
    put(catalogue, note("b.md"), mtime_ns=105 * minute)
    low, high = catalogue.copied()
    assert low <= 6000 < 6300 <= high
    put(catalogue, note("c.md"), mtime_ns=9000 * minute)  # edited later
    low, high = catalogue.copied()
    assert high < 9000 * 60
    put(catalogue, note("d.md"), mtime_ns=2**70)
    assert catalogue.copied() is None  # no longer most of them


def test_a_note_that_is_not_there_is_a_key_error(catalogue):
    for ask in (catalogue.note, catalogue.stored, catalogue.anchors):
        with pytest.raises(KeyError):
            ask("a.md")


def test_chunks_without_their_hashes_are_refused_and_nothing_is_stored(catalogue):
    with pytest.raises(ValueError, match="shorter"):
        put(catalogue, note("a.md"), hashes=[])
    assert catalogue.files() == {}
    assert catalogue.revision == 0


def test_an_edit_changes_only_the_passage_it_touches(catalogue):
    put(catalogue, note("a.md", "one\ntwo\nthree"))
    one, two, three = ids(catalogue)

    put(catalogue, note("a.md", "one\nTWO\nthree"))

    kept_one, new, kept_three = ids(catalogue)
    assert (kept_one, kept_three) == (one, three)
    assert catalogue.removed_since(1) == [two]
    assert catalogue.passages_since(1) == [new]


def test_a_passage_keeps_its_id_when_lines_come_before_it(catalogue):
    put(catalogue, note("a.md", "one\ntwo"))
    before = ids(catalogue)
    put(catalogue, note("a.md", "new\none\ntwo"))

    assert ids(catalogue)[1:] == before
    assert [passage.text for passage in passages(catalogue, "a.md")] == ["new", "one", "two"]


def test_of_equal_passages_the_first_keeps_the_first_id(catalogue):
    put(catalogue, note("a.md", "same\nsame\nsame"))
    before = ids(catalogue)
    put(catalogue, note("a.md", "same\nsame"))
    assert ids(catalogue) == before[:2]


CHANGES = [
    {"kind": "code"},
    {"lang": frozenset({"sh"})},
    {"has": frozenset({"code"})},
    {"headings": ("H",)},
]


@pytest.mark.parametrize("change", CHANGES)
def test_a_passage_of_another_kind_or_place_is_another_passage(catalogue, change):
    first = note("a.md", "one")
    put(catalogue, first)
    before = ids(catalogue)
    put(catalogue, first, passages=[replace(c, **change) for c in cut_by_line(first)["passages"]])
    assert set(ids(catalogue)).isdisjoint(before)


def test_an_id_is_never_given_again(catalogue):
    put(catalogue, note("a.md"))
    before = ids(catalogue)
    catalogue.remove("a.md")
    put(catalogue, note("a.md"))
    assert min(ids(catalogue)) > max(before)


def test_a_move_keeps_every_id_and_adds_nothing_to_embed(catalogue):
    note_id = put(catalogue, note("a.md"))
    before = ids(catalogue)

    move(catalogue, "a.md", "sub/b.md")

    assert catalogue.note_id("sub/b.md") == note_id
    assert ids(catalogue, "sub/b.md") == before
    assert catalogue.passages_since(1) == []
    assert catalogue.removed_since(1) == []
    assert catalogue.notes_since(1) == [(note_id, "sub/b.md")]
    assert catalogue.note("sub/b.md").path == "sub/b.md"


def test_a_move_over_another_note_removes_that_one(catalogue):
    put(catalogue, note("a.md", "mine"))
    put(catalogue, note("b.md", "theirs"))
    theirs = ids(catalogue, "b.md")

    move(catalogue, "a.md", "b.md")

    assert list(catalogue.files()) == ["b.md"]
    assert catalogue.note("b.md").text == "mine"
    assert catalogue.removed_since(0) == theirs


def test_a_note_moved_and_changed_at_once_keeps_what_did_not_change(catalogue):
    note_id = put(catalogue, note("a.md", "one\ntwo"))
    before = ids(catalogue)

    assert put(catalogue, note("b.md", "one\n2"), was="a.md") == note_id

    assert ids(catalogue, "b.md")[0] == before[0]
    assert catalogue.revision == 2
    assert list(catalogue.files()) == ["b.md"]


def test_moving_or_touching_what_is_not_there_changes_nothing(catalogue):
    with pytest.raises(KeyError):
        put(catalogue, note("b.md"), was="a.md")
    with pytest.raises(KeyError):
        catalogue.touch(file("a.md"), dates(), indexed_ns=7)
    assert catalogue.revision == 0


def test_a_touch_changes_the_stat_and_the_dates_and_no_cache(catalogue):
    put(catalogue, note("a.md"))
    now = Dates(Date(6.0, "git"), 5.0, 6.0)
    catalogue.touch(File("a.md", "A.md", 11, 9), now, indexed_ns=7)

    stored = catalogue.stored("a.md")
    assert stored.file == File("a.md", "A.md", 11, 9)
    assert stored.dates == now
    assert catalogue.notes_since(1) == []
    assert catalogue.revision == 2


def test_every_change_is_one_revision(catalogue):
    put(catalogue, note("a.md"))
    catalogue.touch(file("a.md"), dates(), indexed_ns=7)
    move(catalogue, "a.md", "b.md")
    catalogue.remove("b.md")
    assert catalogue.revision == 4


def test_removing_what_is_not_there_is_no_change(catalogue):
    assert catalogue.remove("a.md") is False
    assert catalogue.revision == 0


def test_a_removed_note_leaves_no_row_behind(catalogue):
    full = note("a.md", "#H\ntwo", link("b"), tags=("t",), properties={"k": [1, 2]})
    put(catalogue, full)
    look_up(catalogue)
    catalogue.remove("a.md")
    look_up(catalogue)

    tables = (
        "notes",
        "bodies",
        "tags",
        "fields",
        "sections",
        "passages",
        "links",
        "waiting",
        "dirty",
    )
    assert {table: rows(catalogue, f"SELECT * FROM {table}") for table in tables} == {
        table: [] for table in tables
    }


def test_a_link_waits_until_it_is_looked_up(catalogue):
    put(catalogue, note("a.md", "one", link("b")))
    assert catalogue.outgoing("a.md") == [(link("b"), None)]

    assert look_up(catalogue) == 1

    assert catalogue.outgoing("a.md") == [(link("b"), Target("unresolved"))]
    assert list(catalogue.links_to_resolve()) == []


def test_a_new_note_is_found_by_the_links_that_named_it_before(catalogue):
    put(catalogue, note("a.md", "one", link("Sub/New.md"), link("Ünïcode")))
    look_up(catalogue)
    put(catalogue, note("sub/new.md"))
    put(catalogue, note("u\u0308ni\u0308code.md"))

    assert look_up(catalogue) == 2
    assert [target.status for _, target in catalogue.outgoing("a.md")] == ["resolved"] * 2


def test_links_that_could_have_meant_a_removed_note_are_looked_up_again(catalogue):
    for path in ("x/b.md", "yy/b.md"):
        put(catalogue, note(path))
    put(catalogue, note("a.md", "one", link("b")))
    look_up(catalogue)
    assert catalogue.outgoing("a.md")[0][1].others == ("yy/b.md",)

    catalogue.remove("yy/b.md")
    look_up(catalogue)

    assert catalogue.outgoing("a.md")[0][1] == Target("resolved", "x/b.md", "name")


def test_a_link_waits_when_its_note_is_removed_whatever_rule_led_there(catalogue):
    put(catalogue, note("a.md", "one", link("a word that is not the name")))
    put(catalogue, note("b.md"))
    ((link_id, _, _),) = catalogue.links_to_resolve()
    catalogue.set_targets([(link_id, Target("resolved", "b.md", "name"))])

    catalogue.remove("b.md")

    assert [waiting for waiting, _, _ in catalogue.links_to_resolve()] == [link_id]


@pytest.mark.parametrize(
    ("source", "target", "path"),
    [
        ("a.md", "Guide/", "guide/index.md"),
        ("x/a.md", "../guide", "guide/index.md"),
        ("guide/a.md", ".", "guide/index.md"),
        ("guide/sub/a.md", "..", "guide/index.md"),
        ("a.md", "/", "index.md"),
    ],
)
def test_a_link_to_a_folder_is_looked_up_again_when_a_note_comes_into_it(
    catalogue, source, target, path
):
    put(catalogue, note(source, "one", link(target)))
    look_up(catalogue)
    put(catalogue, note(path))
    assert [name for _, name, _ in catalogue.links_to_resolve()] == [source]


@pytest.mark.parametrize("path", ["b.md", "index.md", "sub/index.md"])
def test_a_new_note_does_not_look_up_links_into_their_own_notes(catalogue, path):
    put(catalogue, note("a.md", "#H", link("", "H")))
    look_up(catalogue)
    put(catalogue, note(path))
    assert list(catalogue.links_to_resolve()) == []


def test_with_another_recipe_a_note_may_be_what_a_broken_link_means(catalogue):
    put(catalogue, note("Why%3F.md"))
    put(catalogue, note("a.md", "one", link("Why?")))
    ((link_id, _, _),) = catalogue.links_to_resolve()
    catalogue.set_targets([(link_id, Target("unresolved"))])

    put(catalogue, note("Why%3F.md"))
    assert list(catalogue.links_to_resolve()) == []
    put(catalogue, note("Why%3F.md"), recipe="r2")
    assert [waiting for waiting, _, _ in catalogue.links_to_resolve()] == [link_id]


def test_editing_a_note_does_not_look_up_the_links_to_it_again(catalogue):
    put(catalogue, note("hub.md", "#H\ntext"))
    put(catalogue, note("a.md", "one", link("hub", "H")))
    look_up(catalogue)
    put(catalogue, note("hub.md", "#H\nother text"))
    assert look_up(catalogue) == 0


def test_answers_that_change_nothing_are_no_revision(catalogue):
    put(catalogue, note("a.md", "one", link("b")))
    look_up(catalogue)
    put(catalogue, note("x/c.md"))
    put(catalogue, note("y/b.markdown"))
    catalogue.remove("y/b.markdown")
    before = catalogue.revision

    assert look_up(catalogue) == 1
    assert catalogue.revision == before


def test_a_target_that_is_no_note_is_refused_and_the_links_still_wait(catalogue):
    put(catalogue, note("a.md", "one", link("b")))
    ((link_id, _, _),) = catalogue.links_to_resolve()
    with pytest.raises(KeyError):
        catalogue.set_targets([(link_id, Target("resolved", "b.md", "name"))])
    assert look_up(catalogue) == 1


def test_targets_may_be_made_while_they_are_stored(catalogue):
    for i in range(30):
        put(catalogue, note(f"{i}.md", "one", *(link(str(i + 1)) for _ in range(400))))

    waiting = catalogue.links_to_resolve()
    catalogue.set_targets((link_id, Target("unresolved")) for link_id, _, _ in waiting)

    assert catalogue.counts().links == {"unresolved": 12_000}


def test_link_rows_are_the_links_between_two_notes(catalogue):
    a = put(catalogue, note("a.md", "one", link("b"), link("b", start=9), link("nowhere")))
    b = put(catalogue, note("b.md"))
    look_up(catalogue)
    assert catalogue.link_rows() == [(a, b, "link", 0, None)] * 2


def test_tags_are_kept_without_case_and_properties_by_value(catalogue):
    fields = {"Status": "Draft", "n": 3, "day": "2024-01-02", "list": ["A", True], "empty": []}
    put(catalogue, note("a.md", tags=("Work/Home", "work/home"), properties=fields))

    assert rows(catalogue, "SELECT key, tag FROM tags") == [("work/home", "Work/Home")]
    assert rows(catalogue, "SELECT key, text, number, date FROM fields ORDER BY ordinal") == [
        ("status", "draft", None, None),
        ("n", "3", 3.0, None),
        ("day", "2024-01-02", None, 1704153600.0),
        ("list", "a", None, None),
        ("list", "true", 1.0, None),
        ("empty", None, None, None),
    ]


def test_passages_are_found_by_id_and_gone_ones_are_absent(catalogue):
    for i in range(120):
        put(catalogue, note(f"{i}.md", "\n".join(f"{i} {line}" for line in range(10))))
    wanted = [i for path in catalogue.files() for i in ids(catalogue, path)]

    assert [place.id for place in catalogue.places([*wanted, 10**9])] == sorted(wanted)
    texts = {passage.id: passage.text for passage in catalogue.passage_texts([*wanted, 10**9])}
    assert texts.keys() == set(wanted)
    assert texts[wanted[0]] == "0 0"


def test_a_section_is_read_without_what_is_not_indexed(catalogue):
    note_id = put(catalogue, note("a.md", "on%e\ntwo", excluded=((2, 3),)))
    assert catalogue.unit_text(note_id, 0) == "one\ntwo"
    assert catalogue.text(note_id) == "on%e\ntwo"


def test_skipped_files_are_replaced_whole(catalogue):
    catalogue.set_skipped([Skipped("x.md", "too big"), Skipped("a", "binary", "NUL at 3")])
    catalogue.set_skipped([Skipped("b", "binary", "NUL at 3")])
    assert catalogue.skipped() == [Skipped("b", "binary", "NUL at 3")]


def test_counts_say_what_is_there(catalogue):
    put(catalogue, note("a.md", "one\ntwo\nthree", link("b"), warnings=("odd",)))
    put(catalogue, note("b.md", "four", link("nowhere")))
    look_up(catalogue)
    put(catalogue, note("c.md", "five", link("x")))
    catalogue.set_skipped([Skipped("x.md", "too big"), Skipped("y.md", "too big")])
    catalogue.set_facts(last_run={"took": 1.5})

    counts = catalogue.counts()

    assert (counts.notes, counts.sections, counts.passages, counts.characters) == (3, 4, 5, 21)
    assert counts.links == {"resolved": 1, "unresolved": 1, "waiting": 1}
    assert (counts.skipped, counts.warned) == ({"too big": 2}, 1)
    assert (counts.last_run, counts.format) == ({"took": 1.5}, FORMAT)
    assert counts.revision == catalogue.revision
    assert counts.bytes["catalogue.sqlite"] > 0
    assert catalogue.warnings() == [("a.md", ("odd",))]


def test_a_batch_keeps_what_was_finished_when_one_change_fails(catalogue):
    with catalogue.batch():
        put(catalogue, note("a.md"))
        with pytest.raises(ValueError, match="shorter"):
            put(catalogue, note("b.md"), hashes=[])
        put(catalogue, note("c.md"))

    assert sorted(catalogue.files()) == ["a.md", "c.md"]
    assert catalogue.revision == 2


def test_a_batch_that_ends_early_keeps_what_was_finished(tmp_path, catalogue):
    def interrupted():
        with catalogue.batch():
            put(catalogue, note("a.md"))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    with Catalogue.open(tmp_path) as reader:
        assert list(reader.files()) == ["a.md"]


def test_a_batch_is_seen_by_others_when_it_ends(tmp_path, catalogue):
    with Catalogue.open(tmp_path) as reader:
        with catalogue.batch():
            put(catalogue, note("a.md"))
            assert list(catalogue.files()) == ["a.md"]
            assert reader.files() == {}
        assert list(reader.files()) == ["a.md"]


def test_forgotten_tombstones_send_a_cache_to_be_made_again(catalogue):
    put(catalogue, note("a.md"))
    put(catalogue, note("b.md"))
    catalogue.remove("a.md")
    assert catalogue.can_catch_up(1)

    catalogue.drop_removals(3)

    assert not catalogue.can_catch_up(2)
    assert catalogue.can_catch_up(3)
    assert catalogue.removed_since(3) == []
    with pytest.raises(ValueError, match="no longer known"):
        catalogue.removed_since(2)


def test_a_cache_of_the_future_cannot_catch_up(catalogue):
    put(catalogue, note("a.md"))
    assert not catalogue.can_catch_up(2)


def test_a_catalogue_made_anew_is_another_one(tmp_path, catalogue):
    put(catalogue, note("a.md"))
    identity = catalogue.identity
    catalogue.close()
    (tmp_path / "catalogue.sqlite").unlink()
    with Catalogue.open(tmp_path, write=True) as again:
        assert (again.files(), again.revision) == ({}, 0)
        assert again.identity != identity


def test_after_compacting_no_byte_of_a_removed_note_is_left(tmp_path, catalogue):
    for i in range(50):
        put(catalogue, note(f"{i}.md", f"line {i}\n" * 20, link(f"n{i}")))
    secret = note("hidden-path.md", "a secret", link("hidden-link"), title="hidden-title")
    put(catalogue, secret, recipe="hidden-recipe")
    look_up(catalogue)
    catalogue.remove("hidden-path.md")
    look_up(catalogue)
    assert {b"hidden", compress("a secret")} <= found(tmp_path, b"hidden", compress("a secret"))

    catalogue.vacuum()

    assert found(tmp_path, b"hidden", compress("a secret"), b"n49") == {b"n49"}


def found(folder, *needles):
    contents = b"".join(path.read_bytes() for path in folder.iterdir())
    return {needle for needle in needles if needle in contents}


def test_compacting_says_when_a_reader_still_holds_deleted_text(tmp_path, catalogue):
    put(catalogue, note("a.md"))
    catalogue._db.execute("PRAGMA busy_timeout = 0")
    with Catalogue.open(tmp_path) as reader, reader.snapshot():
        assert list(reader.files()) == ["a.md"]
        catalogue.remove("a.md")
        with pytest.raises(IndexUnusable, match="still reads"):
            catalogue.vacuum()
    catalogue.vacuum()


def test_names_are_what_notes_are_called(catalogue):
    first = put(catalogue, note("sub/B.c.md", aliases=("x", "y"), title="B"))
    second = put(catalogue, note("a.md"))
    assert catalogue.names() == [
        Head(second, "a.md", "", ()),
        Head(first, "sub/B.c.md", "B", ("x", "y")),
    ]


def test_links_that_mean_no_note_or_several_are_listed_by_place(catalogue):
    put(catalogue, note("b.md", "one", link("c"), link("nowhere"), link("")))
    put(catalogue, note("x/c.md"))
    put(catalogue, note("y/c.md"))
    look_up(catalogue)
    put(catalogue, note("a.md", "one", link("waits")))

    assert [
        (path, link.line, link.target, target.status, target.others)
        for path, link, target in catalogue.dangling()
    ] == [
        ("b.md", 1, "c", "ambiguous", ("y/c.md",)),
        ("b.md", 1, "nowhere", "unresolved", ()),
    ]


def test_facts_are_stored_one_by_one_and_have_no_value_before(tmp_path, catalogue):
    assert catalogue.facts == Facts()
    catalogue.set_facts(last_run={"took": 1.5}, forgotten=frozenset({"a"}))
    catalogue.set_facts(models={"full": "m"}, unusable={"x.md": (1, 2, 3, 4)})
    with Catalogue.open(tmp_path) as reader:
        assert reader.facts == Facts(
            last_run={"took": 1.5},
            forgotten=frozenset({"a"}),
            models={"full": "m"},
            unusable={"x.md": (1, 2, 3, 4)},
        )
    assert catalogue.revision == 0
