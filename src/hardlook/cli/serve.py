"""`hardlook serve DIR`: a web server to explore runs in a browser, unit by unit."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from hardlook.cli.printing import print_output
from hardlook.cloud.run_folders import open_run
from hardlook.errors import DataError
from hardlook.extras import require
from hardlook.report.explorer.app import make_app
from hardlook.report.explorer.run_index import RunIndex
from hardlook.serving import LOOPBACK, listen, server_url
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
    r"""Serve an explorer of all runs below a folder: filter, sort, open units, compare models.

    It needs the extra `web`: pip install "hardlook\[web]".

    Examples:
      hardlook serve runs

      hardlook serve runs --port 0 --open
    """
    require("uvicorn", extra="web")
    folder = open_run(folder)
    if not folder.is_dir():
        raise DataError("there is no such folder", file=folder, remedy="give a folder with runs")
    app = make_app(folder, host=host, benchmarks=benchmark or ())
    listening = listen(host, port)
    if not RunIndex(folder).runs():
        typer.echo(f"{folder}: there is no run below this folder yet; reload the page when there is one", err=True)
    address = server_url(host, listening)
    if host not in LOOPBACK:
        typer.echo(
            f"warning: {host} can be reached from other machines; anyone there can read every run and its pictures "
            "without a password",
            err=True,
        )
    print_output(json.dumps({"address": address, "folder": str(folder)}) if as_json else f"{address}  (Ctrl-C to stop)")
    serve_app(app, listening, address if open_browser else "")
