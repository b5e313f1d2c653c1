"""Zone: the time zone a search was typed in, whose offset depends on the day.

The offset of this moment is wrong for half of the year where clocks are changed: a file saved on a
winter's night would be looked for on the next day in summer. So the zone itself is read, by the TZ
of whoever asks or from the machine's own file. Both are the same for every process of the machine,
whichever of them answers.
"""

from __future__ import annotations

from datetime import datetime, timedelta, timezone, tzinfo
from pathlib import Path
from zoneinfo import ZoneInfo

from ragvault.cli.around import Surroundings

MACHINE = Path("/etc/localtime")


def clock(around: Surroundings) -> datetime:
    """The time at which a search was typed, in the zone it was typed in."""
    return datetime.fromtimestamp(around.now, zone(around))


def zone(around: Surroundings) -> tzinfo:
    """The zone; where it cannot be read or says another time than the asker's clock, its offset."""
    offset = timedelta(seconds=around.zone)
    found = _named(around.environ.get("TZ"))
    if found is not None and datetime.fromtimestamp(around.now, found).utcoffset() == offset:
        return found
    return timezone(offset)


def _named(name: str | None) -> tzinfo | None:
    """A zone by what TZ says: a name, or a file; without it the machine's."""
    place = str(MACHINE) if name is None else name.removeprefix(":")
    try:
        if not place.startswith("/"):
            return ZoneInfo(place) if place else timezone.utc
        with Path(place).open("rb") as file:
            return ZoneInfo.from_file(file)
    except (KeyError, OSError, ValueError):  # no such name, no such file, no such form
        return None
