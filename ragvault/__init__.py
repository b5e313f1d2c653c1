"""ragvault: local hybrid search for Markdown vaults.

    from ragvault import Vault
    with Vault.open("~/notes") as vault:
        for result in vault.search("how did we size the cache?"):
            print(result.title, result.path, result.snippet)

docs/python.md has the whole interface.

The names below are the public ones. All but the error are imported at first use, so that a
program which needs none of them starts at once.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ragvault.errors import RagvaultError

if TYPE_CHECKING:
    from ragvault.answer.results import Response, Result
    from ragvault.vault import Vault

__version__ = "0.1.0"

__all__ = ["RagvaultError", "Response", "Result", "Vault", "__version__"]

_WHERE = {
    "Response": ("ragvault.answer.results", "Response"),
    "Result": ("ragvault.answer.results", "Result"),
    "Vault": ("ragvault.vault", "Vault"),
}


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, attribute = _WHERE[name]
    return getattr(import_module(module), attribute)
