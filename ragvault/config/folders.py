"""Where ragvault keeps what it writes.

                  with RAGVAULT_HOME       without it
    config.toml   $RAGVAULT_HOME           the platform's config folder, or the file RAGVAULT_CONFIG
    data          $RAGVAULT_HOME           paths.data, else the platform's data folder
    models        $RAGVAULT_HOME/models    models in the platform's data folder
    cache         $RAGVAULT_HOME/cache     the platform's cache folder
    runtime       $RAGVAULT_HOME/run       the login's runtime folder, see runtime.py

Only names are made here: nothing is created, read or checked. The environment is an argument, so
that a test needs no patching. This file knows no setting and nothing of what the folders hold.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import platformdirs

from ragvault.config.runtime import runtime_folder

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
    return (home(environ) or platformdirs.user_config_path(APP, appauthor=False)) / "config.toml"


def data_dir(environ: Mapping[str, str] | None = None, override: str = "") -> Path:
    """Where the indexes and the registry of vaults live; `override` is the setting paths.data."""
    moved = home(environ)
    if moved is not None:
        return moved
    return _absolute(override) if override else _platform_data()


def models_dir(environ: Mapping[str, str] | None = None) -> Path:
    """Where model weights live: not beside the indexes of paths.data, which may be many."""
    return (home(environ) or _platform_data()) / "models"


def cache_dir(environ: Mapping[str, str] | None = None) -> Path:
    """What may be deleted at any moment."""
    moved = home(environ)
    return moved / "cache" if moved else platformdirs.user_cache_path(APP, appauthor=False)


def runtime_dir(environ: Mapping[str, str] | None = None) -> Path:
    """Sockets and process ids, which do not outlive the login."""
    return Path(runtime_folder(environ))


def here() -> Path:
    """The current folder; the top one where that has been deleted, which is around no vault."""
    try:
        return Path.cwd()
    except OSError:
        return Path(os.sep)


def settled(environ: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment with the places that it names as they are seen from every folder."""
    given = dict(_environ(environ))
    places = [name for name in ("RAGVAULT_HOME", "RAGVAULT_CONFIG") if given.get(name)]
    return given | {name: str(_absolute(given[name])) for name in places}


def _platform_data() -> Path:
    return platformdirs.user_data_path(APP, appauthor=False)


def _absolute(named: str) -> Path:
    """`~` is expanded, and a relative name is taken from the current folder, once."""
    # os.path and not Path: an unknown ~name stays as it is, and symlinks keep their names.
    return Path(os.path.abspath(os.path.expanduser(named)))  # noqa: PTH100, PTH111


def _environ(environ: Mapping[str, str] | None) -> Mapping[str, str]:
    return os.environ if environ is None else environ
