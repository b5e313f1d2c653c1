"""What is heard of a folder, and what a watcher says where the system sends no events."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from watchdog.observers import Observer

from ragvault.service import vault_watcher as events
from ragvault.service.vault_watcher import Listener, NoEvents, network_mount
from tests.watch_kit import soon

Heard = set[tuple[str, bool]]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "vault"
    (folder / "a").mkdir(parents=True)
    (folder / "a" / "note.md").write_text("x\n")
    return folder


@pytest.fixture
def heard() -> Heard:
    return set()


@pytest.fixture
def listener(root: Path, heard: Heard) -> Iterator[Listener]:
    found = Listener(root, lambda *event: heard.add(event))
    yield found
    found.close()


@pytest.mark.usefixtures("listener")
def test_a_file_is_heard_by_its_name_whatever_happens_to_it(root, heard):
    note = root / "a" / "note.md"
    for change in (
        lambda: note.write_text("y\n"),
        lambda: os.utime(note, (1, 1)),
        lambda: note.rename(root / "other.md"),
        lambda: (root / "other.md").rename(note),
        note.unlink,
        lambda: (root.parent / "outside.md").rename(note),
    ):
        (root.parent / "outside.md").write_text("z\n")
        heard.clear()
        change()
        assert soon(lambda: ("a/note.md", False) in heard)


@pytest.mark.usefixtures("listener")
def test_folders_are_heard_as_folders(root, heard):
    for change in (
        lambda: (root / "b").mkdir(),
        lambda: (root / "b").rename(root / "c"),
        lambda: (root / "c").rename(root / "b"),
        (root / "b").rmdir,
    ):
        heard.clear()
        change()
        assert soon(lambda: ("b", True) in heard)


@pytest.mark.usefixtures("listener")
def test_what_is_only_read_is_not_heard(root, heard):
    for _ in range(3):
        os.listdir(root / "a")  # noqa: PTH208
        (root / "a" / "note.md").read_text()
    (root / "last.md").write_text("x\n")  # heard in order: what came before has been dealt with

    assert soon(lambda: ("last.md", False) in heard)
    assert heard == {("last.md", False)}


def test_a_listener_whose_folder_is_deleted_is_not_alive(root, listener, heard):
    assert listener.is_alive
    (root / "a" / "note.md").unlink()
    (root / "a").rmdir()
    root.rmdir()

    assert soon(lambda: not listener.is_alive)
    assert soon(lambda: ("", True) in heard)


def test_a_listener_of_which_a_thread_has_failed_is_not_alive(listener, monkeypatch):
    """watchdog does not say so."""
    failing = threading.Thread(target=lambda: None)
    failing.start()
    failing.join()
    monkeypatch.setattr(listener, "_threads", {*listener._threads, failing})

    assert not listener.is_alive


def test_closing_leaves_no_thread(root):
    before = threading.active_count()
    Listener(root, lambda *_: None).close()

    assert soon(lambda: threading.active_count() <= before)


@pytest.mark.parametrize(
    ("code", "said"), [(errno.ENOSPC, "max_user_watches"), (errno.EMFILE, "max_user_instances")]
)
def test_a_limit_of_the_system_is_named_with_its_cure(root, monkeypatch, code, said):
    def refuse(self):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(Observer, "start", refuse)

    with pytest.raises(NoEvents, match=said):
        Listener(root, lambda *_: None)


# In a namespace of its own, where it may lower the limit.
LIMITED = """
import os, sys
from pathlib import Path
from ragvault.service.vault_watcher import Listener, NoEvents
Path("/proc/sys/user/max_inotify_watches").write_text("5")
try:
    Listener(Path(sys.argv[1]), print)
except NoEvents as error:
    print(error)
print([os.readlink(each) for each in Path("/proc/self/fd").iterdir() if each.is_symlink()])
"""


def test_where_watches_are_too_few_none_is_kept(root):
    """Otherwise no other program of the user would get any."""
    for number in range(10):
        (root / f"{number}").mkdir()
    command = ["unshare", "--user", "--map-root-user", sys.executable, "-c", LIMITED, str(root)]
    try:
        found = subprocess.run(command, capture_output=True, text=True)
    except FileNotFoundError:
        pytest.skip("this system has no unshare")
    if "Listener" not in found.stderr and found.returncode:
        pytest.skip(f"no namespace of its own: {found.stderr}")

    assert "the limit of inotify watches is reached" in found.stdout
    assert "inotify" not in found.stdout.splitlines()[-1]


def test_a_network_mount_is_not_listened_to(root, monkeypatch):
    monkeypatch.setattr(events, "network_mount", lambda _: "nfs4")

    with pytest.raises(NoEvents, match="network file system \\(nfs4\\)"):
        Listener(root, lambda *_: None)


# --- mounts ---

MOUNTS = """\
22 1 8:1 / / rw - ext4 /dev/sda1 rw
40 22 0:40 / /home/me/server rw - nfs4 server:/x rw
41 40 0:41 / /home/me/server/local rw - tmpfs tmpfs rw
42 22 0:42 / /home/me/with\\040space rw - fuse.sshfs me@host: rw
not a line of that file
"""


@pytest.mark.parametrize(
    ("folder", "kind"),
    [
        ("/home/me/notes", ""),
        ("/home/me/server", "nfs4"),
        ("/home/me/server/notes/deep", "nfs4"),
        ("/home/me/server/local/notes", ""),
        ("/home/me/servers", ""),
        ("/home/me", "nfs4"),
        ("/home/me/with space", "fuse.sshfs"),
        ("/home/me/server/local", ""),
        ("/home/me/with space/notes", "fuse.sshfs"),
        ("\\\\server\\share\\notes", "a Windows share"),
    ],
)
def test_the_file_system_of_a_folder_is_that_of_the_nearest_mount(tmp_path, folder, kind):
    table = tmp_path / "mountinfo"
    table.write_text(MOUNTS)

    assert network_mount(Path(folder), table) == kind


def test_without_a_table_of_mounts_a_folder_counts_as_local(tmp_path):
    assert network_mount(tmp_path, tmp_path / "none") == ""
