"""A socket that is refused before anything is said, and a server on it."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

from hardlook.errors import OptionError
from hardlook.serving.asgi import Application

if TYPE_CHECKING:
    from uvicorn import Server

PORT_IN_USE = "another program listens there already, or this address is not this machine's"


def listen(host: str, port: int) -> socket.socket:
    """A socket on `host` and `port` (0: a free one), so that the port is known, or refused, before anything is said."""
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


def address_of(host: str, listening: socket.socket) -> str:
    """The address to type into a browser.

    >>> with socket.create_server(("127.0.0.1", 0)) as listening:
    ...     address_of("127.0.0.1", listening).startswith("http://127.0.0.1:")
    True
    """
    shown = f"[{host}]" if ":" in host else host
    return f"http://{shown}:{listening.getsockname()[1]}/"


def serve(app: Application, listening: socket.socket, to_open: str = "") -> None:
    """Serve until stopped; `to_open` is an address to open in a browser."""
    import threading
    import webbrowser

    if to_open:
        threading.Timer(0.5, webbrowser.open, [to_open]).start()
    server_of(app).run(sockets=[listening])


def server_of(app: Application) -> Server:
    """A server that has not been started."""
    from hardlook.extras import require

    uvicorn = require("uvicorn", extra="web")
    config = uvicorn.Config(
        app,
        # Of the two parsers that uvicorn may find only this one limits the size of a request's head.
        http="h11",
        # What strangers send that is no HTTP at all is not worth a line each.
        log_level="error",
        access_log=False,
        server_header=False,
        # What a request says of who asks is not believed here.
        proxy_headers=False,
        lifespan="off",
        ws="none",
        timeout_graceful_shutdown=2,
    )
    server: Server = uvicorn.Server(config)
    return server
