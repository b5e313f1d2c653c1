"""Commands that remove: forget (a note from the index) and purge (everything ragvault has written).

What purge lists and deletes:

    indexes    the index folders in the data folder, and which vault is the default
    models     weights
    cache      the log of the watcher
    runtime    its lock, its record and its socket
    settings   config.toml and the copies that `config init --force` kept

Only files that ragvault makes are deleted, never a whole folder that the user chose: RAGVAULT_HOME
or paths.data may contain other things, even a vault. Our folders are deleted if they end up empty.
The file that RAGVAULT_CONFIG names is the user's own and stays. Of a symbolic link only the link is
deleted: a folder of models that somebody linked here is probably used elsewhere. Nothing is ever
written to or deleted in a vault.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from ragvault.cli import console, options, reports
from ragvault.cli.console import progress
from ragvault.cli.mcp import TOKEN_FILE
from ragvault.config import folders
from ragvault.errors import DISTRIBUTION, IndexUnusable, UsageError
from ragvault.store import layout
from ragvault.store.files import WriterLock
from ragvault.text.printable import encode, printable

app = typer.Typer()

# As layout.index_folder names them; other folders are not ours.
_INDEX = re.compile(r"[a-z0-9-]+-[0-9a-f]{8}")
_LOG = re.compile(r"watch\.log(\.\d+)?")
_RUNNING = re.compile(r"watch\.(lock|sock|json)|start\.lock|\.watch\.json\..+")


@app.command("forget")
def forget_command(
    note: Annotated[
        str | None,
        typer.Argument(
            metavar="PATH|NOTE",
            autocompletion=options.note_names,
            help="A note: its path, name, title or alias, or a part of one; or a folder.",
            show_default=False,
        ),
    ] = None,
    removed: Annotated[
        bool,
        typer.Option(
            "--removed", help="Only erase leftovers of notes you already deleted or edited."
        ),
    ] = False,
    vault: options.VaultName = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Remove a note from the index, with nothing left behind.

    Does not touch the note itself. If it is still in the vault, the next index adds it again,
    unless .ragignore excludes it. Also erases leftovers of notes you deleted or edited earlier.

    ragvault forget Journal/2024-11-03.md

    ragvault forget Deutsch --vault sample_vault

    ragvault forget --removed
    """
    from ragvault.answer.note_lookup import listed
    from ragvault.service.process import pause_watcher
    from ragvault.update.upkeep import ignore_lines
    from ragvault.vault import Vault

    if (note is None) != removed:
        raise UsageError("name a note, or use --removed", fix="ragvault forget --help")
    opened = Vault.open(vault)
    kept = "something may be left. Run the same command again to erase it"
    with pause_watcher(opened.root) as watcher, progress(kept) as shown:
        forgotten = opened.forget(note, progress=shown)
    if note is not None and not forgotten.notes:
        console.report(f"no note called {note} is in the index")
    console.result(forgotten, reports.forgotten(opened.name, forgotten), json=json)
    if still := forgotten.still_there:
        lines = printable("  ".join(ignore_lines(still, note)))
        file = printable(str(opened.root / ".ragignore"))
        if watcher:
            console.report(
                f"still in the vault, so the watcher (pid {watcher.pid}) adds it again right away: "
                f"{listed(still)}"
            )
            console.report(f"to keep it out, first add this line to {file}: {lines}")
            console.report("then erase what is left: ragvault forget --removed")
        else:
            console.report(
                f"still in the vault, so the next index will add it again: {listed(still)}"
            )
            console.report(f"to keep it out, add this line to {file}: {lines}")


