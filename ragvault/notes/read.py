"""Read: the bytes of one file become text.

A file may have changed since the walk: into a pipe that would block, a link out of the vault, a
file being written. So a file is opened without waiting and without following a link, its type is
checked once it is open, and it is read again if it changed meanwhile.

Text has one newline at the end of a line, whatever the file uses, so that line numbers are those
that editors show; no byte order mark; and no character that cannot be written as UTF-8. Bytes that
are not UTF-8 are decoded as well as possible, and the note is still indexed. This module knows
nothing about Markdown.
"""

from __future__ import annotations

import codecs
import errno
import json
import os
import re
import stat
from dataclasses import dataclass
from hashlib import blake2b
from itertools import accumulate
from pathlib import Path
from typing import Any

from ragvault.types import File, Skipped

# Why a file or folder was not indexed: the words of Skipped.reason.
BINARY = "binary"  # not text, whatever its name says
BROKEN = "broken link"  # a link to nothing, or to itself
CHANGING = "changing"  # written to each time it was read
CLOUD = "cloud"  # its content is not on this machine
CONFLICT = "conflict"  # the copy a sync tool leaves when two edits meet
EXCLUDED = "excluded"  # the owner ignores it: an ignore file, a setting, Obsidian's settings
DUPLICATE = "duplicate"  # another file has this name, spelled with other code points
FAILED = "failed"  # reading or parsing it crashed, or took too long
LARGE = "large"  # over walk.max_bytes
NAME = "name"  # a name that is not valid UTF-8
OUTSIDE = "outside"  # a link that leaves the vault
SPECIAL = "special"  # a pipe, a socket or a device
SYMLINK = "symlink"  # a link to something in the vault, which is indexed where it is
UNREADABLE = "unreadable"  # no permission, or a failing disk
VANISHED = "vanished"  # deleted since the walk saw it

TRIES = 3  # an editor's save is over within milliseconds; a log never stops
DIGEST_BYTES = 16
OPEN_FLAGS = os.O_RDONLY
for _flag in ("O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC", "O_NOCTTY", "O_BINARY"):
    OPEN_FLAGS |= getattr(os, _flag, 0)  # each where the platform has it

SF_DATALESS = 0x40000000  # macOS: evicted to iCloud, reading would download it
RECALL_ATTRIBUTES = 0x00441000  # Windows: offline, recall on open, recall on data access

