"""Everything ragvault raises on purpose.

    RagvaultError                 exit
      x UsageError                 2    the command was called wrongly
      x ConfigError                2    a setting is unknown, of the wrong type or out of range
      x VaultNotFound              2    no vault at that path, or none of that name
      x ModelUnknown               2    no model has that name
      x IndexMissing               3    the vault has not been indexed yet
      x IndexBehind                3    files changed since, where that was not accepted
      x VaultUnreadable            4    the vault's folder is there and cannot be read
      x VaultEmptied               4    the vault holds no note any more, and the index does
      x IndexLocked                4    another process is writing this index
      x IndexTooNew                4    made by a newer release
      x IndexUnusable              4    the index folder cannot be read or written
      x EngineMissing              4    a library that a part needs cannot be imported
      x ModelUnavailable           4    the weights are not here and no source gave them
      x ModelUnusable              4    the weights are here and cannot be run, or were changed

Each says what is wrong and, in `fix`, what mends it. Command line and servers turn a
RagvaultError into their own form in one place; nothing else catches it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


class RagvaultError(Exception):
    """What went wrong, and the cure."""

    exit_code = 4

    def __init__(self, message: str, *, fix: str = "") -> None:
        super().__init__(message)
        self.fix = fix


class UsageError(RagvaultError):
    """The command was called in a way that cannot be meant."""

    exit_code = 2


class ConfigError(RagvaultError):
    """A setting that cannot be used; `message` names file and line where they are known."""

    exit_code = 2


class VaultNotFound(RagvaultError):
    """There is no folder, or no known vault, by that name."""

    exit_code = 2


class IndexMissing(RagvaultError):
    """The vault exists and has no index yet."""

    exit_code = 3

    def __init__(self, vault: Path) -> None:
        super().__init__(f"{vault} has no index yet", fix=f"ragvault index {vault}")


class IndexBehind(RagvaultError):
    """The index does not hold all that the vault does, and that was not accepted."""

    exit_code = 3

    def __init__(self, vault: Path, why: str) -> None:
        super().__init__(f"the index of {vault} is behind: {why}", fix=f"ragvault index {vault}")


class VaultUnreadable(RagvaultError):
    """The vault's own folder cannot be listed, so nothing about it can be believed."""

    def __init__(self, vault: Path, why: str) -> None:
        super().__init__(
            f"the vault {vault} cannot be read: {why}",
            fix="check that its disk is mounted and that you can read it; the index is unchanged",
        )


class VaultEmptied(RagvaultError):
    """No note is left where some were indexed: a disk that is not mounted, more likely than not."""

    def __init__(self, vault: Path, notes: int) -> None:
        super().__init__(
            f"{vault} contains no notes, but {notes:,} are indexed; is its disk mounted?",
            fix=f"mount it; or, if the notes are deleted: ragvault index {vault} --allow-empty, "
            f"or ragvault vaults remove {vault}",
        )


class IndexLocked(RagvaultError):
    """Another process holds the writer's lock."""

    def __init__(self, index: Path, *, owner: str) -> None:
        super().__init__(
            f"the index in {index} is being written by {owner}",
            fix="wait for it to end, or stop that process; searching works meanwhile",
        )


class IndexTooNew(RagvaultError):
    """The index was made by a newer release."""

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


def refused(index: Path, error: OSError) -> IndexUnusable:
    """What the operating system would not do with a file of an index, in words."""
    full = "No space left" in str(error)
    return disk_full(index) if full else IndexUnusable(index, error.strerror or str(error))


def disk_full(index: Path) -> IndexUnusable:
    """Nothing is replaced before what comes in its place is written, so nothing is lost by it."""
    return IndexUnusable(
        index,
        "the disk is full",
        fix="free some space, then run: ragvault index; what was indexed before is unharmed",
    )


class EngineMissing(RagvaultError):
    """A library cannot be imported; the part of the index that needs it does not work."""

    def __init__(self, part: str, package: str, why: str) -> None:
        super().__init__(
            f"{part} needs {package}, which cannot be imported ({why})",
            fix=f"pip install {package}",
        )


class ModelUnknown(RagvaultError):
    """No model of the registry has that name, and it is neither a hub's id nor a folder."""

    exit_code = 2

    def __init__(self, name: str, *, nearest: str = "") -> None:
        meant = f"did you mean {nearest}? " if nearest else ""
        super().__init__(
            f"no model is called {name}",
            fix=f"{meant}to list all models: ragvault models list",
        )


class ModelUnavailable(RagvaultError):
    """The weights are not on this machine. `failures` pairs each source with why it failed."""

    def __init__(self, name: str, failures: Sequence[tuple[str, str]]) -> None:
        tried = "; ".join(f"{source}: {why}" for source, why in failures)
        super().__init__(
            f"the model {name} is not installed and could not be fetched ({tried or 'no source'})",
            fix=f"go online and run: ragvault models pull {name}; or copy it from a machine that "
            f"has it and run: ragvault models pull {name} --from FOLDER",
        )
        self.failures = tuple(failures)


class ModelUnusable(RagvaultError):
    """The weights cannot be run, or their bytes are not the ones that are named."""

    def __init__(self, name: str, why: str, *, fix: str = "") -> None:
        super().__init__(
            f"the model {name} cannot be used: {why}",
            fix=fix or f"ragvault models pull {name}",
        )
