"""Diff: the laws of comparing what is known with what is there."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragvault.notes.diff import TICK_NS, Changes, diff, is_doubtful
from ragvault.notes.walk import Walked
from ragvault.types import File, IndexedFile, Skipped

LONG_AGO = 10**18
NOW = LONG_AGO + 10**15


class Disk:
    """Files by path, each (content, time), and how often each was hashed."""

    def __init__(self, files):
        self.files = files
        self.asked = []

    def walked(self, *unreadable):
        files = (
            File(path, path, len(content), mtime) for path, (content, mtime) in self.files.items()
        )
        return Walked(
            tuple(sorted(files, key=lambda file: file.path)), unreadable=frozenset(unreadable)
        )

    def digest(self, file):
        self.asked.append(file.path)
        return self.files[file.path][0]


def knows(files, *, indexed_ns=NOW):
    return {
        path: IndexedFile(len(content), mtime, 0, 0, indexed_ns, content)
        for path, (content, mtime) in files.items()
    }


def compare(before, after, *unreadable, indexed_ns=NOW):
    disk = Disk(after)
    changes = diff(knows(before, indexed_ns=indexed_ns), disk.walked(*unreadable), disk.digest)
    return changes, disk


def paths(files):
    return [file.path for file in files]


def test_an_unchanged_vault_is_confirmed_without_reading_it():
    files = {"a.md": (b"a", LONG_AGO), "b.md": (b"b", LONG_AGO)}
    changes, disk = compare(files, files)
    assert changes == Changes(unchanged=2)
    assert not changes
    assert disk.asked == []


def test_a_new_vault_is_added_without_hashing_it_first():
    changes, disk = compare({}, {"a.md": (b"a", LONG_AGO)})
    assert paths(changes.added) == ["a.md"]
    assert disk.asked == []


def test_another_content_is_a_change_and_another_time_only_a_touch():
    before = {"a.md": (b"a", LONG_AGO), "b.md": (b"b", LONG_AGO)}
    changes, _ = compare(before, {"a.md": (b"A", LONG_AGO + 1), "b.md": (b"b", LONG_AGO + 1)})
    assert paths(changes.changed) == ["a.md"]
    assert paths(changes.touched) == ["b.md"]


def test_a_file_of_the_old_time_and_another_size_is_compared():
    changes, _ = compare({"a.md": (b"a", LONG_AGO)}, {"a.md": (b"longer", LONG_AGO)})
    assert paths(changes.changed) == ["a.md"]


def test_a_file_written_as_it_was_indexed_is_compared_once_more():
    before, after = {"a.md": (b"a", NOW)}, {"a.md": (b"A", NOW)}
    for indexed in (NOW, NOW + TICK_NS, NOW - TICK_NS):
        changes, _ = compare(before, after, indexed_ns=indexed)
        assert paths(changes.changed) == ["a.md"]
        same, _ = compare(before, before, indexed_ns=indexed)
        assert paths(same.touched) == ["a.md"]  # so that the caller records a later moment


def test_a_time_in_the_future_does_not_mean_reading_the_file_for_ever():
    files = {"a.md": (b"a", NOW + 10**15)}
    _, disk = compare(files, files)
    assert disk.asked == []


def test_a_renamed_note_is_moved_and_not_read_anew():
    changes, _ = compare({"a.md": (b"x", LONG_AGO)}, {"b/c.md": (b"x", LONG_AGO)})
    assert changes.moved == (("a.md", File("b/c.md", "b/c.md", 1, LONG_AGO)),)
    assert (changes.added, changes.removed) == ((), ())


def test_a_copy_is_added_because_the_first_is_still_there():
    before = {"a.md": (b"x", LONG_AGO)}
    changes, _ = compare(before, before | {"b.md": (b"x", LONG_AGO)})
    assert paths(changes.added) == ["b.md"]
    assert changes.moved == ()


def test_among_copies_the_one_with_the_same_name_moved():
    before = {f"old/{name}.md": (b"x", LONG_AGO) for name in "abc"}
    after = {f"new/{name}.md": (b"x", LONG_AGO) for name in ("b", "y", "z")}
    changes, _ = compare(before, after)
    assert [(old, file.path) for old, file in changes.moved] == [
        ("old/b.md", "new/b.md"),
        ("old/a.md", "new/y.md"),
        ("old/c.md", "new/z.md"),
    ]


def test_an_added_file_is_hashed_only_if_a_lost_one_had_its_size():
    before = {"gone.md": (b"four", LONG_AGO)}
    _, disk = compare(before, {"a.md": (b"five5", LONG_AGO), "b.md": (b"FOUR", LONG_AGO)})
    assert disk.asked == ["b.md"]


def test_notes_in_a_folder_that_cannot_be_listed_are_kept():
    before = dict.fromkeys(("x/a.md", "x/y/b.md", "xy/c.md", "d.md"), (b"x", LONG_AGO))
    changes, _ = compare(before, {}, "x/")
    assert changes.kept == ("x/a.md", "x/y/b.md")
    assert changes.removed == ("d.md", "xy/c.md")


def test_a_note_that_was_taken_to_the_cloud_is_kept():
    changes, _ = compare({"a.md": (b"x", LONG_AGO)}, {}, "a.md")
    assert changes.kept == ("a.md",)


def test_a_kept_note_is_not_taken_for_the_origin_of_a_move():
    changes, _ = compare({"x/a.md": (b"x", LONG_AGO)}, {"b.md": (b"x", LONG_AGO)}, "x/")
    assert (changes.kept, paths(changes.added), changes.moved) == (("x/a.md",), ["b.md"], ())


def test_a_note_that_cannot_be_read_now_is_kept():
    disk = Disk({"a.md": (b"new", LONG_AGO + 1)})
    broken = Skipped("a.md", "unreadable", "Input/output error")
    changes = diff(knows({"a.md": (b"a", LONG_AGO)}), disk.walked(), lambda file: broken)
    assert changes.kept == ("a.md",)
    assert changes.unreadable == (broken,)


NAMES = st.sampled_from(
    [f"{folder}{name}.md" for folder in ("", "x/", "x/y/", "z/") for name in "ab"]
)
FILES = st.dictionaries(
    NAMES,
    st.tuples(
        st.sampled_from([b"", b"1", b"2", b"33"]),
        st.sampled_from([LONG_AGO, LONG_AGO + 1, NOW]),
    ),
)
UNREADABLE = st.sets(st.sampled_from(["x/", "x/y/", "z/a.md"]))


def applied(known, changes, disk):
    """What is known after the changes were carried out."""
    after = {path: state.digest for path, state in known.items()}
    for path in changes.removed:
        del after[path]
    for old, file in changes.moved:
        after[file.path] = after.pop(old)
    for file in (*changes.added, *changes.changed):
        after[file.path] = disk.files[file.path][0]
    return after


@given(FILES, FILES)
def test_what_is_known_and_the_changes_make_what_is_there(before, after):
    # A file whose size and time stayed while its content changed long after it was indexed is
    # beyond any comparison that does not read; such a pair is made one.
    after = {
        path: before[path]
        if path in before
        and before[path][1] == state[1] != NOW
        and len(before[path][0]) == len(state[0])
        else state
        for path, state in after.items()
    }
    changes, disk = compare(before, after)
    assert applied(knows(before), changes, disk) == {
        path: content for path, (content, _) in after.items()
    }


@given(FILES, FILES, UNREADABLE)
def test_every_path_is_in_exactly_one_class(before, after, unreadable):
    changes, _ = compare(before, after, *unreadable)
    named = [
        *paths(changes.added),
        *paths(changes.changed),
        *paths(changes.touched),
        *(path for move in changes.moved for path in (move[0], move[1].path)),
        *changes.removed,
        *changes.kept,
    ]
    assert len(named) == len(set(named))
    assert len(named) + changes.unchanged == len(before.keys() | after.keys())


@given(FILES, FILES)
def test_nothing_is_hashed_whose_size_and_time_agree_nor_anything_twice(before, after):
    _, disk = compare(before, after)
    agree = {
        path
        for path in before.keys() & after.keys()
        if (len(before[path][0]), before[path][1]) == (len(after[path][0]), after[path][1])
        and before[path][1] != NOW
    }
    assert agree.isdisjoint(disk.asked)
    assert len(disk.asked) == len(set(disk.asked))


@given(FILES, FILES, st.randoms())
def test_the_order_in_which_notes_are_known_does_not_matter(before, after, random):
    items = list(before.items())
    random.shuffle(items)
    assert compare(dict(items), after)[0] == compare(before, after)[0]


@pytest.mark.parametrize(
    ("known", "now", "read"),
    [
        ((5, 7), (5, 7), False),
        ((5, 7), (6, 7), True),  # written, and its time set back
        ((5, 7), (5, 8), True),  # another file under this name
    ],
)
def test_change_time_and_inode_are_compared(known, now, read):
    was = IndexedFile(1, LONG_AGO, *known, NOW, b"a")

    assert is_doubtful(was, File("a.md", "a.md", 1, LONG_AGO, *now)) is read
