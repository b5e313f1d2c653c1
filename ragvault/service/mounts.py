"""Mounts: whether a folder lies on another machine, whose changes no kernel here is told of."""

from __future__ import annotations

import re
from pathlib import Path

TABLE = Path("/proc/self/mountinfo")
NETWORK = frozenset(
    (
        *("nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "afs", "ceph", "glusterfs", "lustre"),
        *("ncpfs", "davfs", "vboxsf", "vmhgfs", "drvfs", "virtiofs", "fuse.sshfs", "fuse.rclone"),
        *("fuse.s3fs", "fuse.gvfsd-fuse", "fuse.glusterfs", "fuse.vmhgfs-fuse", "fuse.davfs2"),
    )
)


def network(folder: Path, table: Path = TABLE) -> str:
    """The kind of network file system a folder is on; empty for a local one or an unknown one."""
    if str(folder).startswith("\\\\"):
        return "a Windows share"
    try:
        lines = table.read_text("utf-8", "surrogateescape").splitlines()
    except OSError:
        return ""
    kind = _kind(lines, folder.resolve())
    return kind if kind in NETWORK else ""


def _kind(lines: list[str], folder: Path) -> str:
    """The type of the mount with the longest path above the folder; of two, the later one."""
    best, kind = -1, ""
    for line in lines:
        left, _, right = line.partition(" - ")
        fields, kinds = left.split(), right.split()
        if len(fields) < 5 or not kinds:
            continue
        point = Path(_unescaped(fields[4]))
        if folder.is_relative_to(point) and len(point.parts) >= best:
            best, kind = len(point.parts), kinds[0]
    return kind


def _unescaped(field: str) -> str:
    """Spaces and the like are written as octal numbers there."""
    return re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), field)