BOMS = (  # UTF-32 first: its mark begins with that of UTF-16
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
# Control characters that no text has; tab, newlines, form feed and escape do occur.
CONTROLS = bytes(set(range(32)) - set(b"\t\n\v\f\r\x1b")) + b"\x7f"
# Of 100 bytes. Compressed data has about 10 of them, text in an 8-bit encoding none; a file that is
# valid UTF-8 gets more credit, since a terminal log may be full of them.
MAX_CONTROLS = 2
MAX_CONTROLS_UTF8 = 30
_INT64 = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Read:
    """A file that was read. `file` has the size and time of the bytes, not those of the walk."""

    file: File
    digest: bytes
    text: str
    encoding: str
    warnings: tuple[str, ...] = ()


def read_file(root: Path, file: File, max_bytes: int) -> Read | Skipped:
    """The text of one file of the vault, or why there is none. Never waits and never raises."""
    got = stable_bytes(root, file, max_bytes)
    if isinstance(got, Skipped):
        return got
    file, data = got
    if is_binary(data):
        return Skipped(file.path, BINARY, "holds bytes that are no text")
    text, encoding, warnings = decode(data)
    return Read(file, digest_of(data), text, encoding, warnings)


def seen_file(path: str, disk: str, status: os.stat_result) -> File:
    """A file with the facts that show whether it has changed."""
    # SQLite stores 63 bits; some file systems use more for inodes, or have times beyond year 2262.
    inode = status.st_ino & _INT64
    mtime, ctime = min(status.st_mtime_ns, _INT64), min(status.st_ctime_ns, _INT64)
    return File(path, disk, status.st_size, mtime, ctime, inode)


def digest(root: Path, file: File, max_bytes: int) -> bytes | Skipped:
    """The digest of a file's bytes, text or not, or why they cannot be read."""
    got = stable_bytes(root, file, max_bytes)
    return got if isinstance(got, Skipped) else digest_of(got[1])


def digest_of(data: bytes) -> bytes:
    return blake2b(data, digest_size=DIGEST_BYTES).digest()


def stable_bytes(root: Path, file: File, max_bytes: int) -> tuple[File, bytes] | Skipped:
    """All bytes of a file that stood still while it was read."""
    for _ in range(TRIES):
        try:
            if is_behind_a_link(root, file.disk):
                return Skipped(file.path, SYMLINK, "one of its folders has become a link")
            got = read_once(f"{root}/{file.disk}", max_bytes)
        except OSError as error:
            return Skipped(file.path, *reason_of(error))
        if not isinstance(got, str):
            status, data = got
            return seen_file(file.path, file.disk, status), data
        if got != CHANGING:
            return Skipped(file.path, got)
    return Skipped(file.path, CHANGING, f"was written to while it was read, {TRIES} times")


def read_once(full: str | os.PathLike[str], max_bytes: int) -> tuple[os.stat_result, bytes] | str:
    """The status and the bytes of a regular file, or the reason that it cannot be taken."""
    handle = os.open(full, OPEN_FLAGS)
    try:
        before = os.fstat(handle)
        if not stat.S_ISREG(before.st_mode):
            return SPECIAL
        if is_dataless(before):
            return CLOUD
        # One more than may be: a file that grew past the limit must show.
        data = read_all(handle, max_bytes + 1) if before.st_size <= max_bytes else None
        after = os.fstat(handle)
    finally:
        os.close(handle)
    if data is None or len(data) > max_bytes:
        return LARGE
    stood_still = (before.st_size, before.st_mtime_ns) == (after.st_size, after.st_mtime_ns)
    if not stood_still or len(data) != after.st_size:
        return CHANGING
    return after, data


def read_all(handle: int, most: int) -> bytes:
    chunks = []
    while most > 0 and (chunk := os.read(handle, most)):
        chunks.append(chunk)
        most -= len(chunk)
    return b"".join(chunks)


def read_small(full: str | os.PathLike[str], max_bytes: int = 1_000_000) -> str | None:
    """The text of a settings file that may not be there. Raises OSError where it cannot be read."""
    try:
        got = read_once(full, max_bytes)
    except (FileNotFoundError, NotADirectoryError):
        return None
    if isinstance(got, str):
        raise OSError(errno.EINVAL, f"not a plain file of this size: {got}")
    return got[1].decode("utf-8-sig", "replace")


def read_obsidian_settings(root: str | Path, name: str) -> tuple[dict[str, Any], list[str]]:
    """The values of .obsidian/`name`; empty with a warning if the file is broken or hostile."""
    try:
        text = read_small(Path(root, ".obsidian", name))
        settings = json.loads(text) if text else {}
    except (OSError, ValueError, RecursionError) as error:
        return {}, [f".obsidian/{name} cannot be read and is ignored: {error}"]
    return (settings if isinstance(settings, dict) else {}), []


def reason_of(error: OSError) -> tuple[str, str]:
    """The word and the sentence for an error of the file system."""
    if isinstance(error, FileNotFoundError | NotADirectoryError):
        return VANISHED, "is no longer there"
    if error.errno in (errno.ELOOP, errno.EMLINK):
        return SYMLINK, "has become a link"
    if error.errno in (errno.ENXIO, errno.EOPNOTSUPP):
        return SPECIAL, "is not a regular file"
    return UNREADABLE, error.strerror or type(error).__name__


def is_behind_a_link(root: Path, disk: str) -> bool:
    """Whether a folder between the vault and a file is a link; the walk enters none."""
    folders = accumulate(disk.split("/")[:-1], lambda above, name: f"{above}/{name}")
    return any(stat.S_ISLNK(os.lstat(f"{root}/{folder}").st_mode) for folder in folders)


def is_dataless(status: os.stat_result) -> bool:
    """Whether the system itself says that the content is elsewhere and reading would fetch it."""
    flags = getattr(status, "st_flags", 0) & SF_DATALESS
    return bool(flags or getattr(status, "st_file_attributes", 0) & RECALL_ATTRIBUTES)


def is_binary(data: bytes) -> bool:
    """Whether these bytes are no text in any encoding we read."""
    if not data or mark_of(data) or wide_encoding(data):
        return False
    controls = len(data) - len(data.translate(None, CONTROLS))
    limit = MAX_CONTROLS_UTF8 if is_utf8(data) else MAX_CONTROLS
    return controls * 100 > limit * len(data)


def is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def decode(data: bytes) -> tuple[str, str, tuple[str, ...]]:
    """Text, the name of its encoding, and what had to be guessed or replaced."""
    marked = mark_of(data)
    encoding = marked or wide_encoding(data) or narrow_encoding(data)
    text = data.decode(encoding, "replace")
    warnings = []
    if not marked and encoding != "utf-8":
        warnings.append(f"not UTF-8; read as {encoding}")
    # A note may contain the replacement character on purpose; that one counts as text.
    replaced = text.count("\ufffd")
    if replaced and replaced > data.decode(encoding, "ignore").count("\ufffd"):
        warnings.append(f"holds bytes that are not {encoding}; they were replaced")
    if "\0" in text:
        warnings.append("holds NUL characters; they were replaced")
    text = text.removeprefix("\ufeff") if marked else text
    return plain(text), encoding, tuple(warnings)


def plain(text: str) -> str:
    """One newline a line, and no NUL: CommonMark replaces it, and no index can store it."""
    return text.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "\ufffd")


def mark_of(data: bytes) -> str:
    """The encoding that a byte order mark names, or nothing."""
    return next((encoding for mark, encoding in BOMS if data.startswith(mark)), "")


def wide_encoding(data: bytes) -> str:
    """UTF-16 without a mark: in Western text nearly every second byte is 0 and no other one is."""
    half = len(data) // 2
    if half < 2 or len(data) % 2 or b"\0" not in data:
        return ""
    zeros = data[0::2].count(0), data[1::2].count(0)
    if zeros[1] * 10 >= half * 8 and zeros[0] * 100 <= half:
        return "utf-16-le"
    if zeros[0] * 10 >= half * 8 and zeros[1] * 100 <= half:
        return "utf-16-be"
    return ""


def narrow_encoding(data: bytes) -> str:
    """UTF-8, also when damaged; Windows-1252 where nothing speaks for UTF-8."""
    if is_utf8(data):
        return "utf-8"
    whole = len(re.findall(r"[^\x00-\x7f]", data.decode("utf-8", "ignore")))
    damaged = data.decode("utf-8", "replace").count("\ufffd")
    if whole >= damaged:
        return "utf-8"
    # Five bytes mean nothing in Windows-1252: with one of them it is some other encoding.
    return "cp1252" if len(data.decode("cp1252", "ignore")) == len(data) else "utf-8"
