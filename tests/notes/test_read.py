"""Read: bytes on a disk that may change under the reader become text."""

from __future__ import annotations

import codecs
import os
from dataclasses import replace
from hashlib import blake2b
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragvault.notes import read as reading
from ragvault.notes.read import Read, decode, digest, is_binary, read_file
from ragvault.types import File

LIMIT = 1_000_000
FILE = File("a.md", "a.md", 0, 0)
PNG = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x01\x00" + bytes(range(256)) * 4


def reason(root, file=FILE, limit=LIMIT):
    return read_file(root, file, limit).reason


def test_a_file_is_read_with_the_digest_size_and_time_of_its_bytes(tmp_path):
    (tmp_path / "a.md").write_bytes("# Größe\r\n".encode())
    os.utime(tmp_path / "a.md", ns=(0, 1_700_000_000_000_000_001))
    got = read_file(tmp_path, FILE, LIMIT)
    status = (tmp_path / "a.md").stat()
    assert got == Read(
        reading.seen_file("a.md", "a.md", status),
        blake2b("# Größe\r\n".encode(), digest_size=16).digest(),
        "# Größe\n",
        "utf-8",
    )
    assert digest(tmp_path, FILE, LIMIT) == got.digest


def test_the_name_on_disk_is_what_is_opened(tmp_path):
    (tmp_path / "cafe\u0301.md").write_text("x")
    assert read_file(tmp_path, File("caf\u00e9.md", "cafe\u0301.md", 1, 0), LIMIT).text == "x"


def test_a_file_that_vanished_is_said_to_have(tmp_path):
    assert reason(tmp_path) == reading.VANISHED
    assert reason(tmp_path, File("x/a.md", "x/a.md", 0, 0)) == reading.VANISHED
    assert digest(tmp_path, FILE, LIMIT).reason == reading.VANISHED


def test_a_pipe_in_the_place_of_a_note_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "a.md")
    assert reason(tmp_path) == reading.SPECIAL


def test_a_folder_in_the_place_of_a_note_is_no_note(tmp_path):
    (tmp_path / "a.md").mkdir()
    assert reason(tmp_path) == reading.SPECIAL


def test_a_link_in_the_place_of_a_note_is_not_followed(tmp_path):
    (tmp_path / "secret").write_text("secret")
    (tmp_path / "a.md").symlink_to("secret")
    assert reason(tmp_path) == reading.SYMLINK


def test_a_folder_that_became_a_link_out_of_the_vault_is_not_followed(tmp_path):
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "a.md").write_text("secret")
    (tmp_path / "vault").mkdir()
    (tmp_path / "vault" / "x").symlink_to(tmp_path / "outside", target_is_directory=True)
    assert reason(tmp_path / "vault", File("x/a.md", "x/a.md", 6, 0)) == reading.SYMLINK


def test_a_vault_that_is_a_link_is_read(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "a.md").write_text("x")
    (tmp_path / "vault").symlink_to("real", target_is_directory=True)
    assert read_file(tmp_path / "vault", FILE, LIMIT).text == "x"


def test_a_file_without_rights_is_unreadable(tmp_path, monkeypatch):
    def refusing(path, flags):
        raise PermissionError(13, "Permission denied")

    (tmp_path / "a.md").write_text("x")
    monkeypatch.setattr(os, "open", refusing)
    skipped = read_file(tmp_path, FILE, LIMIT)
    assert (skipped.reason, skipped.detail) == (reading.UNREADABLE, "Permission denied")


def test_a_file_over_the_limit_is_left_alone(tmp_path):
    (tmp_path / "a.md").write_bytes(b"x" * 11)
    assert reason(tmp_path, limit=10) == reading.LARGE
    assert isinstance(read_file(tmp_path, FILE, 11), Read)


@pytest.fixture
def writer(tmp_path, monkeypatch):
    """Writes to the note behind the reader's back, as often as is asked."""
    left = {"times": 0, "read": 0}
    os_read = os.read

    def interrupted(handle, most):
        left["read"] += 1
        data = os_read(handle, most)
        if left["times"] > 0:
            left["times"] -= 1
            with (tmp_path / "a.md").open("ab") as opened:
                opened.write(b"more\n")
        return data

    monkeypatch.setattr(os, "read", interrupted)
    return left


def test_a_file_that_changes_while_it_is_read_is_read_again(tmp_path, writer):
    (tmp_path / "a.md").write_text("first\n")
    writer["times"] = 2
    got = read_file(tmp_path, FILE, LIMIT)
    assert got.text == (tmp_path / "a.md").read_text()
    assert got.file.size == len(got.text)


def test_a_file_that_never_stands_still_is_given_up(tmp_path, writer):
    (tmp_path / "a.md").write_text("first\n")
    writer["times"] = 10**6
    assert reason(tmp_path, limit=1000) in (reading.CHANGING, reading.LARGE)


