"""Time: until when a search may go on, and whether it had to leave something out."""

from __future__ import annotations

from time import monotonic


class Deadline:
    """So many seconds from now. `complete` turns False when something was left out for them."""

    def __init__(self, seconds: float) -> None:
        self._began, self._seconds = monotonic(), seconds
        self.complete = True

    def over(self, share: float = 1.0) -> bool:
        """Whether this share of the time is up, so that what comes next is left out."""
        late = monotonic() > self._began + share * self._seconds
        self.complete = self.complete and not late
        return late
