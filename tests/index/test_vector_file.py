"""The FAISS file: whole or not there, private, and known to be broken when it is."""

from __future__ import annotations

import errno
import os

import numpy as np
import pytest
from vector_shelf import DIM, Shelf, brute_force, found, in_file, rows_of, vector_of

from ragvault.config.settings import Vector
from ragvault.errors import IndexUnusable
from ragvault.index.vector import FILE, FaissVectors, open_file, vector_recipe, write_file
from ragvault.ports import CacheBroken


def test_a_missing_file_is_known_to_be_missing(tmp_path):
    shelf, _ = in_file(tmp_path, rows_of(9))
    (shelf.row.folder / FILE).unlink()
    with pytest.raises(CacheBroken, match="missing"):
        FaissVectors(shelf)


@pytest.mark.parametrize("contents", [b"", b"not a FAISS file", b"IxMp" + bytes(500)])
def test_something_else_in_its_place_is_known_to_be_broken(tmp_path, contents):
    (tmp_path / FILE).write_bytes(contents)
    with pytest.raises(CacheBroken):
        open_file(tmp_path, DIM)


def test_vectors_of_another_dimension_are_refused(tmp_path):
    shelf, _ = in_file(tmp_path, rows_of(40))
    with pytest.raises(CacheBroken):
        open_file(shelf.row.folder, DIM // 2)
    assert vector_recipe(DIM, Vector()) != vector_recipe(DIM // 2, Vector())
    assert vector_recipe(DIM, Vector()) != vector_recipe(DIM, Vector(exact_max=7))


def test_passages_without_a_vector_are_left_out(tmp_path):
    shelf = Shelf()
    shelf.put(rows_of(20))
    write_file(tmp_path, np.arange(40), shelf.fetch, DIM, Vector())
    assert open_file(tmp_path, DIM).ids.tolist() == list(range(20))


def test_files_are_private_and_nothing_else_is_left(tmp_path):
    shelf, _ = in_file(tmp_path, rows_of(100))
    (file,) = shelf.row.folder.iterdir()
    assert file.name == FILE
    assert file.stat().st_mode & 0o077 == 0


def test_a_file_holds_the_ids_of_its_passages_and_of_no_others(tmp_path):
    canary = 0x1234567890ABCDE
    shelf, _ = in_file(tmp_path, rows_of(40) | {canary: vector_of("secret")})
    needle = np.int64(canary).tobytes()
    assert needle in (shelf.row.folder / FILE).read_bytes()
    shelf.remove([canary])
    shelf.write(tmp_path)
    assert needle not in (shelf.row.folder / FILE).read_bytes()


def test_a_full_disk_is_reported_and_the_old_file_answers(tmp_path, monkeypatch):
    shelf, index = in_file(tmp_path, rows_of(50))
    path = shelf.row.folder / FILE
    before, query = path.read_bytes(), vector_of("salt")

    def full(handle):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        with pytest.raises(IndexUnusable, match="the disk is full"):
            write_file(path.parent, np.arange(10), shelf.fetch, DIM, Vector())
    assert path.read_bytes() == before
    assert found(index, query) == found(FaissVectors(shelf), query)
    assert found(index, query) == brute_force(shelf.rows, query, 10)


def test_faiss_failing_to_write_is_reported_as_a_full_disk(tmp_path):
    shelf = Shelf(64)
    shelf.put(rows_of(2000, dim=64))
    resource = pytest.importorskip("resource")
    import signal

    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    old = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, limits[1]))
    try:
        with pytest.raises(IndexUnusable, match="full"):
            write_file(tmp_path, shelf.ids(), shelf.fetch, 64, Vector())
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, old)
    assert not (tmp_path / FILE).exists()
