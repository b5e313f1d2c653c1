"""ragvault: local hybrid search for Markdown vaults."""

from ragvault.errors import RagvaultError

__version__ = "0.1.0"

__all__ = ["RagvaultError", "__version__"]
