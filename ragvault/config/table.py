"""What a table of settings is: the struct all tables share, and the ranges a value may have.

settings.py and ranking.py declare the tables themselves.
Five things are declared beside the fields of a table:

    vault     may a vault's own .ragvault.toml set this table? No, unless the table says yes
    closed    why it may not; completes "because"
    user_only on one key: never from a vault, and why
    told      on one key: what fits it, in words, and a check where its type cannot say all of it
    rules     pairs of keys of this table that must be in order

Numbers have an upper bound, so that no product of them is ever infinite.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, ClassVar, Literal

from msgspec import Meta, Struct

MOST = 10**12  # beyond any count or size there is, and no float has trouble with it

Rule = tuple[str, Literal["<", "<="], str]

Count = Annotated[int, Meta(ge=0, le=MOST, description="a whole number, 0 or more")]
Positive = Annotated[int, Meta(ge=1, le=MOST, description="a whole number, 1 or more")]
Share = Annotated[float, Meta(gt=0, le=1, description="a share: above 0, at most 1")]
Above0 = Annotated[float, Meta(gt=0, le=1e9, description="a number above 0, at most 1e9")]
AtLeast0 = Annotated[float, Meta(ge=0, le=1e6, description="a number from 0 to 1e6")]
From0To1 = Annotated[float, Meta(ge=0, le=1, description="a number from 0 to 1")]
Factor = Annotated[float, Meta(gt=0, le=1e6, description="a factor above 0, at most 1e6")]

How = Literal["multiply", "add"]
DateOf = Literal["note", "modified"]


def user_only(reason: str) -> Meta:
    """Mark one key of a table that vaults may otherwise set; `reason` completes "because"."""
    return Meta(extra={"user_only": reason})


def told(what: str, fits: Callable[[Any], bool]) -> Meta:
    """Describe one key; `fits` is asked of a value that has the right type."""
    return Meta(description=what, extra={"fits": fits})


class Table(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A table of settings: unknown keys are errors, never silence.

    A vault may have been written by someone else, so what its file may set is an allow-list:
    nothing that names a path, a command, an address or a model, or that records what is read.
    """

    vault: ClassVar[bool] = False
    closed: ClassVar[str] = "it is not about how notes are read or searched"
    rules: ClassVar[tuple[Rule, ...]] = ()


class Open(Table, frozen=True):
    """A table that a vault's own file may set: how its notes rank is its own affair."""

    vault: ClassVar[bool] = True
