"""Folders: where ragvault keeps what it writes.

                  with RAGVAULT_HOME       without it
    config.toml   $RAGVAULT_HOME           the platform's config folder, or the file RAGVAULT_CONFIG
    data          $RAGVAULT_HOME           paths.data, else the platform's data folder
    models        $RAGVAULT_HOME/models    models in the platform's data folder
    cache         $RAGVAULT_HOME/cache     the platform's cache folder
    runtime       $RAGVAULT_HOME/run       the login's runtime folder, else one below the cache

Only names are made here: nothing is created, read or checked. The environment is an argument, so
that a test needs no patching. This file knows no setting and nothing of what the folders contain.

Every search first looks into the runtime folder for a resident process. So this file imports
nothing that takes time before it is needed, not even pathlib.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

APP = "ragvault"


def home(environ: Mapping[str, str] | None = None) -> Path | None:
    """The one folder of RAGVAULT_HOME; None when it is unset or empty."""
    named = _environ(environ).get("RAGVAULT_HOME", "")
    return _absolute(named) if named else None


def user_file(environ: Mapping[str, str] | None = None) -> Path:
    """The user's config.toml, whether or not it exists."""
    named = _environ(environ).get("RAGVAULT_CONFIG", "")
    if named:
        return _absolute(named)
    return (home(environ) or _platform("user_config_dir")) / "config.toml"


def data_dir(environ: Mapping[str, str] | None = None, override: str = "") -> Path:
    """Where the indexes and the registry of vaults live; `override` is the setting paths.data."""
    moved = home(environ)
    if moved is not None:
        return moved
    return _absolute(override) if override else _platform("user_data_dir")


def models_dir(environ: Mapping[str, str] | None = None) -> Path:
    """Where model weights live: not beside the indexes of paths.data, which may be many."""
    return (home(environ) or _platform("user_data_dir")) / "models"


def cache_dir(environ: Mapping[str, str] | None = None) -> Path:
    """What may be deleted at any moment."""
    moved = home(environ)
    return moved / "cache" if moved else _platform("user_cache_dir")


def runtime_dir(environ: Mapping[str, str] | None = None) -> Path:
    """Sockets and process ids, which do not outlive the login."""
    from pathlib import Path

    return Path(runtime_folder(environ))


def runtime_folder(environ: Mapping[str, str] | None = None) -> str:
    """The same as text. Never in /tmp, where a folder of this name could be somebody else's."""
    given = _environ(environ)
    if named := given.get("RAGVAULT_HOME", ""):
        return os.path.join(_absolute_name(named), "run")  # noqa: PTH118
    if sys.platform in ("darwin", "win32"):
        import platformdirs

        return platformdirs.user_runtime_dir(APP, appauthor=False)
    login = given.get("XDG_RUNTIME_DIR", "")
    if os.path.isabs(login):  # noqa: PTH117
        return os.path.join(login, APP)  # noqa: PTH118
    cache = given.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(cache):  # noqa: PTH117
        cache = os.path.expanduser("~/.cache")  # noqa: PTH111
    return os.path.join(cache, APP, "run")  # noqa: PTH118


def here() -> Path:
    """The current folder; the root folder if the current one has been deleted."""
    from pathlib import Path

    try:
        return Path.cwd()
    except OSError:
        return Path(os.sep)


def settled(environ: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment with the places that it names as they are seen from every folder."""
    given = dict(_environ(environ))
    places = [name for name in ("RAGVAULT_HOME", "RAGVAULT_CONFIG") if given.get(name)]
    return given | {name: str(_absolute(given[name])) for name in places}


def _platform(kind: str) -> Path:
    from pathlib import Path

    import platformdirs

    return Path(getattr(platformdirs, kind)(APP, appauthor=False))


def _absolute(named: str) -> Path:
    from pathlib import Path

    return Path(_absolute_name(named))


def _absolute_name(named: str) -> str:
    """`~` is expanded, and a relative name is taken from the current folder, once."""
    # os.path and not Path: an unknown ~name stays as it is, and symlinks keep their names.
    return os.path.abspath(os.path.expanduser(named))  # noqa: PTH100, PTH111


def _environ(environ: Mapping[str, str] | None) -> Mapping[str, str]:
    return os.environ if environ is None else environ
