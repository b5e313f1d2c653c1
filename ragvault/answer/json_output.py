"""JSON for programs: the one place that encodes answers.

Callers send its strings unchanged, so the command line, HTTP and MCP give the same bytes.
"""

from __future__ import annotations

import json
import os
from typing import Any

from ragvault.text.printable import safe_json

# The catalogue calls a link unresolved; users call it broken.
LINK_STATES = {"resolved": "resolved", "unresolved": "broken", "ambiguous": "ambiguous"}


def encode(value: Any) -> str:
    """One line of JSON. Not by msgspec: a file name may contain bytes that are not Unicode."""
    import msgspec

    plain = msgspec.to_builtins(value, enc_hook=os.fspath)
    return safe_json(json.dumps(plain, ensure_ascii=False))


class Encodable:
    """A value whose JSON has its own fields."""

    __slots__ = ()

    def to_dict(self) -> dict[str, Any]:
        """The value as `--json` has it."""
        found: dict[str, Any] = json.loads(encode(self))
        return found
