"""The files of a vector index: small writes, nothing left behind, old or new after a crash."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from vector_shelf import (
    DIM,
    MODEL,
    Shelf,
    brute_force,
    create,
    fill,
    found,
    reopen,
    rows_of,
    vector_of,
)

from ragvault.errors import IndexUnusable
from ragvault.index import vector_files
from ragvault.index.vector import FaissIndex
from ragvault.index.vector_write import Limits
from ragvault.ports import CacheBroken


@pytest.fixture
def shelf():
    return Shelf()


# --- What is on the disk ---


@contextmanager
def counting_bytes(monkeypatch) -> Iterator[list[int]]:
    """Bytes written by each commit."""
    written, plain = [0], vector_files.append

    def append(path, size, contents):
        written[-1] += len(contents)
        plain(path, size, contents)

    with monkeypatch.context() as patched:
        patched.setattr(vector_files, "append", append)
        yield written


def test_an_edit_writes_less_than_a_megabyte_even_when_the_log_is_full(tmp_path, monkeypatch):
    shelf = Shelf(384)
    index = create(tmp_path, shelf, limits=Limits())
    fill(index, shelf, rows_of(2500, dim=384))
    edit = rows_of(60, dim=384)
    with counting_bytes(monkeypatch) as written:
        for i in range(60):
            index.remove(range(i * 40, i * 40 + 40))
            fill(index, shelf, {i * 60 + n: row for n, row in edit.items()}, revision=i)
            written.append(0)
    assert max(written) < 1_000_000
    assert len(index._state.parts) > 1  # the log was full at least once


def test_small_segments_are_merged_and_each_step_is_bounded(tmp_path, shelf):
    index = create(tmp_path, shelf, limits=Limits(log_bytes=0, full=64, small=3))
    for first in range(0, 300, 10):
        fill(index, shelf, rows_of(10, first))
    largest, parts = 0, 30
    while index.merge():
        assert len(index._state.parts) < parts
        parts = len(index._state.parts)
        largest = max(largest, *(p.stat().st_size for p in tmp_path.glob("segment-*")))
    assert largest < 64 * (DIM + 8) + 500
    assert parts <= 300 / 32 + 3
    assert found(index, vector_of("rye"), 20) == brute_force(shelf.rows, vector_of("rye"), 20)


CANARY = 0x1234567890ABCDE


def test_after_compaction_no_file_holds_what_was_removed(tmp_path, shelf):
    index = create(tmp_path, shelf)
    fill(index, shelf, rows_of(40) | {CANARY: vector_of("secret")})
    fill(index, shelf, rows_of(40, 100), revision=2)
    fill(index, shelf, {CANARY + 1: vector_of("another secret")}, revision=3)
    assert holding(tmp_path, CANARY, CANARY + 1)
    index.remove([CANARY, CANARY + 1])
    index.commit(4)
    index.compact()
    assert holding(tmp_path, CANARY, CANARY + 1) == []
    assert reopen(tmp_path, shelf).ids().tolist() == [*range(40), *range(100, 140)]


def holding(folder, *ids):
    """Names of files with the bytes of an id in them."""
    needles = [np.int64(i).tobytes() for i in ids]
    return [p.name for p in folder.iterdir() if any(n in p.read_bytes() for n in needles)]


def test_compaction_rewrites_only_the_segments_that_held_something(tmp_path, shelf):
    index = create(tmp_path, shelf, limits=Limits(log_bytes=0))
    for first in (0, 100, 200):
        fill(index, shelf, rows_of(30, first))
    before = {path.name for path in tmp_path.glob("segment-*")}
    index.remove([105])
    index.commit(2)
    index.compact()
    assert len(before & {path.name for path in tmp_path.glob("segment-*")}) == 2


def test_files_are_private(tmp_path, shelf):
    index = create(tmp_path / "deep" / "vectors", shelf)
    fill(index, shelf, rows_of(100))
    modes = {path.stat().st_mode & 0o077 for path in (tmp_path / "deep").rglob("*")}
    assert modes == {0}


# --- Broken files ---


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A folder with a manifest, a segment with a dead row, and a log."""
    folder, shelf = tmp_path_factory.mktemp("whole"), Shelf()
    index = create(folder, shelf)
    fill(index, shelf, rows_of(40))
    index.remove([3])
    fill(index, shelf, rows_of(5, 100), revision=2)
    contents = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert sorted(name.partition("-")[0] for name in contents) == [
        "log",
        "manifest.json",
        "segment",
    ]
    return contents, shelf


def spoilt(folder, contents, name, changed):
    for other, whole_bytes in contents.items():
        (folder / other).write_bytes(whole_bytes)
    (folder / name).write_bytes(changed)
    return folder


def test_a_file_cut_at_any_byte_is_known_to_be_broken(tmp_path, whole):
    contents, shelf = whole
    for name, data in contents.items():
        spoilt(tmp_path, contents, name, data)
        for size in reversed(range(len(data))):
            os.truncate(tmp_path / name, size)
            with pytest.raises(CacheBroken):
                reopen(tmp_path, shelf)


