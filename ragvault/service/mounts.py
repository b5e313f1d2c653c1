"""Mounts: whether a folder lies on another machine, whose changes no kernel here is told of.

Also where only a part of it does: what is mounted below it.
"""

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
    """The kind of network file system a folder is on, or has below it; empty for none known."""
    if str(folder).startswith("\\\\"):
        return "a Windows share"
    try:
        lines = table.read_text("utf-8", "surrogateescape").splitlines()
    except OSError:
        return ""
    mounted, folder = _mounted(lines), folder.resolve()
    nearest = max((p for p in mounted if folder.is_relative_to(p)), key=_depth, default=None)
    below = (p for p in mounted if p != folder and p.is_relative_to(folder))
    kinds = [mounted[point] for point in (nearest, *below) if point]
    return next((kind for kind in kinds if kind in NETWORK), "")


def _mounted(lines: list[str]) -> dict[Path, str]:
    """The type of file system at each mount point; of two, the later one."""
    found: dict[Path, str] = {}
    for line in lines:
        left, _, right = line.partition(" - ")
        fields, kinds = left.split(), right.split()
        if len(fields) >= 5 and kinds:
            found[Path(_unescaped(fields[4]))] = kinds[0]
    return found


def _depth(point: Path) -> int:
    return len(point.parts)


def _unescaped(field: str) -> str:
    """Spaces and the like are written as octal numbers there."""
    return re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), field)
