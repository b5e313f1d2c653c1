"""ragvault models: list, fetch and verify models, and print their folders."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from ragvault.cli import console, options, reports
from ragvault.cli.console import progress
from ragvault.cli.start import report_if_slow
from ragvault.config import folders
from ragvault.config.load import load_settings
from ragvault.errors import ModelUnavailable, ModelUnusable
from ragvault.models import registry
from ragvault.text.printable import encode

app = typer.Typer(help="List, fetch and verify models.", invoke_without_command=True)

Name = Annotated[
    str,
    typer.Argument(
        metavar="NAME",
        autocompletion=options.model_names,
        help="A name from models list.",
    ),
]


@app.callback()
def models(ctx: typer.Context) -> None:
    """List, fetch and verify models. Alone, it lists them."""
    if ctx.invoked_subcommand is None:
        list_models()


@app.command("list")
def list_models(json: options.Json = False) -> None:
    """List every model with its origin, licence and folder.

    ragvault models list
    """
    models_dir = folders.models_dir()
    rows = [_row(name, models_dir) for name in registry.known_models()]
    console.result(
        {"folder": str(models_dir), "models": rows}, reports.models_text(rows), json=json
    )


@app.command("pull")
def pull_models(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[NAME]...",
            autocompletion=options.model_names,
            help="Default: the models your settings use.",
        ),
    ] = None,
    source: Annotated[
        Path | None, typer.Option("--from", metavar="FOLDER", help="Look in this folder first.")
    ] = None,
    offline: Annotated[bool, typer.Option("--offline", help="Download nothing.")] = False,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Fetch models, verify every byte, and print their folders. Installed ones are only verified.

    ragvault models pull

    ragvault models pull bge-small-en-v1.5 --from /media/stick/models
    """
    from ragvault.models.load import LoadOptions

    settings = load_settings().config.models
    copies = [path.expanduser() for path in (source, Path(settings.folder)) if path and path.name]
    wanted = names or [settings.embedder, settings.static, settings.reranker]
    pulled = []
    with progress("models that were fetched are kept") as shown:
        how = LoadOptions(folders.models_dir(), offline or settings.offline, copies, shown)
        for name in wanted:
            pulled.append({"name": name, "path": _pulled(name, how)})
            if not json:
                console.out(str(pulled[-1]["path"]))
    if json:
        console.out(encode({"models": pulled}))


@app.command("verify")
def verify_models(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="[NAME]",
            autocompletion=options.model_names,
            help="Default: every installed model.",
        ),
    ] = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Verify every file of the installed models. Exits with 4 if one is damaged.

    ragvault models verify
    """
    models_dir = folders.models_dir()
    known = [name] if name else list(registry.known_models())
    found = [(each, _installed(each, models_dir)) for each in known]
    if name and found[0][1] is None:
        raise ModelUnavailable(name, [(str(models_dir), "it is not installed")])
    with report_if_slow("verifying every file", quiet=console.is_quiet()):
        faults = {each: registry.faults(build, models_dir) for each, build in found if build}
    if json:
        rows = [{"name": each, "faults": wrong} for each, wrong in faults.items()]
        console.out(encode({"models": rows}))
    damaged = [each for each, wrong in faults.items() if wrong]
    if damaged:
        raise ModelUnusable(damaged[0], "; ".join(why for each in damaged for why in faults[each]))
    if not quiet and not json:
        console.out("\n".join(f"{each}: verified" for each in faults))


@app.command()
def path(name: Name, json: options.Json = False) -> None:
    """Print the folder of an installed model.

    ragvault models path bge-small-en-v1.5
    """
    from ragvault.models import load

    models_dir = folders.models_dir()
    if load.is_unlisted(name):
        _print_path(name, _unlisted(name, models_dir), json)
        return
    build = _installed(name, models_dir)
    if build is None:
        raise ModelUnavailable(name, [(str(models_dir), "it is not installed")])
    _print_path(name, registry.build_folder(build, models_dir), json)


def _print_path(name: str, path: Path, json: bool) -> None:
    console.out(encode({"name": name, "path": path}) if json else str(path))


def _pulled(name: str, how: Any) -> Path:
    from ragvault.models import install, load

    if load.is_unlisted(name):
        return install.unlisted_folder(load.short_name(name), how)
    model, builds = registry.find_model(name)
    return registry.build_folder(install.install_model(model, builds, how), how.models_dir)


def _unlisted(name: str, models_dir: Path) -> Path:
    from ragvault.models.install import unlisted_folder
    from ragvault.models.load import LoadOptions, short_name

    return unlisted_folder(short_name(name), LoadOptions(models_dir, offline=True))


def _installed(name: str, models_dir: Path) -> Any:
    return registry.installed(registry.find_model(name)[1], models_dir)


def _row(name: str, models_dir: Path) -> dict[str, Any]:
    model, _ = registry.find_model(name)
    build = _installed(name, models_dir)
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
        "path": str(registry.build_folder(build, models_dir)) if build else None,
    }