@settings(max_examples=60)
@given(data=st.data())
def test_a_changed_byte_anywhere_is_known_to_be_broken(whole, data):
    contents, shelf = whole
    name = data.draw(st.sampled_from(sorted(contents)))
    at = data.draw(st.integers(0, len(contents[name]) - 1))
    changed = bytearray(contents[name])
    changed[at] ^= data.draw(st.integers(1, 255))
    with tempfile.TemporaryDirectory() as folder, pytest.raises(CacheBroken):
        reopen(spoilt(Path(folder), contents, name, bytes(changed)), shelf)


def test_a_missing_file_is_known_to_be_missing(tmp_path, whole):
    contents, shelf = whole
    for name in contents:
        (spoilt(tmp_path, contents, name, b"") / name).unlink()
        with pytest.raises(CacheBroken):
            reopen(tmp_path, shelf)


def test_what_a_killed_writer_appended_is_not_believed_and_not_in_the_way(tmp_path, whole):
    contents, shelf = whole
    log = next(name for name in contents if name.startswith("log"))
    index = reopen(spoilt(tmp_path, contents, log, contents[log] + b"A half-writt"), shelf)
    fill(index, shelf, rows_of(2, 200), revision=3)
    assert reopen(tmp_path, shelf).ids().tolist() == index.ids().tolist()


@pytest.mark.parametrize("other", [{"model": "letters"}, {"dim": 8}])
def test_vectors_of_another_model_are_refused(tmp_path, whole, other):
    contents, shelf = whole
    spoilt(tmp_path, contents, "manifest.json", contents["manifest.json"])
    wanted = {"model": MODEL, "dim": DIM} | other
    with pytest.raises(CacheBroken, match="words"):
        FaissIndex.open(tmp_path, fetch=shelf.fetch, **wanted)


def test_a_newer_format_is_refused_with_its_number(tmp_path, whole):
    contents, shelf = whole
    made = msgspec.json.decode(contents["manifest.json"].partition(b"\n")[0])
    body = msgspec.json.encode({**made, "format": 9, "segments": "unheard of"})
    changed = body + b"\n" + vector_files._crc_line(body)
    with pytest.raises(CacheBroken, match="format 9"):
        reopen(spoilt(tmp_path, contents, "manifest.json", changed), shelf)


def test_a_broken_index_is_begun_again_in_place(tmp_path, whole):
    contents, shelf = whole
    index = create(spoilt(tmp_path, contents, "manifest.json", b"{}"), shelf)
    fill(index, shelf, rows_of(3))
    assert reopen(tmp_path, shelf).ids().tolist() == [0, 1, 2]
    assert not any((tmp_path / name).exists() for name in contents if name != "manifest.json")


# --- Dying in the middle ---


class Killed(BaseException):
    """Not an error: the process is gone."""


@contextmanager
def dies_at(monkeypatch, nth):
    """The n-th thing done to a file is half done, and then the process is gone."""
    count, append, replace = iter(range(10_000)), vector_files.append, vector_files.replace

    def dying_append(path, size, contents):
        if next(count) == nth:
            append(path, size, contents[: len(contents) // 2])
            raise Killed
        append(path, size, contents)

    def dying_replace(source, target):
        if next(count) == nth:
            raise Killed
        replace(source, target)

    with monkeypatch.context() as patched:
        patched.setattr(vector_files, "append", dying_append)
        patched.setattr(vector_files, "replace", dying_replace)
        yield


@pytest.mark.parametrize("nth", range(22))
def test_a_killed_writer_leaves_one_commit_or_the_next(tmp_path, shelf, monkeypatch, nth):
    index, alive, expected = create(tmp_path, shelf), set(), {0: set()}
    with dies_at(monkeypatch, nth), suppress(Killed):
        for i in range(1, 6):
            alive = expected[i] = (alive - set(range(i * 2))) | set(range(i * 13 - 13, i * 13))
            index.remove(range(i * 2))
            fill(index, shelf, rows_of(13, i * 13 - 13), revision=i)
            index.merge()
        index.compact()
    survivor = reopen(tmp_path, shelf)
    assert set(survivor.ids().tolist()) == expected[survivor.revision]
    fill(survivor, shelf, rows_of(9, 500), revision=9)
    assert reopen(tmp_path, shelf).ids().tolist() == survivor.ids().tolist()


def test_a_full_disk_is_told_and_the_old_index_answers(tmp_path, shelf, monkeypatch):
    index = create(tmp_path, shelf)
    fill(index, shelf, rows_of(50))
    before = found(index, vector_of("salt"))

    def full(handle):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        with pytest.raises(IndexUnusable, match="the disk is full"):
            fill(index, shelf, {77: vector_of("salt")}, revision=2)
        assert found(index, vector_of("salt")) == found(reopen(tmp_path, shelf), vector_of("salt"))
        assert found(index, vector_of("salt")) == before
    index.commit(2)  # there is room again, and nothing that was asked for is lost
    assert found(reopen(tmp_path, shelf), vector_of("salt"), 1)[0][0] == 77
