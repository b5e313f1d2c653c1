"""ragvault purge: remove everything ragvault has written, after listing it."""

from __future__ import annotations

import typer

from ragvault.cli import options, render

app = typer.Typer()


@app.command()
def purge(
    yes: options.Yes = False,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Remove everything ragvault has written, after listing it.

    Indexes, models, caches and your config.toml. Your notes are never touched. A watcher is
    stopped first. Without --yes it asks; nothing is deleted before the answer.

    ragvault purge

    ragvault purge --yes --quiet
    """
    from ragvault import purge as purging
    from ragvault.cli import pages
    from ragvault.config import folders
    from ragvault.config.load import load_settings
    from ragvault.service.process import running_watcher, stop_watcher

    data = folders.data_dir(override=load_settings().config.paths.data)
    found = purging.written(data)
    if not yes and json:
        for line in pages.written(found).splitlines():
            render.talk(line)
    elif not yes:
        render.out(pages.written(found))
    for each in found:
        if each.path.is_symlink():
            render.talk(
                f"{each.path} is a link: only the link goes, and {each.path.resolve()} stays"
            )
    if found and not yes and not _agreed():
        render.talk("nothing was removed")
        raise typer.Exit(1)
    watcher = running_watcher()
    if watcher:
        render.talk(f"stopping the watcher (pid {watcher.pid})")
        stop_watcher(watcher)
    purging.delete(found, data)
    if json:
        render.out(render.as_json({"removed": found}))
    elif yes and not quiet:
        render.out(pages.written(found))
    if found:
        render.talk("removed; what is left is the program itself: pip uninstall ragvault")


def _agreed() -> bool:
    import sys

    from ragvault.errors import UsageError

    if not sys.stdin or not sys.stdin.isatty():
        raise UsageError(
            "nothing was removed, because nobody is there to be asked", fix="ragvault purge --yes"
        )
    return typer.confirm("remove all of this?", err=True)
