"""Alive: does each signal of a search fire on this vault?

The vault's own exam is asked (evaluate/probes.py) and every signal counted (evaluate/liveness.py).
One that is silent although the notes give it cause is broken; one without cause is worth a note.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from ragvault.doctor.findings import Finding, fine
from ragvault.evaluate.liveness import Signal, liveness
from ragvault.evaluate.probes import probes
from ragvault.opened import Opened

PROBES = 28  # four of each kind: a second or two
CURE = "ragvault index --rebuild, and report it if that fails"


def alive(index: Opened, now: datetime, count: int = PROBES) -> Iterator[Finding]:
    """Each signal that settings want: alive, without anything to go by here, or dead."""
    exam = probes(index.catalogue, count)
    if not exam:
        yield fine("search", "there is nothing to search for yet")
        return
    signals = liveness(index, exam, now, moves=0)
    yield from (finding(each) for each in signals if each.group not in ("stage", "filter"))
    yield from _filters([each for each in signals if each.group == "filter"])


def finding(signal: Signal) -> Finding:
    times = f"{signal.fired} of {signal.asked}"
    if signal.state == "off":
        return Finding(signal.name, "note", "is off in your settings")
    if signal.state == "failed":
        return Finding(signal.name, "broken", f"fails: {signal.failed}", "ragvault index")
    if signal.state == "idle":
        return Finding(signal.name, "note", signal.lacks)
    if signal.state == "alive":
        return fine(signal.name, f"fired in {times} searches for the vault's own words")
    said = f"fired in none of {signal.asked} searches for the vault's own words"
    return Finding(signal.name, "broken", said, CURE)


def _filters(signals: Sequence[Signal]) -> Iterator[Finding]:
    """Those that keep what they should in one line, each of the others in its own."""
    for each in signals:
        if each.state == "dead":
            said = f"{each.name} keeps none of the {each.asked} notes it was made from"
            yield Finding("filter", "broken", said, CURE)
    well = [each.name for each in signals if each.state == "alive"]
    if well:
        yield fine("filters", f"{', '.join(well)} keep the notes they were made from")
