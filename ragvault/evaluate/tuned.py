"""Tuned: what a tuning leaves behind, beside the index and never in the vault.

    tuned-NAME.toml   settings for a profile, laid between config.toml and the vault's own file
    tuned.jsonl       one receipt a line, also of what was taken back

Taking back deletes the settings; the receipts stay.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ragvault.config import toml
from ragvault.errors import UsageError
from ragvault.store.files import write_file
from ragvault.store.layout import RECEIPTS, tuned_file

_HEAD = (
    "# Weights that `ragvault tune` found for this vault; `ragvault tune --revert` removes them."
)


def keep(folder: Path, receipt: Mapping[str, Any]) -> Path:
    """Write the settings of a receipt over those of earlier ones, and the receipt."""
    path = tuned_file(folder, receipt["profile"])
    changed = {key: pair[1] for key, pair in receipt["settings"].items()}
    settings = {**_read(path), **changed}
    judged = receipt["judged"]
    lines = [
        _HEAD,
        f"# {judged['metric']} {judged['mean']:+.4f} [{judged['low']:+.4f}, {judged['high']:+.4f}] "
        f"on {judged['n']} questions that were not searched on;",
        f"# seed {receipt['seed']}, revision {receipt['revision']}, {receipt['when']}",
        *(f"{key} = {toml.literal(number)}" for key, number in sorted(settings.items())),
    ]
    _note(folder, receipt)
    write_file(path, ("\n".join(lines) + "\n").encode())
    return path


def revert(folder: Path, when: str) -> dict[str, Any]:
    """Take every tuned setting back: what they were. Raises UsageError where there is none."""
    files = sorted(folder.glob(tuned_file(folder, "*").name))
    if not files:
        raise UsageError(
            "there is nothing to take back: this vault was not tuned",
            fix="ragvault tune QUESTIONS.jsonl",
        )
    settings = {key: value for path in files for key, value in _read(path).items()}
    _note(folder, {"when": when, "reverted": settings})
    for path in files:
        path.unlink()
    return settings


def _read(path: Path) -> dict[str, Any]:
    """Dotted key -> value; nothing where there is no file, or one that is no TOML."""
    try:
        return dict(_flat(toml.parse(path.read_text("utf-8")), ""))
    except (OSError, toml.TomlError):
        return {}


def _flat(tree: Mapping[str, Any], above: str) -> list[tuple[str, Any]]:
    found: list[tuple[str, Any]] = []
    for key, value in tree.items():
        name = f"{above}{key}"
        found += _flat(value, f"{name}.") if isinstance(value, dict) else [(name, value)]
    return found


def _note(folder: Path, receipt: Mapping[str, Any]) -> None:
    path = folder / RECEIPTS
    before = path.read_bytes() if path.exists() else b""
    write_file(path, before + json.dumps(receipt).encode() + b"\n")
