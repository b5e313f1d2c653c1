"""Every error that ragvault raises on purpose, with its exit code.

    RagvaultError                 exit
      x UsageError                 2    the command was called wrongly
      x ConfigError                2    a setting is unknown, of the wrong type or out of range
      x VaultNotFound              2    there is no such folder, and no vault of that name
      x ModelUnknown               2    no model has that name
      x IndexMissing               3    the vault has not been indexed yet
      x IndexBehind                3    the index is out of date, and that was not accepted
      x VaultUnreadable            4    the vault's folder exists and cannot be read
      x VaultEmptied               4    the vault has no notes, but notes of it are indexed
      x IndexLocked                4    another process is writing this index
      x IndexTooNew                4    a newer release wrote the index
      x IndexUnusable              4    the index folder cannot be read or written
      x EngineMissing              4    a library that a part needs cannot be imported
      x ModelUnavailable           4    the weights are not installed and could not be fetched
      x ModelUnusable              4    the weights are installed and damaged, or cannot be run

A room that needs one for itself defines it there, as a subclass: the watcher's are in
service/process.py. The message says what is wrong, and `fix` says what to do about it. The command
line and the servers each turn a RagvaultError into their own form in one place; nothing else
catches it.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

ERRORS = "RAGVAULT_ERRORS"  # variable: with "json" the command line writes errors as JSON
DISTRIBUTION = "ragvault-search"  # for pip; `ragvault` there is a project of somebody else


def in_shell(value: object) -> str:
    """A path or a name in a command that a fix shows: quoted where a shell needs it."""
    from shlex import quote  # only an error needs it

    return quote(str(value))


class RagvaultError(Exception):
    """What went wrong; `fix` is what the user can do about it."""

    exit_code = 4

    def __init__(self, message: str, *, fix: str = "") -> None:
        super().__init__(message)
        self.fix = fix


class UsageError(RagvaultError):
    """The command was called wrongly."""

    exit_code = 2


class ConfigError(RagvaultError):
    """A setting cannot be used; the message names its file or variable, and its key."""

    exit_code = 2


class VaultNotFound(RagvaultError):
    """There is no such folder, and no known vault of that name; `near` was probably meant."""

    exit_code = 2

    def __init__(self, message: str, *, fix: str, near: str = "") -> None:
        super().__init__(message, fix=f"did you mean {near}?" if near else fix)
        self.near = near


class IndexMissing(RagvaultError):
    """The vault exists but has no index yet."""

    exit_code = 3

    def __init__(self, vault: Path) -> None:
        super().__init__(f"{vault} has no index yet", fix=f"ragvault index {in_shell(vault)}")


class IndexBehind(RagvaultError):
    """The index is out of date, and the caller asked for an up-to-date one."""

    exit_code = 3

    def __init__(self, vault: Path, why: str) -> None:
        super().__init__(
            f"the index of {vault} is out of date: {why}", fix=f"ragvault index {in_shell(vault)}"
        )


class VaultUnreadable(RagvaultError):
    """The vault's folder cannot be listed, so nothing is known about its notes."""

    def __init__(self, vault: Path, why: str) -> None:
        super().__init__(
            f"the vault {vault} cannot be read: {why}",
            fix="check that its disk is mounted and that you can read it; the index is unchanged",
        )


class VaultEmptied(RagvaultError):
    """The vault has no notes, but some are indexed. Probably its disk is not mounted."""

    def __init__(self, vault: Path, notes: int) -> None:
        super().__init__(
            f"{vault} contains no notes, but {notes:,} are indexed; is its disk mounted?",
            fix="mount it; or, if the notes are deleted: ragvault index "
            f"{in_shell(vault)} --allow-empty, or ragvault vaults remove {in_shell(vault)}",
        )


class IndexLocked(RagvaultError):
    """Another process is writing the index."""

    def __init__(self, index: Path, *, owner: str) -> None:
        super().__init__(
            f"the index in {index} is being written by {owner}",
            fix="wait for it to end, or stop that process; searching works meanwhile",
        )


class IndexTooNew(RagvaultError):
    """A newer release wrote the index."""

    def __init__(self, index: Path, *, built: int, wanted: int) -> None:
        super().__init__(
            f"the index in {index} has format {built}; this ragvault reads {wanted} and older",
            fix="upgrade ragvault, or delete that folder and run: ragvault index",
        )


class IndexUnusable(RagvaultError):
    """The index folder or one of its files cannot be read or written."""

    def __init__(self, index: Path, why: str, *, fix: str = "") -> None:
        super().__init__(
            f"the index in {index} cannot be used: {why}",
            fix=fix or f"check free space and permissions of {index}, then run: ragvault index",
        )


@contextmanager
def refusals(index: Path) -> Iterator[None]:
    """Raise IndexUnusable where the operating system refuses to read or write a file in here."""
    try:
        yield
    except OSError as error:
        full = "No space left" in str(error)
        why = disk_full(index) if full else IndexUnusable(index, error.strerror or str(error))
        raise why from error


def disk_full(index: Path) -> IndexUnusable:
    """The disk is full. Files are replaced only after the new one is written, so none is lost."""
    return IndexUnusable(
        index,
        "the disk is full",
        fix="free some space, then run: ragvault index; what was indexed before is unharmed",
    )


def install_command(package: str) -> str:
    """The command that installs a package; quoted, because a shell reads brackets as a pattern."""
    return f'pip install "{package}"' if "[" in package else f"pip install {package}"


def with_extra(extra: str) -> str:
    """This program with one of its extras, as pip takes it. Another project is named ragvault."""
    return f"{DISTRIBUTION}[{extra}]"


class EngineMissing(RagvaultError):
    """A library cannot be imported; the part of the index that needs it does not work."""

    def __init__(self, part: str, package: str, why: str) -> None:
        super().__init__(
            f"{part} needs {package}, which cannot be imported ({why})",
            fix=install_command(package),
        )


class ModelUnknown(RagvaultError):
    """The name is neither a model of the registry, nor a hub id, nor a folder."""

    exit_code = 2

    def __init__(self, name: str, *, near: Sequence[str] = ()) -> None:
        meant = f"did you mean {near[0]}? " if near else ""
        super().__init__(
            f"no model is called {name}",
            fix=f"{meant}to list all models: ragvault models list",
        )


OFFLINE = "not tried, because of offline mode"


class ModelUnavailable(RagvaultError):
    """The weights are not installed. `failures` pairs each source with why it failed."""

    def __init__(self, name: str, failures: Sequence[tuple[str, str]]) -> None:
        tried = "; ".join(f"{source}: {why}" for source, why in failures if why != OFFLINE)
        why = (
            f"and could not be fetched ({tried})" if tried else "(offline: nothing was downloaded)"
        )
        super().__init__(
            f"the model {name} is not installed {why}",
            fix=f"ragvault models pull {in_shell(name)}; without a network, copy it from a machine "
            f"that has it: ragvault models pull {in_shell(name)} --from FOLDER",
        )
        self.failures = tuple(failures)


class ModelUnusable(RagvaultError):
    """The weights cannot be run, or their files are not the expected ones."""

    def __init__(self, name: str, why: str, *, fix: str = "") -> None:
        super().__init__(
            f"the model {name} cannot be used: {why}",
            fix=fix or f"ragvault models pull {in_shell(name)}",
        )
