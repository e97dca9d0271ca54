"""`hardlook serve DIR`: a web server to explore runs in a browser, unit by unit."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from hardlook.api.exploring import open_explorer
from hardlook.cli.printing import print_output
from hardlook.serving import serve as serve_app


def serve(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A folder with runs, at any depth, or one run.")],
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="Port; 0 takes a free one.")] = 8000,
    host: Annotated[
        str, typer.Option("--host", help="Address to listen on; anything but this machine's own is open to others.")
    ] = "127.0.0.1",
    open_browser: Annotated[bool, typer.Option("--open", help="Open the first page in a browser.")] = False,
    benchmark: Annotated[
        list[str] | None,
        typer.Option("--benchmark", help="package.module:attribute of a benchmark of your own; repeatable."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the address as JSON.")] = False,
) -> None:
    """Serve an explorer of all runs below a folder: filter, sort, open units, compare models.

    It needs the extra `web`: pip install "hardlook[web]".

    Examples:
      hardlook serve runs

      hardlook serve runs --port 0 --open
    """
    explorer = open_explorer(folder, port=port, host=host, benchmarks=benchmark or ())
    for text in (*explorer.notes, *(f"warning: {text}" for text in explorer.warnings)):
        typer.echo(text, err=True)
    document = {"address": explorer.address, "folder": str(explorer.folder)}
    print_output(json.dumps(document) if as_json else f"{explorer.address}  (Ctrl-C to stop)")
    serve_app(explorer.app, explorer.listening, explorer.address if open_browser else "")
