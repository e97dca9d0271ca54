"""`hardlook serve DIR`: look at runs in a browser, unit by unit."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from hardlook.explorer.safety import Application

PORT_IN_USE = "another program listens there already, or this address is not this machine's"


def add_to(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("serve")(serve)


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

    [bold]Examples[/bold]

      hardlook serve runs

      hardlook serve runs --port 0 --open
    """
    import json

    from hardlook.errors import DataError
    from hardlook.explorer.app import make_app
    from hardlook.explorer.run_index import RunIndex
    from hardlook.explorer.safety import LOOPBACK
    from hardlook.extras import require

    require("uvicorn", extra="web")
    if not folder.is_dir():
        raise DataError("there is no such folder", file=folder, remedy="give a folder with runs")
    app = make_app(folder, host=host, benchmarks=benchmark or ())
    listening = _listen(host, port)
    if not RunIndex(folder).runs():
        typer.echo(f"{folder}: there is no run below this folder yet; load the page again when there is one", err=True)
    shown = f"[{host}]" if ":" in host else host
    address = f"http://{shown}:{listening.getsockname()[1]}/"
    if host not in LOOPBACK:
        typer.echo(
            f"warning: {host} can be reached from other machines, and whoever reaches it reads every run and its "
            "pictures; there is no password",
            err=True,
        )
    typer.echo(json.dumps({"address": address, "folder": str(folder)}) if as_json else f"{address}  (Ctrl-C ends it)")
    _serve(app, listening, address if open_browser else "")


def _listen(host: str, port: int) -> socket.socket:
    """A socket of our own, so that the port is known, and refused, before anything is said."""
    from hardlook.errors import OptionError

    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # With the protocol named, asyncio sends small packets at once; else every page waits 40 ms for an acknowledgement.
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
        # From here on a browser that is quicker than the server waits instead of being turned away.
        listening.listen(128)
    except OSError as error:
        listening.close()
        raise OptionError(
            f"cannot listen on {host} port {port}: {error.strerror or PORT_IN_USE}",
            remedy="choose another --port (0 takes a free one) or --host",
        ) from None
    return listening


def _serve(app: Application, listening: socket.socket, to_open: str) -> None:
    import threading
    import webbrowser

    import uvicorn

    # Nothing stands before this server, so what says that something does is not believed.
    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        lifespan="off",
        ws="none",
        timeout_graceful_shutdown=2,
    )
    if to_open:
        threading.Timer(0.5, webbrowser.open, [to_open]).start()
    uvicorn.Server(config).run(sockets=[listening])