def test_a_file_touched_after_each_read_is_given_up_after_three(tmp_path, monkeypatch):
    (tmp_path / "a.md").write_text("x")
    os_read, touched = os.read, []

    def touching(handle, most):
        touched.append(1)
        os.utime(tmp_path / "a.md", ns=(0, len(touched)))
        return os_read(handle, most)

    monkeypatch.setattr(os, "read", touching)
    assert reason(tmp_path) == reading.CHANGING


def test_a_file_replaced_while_it_is_read_gives_one_version_whole(tmp_path, monkeypatch):
    (tmp_path / "a.md").write_text("old " * 1000)
    os_read = os.read

    def replacing(handle, most):
        (tmp_path / "new").write_text("new")
        (tmp_path / "new").replace(tmp_path / "a.md")
        return os_read(handle, min(most, 100))

    monkeypatch.setattr(os, "read", replacing)
    assert read_file(tmp_path, FILE, LIMIT).text == "old " * 1000


@pytest.mark.parametrize(
    ("data", "text", "encoding"),
    [
        (b"", "", "utf-8"),
        ("naïve 🎈".encode(), "naïve 🎈", "utf-8"),
        ("\ufeffnaïve".encode(), "naïve", "utf-8"),
        (codecs.BOM_UTF16_LE + "naïve 🎈".encode("utf-16-le"), "naïve 🎈", "utf-16-le"),
        (codecs.BOM_UTF16_BE + "naïve".encode("utf-16-be"), "naïve", "utf-16-be"),
        (codecs.BOM_UTF32_LE + "naïve".encode("utf-32-le"), "naïve", "utf-32-le"),
        (codecs.BOM_UTF32_BE + "naïve".encode("utf-32-be"), "naïve", "utf-32-be"),
        (b"a\r\nb\rc\n\r\n", "a\nb\nc\n\n", "utf-8"),
    ],
)
def test_unicode_is_read_without_a_word(data, text, encoding):
    assert decode(data) == (text, encoding, ())
    assert not is_binary(data)


@pytest.mark.parametrize(
    ("data", "text", "encoding"),
    [
        ("naïve “quotes” for 5 €".encode("cp1252"), "naïve “quotes” for 5 €", "cp1252"),
        ("Überfluß".encode("latin-1"), "Überfluß", "cp1252"),
        ("no mark at all".encode("utf-16-le"), "no mark at all", "utf-16-le"),
        ("no mark at all".encode("utf-16-be"), "no mark at all", "utf-16-be"),
        ("größer – ".encode() + b"\xe4 end", "größer – \ufffd end", "utf-8"),
        (b"\x81\x8d word \x9d", "\ufffd\ufffd word \ufffd", "utf-8"),
        (b"a\0b" + b" text" * 10, "a\ufffdb" + " text" * 10, "utf-8"),
    ],
)
def test_other_bytes_are_read_as_well_as_can_be_and_said(data, text, encoding):
    got, name, warnings = decode(data)
    assert (got, name) == (text, encoding)
    assert len(warnings) == 1
    assert not is_binary(data)


def test_the_replacement_character_itself_is_no_damage():
    assert decode("a \ufffd b".encode()) == ("a \ufffd b", "utf-8", ())


@pytest.mark.parametrize("data", [PNG, b"\0" * 4096, b"\x1f\x8b" + Random(1).randbytes(4096)])
def test_what_is_no_text_is_not_a_note(tmp_path, data):
    (tmp_path / "a.md").write_bytes(data)
    assert reason(tmp_path) == reading.BINARY
    assert isinstance(digest(tmp_path, FILE, LIMIT), bytes)


@given(st.binary())
def test_no_bytes_are_an_error(data):
    text, encoding, _ = decode(data)
    assert "\r" not in text
    assert "\0" not in text
    text.encode()
    assert codecs.lookup(encoding)
    is_binary(data)


# A text that begins with NUL has, in UTF-16, the mark of UTF-32.
@given(st.text(st.characters(exclude_categories=["Cs"])).filter(lambda text: text[:1] != "\0"))
def test_every_text_comes_back_but_for_its_newlines(text):
    expected = text.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "\ufffd")
    for mark, encoding in (("", "utf-8"), ("\ufeff", "utf-8"), ("\ufeff", "utf-16-le")):
        data = (mark + text).encode(encoding)
        if mark or not (reading.wide_encoding(data) or text.startswith("\ufeff")):
            assert decode(data)[:2] == (expected, encoding)


@given(st.text(st.characters(min_codepoint=32, exclude_categories=["Cs"]), min_size=1))
def test_text_is_never_taken_for_binary(text):
    assert not is_binary(text.replace("\x7f", "").encode())


def test_the_vault_is_the_same_after_reading(tmp_path):
    (tmp_path / "a.md").write_text("x")
    before = (tmp_path / "a.md").stat()
    read_file(tmp_path, replace(FILE, size=1), LIMIT)
    after = (tmp_path / "a.md").stat()
    assert (after.st_mtime_ns, after.st_ctime_ns) == (before.st_mtime_ns, before.st_ctime_ns)
    assert [path.name for path in tmp_path.iterdir()] == ["a.md"]
