"""What the core asks of the world. Each promise is kept by a real engine and by a small fake."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Role = Literal["query", "passage"]


class Embedder(Protocol):
    """Turns texts into unit vectors. Says nothing about where they are kept."""

    @property
    def name(self) -> str:
        """Names the weights and how they are used: two embedders of one name agree."""
        ...

    @property
    def dim(self) -> int:
        """How many numbers a vector has."""
        ...

    @property
    def max_tokens(self) -> int:
        """How many tokens of one text are read; 0 means all of them."""
        ...

    def embed(self, texts: Sequence[str], kind: Role) -> NDArray[np.float32]:
        """One row a text, in the order given, each of length 1.

        The vector of a text does not depend on its neighbours in the batch (beyond rounding).
        An empty text has a vector too. Raises ModelUnusable when the weights cannot be run.
        """
        ...


class Reranker(Protocol):
    """Reads a query and a passage together and says how well one answers the other."""

    @property
    def name(self) -> str: ...

    def score(self, query: str, passages: Sequence[str]) -> list[float]:
        """One number a passage, in the order given, higher is better; 0..1 where the model says so."""
        ...
