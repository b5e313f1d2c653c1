"""The table of what is written: how results look and where their links lead."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from ragvault.config_table import Table

Template = Annotated[
    str,
    Meta(
        pattern=r"^$|^[A-Za-z][A-Za-z0-9+.-]*:[^\s]*$",
        description='a link such as "vscode://file{path}:{line}", or "" for the usual one',
    ),
]


class Output(Table, frozen=True):
    """How results look. Never from a vault: a link names a program that is started."""

    editor: Template = ""
    links: bool = True
