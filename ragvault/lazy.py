"""Lazy: what may be asked of a catalogue, and is read when it is, for library.py.

Said          what one passage says
Bodies        the texts of notes, the last few million characters kept
Lazy          values by id, each made once
LazyVectors   vectors of a fixed set of passages
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

from ragvault.ports import FetchVectors
from ragvault.spans import Span

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

V = TypeVar("V")
Whole = tuple[str, tuple[Span, ...]]
Reading = Callable[[Sequence[int]], Mapping[int, Whole]]
CHARACTERS = 4_000_000  # of notes, kept unpacked: as many as a thousand notes have


class Said:
    """What a passage says, read when it is first asked for."""

    __slots__ = ("_id", "_read", "_text")

    def __init__(self, read: Callable[[int], str], id_: int) -> None:
        self._read, self._id = read, id_
        self._text: str | None = None

    def __call__(self) -> str:
        if self._text is None:
            self._text = self._read(self._id)
        return self._text


class Bodies:
    """The texts of notes, of which the last few million characters are kept unpacked."""

    def __init__(self, read: Reading, most: int = CHARACTERS) -> None:
        self._read, self._room = read, most
        self._kept: OrderedDict[int, Whole] = OrderedDict()

    def __call__(self, note: int) -> Whole:
        if note not in self._kept:
            body = self._read([note])[note]
            self._keep({note: body})
            return body  # it may be too long to be kept
        self._kept.move_to_end(note)
        return self._kept[note]

    def fetch(self, notes: Iterable[int]) -> None:
        """Read these in one go: they will be asked for."""
        self._keep(self._read([note for note in dict.fromkeys(notes) if note not in self._kept]))

    def _keep(self, bodies: Mapping[int, Whole]) -> None:
        self._kept.update(bodies)
        self._room -= sum(len(text) for text, _ in bodies.values())
        while self._room < 0:
            self._room += len(self._kept.popitem(last=False)[1][0])


class Lazy(Mapping[int, V]):
    """Values that are made when they are asked for; None is not there."""

    def __init__(self, make: Callable[[int], V | None]) -> None:
        self._make = make
        self._made: dict[int, V | None] = {}

    def __getitem__(self, key: int) -> V:
        if key not in self._made:
            self._made[key] = self._make(key)
        value = self._made[key]
        if value is None:
            raise KeyError(key)
        return value

    def __iter__(self) -> Iterator[int]:
        return iter(self._made)

    def __len__(self) -> int:
        return len(self._made)


class LazyVectors(Mapping[int, "NDArray[np.float32]"]):
    """Vectors of a fixed set of passages: some of them when they are fetched, else all at once."""

    def __init__(self, read: FetchVectors, ids: Sequence[int]) -> None:
        self._read, self._ids = read, list(ids)
        self._known: dict[int, NDArray[np.float32] | None] = {}  # None: it has no vector

    def fetch(self, ids: Sequence[int]) -> None:
        import numpy as np

        new = [id_ for id_ in ids if id_ not in self._known]
        for id_, row in zip(new, self._read(np.array(new, np.int64)), strict=True):
            self._known[id_] = None if np.isnan(row[0]) else row

    def __getitem__(self, key: int) -> NDArray[np.float32]:
        if key not in self._known:
            self.fetch(self._ids)
        found = self._known.get(key)
        if found is None:
            raise KeyError(key)
        return found

    def __iter__(self) -> Iterator[int]:
        self.fetch(self._ids)
        return (id_ for id_ in self._ids if self._known[id_] is not None)

    def __len__(self) -> int:
        return sum(1 for _ in self)
