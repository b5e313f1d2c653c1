"""Idle: whether the machine has time for work that nobody waits for.

    machine.busy()   why it has none: other programs use the processors, or it runs on battery

The load average counts this process as well, which embeds on every core. So its own use of the
processors, smoothed over a minute as the load average is, is subtracted.
"""

from __future__ import annotations

import math
import os
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

BUSY = 0.5  # of the processors used by others: more, and the backlog waits
SMOOTHED = 60.0  # seconds that the load average is taken over
BATTERY_EVERY = 30.0  # seconds between two looks at the battery
POWER = Path("/sys/class/power_supply")


def load_average() -> float:
    """How many processes want a processor, over the last minute; 0 where nobody counts them."""
    return os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0  # not on Windows


def on_battery() -> bool:
    """Whether the machine runs on battery; False where that cannot be known."""
    with suppress(OSError, ValueError, subprocess.SubprocessError):
        if sys.platform == "darwin":
            command = ["pmset", "-g", "batt"]
            shown = subprocess.run(command, capture_output=True, text=True, timeout=5, check=True)
            return "'Battery Power'" in shown.stdout
        if sys.platform == "win32":
            return _windows_on_battery()
        return any(map(_is_discharging, POWER.iterdir()))
    return False


def _is_discharging(supply: Path) -> bool:
    """On Linux: whether this is the machine's own battery, and in use."""
    with suppress(OSError):
        if (supply / "type").read_text().strip() == "Battery":
            scope = supply / "scope"  # a mouse has a battery too: "Device"
            of_device = scope.exists() and scope.read_text().strip() == "Device"
            return not of_device and (supply / "status").read_text().strip() == "Discharging"
    return False


def _windows_on_battery() -> bool:
    if sys.platform != "win32":
        return False
    import ctypes

    status = (ctypes.c_ubyte * 12)()  # SYSTEM_POWER_STATUS; its first byte is 0 on battery
    return bool(ctypes.windll.kernel32.GetSystemPowerStatus(status)) and status[0] == 0


class Machine:
    """What the machine is doing. The readings can be replaced."""

    def __init__(
        self,
        load: Callable[[], float] = load_average,
        battery: Callable[[], bool] = on_battery,
        *,
        cores: int | None = None,
        own_seconds: Callable[[], float] = time.process_time,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._load, self._battery = load, battery
        self._cores = cores or os.cpu_count() or 1
        self._own_seconds, self._clock = own_seconds, clock
        self._own = 0.0  # processors that this process uses, smoothed
        self._last = clock(), own_seconds()
        self._on_battery, self._battery_at = False, -math.inf

    def busy(self) -> str:
        """Why the machine is not idle; empty if it is."""
        now, own = self._clock(), self._own_seconds()
        passed = now - self._last[0]
        if passed > 0:
            weight = 1 - math.exp(-passed / SMOOTHED)
            self._own += weight * ((own - self._last[1]) / passed - self._own)
            self._last = now, own
        if now - self._battery_at >= BATTERY_EVERY:
            self._on_battery, self._battery_at = self._battery(), now
        if self._on_battery:
            return "running on battery"
        others = self._load() - self._own
        return "other programs are busy" if others > BUSY * self._cores else ""
