"""Units: what systemd or launchd needs to keep a watcher running, printed and never installed."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from xml.sax.saxutils import escape

from ragvault.config.folders import settled

LABEL = "ragvault.watch"
PLACES = ("XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME")


def systemd(vaults: Sequence[Path]) -> str:
    """A user unit. % means something to systemd, and $ in commands, so they are doubled."""
    command = " ".join(_quoted(part.replace("$", "$$")) for part in _command(vaults))
    lines = [
        "# systemd user unit: save it as ~/.config/systemd/user/ragvault.service, then",
        "#     systemctl --user enable --now ragvault",
        "[Unit]",
        "Description=ragvault keeps the indexes of notes up to date",
        "",
        "[Service]",
        f"ExecStart={command}",
        *(f"Environment={_quoted(f'{name}={value}')}" for name, value in _environ()),
        "Restart=on-failure",
        "RestartSec=10",
        "Nice=10",
        "",
        "[Install]",
        "WantedBy=default.target",
    ]
    return "\n".join(lines)


def launchd(vaults: Sequence[Path]) -> str:
    """A property list for a launch agent."""
    command = "\n".join(f"    <string>{escape(part)}</string>" for part in _command(vaults))
    environ = "\n".join(
        f"    <key>{escape(name)}</key><string>{escape(value)}</string>"
        for name, value in _environ()
    )
    return f"""<?xml version="1.0" encoding="UTF-8"?>
<!-- save it as ~/Library/LaunchAgents/{LABEL}.plist, then
     launchctl load ~/Library/LaunchAgents/{LABEL}.plist -->
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0">
<dict>
  <key>Label</key><string>{LABEL}</string>
  <key>ProgramArguments</key>
  <array>
{command}
  </array>
  <key>EnvironmentVariables</key>
  <dict>
{environ}
  </dict>
  <key>RunAtLoad</key><true/>
  <key>KeepAlive</key><dict><key>SuccessfulExit</key><false/></dict>
  <key>ProcessType</key><string>Background</string>
</dict>
</plist>"""


UNITS = {"systemd": systemd, "launchd": launchd}


def _command(vaults: Sequence[Path]) -> list[str]:
    return [sys.executable, "-m", "ragvault", "watch", "--quiet", *map(str, vaults)]


def _environ() -> list[tuple[str, str]]:
    return sorted((name, value) for name, value in settled().items() if _is_ours(name))


def _is_ours(name: str) -> bool:
    """Whether folders or settings depend on it. XDG_RUNTIME_DIR is given by the login itself."""
    return name in PLACES or (name.startswith("RAGVAULT_") and name != "RAGVAULT_DEBUG")


def _quoted(part: str) -> str:
    plain = part.replace("%", "%%").replace("\\", "\\\\")
    return plain if shlex.quote(part) == part else '"' + plain.replace('"', '\\"') + '"'
