"""Everything ragvault raises on purpose.

    RagvaultError                 exit
      x UsageError                 2    the command was called wrongly
      x ConfigError                2    a setting is unknown, of the wrong type or out of range
      x VaultNotFound              2    no vault at that path, or none of that name
      x IndexMissing               3    the vault has not been indexed yet
      x VaultUnreadable            4    the vault's folder is there and cannot be read
      x IndexLocked                4    another process is writing this index
      x IndexTooNew                4    made by a newer release
      x IndexUnusable              4    the index folder cannot be read or written

Each says what is wrong and, in `fix`, what mends it. Command line and servers turn a
RagvaultError into their own form in one place; nothing else catches it.
"""

from __future__ import annotations

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


class VaultUnreadable(RagvaultError):
    """The vault's own folder cannot be listed, so nothing about it can be believed."""

    def __init__(self, vault: Path, why: str) -> None:
        super().__init__(
            f"the vault {vault} cannot be read: {why}",
            fix="check that the folder is mounted and that you may read it; the index is unchanged",
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
            fix=fix or f"check the space and the rights of {index}, then run: ragvault index",
        )
