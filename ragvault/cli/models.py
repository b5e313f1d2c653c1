"""ragvault models: list, download and verify models, and print their folders."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Optional

import typer

from ragvault.answer.json_output import encode
from ragvault.cli import options
from ragvault.cli.render import console, reports
from ragvault.config import folders
from ragvault.config.load import load_settings
from ragvault.errors import ModelUnavailable, ModelUnusable

app = typer.Typer(help="Manage models: list, download and verify them.")

Name = Annotated[
    str,
    typer.Argument(
        metavar="NAME",
        autocompletion=options.model_names,
        help="Name of a model; see: ragvault models list.",
    ),
]


@app.command("list")
def list_(json: options.Json = False) -> None:
    """List every model: its kind, maker and licence, and whether it is installed.

    ragvault models list
    """
    shelf = folders.models_dir()
    rows = [_row(name, shelf) for name in _registry().models()]
    console.out(encode({"folder": str(shelf), "models": rows}) if json else reports.models(rows))


@app.command()
def pull(
    names: Annotated[
        Optional[list[str]],  # noqa: UP045 - read by Typer at run time
        typer.Argument(
            metavar="[NAME]...",
            autocompletion=options.model_names,
            help="Default: the models your settings use.",
        ),
    ] = None,
    source: Annotated[
        Optional[Path],  # noqa: UP045 - read by Typer at run time
        typer.Option("--from", metavar="FOLDER", help="Look for the model in this folder first."),
    ] = None,
    offline: Annotated[bool, typer.Option("--offline", help="Download nothing.")] = False,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Download and verify models, and print their folders. Installed ones are only verified.

    ragvault models pull

    ragvault models pull bge-small-en-v1.5 --from /media/stick/models
    """
    from ragvault.models.fetch import Ways
    from ragvault.models.talk import on_stderr

    settings = load_settings().config.models
    copies = [path.expanduser() for path in (source, Path(settings.folder)) if path and path.name]
    ways = Ways(offline or settings.offline, copies, on_stderr(quiet=console.is_quiet()))
    wanted = names or [settings.embedder, settings.static, settings.reranker]
    pulled = []
    for name in wanted:
        pulled.append({"name": name, "path": _pulled(name, ways)})
        if not json:
            console.out(str(pulled[-1]["path"]))
    if json:
        console.out(encode({"models": pulled}))


@app.command()
def verify(
    name: Annotated[
        Optional[str],  # noqa: UP045 - read by Typer at run time
        typer.Argument(
            metavar="[NAME]",
            autocompletion=options.model_names,
            help="Default: every installed model.",
        ),
    ] = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Verify the files of installed models by their hashes. Exits with 4 if one is wrong.

    ragvault models verify
    """
    from ragvault.models import shelf as shelves

    shelf = folders.models_dir()
    known = [name] if name else list(_registry().models())
    found = [(each, _installed(each, shelf)) for each in known]
    if name and found[0][1] is None:
        raise ModelUnavailable(name, [(str(shelf), "not installed")])
    faults = {each: shelves.faults(build, shelf) for each, build in found if build}
    if json:
        rows = [{"name": each, "faults": wrong} for each, wrong in faults.items()]
        console.out(encode({"models": rows}))
    wrong = [(each, fault) for each, found in faults.items() for fault in found]
    if wrong:
        raise ModelUnusable(wrong[0][0], "; ".join(fault for _, fault in wrong))
    if not quiet and not json:
        console.out("\n".join(f"{each}: no problems found" for each in faults))


@app.command()
def path(name: Name, json: options.Json = False) -> None:
    """Print the folder of an installed model.

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
        raise ModelUnavailable(name, [(str(shelf), "not installed")])
    _print_path(name, shelves.folder_of(build, shelf), json)


def _print_path(name: str, path: Path, json: bool) -> None:
    console.out(encode({"name": name, "path": path}) if json else str(path))


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


def _registry() -> Any:
    # Imported when called: `--help` does not need it.
    from ragvault.models import registry

    return registry
