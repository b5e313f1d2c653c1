"""ragvault: local hybrid search for Markdown vaults.

    from ragvault import Vault
    Vault.open("~/notes").search("how did we size the cache?").results

The names below are the public ones. All but the error are imported at first use, so that a
program which needs none of them starts at once.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ragvault.errors import RagvaultError

if TYPE_CHECKING:
    from ragvault.answer.results import Response
    from ragvault.candidate import Candidate as Result
    from ragvault.vault import Vault

__version__ = "0.1.0"

__all__ = ["RagvaultError", "Response", "Result", "Vault", "__version__"]

_WHERE = {
    "Response": ("ragvault.search", "Response"),
    "Result": ("ragvault.candidate", "Candidate"),
    "Vault": ("ragvault.vault", "Vault"),
}


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, attribute = _WHERE[name]
    return getattr(import_module(module), attribute)