@app.command("purge")
def purge(
    yes: options.Yes = False,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Remove everything ragvault has written, after listing it.

    Removes indexes, models, caches and your config.toml. Never touches your notes. Stops a running
    watcher first. Without --yes it asks before it deletes anything.

    ragvault purge

    ragvault purge --yes --quiet
    """
    from ragvault.config.load import data_folder
    from ragvault.service.process import running_watcher, stop_watcher

    data = data_folder()
    found = written_items(data)
    if not yes and json:
        for line in reports.purge_list(found).splitlines():
            console.report(line)
    elif not yes:
        console.show(reports.purge_list(found))
    for each in found:
        if each.path.is_symlink():
            console.report(
                f"{each.path} is a link: the link is removed, {each.path.resolve()} is kept"
            )
    fix = "ragvault purge --yes"
    if found and not yes and not console.confirm("remove all of this?", fix=fix):
        console.report("nothing was removed")
        raise typer.Exit(1)
    watcher = running_watcher()
    if watcher:
        console.report(f"stopping the watcher (pid {watcher.pid})")
        stop_watcher(watcher)
    delete_items(found, data)
    if json:
        console.out(encode({"removed": found}))
    elif yes and not quiet:
        console.show(reports.purge_list(found))
    if found:
        console.report(f"removed; to remove the program itself: pip uninstall {DISTRIBUTION}")


@dataclass(frozen=True, slots=True)
class WrittenItem:
    """One file or folder that ragvault made."""

    what: str
    path: Path
    bytes: int


def written_items(data: Path, environ: Mapping[str, str] | None = None) -> list[WrittenItem]:
    """Everything ragvault has written; `data` is the data folder. Raises UsageError."""
    vaults = layout.known_vaults(data)
    found = [
        *_named("index", _indexes(data)),
        *_named("default", [data / "vaults" / layout.DEFAULT]),
        *_named("settings", [data / TOKEN_FILE]),
        *_named("models", _models(folders.models_dir(environ))),
        *_named("cache", _matching(folders.cache_dir(environ), _LOG)),
        *_named("runtime", _matching(folders.runtime_dir(environ), _RUNNING)),
        *_named("settings", _settings(environ)),
    ]
    for each in found:
        for vault in vaults:
            _apart(each.path, vault.root)
    return found


def delete_items(
    found: Iterable[WrittenItem], data: Path, environ: Mapping[str, str] | None = None
) -> None:
    """Delete all of it. Raises IndexLocked, and deletes nothing, if an index is being written."""
    found = list(found)
    locks = [WriterLock(each.path, "ragvault purge") for each in found if each.what == "index"]
    held: list[WriterLock] = []
    try:
        for lock in locks:
            lock.acquire()
            held.append(lock)
    finally:
        # On some systems a folder cannot be deleted while a file in it is open.
        for lock in held:
            lock.release()
    for each in found:
        _delete(each.path)
    for folder in _ours(data, environ):
        with suppress(OSError):
            folder.rmdir()  # fails if anything else is in it


def _indexes(data: Path) -> Iterator[Path]:
    folder = data / "vaults"
    for each in sorted(folder.iterdir()) if folder.is_dir() else ():
        if _INDEX.fullmatch(each.name) and _is_index(each):
            yield each


def _is_index(folder: Path) -> bool:
    names = (layout.VAULT, layout.CATALOGUE, "writer.lock")
    return not folder.is_symlink() and any((folder / name).is_file() for name in names)


def _models(shelf: Path) -> Iterator[Path]:
    from ragvault.models.registry import known_models

    if shelf.is_symlink():
        yield shelf
        return
    ours = (*known_models(), "hub", ".incoming", ".locks")
    yield from (shelf / name for name in ours)


def _settings(environ: Mapping[str, str] | None) -> Iterator[Path]:
    path = folders.user_file({**_environ(environ), "RAGVAULT_CONFIG": ""})
    yield path
    yield from _matching(path.parent, re.compile(re.escape(path.name) + r"\.\d+"))


def _matching(folder: Path, name: re.Pattern[str]) -> list[Path]:
    """The files of a folder whose names are ours."""
    within = folder.iterdir() if folder.is_dir() else ()
    return sorted(each for each in within if name.fullmatch(each.name))


def _environ(environ: Mapping[str, str] | None) -> Mapping[str, str]:
    return os.environ if environ is None else environ


def _named(what: str, paths: Iterable[Path]) -> Iterator[WrittenItem]:
    for path in paths:
        if path.is_symlink() or path.exists():
            yield WrittenItem(what, path, _size(path))


def _size(path: Path) -> int:
    files = path.rglob("*") if path.is_dir() and not path.is_symlink() else [path]
    return sum(each.lstat().st_size for each in files if not each.is_dir() or each.is_symlink())


def _apart(path: Path, root: Path) -> None:
    real, vault = path.resolve(), root.resolve()
    if vault.is_relative_to(real) or real.is_relative_to(vault):
        raise UsageError(
            f"{path} and the vault {root} overlap, so nothing was deleted",
            fix="delete by hand what ragvault wrote there",
        )


def _delete(path: Path) -> None:
    try:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    except OSError as error:
        raise IndexUnusable(path, error.strerror or str(error), fix=f"delete {path}") from error


def _ours(data: Path, environ: Mapping[str, str] | None) -> Iterator[Path]:
    """Our folders, which may be empty now, inner ones first."""
    yield data / "vaults"
    yield folders.runtime_dir(environ)  # may be inside the cache folder
    yield folders.cache_dir(environ)
    yield folders.models_dir(environ)
    yield data
    yield folders.models_dir(environ).parent
    yield folders.user_file({**_environ(environ), "RAGVAULT_CONFIG": ""}).parent
