"""ragvault models: which there are, fetching them, checking them, finding their folder."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Optional

import typer

from ragvault.cli import options, render
from ragvault.config import folders
from ragvault.config.load import load_settings
from ragvault.errors import ModelUnavailable, ModelUnusable

app = typer.Typer(help="The models: which there are, fetching and checking them.")

Name = Annotated[
    str,
    typer.Argument(
        metavar="NAME",
        autocompletion=options.model_names,
        help="A name that models list shows.",
    ),
]


@app.command("list")
def list_(json: options.Json = False) -> None:
    """Every model: its kind, whether it is here, who made it and under which licence.

    ragvault models list
    """
    shelf = folders.models_dir()
    rows = [_row(name, shelf) for name in _registry().models()]
    render.out(render.as_json({"folder": str(shelf), "models": rows}) if json else _table(rows))


@app.command()
def pull(
    names: Annotated[
        Optional[list[str]],  # noqa: UP045 - read by Typer at run time
        typer.Argument(
            metavar="[NAME]...",
            autocompletion=options.model_names,
            help="Without a name: those your settings use.",
        ),
    ] = None,
    source: Annotated[
        Optional[Path],  # noqa: UP045 - read by Typer at run time
        typer.Option("--from", metavar="FOLDER", help="Look in this folder first."),
    ] = None,
    offline: Annotated[bool, typer.Option("--offline", help="Download nothing.")] = False,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Fetch models, verify every byte, and say where they are. One that is here is only verified.

    ragvault models pull

    ragvault models pull bge-small-en-v1.5 --from /media/stick/models
    """
    from ragvault.models.fetch import Ways
    from ragvault.models.talk import on_stderr

    settings = load_settings().config.models
    copies = [path.expanduser() for path in (source, Path(settings.folder)) if path and path.name]
    ways = Ways(offline or settings.offline, copies, on_stderr(quiet=render.is_quiet()))
    wanted = names or [settings.embedder, settings.static, settings.reranker]
    pulled = []
    for name in wanted:
        pulled.append({"name": name, "path": _pulled(name, ways)})
        if not json:
            render.out(str(pulled[-1]["path"]))
    if json:
        render.out(render.as_json({"models": pulled}))


@app.command()
def verify(
    name: Annotated[
        Optional[str],  # noqa: UP045 - read by Typer at run time
        typer.Argument(
            metavar="[NAME]",
            autocompletion=options.model_names,
            help="Without a name: every model that is here.",
        ),
    ] = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Hash every file of the models that are here. Exit 4 when one is not what it should be.

    ragvault models verify
    """
    from ragvault.models import shelf as shelves

    shelf = folders.models_dir()
    known = [name] if name else list(_registry().models())
    found = [(each, _installed(each, shelf)) for each in known]
    if name and found[0][1] is None:
        raise ModelUnavailable(name, [(str(shelf), "it has not been pulled")])
    faults = {each: shelves.faults(build, shelf) for each, build in found if build}
    if json:
        rows = [{"name": each, "faults": wrong} for each, wrong in faults.items()]
        render.out(render.as_json({"models": rows}))
    wrong = [(each, said) for each, all_of_it in faults.items() for said in all_of_it]
    if wrong:
        raise ModelUnusable(wrong[0][0], "; ".join(said for _, said in wrong))
    if not quiet and not json:
        render.out("\n".join(f"{each}: all is well" for each in faults))


@app.command()
def path(name: Name, json: options.Json = False) -> None:
    """Print the folder of a model that is here.

    ragvault models path bge-small-en-v1.5
    """
    from ragvault.models import load
    from ragvault.models import shelf as shelves

    shelf = folders.models_dir()
    if load.is_foreign(name):
        _print_path(name, _foreign(name, shelf), json)
        return
    build = _installed(name, shelf)
    if build is None:
        raise ModelUnavailable(name, [(str(shelf), "it has not been pulled")])
    _print_path(name, shelves.folder_of(build, shelf), json)


def _print_path(name: str, path: Path, json: bool) -> None:
    render.out(render.as_json({"name": name, "path": path}) if json else str(path))


def _pulled(name: str, ways: Any) -> Path:
    from ragvault.models import fetch, load
    from ragvault.models import folder as folders_of_yours
    from ragvault.models import shelf as shelves

    shelf = folders.models_dir()
    if load.is_foreign(name):
        return folders_of_yours.locate(load.short_name(name), shelf, ways)
    model, builds = _registry().find(name)
    return shelves.folder_of(fetch.pull(model, builds, shelf, ways), shelf)


def _foreign(name: str, shelf: Path) -> Path:
    from ragvault.models import folder as folders_of_yours
    from ragvault.models.fetch import Ways
    from ragvault.models.load import short_name

    return folders_of_yours.locate(short_name(name), shelf, Ways(offline=True))


def _installed(name: str, shelf: Path) -> Any:
    from ragvault.models import shelf as shelves

    return shelves.installed(_registry().find(name)[1], shelf)


def _row(name: str, shelf: Path) -> dict[str, Any]:
    from ragvault.models import shelf as shelves

    model, _ = _registry().find(name)
    build = _installed(name, shelf)
    return {
        "name": name,
        "kind": model.role,
        "engine": model.engine,
        "dim": model.dim or None,
        "max_tokens": model.max_tokens,
        "about": model.about,
        "licence": model.licence,
        "origin": model.origin,
        "sources": [str(source) for source in model.sources],
        "download_bytes": model.sources[0].bytes,
        "installed": build is not None,
        "full_name": build.full_name if build else None,
        "path": str(shelves.folder_of(build, shelf)) if build else None,
    }


def _table(rows: list[dict[str, Any]]) -> str:
    """Three lines a model: what it is, who made it, where it is or could be had."""
    lines = []
    for row in rows:
        sources = ", ".join(row["sources"])
        here = row["path"] or f"not here; {row['download_bytes'] / 1e6:.0f} MB to fetch"
        lines += [
            f"{row['name']}  ({row['kind']}, {row['engine']})",
            f"    {row['about']}",
            f"    made by {row['origin']}, licence {row['licence']}; from {sources}",
            f"    {here}",
        ]
    return "\n".join(lines)


def _registry() -> Any:
    # Imported on call: only this command reads the registry.
    from ragvault.models import registry

    return registry
