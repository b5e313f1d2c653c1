"""Which model a vault uses. Pure: names in, names out.

A vault keeps the model it was indexed with. A new default of a new release changes nothing for
it; only a model that somebody asked for does. And then the old vectors go on answering until the
new ones are complete, so that changing the model never makes a vault worse to search meanwhile.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Choice:
    """`embeds` is the model to make vectors with: a short name, or a full one that must be kept.

    `answers` is the full name of the model whose vectors are searched until then; None when the
    vault has no complete vectors yet.
    """

    embeds: str
    answers: str | None

    @property
    def changes(self) -> bool:
        """Whether the vault is on its way from one model to another."""
        return self.answers is not None and self.embeds != self.answers


def choose(*, stored: str | None, configured: str, explicit: bool) -> Choice:
    """What a vault with vectors of `stored` does, when the settings name `configured`.

    `explicit` says that a person named it: a flag, the environment or a file, not the default.
    """
    if stored is None:
        return Choice(embeds=configured, answers=None)
    if not explicit or same_model(stored, configured):
        return Choice(embeds=stored, answers=stored)
    return Choice(embeds=configured, answers=stored)


def same_model(stored: str, configured: str) -> bool:
    """Whether a setting means the stored full name: `bge` means every `bge@…`, `bge@1` only one."""
    return configured in (stored, stored.rpartition("@")[0])


def answering(stored: str | None, embedded: str, *, complete: bool) -> str | None:
    """Whose vectors are searched after a run: the new model's once every passage has one."""
    return embedded if complete else stored
