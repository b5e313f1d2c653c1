"""The runtime folder: where a watcher says that it is there.

Every search looks here first, so this file imports nothing that takes time. Without a folder that
the login gives (XDG_RUNTIME_DIR) it is below the cache folder, which is the user's own: a folder in
/tmp could be somebody else's.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

APP = "ragvault"


def runtime_folder(environ: Mapping[str, str] | None = None) -> str:
    """Its name, whether or not it exists."""
    given = os.environ if environ is None else environ
    home = given.get("RAGVAULT_HOME", "")
    # os.path, because importing pathlib takes longer than all else here.
    if home:
        return os.path.join(os.path.abspath(os.path.expanduser(home)), "run")  # noqa: PTH100, PTH111, PTH118
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
