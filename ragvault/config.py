"""Every setting there is, its default and the range it may have.

One struct is one table of config.toml, and the table is named after the room or stage that reads
it. The reasons stand in config.toml.example, which a test keeps equal to these defaults. How the
files, the environment and the flags are laid over each other is told in configure.py.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct, field

Count = Annotated[int, Meta(ge=0)]
Positive = Annotated[int, Meta(ge=1)]

DEFAULT_EXCLUDES = [
    ".*/",
    "node_modules/",
    "__pycache__/",
    "*.sync-conflict-*",
    "*conflicted copy*",
    ".*.icloud",
]


class Table(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A table of settings: unknown keys are errors, never silence."""


class Walk(Table):
    """Which files of a vault are notes."""

    extensions: list[str] = field(default_factory=lambda: [".md", ".markdown"])
    exclude: list[str] = field(default_factory=lambda: list(DEFAULT_EXCLUDES))
    gitignore: bool = True
    obsidian_ignore: bool = True
    follow_symlinks: bool = True
    max_bytes: Positive = 5_000_000


class Parse(Table):
    """What of a note's text is read."""

    comments: bool = False
    git_dates: bool = True


class Links(Table):
    """How links are read and looked up."""

    order: Literal["target-first", "label-first"] = "target-first"


class Chunk(Table):
    """How a note is cut into sections (parents) and passages (children); sizes in characters."""

    parent_min: Positive = 1500
    parent_max: Positive = 2000
    child_min: Positive = 200
    child_target: Positive = 500
    child_max: Positive = 1500
    overlap: Count = 0


class Config(Table):
    """All settings, valid."""

    walk: Walk = Walk()
    parse: Parse = Parse()
    links: Links = Links()
    chunk: Chunk = Chunk()
