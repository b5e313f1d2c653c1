"""The client: ask the resident process, and start it if there is none.

    ask_or_start    the answer; raises WatcherUnavailable if the caller must do the work itself

A resident process is started only for a caller that may have one: not under CI, not as process 1
(a container ends with it), and not with `service.resident = "off"`. The client waits for it instead
of loading models itself. This module imports little, because every search waits for it.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping
from typing import Any

from ragvault.config.folders import runtime_folder
from ragvault.service.protocol import WatcherMissing, WatcherUnavailable, ask_watcher

# Seconds before a process is started. Later tries are for one that was just ending, or was killed.
PAUSES = (0.0, 0.05, 0.2)
FALSE = ("", "0", "false", "no")  # values of CI that mean that it is not set


def ask_or_start(
    request: Mapping[str, object], environ: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """The answer of the process of this user, which is started if none runs.

    `environ` is a whole environment, in which the process is started; default: that of this one.
    Raises WatcherUnavailable: then the caller does the work by itself.
    """
    given = os.environ if environ is None else environ
    if given.get("RAGVAULT_ALONE") or given.get("RAGVAULT_DEBUG"):
        raise WatcherUnavailable("")
    folder = runtime_folder(given)
    for pause in PAUSES:
        try:
            return ask_watcher(folder, request)
        except WatcherMissing:
            if not may_start(given):
                raise
        time.sleep(pause)
        _start(given)
    return ask_watcher(folder, request)


def _start(environ: Mapping[str, str]) -> None:
    from ragvault.errors import RagvaultError
    from ragvault.service.process import start_resident

    try:
        start_resident(environ)
    except (OSError, RagvaultError) as error:
        raise WatcherUnavailable(f"it could not be started: {error}") from None


def may_start(environ: Mapping[str, str]) -> bool:
    """Whether a search may leave a process behind."""
    if environ.get("CI", "").lower() not in FALSE or os.getpid() == 1 or not sys.executable:
        return False
    from ragvault.config.load import load_settings
    from ragvault.errors import ConfigError

    try:
        config = load_settings(environ=environ).config
    except ConfigError:
        return False  # the search itself reports it
    return config.service.resident != "off"
